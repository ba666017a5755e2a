"""The tree of layers that a budding perceptron became: leaves are layers, an inner node has its γ written in it.

    draw([nodes]) → Element, of `body.structure()` of each network; the first few trees side by side

A node and its left child share a layer, so each layer has a color. Sections import it.
"""

from collections.abc import Sequence

from meristem.check import many
from meristem.nn.structure import Nodes
from meristem.pictures.tree import nodes_of, shown
from meristem.report.numbers import figure
from meristem.show.elements import WIDTH, Element, el, picture

MOST_TREES, MOST_LEAVES, LEVEL, COLORS = 6, 12, 46, 6


def draw(trees: Sequence[Nodes]) -> Element | None:
    """None where all trees are single leaves, or too large to be drawn."""
    drawn = [tree for tree in trees if 2 <= tree.n_leaves <= MOST_LEAVES][:MOST_TREES]
    if not drawn:
        return None
    parts: list[Element] = []
    left, top, tallest = 0.0, 0.0, 0.0
    for tree in drawn:
        nodes = nodes_of(tree)
        step = min(34.0, (WIDTH - 16) / len(nodes))
        width, height = step * len(nodes) + 12, LEVEL * (1 - min(node.y for node in nodes)) + 14
        if left and left + width > WIDTH:
            left, top, tallest = 0.0, top + tallest, 0.0
        tallest = max(tallest, height)
        places = [(left + 6 + step * (node.x + 0.5), top + 22 - LEVEL * node.y) for node in nodes]
        for (x, y), node in zip(places, nodes, strict=True):
            for child in node.children:
                thick = 1 + 4 * (1 - node.gamma)
                parts.append(
                    el("line", x1=x, y1=y, x2=places[child][0], y2=places[child][1], class_="branch", stroke_width=thick)
                )
        for (x, y), node in zip(places, nodes, strict=True):
            color, size = f"s{node.layer % COLORS + 1}", min(17.0, 0.62 * step)
            if node.children:
                parts.append(el("circle", cx=x, cy=y, r=size, class_=f"{color} node"))
                parts.append(el("text", shown(node.gamma), x=x, y=y + 4, class_="ink middle small"))
            else:
                parts.append(el("rect", x=x - size, y=y - size, width=2 * size, height=2 * size, rx=3, class_=f"{color} dot"))
                parts.append(el("text", str(node.layer + 1), x=x, y=y + 4, class_="inverse middle small"))
        left += width
    words = "; ".join(_in_words(tree) for tree in drawn)
    key = ["Square: a layer. Circle: γ of a node;", "at 1 its own layer is used, at 0 what is below it."]
    parts += [el("text", text, x=0, y=top + tallest + 14 + 15 * row, class_="muted small") for row, text in enumerate(key)]
    title = "The tree of layers" if len(drawn) == 1 else f"The trees of layers of {many(len(drawn), 'network')}"
    return picture("tree", title, f"{words}. {' '.join(key)}", top + tallest + 36, parts)


def _in_words(tree: Nodes) -> str:
    inner = [node for node in nodes_of(tree) if node.children]
    return f"{many(tree.n_leaves, 'layer')}, γ of the inner nodes {', '.join(figure(node.gamma) for node in inner)}"
