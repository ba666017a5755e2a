"""A drawing as data: rectangles, circles, lines and texts, in pixels from the upper left corner, with roles for colors.

    Drawing(350, 80, (Rect(60, 0, 16, 12, "s1"), Text(0, 10, "layer 1")), title="…", details="…", key="…")

Roles are "ink", "muted", "line" (what is closed), "ground" (texts on a color), and the series "s1" … "s7", the last one grey.
svg.py and pictures/structure_plot.py render drawings; layout.py makes them. Imports nothing.
"""

from dataclasses import dataclass
from typing import NamedTuple

# The color of each role where no page defines it: seen on white and on black. "currentColor" is that of the text around it.
COLORS = {
    "ink": "currentColor", "muted": "currentColor", "line": "#8080804d", "ground": "#ffffff",
    "s1": "#2f85cc", "s2": "#cc6514", "s3": "#1c9670", "s4": "#ad62a9", "s5": "#d64a7a", "s6": "#94831a", "s7": "#808890",
}  # fmt: skip
N_SERIES = 6  # colors that are told apart, without the grey


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
    """A line of text; y is its baseline, and anchor what of it is at x: its "start", "middle" or "end"."""

    x: float
    y: float
    words: str
    color: str = "ink"
    anchor: str = "start"
    size: float = 11.0


Shape = Rect | Circle | Line | Text


@dataclass(frozen=True)
class Drawing:
    """Shapes, and what is said beside them."""

    width: float
    height: float
    shapes: tuple[Shape, ...]
    title: str  # a clause: what is drawn, in sizes
    details: str  # for those who do not see it: the numbers in the drawing
    key: str  # how it is read, in sentences
