"""A study of tasks that can be solved: the epoch of zero training error is what counts, and a seed may never get there."""

import math
import statistics
from functools import partial
from typing import Any

from meristem.pictures.curves import CUT_LINE, cuts, ring, seeds
from meristem.pictures.studies.overview import Average, Mark, Panel, overview, size_panels, whole_sizes
from meristem.pictures.studies.plane import data, discriminants
from meristem.pictures.sheet import COLORS, GREY, OTHER, SEED_MARKER, UNSOLVED_MARKER, Axes, Figure
from meristem.pictures.studies.sizes import size_rows
from meristem.pictures.studies.study import Pictures, Run, Study
from meristem.pictures.studies.training import Handles, Look, Row, training


def solving_pictures(study: Study) -> Pictures:
    """The points in the plane, training of each model, what was learned, and the overview."""
    pictures: Pictures = {"data": data}
    pictures |= {model: partial(training, model=model, look=LOOK) for model in study.named}
    if study.pictured:
        pictures["discriminants"] = discriminants
    if study.named:
        pictures["sizes"] = _overview
    return pictures


def solved(run: Run) -> bool:
    return run["zero_error_epoch"] is not None


def zero_epoch(run: Run) -> float:
    """Never is ∞."""
    return float(run["zero_error_epoch"]) if solved(run) else math.inf


def _rows(model: str) -> list[Row]:
    look: dict[str, Any] = {"color": COLORS[model], "mark": "zero_error_epoch"}
    return [Row("error rate", partial(_error, **look)), *size_rows(model, **look)]


def _error(ax: Axes, study: Study, runs: list[Run], drawn: Run, **look: Any) -> None:
    seeds(ax, runs, drawn, lambda run: study.series(run, "error"), **look)


def _heading(runs: list[Run], drawn: Run) -> str:
    """Which seed is drawn, when it got to zero error, and how many seeds did."""
    epoch, done = drawn["zero_error_epoch"], sum(solved(run) for run in runs)
    text = f"seed {drawn['seed']}: " + ("never at zero error" if epoch is None else f"zero at epoch {epoch}")
    return text + (f"  ({done}/{len(runs)} solved)" if len(runs) > 1 else "")


def _handles(study: Study, groups: list[list[Run]]) -> Handles:
    """Names for the kinds of lines that are there."""
    from matplotlib.lines import Line2D

    drawn, handles = [study.middle(runs) for runs in groups], Handles()
    color = COLORS[drawn[0]["model"]]
    if any(len(runs) > 1 for runs in groups):
        handles["seed with the median zero-error epoch"] = Line2D([], [], color=color)
        handles["other seeds"] = Line2D([], [], color=OTHER, linewidth=1)
    if any(solved(run) for run in drawn):
        handles["first epoch without error"] = Line2D([], [], linestyle="", **ring(color))
    if any(cuts(study, run).size for run in drawn):
        handles["learning rate shrinks"] = Line2D([], [], **CUT_LINE)
    return handles


LOOK = Look(_rows, _heading, _handles, cell=(2.9, 2.0), shared=True, legend_columns=(1, 2, 4))
MARKS = [Mark("one seed", SEED_MARKER, solved), Mark("never at zero error", UNSOLVED_MARKER)]


def _overview(study: Study) -> Figure:
    """Final sizes and epochs to zero error."""
    never = _never(study)
    axis = partial(_epoch_axis, never=never, reached=any(run["model"] in study.named and not solved(run) for run in study.runs))
    epochs = Panel("Epochs to zero error", "epoch", "zero_error_epoch", zero_epoch, study.named, study.tasks, axis, never)
    title = f"Final size and training time on {study.subject}"
    return overview(
        study,
        title,
        [*size_panels(study, {"units": whole_sizes, "nodes": whole_sizes}), epochs],
        MARKS,
        Average("median", statistics.median),
    )


def _epoch_axis(ax: Axes, never: float, reached: bool) -> None:
    """A log axis, with a level of its own for seeds that never reach zero error."""
    from matplotlib.ticker import FixedLocator, NullLocator

    top = 1.6 * ax.get_ylim()[1]
    ticks = [10.0**power for power in range(10) if 10.0**power < min(top, 0.6 * never)]
    labels = [f"{tick:.0f}" for tick in ticks]
    if reached:
        ax.axhline(never, color=GREY, linewidth=0.8, linestyle=":", zorder=1)
        top, ticks, labels = 1.4 * never, [*ticks, never], [*labels, "never"]
    ax.set_yscale("log")
    ax.set_ylim(0.75, top)
    ax.yaxis.set_major_locator(FixedLocator(ticks))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_yticklabels(labels)


def _never(study: Study) -> float:
    """The height at which "never" is drawn: well above the longest training, the paper's included."""
    paper = [study.paper_value(run["model"], run["task"], "zero_error_epoch") or 0 for run in study.runs]
    return 2.5 * max(*paper, *(len(study.series(run, "error")) for run in study.runs))
