"""A study as one record: its name, what a person may set, its tasks, its table beside the paper's values, its pictures.

    STUDY = Study(name="two-spirals", options=SpiralsOptions, plan=plan, columns=(…), paper={…}, pictures=…, …)
    result = run(STUDY, options, STUDY.plan(options), progress)

A new study is a file of this folder with such a record: the command line, the summary, the table and the pictures read it.
Models are trained by `runs.py`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from meristem.experiments.columns import Column, Papers
from meristem.experiments.options import Options
from meristem.experiments.runs import Arrays, Keep, Result, Task, at_once, by_name, train_model
from meristem.experiments.select_rate import train_selecting_rate
from meristem.experiments.summary import Record
from meristem.nn import Network
from meristem.pictures.studies.records import StudyPictures
from meristem.show.progress import Progress

T = TypeVar("T", bound=Options)


@dataclass(frozen=True)
class Plan:
    """What the options of a study amount to: its tasks with their data, and how these are called."""

    tasks: Sequence[Task]
    title: str  # of the table and in summary.json
    is_papers_data: bool = True  # the data are the paper's: its values stand beside ours
    pictures: StudyPictures | None = None  # None: the study's
    known: Record = field(default_factory=dict)  # what summary.json says of the data besides


@dataclass(frozen=True)
class Study(Generic[T]):
    """All there is to say about a study."""

    name: str
    help: str
    description: str
    example: str  # options of a typical command
    options: type[T]
    plan: Callable[[T], Plan]  # loads the data
    columns: tuple[Column, ...]
    averages: str  # what the table's numbers are
    line: Callable[[list[Record]], str]  # what came out of a model's runs on a task
    pictures: StudyPictures
    paper: Papers = field(default_factory=dict)
    arrays: Callable[[Network], Arrays] | None = None  # what history.npz holds of a run's best network besides
    before: Callable[[], Any] = lambda: None  # called before JAX computes anything

    def paper_of(self, plan: Plan) -> Papers:
        """The paper's values, where the data are the paper's."""
        return self.paper if plan.is_papers_data else {}

    def pictures_of(self, plan: Plan) -> StudyPictures:
        return plan.pictures or self.pictures


def run(study: Study[T], options: T, plan: Plan, progress: Progress, keep: Keep = at_once) -> Result:
    """Train every model on every task, each at the setting that it keeps; `keep`: see runs.py."""
    result = Result()
    for task in plan.tasks:
        result.history |= {f"data/{task.name}/{name}": values for name, values in task.arrays.items()}
    tasks = [options.sized(task) for task in plan.tasks]
    progress.plan(usual_epochs(options, tasks))
    for model in options.models:
        train = partial(train_model, model, tasks, progress=progress, keep=keep, line=study.line, arrays=study.arrays)
        trials = options.trials(model)
        result.join(train_selecting_rate(model, trials, train, progress) if options.select_rate else train(trials))
    return result


def usual_epochs(options: Options, tasks: Sequence[Task]) -> Mapping[tuple[str, str], float]:
    """How many epochs each model takes on each task, roughly."""
    epochs = {name: sum(task.usual_epochs for task in ways) for name, ways in by_name(tasks).items()}
    members = {model: len(options.trials(model).members(model)) for model in options.models}
    return {(model, name): members[model] * epochs[name] for model in options.models for name in epochs}
