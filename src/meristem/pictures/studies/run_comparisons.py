"""Runs compared: final values, a panel each, tasks along the axis, models and seeds side by side, the paper's among them;
what the models reached with each setting that a study tried; and error against size along a path of penalties.
"""

import itertools
import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from meristem.pictures import figure_style
from meristem.pictures.figure_style import GREY, INK, Axes, Figure, ScaleAxis, figure_grid, legend_below, model_label
from meristem.pictures.frontier_plot import non_dominated
from meristem.pictures.studies.study_results import Run, StudyResults, finite_value
from meristem.show.describe import describe_settings
from meristem.show.measures import Measure

MARKERS: dict[str, dict[str, Any]] = {
    "one seed": {"linestyle": "", "marker": "o", "markersize": 4.5, "markeredgewidth": 0},
    "never at zero error": {"linestyle": "", "marker": "x", "markersize": 4.5, "markeredgewidth": 1.2},
    "paper": {"linestyle": "", "marker": "D", "markersize": 6, "markerfacecolor": "none", "markeredgecolor": "black"},
}
AVERAGES: dict[str, Callable[[list[float]], float]] = {"mean": statistics.fmean, "median": statistics.median}
AVERAGE_LINE: dict[str, Any] = {"alpha": 0.5, "linewidth": 3}
DOT: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 5.5, "markeredgewidth": 1.3}
PATH_DOTS: dict[str, Any] = {"s": 30, "cmap": "viridis", "edgecolor": "white", "linewidth": 0.6, "zorder": 3, "clip_on": False}
ROW_HEIGHT, FRAME = 0.24, 0.75  # inches
PLOT_WIDTH, COLUMN_WIDTH, MIN_COLUMNS_WIDTH = 6.4, 0.85, 1.0  # inches: the dots, a column of sizes, all of these
Rows = dict[str, list[Run]]  # a setting in words → the models tried at it


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


def draw_settings(results: StudyResults, measure: Measure, part: str) -> Figure:
    """Draw a panel for each task, one below the other, with a row per setting.

    A dot is the mean over seeds of the measure that selects, the line through it one standard deviation to either side; the
    dot of the selected setting is filled. Columns beside it list the mean soft sizes, bold at the selected settings.
    """
    # In words for what was varied for a model: a highway has no penalty.
    panels, all_best = dict[str, Rows](), True
    for task in results.tasks:
        for model in dict.fromkeys(setting["model"] for setting in results.settings):
            group = [setting for setting in results.settings if (setting["model"], setting["task"]) == (model, task)]
            best = measure.best(np.array([finite_value(setting, f"dev_{measure.name}") for setting in group], float))
            if best is not None and any(place != best for place, setting in enumerate(group) if setting["chosen"]):
                all_best = False  # a smaller network was kept
            for words, setting in zip(describe_settings(group), group, strict=True):
                panels.setdefault(task, {}).setdefault(words, []).append(setting)
    models = [model for model in results.models if any(setting["model"] == model for setting in results.settings)]
    has_sizes = any(finite_value(setting, "soft_size") is not None for setting in results.settings)  # early files have none
    heights = [FRAME + ROW_HEIGHT * len(rows) for rows in panels.values()]
    widths = [PLOT_WIDTH, max(MIN_COLUMNS_WIDTH, COLUMN_WIDTH * len(models))] if has_sizes else [PLOT_WIDTH]
    cell = sum(widths) / len(widths), sum(heights) / len(panels)
    figure, axes = figure_grid(len(panels), len(widths), cell=cell, height_ratios=heights, width_ratios=widths)
    for row_axes, (task, rows) in zip(axes, panels.items(), strict=True):
        _draw_dots(row_axes[0], rows, measure, results.colors)
        row_axes[0].set_title(results.task_label(task))
        if has_sizes:
            _write_sizes(row_axes[1], results, rows, models)
        for ax in row_axes:
            ax.set_ylim(len(rows) - 0.4, -0.6)
            for border in range(1, len(rows)):
                ax.axhline(border - 0.5, color="#E6E6E6", linewidth=0.8, zorder=0.5)
    axes[-1, 0].set_xlabel(f"{part} {measure.label}")
    figure.suptitle(f"Settings tried on {results.subject}")
    tried = {"tried: mean over seeds, ± sd": {"color": GREY, "markerfacecolor": "white", **DOT}}
    selected = {"kept: the best" if all_best else "kept: the smallest of the best": {"color": GREY, **DOT}}
    legend_below(figure, {model: results.colors[model] for model in models}, tried | selected)
    return figure


