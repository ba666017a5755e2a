"""Tunnel networks (equations 1 and 2): every unit has a gate between copying its input and a nonlinearity.

h_l = g_l · σ(W_l h_{l−1} + b_l) + (1 − g_l) · h_{l−1}          g_l ∈ [0, 1]^width, at first 0
price = Σ_l Σ_k g_lk                                            and Σ t, where the width of the trunk is learned (trunk.py)
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from meristem.gate import Confined
from meristem.layers.activation import ACTIVATIONS
from meristem.layers.layer import Gated, Layer
from meristem.nn.axes import TRUNK, UNITS, ArrayAxes, Axes, Standing, declare
from meristem.nn.axis_counts import size_openness
from meristem.nn.rows import Rows, gated_layers, placed, stood
from meristem.nn.stack import LAYERS, Stacked, each_layer, through
from meristem.nn.trunk import read, with_price


class Tunnel(Stacked):
    """`depth` layers of `width` units, all closed at first: the identity.

    >>> import jax
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
        super().__init__(width, depth, activation=activation, learn_width=learn_width, key=key)
        self.gate = Confined(jnp.zeros(self.bias.shape))
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
        entries = {"gate": UNITS, "trunk": ArrayAxes((TRUNK,)), "rows": Standing("unit")}
        arrays = declare(self, weight=LAYERS, bias=UNITS, **entries)
        return gated_layers(arrays, self.gate, self.trunk, self.rows)

    def compact_layers(self) -> list[Layer]:
        """A layer whose gates are all 0 is gone; of the others only the open units are left."""
        return [
            Gated(weight[rows], bias[rows], gate[rows], tuple(rows.tolist()), self.activation)
            for weight, bias, gate in each_layer(self.weight, self.bias, self.gate.value)
            if len(rows := np.flatnonzero(gate))
        ]
