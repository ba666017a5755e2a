"""How much each input matters: what the score loses when its values are shuffled, the mean and spread of several shufflings.

    draw([("age", 0.12, 0.01), ("size", 0.03, 0.02)], "accuracy") → Element

Sections import it.
"""

from collections.abc import Sequence

from meristem.report.chart import Scale, interval
from meristem.report.numbers import rate
from meristem.show.elements import WIDTH, Element, cut, el, picture

NAMES, VALUES, ROW = 134, 58, 22
LETTERS = 17  # of a name


def draw(inputs: Sequence[tuple[str, float, float | None]], measure: str) -> Element:
    """Of each, from the most important: its name, the mean loss of score, and its standard deviation, if that is known.

    >>> draw([("age", 0.12, 0.01)], "accuracy").tag
    'svg'
    """
    low, high = (f(mean + sign * (spread or 0) for _, mean, spread in inputs) for f, sign in ((min, -1), (max, 1)))
    low = min(0.0, low)
    x = Scale(low, max(high, low + 1e-9), NAMES, WIDTH - VALUES)
    bottom = 8 + ROW * len(inputs)
    parts: list[Element] = []
    for value, text in x.ticks(3):
        parts.append(el("line", x1=x(value), x2=x(value), y1=4, y2=bottom, class_="grid"))
        parts.append(el("text", text, x=x(value), y=bottom + 16, class_="muted middle"))
    for place, (name, mean, spread) in enumerate(inputs):
        y = 8 + ROW * (place + 0.5)
        begin, end = sorted((x(0.0), x(mean)))
        parts.append(el("text", el("title", name), cut(name, LETTERS), x=0, y=y + 4, class_="ink"))
        parts.append(el("rect", x=begin, y=y - 6, width=max(end - begin, 1.0), height=12, class_="s1 soft"))
        parts += [] if spread is None else interval(x(mean - spread), y, x(mean + spread), y, "s1")
        parts.append(el("text", rate(mean), x=WIDTH, y=y + 4, class_="ink end"))
    label = f"{measure} lost when it is shuffled"
    parts.append(el("text", label, x=(x.begin + x.end) / 2, y=bottom + 34, class_="muted middle"))
    told = ((name, rate(mean), "" if spread is None else f" ± {rate(spread)}") for name, mean, spread in inputs)
    words = "; ".join(f"{cut(name, 60)}: {mean}{around}" for name, mean, around in told)
    return picture("importance", "How much each input matters", f"{label}: {words}.", bottom + 40, parts)
