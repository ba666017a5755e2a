"""The charts of a report as SVG: scales, axes and marks, and the seven figures made of them; plain data in, Element out.

    x = Scale(0, 10, 50, 390);  x(5) → 220 pixels;  x.ticks() → [(0, '0'), (2, '2'), …]

Colors are classes (s1 … s7, ink, muted, grid), which the page's style defines for light, dark and print. Every figure has a
title and a description with its numbers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from meristem.check import many
from meristem.report.formatting import SUPERSCRIPTS, count, decimal, interval_text, minus, significant, trim_zeros
from meristem.show.elements import WIDTH, Element, el, shorten, svg_figure

LEFT, RIGHT, TOP, BELOW = 52, 10, 24, 42  # margins of a chart, for the texts of its axes
SQUARE, PANEL, GAP = 300, 130, 46  # heights of a square chart and of one of two panels; between the panels
NAMES, VALUES = 134, 58  # widths of the texts left and right of rows
STEPS = (1, 2, 2.5, 5, 10)
MOST_POINTS, MOST_DOTS, MOST_CLASSES = 240, 400, 12
Ends = tuple[float, float]
FLOOR = -0.5  # R² has no lower end: lower scores are drawn here


@dataclass(frozen=True)
class Scale:
    """Maps values low … high to pixels begin … end; both limits of a logarithmic scale are above 0."""

    low: float
    high: float
    begin: float
    end: float
    is_log: bool = False

    def __call__(self, value: float) -> float:
        inside = min(max(value, self.low), self.high)
        low, high, at = (math.log(v) if self.is_log else v for v in (self.low, self.high, inside))
        return self.begin + (self.end - self.begin) * ((at - low) / (high - low) if high > low else 0.5)

    def ticks(self, most: int = 5) -> list[tuple[float, str]]:
        """Return round values and their labels.

        >>> [text for _, text in Scale(0, 1, 0, 100).ticks()], [text for _, text in Scale(1e-4, 1, 0, 1, True).ticks()]
        (['0', '0.2', '0.4', '0.6', '0.8', '1'], ['10⁻⁴', '10⁻³', '0.01', '0.1', '1'])
        """
        span = self.high - self.low
        if self.is_log:
            powers = range(math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9) + 1)
            if len(powers) >= 2:
                return [(10.0**power, _power(power)) for power in powers[:: -(-len(powers) // most)]]
        if self.is_log or span <= 0:
            return [(value, significant(value)) for value in dict.fromkeys((self.low, self.high))]
        unit = 10.0 ** math.floor(math.log10(span / most))
        step = next(unit * factor for factor in STEPS if unit * factor >= span / most * 0.999)
        multiples = range(math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9) + 1)
        digits = max(0, -math.floor(math.log10(step) + 1e-9) + (step / unit == 2.5))
        return [(n * step, _tick(n * step, digits)) for n in multiples]


def _tick(value: float, digits: int) -> str:
    if abs(value) >= 1e6:
        return significant(value)
    return minus(trim_zeros(f"{value:,.{digits}f}")) if float(f"{value:.{digits}f}") else "0"


def _power(power: int) -> str:
    if -2 <= power <= 4:
        return f"{10.0**power:,.0f}" if power >= 0 else f"{10.0**power:g}"
    return f"10{str(power).translate(SUPERSCRIPTS)}"


def limits(values: Sequence[float]) -> Ends:
    """Return the range of the finite values with a margin.

    >>> limits([0.0, 10.0])
    (-0.5, 10.5)
    """
    finite = [value for value in values if math.isfinite(value)] or [0.0]
    low, high = min(finite), max(finite)
    margin = max(0.05 * (high - low), 1e-9, 1e-3 * abs(high) if high == low else 0.0)
    return low - margin, high + margin


def _horizontal(low: float, high: float, *, is_log: bool = False) -> Scale:
    return Scale(low, high, LEFT, WIDTH - RIGHT, is_log)


def _axes(x: Scale, y: Scale, x_label: str, y_label: str) -> list[Element]:
    """Return grid, axes and labels; without an x_label the horizontal axis has no numbers."""
    parts = [el("text", y_label, x=4, y=y.end - 12, class_="muted")]
    for value, text in y.ticks(4):
        parts.append(el("line", x1=x.begin, x2=x.end, y1=y(value), y2=y(value), class_="grid"))
        parts.append(el("text", text, x=x.begin - 6, y=y(value) + 4, class_="muted end"))
    parts.append(el("line", x1=x.begin, x2=x.end, y1=y.begin, y2=y.begin, class_="axis"))
    for value, text in x.ticks() if x_label else []:
        parts.append(el("line", x1=x(value), x2=x(value), y1=y.begin, y2=y.begin + 4, class_="axis"))
        parts.append(el("text", text, x=x(value), y=y.begin + 18, class_="muted middle"))
    label = el("text", x_label, x=(x.begin + x.end) / 2, y=y.begin + 36, class_="muted middle")
    return [*parts, label] if x_label else parts


def _line(x: Scale, y: Scale, xs: Sequence[float], ys: Sequence[float], color: str, style: str = "line") -> Element:
    """Return a line through the finite points, or through some of very many."""
    points = [(a, b) for a, b in zip(xs, ys, strict=True) if math.isfinite(b)]
    if len(points) > MOST_POINTS:
        points = [points[int(n)] for n in np.linspace(0, len(points) - 1, MOST_POINTS)]
    return el("polyline", points=" ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in points), class_=f"{color} {style}")


def _interval(x1: float, y1: float, x2: float, y2: float, color: str) -> list[Element]:
    """Return a horizontal or vertical bar with a cap at each end."""
    dx, dy = (0, 4) if y1 == y2 else (4, 0)
    caps = [el("line", x1=a - dx, x2=a + dx, y1=b - dy, y2=b + dy, class_=f"{color} bar") for a, b in ((x1, y1), (x2, y2))]
    return [el("line", x1=x1, x2=x2, y1=y1, y2=y2, class_=f"{color} bar"), *caps]


def _dot(x: float, y: float, color: str, r: float = 4, style: str = "dot") -> Element:
    return el("circle", cx=x, cy=y, r=r, class_=f"{color} {style}")


# Charts of rows: scores, importances ----------------------------------------------------------------------------------------


class ChartRow(NamedTuple):
    """A value and its interval; NaN limits: none."""

    name: str
    value: float
    low: float
    high: float


def _row_chart(rows: Sequence[ChartRow], x: Scale, label: str, height: float, *, has_bars: bool) -> tuple[list[Element], float]:
    """Return a row for each value, with bars from 0 or with dots, and the height of the chart."""
    bottom = 8 + height * len(rows)
    parts: list[Element] = []
    for value, text in x.ticks(3):
        parts.append(el("line", x1=x(value), x2=x(value), y1=4, y2=bottom, class_="grid"))
        parts.append(el("text", text, x=x(value), y=bottom + 16, class_="muted middle"))
    for number, row in enumerate(rows):
        y, is_first = 8 + height * (number + 0.5), number == 0 and not has_bars
        color, style = "s1" if has_bars or is_first else "s7", " strong" * is_first
        begin, end = sorted((x(0.0), x(row.value)))
        parts.append(el("text", el("title", row.name), shorten(row.name, 19), x=0, y=y + 4, class_=f"ink{style}"))
        if has_bars:
            parts.append(el("rect", x=begin, y=y - 6, width=max(end - begin, 1.0), height=12, class_="s1 soft"))
        parts += _interval(x(row.low), y, x(row.high), y, color) if math.isfinite(row.low) else []
        parts += [] if has_bars else [_dot(x(row.value), y, color, 5)]
        parts.append(el("text", decimal(row.value), x=WIDTH, y=y + 4, class_=f"ink{style} end"))
    parts.append(el("text", label, x=(x.begin + x.end) / 2, y=bottom + 34, class_="muted middle"))
    return parts, bottom + 40


def score_chart(measure: str, rows: Sequence[ChartRow]) -> Element:
    """Return a dot and its 95 % interval for each model, the first one highlighted."""
    low, high = max(FLOOR, min(row.low for row in rows)), max(row.high for row in rows)
    margin = max(0.05 * (high - low), 0.01)
    x = Scale(low - margin, min(1.0, high + margin) if high <= 1 else high + margin, NAMES, WIDTH - VALUES)
    parts, height = _row_chart(rows, x, f"{measure} with 95 % interval", 34, has_bars=False)
    numbers = "; ".join(f"{row.name}: {decimal(row.value)}, {interval_text(row.low, row.high)}" for row in rows)
    return svg_figure("score", f"Score: {measure}", f"{numbers}.", height, parts)


def importance_chart(rows: Sequence[ChartRow], measure: str) -> Element:
    """Return a bar for the importance of each input, with ± its standard deviation if that is known."""
    ends = [0.0, *(end for row in rows for end in row[1:] if math.isfinite(end))]
    x = Scale(min(ends), max(*ends, min(ends) + 1e-9), NAMES, WIDTH - VALUES)
    label = f"drop in {measure} when shuffled"
    parts, height = _row_chart(rows, x, label, 22, has_bars=True)
    spreads = (f" ± {decimal(row.high - row.value)}" if math.isfinite(row.high) else "" for row in rows)
    numbers = "; ".join(
        f"{shorten(row.name, 60)}: {decimal(row.value)}{spread}" for row, spread in zip(rows, spreads, strict=True)
    )
    return svg_figure("importance", "Input importance", f"{label}: {numbers}.", height, parts)


# Charts of predictions: confusion, errors, calibration ----------------------------------------------------------------------


def confusion_chart(counts: np.ndarray, labels: Sequence[str]) -> Element:
    """Return a confusion matrix of counts [true, predicted], shaded by the share of the true class."""
    n, top, letters = len(labels), 44, 14 if len(labels) <= 6 else 9
    left = 12 + 7.2 * min(letters, max(len(label) for label in labels)) + 8
    size = min(72.0, (WIDTH - left) / n)
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    parts = [
        el("text", "predicted", x=left + size * n / 2, y=12, class_="muted middle"),
        el("text", "true", x=0, y=top - 8, class_="muted"),
    ]
    for column, label in enumerate(labels):
        text, x = shorten(label, max(2, int((size - 4) / 6.4))), left + size * (column + 0.5)
        parts.append(el("text", el("title", label), text, x=x, y=top - 8, class_="ink middle small"))
    for row, label in enumerate(labels):
        y = top + size * (row + 0.5)
        parts.append(el("text", el("title", label), shorten(label, letters), x=left - 8, y=y + 4, class_="ink end"))
        for column in range(n):
            share, x = float(shares[row, column]), left + size * column
            box = {"x": x + 1, "y": y - size / 2 + 1, "width": size - 2, "height": size - 2, "rx": 3}
            color, opacity = "s1" if row == column else "s5", round(0.06 + 0.64 * share, 2) if share else 0
            parts += [el("rect", **box, class_="cell"), el("rect", **box, class_=f"{color} soft", fill_opacity=opacity)]
            if counts[row, column]:
                text = count(counts[row, column])
                small = " small" if size < 38 or len(text) > size / 8 else ""
                parts.append(el("text", text, x=x + size / 2, y=y + 4, class_=f"ink middle{small}"))
    names = [shorten(label, 40) for label in labels]
    rows = (", ".join(f"{count(n)} as {name}" for n, name in zip(row, names, strict=True) if n) for row in counts)
    numbers = "; ".join(f"{name}: {row}" for name, row in zip(names, rows, strict=True) if row)
    return svg_figure("confusion", "Confusion matrix", f"{numbers}.", top + size * n + 6, parts)


def error_chart(true: np.ndarray, predicted: np.ndarray, target: str, description: str) -> Element:
    """Return a dot for each row [rows], or for some of very many, and the line of perfect predictions."""
    ends = limits(np.quantile(np.concatenate([true, predicted]), [0, 1]).tolist())
    x, y = _horizontal(*ends), Scale(*ends, TOP + SQUARE, TOP)
    n = len(true)
    rows = np.arange(n) if n <= MOST_DOTS else np.random.default_rng(0).choice(n, MOST_DOTS, replace=False)
    parts = _axes(x, y, f"predicted {shorten(target, 30)}", f"true {shorten(target, 30)}")
    parts += [_dot(x(float(predicted[row])), y(float(true[row])), "s1", 2.6, "faint") for row in rows]
    parts.append(_line(x, y, ends, ends, "s2"))
    return svg_figure("residuals", "Predicted and true values", description, TOP + SQUARE + BELOW, parts)


class Bin(NamedTuple):
    """Rows with similar predictions: means of what was predicted and observed, and the 95 % interval of the latter."""

    predicted: float
    observed: float
    low: float
    high: float
    rows: int


def calibration_chart(bins: Sequence[Bin], x_label: str, y_label: str, *, is_share: bool) -> Element:
    """Return observed against predicted values; on the diagonal both are the same. Shares go from 0 to 1."""
    ends = (0.0, 1.0) if is_share else limits([value for group in bins for value in (group.predicted, group.low, group.high)])
    x, y = _horizontal(*ends), Scale(*ends, TOP + SQUARE, TOP)
    parts = [*_axes(x, y, x_label, y_label), _line(x, y, ends, ends, "s7", "dashed")]
    for group in bins:
        at = x(group.predicted)
        parts += [*_interval(at, y(group.low), at, y(group.high), "s1"), _dot(at, y(group.observed), "s1")]
    numbers = (f"predicted {significant(p)}, observed {significant(o)} in {many(n, 'row')}" for p, o, *_, n in bins)
    return svg_figure("calibration", "Calibration", f"{'; '.join(numbers)}.", TOP + SQUARE + BELOW, parts)


# Charts of two panels: growth, path -----------------------------------------------------------------------------------------


class TrainingCurve(NamedTuple):
    """Loss and size of a network by epoch, and the epoch of the model that was kept (from 1)."""

    loss: np.ndarray  # [epochs]
    size: np.ndarray  # [epochs]
    best_epoch: int


class PathPoint(NamedTuple):
    """The best setting at a penalty; `is_finished`: trained to the end, so that its loss is comparable."""

    penalty: float
    loss: float
    spread: float  # standard error of the difference to the best
    n_parameters: float
    is_finished: bool
    is_chosen: bool


def _panels(
    upper: tuple[float, float], lower: tuple[float, float], *, are_log: tuple[bool, bool]
) -> tuple[Scale, Scale, float]:
    """Return the vertical scales of two panels, and the height of the chart."""
    second = TOP + PANEL + GAP
    scales = Scale(*upper, TOP + PANEL, TOP, are_log[0]), Scale(*lower, second + PANEL, second, are_log[1])
    return *scales, second + PANEL + BELOW


def growth_chart(curves: Sequence[TrainingCurve], loss_label: str, size_label: str) -> Element:
    """Return the loss of each network by epoch above and its size below; dots mark the kept epochs."""
    x = _horizontal(1, max(2, *(len(curve.loss) for curve in curves)))
    losses = np.concatenate([curve.loss[np.isfinite(curve.loss)] for curve in curves])
    is_log = bool(len(losses) and losses.min() > 0 and losses.max() > 20 * losses.min())
    usual = losses[losses <= np.quantile(losses, 0.98)] if len(losses) else losses  # the first epochs may be far above
    ends = (float(losses.min()) / 1.1, float(losses.max()) * 1.1) if is_log else limits(usual.tolist())
    largest = max(float(curve.size.max(initial=0)) for curve in curves)
    loss, size, height = _panels(ends, (0, max(largest * 1.05, 1)), are_log=(is_log, False))
    parts, numbers = [*_axes(x, loss, "", loss_label), *_axes(x, size, "epoch", size_label)], []
    for number, curve in enumerate(curves):
        color, best = f"s{number % 6 + 1}", curve.best_epoch
        for scale, values in ((loss, curve.loss), (size, curve.size)):
            parts.append(_line(x, scale, range(1, len(values) + 1), values.tolist(), color))
            parts.append(_dot(x(best), scale(float(values[best - 1])), color))
        numbers.append(
            f"network {number + 1}: {many(len(curve.loss), 'epoch')}, best epoch {best}, {loss_label} from "
            f"{significant(curve.loss[0])} to {significant(curve.loss[best - 1])}, {size_label} from {count(curve.size[0])} to "
            f"{count(curve.size[best - 1])}"
        )
    return svg_figure("growth", "Loss and size by epoch", f"{'; '.join(numbers)}.", height, parts)


def path_chart(points: Sequence[PathPoint], measure: str) -> Element:
    """Return the held-out loss at each penalty above and the size below; a penalty of 0 is at the left end.

    Settings that stopped early are hollow marks among the sizes only, since their losses are not comparable.
    """
    positive = [point.penalty for point in points if point.penalty > 0]
    lowest, highest = min(positive, default=1.0), max(positive, default=1.0)
    lowest = lowest / 10 if len(positive) < len(points) else lowest
    x = _horizontal(lowest / 1.3, highest * 1.3, is_log=True)
    finished = [point for point in points if point.is_finished]
    sizes = [max(point.n_parameters, 1.0) for point in points]
    ends = limits([end for point in finished for end in (point.loss - point.spread, point.loss + point.spread)])
    loss, size, height = _panels(ends, (min(sizes) / 1.3, max(sizes) * 1.3), are_log=(False, True))
    parts = [*_axes(x, loss, "", measure), *_axes(x, size, "penalty", "parameters of a network")]
    for at in (x(max(point.penalty, lowest)) for point in points if point.is_chosen):
        parts.append(el("line", x1=at, x2=at, y1=loss.end, y2=size.begin, class_="s2 mark"))
        is_left = at < (x.begin + x.end) / 2
        side = {"x": at + 6, "class_": "s2 label"} if is_left else {"x": at - 6, "class_": "s2 label end"}
        parts.append(el("text", "chosen", y=loss.end + 10, **side))
    penalties = [max(point.penalty, lowest) for point in finished]
    parts.append(_line(x, loss, penalties, [point.loss for point in finished], "s1"))
    parts.append(_line(x, size, penalties, [max(point.n_parameters, 1.0) for point in finished], "s1"))
    numbers = []
    for point, n_parameters in zip(points, sizes, strict=True):
        at, color, r = x(max(point.penalty, lowest)), *(("s2", 5) if point.is_chosen else ("s1", 4))
        if point.is_finished:
            if point.spread > 0:
                parts += _interval(at, loss(point.loss - point.spread), at, loss(point.loss + point.spread), "s1")
            parts.append(_dot(at, loss(point.loss), color, r))
        parts.append(_dot(at, size(n_parameters), color, r, "dot" if point.is_finished else "ring"))
        loss_text = f"{measure} {significant(point.loss)}" if point.is_finished else "stopped early"
        chosen = " (chosen)" * point.is_chosen
        numbers.append(f"penalty {significant(point.penalty)}{chosen}: {loss_text}, {count(point.n_parameters)} parameters")
    return svg_figure(
        "path", f"Error and size at {many(len(points), 'penalty', 'penalties')}", f"{'; '.join(numbers)}.", height, parts
    )
