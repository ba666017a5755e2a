"""Compaction: the same outputs from less, over random gates and trees, and what is left is what should be."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from meristem import Data, fit
from meristem.compact import CompactNetwork, approximate, compact, layers, n_parameters, report
from meristem.compact.inference import Predictor, as_numpy
from meristem.compact.report import in_turns, multiply_adds, plain_of
from meristem.data.spirals import two_spirals
from meristem.gate import Confined
from meristem.layers.image_layers import ConvolutionBlock, GatedConvolution, InvertedBlock, Pixels, Pool
from meristem.nn import Body, Budding, Linear, Network, Tunnel
from meristem.nn.network import BODIES
from soak import FACTOR, many as tries
from test_reference import CAPACITY, DEPTH, WIDTH, floats, make_budding, make_tunnel, many, seeds, trees, unit

TOLERANCE = {"float32": 1e-5, "float64": 1e-12}  # of the largest output
N, N_OUT = 20, 3
KEY = jax.random.key(0)
gate_lists = st.lists(unit, min_size=DEPTH * WIDTH, max_size=DEPTH * WIDTH)
some = settings(many, max_examples=tries(3))


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


def with_identity_root(body: Budding, copied: float) -> Budding:
    """The same tree below a root that copies its input by this share."""
    return eqx.tree_at(lambda b: b.identity, body, Confined(floats(copied), closed=1.0), is_leaf=lambda node: node is None)


def tunnel_network(gates: Any, n_in: int = 4, n_out: int = N_OUT, activation: str = "relu") -> Network:
    """A tunnel network with these gates [depth, width]."""
    gates = np.asarray(gates, float)
    body = Tunnel(gates.shape[1], gates.shape[0], activation=activation, key=KEY)
    return around(eqx.tree_at(lambda b: b.gate.value, body, floats(gates)), n_in, 1, n_out)


@eqx.filter_jit
def outputs(network: Network | Body, x: jax.Array) -> jax.Array:
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
    before = np.asarray(outputs(network, x))
    # JAX would compile every form; that it computes the same, every body alone shows.
    after = np.asarray(jax.vmap(small)(x)) if FACTOR > 1 else Predictor(as_numpy(small)).outputs(np.asarray(x))
    assert after.shape == before.shape and {leaf.dtype for leaf in jax.tree.leaves(small)} <= {before.dtype}
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
        assert list(small.units) == [n for n in opened if n]

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


def test_a_tree_that_may_copy_stays_the_same(precision):
    """0 < γ₀ < 1 mixes the copy in, γ₀ = 0 is the plain tree, γ₀ = 1 nothing but an affine map."""
    seen = set()

    @settings(some, max_examples=tries(8))
    @given(tree=trees(), seed=seeds, copied=unit)
    def check(tree, seed, copied):
        body = make_budding(tree, "relu")
        network = around(with_identity_root(body, copied), 4, seed)
        small = compact(network)
        assert_same(network, small, TOLERANCE[precision])
        assert size(small) <= size(network)
        if copied == 1:
            assert kinds(small) == ["Affine"]
        else:
            reads = [leaf.reads for layer in small.layers if isinstance(layer, layers.Tree) for leaf in layer.leaves]
            assert any(layers.INPUT in read for read in reads) == (copied > 0)
            assert small.units == compact(around(body, 4, seed)).units
        seen.add(float(copied) if copied in (0, 1) else "between")

    check()
    assert seen == {0.0, 1.0, "between"}


@pytest.mark.parametrize("probe", ["bud", "zero"])
def test_leaves_that_are_about_to_open_stay_the_same(precision, probe):
    """Between an update and growth a leaf may be below 1: then its probe shows in the output."""

    @some
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


def some_body(name: str, *, is_open: bool) -> Body:
    """Of width 5; if open, with random arrays, gates and nodes among them."""
    options = {"capacity": 3} if name.startswith("budding") else {"depth": 2}
    if name == "budding, identity":
        options |= {"root": "identity"}
    body, rng = BODIES[name.partition(",")[0]](5, key=KEY, **options), np.random.default_rng(0)
    if not is_open:
        return body
    drawn = jax.tree.map(lambda a: floats(rng.uniform(0, 1, a.shape)) if eqx.is_inexact_array(a) else a, body)
    if not isinstance(body, Budding):
        return drawn
    inner_only = drawn.leafness.value.at[0::2].set(1)
    return eqx.tree_at(lambda b: (b.depth, b.leafness.value), drawn, (jnp.array([-1, 1, 0]), inner_only))


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("name", [*BODIES, "budding, identity"])
def test_every_body_alone_stays_the_same(name, is_open):
    """The contract of `compact_layers`: JAX, and with it every set of operations, gives what the body gives."""
    body = some_body(name, is_open=is_open)
    x = floats(np.random.default_rng(1).normal(size=(N, 5)))
    small, before = compact(body), np.asarray(outputs(body, x))
    for after in (np.asarray(jax.vmap(small)(x)), Predictor(as_numpy(small)).outputs(np.asarray(x))):
        assert after.shape == before.shape and np.abs(after - before).max() <= 1e-5 * np.abs(before).max()
    y, price = jax.vmap(small.priced)(x)
    np.testing.assert_array_equal(y, jax.vmap(small)(x))
    assert price.tolist() == [0] * N
    assert small.n_parameters == n_parameters(body) == size(small) <= size(body)
    copies = {"tunnel", "budding, identity"}
    assert (small.layers == ()) == (not is_open and name in copies)


def test_a_body_alone_keeps_its_precision(precision):
    small = compact(some_body("budding, identity", is_open=True))
    assert {leaf.dtype for leaf in jax.tree.leaves(small)} == {np.dtype(precision)}


class Mine(eqx.Module):
    """A person's own model, as in the README."""

    enter: eqx.nn.Linear
    body: Body
    rate: float = 0.5

    def __call__(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        return self.body.priced(self.enter(x))


@pytest.mark.parametrize("name", [*BODIES, "budding, identity"])
def test_the_bodies_of_ones_own_model(name):
    model = Mine(eqx.nn.Linear(2, 5, key=KEY), some_body(name, is_open=True))
    small = compact(model)
    assert isinstance(small, Mine) and isinstance(small.body, CompactNetwork)
    assert small.enter.weight is model.enter.weight and small.rate == 0.5
    x = floats(np.random.default_rng(1).normal(size=(N, 2)))
    (before, _), (after, price) = outputs(model, x), outputs(small, x)
    assert float(jnp.abs(after - before).max()) <= 1e-5 * float(jnp.abs(before).max())
    assert price.tolist() == [0] * N
    assert n_parameters(model) == 2 * 5 + 5 + n_parameters(model.body) == size(small)


def test_several_bodies_and_networks_in_one_model():
    network = tunnel_network(np.zeros((3, 5)))
    small = compact({"first": Tunnel(3, 2, key=KEY), "rest": [network, 7, compact(network)]})
    assert small["first"].layers == () and small["rest"][1] == 7
    assert kinds(small["rest"][0]) == kinds(small["rest"][2]) == ["Affine"]


@pytest.mark.parametrize(("body", "options"), [("tunnel", {"depth": 3}), ("budding", {"capacity": 2})])
def test_a_trained_network_decides_the_same(body, options):
    x, y = two_spirals("medium")
    network = Network.create(body, 2, 1, width=5, key=jax.random.key(3), **options)
    trained = fit(network, Data(x, y), learning_rate=1e-2, penalty=1e-3, key=KEY, max_epochs=20, max_capacity=2).last
    small = compact(trained)
    assert sum(len(layer.units) for layer in small.layers) > 1, "nothing has grown, so nothing is tested"
    assert_no_larger(trained, small)
    before, after = (np.asarray(outputs(one, jnp.asarray(x))) for one in (trained, small))
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


def test_what_is_left_of_a_tree_that_may_copy():
    """The embedding stays where the tree's input is read twice; γ₀ is a share among the others."""
    plain = tree_network([-1, 0], [0.5])
    between, copy, tree = (
        compact(eqx.tree_at(lambda n: n.body, plain, with_identity_root(plain.body, copied))) for copied in (0.25, 1, 0)
    )
    assert kinds(between) == ["Affine", "Tree", "Affine"]
    first, last = between.layers[1].leaves
    assert (first.reads, last.reads) == ((0,), (layers.INPUT, 0, 1))
    np.testing.assert_allclose(last.shares, [0.25, 0.375, 0.375])
    assert kinds(copy) == ["Affine"] and copy.n_parameters == N_OUT * (4 + 1)
    assert jax.tree.structure(tree) == jax.tree.structure(compact(plain))
    assert all(map(np.array_equal, jax.tree.leaves(tree), jax.tree.leaves(compact(plain))))


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
            layers.Pick((0, 2, 3, 4), of=5),
            layers.Affine(draw(5, 4), None),
            layers.Gated(draw(2, 5), draw(2), jnp.array([0.5, 1.0]), (1, 3), "tanh"),
            layers.Residual(draw(5, 5), draw(5), "tanh"),
            layers.Highway(draw(5, 5), draw(5), draw(5, 5), draw(5), "tanh"),
            layers.Tree((first, second), "tanh"),
            layers.Perceptron(draw(6, 5), draw(6), "tanh"),
            layers.Cascade(draw(2 + 3 + 3, 6), draw(8), (draw(3, 2), draw(3, 5)), "tanh"),
            layers.Bag(
                (
                    (layers.Affine(draw(3, 3), None),),
                    (layers.Perceptron(draw(4, 3), draw(4), "tanh"), layers.Affine(draw(3, 4), draw(3))),
                )
            ),
        )
    )


