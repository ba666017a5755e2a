"""Training of one model: tasks side by side, quantities below one another, all against the epoch.

A `TrainingLayout` says what the rows, the headings and the legend are. Of several seeds the median run is drawn in color, the
others are pale behind it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from meristem.pictures.curves import (
    CUT_LINE,
    change_points,
    from_zero,
    integers_from_zero,
    layer_colorbar,
    plot_curve,
    plot_layer_sizes,
    ring,
)
from meristem.pictures.figure_style import GREY, OTHER, Axes, Figure, figure_grid, model_label
from meristem.pictures.studies.study_results import Run, StudyResults

Handles = dict[str, Any]  # a legend: label → line or mark, or several in a tuple
Series = Callable[[Run], np.ndarray]  # values of a run by epoch


@dataclass(frozen=True)
class Row:
    """One quantity."""

    label: str
    paint: Callable[[Axes, StudyResults, list[Run], Run], None]  # all seeds of a task, and the median run
    scale: Callable[[Axes], None] = from_zero  # sets the limits, once everything is painted
    has_layers: bool = False  # curves are colored by layer


@dataclass(frozen=True)
class TrainingLayout:
    """How a kind of study shows training."""

    rows: Callable[[StudyResults, str], list[Row]]  # of a model
    heading: Callable[[list[Run], Run], str]  # above a column: all seeds, and the median run
    handles: Callable[[StudyResults, list[list[Run]]], Handles]  # the legend of these columns
    cell: tuple[float, float]  # inches
    shares_scale: bool  # among the tasks
    legend_columns: tuple[int, ...]  # for one task, two, more


def draw_training(results: StudyResults, model: str, layout: TrainingLayout) -> Figure:
    tasks = [task for task in results.tasks if results.runs_of(model, task)]
    groups, rows = [results.runs_of(model, task) for task in tasks], layout.rows(results, model)
    sharing: dict[str, Any] = {"sharex": "col", "sharey": "row" if layout.shares_scale else False}
    figure, axes = figure_grid(len(rows), len(tasks), cell=layout.cell, **sharing)
    for column, task, runs in zip(axes.T, tasks, groups, strict=True):
        median = results.median_run(runs)
        column[0].set_title(results.task_label(task), pad=20)
        style = {"ha": "center", "va": "bottom", "fontsize": 8.5, "color": GREY}
        column[0].text(0.5, 1.03, layout.heading(runs, median), transform=column[0].transAxes, **style)
        for ax, row in zip(column, rows, strict=True):
            row.paint(ax, results, runs, median)
            for change in rate_changes(results, median):
                ax.axvline(change, zorder=1.8, **CUT_LINE)
            ax.grid(axis="y")
        column[-1].set_xlabel("epoch")
        column[-1].xaxis.get_major_locator().set_params(integer=True)
    for row_axes, row in zip(axes, rows, strict=True):
        row_axes[0].set_ylabel(row.label)
        for ax in row_axes[:1] if layout.shares_scale else row_axes:
            row.scale(ax)
        if row.has_layers:
            layers = max(results.series(run, "layer_sizes").shape[1] for runs in groups for run in runs)
            layer_colorbar(figure, layers, ax=row_axes.tolist(), aspect=14, pad=0.01)
    name = model_label(model)
    kind = "network" if results.is_layered(model) else "perceptron"
    figure.suptitle(f"{name[:1].upper()}{name[1:]} {kind} on {results.subject}")
    if handles := layout.handles(results, groups):
        from matplotlib.legend_handler import HandlerTuple

        columns = layout.legend_columns[min(len(tasks), len(layout.legend_columns)) - 1]
        side_by_side = {tuple: HandlerTuple(ndivide=None, pad=0.4)}
        place = {"loc": "outside lower center", "ncols": columns, "handler_map": side_by_side}
        figure.legend(list(handles.values()), list(handles), **place)
    return figure


def plot_seeds(ax: Axes, runs: list[Run], median: Run, series: Series, *, color: Any, mark: str, **options: Any) -> None:
    """Plot the median run in color, with a ring at the epoch that its value `mark` names, and the others in grey."""
    plot_other_seeds(ax, runs, median, series, **(options | {"color": OTHER, "linewidth": 0.8}))
    values, epoch = series(median), median[mark]
    plot_curve(ax, values, color=color, **options)
    if epoch and epoch <= len(values):
        ax.plot(epoch, values[epoch - 1], **ring(color), zorder=4, clip_on=False)


def plot_other_seeds(ax: Axes, runs: list[Run], median: Run, series: Series, **options: Any) -> None:
    for run in runs:
        if run is not median:
            plot_curve(ax, series(run), zorder=1.5, **options)


def rate_changes(results: StudyResults, run: Run) -> np.ndarray:
    """Return where the learning rate is lowered."""
    return change_points(results.series(run, "stage"))


def size_rows(
    results: StudyResults, model: str, *, color: Any, mark: str, scale_nodes: Callable[[Axes], None] = from_zero
) -> list[Row]:
    """Return the rows of a model's size, with a ring at the epoch that a run's `mark` names."""

    def soft_size(ax: Axes, results: StudyResults, runs: list[Run], median: Run) -> None:
        plot_seeds(ax, runs, median, lambda run: results.series(run, "layer_sizes").sum(1), color=color, mark=mark)

    def hard_size(ax: Axes, results: StudyResults, runs: list[Run], median: Run) -> None:
        # The median run alone: several step functions on top of one another could not be told apart.
        style = {"drawstyle": "steps-post", "linewidth": 1.0, "color": color, "mark": mark}
        plot_seeds(ax, [median], median, partial(results.series, field="hard_size"), **style)

    def layer_sizes(ax: Axes, results: StudyResults, runs: list[Run], median: Run) -> None:
        plot_layer_sizes(ax, results.series(median, "layer_sizes"))

    if results.is_layered(model):
        return [Row("soft size per layer", layer_sizes, has_layers=True), Row("total soft size", soft_size)]
    return [Row("hard size (nodes)", hard_size, integers_from_zero), Row("soft size (nodes)", soft_size, scale_nodes)]
