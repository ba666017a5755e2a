"""A score beside others on the same rows: a dot and its 95 % interval for each.

    draw("accuracy", [("the model", 0.95, 0.9, 0.98), ("linear model", 0.9, 0.85, 0.94)]) → Element

R² has no lower end: what is below −0.5 is drawn at the edge. Sections import it.
"""

from collections.abc import Sequence

from meristem.report.chart import RIGHT, Scale, dot, interval
from meristem.report.numbers import rate
from meristem.show.elements import WIDTH, Element, el, picture

NAMES, VALUES, ROW, FLOOR = 122, 52, 34, -0.5  # pixels for names and values and of a row; the least score that is drawn


def draw(measure: str, scores: Sequence[tuple[str, float, float, float]]) -> Element:
    """Of each: its name, value, lower and upper limit.

    >>> draw("R²", [("the model", 0.5, 0.4, 0.6)]).tag
    'svg'
    """
    low = max(FLOOR, min(one[2] for one in scores))
    high = max(one[3] for one in scores)
    room = max(0.05 * (high - low), 0.01)
    low, high = low - room, min(1.0, high + room) if high <= 1 else high + room
    x = Scale(low, high, NAMES, WIDTH - RIGHT - VALUES)
    bottom = 14 + ROW * len(scores)
    parts: list[Element] = []
    for value, text in x.ticks(4):
        parts.append(el("line", x1=x(value), x2=x(value), y1=6, y2=bottom, class_="grid"))
        parts.append(el("text", text, x=x(value), y=bottom + 16, class_="muted middle"))
    for place, (name, value, least, most) in enumerate(scores):
        y, color = 14 + ROW * (place + 0.5) - 6, "s1" if place == 0 else "s7"
        parts.append(el("text", name, x=0, y=y + 4, class_="ink strong" if place == 0 else "ink"))
        parts += interval(x(least), y, x(most), y, color)
        parts.append(dot(x(value), y, color, 5))
        parts.append(el("text", rate(value), x=WIDTH, y=y + 4, class_="ink strong end" if place == 0 else "ink end"))
    parts.append(
        el("text", f"{measure}, with its 95 % interval", x=(x.begin + x.end) / 2, y=bottom + 34, class_="muted middle")
    )
    words = "; ".join(f"{name}: {rate(value)}, {rate(least)} to {rate(most)}" for name, value, least, most in scores)
    return picture("score", f"Score: {measure}", f"{words}.", bottom + 40, parts)
