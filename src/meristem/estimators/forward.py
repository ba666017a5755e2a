"""A compact network applied to a matrix with NumPy alone: nothing is compiled, and any process can do it.

    outputs(network, x [n, in]) → [n, out]

The formulas are those of `compact.layers`, in double precision, so that a row's output does not depend on the rows beside it
(to 1e-15; in single precision BLAS makes 1e-7 of it). Rows go through in blocks, so that activations stay in the cache.
"""

from collections.abc import Callable
from functools import singledispatch
from typing import Any

import jax
import numpy as np

from meristem.compact import CompactNetwork
from meristem.compact.layers import Affine, Cascade, Gated, Highway, Layer, Perceptron, Residual, Tree

BLOCK = 1024  # rows


def _gelu(z: np.ndarray) -> np.ndarray:
    return 0.5 * z * (1 + np.tanh(np.float32(np.sqrt(2 / np.pi)) * (z + np.float32(0.044715) * z**3)))


def _sigmoid(z: np.ndarray) -> np.ndarray:
    return 0.5 * (1 + np.tanh(0.5 * z))


SIGMA: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "relu": lambda z: np.maximum(z, 0),
    "tanh": np.tanh,
    "sigmoid": _sigmoid,
    "softplus": lambda z: np.logaddexp(z, 0),
    "gelu": _gelu,
    "silu": lambda z: z * _sigmoid(z),
    "elu": lambda z: np.where(z > 0, z, np.expm1(np.minimum(z, 0))),
}


def as_numpy(network: CompactNetwork) -> CompactNetwork:
    """The same network with NumPy arrays."""
    return jax.tree.map(np.asarray, network)


def outputs(network: CompactNetwork, x: np.ndarray) -> np.ndarray:
    """What the network says to every row."""
    layers = [_ready(layer) for layer in network.layers]
    return np.concatenate([_through(layers, x[start : start + BLOCK]) for start in range(0, len(x), BLOCK)])


def _ready(layer: Layer) -> Layer:
    """The layer with double weights; one with many open units as if all were: picking columns costs more than multiplying."""
    layer = jax.tree.map(lambda a: np.asarray(a, np.float64), layer)
    if not isinstance(layer, Gated) or 2 * len(layer.rows) < layer.weight.shape[1]:
        return layer
    width, rows = layer.weight.shape[1], list(layer.rows)
    weight, bias, gate = np.zeros((width, width)), np.zeros(width), np.zeros(width)
    weight[rows], bias[rows], gate[rows] = layer.weight, layer.bias, layer.gate
    return Gated(weight, bias, gate, rows=tuple(range(width)), activation=layer.activation)


def _through(layers: list[Layer], x: np.ndarray) -> np.ndarray:
    h = x.astype(np.float64)
    for layer in layers:
        h = apply(layer, h)
    return h


@singledispatch
def apply(layer: Layer, h: np.ndarray) -> np.ndarray:
    """One layer, [n, in] → [n, out]."""
    raise TypeError(f"No NumPy form is known of a {type(layer).__name__}.")


def _affine(weight: Any, bias: Any, h: np.ndarray) -> np.ndarray:
    z = h @ weight.T
    if bias is not None:
        z += bias
    return z


@apply.register
def _(layer: Affine, h: np.ndarray) -> np.ndarray:
    return _affine(layer.weight, layer.bias, h)


@apply.register
def _(layer: Perceptron, h: np.ndarray) -> np.ndarray:
    return SIGMA[layer.activation](_affine(layer.weight, layer.bias, h))


@apply.register
def _(layer: Residual, h: np.ndarray) -> np.ndarray:
    return SIGMA[layer.activation](_affine(layer.weight, layer.bias, h)) + h


@apply.register
def _(layer: Gated, h: np.ndarray) -> np.ndarray:
    complex_ = SIGMA[layer.activation](_affine(layer.weight, layer.bias, h))
    if len(layer.rows) == h.shape[1]:
        complex_ -= h
        complex_ *= layer.gate
        complex_ += h
        return complex_
    rows, after = list(layer.rows), h.copy()
    after[:, rows] += layer.gate * (complex_ - h[:, rows])
    return after


@apply.register
def _(layer: Cascade, h: np.ndarray) -> np.ndarray:
    sigma = SIGMA[layer.activation]
    first, *others = np.split(_affine(layer.weight, layer.bias, h), np.cumsum(layer.units), axis=1)
    active = sigma(first)
    for coupling, own in zip(layer.couplings[:-1], others[:-1], strict=True):
        active = np.concatenate([active, sigma(own + active @ coupling.T)], axis=1)
    return others[-1] + active @ layer.couplings[-1].T


@apply.register
def _(layer: Highway, h: np.ndarray) -> np.ndarray:
    gate = _sigmoid(_affine(layer.gate_weight, layer.gate_bias, h))
    return gate * SIGMA[layer.activation](_affine(layer.weight, layer.bias, h)) + (1 - gate) * h


@apply.register
def _(layer: Tree, h: np.ndarray) -> np.ndarray:
    active: list[np.ndarray] = []
    for leaf in layer.leaves:
        active.append(SIGMA[layer.activation](_affine(leaf.weight, leaf.bias, h)))
        h = sum(share * active[k] for share, k in zip(leaf.shares, leaf.reads, strict=True))
    return h
