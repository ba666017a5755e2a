"""How a network grew: losses and sizes against the epoch, what the learning rate did, and which epoch was kept."""

from typing import Any

import numpy as np

from meristem.pictures.advice import not_drawn
from meristem.pictures.axes import from_zero
from meristem.pictures.bag import first_of
from meristem.pictures.canvas import canvas, titled
from meristem.pictures.curves import CUT_LINE, PARTS, changes, layer_bar, layer_lines, line, ring
from meristem.pictures.sheet import GREY, INK, TREE, Axes

History = dict[str, np.ndarray]
LAST = ("kept model", "rate changes")  # in the legend
DECADES = 1.5  # of loss, from where it is drawn on a log scale: at the foot of a linear one nothing is told apart


def plot_growth(estimator: Any, *, axes: Any = None) -> np.ndarray:
    """Draw a fitted estimator's training, and return the two Axes: losses, and below them sizes.

    The training loss is red, the validation loss blue, if there was one to choose by. Of a stack of layers the soft size of
    each layer and their sum are drawn, of a tree its soft size and its number of nodes. The ring is the model that was kept,
    dashed lines are changes of the learning rate. Of a bag of networks the first is drawn; any other is drawn of
    `model.estimators_[1]`. `axes`: two Axes to draw on; without them a new figure is made.

    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import make_moons
    >>> from meristem.estimators import TunnelClassifier
    >>> model = TunnelClassifier(max_epochs=3, random_state=0).fit(*make_moons(100, random_state=0))
    >>> [ax.get_ylabel() for ax in plot_growth(model, axes=Figure().subplots(2, 1))]
    ['loss', 'soft size']
    """
    name = type(estimator).__name__
    estimator, which = first_of(estimator)
    history, kept = _history(estimator), int(estimator.best_epoch_)
    with canvas("axes", axes, size=(7.0, 5.4), rows=2) as drawn:
        losses, sizes = drawn
        _losses(losses, history, kept)
        if not estimator.network_.capacity:
            _layer_sizes(sizes, history, kept)
        else:
            _tree_sizes(sizes, history, kept)
        epochs = len(history["loss"])
        for ax in drawn:
            margin = max(0.5, 0.02 * epochs)
            ax.set_xlim(1 - margin, epochs + margin)
            ax.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
            ax.grid(axis="y", color="#E6E6E6")
            ax.set_axisbelow(True)
            _rate_changes(ax, history["rate"])
        _rates(losses, history["rate"])
        sizes.set_xlabel("epoch")
        _legend(losses, sizes)
        what = f"epoch {kept} of {epochs} is kept" if kept else "no epoch was finite"
        titled(losses, f"{name}, network {which}" if which else name, what, pad=22)
    return drawn


def _history(estimator: Any) -> History:
    if hasattr(estimator, "history_") and hasattr(estimator, "network_"):
        return estimator.history_
    raise not_drawn("plot_growth()", "a fitted estimator of meristem", estimator)


def _losses(ax: Axes, history: History, kept: int) -> None:
    # Without a validation set the training loss is recorded in its place.
    is_validated = not np.array_equal(history["loss"], history["dev_loss"], equal_nan=True)
    for prefix in ("", "dev_") if is_validated else ("",):
        name, color, _ = PARTS[prefix]
        line(ax, history[f"{prefix}loss"], color=color, label=name)
    prefix = "dev_" if is_validated else ""
    _ring(ax, history[f"{prefix}loss"], kept, PARTS[prefix][1], label="kept model")
    ax.set_ylabel("loss")
    _loss_scale(ax, [history["loss"], history[f"{prefix}loss"]])


def _loss_scale(ax: Axes, curves: list[np.ndarray]) -> None:
    """From 0 on; the first epochs, far off, may leave through the top. Logarithmic where losses differ in magnitude."""
    later = np.concatenate([curve[len(curve) // 20 :] for curve in curves])
    later = later[np.isfinite(later)]
    if later.size and later.min() > 0 and np.log10(later.max() / later.min()) > DECADES:
        ax.set_yscale("log")
        ax.set_ylabel("loss (log scale)")
        return
    from_zero(ax, least=1e-6)
    top = 1.1 * later.max(initial=0)
    if 0 < top < 0.7 * ax.get_ylim()[1]:
        ax.set_ylim(-0.025 * top, top)


def _layer_sizes(ax: Axes, history: History, kept: int) -> None:
    """The sum in ink, and a line per layer, the first on top."""
    layers = history["layer_sizes"].shape[1]
    line(ax, history["soft_size"], color=INK, linewidth=2.0, label="all layers")
    _ring(ax, history["soft_size"], kept, INK)
    if layers > 1:
        layer_lines(ax, history["layer_sizes"])
        # A narrow strip beside the axes, which keep their width: epochs stand below epochs.
        layer_bar(ax.figure, layers, cax=ax.inset_axes((1.015, 0, 0.02, 1)))
    ax.set_ylabel("soft size")
    from_zero(ax)


def _tree_sizes(ax: Axes, history: History, kept: int) -> None:
    line(ax, history["hard_size"], color=INK, label="hard size", drawstyle="steps-post", linewidth=1.0)
    line(ax, history["soft_size"], color=TREE, label="soft size")
    _ring(ax, history["hard_size"], kept, INK)
    _ring(ax, history["soft_size"], kept, TREE)
    ax.set_ylabel("size of the tree")
    ax.yaxis.get_major_locator().set_params(integer=True)
    from_zero(ax, least=3.2)


def _ring(ax: Axes, values: np.ndarray, kept: int, color: str, label: str | None = None) -> None:
    if kept:
        ax.plot(kept, values[kept - 1], linestyle="", zorder=4, clip_on=False, label=label, **ring(color))


def _rate_changes(ax: Axes, rate: np.ndarray) -> None:
    """Between the last epoch of one rate and the first of the next."""
    for i, change in enumerate(changes(rate)):
        ax.axvline(change, zorder=1.8, label="_" if i else "rate changes", **CUT_LINE)


def _rates(ax: Axes, rate: np.ndarray) -> None:
    """Each new rate, where it begins, above the curves; if it lasts long enough for the number to find room."""
    begins = changes(rate)
    if begins.size:
        low, high = ax.get_ylim()
        ax.set_ylim(top=high * (high / low) ** 0.28 if ax.get_yscale() == "log" else high + 0.28 * (high - low))
    for begin, end in zip(begins, np.append(begins, len(rate) + 1.5)[1:], strict=True):
        if end - begin > 0.035 * len(rate):
            style: dict[str, Any] = {"rotation": 90, "ha": "left", "va": "top", "fontsize": 8, "color": GREY}
            number = f"{rate[int(begin)]:.2g}"
            ax.annotate(number, (begin, 1), (2, -2), ax.get_xaxis_transform(), "offset points", **style)


def _legend(losses: Axes, sizes: Axes) -> None:
    """One row above both, where it hides no line."""
    names = {label: handle for ax in (losses, sizes) for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    order = sorted(names, key=lambda label: label in LAST)
    place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "borderaxespad": 0.2, "frameon": False, "fontsize": 8.5}
    spaces = {"columnspacing": 1.1, "handlelength": 1.4, "handletextpad": 0.5}
    losses.legend([names[label] for label in order], order, ncols=len(order), **place, **spaces)
