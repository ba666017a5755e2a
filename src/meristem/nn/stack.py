"""The limits of equation 1, as baselines of fixed size: plain (g = 1) and residual (both factors 1).

plain     h_l = σ(W_l h_{l−1} + b_l)
residual  h_l = σ(W_l h_{l−1} + b_l) + h_{l−1}
price = 0, or Σ t where the width of the trunk is learned (trunk.py)
"""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from meristem.check import check_size
from meristem.gate import Confined
from meristem.layers.activation import ACTIVATIONS, check_activation
from meristem.layers.layer import Layer, Perceptron, Residual as ResidualLayer
from meristem.nn.axes import MAP, TRUNK, UNITS, ArrayAxes, Axes, declare, layered
from meristem.nn.axis_counts import size_openness
from meristem.nn.body import Stacked
from meristem.nn.concrete import on_host
from meristem.nn.deep import through
from meristem.nn.linear import he_layer
from meristem.nn.structure import Gates
from meristem.nn.trunk import read, trunk_gates, with_price


class Plain(Stacked):
    """`depth` perceptron layers of `width` units.

    >>> import jax, jax.numpy as jnp
    >>> Plain(width=3, depth=2, key=jax.random.key(0))(jnp.ones(3)).shape
    (3,)
    """

    weight: Float[Array, "depth width width"]
    bias: Float[Array, "depth width"]
    activation: str = eqx.field(static=True)
    trunk: Confined | None  # [width]

    skip: ClassVar[float] = 0.0  # the factor of the copied input

    def __init__(self, width: int, depth: int, *, activation: str = "relu", learn_width: bool = False, key: PRNGKeyArray):
        width, depth = check_size("width", width), check_size("depth", depth)
        self.weight, self.bias = he_layer(key, (depth, width, width))
        self.activation = check_activation(activation)
        self.trunk = trunk_gates(width, learn_width)

    def priced(self, x: Float[Array, " width"]) -> tuple[Float[Array, " width"], Float[Array, ""]]:
        sigma = ACTIVATIONS[self.activation]

        def step(x: Array, layer: Any, arrays: tuple[Any, ...]) -> tuple[Array, None]:
            weight, bias = arrays
            return sigma(weight @ read(self.trunk, x) + bias) + self.skip * x, None

        x, _ = through(step, x, (self.weight, self.bias))
        return read(self.trunk, x), with_price(self.trunk, jnp.zeros((), x.dtype))

    def axes(self, inputs: Any = None, weight: Any = None) -> Axes:
        return layered(
            declare(self, weight=ArrayAxes(("layer", "unit", TRUNK), MAP), bias=UNITS, trunk=ArrayAxes((TRUNK,))),
            self.depth,
            self.trunk,
            lambda: jnp.ones(self.bias.shape, self.bias.dtype),
            self._picture,
            is_fused=not self.skip,
        )

    def _picture(self) -> Gates:
        """All units that are there."""
        values = np.asarray(size_openness(self.axes(), "unit"))
        return Gates(values, "fixed", "each added to its input" if self.skip else "without gates")

    def compact_layers(self) -> list[Layer]:
        """Layer by layer as they are."""
        kind = ResidualLayer if self.skip else Perceptron
        return [kind(weight, bias, self.activation) for weight, bias in zip(*on_host(self.weight, self.bias), strict=True)]


class Residual(Plain):
    """`depth` perceptron layers of `width` units, each added to its input.

    >>> import jax, jax.numpy as jnp
    >>> Residual(width=3, depth=2, key=jax.random.key(0))(jnp.ones(3)).shape
    (3,)
    """

    skip: ClassVar[float] = 1.0
