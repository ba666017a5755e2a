"""Error against size: a dot for each network, with the Pareto frontier as joined rings."""

from typing import Any

import numpy as np

from meristem.pictures.figure_style import GREY, INK, Axes, canvas


def non_dominated(sizes: Any, errors: Any) -> np.ndarray:
    """Return the indices, by size, of the points of which no other is as small and better, or as good and smaller."""
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
    frontier = non_dominated(sizes, errors)
    return draw_frontier(sizes, 100 * errors, frontier, ylabel="error, %", colors=colors, label=label, ax=ax)


def draw_frontier(sizes: Any, values: Any, frontier: Any, *, ylabel: str, colors: Any, label: str, ax: Any) -> Axes:
    """Draw any values against sizes, with the points of indices `frontier`, by size, joined; return the Axes."""
    sizes, values = np.asarray(sizes, float), np.asarray(values, float)
    with canvas("ax", ax, size=(6.4, 4.0)) as (ax,):
        rings = {"marker": "o", "markersize": 9, "markerfacecolor": "none", "linestyle": "-" if len(frontier) > 1 else "none"}
        rings |= {"color": INK, "linewidth": 1.4, "zorder": 1, "label": "none is better and smaller"}
        ax.plot(sizes[frontier], values[frontier], **rings)
        if colors is None:
            ax.scatter(sizes, values, s=28, color=GREY, edgecolor="white", zorder=2)
        else:
            shades = np.asarray(colors, float)
            norm = "log" if (shades > 0).all() and len(set(shades.tolist())) > 1 else None
            dots = ax.scatter(sizes, values, s=32, c=shades, cmap="viridis", norm=norm, edgecolor="white", zorder=2)
            ax.figure.colorbar(dots, ax=ax, label=label)
        ax.set_xscale("log", subs=(2, 3, 5))
        ax.xaxis.set_major_formatter("{x:,.0f}")
        ax.xaxis.set_minor_formatter("{x:,.0f}")
        ax.set(xlabel="parameters", ylabel=ylabel)
        ax.legend(frameon=False, loc="best")
    return ax
