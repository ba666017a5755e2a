"""Figures of a study of solvable tasks: what counts is the first epoch of zero training error, which a seed may not reach."""

import math
import statistics
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from meristem.pictures.curves import CUT_LINE, integers_from_zero, ring, scale_epochs
from meristem.pictures.figure_style import OTHER, SEED_MARKER, UNSOLVED_MARKER, Axes, Figure
from meristem.pictures.studies.final_values import Average, Mark, Panel, draw_final_values, size_panels
from meristem.pictures.studies.path_figures import draw_penalty_path
from meristem.pictures.studies.planar_data import draw_data, draw_discriminants
from meristem.pictures.studies.settings_tried import draw_settings
from meristem.pictures.studies.study_results import SIZES, Drawings, Required, Run, StudyPictures, StudyResults
from meristem.pictures.studies.training_curves import (
    Handles,
    Row,
    TrainingLayout,
    draw_training,
    plot_seeds,
    rate_changes,
    size_rows,
)
from meristem.show.measures import ERROR


@dataclass(frozen=True)
class SolvingPictures(StudyPictures):
    """The data, the training of each model, decision boundaries, final values, tried settings and the penalty path."""

    kind: ClassVar[str] = "solving"

    is_planar: bool = True  # the data are points of two classes in the plane, which history.npz holds

    def required(self) -> Required:
        return Required(
            values=("model", "task", "seed", "soft_size"),
            nullable=("zero_error_epoch",),
            arrays={"error": 1} | SIZES,
            points={"x": 2, "y": 1} if self.is_planar else {},
            tried=("model", "task", "sd", "chosen", "dev_error"),
        )

    def rank(self, run: Run) -> float:
        return _zero_error_epoch(run)

    def drawings(self, results: StudyResults) -> Drawings:
        drawings: Drawings = {"data": draw_data} if self.is_planar else {}
        drawings |= {model: partial(draw_training, model=model, layout=LAYOUT) for model in results.models}
        if self.is_planar and results.models_with_discriminant:
            drawings["discriminants"] = draw_discriminants
        drawings["sizes"] = _draw_sizes
        if results.settings:  # there is no validation part
            drawings["tried"] = partial(draw_settings, measure=ERROR, part="training")
        if results.path:
            drawings["frontier"] = partial(draw_penalty_path, measure=ERROR, part="train")
        return drawings


def _is_solved(run: Run) -> bool:
    return run["zero_error_epoch"] is not None


def _zero_error_epoch(run: Run) -> float:
    return float(run["zero_error_epoch"]) if _is_solved(run) else math.inf


def _rows(results: StudyResults, model: str) -> list[Row]:
    style: dict[str, Any] = {"color": results.colors[model], "mark": "zero_error_epoch"}

    def error(ax: Axes, results: StudyResults, runs: list[Run], median: Run) -> None:
        plot_seeds(ax, runs, median, partial(results.series, field="error"), **style)

    return [Row("error rate", error), *size_rows(results, model, **style)]


def _heading(runs: list[Run], median: Run) -> str:
    epoch, solved = median["zero_error_epoch"], sum(_is_solved(run) for run in runs)
    text = f"seed {median['seed']}: " + ("never at zero error" if epoch is None else f"zero at epoch {epoch}")
    return text + (f"  ({solved}/{len(runs)} solved)" if len(runs) > 1 else "")


def _handles(results: StudyResults, groups: list[list[Run]]) -> Handles:
    from matplotlib.lines import Line2D

    medians, handles = [results.median_run(runs) for runs in groups], Handles()
    color = results.colors[medians[0]["model"]]
    if any(len(runs) > 1 for runs in groups):
        handles["seed with the median zero-error epoch"] = Line2D([], [], color=color)
        handles["other seeds"] = Line2D([], [], color=OTHER, linewidth=1)
    if any(_is_solved(run) for run in medians):
        handles["first epoch without error"] = Line2D([], [], linestyle="", **ring(color))
    if any(rate_changes(results, run).size for run in medians):
        handles["learning rate shrinks"] = Line2D([], [], **CUT_LINE)
    return handles


LAYOUT = TrainingLayout(_rows, _heading, _handles, cell=(2.9, 2.0), shares_scale=True, legend_columns=(1, 2, 4))


def _draw_sizes(results: StudyResults) -> Figure:
    """Draw final sizes and epochs to zero error, with "never" well above the longest training, the paper's included."""
    models, tasks = results.models, results.tasks
    paper = [results.paper_value(model, task, "zero_error_epoch") or 0 for model in models for task in tasks]
    never = 2.5 * max(*paper, *(len(results.series(run, "error")) for run in results.runs), 3)
    scale = partial(scale_epochs, never=None if all(map(_is_solved, results.runs)) else never)
    epochs = Panel("Epochs to zero error", "epoch", "zero_error_epoch", _zero_error_epoch, models, tasks, scale, never)
    sizes = size_panels(results, {"units": integers_from_zero, "nodes": integers_from_zero})
    title = f"Final size and training time on {results.subject}"
    marks = [Mark("one seed", SEED_MARKER, _is_solved), Mark("never at zero error", UNSOLVED_MARKER)]
    return draw_final_values(results, title, [*sizes, epochs], marks, Average("median", statistics.median))
