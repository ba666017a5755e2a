"""The drawing of a network's structure, the same in notebooks, reports and figures: rows of units, or a tree of layers.

    draw(stages_of(network), width=350) → Drawing, at most so wide (shapes.py)

A row is a layer: a cell for each unit, the most open first, then how many are open and the sum of their gates; inputs, trunk
and outputs are rows, too. In a tree squares are layers, and a circle is where one became two. Stages stand one below the other.
Imports stages, nodes and shapes; card.py and pictures/structure_plot.py import it.
"""

import math
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from meristem.nn.structure import Gates, Nodes
from meristem.show.nodes import Node, nodes_of
from meristem.show.shapes import N_SERIES, Circle, Drawing, Line, Rect, Shape, Text
from meristem.show.stages import Stage, Strip, key, summary

WIDTH = 350  # a phone shows it as it is
ROW, CELL = 16, 16  # height of a row; the largest width of a cell
MOST_ROWS, LEAST_ROW = 20, 2  # more layers are thinner rows
NAME, TOTAL = 56, 58  # widths of columns of texts: the names of rows, the sums of gates
LEAST_CELL, SHADES = 5, 5  # narrower cells are drawn together, those of one shade
STEP, LEVEL, RADIUS = 36, 44, 15  # of a tree: between two nodes, between two levels, of a node
LEAST_TEXT = 7.5  # smaller ones are left out
COPIES = "copies its input"


class Row(NamedTuple):
    """A row of cells."""

    name: str
    gates: np.ndarray  # [n], 0 … 1
    color: str
    number: str  # of open ones
    total: str
    height: float = ROW
    is_layer: bool = False


class Part(NamedTuple):
    """Shapes, and where the next may begin below them."""

    shapes: list[Shape]
    bottom: float


def draw(stages: Sequence[Stage], *, width: float = WIDTH) -> Drawing:
    """Return a drawing of a network that is at most `width` wide.

    >>> drawing = draw([Stage(Gates(np.array([[1.0, 0.5, 0.0]]), "parameters"))])
    >>> drawing.details, [shape.words for shape in drawing.shapes if isinstance(shape, Text)]
    ('layer 1: 2 of 3', ['open units', 'soft size', 'layer 1', '2 of 3', '1.50'])
    """
    shapes: list[Shape] = []
    details: list[str] = []
    y = 0.0
    for stage in stages:
        if stage.title:
            shapes.append(Text(0, y + 12, stage.title, size=12))
            details.append(stage.title)
            y += 20
        above, below = ([_strip(strip) for strip in strips] for strips in (stage.above, stage.below))
        if isinstance(stage.structure, Nodes):
            rows, header = above + below, ("open", "Σ gates") if any(strip.can_close for strip in stage.above) else ("", "")
            parts = [_rows(above, header, y, width)]
            parts.append(_tree(stage.structure, parts[-1].bottom, width))
            parts.append(_rows(below, ("", ""), parts[-1].bottom, width))
        else:
            rows = above + _layers(stage.structure) + below
            parts = [_rows(rows, _columns(stage.structure), y, width)]
        shapes += [shape for part in parts for shape in part.shapes]
        y = parts[-1].bottom + 10
        details += [f"{row.name}: {row.number}" for row in rows]
    keys = dict.fromkeys(text for stage in stages if (text := key(stage.structure)))
    title = "; ".join(": ".join(filter(None, (stage.title, summary(stage.structure)))) for stage in stages)
    return Drawing(max(map(_right, shapes)), y - 10, tuple(shapes), title, ", ".join(details), " ".join(keys))


def with_key(drawing: Drawing) -> Drawing:
    """Return the drawing with its key below it, for where texts do not wrap by themselves."""
    width, size = max(WIDTH, drawing.width), 10
    lines = textwrap.wrap(drawing.key, int(width / _width(" ", size)))
    texts = [Text(0, drawing.height + 20 + 14 * place, line, "muted", size=size) for place, line in enumerate(lines)]
    height = drawing.height + (14 * len(lines) + 12) * bool(lines)
    return replace(drawing, width=width, height=height, shapes=(*drawing.shapes, *texts))


