"""A trunk that learns its width, inputs that may close: the formula, what is left out, files, and both ways."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import reference as ref
from drawing import subplots
from meristem import Data, Recipe, fit, load, save
from meristem.compact import compact
from meristem.compact.inference import Predictor, as_numpy
from meristem.complexity import hard_size, layer_sizes, soft_multiply_adds, soft_parameters
from meristem.data.spirals import two_spirals
from meristem.gate import fully_open
from meristem.layers.layer import Affine, Pick
from meristem.nn import Network, structure
from meristem.nn.compaction import on_open_places, trunk_gates
from meristem.pictures import plot_structure
from meristem.show.describe import describe
from meristem.train.settle import hard_cost
from soak import many

BODIES = {
    "tunnel": {"depth": 3},
    "budding": {"capacity": 4},
    "highway": {"depth": 2},
    "plain": {"depth": 2},
    "residual": {"depth": 2},
}
TRUNK = np.array([1, 0, 0.5, 0, 1, 0.2, 0, 0.7])
FEATURES = np.array([1, 0, 0.5, 1, 0])
X = jnp.asarray(np.random.default_rng(0).normal(size=(20, 5)), jnp.float32)


def create(body: str, *, hard: bool = False, seed: int = 0, **options) -> Network:
    """Half of it closed; `hard`: all gates are 0 or 1."""
    sizes = {"width": "auto", "max_width": 8, "feature_gates": True}
    network = Network.create(body, 5, 2, key=jax.random.key(seed), **sizes, **BODIES[body], **options)
    rng = np.random.default_rng(seed)
    trunk, features = (jnp.asarray(rng.permutation(values), jnp.float32) for values in (TRUNK, FEATURES))
    network = eqx.tree_at(lambda n: (n.body.trunk.value, n.features.value), network, (trunk, features))
    if body == "tunnel":
        gates = np.maximum(rng.uniform(-1, 1, (3, 8)), 0) * (np.asarray(trunk) > 0)
        network = eqx.tree_at(lambda n: n.body.gate.value, network, jnp.asarray(gates, jnp.float32))
    return fully_open(network) if hard else network


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("body", ["tunnel", "plain"])
def test_gates_on_what_is_read_are_gates_on_every_nonlinearity(body, activation):
    """Against the form of the oracle, values and the derivative by the trunk's gates."""
    network = create(body, activation=activation)
    stack = network.body
    layers = [ref.Layer(*pair) for pair in zip(stack.weight, stack.bias, strict=True)]
    gates = list(stack.gate.value) if body == "tunnel" else [jnp.ones(8)] * len(layers)
    x = jnp.asarray(np.random.default_rng(1).normal(size=8), jnp.float32)

    @jax.jit
    def ours(trunk):
        return eqx.tree_at(lambda b: b.trunk.value, stack, trunk)(x)

    @jax.jit
    def oracle(trunk):
        return ref.on_trunk(layers, gates, trunk, x, activation)

    trunk = stack.trunk.value
    np.testing.assert_allclose(ours(trunk), oracle(trunk), rtol=1e-5, atol=1e-6)
    slopes = [jax.jit(jax.grad(lambda t, f=f: (f(t) ** 2).sum()))(trunk) for f in (ours, oracle)]
    is_open = np.asarray(trunk) > 0  # at 0 the rectifier's kink may be read from either side
    np.testing.assert_allclose(slopes[0][is_open], slopes[1][is_open], rtol=1e-4, atol=1e-5)


def test_all_open_is_as_if_there_were_no_gates():
    fixed = Network.create("tunnel", 5, 2, width=8, depth=3, key=jax.random.key(0))
    learned = Network.create("tunnel", 5, 2, width="auto", max_width=8, depth=3, key=jax.random.key(0))
    np.testing.assert_array_equal(whole_outputs(fixed, X), whole_outputs(learned, X))


@eqx.filter_jit
def whole_outputs(network, x):
    return jax.vmap(network)(x)


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("seed", range(min(3, many(1))))
def test_what_is_closed_is_left_out_and_nothing_changes(body, seed):
    network = create(body, seed=seed)
    small = compact(network)
    np.testing.assert_allclose(
        Predictor(as_numpy(small)).outputs(np.asarray(X)), whole_outputs(network, X), rtol=1e-5, atol=1e-5
    )
    inside = np.random.default_rng(seed).normal(size=(20, 8)).astype(np.float32)
    body = Predictor(as_numpy(compact(network.body))).outputs(inside)
    np.testing.assert_allclose(body, whole_outputs(network.body, inside), rtol=1e-5, atol=1e-5)
    assert isinstance(small.layers[0], Pick) and small.layers[0].n_in == 5
    assert small.n_parameters <= float(soft_parameters(fully_open(network)))


def test_a_network_of_which_all_is_closed_says_its_bias():
    network = create("tunnel")
    closed = eqx.tree_at(lambda n: (n.body.trunk.value, n.head.bias), network, (jnp.zeros(8), jnp.array([1.0, 2.0])))
    np.testing.assert_allclose(Predictor(as_numpy(compact(closed))).outputs(np.asarray(X)), np.tile([1.0, 2.0], (20, 1)))
    nothing = eqx.tree_at(lambda n: n.features.value, closed, jnp.zeros(5))
    np.testing.assert_allclose(Predictor(as_numpy(compact(nothing))).outputs(np.asarray(X)), np.tile([1.0, 2.0], (20, 1)))


# ---- what it costs


