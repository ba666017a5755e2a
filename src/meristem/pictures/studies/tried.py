"""What a study tried before each model kept a setting: a row for each setting, and along it what the models reached.

A dot is the mean over seeds of the measure by which a model chose, on the validation part; the line through it is one sd to
either side; a filled dot is the setting that the model kept.
"""

from typing import Any

import numpy as np

from meristem.pictures.studies.measures import Measure, value_of
from meristem.pictures.sheet import COLORS, GREY, Axes, Figure, grid, legend_below
from meristem.pictures.studies.study import Run, Study
from meristem.show.settings import settings_told

DOT: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 5.5, "markeredgewidth": 1.3}
ROW, FRAME = 0.24, 0.75  # inches


def tried(study: Study, measure: Measure) -> Figure:
    """A panel for each task, one below the other."""
    named = [one for one in study.tried if one["model"] in study.named]
    panels = {task: rows for task in study.tasks if (rows := _rows([one for one in named if one["task"] == task]))}
    heights = [FRAME + ROW * len(rows) for rows in panels.values()]
    figure, axes = grid(len(panels), 1, cell=(6.4, sum(heights) / len(panels)), height_ratios=heights)
    for ax, (task, rows) in zip(axes[:, 0], panels.items(), strict=True):
        _panel(ax, rows, measure)
        ax.set_title(study.label(task))
    axes[-1, 0].set_xlabel(f"validation {measure.label}")
    figure.suptitle(f"Settings tried on {study.subject}")
    _legend(figure, named, study.named, measure)
    return figure


def _rows(settings: list[Run]) -> dict[str, list[Run]]:
    """Each setting in words → the models tried at it; what was varied for a model is told: a highway has no penalty."""
    rows: dict[str, list[Run]] = {}
    for model in dict.fromkeys(one["model"] for one in settings):
        own = [one for one in settings if one["model"] == model]
        for words, one in zip(settings_told(own), own, strict=True):
            rows.setdefault(words, []).append(one)
    return rows


def _panel(ax: Axes, rows: dict[str, list[Run]], measure: Measure) -> None:
    for place, models in enumerate(rows.values()):
        for shift, one in zip(_shifts(len(models)), models, strict=True):
            value, color = value_of(one, f"dev_{measure.name}"), COLORS[one["model"]]
            if value is None:
                continue
            around = [value - (one["sd"] or 0), value + (one["sd"] or 0)]
            ax.plot(around, [place + shift] * 2, color=color, alpha=0.5, linewidth=2, solid_capstyle="butt")
            fill = color if one["chosen"] else "white"
            ax.plot(value, place + shift, color=color, markerfacecolor=fill, zorder=4, **DOT)
    ax.set_yticks(range(len(rows)), list(rows))
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    for border in range(1, len(rows)):
        ax.axhline(border - 0.5, color="#E6E6E6", linewidth=0.8, zorder=0.5)
    ax.grid(axis="x")
    measure.label_ticks(ax.xaxis)


def _shifts(models: int) -> list[float]:
    """Models of one row stand a little above and below one another."""
    return [0.2 * (place - (models - 1) / 2) for place in range(models)]


def _legend(figure: Figure, settings: list[Run], models: list[str], measure: Measure) -> None:
    from matplotlib.lines import Line2D

    kept = "kept: the best" if _best_are_kept(settings, measure) else "kept: the smallest of the best"
    mean = Line2D([], [], color=GREY, markerfacecolor="white", label="tried: mean over seeds, ± sd", **DOT)
    there = {one["model"] for one in settings}
    legend_below(figure, [model for model in models if model in there], [mean, Line2D([], [], color=GREY, label=kept, **DOT)])


def _best_are_kept(settings: list[Run], measure: Measure) -> bool:
    """Whether every model kept its best setting on each task, rather than that of a smaller network which is as good."""
    cells: dict[tuple[str, str], list[Run]] = {}
    for one in settings:
        cells.setdefault((one["model"], one["task"]), []).append(one)
    return all(
        measure.best(np.array([value_of(one, f"dev_{measure.name}") for one in cell], float), prefer=place) in (None, place)
        for cell in cells.values()
        for place, kept in enumerate(one["chosen"] for one in cell)
        if kept
    )
