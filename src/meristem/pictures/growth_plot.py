"""Training by epoch: losses above, sizes below, changes of the learning rate, and the epoch whose model was kept."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from meristem.pictures import figure_style
from meristem.pictures.figure_style import COLORS, GREY, GRID, INK, SERIES, Axes

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
    estimator, position = figure_style.first_estimator(estimator)
    if not (hasattr(estimator, "history_") and hasattr(estimator, "network_")):
        raise figure_style.not_drawable("plot_growth()", "a fitted estimator of meristem", estimator)
    best_epoch, epochs = int(estimator.best_epoch_), len(estimator.history_["loss"])
    with figure_style.canvas("axes", axes, size=(7.0, 5.4), rows=2) as both:
        draw_growth(both, [estimator])
        text = f"epoch {best_epoch} of {epochs} is kept" if best_epoch else "no epoch was finite"
        figure_style.set_title(both[0], f"{name}, network {position}" if position else name, text, pad=22)
    return both


def draw_growth(axes: Any, estimators: Sequence[Any]) -> None:
    """Draw losses and sizes on two Axes: one network in full; of several the validation loss and the soft size of each."""
    losses, sizes = axes
    single = estimators[0] if len(estimators) == 1 else None
    is_tree = single is not None and bool(single.network_.capacity)
    sizes.set(xlabel="epoch", ylabel="size of the tree" if is_tree else "soft size")
    for number, estimator in enumerate(estimators):
        history, best_epoch, color = estimator.history_, int(estimator.best_epoch_), SERIES[number % (len(SERIES) - 1)]
        styles = {"dev_loss": {"color": color}, "soft_size": {"color": color}} if single is None else _styles_in_full(single)
        for name, style in styles.items():
            ax = losses if "loss" in name else sizes
            ring_at = None if name == "loss" and "dev_loss" in styles else best_epoch
            label = "kept model" if ax is losses else "_"
            figure_style.plot_curve(ax, history[name], ring_at=ring_at, ring_label=label, **style)
    if single is not None and not is_tree and (layers := single.history_["layer_sizes"].shape[1]) > 1:
        figure_style.plot_layer_sizes(sizes, single.history_["layer_sizes"])
        # A narrow inset beside the axes, which keep their width, so that the epochs of both axes are aligned.
        figure_style.layer_colorbar(sizes.figure, layers, cax=sizes.inset_axes((1.015, 0, 0.02, 1)))
    sizes.yaxis.get_major_locator().set_params(integer=is_tree)
    figure_style.from_zero(sizes, min_span=3.2 if is_tree else 0.5)
    names = ("dev_loss",) if single is None else ("loss", "dev_loss")
    _scale_losses(losses, [estimator.history_[name] for estimator in estimators for name in names])
    epochs = max(len(estimator.history_["loss"]) for estimator in estimators)
    rate = np.zeros(0) if single is None else single.history_["rate"]
    for ax in axes:
        margin = max(0.5, 0.02 * epochs)
        ax.set_xlim(1 - margin, epochs + margin)
        ax.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
        ax.grid(axis="y", color=GRID)
        ax.set_axisbelow(True)
        figure_style.mark_changes(ax, rate, "rate changes")
    _label_rates(losses, rate)
    _add_legend(losses, sizes)


def _styles_in_full(estimator: Any) -> dict[str, dict[str, Any]]:
    """Return the style of each curve by its name in the history; without a validation set, dev_loss is the training loss."""
    losses = {f"{prefix}loss": {"label": label, "color": color} for prefix, (label, color, _) in figure_style.PARTS.items()}
    if np.array_equal(estimator.history_["loss"], estimator.history_["dev_loss"], equal_nan=True):
        del losses["dev_loss"]
    if not estimator.network_.capacity:
        return losses | {"soft_size": {"label": "all layers", "color": INK, "linewidth": 2.0}}
    steps = {"label": "hard size", "color": INK, "drawstyle": "steps-post", "linewidth": 1.0}
    return losses | {"hard_size": steps, "soft_size": {"label": "soft size", "color": COLORS["budding"]}}


def _scale_losses(ax: Axes, losses: Sequence[np.ndarray]) -> None:
    """Scale from 0 on; the much larger first epochs may leave through the top. Logarithmic where magnitudes differ."""
    ax.set_ylabel("loss")
    later = np.concatenate([values[len(values) // 20 :] for values in losses])
    later = later[np.isfinite(later)]
    if later.size and later.min() > 0 and np.log10(later.max() / later.min()) > LOG_DECADES:
        ax.set(yscale="log", ylabel="loss (log scale)")
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter("")
        return
    figure_style.from_zero(ax, min_span=1e-6)
    top = 1.1 * later.max(initial=0)
    if 0 < top < 0.7 * ax.get_ylim()[1]:
        ax.set_ylim(-0.025 * top, top)


def _label_rates(ax: Axes, rate: np.ndarray) -> None:
    """Write each new rate above the curves, where it starts, if it lasts long enough to have room."""
    starts = figure_style.change_points(rate)
    if starts.size:
        low, high = ax.get_ylim()
        ax.set_ylim(top=high * (high / low) ** 0.28 if ax.get_yscale() == "log" else high + 0.28 * (high - low))
    style: dict[str, Any] = {"rotation": 90, "ha": "left", "va": "top", "fontsize": "small", "color": GREY}
    for start, end in zip(starts, np.append(starts, len(rate) + 1.5)[1:], strict=True):
        if end - start > 0.035 * len(rate):
            ax.annotate(f"{rate[int(start)]:.2g}", (start, 1), (2, -2), ax.get_xaxis_transform(), "offset points", **style)


def _add_legend(losses: Axes, sizes: Axes) -> None:
    """Add a legend above both axes, where it hides no curve: one row, or two where the axes are narrow."""
    handles = {label: handle for ax in (losses, sizes) for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    labels = sorted(handles, key=lambda label: label in LAST_LABELS)
    columns = len(labels) if figure_style.axes_inches(losses)[0] > 5 else 3
    place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "borderaxespad": 0.2, "frameon": False, "fontsize": "small"}
    spaces = {"columnspacing": 1.1, "handlelength": 1.4, "handletextpad": 0.5}
    losses.legend([handles[label] for label in labels], labels, ncols=columns, **place, **spaces)
