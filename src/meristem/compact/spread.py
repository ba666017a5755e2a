"""A gated layer of which half or more is open, as if all of it were: where picking columns costs more than multiplying them.

    h[rows] ← g · σ(W h + b) + (1 − g) · h[rows]        of all rows, the closed ones with W = b = g = 0
    h ← σ(g W h + g b) + (1 − g) · h                    the same where g · σ(z) = σ(g · z), as of a rectifier

NumPy and the runtimes of ONNX are such places; JAX, features first, and PyTorch are not.
"""

import numpy as np

from meristem.compact.layers import Gated, Layer, Residual
from meristem.nn.activation import ACTIVATIONS


def spread(layer: Layer) -> Layer:
    """The layer itself, or one that computes the same without picking; arrays are NumPy's and keep their type.

    >>> spread(Gated(np.ones((1, 2)), np.ones(1), np.array([0.25]), rows=(1,), activation="tanh")).gate.tolist()
    [0.0, 0.25]
    """
    if not isinstance(layer, Gated) or 2 * len(layer.rows) < layer.n_in:
        return layer
    width, rows, dtype = layer.n_in, list(layer.rows), layer.weight.dtype
    weight, bias, gate = np.zeros((width, width), dtype), np.zeros(width, dtype), np.zeros(width, dtype)
    weight[rows], bias[rows], gate[rows] = layer.weight, layer.bias, layer.gate
    if ACTIVATIONS[layer.activation].is_homogeneous:
        return Residual(gate[:, None] * weight, gate * bias, layer.activation, copied=1 - gate)
    return Gated(weight, bias, gate, tuple(range(width)), layer.activation)
