"""The tunnel (equation 1) as a convolution: each channel of a layer copies its input, or transforms what is around a position.

h[c] ← g_c · t_c σ((W ∗ (t ⊙ h) + b)[c]) + (1 − g_c) · h[c]        W [width, width, *kernel], at first g = 0.1
"""

import math
from collections.abc import Sequence
from typing import Any

from jaxtyping import Array, Float, PRNGKeyArray

from meristem.layers.image_layers import GatedConvolution
from meristem.layers.layer import Layer
from meristem.nn.axes import TRUNK, UNITS, ArrayAxes, Axes, Standing, declare
from meristem.nn.axis_counts import size_openness
from meristem.nn.body import read, with_price
from meristem.nn.convolution import GATE, Convolutional, folded
from meristem.nn.linear import random_kernel
from meristem.nn.rows import gated_layers, placed, stood


class ConvTunnel(Convolutional):
    """`depth` layers of `width` channels.

    >>> import jax
    >>> body = ConvTunnel(width=3, depth=2, positions=(5, 5), key=jax.random.key(0))
    >>> body(jax.numpy.ones((3, 5, 5))).shape
    (3, 5, 5)
    """

    weight: Float[Array, "depth width width ..."]

    def __init__(
        self,
        width: int,
        depth: int,
        positions: Sequence[int],
        *,
        kernel: int = 3,
        activation: str = "relu",
        gate_start: float = GATE,
        learn_width: bool = False,
        normalize: bool = False,
        key: PRNGKeyArray,
    ):
        options: dict[str, Any] = {"kernel": kernel, "activation": activation, "gate_start": gate_start, "key": key}
        super().__init__(width, width, depth, positions, learn_width=learn_width, normalize=normalize, **options)

    def draw_maps(self, width: int, taps: tuple[int, ...], key: PRNGKeyArray) -> None:
        self.weight = random_kernel(key, (self.depth, width, width, *taps), width * math.prod(taps), gain=2)

    width = property(lambda self: self.weight.shape[-1 - len(self.positions)])
    kernel = property(lambda self: self.weight.shape[-1])

    def priced(self, x: Float[Array, "width ..."]) -> tuple[Float[Array, "width ..."], Float[Array, ""]]:
        stacks = (self.weight, self.norms(self.norm), self.bias, self.gate.value)
        for layer, (weight, norm, bias, gate) in enumerate(zip(*stacks, strict=True)):
            new, share = self.convolved(weight, norm, bias, x), self.columns(gate)
            x = placed(self.rows, layer, x, share * new + (1 - share) * stood(self.rows, layer, x))
        return read(self.trunk, x), with_price(self.trunk, size_openness(self.axes(), "unit").sum())

    def axes(self, inputs: Any = None, weight: Any = None) -> Axes:
        gates = {
            "bias": UNITS,
            "gate": UNITS,
            "norm": ArrayAxes(UNITS.names),
            "trunk": ArrayAxes((TRUNK,)),
            "rows": Standing("unit"),
        }
        return gated_layers(declare(self, weight=self.kernel_axes("unit", TRUNK), **gates), self.gate, self.trunk, self.rows)

    def compact_layers(self) -> list[Layer]:
        """A layer whose gates are all 0 is gone; of the others only the open channels are left."""
        weight, bias = folded(self.norm, self.weight, self.bias)
        return [
            GatedConvolution(weight[rows], bias[rows], gate, tuple(rows.tolist()), self.activation)
            for rows, gate, weight, bias in self.each_block(weight, bias)
        ]
