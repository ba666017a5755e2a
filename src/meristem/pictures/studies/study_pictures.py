"""What is drawn of a study, as plain data: `SolvingPictures`, `LearningPictures` or `ImagePictures`.

A study writes its pictures into summary.json (`as_json`), so a new study with the usual figures changes nothing here.
"""

import math
import textwrap
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

from meristem.pictures import figure_style
from meristem.pictures.figure_style import INK, PARTS, Figure
from meristem.pictures.studies.found_networks import draw_error_by_parameters, draw_structures, runs_with_structure
from meristem.pictures.studies.planar_data import draw_data, draw_discriminants, runs_with_discriminant
from meristem.pictures.studies.run_comparisons import Panel, draw_final_values, draw_penalty_path, draw_settings, size_panels
from meristem.pictures.studies.study_results import Run, StudyResults, finite_value
from meristem.pictures.studies.training_curves import GATES_CLOSE, MEDIAN, RATE_SHRINKS, Curve, Row, draw_training, size_rows
from meristem.show.measures import ERROR, Measure

Drawings = dict[str, Callable[[StudyResults], Figure]]  # name of a figure → function that draws it, in reading order
SIZES = {"layer_sizes": 2, "hard_size": 1, "stage": 1}  # arrays of every run in history.npz → number of axes


class Required(NamedTuple):
    """What the files of a study must hold for its figures; of arrays in history.npz, the number of axes."""

    values: tuple[str, ...]  # of every run in summary.json
    nullable: tuple[str, ...]  # of every run too, but it may be null
    arrays: dict[str, int]  # of every run
    points: dict[str, int]  # of every task, below data/


@dataclass(frozen=True)
class StudyPictures:
    """What both kinds share: the names in titles, and the figures there are."""

    kind: ClassVar[str]  # the name of the subclass in summary.json
    selection_part: ClassVar[str] = "validation"  # whose measure selects a setting
    path_part: ClassVar[str] = "test"  # whose errors are drawn along a penalty path
    cell: ClassVar[tuple[float, float]]  # inches of a panel of a training
    shares_scale: ClassVar[bool]  # among the tasks of a training
    legend_columns: ClassVar[tuple[int, ...]]  # for one task, two, more
    stage_change: ClassVar[str] = RATE_SHRINKS  # what happens where a stage begins
    # What a kind defines:
    required: ClassVar[Callable[..., Required]]  # (): what the files must hold
    rows: ClassVar[Callable[..., list[Row]]]  # (results, model): the quantities that are shown of a training
    heading: ClassVar[Callable[..., str]]  # (runs, median): the line above a task, of all seeds and the median run
    draw_sizes: ClassVar[Callable[..., Figure]]  # (results): the figure of final values

    subject: str  # the study's name in titles
    tasks: dict[str, str] = field(default_factory=dict)  # name of a task → its label, in reading order

    @property
    def selects(self) -> Measure:
        """The measure that selects the model and the setting."""
        return ERROR

    def rank(self, run: Run) -> float:
        """Return the value whose lower median is the seed that is drawn."""
        value = finite_value(run, f"dev_{self.selects.name}")
        return math.inf if value is None else value

    def drawings(self, results: StudyResults) -> Drawings:
        drawings: Drawings = {model: partial(draw_training, model=model) for model in results.models}
        drawings["sizes"] = self.draw_sizes
        if results.settings:
            drawings["tried"] = partial(draw_settings, measure=self.selects, part=self.selection_part)
        if results.path:
            drawings["frontier"] = partial(draw_penalty_path, measure=ERROR, part=self.path_part)
        return drawings

    def as_json(self) -> dict[str, Any]:
        """Return what summary.json holds under "pictures"."""
        return {"kind": self.kind, **asdict(self)}

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Self:
        """Return the inverse of `as_json`, whose result comes without its kind."""
        return cls(**fields)


