"""A body nobody planned for: a convolution over [channels, time] in two stages of different width."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

import contract
from meristem import Confined
from meristem.layers.layer import Layer
from meristem.layers.ops.jax import JAX
from meristem.nn import Body, Linear, Network, PooledLinear, Stages
from meristem.nn.axes import MAP, TRUNK, UNITS, ArrayAxes, Standing, declare
from meristem.nn.axis_counts import size_openness
from meristem.nn.body import read, with_price
from meristem.nn.rows import Rows, gated_layers, placed, stood

TIME = 8


class TimeTunnel(Body):
    """h ← g · relu(W ∗ h + b) + (1 − g) · h over [channels, time]; the layers read t · h, and t · h comes out."""

    weight: Array  # [layers, channels, channels, taps]
    bias: Array  # [layers, channels]
    gate: Confined  # [layers, channels]
    trunk: Confined  # [channels]
    rows: Rows | None

    def __init__(self, width: int, depth: int, *, key):
        self.weight = jax.random.normal(key, (depth, width, width, 3)) / np.sqrt(1.5 * width)
        self.bias, self.gate = jnp.zeros((depth, width)), Confined(jnp.full((depth, width), 0.1, float))
        self.trunk, self.rows = Confined(jnp.ones(width)), None

    width = property(lambda self: self.weight.shape[-2])
    depth = property(lambda self: self.weight.shape[-4])

    def priced(self, x):
        for layer, (weight, bias, gate) in enumerate(zip(self.weight, self.bias, self.gate.value, strict=True)):
            new = jax.nn.relu(JAX.conv(weight, bias, read(self.trunk, x)))
            x = placed(self.rows, layer, x, gate[:, None] * new + (1 - gate[:, None]) * stood(self.rows, layer, x))
        return read(self.trunk, x), with_price(self.trunk, size_openness(self.axes(), "unit").sum())

    def axes(self, inputs=None, weight=None):
        maps = ArrayAxes(("layer", "unit", TRUNK, "tap"), MAP, positions=TIME, reads=TRUNK)
        entries = {"weight": maps, "bias": UNITS, "gate": UNITS, "trunk": ArrayAxes((TRUNK,)), "rows": Standing("unit")}
        return gated_layers(declare(self, **entries), self.gate, self.trunk, self.rows)

    def compact_layers(self):
        layers = zip(*(np.asarray(a, float) for a in (self.weight, self.bias, self.gate.value)), strict=True)
        return [OpenChannels(w[r], b[r], g[r], tuple(r.tolist())) for w, b, g in layers if len(r := np.flatnonzero(g))]


class OpenChannels(Layer):  # of a layer; all others copy
    weight: Array
    bias: Array
    gate: Array
    rows: tuple[int, ...] = eqx.field(static=True)

    def __call__(self, ops, h):
        new = ops.activate("relu", ops.conv(self.weight, self.bias, h))
        return ops.merge_rows(self.gate, self.rows, self.weight.shape[1], new, h, positions=1)

    units = property(lambda self: (len(self.rows),))


def create(key: Array) -> Network:
    (a, b, c, d, e), at = jax.random.split(key, 5), {"positions": (TIME,)}
    stages = Stages([TimeTunnel(6, 2, key=a), Linear(6, 9, key=b, **at), TimeTunnel(9, 2, key=c)])
    return Network(Linear(2, 6, use_bias=False, key=d, **at), stages, PooledLinear(9, 1, key=e, **at))


trained = contract.trained_once(create, contract.sequences(TIME))


@pytest.mark.parametrize("check", contract.CHECKS, ids=lambda check: check.__name__)
def test_by_its_declaration_alone(check, trained, tmp_path):
    check(trained, tmp_path)
