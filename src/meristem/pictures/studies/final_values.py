"""Final values of all runs: a panel per value, tasks along the axis, models and seeds side by side, the paper's among them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from meristem.pictures.figure_style import GREY, PAPER_MARKER, Axes, Figure, figure_grid, legend_below
from meristem.pictures.studies.study_results import Run, StudyResults

ScaleAxis = Callable[[Axes], None]  # sets the limits of an axis, once everything is painted
AVERAGE_LINE: dict[str, Any] = {"alpha": 0.5, "linewidth": 3}


@dataclass(frozen=True)
class Panel:
    """A value of every run."""

    title: str
    label: str
    field: str  # its name among the paper's values
    value: Callable[[Run], float | None]
    models: list[str]
    tasks: list[str]
    scale: ScaleAxis
    ceiling: float = float("inf")  # values above it are drawn there


@dataclass(frozen=True)
class Mark:
    """A kind of dot."""

    label: str
    marker: dict[str, Any]
    applies: Callable[[Run], bool] = lambda run: True  # a run has the first mark that applies


@dataclass(frozen=True)
class Average:
    """The bar among the dots."""

    label: str
    of: Callable[[Sequence[float]], float]


def draw_final_values(results: StudyResults, title: str, panels: list[Panel], marks: list[Mark], average: Average) -> Figure:
    """Draw all panels in a row; four of them two by two."""
    columns = 2 if len(panels) == 4 else len(panels)
    widths = [2.0 + 0.4 * len(panel.models) for panel in panels]
    figure, axes = figure_grid(len(panels) // columns, columns, cell=(3.4, 3.3), width_ratios=widths[:columns])
    for ax, panel in zip(axes.ravel(), panels, strict=True):
        _draw_panel(ax, results, panel, marks, average)
    figure.suptitle(title)
    _add_legend(figure, results, panels, marks, average)
    return figure


def size_panels(results: StudyResults, scales: dict[str, ScaleAxis]) -> list[Panel]:
    """Return the panels of final sizes in units and in tree nodes; `scales`: the label and scale of each."""
    stacks = [model for model in results.models if results.is_layered(model)]
    trees = [model for model in results.models if model not in stacks]
    return [
        Panel(f"Final soft size, in {unit}", label, "soft_size", lambda run: run["soft_size"], models, results.tasks, scale)
        for (unit, models), (label, scale) in zip([("units", stacks), ("tree nodes", trees)], scales.items(), strict=True)
        if models
    ]


def _draw_panel(ax: Axes, results: StudyResults, panel: Panel, marks: list[Mark], average: Average) -> None:
    width = min(0.5, 0.76 / len(panel.models))
    for place, model in enumerate(panel.models):
        for position, task in enumerate(panel.tasks):
            center = position + width * (place - (len(panel.models) - 1) / 2)
            _draw_runs(ax, panel, results.runs_of(model, task), marks, average, center, width, results.colors[model])
            paper = results.paper_value(model, task, panel.field)
            if paper is not None:
                ax.plot(center, paper, **PAPER_MARKER, zorder=5)
    ax.set_xticks(range(len(panel.tasks)), [results.task_label(task) for task in panel.tasks])
    ax.set_xlim(-0.55, len(panel.tasks) - 0.45)
    ax.tick_params(axis="x", length=0)
    for border in range(1, len(panel.tasks)):
        ax.axvline(border - 0.5, color="#D9D9D9", linewidth=0.8, zorder=0.5)
    ax.grid(axis="y")
    panel.scale(ax)
    ax.set_title(panel.title)
    ax.set_ylabel(panel.label)


def _draw_runs(
    ax: Axes, panel: Panel, runs: list[Run], marks: list[Mark], average: Average, center: float, width: float, color: Any
) -> None:
    """Draw the runs of a model on a task as dots, and their average as a bar."""
    valued = [(run, value) for run in runs if (value := panel.value(run)) is not None]
    for place, (run, value) in enumerate(valued):
        x = center + 0.55 * width * ((place + 0.5) / len(valued) - 0.5)
        ax.plot(x, min(value, panel.ceiling), color=color, zorder=4, **_mark(run, marks).marker)
    if len(valued) > 1:
        ends = [center - 0.4 * width, center + 0.4 * width]
        level = min(average.of([value for _, value in valued]), panel.ceiling)
        ax.plot(ends, [level, level], color=color, solid_capstyle="butt", zorder=3, **AVERAGE_LINE)


def _mark(run: Run, marks: list[Mark]) -> Mark:
    return next(mark for mark in marks if mark.applies(run))


def _add_legend(figure: Figure, results: StudyResults, panels: list[Panel], marks: list[Mark], average: Average) -> None:
    from matplotlib.lines import Line2D

    used = [_mark(run, marks) for run in results.runs]
    cells = [(model, task, panel.field) for panel in panels for model in panel.models for task in panel.tasks]
    handles = [Line2D([], [], color=GREY, label=mark.label, **mark.marker) for mark in marks if mark in used]
    if any(len(results.runs_of(model, task)) > 1 for model in results.models for task in results.tasks):
        handles.append(Line2D([], [], color=GREY, label=average.label, **AVERAGE_LINE))
    if any(results.paper_value(*cell) is not None for cell in cells):
        handles.append(Line2D([], [], label="paper", **PAPER_MARKER))
    legend_below(figure, results.colors, handles)
