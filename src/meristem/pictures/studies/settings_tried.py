"""The settings that a study tried: what the models reached with each, and error against size along a path of penalties."""

import itertools
from typing import Any

import numpy as np

from meristem.pictures import figure_style
from meristem.pictures.figure_style import GREY, INK, Axes, Figure, figure_grid, legend_below, model_label
from meristem.pictures.frontier_plot import non_dominated
from meristem.pictures.studies.study_results import Run, StudyResults, finite_value
from meristem.show.describe import describe_settings
from meristem.show.measures import Measure

DOT: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 5.5, "markeredgewidth": 1.3}
PATH_DOTS: dict[str, Any] = {"s": 30, "cmap": "viridis", "edgecolor": "white", "linewidth": 0.6, "zorder": 3, "clip_on": False}
ROW_HEIGHT, FRAME = 0.24, 0.75  # inches
PLOT_WIDTH, COLUMN_WIDTH, MIN_COLUMNS_WIDTH = 6.4, 0.85, 1.0  # inches: the dots, a column of sizes, all of these
Rows = dict[str, list[Run]]  # a setting in words → the models tried at it


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
