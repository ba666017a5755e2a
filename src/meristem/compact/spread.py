"""A gated layer of which half or more is open, as if all of it were: where picking columns costs more than multiplying them.

    h ← g · σ(W h + b) + (1 − g) · h          the closed units with W = b = g = 0
    h ← σ(g W h + g b) + (1 − g) · h          the same where g · σ(z) = σ(g · z), as of a rectifier: the gate is in the weights

NumPy and the runtimes of ONNX are such places; JAX, features first, and PyTorch are not.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from meristem.layers.activation import ACTIVATIONS
from meristem.layers.layer import Gated, Layer
from meristem.layers.ops.base import Ops

V = TypeVar("V")


@dataclass(frozen=True, eq=False)
class Spread:
    """All units of a gated layer. No `Layer` of a network: made for inference alone."""

    weight: np.ndarray  # [width, width]
    bias: np.ndarray  # [width]
    gate: np.ndarray | None  # [width]; None: it is in the weights
    copied: np.ndarray  # [width], 1 − gate
    activation: str

    def __call__(self, ops: Ops[V], h: V) -> V:
        new = ops.activate(self.activation, ops.affine(self.weight, self.bias, h))
        if self.gate is not None:
            new = ops.scale(self.gate, new, name="gate")
        return ops.add(new, ops.scale(self.copied, h, name="copied"))


def spread(layer: Layer) -> Layer | Spread:
    """The layer itself, or one that computes the same without picking; arrays are NumPy's and keep their type.

    >>> spread(Gated(np.ones((1, 2)), np.ones(1), np.array([0.25]), rows=(1,), activation="tanh")).gate.tolist()
    [0.0, 0.25]
    """
    if not isinstance(layer, Gated) or 2 * len(layer.rows) < (width := layer.weight.shape[1]):
        return layer
    rows, dtype = list(layer.rows), layer.weight.dtype
    weight, bias, gate = np.zeros((width, width), dtype), np.zeros(width, dtype), np.zeros(width, dtype)
    weight[rows], bias[rows], gate[rows] = layer.weight, layer.bias, layer.gate
    if ACTIVATIONS[layer.activation].is_homogeneous:
        return Spread(gate[:, None] * weight, gate * bias, None, 1 - gate, layer.activation)
    return Spread(weight, bias, gate, 1 - gate, layer.activation)
