"""A drawing as an `<svg>` element, the same in a notebook and on a page.

    render(svg(drawing)) → "<svg …>…</svg>"

A color is `var(--s1, #2f85cc)`: a page that defines the variables has its own colors, in light, dark and on paper; elsewhere
texts have the color of those around them. Nothing is loaded. Imports shapes and elements; card.py imports it.
"""

from meristem.show.elements import Element, el
from meristem.show.shapes import COLORS, Circle, Drawing, Line, Rect, Shape


def svg(drawing: Drawing, *, name: str | None = None) -> Element:
    """Return the drawing as an element; `name` is for its id.

    >>> svg(Drawing(10, 10, (Rect(0, 0, 2, 2, "s1"),), "a square", "", "")).children[1].attributes[-1]
    ('fill', 'var(--s1, #2f85cc)')
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


def _element(shape: Shape) -> Element:
    color = f"var(--{shape.color}, {COLORS[shape.color]})"
    if isinstance(shape, Rect):
        opacity = shape.opacity if shape.opacity < 1 else None
        return el("rect", x=shape.x, y=shape.y, width=shape.width, height=shape.height, fill_opacity=opacity, fill=color)
    if isinstance(shape, Circle):
        return el("circle", cx=shape.x, cy=shape.y, r=shape.radius, fill="none", stroke=color, stroke_width=shape.stroke)
    if isinstance(shape, Line):
        ends = {"x1": shape.x1, "y1": shape.y1, "x2": shape.x2, "y2": shape.y2}
        return el("line", **ends, stroke=color, stroke_width=shape.stroke, stroke_linecap="round")
    anchor = shape.anchor if shape.anchor != "start" else None
    return el("text", shape.words, x=shape.x, y=shape.y, text_anchor=anchor, font_size=shape.size, fill=color)
