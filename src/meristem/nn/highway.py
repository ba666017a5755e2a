"""Highway networks (equation 3), the baseline: as a tunnel, but the gate is a function of the input.

h_l = g_l(h) · σ(W_l h + b_l) + (1 − g_l(h)) · h,      g_l(h) = sigmoid(V_l h + c_l),  c_l starts at −2
price = Σ_l Σ_k g_lk(h)                                 (penalized only where one asks for it)
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from meristem.gate import Confined
from meristem.layers.activation import ACTIVATIONS
from meristem.layers.layer import Highway as HighwayLayer, Layer
from meristem.nn.axes import UNITS, Axes
from meristem.nn.linear import glorot
from meristem.nn.stack import LAYERS, Stacked, each_layer, through
from meristem.nn.structure import Gates
from meristem.nn.trunk import read, with_price

BLOCK = 4096  # samples


class Highway(Stacked):
    """`depth` layers of `width` units, each with a gate network of its own.

    >>> import jax, jax.numpy as jnp
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

    def _on_open(self, gates: Float[Array, "depth width"]) -> Float[Array, "depth width"]:
        """The gates, 0 on closed dimensions of the trunk: units on those are not there."""
        return gates if self.trunk is None else jnp.where(self.trunk.is_open, gates, 0)

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
            open_ = 1 / (1 + np.exp(-np.asarray(self.gate_bias)))  # with NumPy: JAX would compile a program for it
            return Gates(open_ if self.trunk is None else np.where(np.asarray(self.trunk.is_open), open_, 0), "biases")
        total = jax.jit(lambda x: self._on_open(jax.vmap(self.gates)(x).sum(0)))
        blocks = [total(inputs[start : start + BLOCK]) for start in range(0, len(inputs), BLOCK)]
        return Gates(np.sum(blocks, 0) / len(inputs), "inputs")

    def compact_layers(self) -> list[Layer]:
        """Layer by layer as they are."""
        layers = each_layer(self.weight, self.bias, self.gate_weight, self.gate_bias)
        return [HighwayLayer(w, b, gate_w, gate_b, self.activation) for w, b, gate_w, gate_b in layers]

    def options(self) -> dict[str, Any]:
        return {name: value for name, value in super().options().items() if name != "gate_bias"}  # the gates' biases are arrays
