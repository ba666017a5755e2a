"""Compaction: the same outputs from less, over random gates and trees, and what is left is what should be."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from meristem import Data, fit
from meristem.compact import CompactNetwork, approximate, compact, layers, report
from meristem.compact.report import in_turns, multiply_adds, plain_of
from meristem.data.spirals import two_spirals
from meristem.nn import Body, Budding, Linear, Network, Tunnel
from meristem.nn.network import BODIES
from test_reference import CAPACITY, DEPTH, WIDTH, floats, make_budding, make_tunnel, many, seeds, trees, unit

TOLERANCE = {"float32": 1e-5, "float64": 1e-12}  # of the largest output
N, N_OUT = 20, 3
KEY = jax.random.key(0)
gate_lists = st.lists(unit, min_size=DEPTH * WIDTH, max_size=DEPTH * WIDTH)
some = settings(many, max_examples=12)


@pytest.fixture(params=["float32", "float64"])
def precision(request: Any) -> Any:
    with jax.enable_x64(request.param == "float64"):
        yield request.param


def around(body: Body, n_in: int, seed: int, n_out: int = N_OUT) -> Network:
    """A network with this body and random ends."""
    rng, width = np.random.default_rng(seed), body.bias.shape[-1]
    ends = Linear(1, 1, use_bias=False, key=KEY), Linear(1, 1, key=KEY)
    arrays = rng.normal(size=(width, n_in)), rng.normal(size=(n_out, width)), rng.normal(size=n_out)
    embed, head = eqx.tree_at(lambda e: (e[0].weight, e[1].weight, e[1].bias), ends, tuple(map(floats, arrays)))
    return Network(embed, body, head)


def tunnel_network(gates: Any, n_in: int = 4, n_out: int = N_OUT, activation: str = "relu") -> Network:
    """A tunnel network with these gates [depth, width]."""
    gates = np.asarray(gates, float)
    body = Tunnel(gates.shape[1], gates.shape[0], activation=activation, key=KEY)
    return around(eqx.tree_at(lambda b: b.gate.value, body, floats(gates)), n_in, 1, n_out)


@eqx.filter_jit
def outputs(network: Network, x: jax.Array) -> jax.Array:
    """Those of a full network, whose shapes do not vary: compiled once."""
    return jax.vmap(network)(x)


def samples(network: Network, n: int = N) -> jax.Array:
    return floats(np.random.default_rng(5).normal(size=(n, network.embed.weight.shape[1])))


def kinds(network: CompactNetwork) -> list[str]:
    return [type(layer).__name__ for layer in network.layers]


def size(tree: Any) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(tree, eqx.is_inexact_array)))


def assert_same(network: Network, small: CompactNetwork, tolerance: float) -> None:
    """Outputs within the tolerance of the largest one, and the same decision wherever the margin exceeds it."""
    x = samples(network)
    before, after = np.asarray(outputs(network, x)), np.asarray(jax.vmap(small)(x))
    assert after.dtype == before.dtype and after.shape == before.shape
    allowed = tolerance * np.abs(before).max()
    assert np.abs(after - before).max() <= allowed
    first, second = np.sort(before, 1).T[[-1, -2]]
    clear = first - second > allowed
    assert (before.argmax(1) == after.argmax(1))[clear].all()


def assert_no_larger(network: Network, small: CompactNetwork) -> None:
    x = samples(network)[0]
    assert size(small) <= size(network)
    assert multiply_adds(small, x) <= multiply_adds(network, x)


# ---- exact, whatever is open


@pytest.mark.parametrize("n_in", [2, 7])
def test_a_tunnel_network_stays_the_same(precision, n_in):
    @some
    @given(gates=gate_lists, seed=seeds)
    def check(gates, seed):
        network = around(make_tunnel(gates, np.random.default_rng(seed), "relu"), n_in, seed)
        small = compact(network)
        assert_same(network, small, TOLERANCE[precision])
        assert_no_larger(network, small)
        opened = (np.array(gates).reshape(DEPTH, WIDTH) != 0).sum(1)
        assert [n for layer in small.layers for n in layer.units] == [n for n in opened if n]

    check()


@pytest.mark.parametrize(("n_in", "kind"), [(2, ["Cascade"]), (40, ["Affine", "Gated", "Gated", "Affine"])])
def test_the_sizes_of_the_ends_decide_the_form_of_a_tunnel(n_in, kind):
    """Units read one another, or h, whichever is less to multiply."""
    network = tunnel_network([[0.3, 0, 0, 0.5, 0], [0, 0, 0, 0, 0], [0, 1, 0.7, 0, 0]], n_in)
    small = compact(network)
    assert kinds(small) == kind
    assert_same(network, small, 1e-5)


def test_a_budding_network_stays_the_same(precision):
    @some
    @given(tree=trees(), seed=seeds)
    def check(tree, seed):
        network = around(make_budding(tree, "relu"), 4, seed)
        small = compact(network)
        assert_same(network, small, TOLERANCE[precision])
        assert_no_larger(network, small)
        inner = tree["gamma"][1::2][tree["depth"][1:] >= 0]
        leaves = len(inner) + 1
        used = sum(len(layer.units) for layer in small.layers)
        # A node with γ = 1 hides what is below it; otherwise every leaf is needed.
        assert used == leaves if (inner < 1).all() else used < leaves

    check()


@pytest.mark.parametrize("probe", ["bud", "zero"])
def test_leaves_that_are_about_to_open_stay_the_same(precision, probe):
    """Between an update and growth a leaf may be below 1: then its probe shows in the output."""

    @settings(some, max_examples=10)
    @given(tree=trees(), seed=seeds, leaves=st.lists(unit, min_size=CAPACITY, max_size=CAPACITY))
    def check(tree, seed, leaves):
        alive = np.concatenate([[True], tree["depth"][1:] >= 0])
        tree["gamma"][0::2][alive] = np.array(leaves)[alive]
        network = around(make_budding(tree, "relu", probe), 4, seed)
        assert_same(network, compact(network), TOLERANCE[precision])

    check()


@pytest.mark.parametrize("body", BODIES)
def test_every_body_stays_the_same(body):
    network = Network.create(body, 4, N_OUT, width=5, key=KEY, **{"capacity" if body == "budding" else "depth": 2})
    small = compact(network)
    assert_same(network, small, 1e-5)
    assert_no_larger(network, small)


@pytest.mark.parametrize(("body", "options"), [("tunnel", {"depth": 3}), ("budding", {"capacity": 2})])
def test_a_trained_network_decides_the_same(body, options):
    x, y = two_spirals("medium")
    network = Network.create(body, 2, 1, width=5, key=jax.random.key(3), **options)
    trained = fit(network, Data(x, y), learning_rate=1e-2, penalty=1e-3, key=KEY, max_epochs=20, max_capacity=2).last
    small = compact(trained)
    assert sum(len(layer.units) for layer in small.layers) > 1, "nothing has grown, so nothing is tested"
    assert_no_larger(trained, small)
    before, after = (np.asarray(jax.vmap(one)(jnp.asarray(x))) for one in (trained, small))
    allowed = 1e-5 * np.abs(before).max()
    assert np.abs(after - before).max() <= allowed
    clear = np.abs(before) > allowed
    assert ((before > 0) == (after > 0))[clear].all()
    assert clear.mean() > 0.9


# ---- what is left


def test_nothing_open_is_one_affine_map():
    network = tunnel_network(np.zeros((3, 5)))
    (only,) = compact(network).layers
    assert isinstance(only, layers.Affine)
    np.testing.assert_allclose(only.weight, network.head.weight @ network.embed.weight, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(only.bias, network.head.bias)
    assert report(network, repeats=1).compact.multiply_adds == 4 * N_OUT


def test_a_bottleneck_is_not_multiplied_out():
    """10 → 2 → 10 are 40 products; as one map they would be 100, more than the whole network had."""
    network = tunnel_network(np.zeros((3, 2)), n_in=10, n_out=10)
    small = compact(network)
    assert kinds(small) == ["Affine", "Affine"] and multiply_adds(small, samples(network)[0]) == 40
    assert_same(network, small, 1e-5)


def test_only_open_units_are_kept():
    gates = np.zeros((4, 5))
    gates[1, [1, 4]], gates[3, 2] = [0.5, 1.0], 0.25
    network = tunnel_network(gates, n_in=40)
    embed, two, one, head = compact(network).layers
    assert two.rows == (1, 4) and one.rows == (2,)
    np.testing.assert_array_equal(two.weight, network.body.weight[1, jnp.array([1, 4])])
    np.testing.assert_array_equal(two.gate, jnp.array([0.5, 1.0]))
    assert embed.bias is None and head.weight.shape == (N_OUT, 5)


@pytest.mark.parametrize("depth", [1, 2])
def test_gates_of_1_are_plain_layers(depth):
    network = tunnel_network(np.ones((depth, 5)), n_in=40)
    small = compact(network)
    assert kinds(small) == ["Perceptron"] * depth + ["Affine"]
    assert small.layers[0].weight.shape == (5, 40)  # multiplied with the embedding
    assert_same(network, small, 1e-5)


def tree_network(depth: list[int], inner: list[float]) -> Network:
    gamma = np.ones(2 * len(depth) - 1)
    gamma[1::2] = inner
    body = Budding(3, capacity=len(depth), key=KEY)
    rng = np.random.default_rng(0)
    weight, bias = floats(rng.normal(size=body.weight.shape)), floats(rng.normal(size=body.bias.shape))
    arrays = weight, bias, floats(gamma), jnp.array(depth, jnp.int32)
    return around(eqx.tree_at(lambda b: (b.weight, b.bias, b.leafness.value, b.depth), body, arrays), 4, 0)


@pytest.mark.parametrize(
    ("depth", "inner", "kept", "reads"),
    [
        ([-1, -1], [1], ["Perceptron", "Affine"], []),  # a seedling
        ([-1, 0], [0.5], ["Tree", "Affine"], [(0,), (0, 1)]),
        ([-1, 0], [0], ["Perceptron", "Perceptron", "Affine"], []),  # γ = 0: two plain layers
        ([-1, 0], [1], ["Perceptron", "Affine"], []),  # γ = 1: the right one is hidden
        ([-1, 1, 0], [1, 0.5], ["Tree", "Affine"], [(0,), (0, 1)]),  # ((0 1) 2) without leaf 1
        ([-1, 0, 1], [0.5, 1], ["Tree", "Affine"], [(0,), (0, 1)]),  # (0 (1 2)) without leaf 2
        ([-1, 1, 0], [0.5, 0.5], ["Tree", "Affine"], [(0,), (0, 1), (0, 2)]),
        ([-1, 0, 1], [0, 0.5], ["Perceptron", "Tree", "Affine"], [(0,), (0, 1)]),
    ],
)
def test_a_tree_keeps_its_live_leaves(depth, inner, kept, reads):
    network = tree_network(depth, inner)
    small = compact(network)
    assert kinds(small) == kept
    assert [leaf.reads for layer in small.layers if isinstance(layer, layers.Tree) for leaf in layer.leaves] == reads
    assert small.layers[0].units[0] == 3 and jax.tree.leaves(small)[0].shape == (3, 4)  # the embedding is multiplied in
    assert_same(network, small, 1e-5)


def test_compacting_twice_changes_nothing():
    small = compact(tunnel_network(np.zeros((3, 5))))
    assert compact(small) is small


# ---- a network like any other


def one_of_each_kind() -> CompactNetwork:
    """All kinds of layers, one after the other."""
    rng = np.random.default_rng(0)

    def draw(*shape: int) -> jax.Array:
        return floats(rng.normal(size=shape) / 2)

    first = layers.Leaf(draw(5, 5), draw(5), jnp.ones(1), (0,))
    second = layers.Leaf(draw(5, 5), draw(5), jnp.array([0.3, 0.7]), (0, 1))
    return CompactNetwork(
        (
            layers.Affine(draw(5, 4), None),
            layers.Gated(draw(2, 5), draw(2), jnp.array([0.5, 1.0]), (1, 3), "tanh"),
            layers.Residual(draw(5, 5), draw(5), "tanh"),
            layers.Highway(draw(5, 5), draw(5), draw(5, 5), draw(5), "tanh"),
            layers.Tree((first, second), "tanh"),
            layers.Perceptron(draw(6, 5), draw(6), "tanh"),
            layers.Cascade(draw(2 + 3 + 3, 6), draw(8), (draw(3, 2), draw(3, 5)), "tanh"),
        )
    )


def test_one_sample_batches_and_derivatives():
    """`vmap` takes a way of its own through the layers; with derivatives it takes the usual one."""
    small = one_of_each_kind()
    ours = {kind for kind in layers.Layer.__subclasses__() if kind.__module__.startswith("meristem.")}
    assert set(map(type, small.layers)) == ours
    x = floats(np.random.default_rng(1).normal(size=(4, 4)))

    def total(one):
        return lambda sample: (one(sample) ** 2).sum()

    @jax.jit
    def program(x):
        alone, plain = jnp.stack([small(sample) for sample in x]), jnp.stack([jax.grad(total(small.columns))(s) for s in x])
        batches = (
            jax.vmap(small)(x),
            jax.vmap(small, 1, 1)(x.T).T,
            jax.vmap(jax.vmap(small))(x.reshape(2, 2, -1)).reshape(4, -1),
        )
        gradients = jax.vmap(jax.grad(total(small)))(x), jax.grad(lambda x: jax.vmap(total(small))(x).sum())(x)
        return (alone, batches), (plain, gradients)

    for wanted, each in program(x):
        for got in each:
            np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def test_many_compact_networks_of_one_shape():
    gates = np.zeros((2, 5))
    gates[0, 2] = 0.5
    networks = [around(eqx.tree_at(lambda b: b.gate.value, Tunnel(5, 2, key=KEY), floats(gates)), 4, seed) for seed in (1, 2)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(compact, networks))
    x = samples(networks[0], 2)
    for got in (
        jax.vmap(lambda n, s: n(s))(stacked, x),
        jax.vmap(lambda n: jax.vmap(n)(x))(stacked)[jnp.arange(2), jnp.arange(2)],
    ):
        np.testing.assert_allclose(got, jnp.stack([n(s) for n, s in zip(networks, x, strict=True)]), rtol=1e-5)


def test_layers_may_hold_numpy_arrays():
    network = tunnel_network(np.full((2, 5), 0.5))
    small = compact(network)
    host = jax.tree.map(np.asarray, small)
    x = samples(network)
    np.testing.assert_allclose(jax.vmap(host)(x), jax.vmap(small)(x), rtol=1e-6)


# ---- what it saves


def test_the_report_counts():
    gates = np.zeros((4, 10))
    gates[0, :3], gates[2, :2] = 0.5, 0.5
    network = tunnel_network(gates, n_in=20, n_out=2)
    told = report(network, samples(network, 7), repeats=2)
    assert told.units == (3, 2) and told.samples == 7 and told.difference < 1e-5
    assert told.full.multiply_adds == 20 * 10 + 4 * 10 * 10 + 10 * 2
    assert told.full.parameters == told.full.multiply_adds + 4 * 10 * 2 + 2
    assert told.live_parameters == 20 * 10 + 5 * 12 + 10 * 2 + 2
    assert told.compact.multiply_adds == 5 * 20 + 2 * 3 + 2 * (20 + 5)
    assert told.compact.parameters == told.compact.multiply_adds + 5 + 2
    assert told.plain.multiply_adds == 20 * 3 + 3 * 2 + 2 * 2
    assert told.plain.parameters == told.plain.multiply_adds + 3 + 2 + 2
    text = str(told)
    for part in ["282 of 702 parameters live", "full", "compact", "plain, 3 + 2 units", "7 samples"]:
        assert part in text
    assert told.speedup == told.full.seconds / told.compact.seconds > 0


def test_the_plain_network_has_the_live_layers():
    assert [layer.units for layer in plain_of(tree_network([-1, 1, 0], [0.3, 0.6])).layers] == [(3,), (3,), (3,), ()]


def test_calls_take_turns_and_the_first_does_not_count():
    seen = []
    seconds = in_turns({"a": lambda: seen.append("a"), "b": lambda: seen.append("b")}, 2)
    assert seen == ["a", "b"] * 3 and {name: len(values) for name, values in seconds.items()} == {"a": 2, "b": 2}


# ---- approximately, where one asks for it


def test_an_approximation_says_how_much_it_moved():
    gates = np.zeros((2, 5))
    gates[0, :2], gates[1, 3] = [0.005, 0.5], 0.009
    network = tunnel_network(gates)
    x = samples(network)
    result = approximate(network, x, gates_below=0.01)
    assert result.closed == 2 and result.network.layers[0].units == (1,)
    before, after = jax.vmap(network)(x), jax.vmap(result.network)(x)
    np.testing.assert_allclose(result.moved, jnp.abs(after - before).max(), rtol=1e-4)
    np.testing.assert_allclose(result.largest, jnp.abs(before).max(), rtol=1e-6)
    assert 0 < result.moved < 0.1 * result.largest
    assert result.changed == (after.argmax(1) != before.argmax(1)).mean()
    assert str(result).startswith("2 closed; outputs moved by at most")
    assert approximate(network, x, gates_below=0.001).moved <= 1e-5 * result.largest
    assert approximate(network, x, gates_below=0.9).network.layers[0].units == ()


def test_a_tree_closes_its_almost_closed_nodes():
    network = tree_network([-1, 1, 0], [0.995, 0.5])
    result = approximate(network, samples(network), gates_below=0.01)
    assert result.closed == 1 and len(result.network.layers[0].units) == 2
    assert result.moved > 0


# ---- what cannot be


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda n, x: jax.jit(lambda x, n: compact(n)(x))(x[0], n), r"compact\(\) looks at the values of the gates"),
        (
            lambda n, x: jax.vmap(lambda x, n: compact(n)(x), (0, None))(x, jax.tree.map(lambda a: a[None], n)),
            "population of 1",
        ),
        (lambda n, x: compact(jax.tree.map(lambda a: jnp.stack([a, a]), n)), r"a population of 2; pick one: jax.tree.map"),
        (lambda n, x: report(jax.tree.map(lambda a: jnp.stack([a, a]), n)), r"report\(\) takes one network"),
        (lambda n, x: compact(n)(x), r"use jax.vmap\(network\)\(x\)"),
        (lambda n, x: compact(eqx.tree_at(lambda n: n.embed, n, Linear(4, 5, key=KEY))), "embedding has no bias"),
        (lambda n, x: approximate(n, x, gates_below=0), "gates_below=0 must be a number above 0 and below 1"),
        (lambda n, x: approximate(n, x[:, :2], gates_below=0.1), r"x has shape \(20, 2\); it must be \[samples, 4\]"),
        (lambda n, x: report(n, x[:0]), "at least one sample"),
        (lambda n, x: report(n, x, repeats=0), "repeats=0 must be an integer of at least 1"),
        (lambda n, x: approximate(Network.create("plain", 4, 3, depth=1, key=KEY), x, gates_below=0.1), "Plain has no gates"),
    ],
)
def test_bad_arguments_are_named(call, says):
    network = tunnel_network(np.zeros((2, 5)))
    with pytest.raises(ValueError, match=says):
        call(network, samples(network))


def test_a_body_of_ones_own_is_named():
    class Own(Tunnel.__base__):
        bias: jax.Array

        def priced(self, x):
            return x, x.sum()

        def half_norm(self):
            return self.bias.sum()

        def depths(self):
            return self

    with pytest.raises(ValueError, match="does not know the body Own"):
        compact(around(Own(jnp.zeros((1, 3))), 4, 0))
