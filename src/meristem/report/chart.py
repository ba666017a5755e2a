"""What charts are made of: scales, ticks, axes, lines, marks and intervals, as elements (show/elements.py).

    x = Scale(0, 10, 50, 390);  x(5) → 220, the place on the picture;  x.ticks() → [(0, '0'), (2, '2'), …]
    axes(x, y, "epoch", "loss") → elements

Colors are classes (s1 … s6, ink, muted, grid) that the page's style gives a color in light, in dark and on paper. Figures
import it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from meristem.report.numbers import figure
from meristem.show.elements import WIDTH, Element, el

LEFT, RIGHT = 52, 10  # margins of a picture, for the numbers at its axes
STEPS = (1, 2, 2.5, 5, 10)
MOST_POINTS = 240  # of a line: a picture has no more places


@dataclass(frozen=True)
class Scale:
    """From values low … high to places begin … end; of a logarithmic one both limits are above 0."""

    low: float
    high: float
    begin: float
    end: float
    is_log: bool = False

    def __call__(self, value: float) -> float:
        low, high, at = (math.log(v) if self.is_log else v for v in (self.low, self.high, self._within(value)))
        return self.begin + (self.end - self.begin) * ((at - low) / (high - low) if high > low else 0.5)

    def _within(self, value: float) -> float:
        return min(max(value, self.low), self.high)

    def ticks(self, most: int = 5) -> list[tuple[float, str]]:
        """Round values and how they are written.

        >>> [text for _, text in Scale(0, 1, 0, 100).ticks()], [text for _, text in Scale(1e-4, 1, 0, 1, True).ticks()]
        (['0', '0.2', '0.4', '0.6', '0.8', '1'], ['10⁻⁴', '10⁻³', '0.01', '0.1', '1'])
        """
        if self.is_log:
            powers = range(math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9) + 1)
            if len(powers) >= 2:
                return [(10.0**power, _power(power)) for power in powers[:: -(-len(powers) // most)]]
            return [(value, figure(value)) for value in dict.fromkeys((self.low, self.high))]
        span = self.high - self.low
        if span <= 0:
            return [(self.low, figure(self.low))]
        rough = span / most
        unit = 10.0 ** math.floor(math.log10(rough))
        step = next(unit * one for one in STEPS if unit * one >= rough * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        values = [n * step for n in range(first, math.floor(self.high / step + 1e-9) + 1)]
        digits = max(0, -math.floor(math.log10(step) + 1e-9) + (step / unit == 2.5))
        return [(value, _plain(value, digits)) for value in values]


def _plain(value: float, digits: int) -> str:
    if abs(value) >= 1e6:
        return figure(value)
    text = f"{value:,.{digits}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text).replace("-", "−") if float(f"{value:.{digits}f}") else "0"


def _power(power: int) -> str:
    if -2 <= power <= 4:
        return f"{10.0**power:,.0f}" if power >= 0 else f"{10.0**power:g}"
    return "10" + str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def around(values: Sequence[float], *, margin: float = 0.05, least: float = 1e-9) -> tuple[float, float]:
    """Limits with some room around finite values.

    >>> around([0.0, 10.0])
    (-0.5, 10.5)
    """
    fine = [value for value in values if math.isfinite(value)] or [0.0]
    low, high = min(fine), max(fine)
    room = max(margin * (high - low), least, 1e-3 * abs(high) if high == low else 0.0)
    return low - room, high + room


def axes(x: Scale, y: Scale, x_label: str, y_label: str, *, with_x: bool = True) -> list[Element]:
    """Lines at the ticks, their numbers, and what is counted: below, and above the upper end of the left axis."""
    parts = [el("text", y_label, x=4, y=y.end - 12, class_="muted")]
    for value, text in y.ticks(4):
        at = y(value)
        parts.append(el("line", x1=x.begin, x2=x.end, y1=at, y2=at, class_="grid"))
        parts.append(el("text", text, x=x.begin - 6, y=at + 4, class_="muted end"))
    parts.append(el("line", x1=x.begin, x2=x.end, y1=y.begin, y2=y.begin, class_="axis"))
    if not with_x:
        return parts
    for value, text in x.ticks():
        parts.append(el("line", x1=x(value), x2=x(value), y1=y.begin, y2=y.begin + 4, class_="axis"))
        parts.append(el("text", text, x=x(value), y=y.begin + 18, class_="muted middle"))
    if x_label:
        parts.append(el("text", x_label, x=(x.begin + x.end) / 2, y=y.begin + 36, class_="muted middle"))
    return parts


def line(x: Scale, y: Scale, xs: Sequence[float], ys: Sequence[float], color: str, more: str = "line") -> Element:
    """Through all points that are finite; of very many some."""
    pairs = [(a, b) for a, b in zip(xs, ys, strict=True) if math.isfinite(b)]
    if len(pairs) > MOST_POINTS:
        pairs = [pairs[int(n)] for n in np.linspace(0, len(pairs) - 1, MOST_POINTS)]
    return el("polyline", points=" ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in pairs), class_=f"{color} {more}")


def interval(x1: float, y1: float, x2: float, y2: float, color: str) -> list[Element]:
    """A bar between two places, with a stop at each end."""
    dx, dy = (0, 4) if y1 == y2 else (4, 0)
    ends = [el("line", x1=a - dx, x2=a + dx, y1=b - dy, y2=b + dy, class_=f"{color} bar") for a, b in ((x1, y1), (x2, y2))]
    return [el("line", x1=x1, x2=x2, y1=y1, y2=y2, class_=f"{color} bar"), *ends]


def dot(x: float, y: float, color: str, r: float = 4, more: str = "dot") -> Element:
    """A mark; `more` "ring" leaves it hollow."""
    return el("circle", cx=x, cy=y, r=r, class_=f"{color} {more}")


def below(top: float, height: float) -> tuple[float, float]:
    """Where a vertical scale begins and ends: its lower and its upper end."""
    return top + height, top


def across(left: float = LEFT) -> tuple[float, float]:
    """Where a horizontal scale begins and ends."""
    return left, WIDTH - RIGHT