def _columns(gates: Gates) -> tuple[str, str]:
    """What the two columns of numbers are."""
    counted = "open units" if gates.source == "parameters" else "units"
    return counted, "soft size" if gates.source in ("parameters", "inputs") else "Σ gates"


def _layers(gates: Gates) -> list[Row]:
    n_layers, units = gates.values.shape
    height = ROW if n_layers <= MOST_ROWS else max(LEAST_ROW, MOST_ROWS * ROW / n_layers)
    rows = []
    for place, values in enumerate(gates.values):
        n_open = int((values > 0).sum())
        count = f"{n_open} of {units}" if gates.source == "parameters" else str(n_open)
        total = "" if gates.source == "fixed" else f"{values.sum():.2f}"
        rows.append(Row(f"layer {place + 1}", values, "s1", count, total, height, is_layer=True))
    return rows


def _strip(strip: Strip) -> Row:
    n, total = len(strip.gates), f"{strip.gates.sum():.2f}" if strip.can_close else ""
    count = f"{strip.n_open:,} of {n:,}" if strip.can_close else f"{n:,}"
    return Row(strip.name, strip.gates, "s1" if strip.can_close else "s7", count, total)


def _rows(rows: Sequence[Row], header: tuple[str, str], y: float, width: float) -> Part:
    """Rows below each other; a thin row has texts only where there is room for them."""
    counted, summed = header
    has_totals = any(row.total for row in rows)
    numbers = 8 + max(_width(text, 11) for text in (counted, *(row.number for row in rows)))
    room = width - NAME - numbers - TOTAL * has_totals
    right = NAME + max((_cell(row, room) * len(row.gates) for row in rows), default=0)
    end = right + numbers + TOTAL
    shapes: list[Shape] = []
    if counted:
        shapes.append(Text(right + 8, y + 10, counted, "muted", size=10))
        shapes += [Text(end, y + 10, summed, "muted", "end", 10)] * has_totals
        y += 16
    free = y  # where texts may stand next
    for row in rows:
        y = max(y, free) if row.height == ROW else y
        shapes += _cells(row, _cell(row, room), y)
        if y >= free:
            base = y + _bar(row) / 2 + 4
            shapes.append(Text(NAME - 8, base, row.name, "ink", "end"))
            shapes.append(Text(right + 8, base, row.number))
            shapes += [Text(end, base, row.total, "ink", "end")] * bool(row.total)
            free = y + 13
        y += row.height
    return Part(shapes, max(y, free))


def _cell(row: Row, room: float) -> float:
    """The width of a cell."""
    return min(CELL, room / max(1, len(row.gates)))


def _bar(row: Row) -> float:
    """The height of the cells."""
    return row.height - min(4, row.height / 4)


def _cells(row: Row, cell: float, y: float) -> list[Shape]:
    """What is closed as one rectangle below; on it each open unit, or of many those of one shade together."""
    height = _bar(row)
    are_apart = cell >= LEAST_CELL and row.height == ROW
    shapes: list[Shape] = [Rect(NAME, y, cell * len(row.gates) - are_apart, height, "line")]
    shades = -np.sort(-row.gates)
    if not are_apart:
        shades = np.ceil(shades * SHADES) / SHADES
    steps = np.arange(1, len(shades)) if are_apart else np.flatnonzero(np.diff(shades)) + 1
    for start, end in zip([0, *steps], [*steps, len(shades)], strict=True):
        if start < end and shades[start] > 0:
            x, opacity = NAME + cell * float(start), round(0.3 + 0.7 * float(shades[start]), 2)
            shapes.append(Rect(x, y, cell * float(end - start) - are_apart, height, row.color, opacity))
    is_wide = cell * len(row.gates) >= _width(COPIES, 10) + 8
    if row.is_layer and row.height == ROW and is_wide and not row.gates.any():
        shapes.append(Text(NAME + 6, y + 10, COPIES, "muted", size=10))
    return shapes


