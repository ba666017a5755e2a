"""Lines against the epoch, counted from 1, and the marks on them: rings, changes of the rate, a line and a color per layer.

Imports the sheet alone; `growth.py` and the pictures of studies import it.
"""

from typing import Any

import numpy as np

from meristem.pictures.sheet import GREY, Axes, Figure, layer_colors

# The prefix of the measures' names → what the part is called, its color, a pale one.
PARTS = {"": ("training", "#CC3311", "#F2C9C0"), "dev_": ("validation", "#0072B2", "#BAD6E8")}
CUT_LINE: dict[str, Any] = {"color": GREY, "linestyle": (0, (4, 3)), "linewidth": 0.9}


def line(ax: Axes, values: np.ndarray, **options: Any) -> None:
    """Values against their epoch; a single one is a dot, for a line of one point is nothing."""
    ax.plot(np.arange(1, len(values) + 1), values, marker="." if len(values) == 1 else "", **({"linewidth": 1.6} | options))


def ring(color: Any) -> dict[str, Any]:
    return {"marker": "o", "markersize": 6.5, "markerfacecolor": "white", "markeredgecolor": color, "markeredgewidth": 1.6}


def changes(values: np.ndarray) -> np.ndarray:
    """Where the rate, or its stage, changes: between the last epoch of one and the first of the next.

    >>> changes(np.array([0, 0, 1, 1, 2])).tolist()
    [2.5, 4.5]
    """
    return np.flatnonzero(np.diff(values)) + 1.5


def layer_lines(ax: Axes, sizes: np.ndarray) -> None:
    """Sizes [epochs, layers]: a line per layer, the first on top."""
    for layer, color in reversed(list(enumerate(layer_colors(sizes.shape[1])))):
        line(ax, sizes[:, layer], color=color, linewidth=1.4)


def layer_bar(figure: Figure, layers: int, **place: Any) -> None:
    """The key to the layers' colors; `place`: where, as matplotlib's colorbar takes it (`ax`, `cax`)."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import BoundaryNorm, ListedColormap

    norm = BoundaryNorm(np.arange(layers + 1) + 0.5, layers)
    ticks = np.arange(1, layers + 1, max(1, -(-(layers - 1) // 9)))
    colors = ScalarMappable(norm, ListedColormap(layer_colors(layers)))
    bar = figure.colorbar(colors, ticks=ticks, label="layer", **place)
    bar.ax.tick_params(which="both", length=0, labelsize=8)
    bar.ax.invert_yaxis()
    bar.outline.set_visible(False)
