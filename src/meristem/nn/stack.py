"""Stacks of layers one after another, and the limits of equation 1 as baselines of fixed size: plain (g = 1) and residual.

plain     h_l = σ(W_l h_{l−1} + b_l)
residual  h_l = σ(W_l h_{l−1} + b_l) + h_{l−1}
price = 0, or Σ t where the width of the trunk is learned (trunk.py)

A program that has every layer written out computes fastest and compiles in time that grows with the layers: two hundred of them
took minutes. From `DEEP` on the layers are a `scan` over the stacked arrays, never an index into them: the gradient of that
would be a scatter in every layer.
"""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from meristem.check import check_size
from meristem.gate import Confined
from meristem.layers.activation import ACTIVATIONS, check_activation
from meristem.layers.layer import Layer, Perceptron, Residual as ResidualLayer
from meristem.nn.axes import MAP, TRUNK, UNITS, ArrayAxes, Axes, Axis, declare, gate_axis
from meristem.nn.axis_counts import size_openness
from meristem.nn.body import Body
from meristem.nn.linear import he_layer
from meristem.nn.structure import Gates
from meristem.nn.trunk import read, with_price

DEEP = 40  # layers
LAYERS = ArrayAxes(("layer", "unit", TRUNK), MAP)


class Stacked(Body):
    """A body of `depth` layers of `width` units; its options are read off its arrays."""

    weight: eqx.AbstractVar[Array]  # [depth width width]
    bias: eqx.AbstractVar[Array]  # [depth width]
    activation: eqx.AbstractVar[str]
    trunk: eqx.AbstractVar[Confined | None]  # [width]

    def __init__(self, width: int, depth: int, *, activation: str = "relu", learn_width: bool = False, key: PRNGKeyArray):
        width, depth = check_size("width", width), check_size("depth", depth)
        self.weight, self.bias = he_layer(key, (depth, width, width))
        self.activation = check_activation(activation)
        self.trunk = Confined(jnp.ones(width)) if learn_width else None

    width = property(lambda self: self.weight.shape[-1])
    depth = property(lambda self: self.bias.shape[-2])
    learn_width = property(lambda self: self.trunk is not None)

    def ungated_axes(
        self, openness: Callable[[], Array], picture: Callable[[], Gates], *, is_fused: bool = False, **entries: ArrayAxes
    ) -> Axes:
        """The axes of a stack whose units are all there; `entries`: of the arrays that other stacks do not have."""
        arrays = declare(self, weight=LAYERS, bias=UNITS, trunk=ArrayAxes((TRUNK,)), **entries)
        unit = Axis(openness, lambda: jnp.ones_like(openness(), bool), per="layer", on=TRUNK, picture=picture)
        axes = {"layer": Axis(depth=lambda: jnp.arange(self.depth)), "unit": unit, TRUNK: gate_axis(self.trunk)}
        return Axes(arrays, axes, size="unit", is_fused=is_fused)


def through(
    step: Callable[[Any, Any, tuple[Any, ...]], tuple[Any, Any]], x: Float[Array, " width"], stacks: tuple[Any, ...]
) -> tuple[Float[Array, " width"], Any]:
    """Return the last x and the results of all layers, stacked; step(x, layer, (a [...], …)) → x, result.

    >>> double = lambda x, layer, arrays: (arrays[0] * x, None)
    >>> through(double, jnp.ones(1), (jnp.full((3, 1), 2.0),))[0].tolist()
    [8.0]
    """
    depth, results = stacks[0].shape[0], []
    if depth >= DEEP:
        return jax.lax.scan(lambda x, each: step(x, *each), x, (jnp.arange(depth), stacks))
    # Unstacked once: the gradient of indexing the stack in every layer is a scatter in every layer.
    for layer, arrays in enumerate(zip(*map(jnp.unstack, stacks), strict=True)):
        x, result = step(x, layer, arrays)
        results.append(result)
    return x, jax.tree.map(lambda *each: jnp.stack(each), *results)


def each_layer(*stacks: Any) -> Iterator[tuple[np.ndarray, ...]]:
    """The arrays of each layer, in double precision, on the host."""
    return zip(*(np.asarray(stack, np.float64) for stack in stacks), strict=True)


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

    def priced(self, x: Float[Array, " width"]) -> tuple[Float[Array, " width"], Float[Array, ""]]:
        sigma = ACTIVATIONS[self.activation]

        def step(x: Array, layer: Any, arrays: tuple[Any, ...]) -> tuple[Array, None]:
            weight, bias = arrays
            return sigma(weight @ read(self.trunk, x) + bias) + self.skip * x, None

        x, _ = through(step, x, (self.weight, self.bias))
        return read(self.trunk, x), with_price(self.trunk, jnp.zeros((), x.dtype))

    def axes(self, inputs: Any = None, weight: Any = None) -> Axes:
        def picture() -> Gates:
            values = np.asarray(size_openness(self.axes(), "unit"))
            return Gates(values, "fixed", "each added to its input" if self.skip else "without gates")

        return self.ungated_axes(lambda: jnp.ones(self.bias.shape, self.bias.dtype), picture, is_fused=not self.skip)

    def compact_layers(self) -> list[Layer]:
        """Layer by layer as they are."""
        kind = ResidualLayer if self.skip else Perceptron
        return [kind(weight, bias, self.activation) for weight, bias in each_layer(self.weight, self.bias)]


class Residual(Plain):
    """`depth` perceptron layers of `width` units, each added to its input.

    >>> import jax, jax.numpy as jnp
    >>> Residual(width=3, depth=2, key=jax.random.key(0))(jnp.ones(3)).shape
    (3,)
    """

    skip: ClassVar[float] = 1.0
