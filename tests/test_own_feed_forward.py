"""Another body nobody planned for: gated feed-forward blocks h + V (g ⊙ σ(W h + b)), by their declaration alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

import contract
from meristem import Confined, Data
from meristem.data.spirals import two_spirals
from meristem.layers.layer import Layer
from meristem.nn import Body, Linear, Network
from meristem.nn.axes import MAP, TRUNK, UNITS, ArrayAxes, Standing, declare
from meristem.nn.body import read, with_price
from meristem.nn.rows import Rows, gated_layers


class FeedForward(Body):
    """`depth` blocks of `units` inner units, which stand on nothing: their gates are at first 0.1."""

    inner: Array  # [blocks, units, width]
    bias: Array  # [blocks, units]
    outer: Array  # [blocks, width, units]
    gate: Confined  # [blocks, units]
    trunk: Confined  # [width]
    rows: Rows | None  # which blocks there are, in a training that leaves out those without an open unit

    def __init__(self, width: int, units: int, depth: int, *, key):
        keys = jax.random.split(key)
        self.inner = jax.random.normal(keys[0], (depth, units, width)) / np.sqrt(width)
        self.outer = jax.random.normal(keys[1], (depth, width, units)) / np.sqrt(units)
        self.bias, self.gate = jnp.zeros((depth, units)), Confined(jnp.full((depth, units), 0.1, float))
        self.trunk, self.rows = Confined(jnp.ones(width)), None

    width = property(lambda self: self.inner.shape[-1])
    units = property(lambda self: self.inner.shape[-2])
    depth = property(lambda self: self.inner.shape[-3])

    def priced(self, x):
        for inner, bias, gate, outer in zip(self.inner, self.bias, self.gate.value, self.outer, strict=True):
            x = x + outer @ (gate * jnp.tanh(inner @ read(self.trunk, x) + bias))
        return read(self.trunk, x), with_price(self.trunk, self.gate.value.sum())

    def axes(self, inputs=None, weight=None):
        inner, outer = ArrayAxes(("layer", "unit", TRUNK), MAP), ArrayAxes(("layer", TRUNK, "unit"), MAP)
        entries = {"inner": inner, "outer": outer, "bias": UNITS, "gate": UNITS, "trunk": ArrayAxes((TRUNK,))}
        return gated_layers(declare(self, **entries, rows=Standing("unit")), self.gate, self.trunk, self.rows, on=None)

    def compact_layers(self):
        blocks = zip(*(np.asarray(a, float) for a in (self.inner, self.bias, self.gate.value, self.outer)), strict=True)
        return [Block(w[r], b[r], v[:, r] * g[r]) for w, b, g, v in blocks if len(r := np.flatnonzero(g))]


class Block(Layer):
    """h + V tanh(W h + b), the gates in V."""

    inner: Array
    bias: Array
    outer: Array
    units = property(lambda self: (len(self.bias),))

    def __call__(self, ops, h):
        hidden = ops.activate("tanh", ops.affine(self.inner, self.bias, h))
        return ops.add(ops.affine(self.outer, None, hidden, name="outer"), h)


def create(key: Array) -> Network:
    keys = jax.random.split(key, 3)
    return Network(Linear(2, 6, use_bias=False, key=keys[0]), FeedForward(6, 12, 2, key=keys[1]), Linear(6, 1, key=keys[2]))


trained = contract.trained_once(create, Data(*two_spirals("medium")))


@pytest.mark.parametrize("check", contract.CHECKS, ids=lambda check: check.__name__)
def test_by_its_declaration_alone(check, trained, tmp_path):
    check(trained, tmp_path)
