"""A picture as data: elements with attributes and children, written as SVG or HTML with everything escaped.

    el("text", "a < b", x=3, class_="ink")  →  <text x="3" class="ink">a &lt; b</text>
    picture("score", "Score", "accuracy 0.9 …", 120, [el("circle", cx=3, cy=4, r=2)])  →  an <svg> that a screen reader reads

Attributes are written as Python can: `class_` is class, `stroke_width` is stroke-width. What has no text in UTF-8 or no place
in HTML is replaced, so names that a user gives cannot break a page. Imports nothing; drawings, cards and
reports import it.
"""

import html
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

WIDTH = 400  # of every picture; a phone shows it nearly as large, so letters stay legible
VOID = frozenset(["meta", "link", "br", "hr", "img"])
CONTROL = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffe\uffff]"
)  # and turns of direction


@dataclass(frozen=True)
class Element:
    """A tag, its attributes, and what is inside: elements and texts."""

    tag: str
    attributes: tuple[tuple[str, str], ...]
    children: tuple["Element | str", ...]


Child = Element | str


def el(tag: str, *children: Child, **attributes: Any) -> Element:
    """An element; attributes that are None are left out, numbers are written short.

    >>> render(el("circle", cx=1 / 3, r=2.0, class_="dot", stroke_width=None))
    '<circle cx="0.33" r="2" class="dot"></circle>'
    """
    named = ((name.rstrip("_").replace("_", "-"), value) for name, value in attributes.items() if value is not None)
    return Element(tag, tuple((name, short(value)) for name, value in named), children)


def short(value: Any) -> str:
    """An attribute's value: a number with two digits after the point at most."""
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".") if "." in f"{value:.2f}" else f"{value:.2f}"
    return str(value)


def clean(text: str) -> str:
    """The text without what breaks a page: characters of control, halves of characters.

    >>> clean("a" + chr(0) + "b" + chr(0xD800))
    'a�b?'
    """
    return CONTROL.sub("\N{REPLACEMENT CHARACTER}", text).encode("utf-8", "replace").decode()


def cut(text: str, most: int) -> str:
    """At most so many characters, with a mark where some are gone.

    >>> cut("a long name", 6)
    'a lon…'
    """
    text = " ".join(clean(text).split())
    return text if len(text) <= most else text[: most - 1] + "…"


def render(child: Child) -> str:
    """As text.

    >>> render(el("b", "<script>alert(1)</script>", title='"'))
    '<b title="&quot;">&lt;script&gt;alert(1)&lt;/script&gt;</b>'
    """
    if isinstance(child, str):
        return html.escape(clean(child), quote=False)
    own = "".join(f' {name}="{html.escape(clean(value))}"' for name, value in child.attributes)
    if child.tag in VOID:
        return f"<{child.tag}{own}>"
    return f"<{child.tag}{own}>{''.join(map(render, child.children))}</{child.tag}>"


def picture(name: str, title: str, words: str, height: float, children: Iterable[Child]) -> Element:
    """An SVG of the common width with a title and words that say what is to be seen."""
    about = el("title", title, id=f"{name}-title"), el("desc", words, id=f"{name}-desc")
    return el(
        "svg",
        *about,
        *children,
        viewBox=f"0 0 {WIDTH} {short(float(height))}",
        role="img",
        id=f"figure-{name}",
        aria_labelledby=f"{name}-title {name}-desc",
    )
