"""What each price came to: the held-out loss above, the size below, the chosen price marked.

    draw(prices, "held-out loss") → Element, of Priced records from the lowest price to the highest

Hollow marks left the search early: they stand among the sizes alone, since their loss is not comparable. A price of 0 stands at
the left end of the logarithmic axis. searched.py imports it.
"""

from collections.abc import Sequence
from typing import NamedTuple

from meristem.check import many
from meristem.report.chart import Scale, across, around, axes, below, dot, interval, line
from meristem.report.numbers import count, figure
from meristem.show.elements import Element, el, picture

HEIGHT, GAP = 130, 46


class Priced(NamedTuple):
    """The best setting at a price."""

    penalty: float
    loss: float
    spread: float  # standard error of the difference to the best
    n_parameters: float
    is_finished: bool
    is_chosen: bool


def draw(prices: Sequence[Priced], measure: str) -> Element:
    """At least two prices.

    >>> draw([Priced(1e-3, 0.5, 0.0, 90, True, True), Priced(1e-2, 0.7, 0.1, 20, True, False)], "held-out loss").tag
    'svg'
    """
    above = [one.penalty for one in prices if one.penalty > 0]
    low, high = min(above, default=1.0), max(above, default=1.0)
    low = low / 10 if len(above) < len(prices) else low
    x = Scale(low / 1.3, high * 1.3, *across(), is_log=True)
    top = 24
    done = [one for one in prices if one.is_finished]
    loss = Scale(*around([v for one in done for v in (one.loss - one.spread, one.loss + one.spread)]), *below(top, HEIGHT))
    sizes = [max(one.n_parameters, 1.0) for one in prices]
    size = Scale(min(sizes) / 1.3, max(sizes) * 1.3, *below(top + HEIGHT + GAP, HEIGHT), is_log=True)
    parts = [*axes(x, loss, "", measure, with_x=False), *axes(x, size, "penalty, the price of size", "parameters of a network")]
    chosen = next((one for one in prices if one.is_chosen), None)
    if chosen is not None:
        at = x(max(chosen.penalty, low))
        parts.append(el("line", x1=at, x2=at, y1=loss.end, y2=size.begin, class_="s2 mark"))
        is_left = at < (x.begin + x.end) / 2
        side = {"x": at + 6, "class_": "s2 said"} if is_left else {"x": at - 6, "class_": "s2 said end"}
        parts.append(el("text", "chosen", y=loss.end + 10, **side))
    for scale, value in ((loss, lambda one: one.loss), (size, lambda one: max(one.n_parameters, 1.0))):
        parts.append(line(x, scale, [max(one.penalty, low) for one in done], [value(one) for one in done], "s1"))
    for one in prices:
        at, kind = x(max(one.penalty, low)), "dot" if one.is_finished else "ring"
        if one.spread > 0 and one.is_finished:
            parts += interval(at, loss(one.loss - one.spread), at, loss(one.loss + one.spread), "s1")
        color = "s2" if one.is_chosen else "s1"
        if one.is_finished:  # the loss of the others is that of networks half trained
            parts.append(dot(at, loss(one.loss), color, 5 if one.is_chosen else 4))
        parts.append(dot(at, size(max(one.n_parameters, 1.0)), color, 5 if one.is_chosen else 4, kind))
    words = "; ".join(
        f"penalty {figure(one.penalty)}{' (chosen)' * one.is_chosen}: "
        f"{f'{measure} {figure(one.loss)}' if one.is_finished else 'left early'}, {count(one.n_parameters)} parameters"
        for one in prices
    )
    return picture("path", f"Error and size at {many(len(prices), 'price')}", f"{words}.", top + 2 * HEIGHT + GAP + 42, parts)
