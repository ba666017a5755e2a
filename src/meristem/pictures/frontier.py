"""Error against size: a dot for each network, and rings, joined by a line, for those on the frontier.

    plot_frontier(parameters, errors, label=…) → Axes
    draw_frontier(sizes, values, marked, named="held-out loss", …)      the same of anything, with what is marked given

On the frontier are those that no other beats: none is as small and better, or as good and smaller. paths/result.py imports it.
"""

from typing import Any

import numpy as np

from meristem.pictures.canvas import canvas
from meristem.pictures.sheet import GREY, INK, Axes


def non_dominated(sizes: Any, errors: Any) -> np.ndarray:
    """Which points no other one beats: none is as small and better, or as good and smaller; by size.

    >>> non_dominated([10, 20, 30, 40], [0.3, 0.1, 0.2, 0.05]).tolist()
    [0, 1, 3]
    """
    sizes, errors = np.asarray(sizes, float), np.asarray(errors, float)
    order = np.lexsort((errors, sizes))
    least = np.minimum.accumulate(np.concatenate([[np.inf], errors[order]]))[:-1]
    return order[errors[order] < least]


def plot_frontier(sizes: Any, errors: Any, *, colors: Any = None, label: str = "penalty", ax: Any = None) -> Axes:
    """Draw errors against sizes (parameters, say), on a logarithmic axis, and return the Axes.

    `colors` are numbers, such as the penalties of the networks, by which the points are colored; `label` says what they are.

    >>> from matplotlib.figure import Figure
    >>> ax = plot_frontier([100, 200, 400], [0.10, 0.05, 0.06], ax=Figure().subplots())
    >>> ax.get_xlabel()
    'parameters'
    """
    sizes, errors = np.asarray(sizes, float), np.asarray(errors, float)
    if sizes.shape != errors.shape or sizes.ndim != 1 or not len(sizes):
        raise ValueError(f"sizes has shape {sizes.shape} and errors {errors.shape}; give as many of each, at least one.")
    marked = non_dominated(sizes, errors)
    return draw_frontier(sizes, 100 * errors, marked, named="error, %", colors=colors, label=label, ax=ax)


def draw_frontier(
    sizes: Any, values: Any, marked: Any, *, named: str, colors: Any = None, label: str = "penalty", ax: Any = None
) -> Axes:
    """`marked`: the places of those on the frontier, by size; `named`: what `values` are."""
    from matplotlib.colors import LogNorm
    from matplotlib.ticker import LogLocator

    sizes, values = np.asarray(sizes, float), np.asarray(values, float)
    with canvas("ax", ax, size=(6.4, 4.0)) as (ax,):
        rings = {"marker": "o", "markersize": 9, "markerfacecolor": "none", "linestyle": "-" if len(marked) > 1 else "none"}
        ax.plot(sizes[marked], values[marked], color=INK, linewidth=1.4, zorder=1, label="none is better and smaller", **rings)
        if colors is None:
            ax.scatter(sizes, values, s=28, color=GREY, edgecolor="white", zorder=2)
        else:
            shades = np.asarray(colors, float)
            norm = LogNorm() if (shades > 0).all() and len(set(shades.tolist())) > 1 else None
            dots = ax.scatter(sizes, values, s=32, c=shades, cmap="viridis", norm=norm, edgecolor="white", zorder=2)
            ax.figure.colorbar(dots, ax=ax, label=label)
        ax.set_xscale("log")
        for axis in (ax.xaxis.set_major_formatter, ax.xaxis.set_minor_formatter):
            axis(lambda value, _: f"{value:,.0f}")
        ax.xaxis.set_minor_locator(LogLocator(subs=(2, 3, 5)))
        ax.set_xlabel("parameters")
        ax.set_ylabel(named)
        ax.legend(frameon=False, loc="best")
    return ax
