"""What all figures share: the style, names and colors of models, a grid of axes, a legend, and the axes that users pass in."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from meristem.check import is_installed

Axes = Any  # matplotlib's types; it is imported inside functions, since importing this package must not need it
Figure = Any

# The paper's models; any other model is called by its own name and gets the next free color.
NAMES = {"tunnel": "tunnel", "highway": "highway", "highway-penalized": "penalized highway", "budding": "budding"}
COLORS = {"tunnel": "#0072B2", "highway": "#E69F00", "highway-penalized": "#CC79A7", "budding": "#009E73"}  # Okabe and Ito's
FREE_COLORS = ("#D55E00", "#56B4E9", "#8C564B", "#7F7F7F")
TREE = COLORS["budding"]  # the soft size of a tree
CLASSES = ("#0072B2", "#D55E00")
SERIES = ("#0072B2", "#CC3311", "#009E73", "#AA4499", "#B3235A", "#756400", "#777777")  # the last one is grey
INK, GREY, GRID, OTHER = "#333333", "#666666", "#E6E6E6", "#BDBDBD"
HANDLE_INCHES, LETTER_INCHES = 0.48, 0.078  # approximate widths in a legend: a handle with its padding, and a letter
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
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "lines.linewidth": 1.6,
    "savefig.dpi": 150,
}


def have_matplotlib() -> bool:
    return is_installed("matplotlib")


def require_matplotlib() -> None:
    if not have_matplotlib():
        raise ImportError("Pictures need matplotlib; install it with `pip install 'meristem-nn[cli]'`.")


def model_label(model: str) -> str:
    """Return the name of a model in figures: 'penalized highway' for 'highway-penalized'."""
    return NAMES.get(model, model.replace("-", " "))


def model_colors(models: Sequence[str]) -> dict[str, Any]:
    """Return a distinct color for each model."""
    others = [model for model in models if model not in COLORS]
    assigned = COLORS | dict(zip(others, distinct_colors(FREE_COLORS, len(others)), strict=False))
    return {model: assigned[model] for model in models}


def distinct_colors(named: Sequence[Any], n: int) -> Sequence[Any]:
    """Return the first n of the named colors, or n of a color map if there are fewer."""
    if n <= len(named):
        return named[:n]
    from matplotlib import colormaps

    return [tuple(color) for color in colormaps["turbo"](np.linspace(0.05, 0.95, n))[:, :3].tolist()]


def figure_grid(
    rows: int, columns: int, *, cell: tuple[float, float], frame: float = 1.1, **options: Any
) -> tuple[Figure, Any]:
    """Return a figure and its axes [rows, columns], of `cell` inches each, with `frame` inches for title and legend."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(4.6, 0.9 + cell[0] * columns), frame + cell[1] * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def legend_below(figure: Figure, colors: Mapping[str, Any], marks: list[Any]) -> None:
    """Add a legend of the models' colors and of `marks`, labeled matplotlib lines, in as many rows as needed."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=color, linewidth=5, label=model_label(model)) for model, color in colors.items()] + marks
    inches = sum(HANDLE_INCHES + LETTER_INCHES * len(handle.get_label()) for handle in handles)
    columns = math.ceil(len(handles) / math.ceil(inches / figure.get_figwidth()))
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, columnspacing=1.4, handlelength=1.5)


def class_colormap(colors: Sequence[Any], white: float) -> Any:
    """Return a color map from one class through white to the other, its ends lightened so that points stand out."""
    from matplotlib.colors import LinearSegmentedColormap

    first, second = (lighten(color, white) for color in colors)
    return LinearSegmentedColormap.from_list("classes", [first, (1.0, 1.0, 1.0), second])


def lighten(color: Any, white: float) -> tuple[float, ...]:
    """Return a color mixed with that share of white."""
    from matplotlib.colors import to_rgb

    return tuple(white + (1 - white) * np.asarray(to_rgb(color)))


def layer_colors(layers: int) -> Any:
    """Return the colors of layers, dark for the first, light for the last."""
    from matplotlib import colormaps

    return colormaps["viridis"](np.linspace(0, 0.92, layers))


@contextmanager
def canvas(name: str, axes: Any, *, size: tuple[float, float], rows: int = 1) -> Iterator[np.ndarray]:
    """Yield Axes [rows]: those passed as the argument `name`, or those of a new pyplot figure of `size` inches in our style.

    Settings of matplotlib are restored, and nothing is shown: notebooks do that, and scripts by `plt.show()`.
    """
    require_matplotlib()
    import matplotlib

    if axes is not None:
        from matplotlib.axes import Axes as MatplotlibAxes

        array = np.ravel(np.asarray(axes, object))
        if not all(isinstance(ax, MatplotlibAxes) for ax in array):
            raise ValueError(f"{name}={axes!r} must be matplotlib's Axes, as plt.subplots({rows}, 1) makes them.")
        if len(array) != rows:
            raise ValueError(f"{name} holds {len(array)} Axes; this picture has {rows}: plt.subplots({rows}, 1).")
        yield array
        return
    import matplotlib.pyplot as plt

    # The first drawing loads the backend, and that of a notebook turns interactive mode on: a setting that must not be
    # restored with ours, or no later figure would be shown.
    plt.draw_if_interactive()
    with matplotlib.rc_context(STYLE):
        axes = plt.subplots(rows, 1, figsize=size, layout="constrained", sharex=True, squeeze=False)[1][:, 0]
        for ax in axes:  # ticks are made when the figure is shown, after the settings are restored
            ax.tick_params(labelsize=STYLE["xtick.labelsize"])
        yield axes


def axes_inches(ax: Axes) -> tuple[float, float]:
    """Return width and height of axes, approximate for a new figure that is not laid out yet."""
    box = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
    return box.width, box.height


def set_title(ax: Axes, name: str, text: str, **style: Any) -> None:
    """Set a title on one line, or on two where the axes are narrow."""
    ax.set_title(f"{name}: {text}" if axes_inches(ax)[0] > 4.6 else f"{name}:\n{text}", **style)


def first_estimator(model: Any) -> tuple[Any, str]:
    """Return the estimator whose network is drawn, the first of a bag, and its position such as "1 of 5" ("" if alone)."""
    estimators = model.estimators_ if hasattr(model, "estimators_") and hasattr(model, "path_") else [model]
    return estimators[0], f"1 of {len(estimators)}" if len(estimators) > 1 else ""


def not_drawable(function: str, drawable: str, model: Any) -> ValueError:
    """Return the error of a plot function that cannot draw `model`, with what to do instead."""
    remedy = "."
    if hasattr(model, "best_estimator_"):
        remedy = "; give it the estimator that it chose: search.best_estimator_."
    elif hasattr(model, "steps"):
        remedy = "; give it the last step: pipeline[-1]."
    elif hasattr(model, "fit"):
        remedy = " that is not fitted; call fit(X, y) first."
    return ValueError(f"{function} draws {drawable}, got a {type(model).__name__}{remedy}")
