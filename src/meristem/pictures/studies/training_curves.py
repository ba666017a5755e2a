"""Training of one model: tasks side by side, quantities below one another, all against the epoch."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from meristem.pictures import figure_style
from meristem.pictures.figure_style import GREY, Axes, Figure, ScaleAxis, figure_grid, from_zero, integers_from_zero
from meristem.pictures.studies.study_results import Run, StudyResults, finite_value
from meristem.show.measures import Measure

PALE = "#BDBDBD"
RATE_SHRINKS, GATES_CLOSE = "learning rate shrinks", "gates begin to close, then stay closed"
MEDIAN = "seed with the median zero-error epoch"
RINGS = {"zero_error_epoch": "first epoch without error", "best_epoch": "kept model's size"}
LEGEND = [MEDIAN, "training", "validation", "best of its curve", "kept model's test figure", RINGS["best_epoch"], "other seeds"]
LEGEND += [RINGS["zero_error_epoch"], RATE_SHRINKS, GATES_CLOSE]
DOT: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 6, "markeredgecolor": "white", "markeredgewidth": 0.7}
ASTERISK: dict[str, Any] = {"linestyle": "", "marker": (6, 2, 0), "markersize": 9, "color": "black", "markeredgewidth": 1.3}


@dataclass(frozen=True)
class Curve:
    """An array of every run, summed over layers: that of the median run in color, those of other seeds pale behind it."""

    array: str
    color: Any
    label: str = "_"  # in the legend; "_": none
    pale: Any = PALE  # the color of other seeds; None: the median run alone
    ring: str = ""  # the value of a run that is the epoch of a ring
    style: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """One quantity; without parts, the soft sizes of the layers. Of a measure the best and the test values are marked."""

    label: str
    parts: list[Curve]
    scale: ScaleAxis = from_zero
    measure: Measure | None = None


def size_rows(results: StudyResults, model: str, color: Any, ring: str, scale_nodes: ScaleAxis = from_zero) -> list[Row]:
    soft_size = [Curve("layer_sizes", color, ring=ring)]
    if results.is_layered(model):
        return [Row("soft size per layer", []), Row("total soft size", soft_size)]
    # The median run alone: several step functions on top of one another could not be told apart.
    hard_size = [Curve("hard_size", color, pale=None, ring=ring, style={"drawstyle": "steps-post", "linewidth": 1.0})]
    return [Row("hard size (nodes)", hard_size, integers_from_zero), Row("soft size (nodes)", soft_size, scale_nodes)]


def draw_training(results: StudyResults, model: str) -> Figure:
    pictures, tasks = results.pictures, [task for task in results.tasks if results.runs_of(model, task)]
    groups, rows = [results.runs_of(model, task) for task in tasks], pictures.rows(results, model)
    sharing: dict[str, Any] = {"sharex": "col", "sharey": "row" if pictures.shares_scale else False}
    figure, axes = figure_grid(len(rows), len(tasks), cell=pictures.cell, **sharing)
    for column, task, runs in zip(axes.T, tasks, groups, strict=True):
        median = results.median_run(runs)
        column[0].set_title(results.task_label(task), pad=20)
        style = {"ha": "center", "va": "bottom", "fontsize": 8.5, "color": GREY}
        column[0].text(0.5, 1.03, pictures.heading(runs, median), transform=column[0].transAxes, **style)
        for ax, row in zip(column, rows, strict=True):
            _draw_row(ax, results, row, runs, median)
            figure_style.mark_changes(ax, results.series(median, "stage"), pictures.stage_change)
            ax.grid(axis="y")
        column[-1].set_xlabel("epoch")
        column[-1].xaxis.get_major_locator().set_params(integer=True)
    for row_axes, row in zip(axes, rows, strict=True):
        row_axes[0].set_ylabel(row.label)
        for ax in row_axes[:1] if pictures.shares_scale else row_axes:
            row.scale(ax)
        if not row.parts:
            layers = max(results.series(run, "layer_sizes").shape[1] for runs in groups for run in runs)
            figure_style.layer_colorbar(figure, layers, ax=row_axes.tolist(), aspect=14, pad=0.01)
    name, kind = figure_style.model_label(model), "network" if results.is_layered(model) else "perceptron"
    figure.suptitle(f"{name[:1].upper()}{name[1:]} {kind} on {results.subject}")
    _add_legend(figure, axes, pictures.legend_columns[min(len(tasks), len(pictures.legend_columns)) - 1])
    return figure


def _draw_row(ax: Axes, results: StudyResults, row: Row, runs: list[Run], median: Run) -> None:
    if not row.parts:
        figure_style.plot_layer_sizes(ax, results.series(median, "layer_sizes"))
    for curve in row.parts:
        others = [run for run in runs if run is not median and curve.pale is not None]
        behind = {"color": curve.pale, "linewidth": 0.8, "zorder": 1.5, "label": "other seeds"}
        ring = {"ring_at": median.get(curve.ring), "ring_label": RINGS.get(curve.ring, "_")}
        in_front = {"color": curve.color, "label": curve.label, **ring}
        for run in [*others, median]:
            values, style = results.series(run, curve.array), curve.style | (in_front if run is median else behind)
            figure_style.plot_curve(ax, values if values.ndim == 1 else values.sum(1), **style)
    if row.measure is not None:
        _mark_measure(ax, results, row.parts, row.measure, median)


def _mark_measure(ax: Axes, results: StudyResults, parts: list[Curve], measure: Measure, median: Run) -> None:
    """Mark the best value of each part and the test value; the much larger first epochs leave through the top."""
    later = []
    for curve in parts:
        values = results.series(median, curve.array)
        best = measure.best(values, prefer=median["best_epoch"] - 1 if curve.array.startswith("dev_") else 0)
        if best is not None:
            ax.plot(best + 1, values[best], color=curve.color, label="best of its curve", zorder=4, clip_on=False, **DOT)
        later.append(values[len(values) // 20 :])
    test = finite_value(median, f"test_{measure.name}")
    if test is not None:
        ax.plot(median["best_epoch"], test, label="kept model's test figure", zorder=5, clip_on=False, **ASTERISK)
    reached = np.concatenate(later)
    top = 1.1 * max(reached[np.isfinite(reached)].max(initial=0), test or 0)
    if measure.lower_is_better and top < 0.7 * ax.get_ylim()[1]:
        ax.set_ylim(top=top)


def _add_legend(figure: Figure, axes: Any, columns: int) -> None:
    """Add a legend of what is labeled in the axes; lines of several colors with the same label stand side by side."""
    from matplotlib.legend_handler import HandlerTuple

    lines: dict[str, dict[str, Any]] = {label: {} for label in LEGEND}  # label → color → line
    for ax in axes.ravel():
        for line, label in zip(*ax.get_legend_handles_labels(), strict=True):
            lines[label].setdefault(str(line.get_color()), line)
    handles = {label: tuple(colored.values()) for label, colored in lines.items() if colored}
    if handles:
        place = {"loc": "outside lower center", "ncols": columns, "handler_map": {tuple: HandlerTuple(ndivide=None, pad=0.4)}}
        figure.legend(list(handles.values()), list(handles), **place)