def one_over_positions() -> CompactNetwork:
    """The kinds of layers on values at positions."""
    rng = np.random.default_rng(0)
    first, second = (floats(rng.normal(size=shape) / 2) for shape in ((4, 5, 3), (3, 4)))
    return CompactNetwork((layers.Convolution(first, jnp.ones(4)), layers.Mean(4, (6,)), layers.Affine(second, None)), (6,))


def one_over_images() -> CompactNetwork:
    """The kinds of layers on the channels of images."""
    rng = np.random.default_rng(0)

    def draw(*shape: int) -> jax.Array:
        return floats(rng.normal(size=shape) / 2)

    return CompactNetwork(
        (
            Pixels((0.1, 0.2, 0.3), (0.5, 1.0, 2.0), (5, 4, 3)),
            GatedConvolution(draw(2, 3, 3, 3), draw(2), jnp.array([0.5, 1.0]), (0, 2), "tanh"),
            ConvolutionBlock(draw(4, 3, 3, 3), draw(4), draw(3, 4, 3, 3), "tanh"),
            Pool(3, (2, 2)),
            InvertedBlock(draw(4, 3, 1, 1), draw(4), draw(4, 3, 3), draw(4), draw(3, 4, 1, 1), "tanh"),
            layers.Mean(3, (2, 2)),
            layers.Affine(draw(4, 3), None),
        ),
        (4, 3),
    )


