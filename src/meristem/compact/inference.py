"""A compact network applied to a matrix with NumPy alone: nothing is compiled, and any process can do it.

    outputs(network, x [n, in]) → [n, out]
    decisive_outputs(network, x, unsure) → [n, out], good enough to decide by

The formulas are those of `compact.layers`, in double precision, so that a row's output does not depend on the rows beside it
(to 1e-15; in single precision BLAS makes 1e-7 of it). Which class it is can be told in single precision, in half the time,
but for the few rows where it hangs on the last digits. Rows go through in blocks, so that activations stay in the cache.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce, singledispatch
from typing import Any

import jax
import numpy as np

from meristem.compact import CompactNetwork
from meristem.compact.layers import Affine, Cascade, Gated, Highway, Layer, Perceptron, Residual, Tree

BLOCK = 1024  # rows
CLOSE = 1e-3  # of the largest output: far more than single precision rounds by


def _gelu(z: np.ndarray) -> np.ndarray:
    return 0.5 * z * (1 + np.tanh(np.float32(np.sqrt(2 / np.pi)) * (z + np.float32(0.044715) * z**3)))


def _sigmoid(z: np.ndarray) -> np.ndarray:
    return 0.5 * (1 + np.tanh(0.5 * z))


SIGMA: dict[str, Callable[[np.ndarray], np.ndarray]] = {  # they may write over what they are given
    "relu": lambda z: np.maximum(z, 0, out=z),
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


def outputs(network: CompactNetwork, x: np.ndarray, dtype: type[np.floating] = np.float64) -> np.ndarray:
    """What the network says to every row."""
    layers = [_ready(layer, dtype) for layer in network.layers]
    blocks = [x[start : start + BLOCK].astype(dtype, copy=False) for start in range(0, len(x), BLOCK)]
    return np.concatenate([reduce(lambda h, layer: apply(layer, h), layers, block) for block in blocks])


def decisive_outputs(network: CompactNetwork, x: np.ndarray, unsure: Callable[[np.ndarray, float], np.ndarray]) -> np.ndarray:
    """In single precision; in double where `unsure(outputs, within)` says that a change by `within` would decide otherwise."""
    rough = outputs(network, x, np.float32)
    within = CLOSE * float(np.abs(rough).max(initial=0))
    if not np.isfinite(within):  # more than single precision can hold
        return outputs(network, x)
    again, fine = unsure(rough, within), rough.astype(np.float64)
    if again.any():
        fine[again] = outputs(network, x[again])
    return fine


@dataclass(frozen=True)
class Whole:
    """A gated layer of which so much is open that all of it is multiplied: h ← gate · σ(W h + b) + rest · h."""

    weight: np.ndarray
    bias: np.ndarray
    gate: np.ndarray | None  # None: it is in the weights, for g · max(z, 0) = max(g · z, 0)
    rest: np.ndarray
    activation: str


def _ready(layer: Layer, dtype: type[np.floating]) -> Layer | Whole:
    """The layer of that precision; one with many open units as if all were: picking columns costs more than multiplying."""
    layer = jax.tree.map(lambda a: np.asarray(a, dtype), layer)
    if not isinstance(layer, Gated) or 2 * len(layer.rows) < layer.weight.shape[1]:
        return layer
    width, rows = layer.weight.shape[1], list(layer.rows)
    weight, bias, gate = np.zeros((width, width), dtype), np.zeros(width, dtype), np.zeros(width, dtype)
    weight[rows], bias[rows], gate[rows] = layer.weight, layer.bias, layer.gate
    if layer.activation == "relu":
        return Whole(gate[:, None] * weight, gate * bias, None, 1 - gate, "relu")
    return Whole(weight, bias, gate, 1 - gate, layer.activation)


@singledispatch
def apply(layer: Layer | Whole, h: np.ndarray) -> np.ndarray:
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
    rows, after = list(layer.rows), h.copy()
    after[:, rows] += layer.gate * (SIGMA[layer.activation](_affine(layer.weight, layer.bias, h)) - h[:, rows])
    return after


@apply.register
def _(layer: Whole, h: np.ndarray) -> np.ndarray:
    after = SIGMA[layer.activation](_affine(layer.weight, layer.bias, h))
    if layer.gate is not None:
        after *= layer.gate
    after += layer.rest * h
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
