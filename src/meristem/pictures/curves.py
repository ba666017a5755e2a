"""Curves against the epoch (from 1) with their marks, and the scales of axes, which are set once everything is painted."""

from typing import Any

import numpy as np

from meristem.pictures.figure_style import GREY, Axes, Figure, layer_colors
from meristem.show.measures import Measure

# The prefix of the measures' names → label of the part, color, light color.
PARTS = {"": ("training", "#CC3311", "#F2C9C0"), "dev_": ("validation", "#0072B2", "#BAD6E8")}
CUT_LINE: dict[str, Any] = {"color": GREY, "linestyle": (0, (4, 3)), "linewidth": 0.9}
MIN_LABELS = 3  # of an axis, or it could not be read


def plot_curve(ax: Axes, values: np.ndarray, **options: Any) -> None:
    """Plot values against their epoch; a single value is a dot, since a line of one point is invisible."""
    ax.plot(np.arange(1, len(values) + 1), values, marker="." if len(values) == 1 else "", **({"linewidth": 1.6} | options))


def ring(color: Any) -> dict[str, Any]:
    style = {"color": color, "linestyle": "", "marker": "o", "markersize": 6.5}
    return style | {"markerfacecolor": "white", "markeredgecolor": color, "markeredgewidth": 1.6}


def change_points(values: np.ndarray) -> np.ndarray:
    """Return where values by epoch change, half-way between the two epochs."""
    return np.flatnonzero(np.diff(values)) + 1.5


def plot_layer_sizes(ax: Axes, sizes: np.ndarray) -> None:
    """Plot sizes [epochs, layers] as a curve per layer, the first on top."""
    for layer, color in reversed(list(enumerate(layer_colors(sizes.shape[1])))):
        plot_curve(ax, sizes[:, layer], color=color, linewidth=1.4)


def layer_colorbar(figure: Figure, layers: int, **place: Any) -> None:
    """Add the key to the layers' colors; `place` is passed to matplotlib's colorbar (`ax`, `cax`)."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import BoundaryNorm, ListedColormap

    norm = BoundaryNorm(np.arange(layers + 1) + 0.5, layers)
    ticks = np.arange(1, layers + 1, max(1, -(-(layers - 1) // 9)))
    colors = ScalarMappable(norm, ListedColormap(layer_colors(layers)))
    bar = figure.colorbar(colors, ticks=ticks, label="layer", **place)
    bar.ax.tick_params(which="both", length=0, labelsize=8)
    bar.ax.invert_yaxis()
    bar.outline.set_visible(False)


def from_zero(ax: Axes, min_span: float = 0.5, zero: float = 0) -> None:
    """Start the y axis a little below `zero` and let it span `min_span` at least, so that noise does not look large."""
    span = max(min_span, ax.get_ylim()[1] - zero)
    ax.set_ylim(zero - 0.025 * span, zero + 1.02 * span)


def integers_from_zero(ax: Axes) -> None:
    from_zero(ax, min_span=MIN_LABELS - 0.8)
    ax.yaxis.get_major_locator().set_params(integer=True)


def scale_measure(measure: Measure, ax: Axes, min_span: float = 0) -> None:
    from_zero(ax, max(min_span, measure.least_span))
    format_measure(measure, ax.yaxis)


def format_measure(measure: Measure, axis: Any) -> None:
    if measure.percent:
        axis.set_major_formatter(lambda value, _: f"{100 * value:.4g}%")


def scale_nodes(ax: Axes, min_span: float = 0.5) -> None:
    """Scale the y axis for a tree's size: from 1, a single layer, or from 0 if a root copies some of its input."""
    from_zero(ax, min_span, zero=1 if ax.dataLim.ymin > 0.999 else 0)


def log_ticks(top: float, min_ticks: int = MIN_LABELS) -> list[float]:
    """Return ticks from 1 to `top`: powers of ten, or, where these are few, 1, 2, 5, 10, … or every integer.

    >>> log_ticks(3000.0), log_ticks(60.0), log_ticks(4.5)
    ([1.0, 10.0, 100.0, 1000.0], [1.0, 2.0, 5.0, 10.0, 20.0, 50.0], [1.0, 2.0, 3.0, 4.0])
    """
    ticks: list[float] = []
    for steps in ((1,), (1, 2, 5), range(1, 10)):
        if len(ticks) < min_ticks:
            ticks = [float(step * 10**power) for power in range(10) for step in steps if step * 10**power < top]
    return ticks


def scale_units(ax: Axes) -> None:
    """Scale the y axis linearly up to 1, then logarithmically: a tunnel may keep a hundredth of a highway's units, or none."""
    from matplotlib.ticker import FixedLocator, SymmetricalLogLocator

    ax.set_yscale("symlog", linthresh=1, linscale=0.5)
    top = 1.6 * max(2, ax.get_ylim()[1])
    ax.set_ylim(-0.05, top)
    ax.yaxis.set_major_locator(FixedLocator([0.0, *log_ticks(top, MIN_LABELS - 1)]))
    ax.yaxis.set_minor_locator(SymmetricalLogLocator(base=10, linthresh=1, subs=range(2, 10)))
    ax.yaxis.set_major_formatter("{x:g}")


def scale_epochs(ax: Axes, never: float | None) -> None:
    """Scale the y axis logarithmically from 1, with a level at `never` for runs that do not arrive (None: all do)."""
    from matplotlib.ticker import FixedLocator, NullLocator

    top = max(MIN_LABELS + 0.5, 1.6 * ax.get_ylim()[1])
    ticks = log_ticks(top if never is None else min(top, 0.6 * never))
    labels = [f"{tick:.0f}" for tick in ticks]
    if never is not None:
        ax.axhline(never, color=GREY, linewidth=0.8, linestyle=":", zorder=1)
        top, ticks, labels = 1.4 * never, [*ticks, never], [*labels, "never"]
    ax.set_yscale("log")
    ax.set_ylim(0.75, top)
    ax.yaxis.set_major_locator(FixedLocator(ticks))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_yticklabels(labels)
