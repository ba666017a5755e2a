"""HTML and SVG as strings that are escaped already, element by element.

Control characters and characters without a UTF-8 encoding are replaced, so names from a user's data cannot break a page.
"""

import html
import re
from typing import Any

# Control characters, and those that change the direction of text.
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffe\uffff]")


class Markup(str):
    """HTML, which `el` and Jinja insert as it is."""

    def __html__(self) -> str:
        return self


def el(tag: str, *children: str, **attributes: Any) -> Markup:
    """Return an element; attributes that are None are left out, floats have at most two decimals.

    >>> el("circle", cx=1 / 3, r=2.0, class_="dot", stroke_width=None)
    '<circle cx="0.33" r="2" class="dot"></circle>'
    >>> el("b", "<script>alert(1)</script>", el("i"), title='"')
    '<b title="&quot;">&lt;script&gt;alert(1)&lt;/script&gt;<i></i></b>'
    """
    start = tag
    for name, value in attributes.items():
        if value is not None:
            text = f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
            start += f' {name.rstrip("_").replace("_", "-")}="{html.escape(clean(text))}"'
    inner = (child if isinstance(child, Markup) else html.escape(clean(child), quote=False) for child in children)
    return Markup(f"<{start}>{''.join(inner)}</{tag}>")


def clean(text: str) -> str:
    """Replace control characters and lone surrogates.

    >>> clean("a" + chr(0) + "b" + chr(0xD800))
    'a�b?'
    """
    return CONTROL.sub("\N{REPLACEMENT CHARACTER}", text).encode("utf-8", "replace").decode()


def shorten(text: str, most: int) -> str:
    """Return at most so many characters, with an ellipsis if some are cut."""
    text = " ".join(clean(text).split())
    return text if len(text) <= most else text[: most - 1] + "…"
