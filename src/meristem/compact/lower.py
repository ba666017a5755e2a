"""Compaction: a trained network → only what lives, and the same outputs.

    tunnel      a layer whose gates are all 0 is gone; of the others only the open units are multiplied. Nothing open: one
                affine map. Few open: a cascade, where units read the input and one another, if that is less to multiply.
    budding     the live leaves, in their order; dormant buds are gone, and leaves that a closed node (γ = 1) hides.
    plain       as it is, the first layer multiplied with the embedding; residual and highway as they are.

Exact by construction: nothing is dropped but exact zeros, and maps are multiplied together only where no nonlinearity stands
between them, in double precision. Sums are taken in another order, so outputs agree to rounding, not to the bit.
"""

from functools import singledispatch
from typing import NamedTuple

import jax
import numpy as np

from meristem.compact.layers import Affine, Cascade, Gated, Highway, Layer, Leaf, Perceptron, Residual, Tree
from meristem.compact.network import CompactNetwork
from meristem.nn import Body, Budding, Highway as HighwayBody, Network, Plain, Residual as ResidualBody, Tunnel
from meristem.nn.budding import mixing


def compact(network: Network | CompactNetwork) -> CompactNetwork:
    """The same function with nothing in it that does not live. A host function: it looks at the values of the gates.

    Outputs agree to rounding: within 1e-5 of the largest output in float32, 1e-12 in float64; on a GPU under
    `jax.default_matmul_precision("highest")`, without which it rounds more than that in either network.

    >>> import jax, jax.numpy as jnp
    >>> from meristem.nn import Network
    >>> network = Network.create("tunnel", n_in=2, n_out=1, width=10, depth=10, key=jax.random.key(0))
    >>> small = compact(network)                                                  # all gates are 0: an affine map
    >>> small.layers[0].weight.shape
    (1, 2)
    >>> bool(jnp.allclose(small(jnp.ones(2)), network(jnp.ones(2)), rtol=1e-5))
    True
    """
    if isinstance(network, CompactNetwork):
        return network
    check_concrete("compact()", network)
    head, dtype = network.head, network.embed.weight.dtype
    bias = np.zeros(head.weight.shape[0]) if head.bias is None else _host(head.bias)
    ends = Ends(_host(network.embed.weight), _host(head.weight), bias)
    return CompactNetwork(jax.device_put(jax.tree.map(lambda a: a.astype(dtype), tuple(lower(network.body, ends)))))


def check_concrete(what: str, network: Network) -> None:
    """One network with values in it, or a ValueError of one line."""
    if not isinstance(network, Network):
        raise ValueError(f"{what} takes a Network, got a {type(network).__name__}; make one with Network.create(…).")
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(network)):
        raise ValueError(f"{what} looks at the values of the gates, which jit, vmap and grad hide; call it outside of them.")
    if network.embed.bias is not None:
        raise ValueError(f"{what} takes networks whose embedding has no bias, as Network.create(…) makes them.")
    if network.embed.weight.ndim != 2:
        members = network.embed.weight.shape[0]
        raise ValueError(
            f"{what} takes one network, got a population of {members}; pick one: jax.tree.map(lambda a: a[0], networks)."
        )


class Ends(NamedTuple):
    """What stands around the body."""

    embed: np.ndarray  # [width, in]
    head: np.ndarray  # [out, width]
    bias: np.ndarray  # [out]


@singledispatch
def lower(body: Body, ends: Ends) -> list[Layer]:
    """The layers of a whole network with this body, in double precision."""
    raise ValueError(f"compact() does not know the body {type(body).__name__}; register it with lower.register.")


@lower.register
def _(body: Tunnel, ends: Ends) -> list[Layer]:
    stacks = map(_host, (body.weight, body.bias, body.gate.value))
    layers = [
        Gated(weight[rows], bias[rows], gate[rows], tuple(rows.tolist()), body.activation)
        for weight, bias, gate in zip(*stacks, strict=True)
        if len(rows := np.flatnonzero(gate))
    ]
    through_h = join([Affine(ends.embed, None), *map(plainer, layers), Affine(ends.head, ends.bias)])
    return min([cascade(layers, ends)], through_h, key=products)


def products(layers: list[Layer]) -> int:
    """How much there is to multiply: each entry of a matrix once."""
    return sum(array.size for array in jax.tree.leaves(layers) if array.ndim == 2)