def _draw_dots(ax: Axes, rows: Rows, measure: Measure, colors: dict[str, Any]) -> None:
    values = []
    for place, settings in enumerate(rows.values()):
        for k, setting in enumerate(settings):
            value, color = finite_value(setting, f"dev_{measure.name}"), colors[setting["model"]]
            if value is None:
                continue
            values.append(value)
            y = place + 0.2 * (k - (len(settings) - 1) / 2)  # models of a row are drawn above one another
            sd = setting["sd"] or 0
            ax.plot([value - sd, value + sd], [y, y], color=color, alpha=0.5, linewidth=2, solid_capstyle="butt")
            ax.plot(value, y, color=color, markerfacecolor=color if setting["chosen"] else "white", zorder=4, **DOT)
    ax.set_yticks(range(len(rows)), list(rows))
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x")
    if ax.get_xlim()[0] < 0 <= min(values, default=0):  # no room below 0 for a measure that is never negative
        top = max(measure.least_span, 1.05 * ax.dataLim.xmax)
        ax.set_xlim(-0.025 * top, top)
    figure_style.format_measure(measure, ax.xaxis)


def _write_sizes(ax: Axes, results: StudyResults, rows: Rows, models: list[str]) -> None:
    """Write the mean soft size of each setting, in units or tree nodes, in a column for each model."""
    ax.set(xlim=(-0.5, len(models) - 0.5), xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    heads = [[*model_label(model).split(), "(units)" if results.is_layered(model) else "(nodes)"] for model in models]
    title = "mean soft size" if len(models) > 1 else "mean\nsoft size"
    ax.set_title(title, fontsize=9, color=GREY, pad=8 + 10 * max(map(len, heads)))
    above: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": "bottom", "fontsize": 8}
    for column, (model, words) in enumerate(zip(models, heads, strict=True)):
        color, digits = results.colors[model], 1 if results.is_layered(model) else 2
        ax.annotate("\n".join(words), (column, -0.6), (0, 3), color=color, **above)
        for place, settings in enumerate(rows.values()):
            for setting in settings:
                if setting["model"] == model and (size := finite_value(setting, "soft_size")) is not None:
                    style = {"weight": "bold" if setting["chosen"] else "normal", "color": color, "fontsize": 9}
                    ax.text(column, place, f"{size:.{digits}f}", ha="center", va="center", **style)


def draw_penalty_path(results: StudyResults, measure: Measure, part: str) -> Figure:
    """Draw error against size in a part, "test" or "train": a row for each task, a column for each model, a dot per run."""
    models = [model for model in results.models if any(run["model"] == model for run in results.path)]
    positive, field = [run["penalty"] for run in results.path if run["penalty"] > 0], f"{part}_{measure.name}"
    shades = {"norm": "log", "vmin": min(positive), "vmax": max(positive)} if len(set(positive)) > 1 else {}
    figure, axes = figure_grid(len(results.tasks), len(models), cell=(4.2, 3.0))
    for ax, (task, model) in zip(axes.ravel(), itertools.product(results.tasks, models), strict=True):
        runs = [run for run in results.path if (run["model"], run["task"]) == (model, task)]
        errors = [finite_value(run, field) for run in runs]
        valued = [(run["n_parameters"], y, run["penalty"]) for run, y in zip(runs, errors, strict=True) if y is not None]
        x, y, penalties = np.array(valued, float).reshape(-1, 3).T
        frontier = non_dominated(x, y)
        ax.plot(x[frontier], y[frontier], color=INK, linewidth=1.2, zorder=2)
        ax.set(title=f"{model_label(model)}, {results.task_label(task)}", xscale="log")
        ax.grid(axis="y")
        dots = ax.scatter(x, y, c=np.maximum(penalties, 1e-300), **shades, **PATH_DOTS)
        error, size, epoch = (results.paper_value(model, task, name) for name in (field, "soft_size", "zero_error_epoch"))
        if error is None and epoch is not None:
            error = 0.0
        if error is not None:
            words = f"the paper: {measure.show(error)}" + (f", soft size {size:g}" if size is not None else "")
            ax.axhline(error, color=GREY, linestyle=(0, (4, 3)), linewidth=1, zorder=1)
            ax.text(0.98, 0.97, words, transform=ax.transAxes, ha="right", va="top", color=GREY, fontsize=9)
        figure_style.scale_measure(measure, ax)
        ax.xaxis.set_major_formatter("{x:,.0f}")
        ax.xaxis.set_minor_formatter("")
    for ax in axes[-1]:
        ax.set_xlabel("parameters")
    for ax in axes[:, 0]:
        ax.set_ylabel(f"{'test' if part == 'test' else 'training'} {measure.label}")
    if shades:
        figure.colorbar(dots, ax=axes, label="penalty", shrink=0.8)
    figure.suptitle(f"Error and size along the penalty on {results.subject}")
    return figure