def counts(layers) -> tuple[int, int]:
    """Parameters and multiply-adds of layers one after the other, gates included."""
    leaves = [leaf for leaf in jax.tree.leaves(layers) if leaf.size]
    return sum(leaf.size for leaf in leaves), sum(leaf.size for leaf in leaves if leaf.ndim == 2)


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("seed", range(4))
def test_prices_of_hard_gates_are_what_is_left_layer_by_layer(body, seed):
    network = create(body, hard=True, seed=seed)
    narrow, places = on_open_places(network, network.axes(), trunk_gates(network.axes()))
    dims = places["trunk"]
    inputs = int(network.features.is_open.sum())
    ends = [Affine(np.ones((len(dims), inputs)), None), Affine(np.ones((2, len(dims))), np.ones(2))]
    parameters, products = counts([*narrow.body.compact_layers(), *ends])
    assert float(soft_parameters(network)) == parameters
    assert float(soft_multiply_adds(network)) == products
    shipped = hard_cost(network, Recipe(price="parameters"))
    assert compact(network).n_parameters <= float(shipped) <= parameters, "compaction may find a smaller form"
    if body != "tunnel":
        assert compact(network).n_parameters == float(shipped)


def test_a_gate_pays_for_what_closing_it_would_save():
    """The slope of the soft count by a gate is the difference that closing it makes."""
    network = create("tunnel", hard=True)
    slopes = eqx.filter_jit(eqx.filter_grad(soft_parameters))(network)
    count = eqx.filter_jit(soft_parameters)
    whole = float(count(network))
    for part in (lambda n: n.body.gate.value, lambda n: n.features.value):
        values = np.asarray(part(network))
        place = tuple(index[0] for index in np.nonzero(values))
        closed = eqx.tree_at(part, network, jnp.asarray(values).at[place].set(0))
        assert whole - float(count(closed)) == pytest.approx(float(part(slopes)[place]))


# ---- training


DATA = Data(*two_spirals("easy"))
RECIPE = Recipe(batch_size=32, patience=5, settle=True, price="parameters")


@pytest.mark.parametrize("body", ["tunnel", "budding"])
def test_width_and_units_are_learned_together_and_come_back_from_a_file(body, tmp_path):
    options = {"depth": 2} if body == "tunnel" else {"capacity": 2}
    network = Network.create(body, 2, 1, width="auto", max_width=8, feature_gates=True, key=jax.random.key(0), **options)
    settings = {"learning_rate": 0.01, "penalty": 0.05, "key": jax.random.key(1), "recipe": RECIPE}
    run = fit(network, DATA, **settings, max_epochs=60)
    trunk = np.asarray(run.best.body.trunk.value)
    assert 0 < (trunk > 0).sum() < 8, "some of the dimensions are closed, for good"
    assert run.history["error"][int(run.best_epoch) - 1] < 0.05
    assert run.history["stage"][int(run.best_epoch) - 1] == 2, "it is a model of the last stage"
    save(tmp_path / "run", run)
    again = load(tmp_path / "run")
    np.testing.assert_array_equal(again.best.body.trunk.value, trunk)
    np.testing.assert_array_equal(again.best.features.value, run.best.features.value)


def test_a_closed_dimension_opens_again_where_it_helps():
    network = Network.create("tunnel", 2, 1, width="auto", max_width=8, depth=2, key=jax.random.key(0))
    network = eqx.tree_at(lambda n: n.body.trunk.value, network, jnp.array([1.0, 1, 0, 0, 0, 0, 0, 0]))
    run = fit(network, DATA, learning_rate=0.01, penalty=0.0, key=jax.random.key(1), recipe=Recipe(batch_size=32), max_epochs=5)
    assert (np.asarray(run.last.body.trunk.value) > 0).sum() > 2


def test_what_is_closed_does_not_decay():
    """Under Adam, L2 alone would shrink at the full rate what no error reaches; nothing could open again."""
    network = create("tunnel")
    slope = jax.jit(jax.grad(lambda n: n.half_norm(), allow_int=True))(network)
    closed = np.asarray(network.body.trunk.value) == 0
    assert not np.any(slope.body.weight[:, closed]) and not np.any(slope.body.weight[:, :, closed])
    assert not np.any(slope.embed.weight[closed]) and not np.any(slope.head.weight[:, closed])
    assert np.any(slope.embed.weight[~closed]) and not np.any(slope.embed.weight[:, np.asarray(network.features.value) == 0])


@pytest.mark.parametrize("body", ["tunnel", "highway", "plain", "residual"])
def test_units_on_closed_dimensions_are_neither_counted_nor_shown(body):
    """Whatever their own gates are: words and pictures say the sizes that training, reports and compaction do."""
    network = create(body)
    if body == "tunnel":
        network = eqx.tree_at(lambda n: n.body.gate.value, network, jnp.full((3, 8), 0.25))
    depth, there = BODIES[body]["depth"], int((TRUNK > 0).sum())
    assert int(hard_size(network)) == depth * there
    inputs = jax.vmap(network.embedded)(X)
    shown = structure(network.body, inputs).values
    np.testing.assert_allclose(shown.sum(1), layer_sizes(network, X), rtol=1e-5)
    assert (shown > 0).sum() == (structure(network.body).values > 0).sum() == depth * there
    rows, title = describe(network)[2], plot_structure(network, X=X, ax=subplots()).get_title()
    assert all(row[1].split(" of ")[0] == str(there) for row in rows[:depth])
    if body == "tunnel":
        assert compact(network).units == (there,) * depth
        assert rows[-1][:3] == ["all", f"{depth * there} of 24", f"{0.25 * depth * there:.2f}"]
        assert f"{depth * there} of 24 units open" in title
    else:
        assert f"of {depth * there} units" in title or f"{depth} × {there} units" in title


def test_a_width_is_a_number_or_auto():
    with pytest.raises(ValueError, match="width='wide' must be a whole number, or 'auto'"):
        Network.create("tunnel", 2, 1, width="wide", depth=2, key=jax.random.key(0))