@dataclass(frozen=True)
class SolvingPictures(StudyPictures):
    """A study of solvable tasks: what counts is the first epoch of zero training error, which a seed may not reach."""

    kind = "solving"
    selection_part, path_part = "training", "train"  # there is no other part
    cell, shares_scale, legend_columns = (2.9, 2.0), True, (1, 2, 4)

    is_planar: bool = True  # the data are points of two classes in the plane, which history.npz holds

    def required(self) -> Required:
        points = {"x": 2, "y": 1} if self.is_planar else {}
        return Required(("model", "task", "seed", "soft_size"), ("zero_error_epoch",), {"error": 1} | SIZES, points)

    def rank(self, run: Run) -> float:
        return math.inf if run["zero_error_epoch"] is None else run["zero_error_epoch"]

    def drawings(self, results: StudyResults) -> Drawings:
        drawings = super().drawings(results)
        if not self.is_planar:
            return drawings
        boundaries: Drawings = {"discriminants": draw_discriminants} if runs_with_discriminant(results) else {}
        trainings = {model: drawings.pop(model) for model in results.models}
        return {"data": draw_data, **trainings, **boundaries, **drawings}

    def rows(self, results: StudyResults, model: str) -> list[Row]:
        has_seeds = any(len(results.runs_of(model, task)) > 1 for task in results.tasks)
        style: dict[str, Any] = {"color": results.colors[model], "ring": "zero_error_epoch"}
        error = Curve("error", label=MEDIAN if has_seeds else "_", **style)
        return [Row("error rate", [error]), *size_rows(results, model, **style)]

    def heading(self, runs: list[Run], median: Run) -> str:
        epoch, solved = median["zero_error_epoch"], sum(run["zero_error_epoch"] is not None for run in runs)
        text = f"seed {median['seed']}: " + ("never at zero error" if epoch is None else f"zero at epoch {epoch}")
        return text + (f"  ({solved}/{len(runs)} solved)" if len(runs) > 1 else "")

    def draw_sizes(self, results: StudyResults) -> Figure:
        """Draw final sizes and epochs to zero error, with "never" well above the longest training, the paper's included."""
        models, tasks = results.models, results.tasks
        paper = [results.paper_value(model, task, "zero_error_epoch") or 0 for model in models for task in tasks]
        never = 2.5 * max(*paper, *(len(results.series(run, "error")) for run in results.runs), 3)
        all_solved = all(run["zero_error_epoch"] is not None for run in results.runs)
        scale = partial(figure_style.scale_epochs, never=None if all_solved else never)
        epochs = Panel("Epochs to zero error", "epoch", "zero_error_epoch", models, tasks, scale, never)
        sizes = size_panels(results, {"units": figure_style.integers_from_zero, "nodes": figure_style.integers_from_zero})
        title = f"Final size and training time on {results.subject}"
        return draw_final_values(results, title, [*sizes, epochs], "median", goal="zero_error_epoch")


