"""The drawing of a network's structure, the same in notebooks, reports and figures: rows of units, or a tree of layers.

Each layer is a row with a cell per unit, the most open first, then the number of open units and the sum of their gates; inputs,
trunk and outputs are rows, too. In a tree, squares are layers and circles are inner nodes. Stages are drawn below each other.
Shapes are in pixels from the upper left corner. Colors are roles: "ink", "muted", "line" (closed units), "ground" (text on a
color), and the series "s1" … "s7", the last one grey. In SVG a role is `var(--s1, #2f85cc)`: a page may define the variables
for light, dark and print; elsewhere texts have the color of the text around them. pictures/ renders drawings with matplotlib.
Notebooks show drawings in a card, without a style sheet.
"""

import math
import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from meristem.check import many
from meristem.nn.network import Network
from meristem.nn.structure import Nodes
from meristem.show.elements import Markup, el
from meristem.show.network_structure import GateRow, Stage, nodes_of, stages_of, structure_legend, structure_summary

# Default colors, visible on white and on black. "currentColor" is that of the surrounding text.
COLORS = {
    "ink": "currentColor", "muted": "currentColor", "line": "#8080804d", "ground": "#ffffff",
    "s1": "#2f85cc", "s2": "#cc6514", "s3": "#1c9670", "s4": "#ad62a9", "s5": "#d64a7a", "s6": "#94831a", "s7": "#808890",
}  # fmt: skip
N_SERIES = 6  # distinguishable colors, without the grey
WIDTH = 350  # a phone shows it at this size
ROW, CELL = 16, 16  # height of a row; the largest width of a cell
MOST_ROWS, LEAST_ROW = 20, 2  # with more layers, rows get thinner
NAME, TOTAL = 56, 58  # widths of the text columns: names of rows, sums of gates
LEAST_CELL, SHADES = 5, 5  # narrower cells of the same shade are drawn as one rectangle
STEP, LEVEL, RADIUS = 36, 44, 15  # of a tree: between nodes, between levels, of a node
LEAST_TEXT = 7.5  # smaller labels are left out
COPIES = "copies its input"
MOST_DRAWN = 6  # networks of a card
FACT = "display:inline-block;margin:0 1.4em .3em 0;white-space:nowrap"
FIGURE = "display:inline-block;vertical-align:top;margin:.3em 1.6em .6em 0;max-width:100%"
LEGEND = "max-width:44em;font-size:.9em;opacity:.85"
BOX = "font-family:sans-serif;font-size:13px;line-height:1.5;margin:.5em 0;max-width:100%;overflow-x:auto"
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


class Rect(NamedTuple):
    x: float
    y: float
    width: float
    height: float
    color: str
    opacity: float = 1.0


class Circle(NamedTuple):
    x: float
    y: float
    radius: float
    color: str
    stroke: float = 2.5


class Line(NamedTuple):
    x1: float
    y1: float
    x2: float
    y2: float
    color: str
    stroke: float


class Text(NamedTuple):
    x: float  # of its "start", "middle" or "end", as anchor says
    y: float  # of its baseline
    words: str
    color: str = "ink"
    anchor: str = "start"
    size: float = 11.0


Shape = Rect | Circle | Line | Text


@dataclass(frozen=True)
class Drawing:
    width: float
    height: float
    shapes: tuple[Shape, ...]
    title: str  # a clause: the sizes
    details: str  # the numbers in the drawing, for screen readers
    legend: str  # how to read it, in sentences


def svg(drawing: Drawing, *, name: str | None = None) -> Markup:
    width, height = round(drawing.width), round(drawing.height)
    size = {"viewBox": f"0 0 {width} {height}", "width": width, "height": height, "role": "img"}
    label = "; ".join(filter(None, (drawing.title, drawing.details)))
    style = f"display:block;width:{width}px;max-width:100%;height:auto;background:none"
    content = el("title", drawing.title), *map(_element, drawing.shapes)
    return el("svg", *content, **size, id=name and f"figure-{name}", aria_label=label, style=style)


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


def draw(stages: Sequence[Stage], *, width: float = WIDTH) -> Drawing:
    """Return a drawing of a network that is at most `width` wide."""
    shapes: list[Shape] = []
    details: list[str] = []
    y = 0.0
    for stage in stages:
        if stage.title:
            details.append(f"{stage.title}: {structure_summary(stage.structure)}")
            shapes.append(Text(0, y + 12, details[-1], size=12))
            y += 20
        rows = (*stage.above, *stage.layers, *stage.below)
        if isinstance(stage.structure, Nodes):
            has_gates = any(row.can_close for row in stage.above)
            y = _draw_rows(shapes, stage.above, ("open", "Σ gates") if has_gates else ("", ""), y, width)
            y = _draw_tree(shapes, stage.structure, y, width)
            y = _draw_rows(shapes, stage.below, ("", ""), y, width)
        else:
            source = stage.structure.source
            count = "open units" if source == "parameters" else "units"
            total = "soft size" if source in ("parameters", "inputs") else "Σ gates"
            y = _draw_rows(shapes, rows, (count, total), y, width, has_totals=source != "fixed")
        y += 10
        details += [f"{row.name}: {row.open_count}" for row in rows]
    legends = dict.fromkeys(text for stage in stages if (text := structure_legend(stage.structure)))
    title = structure_summary(stages[0].structure) if len(stages) == 1 else f"{len(stages)} stages"
    return Drawing(max(map(_right_end, shapes)), y - 10, tuple(shapes), title, ", ".join(details), " ".join(legends))


