"""Tunnel networks (equations 1 and 2): every unit has a gate between copying its input and a nonlinearity.

h_l = g_l · σ(W_l h_{l−1} + b_l) + (1 − g_l) · h_{l−1}          g_l ∈ [0, 1]^width, at first 0
price = Σ_l Σ_k g_lk                                            and Σ t, where the width of the trunk is learned (trunk.py)
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from meristem.check import check_size
from meristem.gate import Confined
from meristem.layers.activation import ACTIVATIONS, check_activation
from meristem.layers.layer import Gated, Layer
from meristem.nn.axes import MAP, TRUNK, UNITS, ArrayAxes, Axes, Standing, declare
from meristem.nn.axis_counts import size_openness
from meristem.nn.body import Stacked
from meristem.nn.concrete import on_host
from meristem.nn.deep import through
from meristem.nn.linear import he_layer
from meristem.nn.rows import Rows, gated_layers, placed, stood
from meristem.nn.trunk import read, trunk_gates, with_price


class Tunnel(Stacked):
    """`depth` layers of `width` units, all closed at first: the identity.

    >>> import jax, jax.numpy as jnp
    >>> tunnel = Tunnel(width=3, depth=2, key=jax.random.key(0))
    >>> tunnel(jnp.array([1.0, 2.0, 3.0])).tolist()
    [1.0, 2.0, 3.0]
    """

    weight: Float[Array, "depth width width"]
    bias: Float[Array, "depth width"]
    gate: Confined  # [depth width]; 0 copies, 1 transforms
    activation: str = eqx.field(static=True)
    trunk: Confined | None  # [width]
    rows: Rows | None  # where the units stand, in a training that leaves closed ones out; None: one on every dimension

    def __init__(self, width: int, depth: int, *, activation: str = "relu", learn_width: bool = False, key: PRNGKeyArray):
        width, depth = check_size("width", width), check_size("depth", depth)
        self.weight, self.bias = he_layer(key, (depth, width, width))
        self.gate = Confined(jnp.zeros((depth, width)))
        self.activation = check_activation(activation)
        self.trunk = trunk_gates(width, learn_width)
        self.rows = None

    def priced(self, x: Float[Array, " width"]) -> tuple[Float[Array, " width"], Float[Array, ""]]:
        sigma = ACTIVATIONS[self.activation]

        def step(x: Array, layer: Any, arrays: tuple[Any, ...]) -> tuple[Array, None]:
            weight, bias, gate = arrays
            new = gate * sigma(weight @ read(self.trunk, x) + bias) + (1 - gate) * stood(self.rows, layer, x)
            return placed(self.rows, layer, x, new), None

        x, _ = through(step, x, (self.weight, self.bias, self.gate.value))
        return read(self.trunk, x), with_price(self.trunk, size_openness(self.axes(), "unit").sum())

    def axes(self, inputs: Any = None, weight: Any = None) -> Axes:
        maps = ArrayAxes(("layer", "unit", TRUNK), MAP)
        entries = {"weight": maps, "bias": UNITS, "gate": UNITS, "trunk": ArrayAxes((TRUNK,)), "rows": Standing("unit")}
        return gated_layers(declare(self, **entries), self.gate, self.trunk, self.rows)

    def compact_layers(self) -> list[Layer]:
        """A layer whose gates are all 0 is gone; of the others only the open units are left."""
        return [
            Gated(weight[rows], bias[rows], gate[rows], tuple(rows.tolist()), self.activation)
            for weight, bias, gate in zip(*on_host(self.weight, self.bias, self.gate.value), strict=True)
            if len(rows := np.flatnonzero(gate))
        ]
