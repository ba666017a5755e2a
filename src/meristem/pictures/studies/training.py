"""Training of one model: tasks side by side, quantities below one another, all against the epoch.

What the rows are, what stands above a column and in the legend is in a `TrainingLayout`. Of several seeds the middle one is
drawn in color, the others are pale behind it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from meristem.pictures.axes import from_zero
from meristem.pictures.curves import CUT_LINE, changes, line, ring
from meristem.pictures.sheet import GREY, OTHER, Axes, Figure, grid, name_of
from meristem.pictures.studies.records import Run, StudyFiles

Handles = dict[str, Any]  # a legend: name → line or mark, or several in a tuple
Values = Callable[[Run], np.ndarray]  # of a run, by epoch


@dataclass(frozen=True)
class Row:
    """One quantity."""

    label: str
    paint: Callable[[Axes, StudyFiles, list[Run], Run], None]  # all seeds of a task, and the one that is drawn
    settle: Callable[[Axes], None] = from_zero  # the limits, once everything is painted
    legend: Callable[[Figure, Any, StudyFiles, list[Run]], None] | None = None  # beside the row's axes


@dataclass(frozen=True)
class TrainingLayout:
    """How a kind of study shows training."""

    rows: Callable[[StudyFiles, str], list[Row]]  # of a model
    heading: Callable[[list[Run], Run], str]  # the line above a column: all seeds, and the one that is drawn
    handles: Callable[[StudyFiles, list[list[Run]]], Handles]  # the legend for these columns
    cell: tuple[float, float]  # inches
    shared: bool  # whether the tasks share a scale
    legend_columns: tuple[int, ...]  # for one task, for two, for more


def training(files: StudyFiles, model: str, layout: TrainingLayout) -> Figure:
    """Tasks side by side; below one another the measures and the sizes of the middle seed."""
    tasks = [task for task in files.tasks if files.of(model, task)]
    groups, rows = [files.of(model, task) for task in tasks], layout.rows(files, model)
    figure, axes = grid(len(rows), len(tasks), cell=layout.cell, sharex="col", sharey="row" if layout.shared else False)
    for column, task, runs in zip(axes.T, tasks, groups, strict=True):
        drawn = files.middle(runs)
        _heading(column[0], files.label(task), layout.heading(runs, drawn))
        for ax, row in zip(column, rows, strict=True):
            row.paint(ax, files, runs, drawn)
            for change in rate_changes(files, drawn):
                ax.axvline(change, zorder=1.8, **CUT_LINE)
            ax.grid(axis="y")
        column[-1].set_xlabel("epoch")
        column[-1].xaxis.get_major_locator().set_params(integer=True)
    for across, row in zip(axes, rows, strict=True):
        across[0].set_ylabel(row.label)
        for ax in across[:1] if layout.shared else across:
            row.settle(ax)
    for across, row in zip(axes, rows, strict=True):
        if row.legend:
            row.legend(figure, across, files, [run for runs in groups for run in runs])
    kind = "network" if files.is_layered(model) else "perceptron"
    name = name_of(model)
    figure.suptitle(f"{name[:1].upper()}{name[1:]} {kind} on {files.subject}")
    if handles := layout.handles(files, groups):
        columns = layout.legend_columns[min(len(tasks), len(layout.legend_columns)) - 1]
        names, lines = list(handles), list(handles.values())
        figure.legend(lines, names, loc="outside lower center", ncols=columns, handler_map=_handlers())
    return figure


def seeds(ax: Axes, runs: list[Run], drawn: Run, values: Values, *, color: Any, mark: str, **options: Any) -> None:
    """The drawn seed in color, a ring at the epoch that the run's `mark` names; the others behind it in grey."""
    others(ax, runs, drawn, values, **(options | {"color": OTHER, "linewidth": 0.8}))
    shown = values(drawn)
    line(ax, shown, color=color, **options)
    epoch = drawn[mark]
    if epoch and epoch <= len(shown):
        ax.plot(epoch, shown[epoch - 1], **ring(color), zorder=4, clip_on=False)


def others(ax: Axes, runs: list[Run], drawn: Run, values: Values, **options: Any) -> None:
    """All seeds but the drawn one, behind it."""
    for run in runs:
        if run is not drawn:
            line(ax, values(run), zorder=1.5, **options)


def rate_changes(files: StudyFiles, run: Run) -> np.ndarray:
    """Between which epochs the rate shrinks."""
    return changes(files.series(run, "stage"))


def _heading(ax: Axes, task: str, text: str) -> None:
    ax.set_title(task, pad=20)
    ax.text(0.5, 1.03, text, transform=ax.transAxes, ha="center", va="bottom", fontsize=8.5, color=GREY)


def _handlers() -> dict[type, Any]:
    """Several lines under one name stand beside one another."""
    from matplotlib.legend_handler import HandlerTuple

    return {tuple: HandlerTuple(ndivide=None, pad=0.4)}
