"""Blocks of two convolutions whose inner channels are gated, each added to its input; a closed block is the identity.

    h ← h + V ∗ (g ⊙ σ(W ∗ (t ⊙ h) + b))        W [units, width, *kernel]        V [width, units, *kernel]

t: the gates of the trunk, 1 where it does not learn its width. All gates are multiplied into the weights, which are fewer
numbers than the values at all positions.
"""

import math
from typing import Any, ClassVar

import jax
from jaxtyping import Array, Float, PRNGKeyArray

from meristem.layers.image_layers import ConvolutionBlock
from meristem.layers.layer import Layer
from meristem.nn.axes import TRUNK, Axes
from meristem.nn.body import read, with_price
from meristem.nn.convolution import Convolutional, folded, gated_columns
from meristem.nn.linear import random_kernel


class ConvBranch(Convolutional):
    """`depth` blocks of `units` inner channels.

    >>> body = ConvBranch(width=3, units=4, depth=2, positions=(5, 5), key=jax.random.key(0))
    >>> body(jax.numpy.ones((3, 5, 5))).shape
    (3, 5, 5)
    """

    inner: Float[Array, "depth units width ..."]
    outer: Float[Array, "depth width units ..."]

    expansion: ClassVar[float | None] = 1.0

    def draw_maps(self, width: int, taps: tuple[int, ...], key: PRNGKeyArray) -> None:
        keys, (depth, units) = jax.random.split(key), self.bias.shape
        self.inner = random_kernel(keys[0], (depth, units, width, *taps), width * math.prod(taps), gain=2)
        self.outer = random_kernel(keys[1], (depth, width, units, *taps), units * math.prod(taps), gain=1)

    width = property(lambda self: self.outer.shape[-2 - len(self.positions)])
    kernel = property(lambda self: self.inner.shape[-1])

    def priced(self, x: Float[Array, "width ..."]) -> tuple[Float[Array, "width ..."], Float[Array, ""]]:
        stacks = (self.inner, self.norms(self.norm), self.bias, self.gate.value, self.outer)
        for inner, norm, bias, gate, outer in zip(*stacks, strict=True):
            hidden = self.convolved(inner, norm, bias, x)
            x = x + self.mapped(outer, gate, None, hidden)
        return read(self.trunk, x), with_price(self.trunk, self.gate.value.sum())

    def axes(self, inputs: Any = None, weight: Any = None) -> Axes:
        return self.block_axes(inner=self.kernel_axes("unit", TRUNK), outer=self.kernel_axes(TRUNK, "unit"))

    def compact_layers(self) -> list[Layer]:
        """A block whose gates are all 0 is gone; of the others only the open units are left."""
        inner, bias = folded(self.norm, self.inner, self.bias)
        return [
            ConvolutionBlock(inner[rows], bias[rows], gated_columns(outer[:, rows], gate), self.activation)
            for rows, gate, inner, bias, outer in self.each_block(inner, bias, self.outer)
        ]