def with_legend(drawing: Drawing) -> Drawing:
    """Return the drawing with its legend below it, for output that does not wrap text."""
    width, size = max(WIDTH, drawing.width), 10
    lines = textwrap.wrap(drawing.legend, int(width / _text_width(" ", size)))
    texts = [Text(0, drawing.height + 20 + 14 * number, line, "muted", size=size) for number, line in enumerate(lines)]
    height = drawing.height + (14 * len(lines) + 12) * bool(lines)
    return replace(drawing, width=width, height=height, shapes=(*drawing.shapes, *texts))


def _draw_rows(
    shapes: list[Shape], rows: Sequence[GateRow], header: tuple[str, str], y: float, width: float, *, has_totals: bool = False
) -> float:
    """Add rows below each other and return where they end; thin rows have texts only where there is room."""
    totals = [f"{row.gates.sum():.2f}" if row.can_close or (row.is_layer and has_totals) else "" for row in rows]
    counts = 8 + max(_text_width(text, 11) for text in (header[0], *(row.open_count for row in rows)))
    cells = [min(CELL, (width - NAME - counts - TOTAL * any(totals)) / max(1, len(row.gates))) for row in rows]
    right = NAME + max((cell * len(row.gates) for row, cell in zip(rows, cells, strict=True)), default=0)
    end = right + counts + TOTAL
    if header[0]:
        shapes.append(Text(right + 8, y + 10, header[0], "muted", size=10))
        shapes += [Text(end, y + 10, header[1], "muted", "end", 10)] * any(totals)
        y += 16
    next_text, n_layers = y, sum(row.is_layer for row in rows)
    for row, total, cell in zip(rows, totals, cells, strict=True):
        height = max(LEAST_ROW, MOST_ROWS * ROW / n_layers) if row.is_layer and n_layers > MOST_ROWS else ROW
        y = max(y, next_text) if height == ROW else y
        cell_height = height - min(4, height / 4)
        shapes += _cells(row, cell, y, cell_height, is_thin=height < ROW)
        if y >= next_text:
            baseline = y + cell_height / 2 + 4
            shapes += [Text(NAME - 8, baseline, row.name, "ink", "end"), Text(right + 8, baseline, row.open_count)]
            shapes += [Text(end, baseline, total, "ink", "end")] * bool(total)
            next_text = y + 13
        y += height
    return max(y, next_text)


def _cells(row: GateRow, cell: float, y: float, height: float, *, is_thin: bool) -> list[Shape]:
    """Return a rectangle for all units, and on it one for each open unit, or for each shade if cells are narrow."""
    is_split, length = cell >= LEAST_CELL and not is_thin, cell * len(row.gates)
    color = "s1" if row.can_close or row.is_layer else "s7"
    shapes: list[Shape] = [Rect(NAME, y, length - is_split, height, "line")]
    shades = -np.sort(-row.gates) if is_split else np.ceil(-np.sort(-row.gates) * SHADES) / SHADES
    steps = np.arange(1, len(shades)) if is_split else np.flatnonzero(np.diff(shades)) + 1
    for start, end in zip([0, *steps], [*steps, len(shades)], strict=True):
        if start < end and shades[start] > 0:
            x, opacity = NAME + cell * float(start), round(0.3 + 0.7 * float(shades[start]), 2)
            shapes.append(Rect(x, y, cell * float(end - start) - is_split, height, color, opacity))
    if row.is_layer and not is_thin and length >= _text_width(COPIES, 10) + 8 and not row.gates.any():
        shapes.append(Text(NAME + 6, y + 10, COPIES, "muted", size=10))
    return shapes


