"""Figures as PNG files, never written over a file that meristem did not draw, and as SVG for a page.

In SVG, colors are roles: CSS variables that the page defines for light, dark and print (as in show/structure_drawing.py). A
color without a role, as those of layers are, is mixed with that of the text, so that it is visible in light and in dark.
"""

import io
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from meristem.pictures.figure_style import GREY, GRID, INK, SERIES, STYLE, Figure, require_matplotlib
from meristem.show.elements import Markup, el

MARK = b"tEXtSoftware\x00meristem"  # a text chunk, which matplotlib writes among the first
WIDTH = 400  # of a figure of a page: a phone shows it nearly at this size, so text stays legible
MOST_POINTS = 240  # of a line, so that pages stay small
PAGE_STYLE = STYLE | dict.fromkeys(("axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), GREY)
PAGE_STYLE |= dict.fromkeys(("font.size", "axes.labelsize", "xtick.labelsize", "ytick.labelsize", "legend.fontsize"), 13)
PAGE_STYLE |= {"text.color": INK, "svg.fonttype": "none", "svg.hashsalt": "meristem"}
ROLES = {INK: "var(--ink)", GREY: "var(--muted)", GRID: "var(--line)", "#FFFFFF": "var(--ground)"}
ROLES |= {color: f"var(--s{number})" for number, color in enumerate(SERIES, 1)}


def png(figure: Figure, **options: Any) -> bytes:
    """Return the bytes of a PNG; `options` are passed to savefig. In memory, so that only `write_whole` meets a full disk."""
    packed = io.BytesIO()
    figure.savefig(packed, format="png", metadata={"Software": "meristem"}, **options)
    return packed.getvalue()


def is_picture(path: Path) -> bool:
    """Return whether a file was made by `png`."""
    try:
        with path.open("rb") as file:
            return MARK in file.read(4096)
    except OSError:
        return False


def check_png_path(name: str, path: Path) -> Path:
    """Return a path to which a figure may be written; raise ValueError, naming the option `name`, for any other."""
    if path.suffix.lower() != ".png":
        raise ValueError(f"{name}={str(path)!r} must be a file that ends in .png, or a folder.")
    if (path.exists() or path.is_symlink()) and not is_picture(path):
        raise ValueError(
            f"{name}={str(path)!r} exists and is not a figure drawn by meristem; move it away, or give another {name} FILE.png."
        )
    return path


def page_svg(
    name: str, title: str, description: str, draw: Callable[..., None], *, height: float = 340, rows: int = 1, columns: int = 1
) -> Markup:
    """Return what `draw(*axes)` draws on Axes [rows · columns] as an SVG with id "figure-NAME".

    Equal drawings have equal bytes. Rows of a single column share the x axis.
    """
    require_matplotlib()
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(PAGE_STYLE), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # about texts without room, and about values that are too large to be drawn
        figure = Figure(figsize=(WIDTH / 72, height / 72), layout="constrained")  # SVG has 72 units per inch
        axes = figure.subplots(rows, columns, sharex=columns == 1, squeeze=False).ravel()
        draw(*axes)
        for line in (line for ax in axes for line in ax.lines if len(line.get_xdata()) > MOST_POINTS):
            points = np.linspace(0, len(line.get_xdata()) - 1, MOST_POINTS).astype(int)
            line.set_data(*(np.asarray(values)[points] for values in line.get_data()))
        text, no_metadata = io.StringIO(), dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(text, format="svg", transparent=True, metadata=no_metadata)
    labels = el("title", title, id=f"{name}-title"), el("desc", description, id=f"{name}-desc")
    view = {"viewBox": f"0 0 {WIDTH} {height:g}", "role": "img", "id": f"figure-{name}"}
    return el("svg", *labels, _for_page(text.getvalue(), name), **view, aria_labelledby=f"{name}-title {name}-desc")


def _for_page(text: str, name: str) -> Markup:
    """Return the inside of matplotlib's SVG: CSS variables as colors, the font of the page, its own ids, short numbers."""
    inside = re.sub(r"<style.*?</style>", "", text[text.index(">", text.index("<svg")) + 1 : text.rindex("</svg>")])
    used = {"".join(pair) for pair in re.findall(r'url\(#(\w+)\)|href="#(\w+)"', inside)}

    def rewrite(tag: re.Match[str]) -> str:
        own = re.sub(r' id="([^"]*)"', lambda match: f' id="{name}-{match[1]}"' * (match[1] in used), tag[0])
        own = re.sub(r'url\(#|(xlink:)?href="#', lambda match: f"{match[0].removeprefix('xlink:')}{name}-", own)
        own = re.sub(r'font-family: [^;"]*(; )?| transform="rotate\(-0 [^"]*"', "", own)
        mixed = r"color-mix(in srgb, {} 75%, var(--ink))"
        own = re.sub(r"#[0-9a-f]{6}\b", lambda match: ROLES.get(match[0].upper(), mixed.format(match[0])), own)
        return re.sub(r"\d+\.\d{2,}", lambda match: f"{float(match[0]):.1f}", own)

    return Markup(re.sub(r"\s*\n\s*", "\n", re.sub(r"<[^>]*>", rewrite, inside)))
