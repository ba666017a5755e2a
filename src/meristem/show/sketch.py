"""The structure of a network as a small SVG, for a line of text or a notebook: its open units layer by layer, or its tree.

    sketch(network)  → "<svg …>…</svg>"          rows of cells: a cell is an open unit, the fuller the more open its gate
                                                 a tree: squares are layers, a circle is where one became two

One blue that is seen on white and on black; all else is `currentColor`, the color of the text around it. Nothing is loaded from
elsewhere. Shows what `structure(body)` shows (nn/structure.py); the cards of notebooks (card.py) import it.
"""

import jax.numpy as jnp
import numpy as np

from meristem.nn.network import Network
from meristem.nn.structure import Gates, Nodes, structure
from meristem.nn.tree import leaf_depth
from meristem.nn.trunk import trunk_of

BLUE = "#3a8bd0"
CELLS, LAYERS = 64, 12  # the most that are drawn; of more units a cell is several, of more layers the first are drawn
ROOM, ROW, MARGIN = 256, 16, 22  # pixels
STEP, LEVEL = 15, 24  # of a tree: between two nodes, and between two levels


def sketch(network: Network) -> str:
    """An `<svg>` element of a network.

    >>> import jax
    >>> sketch(Network.create("tunnel", n_in=2, n_out=1, depth=3, key=jax.random.key(0))).startswith("<svg")
    True
    """
    shown = structure(network.body)
    return _tree(shown) if isinstance(shown, Nodes) else _stack(open_gates(network, shown))


def open_gates(network: Network, gates: Gates) -> np.ndarray:
    """[layers, units] How open each unit is that can be there: those on dimensions of the trunk that are closed are none.

    >>> import jax
    >>> network = Network.create("highway", n_in=2, n_out=1, width=4, depth=3, key=jax.random.key(0))
    >>> open_gates(network, structure(network.body)).sum()        # gates that are functions of the input: a unit is a unit
    np.float32(12.0)
    """
    trunk = trunk_of(network.body)
    values = gates.values if gates.source == "parameters" else np.ones_like(gates.values)
    return values if trunk is None else values[:, np.asarray(trunk.is_open)]


def _stack(gates: np.ndarray) -> str:
    """A row for each layer, the most open units first, and how many are open."""
    units = gates.shape[1]
    cells = min(CELLS, max(1, units))
    width = min(10.0, ROOM / cells)
    parts = []
    for layer, row in enumerate(gates[:LAYERS]):
        y = ROW * layer + 2
        parts.append(_text(MARGIN - 8, y + 10, str(layer + 1), "end"))
        line = f'<rect x="{MARGIN}" y="{y}" width="{cells * width:g}" height="{ROW - 4}" fill="none" stroke="currentColor"'
        parts.append(f'{line} stroke-opacity=".35"/>')
        ordered = np.sort(row)[::-1]
        for cell, part in enumerate(np.array_split(ordered, cells) if units else []):
            if part[0] > 0:
                x, fill = MARGIN + cell * width, 0.45 + 0.55 * float(part.mean())
                place = f'x="{x + 0.5:g}" y="{y + 0.5:g}" width="{width - 1:g}" height="{ROW - 5}"'
                parts.append(f'<rect {place} fill="{BLUE}" fill-opacity="{fill:.2f}"/>')
        parts.append(_text(MARGIN + cells * width + 6, y + 10, str(int((row > 0).sum())), "start"))
    if len(gates) > LAYERS:
        parts.append(_text(MARGIN, ROW * LAYERS + 12, f"and {len(gates) - LAYERS} more layers", "start"))
    words = f"open units of each layer: {', '.join(str(int((row > 0).sum())) for row in gates)}"
    return _svg(MARGIN + cells * width + 40, ROW * (min(LAYERS, len(gates)) + (len(gates) > LAYERS)), words, parts)


def _tree(tree: Nodes) -> str:
    """Nodes at their place in the tree's order, their depth below the root: no two lines cross."""
    depths = in_order(tree)
    places = [(STEP * (place + 1), LEVEL * depth + 10) for place, depth in enumerate(depths)]
    parts = []
    for place, above in enumerate(parents(depths)):
        if above is not None:
            (x, y), (to_x, to_y) = places[place], places[above]
            thick = 1 + 2.5 * (1 - float(tree.leafness[above]))
            ends = f'x1="{x}" y1="{y}" x2="{to_x}" y2="{to_y}"'
            parts.append(f'<line {ends} stroke="currentColor" stroke-opacity=".5" stroke-width="{thick:.2f}"/>')
    for place, (x, y) in enumerate(places):
        if place % 2:
            parts.append(f'<circle cx="{x}" cy="{y}" r="5" fill="{BLUE}" stroke="currentColor" stroke-opacity=".5"/>')
        else:
            parts.append(f'<rect x="{x - 6}" y="{y - 6}" width="12" height="12" fill="{BLUE}"/>')
    leaves = tree.n_leaves
    words = "a tree of one layer" if leaves == 1 else f"a tree of {leaves} layers, {max(depths)} deep"
    return _svg(STEP * (len(depths) + 1), LEVEL * max(depths) + 20, words, parts)


def in_order(tree: Nodes) -> list[int]:
    """The depths of the nodes in the tree's order: leaf, inner node, leaf, …

    >>> in_order(Nodes(np.array([-1, 1, 0, -1]), np.ones(7)))          # ((0 1) 2)
    [2, 1, 2, 0, 1]
    """
    leaves = np.asarray(leaf_depth(jnp.asarray(tree.depth)))
    return [int(leaves[0]), *(int(d) for j in range(1, tree.n_leaves) for d in (tree.depth[j], leaves[j]))]


def parents(depths: list[int]) -> list[int | None]:
    """The place of each node's parent: on either side the first that is less deep, of these two the deeper one.

    >>> parents([2, 1, 2, 0, 1])
    [1, 3, 1, None, 3]
    """
    found: list[int | None] = []
    for place, own in enumerate(depths):
        before = next((other for other in range(place - 1, -1, -1) if depths[other] < own), None)
        after = next((other for other in range(place + 1, len(depths)) if depths[other] < own), None)
        found.append(max((one for one in (before, after) if one is not None), key=lambda one: depths[one], default=None))
    return found


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="10" fill="currentColor">{words}</text>'


def _svg(width: float, height: float, words: str, parts: list[str]) -> str:
    size = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    style = "max-width:100%;height:auto;background:none"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{words}" style="{style}">'
        f"<title>{words}</title>{''.join(parts)}</svg>"
    )
