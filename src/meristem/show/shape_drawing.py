"""A drawing as data (rectangles, circles, lines, texts; pixels from the upper left corner), and its rendering as SVG.

    svg(Drawing(350, 80, (Rect(60, 0, 16, 12, "s1"), Text(0, 10, "layer 1")), title="…", details="…", legend="…")) → <svg …>

Colors are roles: "ink", "muted", "line" (closed units), "ground" (text on a color), and the series "s1" … "s7", the last one
grey. In SVG a role is `var(--s1, #2f85cc)`: a page may define the variables for light, dark and print; elsewhere texts have the
color of the text around them. pictures/ renders the same drawings with matplotlib.
"""

from dataclasses import dataclass
from typing import NamedTuple

from meristem.show.elements import Markup, el

# Default colors, visible on white and on black. "currentColor" is that of the surrounding text.
COLORS = {
    "ink": "currentColor", "muted": "currentColor", "line": "#8080804d", "ground": "#ffffff",
    "s1": "#2f85cc", "s2": "#cc6514", "s3": "#1c9670", "s4": "#ad62a9", "s5": "#d64a7a", "s6": "#94831a", "s7": "#808890",
}  # fmt: skip
N_SERIES = 6  # distinguishable colors, without the grey


class Rect(NamedTuple):
    """A filled rectangle."""

    x: float
    y: float
    width: float
    height: float
    color: str
    opacity: float = 1.0


class Circle(NamedTuple):
    """A ring."""

    x: float
    y: float
    radius: float
    color: str
    stroke: float = 2.5


class Line(NamedTuple):
    """A line with round ends."""

    x1: float
    y1: float
    x2: float
    y2: float
    color: str
    stroke: float


class Text(NamedTuple):
    """A line of text; y is its baseline, and anchor says whether x is its "start", "middle" or "end"."""

    x: float
    y: float
    words: str
    color: str = "ink"
    anchor: str = "start"
    size: float = 11.0


Shape = Rect | Circle | Line | Text


@dataclass(frozen=True)
class Drawing:
    """Shapes and the texts that belong to them."""

    width: float
    height: float
    shapes: tuple[Shape, ...]
    title: str  # a clause: the sizes
    details: str  # the numbers in the drawing, for screen readers
    legend: str  # how to read it, in sentences


def svg(drawing: Drawing, *, name: str | None = None) -> Markup:
    """Return the drawing as an element with id "figure-NAME".

    >>> svg(Drawing(10, 10, (Rect(0, 0, 2, 2, "s1"),), "a square", "", "")).partition("</title>")[2]
    '<rect x="0" y="0" width="2" height="2" fill="var(--s1, #2f85cc)"></rect></svg>'
    """
    return el(
        "svg",
        el("title", drawing.title),
        *map(_element, drawing.shapes),
        viewBox=f"0 0 {drawing.width:.0f} {drawing.height:.0f}",
        width=round(drawing.width),
        height=round(drawing.height),
        role="img",
        id=name and f"figure-{name}",
        aria_label="; ".join(filter(None, (drawing.title, drawing.details))),
        style=f"display:block;width:{drawing.width:.0f}px;max-width:100%;height:auto;background:none",
    )


def _element(shape: Shape) -> Markup:
    color = f"var(--{shape.color}, {COLORS[shape.color]})"
    match shape:
        case Rect(x, y, width, height, _, opacity):
            return el("rect", x=x, y=y, width=width, height=height, fill_opacity=opacity if opacity < 1 else None, fill=color)
        case Circle(x, y, radius, _, stroke):
            return el("circle", cx=x, cy=y, r=radius, fill="none", stroke=color, stroke_width=stroke)
        case Line(x1, y1, x2, y2, _, stroke):
            return el("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=color, stroke_width=stroke, stroke_linecap="round")
    anchor = shape.anchor if shape.anchor != "start" else None
    return el("text", shape.words, x=shape.x, y=shape.y, text_anchor=anchor, font_size=shape.size, fill=color)
