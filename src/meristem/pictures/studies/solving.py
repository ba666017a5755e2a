"""A study of tasks that can be solved: the epoch of zero training error is what counts, and a seed may never get there."""

import math
import statistics
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from meristem.pictures.axes import epochs_axis, whole_from_zero
from meristem.pictures.curves import CUT_LINE, ring
from meristem.pictures.sheet import OTHER, SEED_MARKER, UNSOLVED_MARKER, Axes, Figure
from meristem.pictures.studies.frontier import frontier
from meristem.pictures.studies.overview import Average, Mark, Panel, overview, size_panels
from meristem.pictures.studies.plane import data, discriminants
from meristem.pictures.studies.records import SIZES, Drawings, Required, Run, StudyFiles, StudyPictures
from meristem.pictures.studies.sizes import size_rows
from meristem.pictures.studies.training import Handles, Row, TrainingLayout, rate_changes, seeds, training
from meristem.pictures.studies.tried import tried
from meristem.show.measures import ERROR


@dataclass(frozen=True)
class SolvingPictures(StudyPictures):
    """The points in the plane, training of each model, what was learned, the overview, and what was tried."""

    kind: ClassVar[str] = "solving"

    is_planar: bool = True  # the data are points of two classes in the plane, and history.npz holds them

    def required(self) -> Required:
        return Required(
            values=("model", "task", "seed", "soft_size"),
            nulls=("zero_error_epoch",),
            arrays={"error": 1} | SIZES,
            points={"x": 2, "y": 1} if self.is_planar else {},
            tried=("model", "task", "sd", "chosen", "dev_error"),
        )

    def rank(self, run: Run) -> float:
        return zero_epoch(run)

    def drawings(self, files: StudyFiles) -> Drawings:
        drawings: Drawings = {"data": data} if self.is_planar else {}
        drawings |= {model: partial(training, model=model, layout=LAYOUT) for model in files.models}
        if self.is_planar and files.pictured:
            drawings["discriminants"] = discriminants
        drawings["sizes"] = _overview
        if files.settings:  # there is no validation part
            drawings["tried"] = partial(tried, measure=ERROR, part="training")
        if files.path:
            drawings["frontier"] = partial(frontier, measure=ERROR, part="train")
        return drawings


def solved(run: Run) -> bool:
    return run["zero_error_epoch"] is not None


def zero_epoch(run: Run) -> float:
    """Never is ∞."""
    return float(run["zero_error_epoch"]) if solved(run) else math.inf


def _rows(files: StudyFiles, model: str) -> list[Row]:
    style: dict[str, Any] = {"color": files.colors[model], "mark": "zero_error_epoch"}
    return [Row("error rate", partial(_error, **style)), *size_rows(files, model, **style)]


def _error(ax: Axes, files: StudyFiles, runs: list[Run], drawn: Run, **style: Any) -> None:
    seeds(ax, runs, drawn, lambda run: files.series(run, "error"), **style)


def _heading(runs: list[Run], drawn: Run) -> str:
    """Which seed is drawn, when it got to zero error, and how many seeds did."""
    epoch, done = drawn["zero_error_epoch"], sum(solved(run) for run in runs)
    text = f"seed {drawn['seed']}: " + ("never at zero error" if epoch is None else f"zero at epoch {epoch}")
    return text + (f"  ({done}/{len(runs)} solved)" if len(runs) > 1 else "")


def _handles(files: StudyFiles, groups: list[list[Run]]) -> Handles:
    """Names for the kinds of lines that are there."""
    from matplotlib.lines import Line2D

    drawn, handles = [files.middle(runs) for runs in groups], Handles()
    color = files.colors[drawn[0]["model"]]
    if any(len(runs) > 1 for runs in groups):
        handles["seed with the median zero-error epoch"] = Line2D([], [], color=color)
        handles["other seeds"] = Line2D([], [], color=OTHER, linewidth=1)
    if any(solved(run) for run in drawn):
        handles["first epoch without error"] = Line2D([], [], linestyle="", **ring(color))
    if any(rate_changes(files, run).size for run in drawn):
        handles["learning rate shrinks"] = Line2D([], [], **CUT_LINE)
    return handles


LAYOUT = TrainingLayout(_rows, _heading, _handles, cell=(2.9, 2.0), shared=True, legend_columns=(1, 2, 4))
MARKS = [Mark("one seed", SEED_MARKER, solved), Mark("never at zero error", UNSOLVED_MARKER)]


def _overview(files: StudyFiles) -> Figure:
    """Final sizes and epochs to zero error."""
    never = _never(files)
    axis = partial(epochs_axis, never=None if all(map(solved, files.runs)) else never)
    epochs = Panel("Epochs to zero error", "epoch", "zero_error_epoch", zero_epoch, files.models, files.tasks, axis, never)
    title = f"Final size and training time on {files.subject}"
    sizes = size_panels(files, {"units": whole_from_zero, "nodes": whole_from_zero})
    return overview(files, title, [*sizes, epochs], MARKS, Average("median", statistics.median))


def _never(files: StudyFiles) -> float:
    """The height at which "never" is drawn: well above the longest training, the paper's included."""
    paper = [files.paper_value(run["model"], run["task"], "zero_error_epoch") or 0 for run in files.runs]
    return 2.5 * max(*paper, *(len(files.series(run, "error")) for run in files.runs), 3)
