"""A study as one record: its options, tasks, table, the paper's values and figures.

    STUDY = Study(name="two-spirals", options=SpiralsOptions, plan=plan, columns=(…), paper={…}, pictures=…, …)
    result = run(STUDY, options, STUDY.plan(options), progress)             (study_training.py)

A new study is a file of this folder with such a record, from which command line, summary, table and figures follow.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from meristem.experiments.options import Options
from meristem.experiments.result_table import Column, PaperValues
from meristem.experiments.summary import Record
from meristem.nn import Network
from meristem.pictures.studies.study_pictures import StudyPictures
from meristem.show.measures import LOSS, MACRO_F1, Measure, error_measure
from meristem.train.hyperparameters import Recipe
from meristem.train.training_data import Data

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Task:
    """What a network is trained on, and how."""

    name: str
    data: Data
    n_out: int
    recipe: Recipe
    width: int
    depth: int  # of bodies with a fixed number of layers
    expected_epochs: int  # of one seed, to estimate the time left
    test: Data | None = None  # its x and y
    record_fields: dict[str, Any] = field(default_factory=dict)  # further values of its records: features, split
    arrays: Arrays = field(default_factory=dict)  # further arrays of history.npz, below data/
    learns_width: bool = False  # up to `width`

    @property
    def measure(self) -> Measure:
        """The measure that selects a model's best epoch, and then its setting."""
        error = error_measure(self.recipe.task.error_name, is_share=self.recipe.task.error_is_share)
        return {"error": error, "macro_f1": MACRO_F1, "loss": LOSS}[self.recipe.select]

    @property
    def selection_part(self) -> str:
        return "training" if self.data.dev_x is None else "validation"

    def resized(self, options: Options) -> "Task":
        """Return the task with networks of the requested size, which settle if that is requested."""
        recipe, learns_width = self.recipe, self.learns_width
        if options.budget is not None:
            recipe, learns_width = replace(recipe, settle=True, price="parameters"), True
        elif options.settle or options.penalties is not None:
            recipe = replace(recipe, settle=True)
        width, depth = options.width or self.width, options.depth or self.depth
        return replace(self, recipe=recipe, width=width, depth=depth, learns_width=learns_width)


@dataclass(frozen=True)
class Plan:
    """The tasks that the options of a study ask for, with their data."""

    tasks: Sequence[Task]
    title: str  # of the table and in summary.json
    is_papers_data: bool = True  # so that its values can be compared with ours
    pictures: StudyPictures | None = None  # in place of the study's
    summary_fields: Record = field(default_factory=dict)  # further values of summary.json


@dataclass(frozen=True)
class Study:
    """A study."""

    name: str
    help: str
    description: str
    example: str  # options of a typical command
    options: type[Any]  # a subclass of Options
    plan: Callable[[Any], Plan]  # of the options; loads the data
    columns: tuple[Column, ...]
    averages: str  # what the table's numbers are
    summary_line: Callable[[list[Record]], str]  # what a model's runs on a task reached
    pictures: StudyPictures
    paper: PaperValues = field(default_factory=dict)
    arrays: Callable[[Network], Arrays] | None = None  # further arrays of a run's best network in history.npz
    setup: Callable[[], Any] = lambda: None  # called before JAX computes anything

    def paper_of(self, plan: Plan) -> PaperValues:
        return self.paper if plan.is_papers_data else {}
