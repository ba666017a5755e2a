"""What a study tried before each model kept a setting: a row for each setting, and along it what the models reached.

A dot is the mean over seeds of the measure by which a model chose, on the part by which it chose; the line through it is one
sd to either side; a filled dot is the setting that the model kept. Beside it stand the mean soft sizes, a column for each
model, for a choice may go by them; they are bold at the kept settings.
"""

from typing import Any

import numpy as np

from meristem.pictures.axes import measure_ticks
from meristem.pictures.sheet import GREY, Axes, Figure, grid, legend_below, name_of
from meristem.pictures.studies.records import Run, StudyFiles, value_of
from meristem.show.describe import describe_settings
from meristem.show.measures import Measure

DOT: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 5.5, "markeredgewidth": 1.3}
ROW, FRAME = 0.24, 0.75  # inches
WIDTH, COLUMN, LEAST = 6.4, 0.85, 1.0  # of the dots, of a column of numbers, of all such columns


def tried(files: StudyFiles, measure: Measure, part: str = "validation") -> Figure:
    """A panel for each task, one below the other, and the sizes beside it."""
    panels = {task: rows for task in files.tasks if (rows := _rows([one for one in files.settings if one["task"] == task]))}
    models = [model for model in files.models if any(one["model"] == model for one in files.settings)]
    has_sizes = any(value_of(one, "soft_size") is not None for one in files.settings)  # not so in files of early studies
    heights = [FRAME + ROW * len(rows) for rows in panels.values()]
    widths = [WIDTH, max(LEAST, COLUMN * len(models))] if has_sizes else [WIDTH]
    cell = sum(widths) / len(widths), sum(heights) / len(panels)
    figure, axes = grid(len(panels), len(widths), cell=cell, height_ratios=heights, width_ratios=widths)
    for (ax, *beside), (task, rows) in zip(axes, panels.items(), strict=True):
        _panel(ax, rows, measure, files.colors)
        ax.set_title(files.label(task))
        for numbers in beside:
            _sizes(numbers, files, rows, models)
            numbers.set_ylim(ax.get_ylim())
    axes[-1, 0].set_xlabel(f"{part} {measure.label}")
    figure.suptitle(f"Settings tried on {files.subject}")
    _legend(figure, files, models, measure)
    return figure


def _rows(settings: list[Run]) -> dict[str, list[Run]]:
    """Each setting in words → the models tried at it; what was varied for a model is told: a highway has no penalty."""
    rows: dict[str, list[Run]] = {}
    for model in dict.fromkeys(one["model"] for one in settings):
        own = [one for one in settings if one["model"] == model]
        for words, one in zip(describe_settings(own), own, strict=True):
            rows.setdefault(words, []).append(one)
    return rows


def _panel(ax: Axes, rows: dict[str, list[Run]], measure: Measure, colors: dict[str, Any]) -> None:
    values = []
    for place, models in enumerate(rows.values()):
        for shift, one in zip(_shifts(len(models)), models, strict=True):
            value, color = value_of(one, f"dev_{measure.name}"), colors[one["model"]]
            if value is None:
                continue
            values.append(value)
            around = [value - (one["sd"] or 0), value + (one["sd"] or 0)]
            ax.plot(around, [place + shift] * 2, color=color, alpha=0.5, linewidth=2, solid_capstyle="butt")
            fill = color if one["chosen"] else "white"
            ax.plot(value, place + shift, color=color, markerfacecolor=fill, zorder=4, **DOT)
    ax.set_yticks(range(len(rows)), list(rows))
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    _borders(ax, len(rows))
    ax.grid(axis="x")
    if ax.get_xlim()[0] < 0 <= min(values, default=0):  # no measure that is never below 0 gets room for it
        top = max(measure.least_span, 1.05 * ax.dataLim.xmax)
        ax.set_xlim(-0.025 * top, top)
    measure_ticks(measure, ax.xaxis)


def _borders(ax: Axes, rows: int) -> None:
    for border in range(1, rows):
        ax.axhline(border - 0.5, color="#E6E6E6", linewidth=0.8, zorder=0.5)


def _sizes(ax: Axes, files: StudyFiles, rows: dict[str, list[Run]], models: list[str]) -> None:
    """The mean soft size of each setting, in units of a stack or nodes of a tree: a column for each model."""
    ax.set(xlim=(-0.5, len(models) - 0.5), xticks=[], yticks=[])
    for side in ax.spines.values():
        side.set_visible(False)
    _borders(ax, len(rows))
    heads = [[*name_of(model).split(), "(units)" if files.is_layered(model) else "(nodes)"] for model in models]
    title = "mean soft size" if len(models) > 1 else "mean\nsoft size"
    ax.set_title(title, fontsize=9, color=GREY, pad=8 + 10 * max(map(len, heads)))
    above: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": "bottom", "fontsize": 8}
    for column, (model, words) in enumerate(zip(models, heads, strict=True)):
        digits = 1 if files.is_layered(model) else 2
        ax.annotate("\n".join(words), (column, -0.6), (0, 3), color=files.colors[model], **above)
        for place, settings in enumerate(rows.values()):
            for one in settings:
                if one["model"] == model and (size := value_of(one, "soft_size")) is not None:
                    style = {"weight": "bold" if one["chosen"] else "normal", "color": files.colors[model]}
                    ax.text(column, place, f"{size:.{digits}f}", ha="center", va="center", fontsize=9, **style)


def _shifts(models: int) -> list[float]:
    """Models of one row stand a little above and below one another."""
    return [0.2 * (place - (models - 1) / 2) for place in range(models)]


def _legend(figure: Figure, files: StudyFiles, models: list[str], measure: Measure) -> None:
    from matplotlib.lines import Line2D

    kept = "kept: the best" if _best_are_kept(files.settings, measure) else "kept: the smallest of the best"
    mean = Line2D([], [], color=GREY, markerfacecolor="white", label="tried: mean over seeds, ± sd", **DOT)
    colors = {model: files.colors[model] for model in models}
    legend_below(figure, colors, [mean, Line2D([], [], color=GREY, label=kept, **DOT)])


def _best_are_kept(settings: list[Run], measure: Measure) -> bool:
    """Whether every model kept its best setting on each task, of equal ones the first, rather than one of smaller networks."""
    cells: dict[tuple[str, str], list[Run]] = {}
    for one in settings:
        cells.setdefault((one["model"], one["task"]), []).append(one)
    return all(
        measure.best(np.array([value_of(one, f"dev_{measure.name}") for one in cell], float)) in (None, place)
        for cell in cells.values()
        for place, kept in enumerate(one["chosen"] for one in cell)
        if kept
    )
