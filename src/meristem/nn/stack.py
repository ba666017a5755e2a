"""Stacks of layers one after another, and the baselines: plain (equation 1 with g = 1), residual, and highway (equation 3).

plain     h_l = σ(W_l h_{l−1} + b_l)
residual  h_l = σ(W_l h_{l−1} + b_l) + h_{l−1}
highway   h_l = g_l · σ(W_l h_{l−1} + b_l) + (1 − g_l) · h_{l−1},      g_l = sigmoid(V_l h_{l−1} + c_l),  c_l starts at −2
price = 0, or Σ t where the width of the trunk is learned (trunk.py); of a highway, if one asks for it, also Σ_l Σ_k g_lk

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
from meristem.layers.layer import Highway as HighwayLayer, Layer, Perceptron, Residual as ResidualLayer
from meristem.nn.axes import MAP, TRUNK, UNITS, ArrayAxes, Axes, Axis, declare, gate_axis
from meristem.nn.axis_counts import size_openness
from meristem.nn.body import Body
from meristem.nn.linear import glorot, he_layer
from meristem.nn.structure import Gates
from meristem.nn.trunk import read, with_price

DEEP = 40  # layers
BLOCK = 4096  # samples
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


def through(step: Callable[..., tuple[Array, Any]], x: Float[Array, " width"], stacks: tuple[Any, ...]) -> tuple[Array, Any]:
    """Return the last x and the results of all layers, stacked; step(x, layer, (a [...], …)) → x, result."""
    depth, results = stacks[0].shape[0], []
    if depth >= DEEP:
        return jax.lax.scan(lambda x, each: step(x, *each), x, (jnp.arange(depth), stacks))
    for layer, arrays in enumerate(zip(*map(jnp.unstack, stacks), strict=True)):
        x, result = step(x, layer, arrays)
        results.append(result)
    return x, jax.tree.map(lambda *each: jnp.stack(each), *results)


def each_layer(*stacks: Any) -> Iterator[tuple[np.ndarray, ...]]:
    """The arrays of each layer, in double precision, on the host."""
    return zip(*(np.asarray(stack, np.float64) for stack in stacks), strict=True)


class Plain(Stacked):
    """`depth` perceptron layers of `width` units.

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

    >>> Residual(width=3, depth=2, key=jax.random.key(0))(jnp.ones(3)).shape
    (3,)
    """

    skip: ClassVar[float] = 1.0


class Highway(Stacked):
    """`depth` layers of `width` units, each with a gate network of its own.

    >>> highway = Highway(width=3, depth=2, key=jax.random.key(0))
    >>> highway(jnp.ones(3)).shape, highway.gates(jnp.ones(3)).shape
    ((3,), (2, 3))
    """

    weight: Float[Array, "depth width width"]
    bias: Float[Array, "depth width"]
    gate_weight: Float[Array, "depth width width"]
    gate_bias: Float[Array, "depth width"]
    activation: str = eqx.field(static=True)
    trunk: Confined | None  # [width]

    def __init__(
        self,
        width: int,
        depth: int,
        *,
        activation: str = "relu",
        gate_bias: float = -2.0,
        learn_width: bool = False,
        key: PRNGKeyArray,
    ):
        weight_key, gate_key = jax.random.split(key)
        super().__init__(width, depth, activation=activation, learn_width=learn_width, key=weight_key)
        self.gate_weight = glorot(gate_key, self.weight.shape)
        self.gate_bias = jnp.full(self.bias.shape, gate_bias, jnp.result_type(float))

    def _run(self, x: Float[Array, " width"]) -> tuple[Float[Array, " width"], Float[Array, "depth width"]]:
        sigma = ACTIVATIONS[self.activation]

        def step(x: Array, layer: Any, arrays: tuple[Any, ...]) -> tuple[Array, Array]:
            weight, bias, gate_weight, gate_bias = arrays
            h = read(self.trunk, x)
            gate = jax.nn.sigmoid(gate_weight @ h + gate_bias)
            return gate * sigma(weight @ h + bias) + (1 - gate) * x, gate

        x, gates = through(step, x, (self.weight, self.bias, self.gate_weight, self.gate_bias))
        return read(self.trunk, x), gates

    def priced(self, x: Float[Array, " width"]) -> tuple[Float[Array, " width"], Float[Array, ""]]:
        y, gates = self._run(x)
        return y, with_price(self.trunk, self._on_open(gates).sum())

    def _on_open(self, gates: Any, xp: Any = jnp) -> Any:
        """The gates [depth, width], 0 on closed dimensions of the trunk: units on those are not there."""
        return gates if self.trunk is None else xp.where(xp.asarray(self.trunk.is_open), gates, 0)

    def gates(self, x: Float[Array, " width"]) -> Float[Array, "depth width"]:
        """g_lk(x), for the soft size of equation 7."""
        return self._run(x)[1]

    def axes(self, inputs: Float[Array, "n width"] | None = None, weight: Any = None) -> Axes:
        """With inputs a unit is as open as its gate is on average over them, each by its weight."""

        def openness() -> Array:
            if inputs is None:
                return jnp.ones(self.bias.shape, self.bias.dtype)
            gates = jax.vmap(self.gates)(inputs)
            return gates.mean(0) if weight is None else jnp.tensordot(weight, gates, 1) / weight.sum()

        return self.ungated_axes(openness, lambda: self._picture(inputs), gate_weight=LAYERS, gate_bias=UNITS)

    def _picture(self, inputs: Float[Array, "n width"] | None) -> Gates:
        """The gates on average over inputs, or those that the biases alone make."""
        if inputs is None:
            return Gates(self._on_open(1 / (1 + np.exp(-np.asarray(self.gate_bias))), np), "biases")  # JAX would compile it
        total = jax.jit(lambda x: self._on_open(jax.vmap(self.gates)(x).sum(0)))
        blocks = [total(inputs[start : start + BLOCK]) for start in range(0, len(inputs), BLOCK)]
        return Gates(np.sum(blocks, 0) / len(inputs), "inputs")

    def compact_layers(self) -> list[Layer]:
        """Layer by layer as they are."""
        layers = each_layer(self.weight, self.bias, self.gate_weight, self.gate_bias)
        return [HighwayLayer(w, b, gate_w, gate_b, self.activation) for w, b, gate_w, gate_b in layers]

    def options(self) -> dict[str, Any]:
        return {name: value for name, value in super().options().items() if name != "gate_bias"}  # the gates' biases are arrays
