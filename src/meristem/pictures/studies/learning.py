"""A study with training, validation and test parts: the model of the best validation epoch is kept and tested.

Curves and marks are the paper's: training red, validation blue, a dot at the best value of each, and an asterisk at the kept
model's epoch, at the height of its test figure. The other seeds are pale.
"""

import statistics
from functools import partial
from typing import Any

import numpy as np

from meristem.pictures.curves import CUT_LINE, cuts, line, others, ring
from meristem.pictures.studies.measures import Measure, value_of
from meristem.pictures.studies.overview import Average, Mark, Panel, Settle, overview, size_panels
from meristem.pictures.sheet import OTHER, SEED_MARKER, Axes, Figure, from_zero
from meristem.pictures.studies.sizes import size_rows
from meristem.pictures.studies.study import Pictures, Run, Study
from meristem.pictures.studies.training import Handles, Look, Row, training
from meristem.pictures.studies.tried import tried

PARTS = {"": ("training", "#CC3311", "#F2C9C0"), "dev_": ("validation", "#0072B2", "#BAD6E8")}  # prefix → name, color, pale
INK = "#333333"  # for sizes, which belong to neither part
DOT: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 6, "markeredgecolor": "white", "markeredgewidth": 0.7}
ASTERISK: dict[str, Any] = {"linestyle": "", "marker": (6, 2, 0), "markersize": 9, "color": "black", "markeredgewidth": 1.3}


def learning_pictures(study: Study, measures: list[Measure], scores: list[str], apart: bool) -> Pictures:
    """Training of each model, the overview, and what was tried. The last measure selects the model.

    `scores` are the figures that the overview shows, as "test"; `apart`, whether each task has a panel of its own there.
    """
    look = Look(
        rows=partial(_rows, measures),
        heading=partial(_heading, measures[-1]),
        handles=_handles,
        cell=(3.6, 2.0),
        shared=False,
        legend_columns=(2, 4),
    )
    pictures: Pictures = {model: partial(training, model=model, look=look) for model in study.named}
    if study.named:
        pictures["sizes"] = partial(_overview, measure=measures[-1], scores=scores, apart=apart)
    if any(one["model"] in study.named for one in study.tried):
        pictures["tried"] = partial(tried, measure=measures[-1])
    return pictures


def _rows(measures: list[Measure], model: str) -> list[Row]:
    curves = [Row(measure.label, partial(_curves, measure), measure.settle) for measure in measures]
    return [*curves, *size_rows(model, color=INK, mark="best_epoch", least_tree=1)]


def _curves(measure: Measure, ax: Axes, study: Study, runs: list[Run], drawn: Run) -> None:
    """Both parts' curves with their marks; the first epochs, far off, leave through the top."""
    later = []
    for prefix, (_, color, pale) in PARTS.items():
        others(ax, runs, drawn, partial(study.series, field=prefix + measure.name), color=pale, linewidth=0.8)
        values = study.series(drawn, prefix + measure.name)
        line(ax, values, color=color)
        best = measure.best(values, prefer=drawn["best_epoch"] - 1 if prefix else 0)
        if best is not None:
            ax.plot(best + 1, values[best], color=color, zorder=4, clip_on=False, **DOT)
        later.append(values[len(values) // 20 :])
    test = _test(measure, drawn)
    if test is not None:
        ax.plot(drawn["best_epoch"], test, zorder=5, clip_on=False, **ASTERISK)
    reached = np.concatenate(later)
    top = 1.1 * max(reached[np.isfinite(reached)].max(initial=0), test or 0)
    if measure.lower and top < 0.7 * ax.get_ylim()[1]:
        ax.set_ylim(top=top)


def _test(measure: Measure, run: Run) -> float | None:
    return value_of(run, f"test_{measure.name}") if run["best_epoch"] else None


def _heading(measure: Measure, runs: list[Run], drawn: Run) -> str:
    """Which seed is drawn, which of its epochs is kept, and how that does on the test part."""
    which = f"seed {drawn['seed']}" + (f" (median of {len(runs)})" if len(runs) > 1 else "")
    test, epoch = _test(measure, drawn), drawn["best_epoch"]
    told = f"test {measure.label} {measure.show(test)} at " if test is not None else ""
    return f"{which}: {told}epoch {epoch}" if epoch else f"{which}: no finite epoch"


def _handles(study: Study, groups: list[list[Run]]) -> Handles:
    """Names for the kinds of lines and marks that are there."""
    from matplotlib.lines import Line2D

    drawn = [study.middle(runs) for runs in groups]
    colors = [color for _, color, _ in PARTS.values()]
    handles: Handles = {name: Line2D([], [], color=color) for name, color, _ in PARTS.values()}
    handles["best of its curve"] = tuple(Line2D([], [], color=color, **DOT) for color in colors)
    if any(run["best_epoch"] for run in drawn):
        handles["kept model's test figure"] = Line2D([], [], **ASTERISK)
        handles["kept model's size"] = Line2D([], [], linestyle="", **ring(INK))
    if any(len(runs) > 1 for runs in groups):
        pale = [*(pale for _, _, pale in PARTS.values()), OTHER]
        handles["other seeds"] = tuple(Line2D([], [], color=color, linewidth=1) for color in pale)
    if any(cuts(study, run).size for run in drawn):
        handles["learning rate shrinks"] = Line2D([], [], **CUT_LINE)
    return handles


def _overview(study: Study, measure: Measure, scores: list[str], apart: bool) -> Figure:
    """Scores, then final sizes."""
    words = {"dev": "Validation", "test": "Test"}
    fields = {f"{part}_{measure.name}": f"{words[part]} {measure.label}" for part in scores}
    axis = measure.settle if apart else partial(measure.settle, least=1.06 * _largest(study, list(fields)))  # one scale for all
    panels = [
        Panel(title, measure.label, field, partial(value_of, field=field), study.named, tasks, axis)
        for field, title in fields.items()
        for tasks in ([[task] for task in study.tasks] if apart else [study.tasks])
    ]
    sizes: dict[str, Settle] = {"units (log scale)": _units_axis, "nodes": partial(from_zero, zero=1, least=0.25)}
    title = f"Results and final sizes on {study.subject}"
    marks, average = [Mark("one seed", SEED_MARKER)], Average("mean", statistics.fmean)
    return overview(study, title, [*panels, *size_panels(study, sizes)], marks, average)


def _largest(study: Study, fields: list[str]) -> float:
    ours = [value_of(run, field) or 0 for run in study.runs for field in fields]
    return max(ours + [study.paper_value(run["model"], run["task"], field) or 0 for run in study.runs for field in fields])


def _units_axis(ax: Axes) -> None:
    """Linear up to 1, then logarithmic: a tunnel may end with a hundredth of a highway's units, or with none."""
    from matplotlib.ticker import SymmetricalLogLocator

    ax.set_yscale("symlog", linthresh=1, linscale=0.5)
    ax.yaxis.set_minor_locator(SymmetricalLogLocator(base=10, linthresh=1, subs=range(2, 10)))
    ax.set_ylim(-0.05, 1.6 * max(2, ax.get_ylim()[1]))
    ax.yaxis.set_major_formatter("{x:g}")
