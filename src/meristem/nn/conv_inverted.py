"""Blocks of many inner channels, each with its own kernel and gate, added to their input; a closed block is the identity.

    h ← h + V (g ⊙ σ(D ∗ σ(U (t ⊙ h) + b) + c))        U [units, width]        D [units, *kernel]        V [width, units]

U and V are applied at each position. With kernels of 3 × 3 an inner channel costs 2 · width + 11 parameters, and one of a
`ConvBranch` 18 · width + 1.
"""

import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from meristem.layers.image_layers import InvertedBlock
from meristem.layers.layer import Layer
from meristem.layers.ops.jax import JAX
from meristem.nn.axes import MAP, TRUNK, UNITS, ArrayAxes, Axes
from meristem.nn.batch_norm import BatchNorm
from meristem.nn.body import read, with_price
from meristem.nn.convolution import Convolutional, folded, gated_columns
from meristem.nn.linear import random_kernel


class ConvInverted(Convolutional):
    """`depth` blocks of `units` inner channels.

    >>> body = ConvInverted(width=3, units=6, depth=2, positions=(5, 5), key=jax.random.key(0))
    >>> body(jnp.ones((3, 5, 5))).shape
    (3, 5, 5)
    """

    inner: Float[Array, "depth units width"]
    depthwise: Float[Array, "depth units ..."]
    shift: Float[Array, "depth units"]
    outer: Float[Array, "depth width units"]
    depthwise_norm: BatchNorm | None  # [depth, units]

    expansion: ClassVar[float | None] = 3.0

    def draw_maps(self, width: int, taps: tuple[int, ...], key: PRNGKeyArray) -> None:
        keys, (depth, units) = jax.random.split(key, 3), self.bias.shape
        self.inner = random_kernel(keys[0], (depth, units, width), width, gain=2)
        self.depthwise = random_kernel(keys[1], (depth, units, *taps), math.prod(taps), gain=2)
        self.outer = random_kernel(keys[2], (depth, width, units), units, gain=1)
        self.shift, self.depthwise_norm = jnp.zeros_like(self.bias), self.norm

    width = property(lambda self: self.inner.shape[-1])
    kernel = property(lambda self: self.depthwise.shape[-1])

    def priced(self, x: Float[Array, "width ..."]) -> tuple[Float[Array, "width ..."], Float[Array, ""]]:
        first = (self.inner, self.norms(self.norm), self.bias)
        second = (self.depthwise, self.norms(self.depthwise_norm), self.shift)
        for inner, norm, bias, kernel, then, shift, gate, outer in zip(
            *first, *second, self.gate.value, self.outer, strict=True
        ):
            hidden = self.convolved(self.columns(inner), norm, bias, x)
            hidden = JAX.depthwise(kernel, shift if then is None else None, hidden)
            hidden = self.sigma(hidden if then is None else then(shift, hidden))
            x = x + self.mapped(self.columns(outer), gate, None, hidden)
        return read(self.trunk, x), with_price(self.trunk, self.gate.value.sum())

    def axes(self, inputs: Any = None, weight: Any = None) -> Axes:
        positions = math.prod(self.positions)
        inner, outer = ArrayAxes(("layer", "unit", TRUNK), MAP, positions), ArrayAxes(("layer", TRUNK, "unit"), MAP, positions)
        own = {"depthwise": self.kernel_axes("unit"), "depthwise_norm": ArrayAxes(UNITS.names), "shift": UNITS}
        return self.block_axes(inner=inner, outer=outer, **own)

    def compact_layers(self) -> list[Layer]:
        """A block whose gates are all 0 is gone; of the others only the open units are left."""
        inner, bias = folded(self.norm, self.inner, self.bias)
        stacks = (inner, bias, *folded(self.depthwise_norm, self.depthwise, self.shift), self.outer)
        return [
            InvertedBlock(
                self.columns(inner[rows]),
                bias[rows],
                kernel[rows],
                shift[rows],
                self.columns(gated_columns(outer[:, rows], gate)),
                self.activation,
            )
            for rows, gate, inner, bias, kernel, shift, outer in self.each_block(*stacks)
        ]