def cascade(layers: list[Gated], ends: Ends) -> Cascade | Affine:
    """The tunnel network without its h: h = H [x, a_1, a_2, …], and H is multiplied into whatever reads h."""
    n_in = ends.embed.shape[1]
    h, readers = ends.embed, []
    for layer in layers:
        readers.append((layer.weight @ h, layer.bias))
        rows, new = list(layer.rows), np.zeros((len(h), len(layer.rows)))
        new[rows, np.arange(len(rows))] = layer.gate
        h = h.copy()
        h[rows] *= (1 - layer.gate)[:, None]
        h = np.concatenate([h, new], 1)
    readers.append((ends.head @ h, ends.bias))
    weights, biases = zip(*readers, strict=True)
    weight, bias = np.concatenate([w[:, :n_in] for w in weights]), np.concatenate(biases)
    if not layers:
        return Affine(weight, bias)
    return Cascade(weight, bias, tuple(w[:, n_in:] for w in weights[1:]), layers[0].activation)


def plainer(layer: Gated) -> Gated | Perceptron:
    """A layer whose gates are all 1 copies nothing."""
    if len(layer.rows) == layer.weight.shape[1] and (layer.gate == 1).all():
        return Perceptron(layer.weight, layer.bias, layer.activation)
    return layer


@lower.register
def _(body: Budding, ends: Ends) -> list[Layer]:
    return join([Affine(ends.embed, None), *unchained(living_leaves(body), body.activation), Affine(ends.head, ends.bias)])


def living_leaves(body: Budding) -> list[Leaf]:
    """The leaves that the output depends on. A leaf below γ = 1 is yet to open: its bud follows it as another leaf."""
    gamma, mix = _host(body.leafness.value)[0::2], _host(jax.jit(mixing)(body.leafness.value, body.depth))
    weight, bias, bud_weight, bud_bias = map(_host, (body.weight, body.bias, body.bud.weight, body.bud.bias))
    layers: list[tuple[np.ndarray, np.ndarray]] = []
    inputs: list[dict[int, float]] = []  # what the layer after each one reads: {layer: share}
    place: list[int] = []  # of each leaf among the layers
    for j in range(int(body.in_use())):
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
    needed = set(inputs[-1])
    for j in range(len(layers) - 1, 0, -1):
        if j in needed:
            needed |= set(inputs[j - 1])
    # What follows a needed layer reads what the next needed one takes, or the output.
    kept = sorted(needed)
    new = {old: i for i, old in enumerate(kept)}
    feeds = [inputs[k - 1] for k in kept[1:]] + [inputs[-1]]
    return [
        Leaf(*layers[k], np.array(list(row.values())), tuple(new[i] for i in row)) for k, row in zip(kept, feeds, strict=True)
    ]


def unchained(leaves: list[Leaf], activation: str) -> list[Layer]:
    """Leaves at the front that only the next one reads, whole, are plain layers; the rest is a tree."""
    layers: list[Layer] = []
    while leaves and leaves[0].shares.tolist() == [1] and not any(0 in leaf.reads for leaf in leaves[1:]):
        layers.append(Perceptron(leaves[0].weight, leaves[0].bias, activation))
        leaves = [Leaf(leaf.weight, leaf.bias, leaf.shares, tuple(k - 1 for k in leaf.reads)) for leaf in leaves[1:]]
    return [*layers, Tree(tuple(leaves), activation)] if leaves else layers


@lower.register
def _(body: Plain, ends: Ends) -> list[Layer]:
    kind = Residual if isinstance(body, ResidualBody) else Perceptron
    layers = [kind(weight, bias, body.activation) for weight, bias in zip(_host(body.weight), _host(body.bias), strict=True)]
    return join([Affine(ends.embed, None), *layers, Affine(ends.head, ends.bias)])


@lower.register
def _(body: HighwayBody, ends: Ends) -> list[Layer]:
    weight, bias, gate_weight, gate_bias = map(_host, (body.weight, body.bias, body.gate_weight, body.gate_bias))
    layers = [Highway(weight[i], bias[i], gate_weight[i], gate_bias[i], body.activation) for i in range(len(bias))]
    return [Affine(ends.embed, None), *layers, Affine(ends.head, ends.bias)]


def join(layers: list[Layer]) -> list[Layer]:
    """The embedding multiplied into a first layer that nothing else reads it beside."""
    embed, first, *others = layers
    assert isinstance(embed, Affine)
    if isinstance(first, Perceptron):
        return [Perceptron(first.weight @ embed.weight, first.bias, first.activation), *others]
    if isinstance(first, Tree):
        leaf, *leaves = first.leaves
        leaf = Leaf(leaf.weight @ embed.weight, leaf.bias, leaf.shares, leaf.reads)
        return [Tree((leaf, *leaves), first.activation), *others]
    return layers


def _host(values: jax.Array) -> np.ndarray:
    return np.asarray(values, np.float64)
