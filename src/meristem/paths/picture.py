"""A path as a picture, also of reports: the loss against the penalty, and below it the soft sizes of the layers."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from meristem.paths.result import Path, Point
from meristem.pictures.figure_style import GREY, INK, SERIES, Axes, layer_colors

MOST_NAMES = 6  # of layers
STOPPED = "stopped early (not comparable)"


def draw_path(above: Axes, below: Axes, path: Path, marks: Mapping[str, Point]) -> None:
    """Draw a path on two Axes, with a vertical line at each of the points `marks`, by their labels."""
    points = [point for point in best_points(path) if point in path.finished]
    stopped = [point for point in best_points(path) if point not in points]
    penalties, measure = np.array([point.penalty for point in points]), "score" if "score" in path.table else "loss"
    losses, errors = (np.array([getattr(point, name) for point in points]) for name in (measure, "standard_error"))
    above.fill_between(penalties, losses - errors, losses + errors, color=SERIES[0], alpha=0.18, linewidth=0)
    above.plot(penalties, losses, color=SERIES[0], marker="o", markersize=4)
    if stopped:
        rings = {"color": SERIES[0], "marker": "o", "markersize": 4, "markerfacecolor": "none", "linestyle": "none"}
        places = [(point.penalty, getattr(point, measure)) for point in stopped]
        above.plot(*np.transpose(places), label=STOPPED, clip_on=False, **rings)
    for (label, point), color, style in zip(marks.items(), (INK, GREY), ("-", "--"), strict=False):
        above.axvline(point.penalty, color=color, linewidth=1, linestyle=style, label=label)
    above.set_ylabel(f"held-out {measure}")
    if stopped or marks:
        above.legend(frameon=False, fontsize="small")
    _draw_bands(below, path, points, penalties)
    below.set_xlabel("penalty")
    tried = path.table["penalty"]
    lowest = np.min(tried[tried > 0], initial=1.0)
    for ax in (above, below):
        if (tried > 0).all():
            ax.set_xscale("log")
        else:
            ax.set_xscale("symlog", linthresh=lowest)
            ax.set_xlim(-lowest / 3)
        ax.xaxis.set_major_formatter("{x:g}")
    label_style: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "fontsize": "small"}
    for point in points[:: -(-len(points) // 8)]:
        above.annotate(f"{point.n_parameters:,.0f}", (point.penalty, 1), (0, 4), above.get_xaxis_transform(), **label_style)
    above.annotate("parameters", (0.5, 1), (0, 17), "axes fraction", color=GREY, **label_style)


def best_points(path: Path) -> list[Point]:
    """Return the best point at each penalty; one that stopped early only if all there did."""
    return [path.at(penalty) for penalty in sorted({point.penalty for point in path.points})]


def _draw_bands(ax: Axes, path: Path, points: list[Point], penalties: np.ndarray) -> None:
    sizes = np.array([path.layer_sizes[list(point.members)].mean(0) for point in points])
    layers = np.flatnonzero(sizes.any(0))
    if len(layers):
        names = [f"layer {layer + 1}" for layer in layers]
        ax.stackplot(penalties, *sizes[:, layers].T, colors=layer_colors(len(layers)), linewidth=0, labels=names)
    else:
        ax.text(0.5, 0.5, "nothing is open: a linear map is enough", transform=ax.transAxes, ha="center", color=GREY)
    if 1 < len(layers) <= MOST_NAMES:
        ax.legend(frameon=False, fontsize="small")
    ax.set_ylabel("soft size, layer by layer" if sizes.shape[1] > 1 else "soft size")
    ax.set_ylim(bottom=0)
