"""Final values of all runs: a panel per value, tasks along the axis, models and seeds side by side, the paper's among them."""

import itertools
import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from meristem.pictures.figure_style import GREY, Axes, Figure, ScaleAxis, figure_grid, legend_below
from meristem.pictures.studies.study_results import Run, StudyResults, finite_value

MARKERS: dict[str, dict[str, Any]] = {
    "one seed": {"linestyle": "", "marker": "o", "markersize": 4.5, "markeredgewidth": 0},
    "never at zero error": {"linestyle": "", "marker": "x", "markersize": 4.5, "markeredgewidth": 1.2},
    "paper": {"linestyle": "", "marker": "D", "markersize": 6, "markerfacecolor": "none", "markeredgecolor": "black"},
}
AVERAGES: dict[str, Callable[[list[float]], float]] = {"mean": statistics.fmean, "median": statistics.median}
AVERAGE_LINE: dict[str, Any] = {"alpha": 0.5, "linewidth": 3}


@dataclass(frozen=True)
class Panel:
    """A value of every run."""

    title: str
    label: str
    field: str  # of a run, and among the paper's values
    models: list[str]
    tasks: list[str]
    scale: ScaleAxis
    never: float | None = None  # where runs without a value are drawn, and those above it; None: they are left out


def draw_final_values(results: StudyResults, title: str, panels: list[Panel], average: str, goal: str | None = None) -> Figure:
    """Draw all panels in a row, four of them two by two; runs without a value of the field `goal` have a mark of their own."""
    columns = 2 if len(panels) == 4 else len(panels)
    widths = [2.0 + 0.4 * len(panel.models) for panel in panels]
    figure, axes = figure_grid(len(panels) // columns, columns, cell=(3.4, 3.3), width_ratios=widths[:columns])
    for ax, panel in zip(axes.ravel(), panels, strict=True):
        _draw_panel(ax, results, panel, average, goal)
    figure.suptitle(title)
    markers = {_marker(run, goal) for run in results.runs}
    marks = {label: {"color": GREY, **style} for label, style in MARKERS.items() if label in markers}
    if any(len(results.runs_of(model, task)) > 1 for model in results.models for task in results.tasks):
        marks[average] = {"color": GREY, **AVERAGE_LINE}
    cells = [(model, task, panel.field) for panel in panels for model in panel.models for task in panel.tasks]
    if any(results.paper_value(*cell) is not None for cell in cells):
        marks["paper"] = MARKERS["paper"]
    legend_below(figure, results.colors, marks)
    return figure


def size_panels(results: StudyResults, scales: dict[str, ScaleAxis]) -> list[Panel]:
    """Return the panels of final sizes in units and in tree nodes; `scales`: the label and scale of each."""
    stacks = [model for model in results.models if results.is_layered(model)]
    trees = [model for model in results.models if model not in stacks]
    return [
        Panel(f"Final soft size, in {unit}", label, "soft_size", models, results.tasks, scale)
        for (unit, models), (label, scale) in zip([("units", stacks), ("tree nodes", trees)], scales.items(), strict=True)
        if models
    ]


def _draw_panel(ax: Axes, results: StudyResults, panel: Panel, average: str, goal: str | None) -> None:
    width, top = min(0.5, 0.76 / len(panel.models)), math.inf if panel.never is None else panel.never
    for (place, model), (position, task) in itertools.product(enumerate(panel.models), enumerate(panel.tasks)):
        center, color = position + width * (place - (len(panel.models) - 1) / 2), results.colors[model]
        runs = [(run, finite_value(run, panel.field)) for run in results.runs_of(model, task)]
        dots = [(run, math.inf if value is None else value) for run, value in runs if value is not None or panel.never]
        for seed, (run, value) in enumerate(dots):
            x = center + 0.55 * width * ((seed + 0.5) / len(dots) - 0.5)
            ax.plot(x, min(value, top), color=color, zorder=4, **MARKERS[_marker(run, goal)])
        if len(dots) > 1:
            ends, level = [center - 0.4 * width, center + 0.4 * width], AVERAGES[average]([value for _, value in dots])
            ax.plot(ends, [min(level, top)] * 2, color=color, solid_capstyle="butt", zorder=3, **AVERAGE_LINE)
        paper = results.paper_value(model, task, panel.field)
        if paper is not None:
            ax.plot(center, paper, **MARKERS["paper"], zorder=5)
    ax.set_xticks(range(len(panel.tasks)), [results.task_label(task) for task in panel.tasks])
    ax.set_xlim(-0.55, len(panel.tasks) - 0.45)
    ax.tick_params(axis="x", length=0)
    for border in range(1, len(panel.tasks)):
        ax.axvline(border - 0.5, color="#D9D9D9", linewidth=0.8, zorder=0.5)
    ax.grid(axis="y")
    panel.scale(ax)
    ax.set_title(panel.title)
    ax.set_ylabel(panel.label)


def _marker(run: Run, goal: str | None) -> str:
    return "never at zero error" if goal and run[goal] is None else "one seed"
