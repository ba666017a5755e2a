"""Bodies as compact layers: lower(body) → [layers], [width] → [width], the same function with nothing in it that does not live.

    tunnel      a layer whose gates are all 0 is gone; of the others only the open units are left
    budding     the live leaves, in their order; dormant buds are gone, and leaves that a closed node (γ = 1) hides.
                A root that may copy: γ₀ = 1 leaves nothing, γ₀ < 1 mixes the tree's input into its output
    others      layer by layer as they are

Exact by construction: nothing is dropped but exact zeros; in double precision. The one place that asks for a body's kind. For a
body of one's own, register a function that returns its layers (compact/layers.py):

    @lower.register
    def _(body: Own) -> list[Layer]:
        return [Perceptron(np.asarray(body.weight), np.asarray(body.bias), "relu")]
"""

from functools import singledispatch
from typing import Any

import jax
import numpy as np

from meristem.compact.layers import INPUT, Gated, Highway, Layer, Leaf, Perceptron, Residual, Tree
from meristem.nn import Body, Budding, Highway as HighwayBody, Network, Nodes, Plain, Residual as ResidualBody, Tunnel
from meristem.nn.budding import mixing


@singledispatch
def lower(body: Body) -> list[Layer]:
    """The layers of a body, of NumPy arrays; none at all: it copies its input. A host function: it looks at values."""
    name = type(body).__name__
    raise ValueError(
        f"compact() does not know the body {name}; say what its layers are: decorate a function (body: {name}) → list of "
        "meristem.compact.layers with @meristem.compact.lower.register."
    )


@lower.register
def _(body: Tunnel) -> list[Layer]:
    return [
        Gated(weight[rows], bias[rows], gate[rows], tuple(rows.tolist()), body.activation)
        for weight, bias, gate in zip(*_stacks(body.weight, body.bias, body.gate.value), strict=True)
        if len(rows := np.flatnonzero(gate))
    ]


@lower.register
def _(body: Plain) -> list[Layer]:
    kind = Residual if isinstance(body, ResidualBody) else Perceptron
    return [kind(weight, bias, body.activation) for weight, bias in zip(*_stacks(body.weight, body.bias), strict=True)]


@lower.register
def _(body: HighwayBody) -> list[Layer]:
    stacks = _stacks(body.weight, body.bias, body.gate_weight, body.gate_bias)
    return [Highway(w, b, gate_w, gate_b, body.activation) for w, b, gate_w, gate_b in zip(*stacks, strict=True)]


@lower.register
def _(body: Budding) -> list[Layer]:
    _check_one(body.weight)
    nodes = body.structure()
    return [] if nodes.identity == 1 else unchained(living_leaves(body, nodes), body.activation)


def living_leaves(body: Budding, nodes: Nodes) -> list[Leaf]:
    """The leaves that the output depends on. A leaf below γ = 1 is yet to open: its bud follows it as another leaf."""
    weight, bias, bud_weight, bud_bias = _stacks(body.weight, body.bias, body.bud.weight, body.bud.bias)
    gamma, mix = _host(nodes.leafness)[0::2], _host(jax.jit(mixing)(body.leafness.value, body.depth))
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
    kept = sorted(needed - {INPUT})
    new = {old: i for i, old in enumerate(kept)} | {INPUT: INPUT}
    feeds = [inputs[k - 1] for k in kept[1:]] + [inputs[-1]]
    return [
        Leaf(*layers[k], np.array(list(row.values())), tuple(new[i] for i in row)) for k, row in zip(kept, feeds, strict=True)
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


def check_concrete(what: str, network: Any) -> None:
    """One network with values in it, or a ValueError of one line."""
    if not isinstance(network, Network):
        raise ValueError(f"{what} takes a Network, got a {type(network).__name__}; make one with Network.create(…).")
    check_values(what, network)
    if network.has_embed_bias:
        raise ValueError(f"{what} takes networks whose embedding has no bias, as Network.create(…) makes them.")
    if network.members:
        raise ValueError(
            f"{what} takes one network, got a population of {network.members[0]}; "
            "pick one: jax.tree.map(lambda a: a[0], networks)."
        )


def check_values(what: str, model: Any) -> None:
    """Arrays with values in them, or a ValueError of one line."""
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(model)):
        raise ValueError(f"{what} looks at the values of the gates, which jit, vmap and grad hide; call it outside of them.")


def _check_one(weight: Any) -> None:
    if weight.ndim != 3:
        raise ValueError(
            f"compact() takes one body, got a population of {weight.shape[0]}; pick one: jax.tree.map(lambda a: a[0], bodies)."
        )


def _stacks(weight: Any, *others: Any) -> list[np.ndarray]:
    """Arrays of which the first axis is that of layers; the first array is [layers, width, width]."""
    _check_one(weight)
    return [_host(array) for array in (weight, *others)]


def _host(values: Any) -> np.ndarray:
    return np.asarray(values, np.float64)
