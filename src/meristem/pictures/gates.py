"""A stack of layers as a heat map: a row per layer, its units sorted by their gate, and numbers at the side.

Above it stand the inputs and the trunk, where they may close (strips.py).
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from meristem.pictures.canvas import canvas, inches, openness_map, titled
from meristem.pictures.sheet import GREY, INK, Axes
from meristem.pictures.strips import CLOSED, Strip, draw_strip

SIDE = 1.75  # inches for the two columns of numbers
ROWS = 25  # of numbers, at most


@dataclass(frozen=True)
class GatePicture:
    """What is drawn and said."""

    gates: np.ndarray  # [layers, units], 0 … 1
    title: tuple[str, str]  # what it is, and what is said of it
    label: str | None  # what a gate's color is; None: there are no gates
    summed: str  # what the sum of a layer's gates is
    counted: str  # what `is_counted` counts
    is_counted: np.ndarray  # [layers, units]
    strips: list[Strip] = field(default_factory=list)  # from top to bottom


def draw_gates(picture: GatePicture, ax: Any) -> Axes:
    """The heat map; columns of numbers stand inside the axes, so that they fit wherever these are."""
    layers, units = picture.gates.shape
    rows = min(max(layers, 3), ROWS) + len(picture.strips)
    with canvas("ax", ax, size=(7.6, 1.9 + 0.3 * rows)) as (ax,):
        ordered = -np.sort(-picture.gates, axis=1)
        colors = openness_map().with_extremes(bad=CLOSED)
        shading = ax.imshow(np.ma.masked_equal(ordered, 0), cmap=colors, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
        _rules(ax, layers, units)
        _closed(ax, ordered)
        _numbers(ax, picture)
        _strips(ax, picture)
        titled(ax, *picture.title, pad=30)
        ax.set_ylabel("layer")
        ax.set_xlabel("units, sorted by their gate" if picture.label else "units")
        if picture.label:
            _bar(ax, shading, picture.label)
    return ax


def _bar(ax: Axes, shading: Any, label: str) -> None:
    """Below; a layout that knows nothing of labels is told how much room they take."""
    engine = ax.figure.get_layout_engine()
    room = {} if engine and engine.adjust_compatible is False else {"pad": min(0.5, 0.6 / max(inches(ax)[1], 0.1))}
    bar = ax.figure.colorbar(shading, ax=ax, location="bottom", shrink=0.5, aspect=30, ticks=[0, 0.5, 1], **room)
    bar.ax.set_xticklabels(["0", "½", "1"])
    bar.set_label(label)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)


def _strips(ax: Axes, picture: GatePicture) -> None:
    """Above the layers, each as high as one of them where there are few."""
    if not picture.strips:
        return
    layers, units = picture.gates.shape
    step, top = _step(layers), _top(picture)
    ax.set_ylim(layers - 0.5, top)
    places = top + step * (np.arange(len(picture.strips)) + 0.5)
    for strip, y in zip(picture.strips, places, strict=True):
        draw_strip(ax, strip, -0.5, units - 0.5, float(y), height=0.8 * step)
    ticks, labels = ax.get_yticks(), [label.get_text() for label in ax.get_yticklabels()]
    ax.set_yticks([*places, *ticks], [*(strip.name for strip in picture.strips), *labels])


def _step(layers: int) -> float:
    """The height of a strip, in layers."""
    return max(1.0, layers / ROWS)


def _top(picture: GatePicture) -> float:
    """Where the picture ends above."""
    return -0.5 - (len(picture.strips) + 0.25 * bool(picture.strips)) * _step(len(picture.gates))


def _rules(ax: Axes, layers: int, units: int) -> None:
    """White between rows, and between units while there are few."""
    for side in ax.spines.values():
        side.set_visible(False)
    ax.hlines(np.arange(1, layers) - 0.5, -0.5, units - 0.5, color="white", linewidth=2 if layers <= ROWS else 0.5)
    if units <= 100:
        ax.vlines(np.arange(1, units) - 0.5, -0.5, layers - 0.5, color="white", linewidth=0.6)
    step = -(-layers // ROWS)
    ax.set_yticks(np.arange(0, layers, step), [str(layer + 1) for layer in range(0, layers, step)])
    ax.tick_params(length=0)


def _closed(ax: Axes, gates: np.ndarray) -> None:
    layers, units = gates.shape
    if layers <= ROWS:
        for layer in np.flatnonzero(~gates.any(1)):
            ax.text(
                units / 2 - 0.5, layer, "copies its input", ha="center", va="center", fontsize=8, color=GREY, style="italic"
            )


def _numbers(ax: Axes, picture: GatePicture) -> None:
    from matplotlib.ticker import MaxNLocator

    layers, units = picture.gates.shape
    share = min(0.45, SIDE / max(inches(ax)[0], 0.1))
    room = units * share / (1 - share)
    columns = [(picture.summed, [f"{size:.2f}" for size in picture.gates.sum(1)])]
    columns += [(picture.counted, [str(count) for count in picture.is_counted.sum(1)])]
    aside = [[f"{strip.gates.sum():.2f}" for strip in picture.strips], [str(strip.is_open.sum()) for strip in picture.strips]]
    for place, (name, numbers), others in zip((0.3, 0.78), columns, aside, strict=True):
        x = units - 0.5 + place * room
        for row, number in enumerate(others):
            y = _top(picture) + _step(layers) * (row + 0.5)
            ax.text(x, y, number, ha="center", va="center", fontsize=9, color=INK)
        ax.annotate(
            name, (x, _top(picture)), (0, 5), textcoords="offset points", ha="center", va="bottom", fontsize=8, color=GREY
        )
        for layer in range(0, layers, -(-layers // ROWS)):
            ax.text(x, layer, numbers[layer], ha="center", va="center", fontsize=9, color=INK)
    ax.set_xlim(-0.5, units - 0.5 + room)
    between = [int(tick) for tick in MaxNLocator(4, integer=True).tick_values(1, units) if 0.15 < tick / units < 0.9]
    ticks = list(range(1, units + 1)) if units <= 12 else [1, *between, units]
    ax.set_xticks([tick - 1 for tick in ticks], [str(tick) for tick in ticks])
