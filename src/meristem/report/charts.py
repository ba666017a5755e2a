"""The charts of a report as SVG, drawn with matplotlib; every one has a title and a description with its numbers.

Colors follow the page (pictures/image_files.py).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from meristem.pictures.figure_style import GRID, INK, SERIES, Axes
from meristem.pictures.image_files import page_svg
from meristem.report.formatting import count, decimal
from meristem.show.elements import Markup, shorten

BLUE, RED, PINK, NEUTRAL = SERIES[0], SERIES[1], SERIES[4], SERIES[-1]
MOST_DOTS, MOST_CLASSES, MOST_EXTREME = 400, 12, 1e100
FLOOR = -0.5  # R² has no lower end: lower scores are drawn here
SMALL = {"fontsize": "small", "parse_math": False}
DIAGONAL = {"color": NEUTRAL, "linestyle": "--", "linewidth": 1.5}


def _drawable(values: Any) -> np.ndarray:
    """Return values whose span does not overflow; what is not finite is not drawn."""
    values = np.asarray(values, float)
    return np.where(np.isfinite(values), np.clip(values, -MOST_EXTREME, MOST_EXTREME), np.nan)


def _draw_rows(ax: Axes, names: Sequence[str], values: np.ndarray, colors: Sequence[str], label: str) -> None:
    """Draw the interval of each row of values [rows, (value, low, high)], its name at the left and its value at the right."""
    places, (middles, lows, highs) = np.arange(len(names)), values.T
    if np.isfinite(lows).any():
        ax.hlines(places, lows, highs, colors=colors, linewidth=2)
        for ends in (lows, highs):
            ax.vlines(ends, places - 0.12, places + 0.12, colors=colors, linewidth=2)
    ax.set_yticks(places, [shorten(name, 19) for name in names], color=INK, parse_math=False)
    ax.set(ylim=(len(names) - 0.4, -0.6), xlabel=label)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.grid(axis="x")
    ax.xaxis.get_major_locator().set_params(nbins=4)
    for place, value in enumerate(middles.tolist()):
        ax.annotate(decimal(value), (1, place), (8, 0), ax.get_yaxis_transform(), "offset points", va="center")


def score_chart(measure: str, names: Sequence[str], values: np.ndarray, description: str) -> Markup:
    """Return a dot and its interval for each row of values [models, (value, low, high)], the first one highlighted."""
    values = _drawable(values)
    lowest, highest = max(FLOOR, np.nanmin(values)), max(FLOOR, np.nanmax(values))
    margin = max(0.05 * (highest - lowest), 0.01)

    def draw(ax: Axes) -> None:
        colors = [BLUE] + [NEUTRAL] * (len(names) - 1)
        _draw_rows(ax, names, values, colors, f"{measure} with 95 % interval")
        ax.scatter(np.maximum(values[:, 0], lowest), range(len(names)), s=70, c=colors, zorder=3)
        ax.set_xlim(lowest - margin, highest + margin)
        for text in (ax.get_yticklabels()[0], ax.texts[0]):
            text.set_fontweight("bold")

    return page_svg("score", f"Score: {measure}", description, draw, height=60 + 34 * len(names))


def importance_chart(measure: str, names: Sequence[str], values: np.ndarray, description: str) -> Markup:
    """Return a bar for each row of values [columns, (mean, low, high)]; NaN limits: none."""
    values = _drawable(values)

    def draw(ax: Axes) -> None:
        ax.barh(range(len(names)), values[:, 0], height=0.55, color=BLUE, alpha=0.55)
        _draw_rows(ax, names, values, [BLUE] * len(names), f"drop in {measure} when shuffled")

    return page_svg("importance", "Input importance", description, draw, height=60 + 22 * len(names))


def confusion_chart(counts: np.ndarray, labels: Sequence[str]) -> Markup:
    """Return a confusion matrix of counts [true, predicted], shaded by the share of the true class."""
    n, shares = len(labels), counts / np.maximum(counts.sum(1, keepdims=True), 1)

    def draw(ax: Axes) -> None:
        for (true, predicted), number in np.ndenumerate(counts):
            color = GRID if not number else BLUE if true == predicted else PINK
            opacity = 0.06 + 0.64 * shares[true, predicted] if number else 0.5
            ax.broken_barh([(predicted + 0.03, 0.94)], (true + 0.03, 0.94), facecolor=color, alpha=opacity)
            if number:
                ax.text(predicted + 0.5, true + 0.5, count(number), ha="center", va="center", fontsize=12 if n < 8 else 10)
        ax.set_xticks(np.arange(n) + 0.5, [shorten(label, max(2, 40 // n)) for label in labels], color=INK, **SMALL)
        ax.set_yticks(np.arange(n) + 0.5, [shorten(label, 14 if n <= 6 else 9) for label in labels], color=INK, **SMALL)
        ax.tick_params(length=0, top=False, labeltop=True, labelbottom=False)
        ax.set(xlabel="predicted", ylabel="true", ylim=(n, 0), aspect="equal")
        ax.xaxis.set_label_position("top")
        ax.xaxis.labelpad = 8
        ax.spines[:].set_visible(False)

    names = [shorten(label, 40) for label in labels]
    rows = (", ".join(f"{count(n)} as {name}" for n, name in zip(row, names, strict=True) if n) for row in counts)
    numbers = "; ".join(f"{name}: {row}" for name, row in zip(names, rows, strict=True) if row)
    return page_svg("confusion", "Confusion matrix", f"{numbers}.", draw, height=min(360, 50 + 72 * n))


def error_chart(true: np.ndarray, predicted: np.ndarray, target: str, description: str) -> Markup:
    """Return a dot for each row [rows], or for some of very many, and the line of perfect predictions."""
    n, true, predicted = len(true), _drawable(true), _drawable(predicted)
    rows = np.arange(n) if n <= MOST_DOTS else np.random.default_rng(0).choice(n, MOST_DOTS, replace=False)

    def draw(ax: Axes) -> None:
        ax.plot(predicted[rows], true[rows], "o", color=BLUE, alpha=0.5, markersize=5, markeredgewidth=0)
        ax.axline((true[0], true[0]), slope=1, color=RED)
        _label_axes(ax, f"predicted {shorten(target, 30)}", f"true {shorten(target, 30)}")

    return page_svg("residuals", "Predicted and true values", description, draw)


class Bin(NamedTuple):
    """Rows with similar predictions: means of what was predicted and observed, and the 95 % interval of the latter."""

    predicted: float
    observed: float
    low: float
    high: float
    rows: int


def calibration_chart(bins: Sequence[Bin], x_label: str, y_label: str, description: str, *, is_share: bool) -> Markup:
    """Return observed against predicted values; on the diagonal both are the same. Shares go from 0 to 1."""

    def draw(ax: Axes) -> None:
        predicted, observed, low, high, _ = _drawable(bins).T
        ax.axline((predicted[0], predicted[0]), slope=1, **DIAGONAL)
        lengths = np.maximum(0, (observed - low, high - observed))  # rounding may leave a limit on the other side
        ax.errorbar(predicted, observed, lengths, fmt="o", color=BLUE, capsize=4, elinewidth=2)
        _label_axes(ax, x_label, y_label)
        if is_share:
            ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))

    return page_svg("calibration", "Calibration", description, draw)


def _label_axes(ax: Axes, x_label: str, y_label: str) -> None:
    ax.set_xlabel(x_label, parse_math=False)
    ax.set_ylabel(y_label, parse_math=False)
    ax.grid(axis="y")
