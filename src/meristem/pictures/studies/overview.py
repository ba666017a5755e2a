"""The overview: panels of final figures, all seeds and models of a task beside one another, and the paper's among them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from meristem.pictures.sheet import GREY, PAPER_MARKER, Axes, Figure, grid, legend_below
from meristem.pictures.studies.records import Run, StudyFiles

Settle = Callable[[Axes], None]  # an axis, once everything is painted


@dataclass(frozen=True)
class Panel:
    """One figure of every run; `value` is None where a run has none, and what is above `ceiling` is drawn there."""

    title: str
    label: str
    field: str  # what the paper's values call it
    value: Callable[[Run], float | None]
    models: list[str]
    tasks: list[str]
    settle: Settle
    ceiling: float = float("inf")


@dataclass(frozen=True)
class Mark:
    """A kind of dot."""

    label: str
    marker: dict[str, Any]
    fits: Callable[[Run], bool] = lambda run: True  # the first that fits is a run's


@dataclass(frozen=True)
class Average:
    """The bar among the dots."""

    label: str
    of: Callable[[Sequence[float]], float]


def overview(files: StudyFiles, title: str, panels: list[Panel], marks: list[Mark], average: Average) -> Figure:
    """All panels in a row; four of them two by two."""
    columns = 2 if len(panels) == 4 else len(panels)
    widths = [2.0 + 0.4 * len(panel.models) for panel in panels]
    figure, axes = grid(len(panels) // columns, columns, cell=(3.4, 3.3), width_ratios=widths[:columns])
    for ax, panel in zip(axes.ravel(), panels, strict=True):
        _panel(ax, files, panel, marks, average)
        ax.set_title(panel.title)
        ax.set_ylabel(panel.label)
    figure.suptitle(title)
    _legend(figure, files, panels, marks, average)
    return figure


def size_panels(files: StudyFiles, axes: dict[str, Settle]) -> list[Panel]:
    """Final sizes; units and tree nodes are different things: a panel each. `axes` are their labels and scales."""
    stacks = [model for model in files.models if files.is_layered(model)]
    trees = [model for model in files.models if model not in stacks]
    return [
        Panel(f"Final soft size, in {name}", label, "soft_size", lambda run: run["soft_size"], models, files.tasks, settle)
        for (name, models), (label, settle) in zip([("units", stacks), ("tree nodes", trees)], axes.items(), strict=True)
        if models
    ]


def _panel(ax: Axes, files: StudyFiles, panel: Panel, marks: list[Mark], average: Average) -> None:
    """Tasks along the axis, the models of a task beside one another."""
    width = min(0.5, 0.76 / len(panel.models))
    for place, model in enumerate(panel.models):
        for position, task in enumerate(panel.tasks):
            center = position + width * (place - (len(panel.models) - 1) / 2)
            _dots(ax, panel, files.of(model, task), marks, average, center, width, files.colors[model])
            paper = files.paper_value(model, task, panel.field)
            if paper is not None:
                ax.plot(center, paper, **PAPER_MARKER, zorder=5)
    ax.set_xticks(range(len(panel.tasks)), [files.label(task) for task in panel.tasks])
    ax.set_xlim(-0.55, len(panel.tasks) - 0.45)
    ax.tick_params(axis="x", length=0)
    for border in range(1, len(panel.tasks)):
        ax.axvline(border - 0.5, color="#D9D9D9", linewidth=0.8, zorder=0.5)
    ax.grid(axis="y")
    panel.settle(ax)


def _dots(
    ax: Axes, panel: Panel, runs: list[Run], marks: list[Mark], average: Average, center: float, width: float, color: Any
) -> None:
    """All seeds as dots, their average as a bar."""
    valued = [(run, value) for run in runs if (value := panel.value(run)) is not None]
    for place, (run, value) in enumerate(valued):
        at = center + 0.55 * width * ((place + 0.5) / len(valued) - 0.5)
        ax.plot(at, min(value, panel.ceiling), color=color, zorder=4, **_mark(run, marks).marker)
    if len(valued) > 1:
        ends = [center - 0.4 * width, center + 0.4 * width]
        level = min(average.of([value for _, value in valued]), panel.ceiling)
        ax.plot(ends, [level, level], color=color, alpha=0.5, linewidth=3, solid_capstyle="butt", zorder=3)


def _mark(run: Run, marks: list[Mark]) -> Mark:
    return next(mark for mark in marks if mark.fits(run))


def _legend(figure: Figure, files: StudyFiles, panels: list[Panel], marks: list[Mark], average: Average) -> None:
    """Names for the colors and for the kinds of marks that are there."""
    from matplotlib.lines import Line2D

    groups = [files.of(model, task) for model in files.models for task in files.tasks]
    there = [_mark(run, marks) for runs in groups for run in runs]
    cells = [(model, task, panel.field) for panel in panels for model in panel.models for task in panel.tasks]
    handles = [Line2D([], [], color=GREY, label=mark.label, **mark.marker) for mark in marks if mark in there]
    if any(len(runs) > 1 for runs in groups):
        handles.append(Line2D([], [], color=GREY, alpha=0.5, linewidth=3, label=average.label))
    if any(files.paper_value(*cell) is not None for cell in cells):
        handles.append(Line2D([], [], label="paper", **PAPER_MARKER))
    legend_below(figure, {model: files.colors[model] for model in files.models}, handles)
