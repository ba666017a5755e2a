"""A body of one's own in twenty lines: it trains, has sizes, is described, drawn, saved, loaded and compacted like any other.

The body is that of docs/own-body.md.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from drawing import subplots
from filing import alike, complaint
from meristem import Confined, Data, Recipe, compact, export, fit, hard_size, layer_sizes, load, save, soft_size
from meristem.data.spirals import two_spirals
from meristem.layers.layer import Cascade
from meristem.nn import Body, Linear, Network, structure
from meristem.nn.axes import MAP, STORED, ArrayAxes, Axes, declare, gate_axis
from meristem.nn.body import REGISTRY
from meristem.nn.linear import glorot
from meristem.pictures import plot_structure
from meristem.show.describe import describe


class Widening(Body):
    """y = x + V (g · tanh(W x + b)): hidden units that open one by one beside the input; price Σ g."""

    inner: Array  # [units, width]
    bias: Array  # [units]
    outer: Array  # [width, units]
    gate: Confined  # [units]; 0: not there

    def __init__(self, width: int, units: int, *, key):
        keys = jax.random.split(key)
        self.inner, self.outer = glorot(keys[0], (units, width)), glorot(keys[1], (width, units))
        self.bias, self.gate = jnp.zeros(units), Confined(jnp.zeros(units))

    width = property(lambda self: self.inner.shape[1])
    units = property(lambda self: self.inner.shape[0])

    def priced(self, x):
        hidden = jnp.tanh(self.inner @ x + self.bias)
        return x + self.outer @ (self.gate.value * hidden), self.gate.value.sum()

    def axes(self, inputs=None, weight=None):
        unit = ArrayAxes(("unit",), STORED)
        arrays = declare(
            self, inner=ArrayAxes(("unit", "trunk"), MAP), outer=ArrayAxes(("trunk", "unit"), MAP), bias=unit, gate=unit
        )
        return Axes(arrays, {"unit": gate_axis(self.gate)}, size="unit")

    def compact_layers(self):
        inner, bias, outer, gate = (np.asarray(a, float) for a in (self.inner, self.bias, self.outer, self.gate.value))
        rows, width = np.flatnonzero(gate), self.width
        weight, offset = np.concatenate([inner[rows], np.eye(width)]), np.concatenate([bias[rows], np.zeros(width)])
        return [Cascade(weight, offset, (outer[:, rows] * gate[rows],), activation="tanh")] if len(rows) else []


X, Y = two_spirals("medium")
DATA, RECIPE = Data(X, Y), Recipe(batch_size=32, depth_decay=1.0)
UNITS = 12


def create(seed: int = 0) -> Network:
    return own(jax.random.key(seed))


def own(key: Array) -> Network:
    keys = jax.random.split(key, 3)
    return Network(Linear(2, 4, use_bias=False, key=keys[0]), Widening(4, UNITS, key=keys[1]), Linear(4, 1, key=keys[2]))


@pytest.fixture(scope="module")
def run():
    with jax.numpy_rank_promotion("raise"):
        return fit(create(), DATA, learning_rate=0.03, penalty=1e-3, key=jax.random.key(1), recipe=RECIPE, max_epochs=30)


@pytest.fixture(scope="module")
def population():
    keys = jax.random.split(jax.random.key(0), 3)
    networks = jax.vmap(own)(keys)
    with jax.numpy_rank_promotion("raise"):
        return fit(
            networks,
            DATA,
            learning_rate=0.03,
            penalty=np.array([1e-3, 1e-2, 10.0]),
            key=keys,
            recipe=RECIPE,
            max_epochs=10,
            together=True,
        )


def test_it_trains_alone(run):
    history = run.history
    assert history["error"][0] > 0.4 and history["error"][-1] < 0.05, "no line separates these spirals"
    assert 0 < hard_size(run.last) <= UNITS
    np.testing.assert_allclose(history["soft_size"][-1], run.last.body.gate.value.sum(), rtol=1e-6)
    assert history["layer_sizes"].shape == (30, 1)


def test_it_trains_in_a_population(population):
    """Each member with a price of its own; one that is too high leaves nothing open."""
    sizes = population.history["soft_size"][-1]
    assert sizes.shape == (3,) and sizes[0] > sizes[1] > sizes[2] == 0
    assert [int(hard_size(one.last)) == 0 for one in population.each()] == [False, False, True]


def test_it_has_sizes(run):
    network, open_gates = run.last, np.asarray(run.last.body.gate.value)
    np.testing.assert_allclose(float(soft_size(network, X)), open_gates.sum(), rtol=1e-5)
    assert int(hard_size(network)) == (open_gates > 0).sum() == structure(network.body).values.astype(bool).sum()
    assert layer_sizes(network, X).shape == (1,)


def test_it_is_described_and_drawn(run):
    lines, columns, rows = describe(run.last)
    assert lines[0] == "widening network: 2 inputs → width 4 → 1 output"
    assert columns[1] == "open units" and rows[0][1] == f"{int(hard_size(run.last))} of {UNITS}"
    ax = plot_structure(run.last, ax=subplots())
    assert ax.get_title().startswith("Widening network: soft size") and f"of {UNITS} units open" in ax.get_title()


def test_it_is_compacted_and_exported(run, tmp_path):
    network = run.last
    small = compact.compact(network)
    outputs = jax.vmap(network)(X)
    np.testing.assert_allclose(jax.vmap(small)(X), outputs, atol=1e-5 * np.abs(outputs).max())
    import onnxruntime

    session = onnxruntime.InferenceSession(export.to_onnx(tmp_path / "own.onnx", small))
    (exported,) = session.run(None, {session.get_inputs()[0].name: np.asarray(X, np.float32)})
    np.testing.assert_allclose(exported, outputs, atol=1e-5 * np.abs(outputs).max())
    closed = eqx.tree_at(lambda n: n.body.gate.value, network, jnp.zeros(UNITS))
    assert compact.n_parameters(closed) == 3 < compact.n_parameters(network)


@pytest.mark.parametrize("which", ["network", "run", "networks", "population"])
def test_it_is_saved_and_loaded(which, run, population, tmp_path):
    thing = {"network": run.last, "run": run, "networks": population.best, "population": population}[which]
    save(tmp_path / "own", thing)
    again = load(tmp_path / "own", kinds=[Widening])
    if which in ("run", "population"):
        assert alike(again.state, thing.state) and alike(again.best, thing.best) and alike(again.history, thing.history)
    else:
        assert alike(again, thing)
    same = load(tmp_path / "own")  # the class registered itself
    assert type(same.last if which in ("run", "population") else same).__name__ == "Network"


def test_a_file_of_a_class_that_nobody_defined_is_refused(run, tmp_path, monkeypatch):
    save(tmp_path / "own", run.last)
    monkeypatch.delitem(REGISTRY, "widening")
    text = complaint(load, tmp_path / "own")
    assert "body='widening' is not known" in text and "load(path, kinds=[…])" in text
    assert alike(load(tmp_path / "own", kinds=[Widening]), run.last)


def test_a_loaded_run_goes_on_to_the_same_bits(run, tmp_path):
    save(tmp_path / "run", run)
    whole, rest = fit(run, DATA, max_epochs=33), fit(load(tmp_path / "run", kinds=[Widening]), DATA, max_epochs=33)
    save(tmp_path / "whole", whole)
    save(tmp_path / "rest", rest)
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "rest").read_bytes()
