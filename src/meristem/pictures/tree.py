"""A tree of layers. A node and its left child share a layer, so each layer has a color, from node to leaf.

Nodes stand at their place in the tree's order (leaf, inner, leaf, …), their depth below the root: no two lines cross.
Lines are the thicker, the more goes through the children: 1 − γ. A root that may copy its input has γ₀ above it.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from meristem.nn.structure import Nodes
from meristem.nn.tree import inner_of, leaf_depth, spans
from meristem.pictures.canvas import canvas, inches, text_on, titled
from meristem.pictures.sheet import GREY, INK, Axes, layer_colors
from meristem.pictures.strips import Strip, draw_strip

POINTS = 72  # an inch
STRIP = 0.7  # of the distance between two levels
KEY = (
    "Circle: a node's γ; its output is γ · σ(W x + b) + (1 − γ) · right(left(x)); thicker lines: smaller γ.\n"
    "Square: a leaf, the layer σ(W x + b). One color: one layer's weights, shared."
)
SHORT_KEY = "Circle: γ of a node. Square: a layer.\nOne color: shared weights. Thicker lines: smaller γ."
IDENTITY_KEY = "Diamond: γ₀; the output is γ₀ · x + (1 − γ₀) · tree(x)."


class Node(NamedTuple):
    """A node where it is drawn."""

    x: int
    y: int
    layer: int  # whose weights it has, counted from 0
    gamma: float
    children: tuple[int, ...]  # left and right, as places in the tree's order; none for a leaf


def nodes_of(tree: Nodes) -> list[Node]:
    """The nodes in the tree's order."""
    depth, leafness = tree.depth, tree.leafness
    below = np.asarray(leaf_depth(jnp.asarray(depth)))
    first, last = (np.asarray(end) for end in spans(jnp.asarray(depth)))
    gamma = np.asarray(inner_of(jnp.asarray(leafness), 0.0))

    def root(start: int, end: int) -> int:
        """The place of the node over the leaves start … end: that leaf, or the least deep of the inner nodes between."""
        return 2 * start if start == end else 2 * (start + 1 + int(depth[start + 1 : end + 1].argmin())) - 1

    nodes = []
    for j in range(tree.n_leaves):
        if j:
            children = root(int(first[j]), j - 1), root(j, int(last[j]))
            nodes.append(Node(2 * j - 1, -int(depth[j]), int(first[j]), float(gamma[j]), children))
        nodes.append(Node(2 * j, -int(below[j]), j, float(leafness[2 * j]), ()))
    return nodes


def draw_tree(tree: Nodes, title: tuple[str, str], ax: Any, strips: Sequence[Strip] = ()) -> Axes:
    """The tree, the root above, the first layer at the left; strips below it."""
    nodes = nodes_of(tree)
    has_identity = tree.identity is not None
    columns, rows = len(nodes), 1 - min(node.y for node in nodes) + has_identity + STRIP * len(strips)
    with canvas("ax", ax, size=(min(14.0, max(7.0, 0.7 + 0.5 * columns)), min(9.0, 1.7 + 0.75 * max(2, rows)))) as (ax,):
        top = 0.6 + has_identity
        ax.set(xlim=(-0.8, columns - 0.2), ylim=(top - 0.2 - rows, top), xticks=[], yticks=[])
        for side in ax.spines.values():
            side.set_visible(False)
        width, height = inches(ax)
        # Of a node, in points; neighbors in the order are never on one level, so it may be wider than its place.
        size = POINTS * min(0.45, 1.4 * width / (columns + 0.6), 0.6 * height / rows)
        colors = layer_colors(len(nodes) // 2 + 1)
        if tree.identity is not None:
            _identity(ax, next(node for node in nodes if node.y == 0), tree.identity, size)
        for node in nodes:
            _lines_below(ax, node, nodes, colors)
        inner = [node for node in nodes if node.children]
        leaves = [node for node in nodes if not node.children]
        _marks(ax, inner, "o", "white", colors[[node.layer for node in inner]], size)
        _marks(ax, leaves, "s", colors[[node.layer for node in leaves]], "none", size)
        for node in inner:
            ax.text(node.x, node.y, shown(node.gamma), ha="center", va="center", fontsize=0.33 * size, zorder=4)
        for node in leaves:
            style = {"color": text_on(colors[node.layer][:3]), "fontsize": 0.4 * size}
            ax.text(node.x, node.y, f"$W_{{{node.layer + 1}}}$", ha="center", va="center", zorder=4, **style)
        for place, strip in enumerate(strips):
            y = top - 0.2 - rows + STRIP * (len(strips) - place - 0.5)
            draw_strip(ax, strip, -0.6, columns - 0.4, y - 0.15, height=0.25)
            words = f"{strip.name}: {strip.is_open.sum()} of {len(strip.gates)} open"
            ax.text(-0.6, y + 0.05, words, ha="left", va="bottom", fontsize=8.5, color=GREY)
        titled(ax, *title)
        key = [KEY if width > 5.3 else SHORT_KEY] * bool(inner) + [IDENTITY_KEY] * has_identity
        if key:
            ax.set_xlabel("\n".join(key), color=GREY, fontsize=8.5)
    return ax


def _identity(ax: Axes, root: Node, gamma: float, size: float) -> None:
    """γ₀ above the root, and the line to it as thick as what goes through the tree."""
    ax.plot([root.x] * 2, [root.y, root.y + 1], color=GREY, linewidth=0.8 + 4 * (1 - gamma), solid_capstyle="round", zorder=2)
    ax.scatter([root.x], [root.y + 1], s=size**2, marker="D", facecolors="white", edgecolors=INK, linewidths=1.6, zorder=3)
    ax.text(root.x, root.y + 1, shown(gamma), ha="center", va="center", fontsize=0.33 * size, zorder=4)


def _lines_below(ax: Axes, node: Node, nodes: list[Node], colors: np.ndarray) -> None:
    """To the left child in the color of the layer that they share; to the right one, which has its own, in grey."""
    for child, color in zip(node.children, (colors[node.layer], GREY), strict=bool(node.children)):
        end = nodes[child]
        width = 0.8 + 4 * (1 - node.gamma)
        ax.plot([node.x, end.x], [node.y, end.y], color=color, linewidth=width, solid_capstyle="round", zorder=2)


def _marks(ax: Axes, nodes: list[Node], marker: str, face: Any, edge: Any, size: float) -> None:
    if nodes:
        places = [node.x for node in nodes], [node.y for node in nodes]
        ax.scatter(*places, s=size**2, marker=marker, facecolors=face, edgecolors=edge, linewidths=2.2, zorder=3)


def shown(gamma: float) -> str:
    """γ with two digits; what is not quite 0 or 1 does not look it.

    >>> shown(0.5), shown(0.999), shown(0.001), shown(0.0)
    ('0.50', '>.99', '<.01', '0')
    """
    if 0 < gamma < 0.005:
        return "<.01"
    if 0.995 <= gamma < 1:
        return ">.99"
    return f"{gamma:.2f}" if 0 < gamma < 1 else f"{gamma:g}"
