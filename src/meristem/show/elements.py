"""HTML and SVG as data: elements with attributes and children, escaped when they are rendered.

    el("text", "a < b", x=3, class_="ink")  →  <text x="3" class="ink">a &lt; b</text>

`class_` is written as class, `stroke_width` as stroke-width. Control characters and characters without a UTF-8 encoding are
replaced, so names from a user's data cannot break a page.
"""

import html
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

WIDTH = 400  # of every figure: a phone shows it nearly at this size, so text stays legible
# Control characters, and those that change the direction of text.
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffe\uffff]")


@dataclass(frozen=True)
class Element:
    """A tag, its attributes, and its children: elements and texts. Jinja inserts it as HTML."""

    tag: str
    attributes: tuple[tuple[str, str], ...]
    children: tuple["Element | str", ...]

    def __html__(self) -> str:
        return render(self)


Child = Element | str


def el(tag: str, *children: Child, **attributes: Any) -> Element:
    """Return an element; attributes that are None are left out, floats have at most two decimals.

    >>> render(el("circle", cx=1 / 3, r=2.0, class_="dot", stroke_width=None))
    '<circle cx="0.33" r="2" class="dot"></circle>'
    """
    present = ((name.rstrip("_").replace("_", "-"), value) for name, value in attributes.items() if value is not None)
    return Element(tag, tuple((name, _attribute(value)) for name, value in present), children)


def _attribute(value: Any) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def clean(text: str) -> str:
    """Replace control characters and lone surrogates.

    >>> clean("a" + chr(0) + "b" + chr(0xD800))
    'a�b?'
    """
    return CONTROL.sub("\N{REPLACEMENT CHARACTER}", text).encode("utf-8", "replace").decode()


def shorten(text: str, most: int) -> str:
    """Return at most so many characters, with an ellipsis if some are cut.

    >>> shorten("a long name", 6)
    'a lon…'
    """
    text = " ".join(clean(text).split())
    return text if len(text) <= most else text[: most - 1] + "…"


def render(child: Child) -> str:
    """Return HTML.

    >>> render(el("b", "<script>alert(1)</script>", title='"'))
    '<b title="&quot;">&lt;script&gt;alert(1)&lt;/script&gt;</b>'
    """
    if isinstance(child, str):
        return html.escape(clean(child), quote=False)
    attributes = "".join(f' {name}="{html.escape(clean(value))}"' for name, value in child.attributes)
    return f"<{child.tag}{attributes}>{''.join(map(render, child.children))}</{child.tag}>"


def svg_figure(name: str, title: str, description: str, height: float, children: Iterable[Child]) -> Element:
    """Return an SVG of the common width, with a title and a description for screen readers."""
    labels = el("title", title, id=f"{name}-title"), el("desc", description, id=f"{name}-desc")
    view = {"viewBox": f"0 0 {WIDTH} {_attribute(float(height))}", "role": "img", "id": f"figure-{name}"}
    return el("svg", *labels, *children, **view, aria_labelledby=f"{name}-title {name}-desc")
