"""The training of an estimator: losses and sizes against the epoch, changes of the learning rate, and the best epoch."""

from typing import Any

import numpy as np

from meristem.pictures.curves import (
    CUT_LINE,
    PARTS,
    change_points,
    from_zero,
    layer_colorbar,
    plot_curve,
    plot_layer_sizes,
    ring,
)
from meristem.pictures.figure_style import GREY, INK, TREE, Axes, canvas, first_estimator, not_drawable, set_title

History = dict[str, np.ndarray]
LAST_LABELS = ("kept model", "rate changes")  # of the legend
LOG_DECADES = 1.5  # losses that span more are drawn on a log scale


def plot_growth(estimator: Any, *, axes: Any = None) -> np.ndarray:
    """Draw a fitted estimator's training, and return the two Axes: losses, and below them sizes.

    The training loss is red, the validation loss blue, if there was one. A stack of layers is drawn by the soft size of each
    layer and their sum, a tree by its soft size and its number of nodes. The ring marks the model that was kept, dashed lines
    changes of the learning rate. Of a bag of networks the first is drawn; pass `model.estimators_[1]` for another. `axes`:
    two Axes to draw on; without them a new figure is made.

    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import make_moons
    >>> from meristem.estimators import TunnelClassifier
    >>> model = TunnelClassifier(max_epochs=3, random_state=0).fit(*make_moons(100, random_state=0))
    >>> [ax.get_ylabel() for ax in plot_growth(model, axes=Figure().subplots(2, 1))]
    ['loss', 'soft size']
    """
    name = type(estimator).__name__
    estimator, position = first_estimator(estimator)
    if not (hasattr(estimator, "history_") and hasattr(estimator, "network_")):
        raise not_drawable("plot_growth()", "a fitted estimator of meristem", estimator)
    history, best_epoch = estimator.history_, int(estimator.best_epoch_)
    epochs = len(history["loss"])
    with canvas("axes", axes, size=(7.0, 5.4), rows=2) as both:
        losses, sizes = both
        _plot_losses(losses, history, best_epoch)
        (_plot_tree_sizes if estimator.network_.capacity else _plot_stack_sizes)(sizes, history, best_epoch)
        for ax in both:
            margin = max(0.5, 0.02 * epochs)
            ax.set_xlim(1 - margin, epochs + margin)
            ax.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
            ax.grid(axis="y", color="#E6E6E6")
            ax.set_axisbelow(True)
            for i, change in enumerate(change_points(history["rate"])):
                ax.axvline(change, zorder=1.8, label="_" if i else "rate changes", **CUT_LINE)
        _label_rates(losses, history["rate"])
        sizes.set_xlabel("epoch")
        _add_legend(losses, sizes)
        text = f"epoch {best_epoch} of {epochs} is kept" if best_epoch else "no epoch was finite"
        set_title(losses, f"{name}, network {position}" if position else name, text, pad=22)
    return both


def _plot_losses(ax: Axes, history: History, best_epoch: int) -> None:
    # Without a validation set the training loss is recorded in its place.
    is_validated = not np.array_equal(history["loss"], history["dev_loss"], equal_nan=True)
    for prefix in ("", "dev_") if is_validated else ("",):
        label, color, _ = PARTS[prefix]
        plot_curve(ax, history[f"{prefix}loss"], color=color, label=label)
    prefix = "dev_" if is_validated else ""
    _ring(ax, history[f"{prefix}loss"], best_epoch, PARTS[prefix][1], label="kept model")
    ax.set_ylabel("loss")
    # From 0 on; the much larger first epochs may leave through the top. Logarithmic where losses differ in magnitude.
    later = np.concatenate([curve[len(curve) // 20 :] for curve in (history["loss"], history[f"{prefix}loss"])])
    later = later[np.isfinite(later)]
    if later.size and later.min() > 0 and np.log10(later.max() / later.min()) > LOG_DECADES:
        ax.set_yscale("log")
        ax.set_ylabel("loss (log scale)")
        return
    from_zero(ax, min_span=1e-6)
    top = 1.1 * later.max(initial=0)
    if 0 < top < 0.7 * ax.get_ylim()[1]:
        ax.set_ylim(-0.025 * top, top)


def _plot_stack_sizes(ax: Axes, history: History, best_epoch: int) -> None:
    layers = history["layer_sizes"].shape[1]
    plot_curve(ax, history["soft_size"], color=INK, linewidth=2.0, label="all layers")
    _ring(ax, history["soft_size"], best_epoch, INK)
    if layers > 1:
        plot_layer_sizes(ax, history["layer_sizes"])
        # A narrow inset beside the axes, which keep their width, so that the epochs of both axes are aligned.
        layer_colorbar(ax.figure, layers, cax=ax.inset_axes((1.015, 0, 0.02, 1)))
    ax.set_ylabel("soft size")
    from_zero(ax)


def _plot_tree_sizes(ax: Axes, history: History, best_epoch: int) -> None:
    plot_curve(ax, history["hard_size"], color=INK, label="hard size", drawstyle="steps-post", linewidth=1.0)
    plot_curve(ax, history["soft_size"], color=TREE, label="soft size")
    _ring(ax, history["hard_size"], best_epoch, INK)
    _ring(ax, history["soft_size"], best_epoch, TREE)
    ax.set_ylabel("size of the tree")
    ax.yaxis.get_major_locator().set_params(integer=True)
    from_zero(ax, min_span=3.2)


def _ring(ax: Axes, values: np.ndarray, epoch: int, color: str, label: str | None = None) -> None:
    if epoch:
        ax.plot(epoch, values[epoch - 1], linestyle="", zorder=4, clip_on=False, label=label, **ring(color))


def _label_rates(ax: Axes, rate: np.ndarray) -> None:
    """Write each new rate above the curves, where it starts, if it lasts long enough to have room."""
    starts = change_points(rate)
    if starts.size:
        low, high = ax.get_ylim()
        ax.set_ylim(top=high * (high / low) ** 0.28 if ax.get_yscale() == "log" else high + 0.28 * (high - low))
    style: dict[str, Any] = {"rotation": 90, "ha": "left", "va": "top", "fontsize": 8, "color": GREY}
    for start, end in zip(starts, np.append(starts, len(rate) + 1.5)[1:], strict=True):
        if end - start > 0.035 * len(rate):
            ax.annotate(f"{rate[int(start)]:.2g}", (start, 1), (2, -2), ax.get_xaxis_transform(), "offset points", **style)


def _add_legend(losses: Axes, sizes: Axes) -> None:
    """Add one row above both axes, where it hides no curve."""
    handles = {label: handle for ax in (losses, sizes) for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    labels = sorted(handles, key=lambda label: label in LAST_LABELS)
    place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "borderaxespad": 0.2, "frameon": False, "fontsize": 8.5}
    spaces = {"columnspacing": 1.1, "handlelength": 1.4, "handletextpad": 0.5}
    losses.legend([handles[label] for label in labels], labels, ncols=len(labels), **place, **spaces)
