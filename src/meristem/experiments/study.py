"""A study as one record: its options, tasks, table, the paper's values and figures.

    STUDY = Study(name="two-spirals", options=SpiralsOptions, plan=plan, columns=(…), paper={…}, pictures=…, …)
    result = run(STUDY, options, STUDY.plan(options), progress)

A new study is a file of this folder with such a record, from which command line, summary, table and figures follow.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, TypeVar

from meristem.experiments.options import Options
from meristem.experiments.result_table import Column, PaperValues
from meristem.experiments.study_training import (
    Arrays,
    Result,
    Task,
    Trainer,
    Trials,
    tasks_by_name,
    train_directly,
    train_model,
)
from meristem.experiments.summary import Record
from meristem.nn import Network
from meristem.pictures.studies.study_results import StudyPictures
from meristem.show.progress import Progress

T = TypeVar("T", bound=Options)


@dataclass(frozen=True)
class Plan:
    """The tasks that the options of a study ask for, with their data."""

    tasks: Sequence[Task]
    title: str  # of the table and in summary.json
    is_papers_data: bool = True  # so that its values can be compared with ours
    pictures: StudyPictures | None = None  # in place of the study's
    summary_fields: Record = field(default_factory=dict)  # further values of summary.json


@dataclass(frozen=True)
class Study(Generic[T]):
    """A study."""

    name: str
    help: str
    description: str
    example: str  # options of a typical command
    options: type[T]
    plan: Callable[[T], Plan]  # loads the data
    columns: tuple[Column, ...]
    averages: str  # what the table's numbers are
    summary_line: Callable[[list[Record]], str]  # of a model's runs on a task
    pictures: StudyPictures
    paper: PaperValues = field(default_factory=dict)
    arrays: Callable[[Network], Arrays] | None = None  # further arrays of a run's best network in history.npz
    setup: Callable[[], Any] = lambda: None  # called before JAX computes anything

    def paper_of(self, plan: Plan) -> PaperValues:
        return self.paper if plan.is_papers_data else {}

    def pictures_of(self, plan: Plan) -> StudyPictures:
        return plan.pictures or self.pictures


def run(study: Study[T], options: T, plan: Plan, progress: Progress, trainer: Trainer = train_directly) -> Result:
    """Train every model on every task, each at the setting that it keeps."""
    result = Result()
    for task in plan.tasks:
        result.history |= {f"data/{task.name}/{name}": values for name, values in task.arrays.items()}
    tasks = [options.resized(task) for task in plan.tasks]
    progress.plan(expected_epochs(options, tasks))
    line, arrays = study.summary_line, study.arrays
    for model in options.models:
        train = partial(train_model, model, tasks, progress=progress, trainer=trainer, summary_line=line, arrays=arrays)
        trials = options.trials(model)
        result.join(train_selecting_rate(model, trials, train, progress) if options.select_rate else train(trials))
    return result


def expected_epochs(options: Options, tasks: Sequence[Task]) -> Mapping[tuple[str, str], float]:
    """Return how many epochs each model takes on each task, approximately."""
    epochs = {name: sum(task.expected_epochs for task in variants) for name, variants in tasks_by_name(tasks).items()}
    members = {model: len(options.trials(model).members(model)) for model in options.models}
    return {(model, name): members[model] * epochs[name] for model in options.models for name in epochs}


def train_selecting_rate(model: str, trials: Trials, train: Callable[[Trials], Result], progress: Progress) -> Result:
    """Return the result of the smallest rate that solves every task, or else of the largest: the paper's rule.

    A task is solved if more than half of the seeds reach zero training error; the counts are in the result's "rates".
    """
    tried = []
    for rate in sorted(trials.rates):
        result = train(replace(trials, rates=(rate,)))
        solved = dict.fromkeys((run["task"] for run in result.runs), 0)
        for run in result.runs:
            solved[run["task"]] += run["zero_error_epoch"] is not None
        tried += [
            {"model": model, "task": task, "learning_rate": rate, "solved": count, "seeds": trials.seeds}
            for task, count in solved.items()
        ]
        if all(2 * count > trials.seeds for count in solved.values()):
            break
    progress.say(f"{model}: rate {rate:g} is the one that is kept")
    result.extra["rates"] = tried
    return result
