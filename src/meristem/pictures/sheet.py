"""The sheet that all pictures are drawn on: names, colors, marks, fonts, and a grid of axes.

matplotlib is imported inside functions, here and in the pictures; `pyplot` is not used.
"""

from typing import Any

import numpy as np

Axes = Any  # matplotlib's; named here, imported nowhere
Figure = Any

NAMES = {"tunnel": "tunnel", "highway": "highway", "highway-penalized": "penalized highway", "budding": "budding"}
COLORS = {"tunnel": "#0072B2", "highway": "#E69F00", "highway-penalized": "#CC79A7", "budding": "#009E73"}  # Okabe and Ito's
CLASSES = ("#0072B2", "#D55E00")
GREY, OTHER = "#666666", "#BDBDBD"
SEED_MARKER: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 4.5, "markeredgewidth": 0}
UNSOLVED_MARKER: dict[str, Any] = {"linestyle": "", "marker": "x", "markersize": 4.5, "markeredgewidth": 1.2}
PAPER_MARKER: dict[str, Any] = {
    "linestyle": "",
    "marker": "D",
    "markersize": 6,
    "markerfacecolor": "none",
    "markeredgecolor": "black",
}
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.labelsize": 10,
    "figure.titlesize": 13,
    "figure.constrained_layout.h_pad": 0.07,
    "figure.constrained_layout.w_pad": 0.06,
    "legend.fontsize": 9.5,
    "legend.frameon": False,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.8,
    "lines.linewidth": 1.6,
    "savefig.dpi": 150,
}


def grid(rows: int, columns: int, *, cell: tuple[float, float], frame: float = 1.1, **options: Any) -> tuple[Figure, Any]:
    """A figure and its axes [rows, columns], `cell` inches each, and `frame` inches for a title and a legend."""
    from matplotlib.figure import Figure

    size = max(4.6, 0.9 + cell[0] * columns), frame + cell[1] * rows
    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def from_zero(ax: Axes, least: float = 0.5, zero: float = 0) -> None:
    """The axis begins a little below `zero`, so that a line there is seen, and spans `least`: noise must not look large."""
    span = max(least, ax.get_ylim()[1] - zero)
    ax.set_ylim(zero - 0.025 * span, zero + 1.02 * span)


def legend_below(figure: Figure, models: list[str], marks: list[Any]) -> None:
    """One row: the models' names and colors, then whatever else is marked; `marks` are matplotlib's lines with labels."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=COLORS[model], linewidth=5, label=NAMES[model]) for model in models] + marks
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), columnspacing=1.4, handlelength=1.5)


def layer_colors(layers: int) -> Any:
    """As in all pictures: dark for the first layer, light for the last, short of yellow."""
    from matplotlib import colormaps

    return colormaps["viridis"](np.linspace(0, 0.92, layers))
