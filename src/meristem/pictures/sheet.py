"""What all pictures share: names and colors of models, marks, fonts, a grid of axes, a legend.

matplotlib is imported inside functions, here and in the pictures; `pyplot` is not used. Imports nothing of meristem; every
picture imports it.
"""

import math
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

Axes = Any  # matplotlib's; named here, imported nowhere
Figure = Any

# Of the models that the paper knows; any other has its own name, and the next color that is free.
NAMES = {"tunnel": "tunnel", "highway": "highway", "highway-penalized": "penalized highway", "budding": "budding"}
COLORS = {"tunnel": "#0072B2", "highway": "#E69F00", "highway-penalized": "#CC79A7", "budding": "#009E73"}  # Okabe and Ito's
FREE_COLORS = ("#D55E00", "#56B4E9", "#8C564B", "#7F7F7F")
TREE = COLORS["budding"]  # the soft size of a tree
CLASSES = ("#0072B2", "#D55E00")
INK, GREY, OTHER = "#333333", "#666666", "#BDBDBD"
SEED_MARKER: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 4.5, "markeredgewidth": 0}
UNSOLVED_MARKER: dict[str, Any] = {"linestyle": "", "marker": "x", "markersize": 4.5, "markeredgewidth": 1.2}
PAPER_MARKER: dict[str, Any] = {
    "linestyle": "",
    "marker": "D",
    "markersize": 6,
    "markerfacecolor": "none",
    "markeredgecolor": "black",
}
SAMPLE, LETTER = 0.48, 0.078  # inches of a legend: a line or mark with the space around it, and a letter, roughly
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


def have_matplotlib() -> bool:
    """Whether pictures can be drawn here."""
    try:
        return find_spec("matplotlib") is not None
    except ValueError:  # blocked on purpose, as sys.modules["matplotlib"] = None does
        return False


def require_matplotlib() -> None:
    """Raise ImportError, in one line, where pictures cannot be drawn."""
    if not have_matplotlib():
        raise ImportError("Pictures need matplotlib; install it with `pip install 'meristem-nn[cli]'`.")


def name_of(model: str) -> str:
    """What a picture calls a model.

    >>> name_of("highway-penalized"), name_of("wide-tunnel")
    ('penalized highway', 'wide tunnel')
    """
    return NAMES.get(model, model.replace("-", " "))


def colors_of(models: Sequence[str]) -> dict[str, Any]:
    """A color for each model, all different.

    >>> colors_of(["tunnel", "conv", "recurrent"])
    {'tunnel': '#0072B2', 'conv': '#D55E00', 'recurrent': '#56B4E9'}
    """
    others = [model for model in models if model not in COLORS]
    free: Sequence[Any] = FREE_COLORS
    if len(others) > len(free):
        from matplotlib import colormaps

        free = [tuple(color) for color in colormaps["turbo"](np.linspace(0.05, 0.95, len(others)))[:, :3].tolist()]
    given = dict(zip(others, free, strict=False))
    return {model: COLORS.get(model) or given[model] for model in models}


def grid(rows: int, columns: int, *, cell: tuple[float, float], frame: float = 1.1, **options: Any) -> tuple[Figure, Any]:
    """A figure and its axes [rows, columns], `cell` inches each, and `frame` inches for a title and a legend."""
    from matplotlib.figure import Figure

    size = max(4.6, 0.9 + cell[0] * columns), frame + cell[1] * rows
    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def legend_below(figure: Figure, colors: Mapping[str, Any], marks: list[Any]) -> None:
    """The models' names and colors, then whatever else is marked; `marks` are matplotlib's lines with labels.

    One row, or as many as it takes.
    """
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=color, linewidth=5, label=name_of(model)) for model, color in colors.items()] + marks
    inches = sum(SAMPLE + LETTER * len(handle.get_label()) for handle in handles)
    columns = math.ceil(len(handles) / math.ceil(inches / figure.get_figwidth()))
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, columnspacing=1.4, handlelength=1.5)


def between_classes(colors: Sequence[Any], white: float) -> Any:
    """A color map from one class to the other, white between them; the ends so pale that points stand out."""
    from matplotlib.colors import LinearSegmentedColormap

    one, other = (pale(color, white) for color in colors)
    return LinearSegmentedColormap.from_list("classes", [one, (1.0, 1.0, 1.0), other])


def pale(color: Any, white: float) -> tuple[float, ...]:
    """A color with that share of white in it."""
    from matplotlib.colors import to_rgb

    return tuple(white + (1 - white) * np.asarray(to_rgb(color)))


def layer_colors(layers: int) -> Any:
    """As in all pictures: dark for the first layer, light for the last, short of yellow."""
    from matplotlib import colormaps

    return colormaps["viridis"](np.linspace(0, 0.92, layers))
