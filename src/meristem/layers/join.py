"""The layers of a network in as few products as possible: join(layers) → layers that compute the same.

    affine, affine      one map, if that is less to multiply
    affine, layer       the map is multiplied into the layer, if nothing else reads what it says
    all gated           between two affine maps: a cascade, where units read the input and one another instead of h, if that is
                        less to multiply
    all gates 1         a plain layer: it copies nothing

Maps are multiplied together only where no nonlinearity stands between them, in double precision. Pure functions of arrays.
"""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from meristem.layers.layer import Affine, Cascade, Gated, Layer, Leaf, Perceptron, Tree


def join(layers: Sequence[Layer]) -> list[Layer]:
    """Return layers that compute the same in fewer products.

    >>> [joined] = join([Affine(np.ones((3, 2)), None), Affine(np.ones((1, 3)), np.zeros(1))])
    >>> joined.weight.tolist()
    [[3.0, 3.0]]
    """
    through_h = fused([plainer(layer) for layer in layers])
    match layers:
        case [Affine(bias=None) as first, *gated, Affine() as last] if gated and all(isinstance(g, Gated) for g in gated):
            if len({layer.activation for layer in gated}) == 1:  # type: ignore[attr-defined]
                return min([cascade(first, gated, last)], through_h, key=products)  # type: ignore[arg-type]
    return through_h


def fused(layers: list[Layer]) -> list[Layer]:
    """The layers with each affine map multiplied into what follows, where nothing else reads what it says."""
    match layers:
        case [Affine() as first, Affine() as second, *others]:
            both = Affine(second.weight @ first.weight, _bias(second.weight, first.bias, second.bias))
            return min(fused([both, *others]), [first, *fused([second, *others])], key=products)
        case [Affine(weight=map_, bias=offset), Perceptron(weight=weight, bias=bias, activation=activation), *others]:
            return [Perceptron(weight @ map_, _bias(weight, offset, bias), activation), *fused(others)]
        case [Affine(weight=map_, bias=offset), Tree(leaves=(leaf, *leaves)) as tree, *others] if not tree.reads_input:
            first_leaf = Leaf(leaf.weight @ map_, _bias(leaf.weight, offset, leaf.bias), leaf.shares, leaf.reads)
            return [Tree((first_leaf, *leaves), tree.activation), *fused(others)]
        case [layer, *others]:
            return [layer, *fused(others)]
    return []


def _bias(weight: Any, before: Any, own: Any) -> Any:
    """The bias of W (x + before) + own."""
    if before is None:
        return own
    return weight @ before if own is None else weight @ before + own


def products(layers: list[Layer]) -> int:
    """How much there is to multiply: each entry of a matrix once."""
    return sum(array.size for array in jax.tree.leaves(layers) if array.ndim > 1)


def plainer(layer: Layer) -> Layer:
    """The layer, or a plain one where it is gated and its gates are all 1: it copies nothing."""
    if isinstance(layer, Gated) and len(layer.rows) == layer.n_in and (layer.gate == 1).all():
        return Perceptron(layer.weight, layer.bias, layer.activation)
    return layer


def cascade(first: Affine, layers: list[Gated], last: Affine) -> Cascade:
    """The gated layers without their h: h = H [x, a_1, a_2, …], and H is multiplied into whatever reads h."""
    n_in = first.weight.shape[1]
    h, readers = first.weight, []
    for layer in layers:
        readers.append((layer.weight @ h, layer.bias))
        rows, new = list(layer.rows), np.zeros((len(h), len(layer.rows)))
        new[rows, np.arange(len(rows))] = layer.gate
        h = h.copy()
        h[rows] *= (1 - layer.gate)[:, None]
        h = np.concatenate([h, new], 1)
    readers.append((last.weight @ h, np.zeros(len(last.weight)) if last.bias is None else last.bias))
    weights, biases = zip(*readers, strict=True)
    weight, bias = np.concatenate([w[:, :n_in] for w in weights]), np.concatenate(biases)
    return Cascade(weight, bias, tuple(w[:, n_in:] for w in weights[1:]), layers[0].activation)
