"""Training: error and size against the epoch. The middle seed in color, the others as thin grey lines."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from meristem.figures.files import Run, Study, middle, solved
from meristem.figures.sheet import COLORS, GREY, NAMES, OTHER, Axes, Figure, from_zero, grid


def training(study: Study, model: str) -> Figure:
    """Tasks side by side; below one another the error and the sizes of the middle seed."""
    tasks = [task for task in study.tasks if study.of(model, task)]
    figure, axes = grid(3, len(tasks), cell=(2.9, 2.0), sharex="col", sharey="row")
    for column, task in zip(axes.T, tasks, strict=True):
        runs = study.of(model, task)
        drawn = middle(runs)
        _heading(column[0], task, runs, drawn)
        for ax, (paint, _) in zip(column, _rows(model), strict=True):
            paint(ax, study, runs, drawn)
            _rate_cuts(ax, study, drawn)
            ax.grid(axis="y")
        column[-1].set_xlabel("epoch")
        column[-1].xaxis.get_major_locator().set_params(integer=True)
    for ax, (_, label) in zip(axes[:, 0], _rows(model), strict=True):
        ax.set_ylabel(label)
        from_zero(ax)
    if model != "budding":
        layers = max(study.series(run, "layer_sizes").shape[1] for task in tasks for run in study.of(model, task))
        _layer_bar(figure, axes[1], layers)
    figure.suptitle(f"{NAMES[model].capitalize()} {'perceptron' if model == 'budding' else 'network'} on two spirals")
    _training_legend(figure, study, model, tasks)
    return figure


Paint = Callable[[Axes, Study, list[Run], Run], None]


def _rows(model: str) -> list[tuple[Paint, str]]:
    if model == "budding":
        return [(_error, "error rate"), (_hard_size, "hard size (nodes)"), (_soft_size, "soft size (nodes)")]
    return [(_error, "error rate"), (_layer_sizes, "soft size per layer"), (_soft_size, "total soft size")]


def _error(ax: Axes, study: Study, runs: list[Run], drawn: Run) -> None:
    _seeds(ax, runs, drawn, lambda run: study.series(run, "error"))


def _soft_size(ax: Axes, study: Study, runs: list[Run], drawn: Run) -> None:
    _seeds(ax, runs, drawn, lambda run: study.series(run, "layer_sizes").sum(1))


def _hard_size(ax: Axes, study: Study, runs: list[Run], drawn: Run) -> None:
    """The drawn seed alone: this size jumps, and several on top of one another cannot be told apart."""
    _seeds(ax, [drawn], drawn, lambda run: study.series(run, "hard_size"), drawstyle="steps-post", linewidth=1.0)
    ax.yaxis.get_major_locator().set_params(integer=True)


def _layer_sizes(ax: Axes, study: Study, runs: list[Run], drawn: Run) -> None:
    """One line per layer, the first on top."""
    sizes = study.series(drawn, "layer_sizes")
    for layer, color in reversed(list(enumerate(_layer_colors(sizes.shape[1])))):
        _line(ax, sizes[:, layer], color=color, linewidth=1.4)


def _line(ax: Axes, values: np.ndarray, **options: Any) -> None:
    """Values against their epoch; a single one is a dot, for a line of one point is nothing."""
    ax.plot(_epochs(values), values, marker="." if len(values) == 1 else "", **({"linewidth": 1.6} | options))


def _seeds(ax: Axes, runs: list[Run], drawn: Run, values: Callable[[Run], np.ndarray], **options: Any) -> None:
    """The drawn seed in color, marked at its zero-error epoch; the others behind it in grey."""
    for run in runs:
        if run is not drawn:
            _line(ax, values(run), color=OTHER, linewidth=0.8, zorder=1.5, **options)
    color, shown = COLORS[drawn["model"]], values(drawn)
    _line(ax, shown, color=color, **options)
    epoch = drawn["zero_error_epoch"]
    if epoch is not None and epoch <= len(shown):
        ax.plot(epoch, shown[epoch - 1], **_zero_marker(color), zorder=4, clip_on=False)


def _heading(ax: Axes, task: str, runs: list[Run], drawn: Run) -> None:
    """The task, and below it which seed is drawn, when it got to zero error, and how many seeds did."""
    epoch, done = drawn["zero_error_epoch"], sum(solved(run) for run in runs)
    text = f"seed {drawn['seed']}: " + ("never at zero error" if epoch is None else f"zero at epoch {epoch}")
    text += f"  ({done}/{len(runs)} solved)" if len(runs) > 1 else ""
    ax.set_title(task, pad=20)
    ax.text(0.5, 1.03, text, transform=ax.transAxes, ha="center", va="bottom", fontsize=8.5, color=GREY)


def _rate_cuts(ax: Axes, study: Study, run: Run) -> None:
    for cut in _cuts(study, run):
        ax.axvline(cut, color=GREY, linestyle=(0, (4, 3)), linewidth=0.9, zorder=1.8)


def _cuts(study: Study, run: Run) -> np.ndarray:
    """Where the rate shrinks: between the last epoch of a stage and the first of the next."""
    return np.flatnonzero(np.diff(study.series(run, "stage")) > 0) + 1.5


def _epochs(values: np.ndarray) -> np.ndarray:
    return np.arange(1, len(values) + 1)


def _zero_marker(color: str) -> dict[str, Any]:
    return {"marker": "o", "markersize": 6.5, "markerfacecolor": "white", "markeredgecolor": color, "markeredgewidth": 1.6}


def _layer_colors(layers: int) -> list[Any]:
    """Dark for the first layer, light for the last; short of the yellow that white paper swallows."""
    from matplotlib import colormaps

    return [colormaps["viridis"](value) for value in np.linspace(0, 0.92, layers)]


def _layer_bar(figure: Figure, row: Any, layers: int) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import BoundaryNorm, ListedColormap

    norm = BoundaryNorm(np.arange(layers + 1) + 0.5, layers)
    ticks = np.arange(1, layers + 1, max(1, math.ceil((layers - 1) / 9)))
    bar = figure.colorbar(
        ScalarMappable(norm, ListedColormap(_layer_colors(layers))),
        ax=row.tolist(),
        ticks=ticks,
        label="layer",
        aspect=14,
        pad=0.01,
    )
    bar.ax.tick_params(which="both", length=0, labelsize=8)
    bar.ax.invert_yaxis()
    bar.outline.set_visible(False)


def _training_legend(figure: Figure, study: Study, model: str, tasks: list[str]) -> None:
    """Names for the kinds of lines that are there."""
    from matplotlib.lines import Line2D

    groups = [study.of(model, task) for task in tasks]
    drawn = [middle(runs) for runs in groups]
    handles = []
    if any(len(runs) > 1 for runs in groups):
        handles.append(Line2D([], [], color=COLORS[model], label="seed with the median zero-error epoch"))
        handles.append(Line2D([], [], color=OTHER, linewidth=1, label="other seeds"))
    if any(solved(run) for run in drawn):
        handles.append(Line2D([], [], linestyle="", label="first epoch without error", **_zero_marker(COLORS[model])))
    if any(_cuts(study, run).size for run in drawn):
        handles.append(Line2D([], [], color=GREY, linestyle=(0, (4, 3)), linewidth=0.9, label="learning rate shrinks"))
    if handles:
        figure.legend(handles=handles, loc="outside lower center", ncols=1 if len(tasks) == 1 else 2 if len(tasks) == 2 else 4)
