"""A path as a picture: the held-out loss against the penalty, and below it the soft sizes of the layers."""

from typing import Any

import numpy as np

from meristem.paths.result import Path, Point
from meristem.pictures.figure_style import GREY, INK, Axes, canvas, layer_colors

MOST_NAMES = 6  # of layers
LEFT = "left early (not comparable)"


def plot_path(path: Path, *, ax: Any = None) -> Axes:
    """Draw a path and return the Axes of the loss; `ax` takes two Axes, one above the other.

    At each penalty the best of the other knobs is drawn, with the standard error of its difference to the best point. Marked
    are the least loss of the settings trained to their end, and the largest penalty within one standard error of it. Settings
    that left the search early are rings: their networks had not settled, so their loss is not comparable with the others'.

    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> zeros = dict.fromkeys(("l2", "dropout", "learning_rate", "seed"), np.zeros(4))
    >>> loss, size = np.array([0.5, 0.6, 0.7, 0.6]), np.array([90, 80, 20, 10])
    >>> knobs = {"penalty": np.array([1e-3, 1e-3, 1e-2, 1e-2]), "fold": np.array([0, 1, 0, 1]), **zeros}
    >>> path = Path(knobs | {"loss": loss, "error": loss, "n_parameters": size}, (), np.ones((4, 2)))
    >>> plot_path(path, ax=Figure().subplots(2, 1)).get_ylabel()
    'held-out loss'
    """
    points = _best_of_each(path.finished)
    left = [point for point in _best_of_each(path.points) if point.penalty not in {p.penalty for p in points}]
    best, small = path.best(), path.within_one_se()
    penalties = np.array([point.penalty for point in points])
    with canvas("ax", ax, size=(6.4, 5.2), rows=2) as (above, below):
        _losses(above, points, penalties, best, small, left, drawn="score" if "score" in path.table else "loss")
        _bands(below, path, points, penalties)
        if (penalties > 0).all():
            above.set_xscale("log")
            below.set_xscale("log")
        _sizes(above, points, penalties)
        below.set_xlabel("penalty")
    return above


def _best_of_each(points: list[Point]) -> list[Point]:
    """Return the point of the best score at each penalty; without penalty 0, unless it is the only one (the axis is a log)."""
    best = {point.penalty: point for point in sorted(points, key=lambda point: point.score)}
    return [best[penalty] for penalty in sorted(best) if penalty > 0 or len(best) == 1]


def _losses(
    ax: Axes, points: list[Point], penalties: np.ndarray, best: Point, small: Point, left: list[Point], drawn: str
) -> None:
    """Draw the loss, or the score that replaces it."""
    losses, errors = (np.array([getattr(point, name) for point in points]) for name in (drawn, "standard_error"))
    ax.fill_between(penalties, losses - errors, losses + errors, color="#D6E6F2", linewidth=0)
    ax.plot(penalties, losses, color="#2171B5", marker="o", markersize=4, linewidth=1.6)
    if left:
        rings = {"color": "#2171B5", "marker": "o", "markersize": 4, "markerfacecolor": "none", "linestyle": "none"}
        ax.plot([point.penalty for point in left], [getattr(point, drawn) for point in left], label=LEFT, **rings)
    marks = [(best, INK, "least loss" if drawn == "loss" else "best score")] + [(small, GREY, "within one standard error")] * (
        small.penalty != best.penalty
    )
    for point, color, label in marks:
        ax.axvline(point.penalty, color=color, linewidth=1, linestyle="--" if color == GREY else "-", label=label)
    ax.set_ylabel(f"held-out {drawn}")
    ax.legend(frameon=False, fontsize=8)


def _bands(ax: Axes, path: Path, points: list[Point], penalties: np.ndarray) -> None:
    sizes = np.array([path.layer_sizes[list(point.members)].mean(0) for point in points])
    layers = np.flatnonzero(sizes.any(0))
    colors = layer_colors(max(1, len(layers)))
    names = [f"layer {layer + 1}" for layer in layers]
    if len(layers):
        ax.stackplot(penalties, *sizes[:, layers].T, colors=colors[: len(layers)], linewidth=0, labels=names)
    else:
        ax.text(0.5, 0.5, "nothing is open: a linear map is enough", transform=ax.transAxes, ha="center", color=GREY)
    if 1 < len(layers) <= MOST_NAMES:
        ax.legend(frameon=False, fontsize=8)
    ax.set_ylabel("soft size, layer by layer" if sizes.shape[1] > 1 else "soft size")
    ax.set_ylim(bottom=0)


def _sizes(ax: Axes, points: list[Point], penalties: np.ndarray) -> None:
    """Label the upper axis with the parameters at each penalty."""
    upper = ax.secondary_xaxis("top")
    step = -(-len(points) // 8)
    upper.set_xticks(penalties[::step], [f"{point.n_parameters:,.0f}" for point in points[::step]])
    upper.minorticks_off()
    upper.tick_params(length=0, labelsize=8)
    upper.set_xlabel("parameters", fontsize=8, color=GREY)