def _draw_tree(shapes: list[Shape], tree: Nodes, y: float, width: float) -> float:
    """Add a tree, its root at the top and the first layer at the left, and return where it ends."""
    nodes = nodes_of(tree)
    steps = len(nodes) - 1
    step = min(STEP, (width - 2 * RADIUS) / max(1, steps))
    radius = min(RADIUS, 0.62 * step)
    left = NAME if NAME + step * steps + 2 * radius <= width else 1
    top, size = y + radius + 6 + LEVEL * (tree.identity is not None), min(10.5, 0.75 * radius)
    centers = [(left + radius - 1 + step * node.place, top + LEVEL * node.depth) for node in nodes]

    def add_label(x: float, y: float, words: str, color: str) -> None:
        if size >= LEAST_TEXT:
            shapes.append(Text(x, y + 0.35 * size, words, color, "middle", size))

    def add_ring(x: float, y: float, color: str, gamma: float) -> None:
        shapes.append(Circle(x, y, radius - 1, color))
        add_label(x, y, gamma_text(gamma), "ink")

    def add_branch(x1: float, y1: float, child: int, color: str, gamma: float) -> None:
        """Add a line from the edge of a ring to the edge of its child, of thickness 1 + 4 (1 − γ)."""
        x2, y2 = centers[child]
        length = math.hypot(x2 - x1, y2 - y1)
        dx, dy = (x2 - x1) / length, (y2 - y1) / length
        stop = radius if nodes[child].children else (radius - 1) / max(abs(dx), abs(dy))
        shapes.append(Line(x1 + radius * dx, y1 + radius * dy, x2 - stop * dx, y2 - stop * dy, color, 1 + 4 * (1 - gamma)))

    for node, (x, y) in zip(nodes, centers, strict=True):
        color = f"s{node.layer % N_SERIES + 1}"
        for child, branch_color in zip(node.children, (color, "s7"), strict=False):  # the left child shares the layer
            add_branch(x, y, child, branch_color, node.gamma)
        if node.children:
            add_ring(x, y, color, node.gamma)
        else:
            side = 2 * radius - 2
            shapes.append(Rect(x - side / 2, y - side / 2, side, side, color))
            add_label(x, y, f"W{node.layer + 1}".translate(SUBSCRIPTS), "ground")
    if tree.identity is not None:
        root = next(node.place for node in nodes if not node.depth)
        x, y = centers[root]
        add_branch(x, y - LEVEL, root, "s7", tree.identity)
        add_ring(x, y - LEVEL, "s7", tree.identity)
    return max(y for _, y in centers) + radius + 10


def gamma_text(gamma: float) -> str:
    """Return γ with two digits; only exact 0 and 1 are written as such.

    >>> gamma_text(0.5), gamma_text(0.999), gamma_text(0.001), gamma_text(0.0)
    ('0.50', '>.99', '<.01', '0')
    """
    if not 0 < gamma < 1:
        return f"{gamma:g}"
    return {"0.00": "<.01", "1.00": ">.99"}.get(text := f"{gamma:.2f}", text)


def _text_width(words: str, size: float) -> float:
    return 0.58 * size * len(words)


def _right_end(shape: Shape) -> float:
    if isinstance(shape, Text):
        return shape.x + _text_width(shape.words, shape.size) * {"start": 1, "middle": 0.5, "end": 0}[shape.anchor]
    if isinstance(shape, Rect):
        return shape.x + shape.width
    return shape.x + shape.radius + shape.stroke if isinstance(shape, Circle) else max(shape.x1, shape.x2)


def card(facts: Mapping[str, str], networks: Mapping[str, Network], *, title: str = "") -> str:
    """Return a title, facts by name in a line, and drawings of the networks."""
    line = el("div", *(el("span", el("b", value), f" {name}", style=FACT) for name, value in facts.items()))
    return el("div", *[el("div", title)] * bool(title), line, gallery(networks), class_="meristem-card", style=BOX)


def networks_of(members: Sequence[Any]) -> dict[str, Network]:
    """Return the networks of fitted estimators by caption; a single one has an empty caption."""
    if len(members) == 1:
        return {"": members[0].network_}
    return {f"{number}: {many(member.n_parameters_, 'parameter')}": member.network_ for number, member in enumerate(members, 1)}


def gallery(networks: Mapping[str, Network], *, name: str | None = None) -> Markup:
    """Return drawings of networks with captions and a legend; their ids are figure-NAME-1, figure-NAME-2, …"""
    drawings = {caption: draw(stages_of(network)) for caption, network in list(networks.items())[:MOST_DRAWN]}
    figures = []
    for number, (caption, drawing) in enumerate(drawings.items(), 1):
        heading = [el("div", caption, style="margin-bottom:.3em")] * bool(caption)
        figures.append(el("div", *heading, svg(drawing, name=name and f"{name}-{number}"), style=FIGURE))
    more = [f"{many(len(networks) - MOST_DRAWN, 'more network')} not drawn."] * (len(networks) > MOST_DRAWN)
    legend = " ".join([*more, *dict.fromkeys(drawing.legend for drawing in drawings.values())]).strip()
    return el("div", *figures, *[el("div", legend, style=LEGEND)] * bool(legend))


def table(columns: list[str], rows: list[list[str]], *, marked: Collection[int] = ()) -> str:
    """Return a plain table; marked rows are bold."""
    cell = "padding:.1em .8em;text-align:right"
    head = el("tr", *(el("th", name, style=cell) for name in columns))
    body = [
        el("tr", *(el("td", el("b", text) if number in marked else text, style=cell) for text in row))
        for number, row in enumerate(rows)
    ]
    style = "border-collapse:collapse;margin:0;font-size:13px"
    return el("div", el("table", el("thead", head), el("tbody", *body), style=style), class_="meristem-card", style=BOX)
