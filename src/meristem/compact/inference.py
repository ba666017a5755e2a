"""A compact network applied to a matrix with NumPy alone: nothing is compiled, and any process can do it.

The layers compute in double precision, so that a row's output does not depend on the rows beside it (to 1e-15; in single
precision BLAS makes 1e-7 of it). Which class it is can be told in single precision, in half the time, but for the few rows
where it hangs on the last digits. Rows go through in blocks, so that activations stay in the cache.

A gated layer of which half or more is open is computed as if all of it were, where picking columns costs more than multiplying
them, as in NumPy and the runtimes of ONNX (`spread`):

    h ← g · σ(W h + b) + (1 − g) · h          the closed units with W = b = g = 0
    h ← σ(g W h + g b) + (1 − g) · h          the same where g · σ(z) = σ(g · z), as of a rectifier: the gate is in the weights
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import jax
import numpy as np

from meristem.layers.activation import ACTIVATIONS
from meristem.layers.compact_network import CompactNetwork
from meristem.layers.layer import Gated, Layer
from meristem.layers.ops.numpy import NUMPY
from meristem.layers.ops.operations import Ops

BLOCK = 1024  # rows
V = TypeVar("V")
CLOSE = 1e-3  # of the largest output: far more than single precision rounds by


def as_numpy(network: CompactNetwork) -> CompactNetwork:
    """The same network with NumPy arrays."""
    return jax.tree.map(np.asarray, network)


@dataclass(frozen=True, eq=False)
class Spread:
    """All units of a gated layer, the gates in its weights. No `Layer` of a network: made for inference alone."""

    weight: np.ndarray  # [width, width]
    bias: np.ndarray  # [width]
    copied: np.ndarray  # [width], 1 − gate
    activation: str

    def __call__(self, ops: Ops[V], h: V) -> V:
        new = ops.activate(self.activation, ops.affine(self.weight, self.bias, h))
        return ops.add(new, ops.scale(self.copied, h, name="copied"))


def spread(layer: Layer) -> Layer | Spread:
    """The layer itself, or one that computes the same without picking; arrays are NumPy's and keep their type."""
    if not isinstance(layer, Gated) or 2 * len(layer.rows) < (width := layer.weight.shape[1]):
        return layer
    rows, dtype = list(layer.rows), layer.weight.dtype
    weight, bias, gate = np.zeros((width, width), dtype), np.zeros(width, dtype), np.zeros(width, dtype)
    weight[rows], bias[rows], gate[rows] = layer.weight, layer.bias, layer.gate
    if ACTIVATIONS[layer.activation].is_homogeneous:
        return Spread(gate[:, None] * weight, gate * bias, 1 - gate, layer.activation)
    return Gated(weight, bias, gate, tuple(range(width)), layer.activation)


class Predictor:
    """A compact network whose weights have been cast and laid out for NumPy, once for all calls.

    >>> from meristem.layers.layer import Affine
    >>> predictor = Predictor(CompactNetwork((Affine(np.array([[1.0, 2.0]]), None),)))
    >>> predictor.outputs(np.ones((3, 2))).tolist()
    [[3.0], [3.0], [3.0]]
    """

    def __init__(self, network: CompactNetwork):
        self.network = network
        self._layers: dict[type[np.floating], list[Layer | Spread]] = {}

    def layers(self, dtype: type[np.floating]) -> list[Layer | Spread]:
        if dtype not in self._layers:
            cast = jax.tree.map(lambda a: np.asarray(a, dtype), self.network.layers)
            self._layers[dtype] = [spread(layer) for layer in cast]
        return self._layers[dtype]

    def outputs(self, x: np.ndarray, dtype: type[np.floating] = np.float64) -> np.ndarray:
        """Return the outputs [n, out] for rows [n, in]."""
        blocks = []
        for start in range(0, len(x), BLOCK):
            h = x[start : start + BLOCK].astype(dtype, copy=False).view()
            for layer in self.layers(dtype):
                h.flags.writeable = False  # x is the caller's, and a formula may read h twice
                h = layer(NUMPY, h)
            blocks.append(h)
        return np.concatenate(blocks)

    def decisive_outputs(self, x: np.ndarray, unsure: Callable[[np.ndarray, float], np.ndarray]) -> np.ndarray:
        """Return outputs in single precision; in double for rows of which `unsure(outputs, margin)` says that it matters."""
        rough = self.outputs(x, np.float32)
        margin = CLOSE * float(np.abs(rough).max(initial=0))
        if not np.isfinite(margin):  # more than single precision can hold
            return self.outputs(x)
        rows, fine = unsure(rough, margin), rough.astype(np.float64)
        if rows.any():
            fine[rows] = self.outputs(x[rows])
        return fine

    def __getstate__(self) -> dict[str, CompactNetwork]:
        return {"network": self.network}  # what is pickled holds the weights once

    def __setstate__(self, state: dict[str, CompactNetwork]) -> None:
        self.__init__(state["network"])  # type: ignore[misc]
