"""What all figures share: style, names and colors of models, axes, legends, curves against the epoch (from 1), and scales."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from meristem.check import is_installed
from meristem.show.measures import Measure

Axes = Any  # matplotlib's types; it is imported inside functions, since importing this package must not need it
Figure = Any
ScaleAxis = Callable[[Axes], None]  # sets the limits of an axis, once everything is painted

# The paper's models, in the order of figures; any other model gets the next free color.
COLORS = {"tunnel": "#0072B2", "highway": "#E69F00", "highway-penalized": "#CC79A7", "budding": "#009E73"}  # Okabe and Ito's
FREE_COLORS = ("#D55E00", "#56B4E9", "#8C564B", "#7F7F7F")
CLASSES = ("#0072B2", "#D55E00")
SERIES = ("#0072B2", "#CC3311", "#009E73", "#AA4499", "#B3235A", "#756400", "#777777")  # the last one is grey
INK, GREY, GRID = "#333333", "#666666", "#E6E6E6"
# The prefix of the measures' names → label of the part, color, light color.
PARTS = {"": ("training", "#CC3311", "#F2C9C0"), "dev_": ("validation", "#0072B2", "#BAD6E8")}
MIN_LABELS = 3  # of an axis, or it could not be read
HANDLE_INCHES, LETTER_INCHES = 0.48, 0.078  # approximate widths in a legend: a handle with its padding, and a letter
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "figure.titlesize": 13,
    "figure.constrained_layout.h_pad": 0.07,
    "figure.constrained_layout.w_pad": 0.06,
    "legend.fontsize": 9.5,
    "axes.titlesize": 11,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "lines.linewidth": 1.6,
    "savefig.dpi": 150,
    **dict.fromkeys(("font.size", "axes.labelsize"), 10),
    **dict.fromkeys(("xtick.labelsize", "ytick.labelsize"), 9),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
}


def have_matplotlib() -> bool:
    return is_installed("matplotlib")


def require_matplotlib() -> None:
    if not have_matplotlib():
        raise ImportError("Pictures need matplotlib; install it with `pip install 'meristem-nn[cli]'`.")


def model_label(model: str) -> str:
    """Return the name of a model in figures: 'penalized highway' for 'highway-penalized'."""
    return "penalized highway" if model == "highway-penalized" else model.replace("-", " ")


def model_colors(models: Sequence[str]) -> dict[str, Any]:
    others = [model for model in models if model not in COLORS]
    assigned = COLORS | dict(zip(others, distinct_colors(FREE_COLORS, len(others)), strict=False))
    return {model: assigned[model] for model in models}


def distinct_colors(named: Sequence[Any], n: int) -> Sequence[Any]:
    """Return the first n of the named colors, or n of a color map if there are fewer."""
    if n <= len(named):
        return named[:n]
    from matplotlib import colormaps

    return [tuple(color) for color in colormaps["turbo"](np.linspace(0.05, 0.95, n))[:, :3].tolist()]


def figure_grid(rows: int, columns: int, cell: tuple[float, float], frame: float = 1.1, **options: Any) -> tuple[Figure, Any]:
    """Return a figure and its axes [rows, columns], of `cell` inches each, with `frame` inches for title and legend."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(4.6, 0.9 + cell[0] * columns), frame + cell[1] * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def legend_below(figure: Figure, colors: Mapping[str, Any], marks: Mapping[str, Mapping[str, Any]]) -> None:
    """Add a legend of the models' colors and of `marks`, label → style of a line, in as many rows as needed."""
    from matplotlib.lines import Line2D

    styles = [(model_label(model), {"color": color, "linewidth": 5}) for model, color in colors.items()]
    handles = [Line2D([], [], label=label, **style) for label, style in [*styles, *marks.items()]]
    inches = sum(HANDLE_INCHES + LETTER_INCHES * len(str(handle.get_label())) for handle in handles)
    columns = math.ceil(len(handles) / math.ceil(inches / figure.get_figwidth()))
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, columnspacing=1.4, handlelength=1.5)


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
    with plt.rc_context(STYLE):
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
    remedies = {
        "best_estimator_": "; give it the estimator that it chose: search.best_estimator_",
        "steps": "; give it the last step: pipeline[-1]",
        "fit": " that is not fitted; call fit(X, y) first",
    }
    remedy = next((words for name, words in remedies.items() if hasattr(model, name)), "")
    return ValueError(f"{function} draws {drawable}, got a {type(model).__name__}{remedy}.")


def plot_curve(ax: Axes, values: np.ndarray, *, ring_at: int | None = None, ring_label: str = "_", **options: Any) -> None:
    """Plot values against their epoch, with a ring at one of them; a line of a single point would be invisible: a dot."""
    ax.plot(np.arange(1, len(values) + 1), values, marker="." if len(values) == 1 else "", **({"linewidth": 1.6} | options))
    if ring_at and ring_at <= len(values):
        ring = {"color": options["color"], "marker": "o", "markersize": 6.5, "markerfacecolor": "white", "markeredgewidth": 1.6}
        ax.plot(ring_at, values[ring_at - 1], label=ring_label, linestyle="", zorder=4, clip_on=False, **ring)


def change_points(values: np.ndarray) -> np.ndarray:
    """Return where values by epoch change, half-way between the two epochs."""
    return np.flatnonzero(np.diff(values)) + 1.5


def mark_changes(ax: Axes, values: np.ndarray, label: str) -> None:
    for change in change_points(values):
        ax.axvline(change, zorder=1.8, label=label, color=GREY, linestyle=(0, (4, 3)), linewidth=0.9)


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
    ax.set_yscale("symlog", linthresh=1, linscale=0.5, subs=range(2, 10))
    top = 1.6 * max(2, ax.get_ylim()[1])
    ax.set_ylim(-0.05, top)
    ax.set_yticks([0.0, *log_ticks(top, MIN_LABELS - 1)])
    ax.yaxis.set_major_formatter("{x:g}")


def scale_epochs(ax: Axes, never: float | None) -> None:
    """Scale the y axis logarithmically from 1, with a level at `never` for runs that do not arrive (None: all do)."""
    top = max(MIN_LABELS + 0.5, 1.6 * ax.get_ylim()[1])
    ticks = log_ticks(top if never is None else min(top, 0.6 * never))
    labels = [f"{tick:.0f}" for tick in ticks]
    if never is not None:
        ax.axhline(never, color=GREY, linewidth=0.8, linestyle=":", zorder=1)
        top, ticks, labels = 1.4 * never, [*ticks, never], [*labels, "never"]
    ax.set_yscale("log", subs=[])
    ax.set_ylim(0.75, top)
    ax.set_yticks(ticks, labels)
