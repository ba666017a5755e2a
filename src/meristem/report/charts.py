"""The charts of a report as SVG, drawn with matplotlib; every one has a title and a description with its numbers.

Growth and path are the pictures of `plot_growth` and `Path.plot_path`. Colors follow the page (pictures/image_files.py).
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from meristem.check import many
from meristem.paths.picture import draw_path
from meristem.paths.result import Path, Point
from meristem.pictures.figure_style import GRID, INK, SERIES, Axes
from meristem.pictures.growth_plot import draw_growth
from meristem.pictures.image_files import page_svg
from meristem.report.formatting import count, decimal, interval_text, significant
from meristem.show.elements import Markup, shorten

BLUE, RED, PINK, NEUTRAL = SERIES[0], SERIES[1], SERIES[4], SERIES[-1]
MOST_DOTS, MOST_CLASSES = 400, 12
FLOOR = -0.5  # R² has no lower end: lower scores are drawn here
SMALL = {"fontsize": "small", "parse_math": False}
DIAGONAL = {"color": NEUTRAL, "linestyle": "--", "linewidth": 1.5}


class ChartRow(NamedTuple):
    """A value and its interval; NaN limits: none."""

    name: str
    value: float
    low: float
    high: float


def _draw_rows(ax: Axes, rows: Sequence[ChartRow], colors: Sequence[str], label: str) -> None:
    """Draw the interval of each row, its name at the left and its value at the right."""
    values, lows, highs = np.array([row[1:] for row in rows]).T
    places = np.arange(len(rows))
    if np.isfinite(lows).all():
        ax.hlines(places, lows, highs, colors=colors, linewidth=2)
        for ends in (lows, highs):
            ax.vlines(ends, places - 0.12, places + 0.12, colors=colors, linewidth=2)
    ax.set_yticks(places, [shorten(row.name, 19) for row in rows], color=INK, parse_math=False)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.grid(axis="x")
    ax.xaxis.get_major_locator().set_params(nbins=4)
    ax.set_xlabel(label)
    for place, value in zip(places, values, strict=True):
        ax.annotate(decimal(value), (1, place), (8, 0), ax.get_yaxis_transform(), "offset points", va="center")


def score_chart(measure: str, rows: Sequence[ChartRow]) -> Markup:
    """Return a dot and its 95 % interval for each model, the first one highlighted."""
    lowest, highest = max(FLOOR, min(row.low for row in rows)), max(row.high for row in rows)
    margin = max(0.05 * (highest - lowest), 0.01)

    def draw(ax: Axes) -> None:
        colors = [BLUE] + [NEUTRAL] * (len(rows) - 1)
        _draw_rows(ax, rows, colors, f"{measure} with 95 % interval")
        ax.scatter([max(row.value, lowest) for row in rows], range(len(rows)), s=70, c=colors, zorder=3)
        ax.set_xlim(lowest - margin, highest + margin)
        for text in (ax.get_yticklabels()[0], ax.texts[0]):
            text.set_fontweight("bold")

    numbers = "; ".join(f"{row.name}: {decimal(row.value)}, {interval_text(row.low, row.high)}" for row in rows)
    return page_svg("score", f"Score: {measure}", f"{numbers}.", draw, height=60 + 34 * len(rows))


def importance_chart(rows: Sequence[ChartRow], measure: str) -> Markup:
    """Return a bar for the importance of each input, with ± its standard deviation if that is known."""
    label = f"drop in {measure} when shuffled"

    def draw(ax: Axes) -> None:
        ax.barh(range(len(rows)), [row.value for row in rows], height=0.55, color=BLUE, alpha=0.55)
        _draw_rows(ax, rows, [BLUE] * len(rows), label)

    spreads = (f" ± {decimal(row.high - row.value)}" if np.isfinite(row.high) else "" for row in rows)
    numbers = "; ".join(
        f"{shorten(row.name, 60)}: {decimal(row.value)}{spread}" for row, spread in zip(rows, spreads, strict=True)
    )
    return page_svg("importance", "Input importance", f"{label}: {numbers}.", draw, height=60 + 22 * len(rows))


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
        ax.spines[:].set_visible(False)

    names = [shorten(label, 40) for label in labels]
    rows = (", ".join(f"{count(n)} as {name}" for n, name in zip(row, names, strict=True) if n) for row in counts)
    numbers = "; ".join(f"{name}: {row}" for name, row in zip(names, rows, strict=True) if row)
    return page_svg("confusion", "Confusion matrix", f"{numbers}.", draw, height=min(360, 50 + 72 * n))


def error_chart(true: np.ndarray, predicted: np.ndarray, target: str, description: str) -> Markup:
    """Return a dot for each row [rows], or for some of very many, and the line of perfect predictions."""
    n = len(true)
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


def calibration_chart(bins: Sequence[Bin], x_label: str, y_label: str, *, is_share: bool) -> Markup:
    """Return observed against predicted values; on the diagonal both are the same. Shares go from 0 to 1."""

    def draw(ax: Axes) -> None:
        predicted, observed, low, high, _ = np.array(bins).T
        ax.axline((predicted[0], predicted[0]), slope=1, **DIAGONAL)
        ax.errorbar(predicted, observed, (observed - low, high - observed), fmt="o", color=BLUE, capsize=4, elinewidth=2)
        _label_axes(ax, x_label, y_label)
        if is_share:
            ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))

    numbers = (f"predicted {significant(p)}, observed {significant(o)} in {many(n, 'row')}" for p, o, *_, n in bins)
    return page_svg("calibration", "Calibration", f"{'; '.join(numbers)}.", draw)


def _label_axes(ax: Axes, x_label: str, y_label: str) -> None:
    ax.set_xlabel(x_label, parse_math=False)
    ax.set_ylabel(y_label, parse_math=False)
    ax.grid(axis="y")


def growth_chart(members: Sequence[Any]) -> Markup:
    """Return losses and sizes by epoch, of one network in full, of several as a line each."""
    numbers = []
    for number, member in enumerate(members, 1):
        losses, sizes = member.history_["dev_loss"].tolist(), member.history_["hard_size"].tolist()
        kept = member.best_epoch_ - 1
        numbers.append(
            f"network {number}: {many(member.n_iter_, 'epoch')}, best epoch {member.best_epoch_}, loss from "
            f"{significant(losses[0])} to {significant(losses[kept])}, hard size from {count(sizes[0])} to {count(sizes[kept])}"
        )
    description = f"{'; '.join(numbers)}."
    return page_svg(
        "growth", "Loss and size by epoch", description, lambda *axes: draw_growth(axes, members), height=400, rows=2
    )


def path_chart(path: Path, marks: Mapping[str, Point], description: str) -> Markup:
    """Return losses and sizes against the penalty, with the points `marks` marked."""
    title = f"Error and size at {many(len({point.penalty for point in path.points}), 'penalty', 'penalties')}"
    return page_svg("path", title, description, lambda above, below: draw_path(above, below, path, marks), height=400, rows=2)