def _tree(tree: Nodes, y: float, width: float) -> Part:
    """The root above, the first layer at the left; lines end at the edges of nodes, so that nothing is behind a text."""
    nodes = nodes_of(tree)
    between = len(nodes) - 1
    step = min(STEP, (width - 2 * RADIUS) / max(1, between))
    radius = min(RADIUS, 0.62 * step)
    left = NAME if NAME + step * between + 2 * radius <= width else 1
    top = y + radius + 6 + LEVEL * (tree.identity is not None)
    places = [(left + radius - 1 + step * node.place, top + LEVEL * node.depth) for node in nodes]
    shapes: list[Shape] = []
    for node, (x, y) in zip(nodes, places, strict=True):
        color = _color(node)
        for child, line_color in zip(node.children, (color, "s7"), strict=False):  # the left one shares its layer
            is_leaf = not nodes[child].children
            shapes.append(_branch((x, y), places[child], radius, is_leaf, line_color, node.gamma))
        if node.children:
            shapes += _ring(x, y, radius, color, node.gamma)
        else:
            side = 2 * radius - 2
            shapes.append(Rect(x - side / 2, y - side / 2, side, side, color))
            shapes += _label(x, y, f"W{_subscript(node.layer + 1)}", "ground", radius)
    if tree.identity is not None:
        (x, y), is_leaf = next((place, not node.children) for node, place in zip(nodes, places, strict=True) if not node.depth)
        shapes.append(_branch((x, y - LEVEL), (x, y), radius, is_leaf, "s7", tree.identity))
        shapes += _ring(x, y - LEVEL, radius, "s7", tree.identity)
    return Part(shapes, max(y for _, y in places) + radius + 10)


def _color(node: Node) -> str:
    return f"s{node.layer % N_SERIES + 1}"


def _ring(x: float, y: float, radius: float, color: str, gamma: float) -> list[Shape]:
    return [Circle(x, y, radius - 1, color), *_label(x, y, gamma_text(gamma), "ink", radius)]


def _label(x: float, y: float, words: str, color: str, radius: float) -> list[Shape]:
    size = min(10.5, 0.75 * radius)
    return [Text(x, y + 0.35 * size, words, color, "middle", size)] * (size >= LEAST_TEXT)


def _branch(
    start: tuple[float, float], end: tuple[float, float], radius: float, is_leaf: bool, color: str, gamma: float
) -> Line:
    """From the edge of a ring to the edge of what is below it; the thicker, the more goes through there: 1 − γ."""
    (x1, y1), (x2, y2) = start, end
    length = math.hypot(x2 - x1, y2 - y1)
    dx, dy = (x2 - x1) / length, (y2 - y1) / length
    stop = (radius - 1) / max(abs(dx), abs(dy)) if is_leaf else radius
    stroke = 1 + 4 * (1 - gamma)
    return Line(x1 + radius * dx, y1 + radius * dy, x2 - stop * dx, y2 - stop * dy, color, stroke)


def gamma_text(gamma: float) -> str:
    """Return γ with two digits; what is not quite 0 or 1 does not look it.

    >>> gamma_text(0.5), gamma_text(0.999), gamma_text(0.001), gamma_text(0.0)
    ('0.50', '>.99', '<.01', '0')
    """
    if 0 < gamma < 0.005:
        return "<.01"
    if 0.995 <= gamma < 1:
        return ">.99"
    return f"{gamma:.2f}" if 0 < gamma < 1 else f"{gamma:g}"


def _subscript(n: int) -> str:
    return str(n).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))


def _width(words: str, size: float) -> float:
    """About the width of a text."""
    return 0.58 * size * len(words)


def _right(shape: Shape) -> float:
    """The right end of a shape."""
    if isinstance(shape, Text):
        return shape.x + _width(shape.words, shape.size) * {"start": 1, "middle": 0.5, "end": 0}[shape.anchor]
    if isinstance(shape, Rect):
        return shape.x + shape.width
    return shape.x + shape.radius + shape.stroke if isinstance(shape, Circle) else max(shape.x1, shape.x2)
