"""A drawing on matplotlib's axes: the shapes of show/shape_drawing.py, in the scale in which all of them fit.

    render_shapes(ax, drawing, inches(ax))

Texts have the color of the style that is set. structure.py imports it.
"""

from typing import Any

from meristem.pictures.sheet import Axes
from meristem.show.shape_drawing import COLORS, Circle, Drawing, Line, Rect

POINTS = 72  # an inch
LARGEST = 0.95  # scale: points for a pixel


def render_shapes(ax: Axes, drawing: Drawing, size: tuple[float, float]) -> None:
    """Draw the shapes on axes of that size in inches, at their upper edge."""
    import matplotlib
    from matplotlib import patches

    width, height = (POINTS * inch for inch in size)
    scale = min(LARGEST, width / drawing.width, height / drawing.height)
    margin = (width / scale - drawing.width) / 2
    ax.set(xlim=(-margin, drawing.width + margin), ylim=(height / scale, 0), xticks=[], yticks=[])
    ax.set_aspect("equal")
    for side in ax.spines.values():
        side.set_visible(False)
    for shape in drawing.shapes:
        color = COLORS[shape.color]
        if color == "currentColor":
            color = matplotlib.rcParams["text.color"]
        if isinstance(shape, Rect):
            paint: dict[str, Any] = {"facecolor": color} if shape.opacity == 1 else {"facecolor": (color, shape.opacity)}
            ax.add_patch(patches.Rectangle((shape.x, shape.y), shape.width, shape.height, linewidth=0, clip_on=False, **paint))
        elif isinstance(shape, Circle):
            ring = {"fill": False, "edgecolor": color, "linewidth": shape.stroke * scale, "clip_on": False}
            ax.add_patch(patches.Circle((shape.x, shape.y), shape.radius, **ring))
        elif isinstance(shape, Line):
            style = {"color": color, "linewidth": shape.stroke * scale, "solid_capstyle": "round", "clip_on": False}
            ax.plot([shape.x1, shape.x2], [shape.y1, shape.y2], scalex=False, scaley=False, **style)
        else:
            side = {"start": "left", "middle": "center", "end": "right"}[shape.anchor]
            ax.text(shape.x, shape.y, shape.words, color=color, ha=side, va="baseline", fontsize=shape.size * scale)
