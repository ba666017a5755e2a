"""A tree of layers as a list of nodes: where each stands, whose weights it has, and its children.

    nodes_of(body's Nodes) → [Node(place=0, depth=2, layer=0, gamma=1.0, children=()), …]

Places count in the tree's order (leaf, inner node, leaf, …), so with the place as x and the depth as y no two lines cross. A
node and its left child share a layer. Imports nn/structure.py; stages, layout and describe import it.
"""

from typing import NamedTuple

from meristem.nn.structure import Nodes


class Node(NamedTuple):
    """A leaf, or an inner node with two children."""

    place: int
    depth: int
    layer: int  # whose weights it has, counted from 0
    gamma: float
    children: tuple[int, ...]  # the places of the left and the right one; none for a leaf


def nodes_of(tree: Nodes) -> list[Node]:
    """Return the nodes in the tree's order.

    >>> import numpy as np
    >>> [(node.depth, node.children) for node in nodes_of(Nodes(np.array([-1, 1, 0, -1]), np.ones(7)))]        # ((0 1) 2)
    [(2, ()), (1, (0, 2)), (2, ()), (0, (1, 4)), (1, ())]
    """
    nodes: list[Node] = []

    def add(first: int, last: int, depth: int) -> int:
        """Add the subtree over the leaves first … last, and return the place of its root: the least deep inner node."""
        place, children = 2 * first, tuple[int, ...]()
        if first < last:
            middle = first + 1 + int(tree.depth[first + 1 : last + 1].argmin())
            place, children = 2 * middle - 1, (add(first, middle - 1, depth + 1), add(middle, last, depth + 1))
        nodes.append(Node(place, depth, first, float(tree.leafness[place]), children))
        return place

    add(0, tree.n_leaves - 1, 0)
    return sorted(nodes)


def tree_size(tree: Nodes) -> float:
    """Return the soft size, as equation 8 has it: a leaf is 1, an inner node 1 + (1 − γ) · its children."""
    nodes = nodes_of(tree)

    def size(node: Node) -> float:
        return 1 + (1 - node.gamma) * sum(size(nodes[child]) for child in node.children)

    return (1 - (tree.identity or 0)) * next(size(node) for node in nodes if node.depth == 0)
