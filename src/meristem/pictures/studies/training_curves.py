"""Training of one model: tasks side by side, quantities below one another, all against the epoch.

`StudyPictures` says what the rows, the headings and the legend are. Of several seeds the median run is drawn in color, the
others are pale behind it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from meristem.pictures import curves
from meristem.pictures.figure_style import GREY, OTHER, Axes, Figure, figure_grid, model_label
from meristem.pictures.studies.study_results import Run, StudyResults

Handles = dict[str, Any]  # a legend: label → line or mark, or several in a tuple


@dataclass(frozen=True)
class Row:
    """One quantity."""

    label: str
    paint: Callable[[Axes, StudyResults, list[Run], Run], None]  # all seeds of a task, and the median run
    scale: Callable[[Axes], None] = curves.from_zero  # sets the limits, once everything is painted
    has_layers: bool = False  # curves are colored by layer


def draw_training(results: StudyResults, model: str) -> Figure:
    from matplotlib.legend_handler import HandlerTuple
    from matplotlib.lines import Line2D

    pictures, tasks = results.pictures, [task for task in results.tasks if results.runs_of(model, task)]
    groups, rows = [results.runs_of(model, task) for task in tasks], pictures.rows(results, model)
    medians = [results.median_run(runs) for runs in groups]
    sharing: dict[str, Any] = {"sharex": "col", "sharey": "row" if pictures.shares_scale else False}
    figure, axes = figure_grid(len(rows), len(tasks), cell=pictures.cell, **sharing)
    for column, task, runs, median in zip(axes.T, tasks, groups, medians, strict=True):
        column[0].set_title(results.task_label(task), pad=20)
        style = {"ha": "center", "va": "bottom", "fontsize": 8.5, "color": GREY}
        column[0].text(0.5, 1.03, pictures.heading(runs, median), transform=column[0].transAxes, **style)
        for ax, row in zip(column, rows, strict=True):
            row.paint(ax, results, runs, median)
            for change in results.rate_changes(median):
                ax.axvline(change, zorder=1.8, **curves.CUT_LINE)
            ax.grid(axis="y")
        column[-1].set_xlabel("epoch")
        column[-1].xaxis.get_major_locator().set_params(integer=True)
    for row_axes, row in zip(axes, rows, strict=True):
        row_axes[0].set_ylabel(row.label)
        for ax in row_axes[:1] if pictures.shares_scale else row_axes:
            row.scale(ax)
        if row.has_layers:
            layers = max(results.series(run, "layer_sizes").shape[1] for runs in groups for run in runs)
            curves.layer_colorbar(figure, layers, ax=row_axes.tolist(), aspect=14, pad=0.01)
    name, kind = model_label(model), "network" if results.is_layered(model) else "perceptron"
    figure.suptitle(f"{name[:1].upper()}{name[1:]} {kind} on {results.subject}")
    handles = pictures.handles(medians, results.colors[model], has_seeds=any(len(runs) > 1 for runs in groups))
    if any(results.rate_changes(run).size for run in medians):
        handles["learning rate shrinks"] = Line2D([], [], **curves.CUT_LINE)
    if handles:
        columns = pictures.legend_columns[min(len(tasks), len(pictures.legend_columns)) - 1]
        place = {"ncols": columns, "handler_map": {tuple: HandlerTuple(ndivide=None, pad=0.4)}}
        figure.legend(list(handles.values()), list(handles), loc="outside lower center", **place)
    return figure


def plot_seeds(
    ax: Axes, results: StudyResults, runs: list[Run], median: Run, *, field: str, color: Any, mark: str, **options: Any
) -> None:
    """Plot a field, summed over layers: the median run in color, with a ring at the epoch `mark` of it, the others in grey."""
    plot_other_seeds(ax, results, runs, median, field, **(options | {"color": OTHER, "linewidth": 0.8}))
    values, epoch = _totals(results.series(median, field)), median[mark]
    curves.plot_curve(ax, values, color=color, **options)
    if epoch and epoch <= len(values):
        ax.plot(epoch, values[epoch - 1], **curves.ring(color), zorder=4, clip_on=False)


def plot_other_seeds(ax: Axes, results: StudyResults, runs: list[Run], median: Run, field: str, **options: Any) -> None:
    for run in runs:
        if run is not median:
            curves.plot_curve(ax, _totals(results.series(run, field)), zorder=1.5, **options)


def _totals(values: np.ndarray) -> np.ndarray:
    return values if values.ndim == 1 else values.sum(1)


def size_rows(
    results: StudyResults, model: str, *, color: Any, mark: str, scale_nodes: Callable[[Axes], None] = curves.from_zero
) -> list[Row]:
    """Return the rows of a model's size, with a ring at the epoch that a run's `mark` names."""

    def layer_sizes(ax: Axes, results: StudyResults, runs: list[Run], median: Run) -> None:
        curves.plot_layer_sizes(ax, results.series(median, "layer_sizes"))

    def hard_size(ax: Axes, results: StudyResults, runs: list[Run], median: Run) -> None:
        # The median run alone: several step functions on top of one another could not be told apart.
        style = {"color": color, "mark": mark, "drawstyle": "steps-post", "linewidth": 1.0}
        plot_seeds(ax, results, [median], median, field="hard_size", **style)

    soft_size = partial(plot_seeds, field="layer_sizes", color=color, mark=mark)
    if results.is_layered(model):
        return [Row("soft size per layer", layer_sizes, has_layers=True), Row("total soft size", soft_size)]
    return [Row("hard size (nodes)", hard_size, curves.integers_from_zero), Row("soft size (nodes)", soft_size, scale_nodes)]
