"""Stacks of layers one after another: tunnels (equations 1 and 2) and the baselines, plain, residual and highway (equation 3).

tunnel    h_l = g_l · σ(W_l h_{l−1} + b_l) + (1 − g_l) · h_{l−1}          g_l ∈ [0, 1]^width, at first 0: every unit copies
plain     h_l = σ(W_l h_{l−1} + b_l)                                      a tunnel with g = 1
residual  h_l = σ(W_l h_{l−1} + b_l) + h_{l−1}
highway   as a tunnel, with g_l = sigmoid(V_l h_{l−1} + c_l)              c_l starts at −2
price = Σ_l Σ_k g_lk of tunnel and highway, 0 of the others; and Σ t, where the width of the trunk is learned (body.py)

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
from meristem.layers.layer import Gated, Highway as HighwayLayer, Layer, Perceptron, Residual as ResidualLayer
from meristem.nn.axes import MAP, TRUNK, UNITS, ArrayAxes, Axes, Axis, Standing, declare, gate_axis
from meristem.nn.axis_counts import size_openness
from meristem.nn.body import Body, read, with_price
from meristem.nn.linear import glorot, he_layer
from meristem.nn.rows import Rows, gated_layers, placed, stood
from meristem.nn.structure import Gates

DEEP = 40  # layers
BLOCK = 4096  # samples
LAYERS = ArrayAxes(("layer", "unit", TRUNK), MAP)


class Stacked(Body):
    """A body of `depth` layers of `width` units; its options are read off its arrays."""

    weight: Float[Array, "depth width width"]
    bias: Float[Array, "depth width"]
    activation: str = eqx.field(static=True)
    trunk: eqx.AbstractVar[Confined | None]  # [width]

    def __init__(self, width: int, depth: int, *, activation: str = "relu", learn_width: bool = False, key: PRNGKeyArray):
        width, depth = check_size("width", width), check_size("depth", depth)
        self.weight, self.bias = he_layer(key, (depth, width, width))
        self.activation = check_activation(activation)
        self.trunk = Confined(jnp.ones(width)) if learn_width else None

    width = property(lambda self: self.weight.shape[-1])
    depth = property(lambda self: self.bias.shape[-2])
    learn_width = property(lambda self: self.trunk is not None)

    def _through(self, step: Callable[..., tuple[Array, Any]], x: Array, *stacks: Any) -> tuple[Array, Any]:
        """Return what leaves the last layer, and the results of all layers, stacked.

        step(x, layer, h, new, …) → x, result; h is what the layer reads, new() its σ(W h + b), the rest its rows of the stacks.
        """
        sigma, results, arrays = ACTIVATIONS[self.activation], [], (self.weight, self.bias, *stacks)

        def apply(x: Array, layer: Any, weight: Array, bias: Array, *rows: Array) -> tuple[Array, Any]:
            h = read(self.trunk, x)
            return step(x, layer, h, lambda: sigma(weight @ h + bias), *rows)

        if self.depth >= DEEP:
            x, result = jax.lax.scan(lambda x, rows: apply(x, *rows), x, (jnp.arange(self.depth), *arrays))
            return read(self.trunk, x), result
        for layer, rows in enumerate(zip(*map(jnp.unstack, arrays), strict=True)):
            x, result = apply(x, layer, *rows)
            results.append(result)
        return read(self.trunk, x), jax.tree.map(lambda *each: jnp.stack(each), *results)

    def _each_layer(self, *stacks: Any) -> Iterator[tuple[np.ndarray, ...]]:
        """Weight, bias and what else each layer has, in double precision, on the host."""
        return zip(*(np.asarray(stack, np.float64) for stack in (self.weight, self.bias, *stacks)), strict=True)

    def ungated_axes(
        self, openness: Callable[[], Array], picture: Callable[[], Gates], *, is_fused: bool = False, **entries: ArrayAxes
    ) -> Axes:
        """The axes of a stack whose units are all there; `entries`: of the arrays that other stacks do not have."""
        arrays = declare(self, weight=LAYERS, bias=UNITS, trunk=ArrayAxes((TRUNK,)), **entries)
        unit = Axis(openness, lambda: jnp.ones_like(openness(), bool), per="layer", on=TRUNK, picture=picture)
        axes = {"layer": Axis(depth=lambda: jnp.arange(self.depth)), "unit": unit, TRUNK: gate_axis(self.trunk)}
        return Axes(arrays, axes, size="unit", is_fused=is_fused)


class Tunnel(Stacked):
    """`depth` layers of `width` units, all closed at first: the identity.

    >>> tunnel = Tunnel(width=3, depth=2, key=jax.random.key(0))
    >>> tunnel(jnp.array([1.0, 2.0, 3.0])).tolist()
    [1.0, 2.0, 3.0]
    """

    gate: Confined  # [depth width]; 0 copies, 1 transforms
    trunk: Confined | None  # [width]
    rows: Rows | None  # where the units stand, in a training that leaves closed ones out; None: one on every dimension

    def __init__(self, width: int, depth: int, *, activation: str = "relu", learn_width: bool = False, key: PRNGKeyArray):
        super().__init__(width, depth, activation=activation, learn_width=learn_width, key=key)
        self.gate = Confined(jnp.zeros(self.bias.shape))
        self.rows = None

    def priced(self, x: Float[Array, " width"]) -> tuple[Float[Array, " width"], Float[Array, ""]]:
        def step(x: Array, layer: Any, h: Array, new: Callable[[], Array], gate: Array) -> tuple[Array, None]:
            return placed(self.rows, layer, x, gate * new() + (1 - gate) * stood(self.rows, layer, x)), None

        y, _ = self._through(step, x, self.gate.value)
        return y, with_price(self.trunk, size_openness(self.axes(), "unit").sum())

    def axes(self, inputs: Any = None, weight: Any = None) -> Axes:
        arrays = declare(self, weight=LAYERS, bias=UNITS, gate=UNITS, trunk=ArrayAxes((TRUNK,)), rows=Standing("unit"))
        return gated_layers(arrays, self.gate, self.trunk, self.rows)

    def compact_layers(self) -> list[Layer]:
        """A layer whose gates are all 0 is gone; of the others only the open units are left."""
        return [
            Gated(weight[rows], bias[rows], gate[rows], tuple(rows.tolist()), self.activation)
            for weight, bias, gate in self._each_layer(self.gate.value)
            if len(rows := np.flatnonzero(gate))
        ]


class Plain(Stacked):
    """`depth` perceptron layers of `width` units.

    >>> Plain(width=3, depth=2, key=jax.random.key(0))(jnp.ones(3)).shape
    (3,)
    """

    trunk: Confined | None  # [width]

    skip: ClassVar[float] = 0.0  # the factor of the copied input

    def priced(self, x: Float[Array, " width"]) -> tuple[Float[Array, " width"], Float[Array, ""]]:
        y, _ = self._through(lambda x, layer, h, new: (new() + self.skip * x, None), x)
        return y, with_price(self.trunk, jnp.zeros((), y.dtype))

    def axes(self, inputs: Any = None, weight: Any = None) -> Axes:
        def picture() -> Gates:
            values = np.asarray(size_openness(self.axes(), "unit"))
            return Gates(values, "fixed", "each added to its input" if self.skip else "without gates")

        return self.ungated_axes(lambda: jnp.ones(self.bias.shape, self.bias.dtype), picture, is_fused=not self.skip)

    def compact_layers(self) -> list[Layer]:
        kind = ResidualLayer if self.skip else Perceptron
        return [kind(weight, bias, self.activation) for weight, bias in self._each_layer()]


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

    gate_weight: Float[Array, "depth width width"]
    gate_bias: Float[Array, "depth width"]
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
        def step(x: Array, layer: Any, h: Array, new: Callable[[], Array], weight: Array, bias: Array) -> tuple[Array, Array]:
            gate = jax.nn.sigmoid(weight @ h + bias)
            return gate * new() + (1 - gate) * x, gate

        return self._through(step, x, self.gate_weight, self.gate_bias)

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
        layers = self._each_layer(self.gate_weight, self.gate_bias)
        return [HighwayLayer(w, b, gate_w, gate_b, self.activation) for w, b, gate_w, gate_b in layers]

    def options(self) -> dict[str, Any]:
        return {name: value for name, value in super().options().items() if name != "gate_bias"}  # the gates' biases are arrays
