"""Whether it is as often right as it says: in each group of rows the mean of what was said against what came true.

    draw([Group(0.9, 0.85, 0.8, 0.9, 40), …], "probability said", "share that came true", is_share=True) → Element

On the line what is said is what comes. Sections import it.
"""

from collections.abc import Sequence
from typing import NamedTuple

from meristem.check import many
from meristem.report.chart import Scale, across, around, axes, below, dot, interval, line
from meristem.report.numbers import figure
from meristem.show.elements import Element, picture

HEIGHT = 300


class Group(NamedTuple):
    """Rows of which about the same was said."""

    said: float
    came: float
    low: float  # of what came, 95 % limits
    high: float
    rows: int


def draw(groups: Sequence[Group], said: str, came: str, *, is_share: bool) -> Element:
    """`is_share`: from 0 to 1.

    >>> draw([Group(0.9, 0.85, 0.8, 0.9, 40)], "said", "came", is_share=True).tag
    'svg'
    """
    limits = (0.0, 1.0) if is_share else around([value for one in groups for value in (one.said, one.low, one.high)])
    x, y = Scale(*limits, *across()), Scale(*limits, *below(24, HEIGHT))
    parts = [*axes(x, y, said, came), line(x, y, limits, limits, "s7", "dashed")]
    for one in groups:
        parts += interval(x(one.said), y(one.low), x(one.said), y(one.high), "s1")
        parts.append(dot(x(one.said), y(one.came), "s1"))
    words = "; ".join(f"said {figure(one.said)}, came {figure(one.came)} in {many(one.rows, 'row')}" for one in groups)
    return picture("calibration", "What was said and what came true", f"{words}.", 24 + HEIGHT + 42, parts)
