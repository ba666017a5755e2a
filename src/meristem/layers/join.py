"""A body's layers between two linear maps, as few products as possible: join(layers, ends) → the layers of the whole network.

    the first layer     the embedding is multiplied into it, if nothing else reads the embedding beside it
    all layers gated    a cascade, where units read the input and one another instead of h, if that is less to multiply;
                        without any layer it is one affine map
    all gates 1         a plain layer: it copies nothing

Maps are multiplied together only where no nonlinearity stands between them, in double precision. Pure functions of arrays.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np

from meristem.layers.layer import Affine, Cascade, Gated, Layer, Leaf, Perceptron, Tree


class Ends(NamedTuple):
    """The linear maps around a body."""

    embed_weight: np.ndarray  # [width, in]
    head_weight: np.ndarray  # [out, width]
    head_bias: np.ndarray  # [out]


def join(layers: Sequence[Layer], ends: Ends) -> list[Layer]:
    """The layers of the whole network.

    >>> ends = Ends(embed_weight=np.ones((3, 2)), head_weight=np.ones((1, 3)), head_bias=np.zeros(1))
    >>> join([], ends)[0].weight.tolist()
    [[3.0, 3.0]]
    """
    through_h = [*embedded(ends.embed_weight, [plainer(layer) for layer in layers]), Affine(ends.head_weight, ends.head_bias)]
    gated = [layer for layer in layers if isinstance(layer, Gated)]
    if len(gated) < len(layers) or len({layer.activation for layer in gated}) > 1:
        return through_h
    return min([cascade(gated, ends)], through_h, key=products)


def products(layers: list[Layer]) -> int:
    """How much there is to multiply: each entry of a matrix once."""
    return sum(array.size for array in jax.tree.leaves(layers) if array.ndim == 2)


def plainer(layer: Layer) -> Layer:
    """A gated layer whose gates are all 1 copies nothing."""
    if isinstance(layer, Gated) and len(layer.rows) == layer.n_in and (layer.gate == 1).all():
        return Perceptron(layer.weight, layer.bias, layer.activation)
    return layer


def embedded(embed: np.ndarray, layers: list[Layer]) -> list[Layer]:
    """The layers after the embedding, which is multiplied into the first if nothing else reads it."""
    match layers:
        case [Perceptron(weight=weight, bias=bias, activation=activation), *others]:
            return [Perceptron(weight @ embed, bias, activation), *others]
        case [Tree(leaves=(leaf, *leaves), activation=activation) as tree, *others] if not tree.reads_input:
            first = Leaf(leaf.weight @ embed, leaf.bias, leaf.shares, leaf.reads)
            return [Tree((first, *leaves), activation), *others]
    return [Affine(embed, None), *layers]


def cascade(layers: list[Gated], ends: Ends) -> Cascade | Affine:
    """The gated layers without their h: h = H [x, a_1, a_2, …], and H is multiplied into whatever reads h."""
    n_in = ends.embed_weight.shape[1]
    h, readers = ends.embed_weight, []
    for layer in layers:
        readers.append((layer.weight @ h, layer.bias))
        rows, new = list(layer.rows), np.zeros((len(h), len(layer.rows)))
        new[rows, np.arange(len(rows))] = layer.gate
        h = h.copy()
        h[rows] *= (1 - layer.gate)[:, None]
        h = np.concatenate([h, new], 1)
    readers.append((ends.head_weight @ h, ends.head_bias))
    weights, biases = zip(*readers, strict=True)
    weight, bias = np.concatenate([w[:, :n_in] for w in weights]), np.concatenate(biases)
    if not layers:
        return Affine(weight, bias)
    return Cascade(weight, bias, tuple(w[:, n_in:] for w in weights[1:]), layers[0].activation)