@dataclass(frozen=True)
class LearningPictures(StudyPictures):
    """A study with training, validation and test parts: the model of the best validation epoch is kept and tested.

    Curves and marks are the paper's: training red, validation blue, a dot at the best value of each, and an asterisk at the
    best epoch at the height of its test value. The last measure selects the model.
    """

    kind = "learning"
    cell, shares_scale, legend_columns = (3.6, 2.0), False, (2, 4)

    measures: tuple[Measure, ...] = (ERROR,)
    scores: tuple[str, ...] = ("test",)  # the parts whose values are compared, of "dev" and "test"
    panel_per_task: bool = False  # whether each task has a panel and a scale of its own there

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Self:
        # "apart" is the name of panel_per_task in earlier files
        fields = {"panel_per_task" if name == "apart" else name: value for name, value in fields.items()}
        measures = tuple(Measure(**measure) for measure in fields["measures"])
        return cls(**fields | {"measures": measures, "scores": tuple(fields["scores"])})

    @property
    def selects(self) -> Measure:
        return self.measures[-1]

    def required(self) -> Required:
        nullable = (f"dev_{self.selects.name}", *(f"test_{measure.name}" for measure in self.measures))
        arrays = {part + measure.name: 1 for measure in self.measures for part in PARTS} | SIZES
        return Required(("model", "task", "seed", "best_epoch", "soft_size"), nullable, arrays, {})

    def rows(self, results: StudyResults, model: str) -> list[Row]:
        rows = []
        for measure in self.measures:
            parts = [Curve(part + measure.name, color, label, light) for part, (label, color, light) in PARTS.items()]
            rows.append(Row(textwrap.fill(measure.label, 15), parts, partial(figure_style.scale_measure, measure), measure))
        return [*rows, *size_rows(results, model, color=INK, ring="best_epoch", scale_nodes=figure_style.scale_nodes)]

    def heading(self, runs: list[Run], median: Run) -> str:
        seed = f"seed {median['seed']}" + (f" (median of {len(runs)})" if len(runs) > 1 else "")
        test = finite_value(median, f"test_{self.selects.name}")
        tested = f"test {self.selects.label} {self.selects.show(test)} at " if test is not None else ""
        return f"{seed}: {tested}epoch {median['best_epoch']}"

    def draw_sizes(self, results: StudyResults) -> Figure:
        """Draw scores and final sizes; panels of several tasks share a scale, which includes the paper's values."""
        measure, words = self.selects, {"dev": "Validation", "test": "Test"}
        fields = {f"{part}_{measure.name}": f"{words[part]} {measure.label}" for part in self.scores}
        values = [finite_value(run, field) or 0 for run in results.runs for field in fields]
        values += [results.paper_value(run["model"], run["task"], field) or 0 for run in results.runs for field in fields]
        scale = partial(figure_style.scale_measure, measure, min_span=0.0 if self.panel_per_task else 1.06 * max(values))
        panels = [
            Panel(title, textwrap.fill(measure.label, 15), field, results.models, tasks, scale)
            for field, title in fields.items()
            for tasks in ([[task] for task in results.tasks] if self.panel_per_task else [results.tasks])
        ]
        title = f"Results and final sizes on {results.subject}"
        return draw_final_values(results, title, [*panels, *self.size_panels(results)], "mean")

    def size_panels(self, results: StudyResults) -> list[Panel]:
        scale_nodes = partial(figure_style.scale_nodes, min_span=0.25)
        return size_panels(results, {"units (log scale)": figure_style.scale_units, "nodes": scale_nodes})


@dataclass(frozen=True)
class ImagePictures(LearningPictures):
    """A study of convolutional networks: their channels over the epochs, what they end as, error against live parameters."""

    kind = "images"
    stage_change = GATES_CLOSE

    published: tuple[tuple[str, float, float], ...] = ()  # others' networks: in words, parameters, test error

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Self:
        published = tuple((str(words), float(size), float(error)) for words, size, error in fields["published"])
        return super().from_json(fields | {"published": published})

    def required(self) -> Required:
        required = super().required()
        return required._replace(values=(*required.values, "n_parameters"), arrays=required.arrays | {"hard_cost": 1})

    def rows(self, results: StudyResults, model: str) -> list[Row]:
        errors = [row for row in super().rows(results, model) if row.measure is not None]
        channels, live = Row("channels per block\n(sum of gates)", []), Curve("hard_cost", INK, ring="best_epoch")
        return [*errors, channels, Row("live parameters", [live])]

    def size_panels(self, results: StudyResults) -> list[Panel]:
        scale = partial(figure_style.from_zero, min_span=1)
        return [Panel("Parameters of the network", "parameters", "n_parameters", results.models, results.tasks, scale)]

    def drawings(self, results: StudyResults) -> Drawings:
        drawings = super().drawings(results)
        if runs_with_structure(results):
            drawings["structures"] = draw_structures
        return drawings | {"parameters": partial(draw_error_by_parameters, measure=self.selects, published=self.published)}
