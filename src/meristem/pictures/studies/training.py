"""Training of one model: tasks side by side, quantities below one another, all against the epoch.

What the rows are, what stands above a column and in the legend is an experiment's `Look`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from meristem.pictures.curves import rate_cuts
from meristem.pictures.sheet import GREY, NAMES, Axes, Figure, from_zero, grid
from meristem.pictures.studies.study import Run, Study

Handles = dict[str, Any]  # a legend: name → line or mark, or several in a tuple


@dataclass(frozen=True)
class Row:
    """One quantity."""

    label: str
    paint: Callable[[Axes, Study, list[Run], Run], None]  # all seeds of a task, and the one that is drawn
    settle: Callable[[Axes], None] = from_zero  # the limits, once everything is painted
    legend: Callable[[Figure, Any, Study, list[Run]], None] | None = None  # beside the row's axes


@dataclass(frozen=True)
class Look:
    """How an experiment shows training."""

    rows: Callable[[str], list[Row]]  # of a model
    heading: Callable[[list[Run], Run], str]  # the line above a column: all seeds, and the one that is drawn
    handles: Callable[[Study, list[list[Run]]], Handles]  # the legend for these columns
    cell: tuple[float, float]  # inches
    shared: bool  # whether the tasks share a scale
    legend_columns: tuple[int, ...]  # for one task, for two, for more


def training(study: Study, model: str, look: Look) -> Figure:
    """Tasks side by side; below one another the measures and the sizes of the middle seed."""
    tasks = [task for task in study.tasks if study.of(model, task)]
    groups, rows = [study.of(model, task) for task in tasks], look.rows(model)
    figure, axes = grid(len(rows), len(tasks), cell=look.cell, sharex="col", sharey="row" if look.shared else False)
    for column, task, runs in zip(axes.T, tasks, groups, strict=True):
        drawn = study.middle(runs)
        _heading(column[0], study.label(task), look.heading(runs, drawn))
        for ax, row in zip(column, rows, strict=True):
            row.paint(ax, study, runs, drawn)
            rate_cuts(ax, study, drawn)
            ax.grid(axis="y")
        column[-1].set_xlabel("epoch")
        column[-1].xaxis.get_major_locator().set_params(integer=True)
    for line, row in zip(axes, rows, strict=True):
        line[0].set_ylabel(row.label)
        for ax in line[:1] if look.shared else line:
            row.settle(ax)
    for line, row in zip(axes, rows, strict=True):
        if row.legend:
            row.legend(figure, line, study, [run for runs in groups for run in runs])
    kind = "perceptron" if model == "budding" else "network"
    figure.suptitle(f"{NAMES[model].capitalize()} {kind} on {study.subject}")
    if handles := look.handles(study, groups):
        columns = look.legend_columns[min(len(tasks), len(look.legend_columns)) - 1]
        names, lines = list(handles), list(handles.values())
        figure.legend(lines, names, loc="outside lower center", ncols=columns, handler_map=_handlers())
    return figure


def _heading(ax: Axes, task: str, text: str) -> None:
    ax.set_title(task, pad=20)
    ax.text(0.5, 1.03, text, transform=ax.transAxes, ha="center", va="bottom", fontsize=8.5, color=GREY)


def _handlers() -> dict[type, Any]:
    """Several lines under one name stand beside one another."""
    from matplotlib.legend_handler import HandlerTuple

    return {tuple: HandlerTuple(ndivide=None, pad=0.4)}
