"""The operations in JAX. Features stand first: values are of one sample [units, …], or of many, which stand last [units, …, n].

Picking single units is cheap in that order, see compact_network.py; everything is differentiable.
"""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from meristem.layers.activation import ACTIVATIONS
from meristem.layers.ops.loop_convolution import convolution
from meristem.layers.ops.operations import Ops, padding, shifted_sum, window_means


class JaxOps(Ops[Array]):
    """Computes at once, or in whatever traces it."""

    def pick(self, rows: Sequence[int], h: Array) -> Array:
        return h[np.array(rows)]

    def affine(self, weight: Any, bias: Any, h: Array, *, plus: Array | None = None, name: str = "linear") -> Array:
        y = jnp.matmul(weight, h)
        y = y if bias is None else y + column(bias, h)
        return y if plus is None else plus + y

    def conv(self, weight: Any, bias: Any, h: Array, *, name: str = "conv") -> Array:
        kernel = jnp.asarray(weight)
        is_single, names = h.ndim < kernel.ndim, "DHW"[5 - kernel.ndim :]
        layout = f"NC{names}" if is_single else f"C{names}N"  # the samples last
        y = jax.lax.conv_general_dilated(
            h[None] if is_single else h,
            kernel,
            [1] * len(names),
            padding(kernel.shape[2:]),
            dimension_numbers=(layout, f"OI{names}", layout),
        )
        y = y[0] if is_single else y
        return y if bias is None else y + column(bias, y)

    def conv_in_loop(self, weight: Any, bias: Any, h: Array, *, name: str = "conv") -> Array:
        """Return `conv` of one sample as steps of training need it; a GPU has one kind for all.

        On a CPU one of a single tap is a product at each position, others are those of loop_convolution.py.
        """
        if jax.default_backend() != "cpu":
            return self.conv(weight, bias, h, name=name)
        kernel = jnp.asarray(weight)
        if math.prod(kernel.shape[2:]) == 1:
            y = jnp.tensordot(kernel.reshape(kernel.shape[:2]), h, 1)
        else:
            kernel = jnp.moveaxis(kernel, (0, 1), (-1, -2))
            y = convolution(jnp.moveaxis(h, 0, -1)[None], kernel, padding(kernel.shape[:-2]))
            y = jnp.moveaxis(y[0], -1, 0)
        return y if bias is None else y + column(bias, y)

    def depthwise(self, weight: Any, bias: Any, h: Array, *, name: str = "depthwise") -> Array:
        dtype = h.dtype if jnp.issubdtype(h.dtype, jnp.inexact) else jnp.result_type(float)
        kernel, values = jnp.asarray(weight, dtype), h.astype(dtype)
        y = column(kernel, values) * values if kernel.size == len(kernel) else depthwise_program(kernel, values)
        return y if bias is None else y + column(jnp.asarray(bias, dtype), y)

    def pool(self, window: Sequence[int], h: Array) -> Array:
        means: Array = window_means(window, h, 1)
        return means

    def channels_first(self, positions: int, has_channels: bool, h: Array) -> Array:
        return jnp.moveaxis(h, positions, 0) if has_channels else h[None]

    def mean(self, positions: int, h: Array) -> Array:
        return h.mean(tuple(range(1, 1 + positions)))

    def activate(self, activation: str, z: Array) -> Array:
        return ACTIVATIONS[activation](z)

    def scale(self, factor: Any, z: Array, *, name: str) -> Array:
        return column(factor, z) * z

    def merge_rows(self, gate: Any, rows: Sequence[int], width: int, new: Array, old: Array, *, positions: int = 0) -> Array:
        share = column(gate, old)
        complex_ = share * new
        if len(rows) == width:
            return complex_ + (1 - share) * old
        # Every unit looks up its gate and its value: a copy into some rows of h would be slower than all of the layer.
        is_open = np.zeros(width, bool)
        is_open[list(rows)] = True
        place = np.maximum(np.cumsum(is_open) - 1, 0)
        return jnp.where(column(is_open, old), complex_[place] + (1 - share)[place] * old, old)

    def split(self, z: Array, sizes: Sequence[int]) -> list[Array]:
        return jnp.split(z, np.cumsum(sizes[:-1]))

    def concat(self, parts: Sequence[Array]) -> Array:
        return jnp.concatenate(parts)

    def combine(self, shares: Any, values: Sequence[Array], *, name: str) -> Array:
        first, *others = [share * value for share, value in zip(jnp.unstack(jnp.asarray(shares)), values, strict=True)]
        return sum(others, start=first)


def depthwise(weight: Array, h: Array) -> Array:
    """Each unit convolved with its own kernel, as a sum of shifts: a CPU takes six times as long for a grouped convolution."""
    around = padding(weight.shape[1:])
    wide = jnp.pad(h, [(0, 0), *around, *[(0, 0)] * (h.ndim - weight.ndim)])
    y: Array = shifted_sum(weight, wide, 1)
    return y


DEPTHWISE = depthwise.__name__  # the name of its program, by which its products are counted (compact/report.py)
depthwise_program = jax.jit(depthwise)


def column(values: Any, h: Array) -> Array:
    """[out] beside one sample, [out, 1] beside many."""
    return jnp.asarray(values).reshape(-1, *[1] * (h.ndim - 1))


JAX = JaxOps()
