"""A tree as compact layers: the leaves that the output depends on, in their order, and what each reads.

    unchained(living_leaves(body, nodes, mix), activation) → layers

Dormant buds are gone, and leaves that a closed node (γ = 1) hides. A root that may copy mixes the tree's input into its output.
"""

from typing import Any

import numpy as np

from meristem.layers.layer import INPUT, Layer, Leaf, Perceptron, Tree
from meristem.nn.structure import Nodes


def living_leaves(body: Any, nodes: Nodes, mix: np.ndarray) -> list[Leaf]:
    """The leaves that the output depends on; `mix` are their shares (`budding.mixing`).

    A leaf below γ = 1 is yet to open: its bud follows it as another leaf.
    """
    arrays = body.weight, body.bias, body.bud.weight, body.bud.bias
    weight, bias, bud_weight, bud_bias = (np.asarray(array, np.float64) for array in arrays)
    gamma = np.asarray(nodes.leafness, np.float64)[0::2]
    layers: list[tuple[np.ndarray, np.ndarray]] = []
    inputs: list[dict[int, float]] = []  # what the layer after each one reads: {layer: share}
    place: list[int] = []  # of each leaf among the layers
    for j in range(nodes.n_leaves):
        place.append(len(layers))
        layers.append((weight[j], bias[j]))
        row = {place[k]: mix[j, k] for k in range(j + 1)}
        if gamma[j] != 1:
            row[place[j]] *= gamma[j]
            if body.probe == "bud":
                inputs.append({place[j]: 1.0})
                row[len(layers)] = mix[j, j] * (1 - gamma[j])
                layers.append((bud_weight[j], bud_bias[j]))
        inputs.append({k: share for k, share in row.items() if share != 0} or {place[j]: 0.0})
    if copied := nodes.identity:  # neither None nor 0
        inputs[-1] = {INPUT: copied} | {k: (1 - copied) * share for k, share in inputs[-1].items()}
    needed = set(inputs[-1])
    for j in range(len(layers) - 1, 0, -1):
        if j in needed:
            needed |= set(inputs[j - 1])
    # What follows a needed layer reads what the next needed one takes, or the output.
    order = sorted(needed - {INPUT})
    new = {old: i for i, old in enumerate(order)} | {INPUT: INPUT}
    feeds = [inputs[k - 1] for k in order[1:]] + [inputs[-1]]
    return [
        Leaf(*layers[k], np.array(list(row.values())), tuple(new[i] for i in row)) for k, row in zip(order, feeds, strict=True)
    ]


def unchained(leaves: list[Leaf], activation: str) -> list[Layer]:
    """Leaves at the front that only the next one reads, whole, are plain layers; the rest is a tree."""
    layers: list[Layer] = []
    if any(INPUT in leaf.reads for leaf in leaves):
        return [Tree(tuple(leaves), activation)]
    while leaves and leaves[0].shares.tolist() == [1] and not any(0 in leaf.reads for leaf in leaves[1:]):
        layers.append(Perceptron(leaves[0].weight, leaves[0].bias, activation))
        leaves = [Leaf(leaf.weight, leaf.bias, leaf.shares, tuple(k - 1 for k in leaf.reads)) for leaf in leaves[1:]]
    return [*layers, Tree(tuple(leaves), activation)] if leaves else layers