def test_no_kind_of_layer_is_missing():
    direct = layers.Layer.__subclasses__()
    every = [kind for base in direct for kind in base.__subclasses__() or [base]]  # some have a base in common
    ours = {kind for kind in every if kind.__module__.startswith("meristem.")}
    assert {
        type(layer) for small in (one_of_each_kind(), one_over_positions(), one_over_images()) for layer in small.layers
    } == ours


@pytest.mark.parametrize("make", [one_of_each_kind, one_over_positions, one_over_images])
def test_one_sample_batches_and_derivatives(make):
    """`vmap` takes a way of its own through the layers; with derivatives it takes the usual one."""
    small = make()
    x = floats(np.random.default_rng(1).normal(size=(4, 5, *small.positions)))

    def total(one):
        return lambda sample: (one(sample) ** 2).sum()

    @jax.jit
    def program(x):
        alone, plain = jnp.stack([small(sample) for sample in x]), jnp.stack([jax.grad(total(small.columns))(s) for s in x])
        batches = (
            jax.vmap(small)(x),
            jax.vmap(small, 1, 1)(jnp.moveaxis(x, 0, 1)).T,
            jax.vmap(jax.vmap(small))(x.reshape(2, 2, *x.shape[1:])).reshape(4, -1),
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
    assert told.compact.multiply_adds == 5 * 20 + 2 * 3 + 2 * (20 + 5)
    assert told.compact.parameters == n_parameters(network) == told.compact.multiply_adds + 5 + 2
    assert told.plain.multiply_adds == 20 * 3 + 3 * 2 + 2 * 2
    assert told.plain.parameters == told.plain.multiply_adds + 3 + 2 + 2
    text = str(told)
    for part in ["163 parameters in place of 702", "full", "compact", "plain, 3 + 2 units", "7 samples"]:
        assert part in text
    assert told.speedup == told.full.seconds / told.compact.seconds > 0


def test_parameters_are_all_numbers_that_are_stored():
    """Gates and shares included; which rows and leaves they belong to is structure."""
    gates = np.zeros((4, 10))
    gates[1, :3] = 0.5
    gated = tunnel_network(gates, n_in=40, n_out=20)
    assert kinds(compact(gated)) == ["Affine", "Gated", "Affine"]
    assert n_parameters(gated) == 40 * 10 + 3 * (10 + 2) + 20 * (10 + 1)
    tree = tree_network([-1, 1, 0], [0.5, 0.5])
    assert n_parameters(tree) == (3 * 4 + 3) + 2 * (3 * 3 + 3) + (1 + 2 + 2) + N_OUT * (3 + 1)


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


@pytest.mark.parametrize(("copied", "kept"), [(0.995, ["Affine"]), (0.5, ["Affine", "Tree", "Affine"])])
def test_a_root_that_almost_copies_is_closed(copied, kept):
    plain = tree_network([-1, 1, 0], [0.5, 0.5])
    network = eqx.tree_at(lambda n: n.body, plain, with_identity_root(plain.body, copied))
    result = approximate(network, samples(network), gates_below=0.01)
    assert kinds(result.network) == kept and result.closed == (copied > 0.99)
    assert (result.moved > 1e-3 * result.largest) == (copied > 0.99)


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
        (lambda n, x: compact(jax.tree.map(lambda a: jnp.stack([a, a]), n.body)), "takes one body, got a population of 2"),
        (
            lambda n, x: compact(jax.tree.map(lambda a: jnp.stack([a, a]), Budding(3, root="identity", key=KEY))),
            "takes one body, got a population of 2",
        ),
        (lambda n, x: jax.jit(lambda b: compact(b)(x[0]))(n.body), r"compact\(\) looks at the values of the gates"),
        (lambda n, x: compact(n.head), "takes a Network, a body or a model that holds some, got a Linear without any"),
        (lambda n, x: compact(n)(x), r"use jax.vmap\(network\)\(x\)"),
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


class Unknown(Body):
    """A body that nobody has said the layers of: a leaky copy of its input with a gate of its own."""

    bias: jax.Array
    gate: Confined

    def priced(self, x):
        return self.gate.value * jax.nn.relu(x + self.bias[0]) + (1 - self.gate.value) * x, self.gate.value.sum()


class Known(Unknown):
    def compact_layers(self):
        gate = np.asarray(self.gate.value, float)
        rows = np.flatnonzero(gate)
        arrays = np.eye(len(gate))[rows], np.asarray(self.bias[0], float)[rows], gate[rows]
        return [layers.Gated(*arrays, tuple(rows.tolist()), "relu")] if len(rows) else []


class Leafy(Unknown):
    """The same with leafness in place of gates: 1 is closed."""

    def priced(self, x):
        return Known(self.bias, Confined(1 - self.gate.value)).priced(x)

    def compact_layers(self):
        return Known(self.bias, Confined(jnp.asarray(1 - self.gate.value))).compact_layers()


def own_network(kind: type[Unknown], gate: list[float], closed: float = 0.0) -> Network:
    return around(kind(floats([[0.5, -0.5, 0.1]]), Confined(floats(gate), closed)), 4, 0)


def test_a_body_of_ones_own_is_named():
    with pytest.raises(ValueError, match=r"does not know the body Unknown: write its compact_layers\(\)") as caught:
        compact(own_network(Unknown, [0, 0.5, 1]))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("gate", [[0, 0, 0], [0, 0.5, 0.005], [1, 1, 1]])
def test_a_body_of_ones_own_is_compacted_once_its_layers_are_known(gate):
    network = own_network(Known, gate)
    small = compact(network)
    assert_same(network, small, 1e-5)
    assert small.units == ((n,) if (n := sum(g > 0 for g in gate)) else ())
    assert compact(network.body).units == small.units
    assert report(network, repeats=1).difference < 1e-5
    closed = approximate(network, samples(network), gates_below=0.01)
    assert closed.closed == gate.count(0.005) and sum(closed.network.units) == sum(small.units) - closed.closed


@pytest.mark.parametrize(("kind", "closed"), [(Known, 0.0), (Leafy, 1.0)])
def test_what_is_almost_closed_is_closed_at_the_end_that_is_closed(kind, closed):
    """0 closes a gate, 1 closes leafness: of these values each kind closes another one."""
    network = own_network(kind, [0.004, 0.5, 0.994], closed)
    assert compact(network).units == (3,)
    result = approximate(network, samples(network), gates_below=0.005 if closed == 0 else 0.007)
    assert result.closed == 1 and result.network.units == (2,)
    assert 0 < result.moved < 0.1 * result.largest
