"""Boundaries of models that larger tests do not notice: padding, trees, populations, leaves yet to open, thresholds."""

import time
from itertools import product

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meristem.compact.inference import BLOCK, Predictor, spread
from meristem.compact.report import Cost, Report, approximate, in_turns, multiply_adds
from meristem.complexity import hard_size, soft_size
from meristem.gate import Confined
from meristem.layers.compact_network import CompactNetwork
from meristem.layers.layer import Affine, Gated, Residual as ResidualLayer
from meristem.nn import Body, Budding, Highway, Linear, Network, Plain, Residual, Stages, Tunnel
from meristem.nn.axes import MAP, TRUNK, ArrayAxes, Axes, Axis, declare, gate_axis
from meristem.nn.axis_counts import placed_on
from meristem.nn.body import read, with_price
from meristem.nn.compaction import compact_body, on_open_places
from meristem.nn.linear import glorot, he_layer, random_kernel
from meristem.nn.network import divide_outputs
from meristem.nn.rows import Live, Rows, placed, put, stood, taken
from meristem.nn.structure import Gates, Nodes
from meristem.nn.tree import is_tree, leaf_openness, node_openness
from meristem.nn.tree_growth import with_capacity

KEY = jax.random.key(0)
ROWS = Rows(jnp.array([0]), jnp.array([[2, 0, 3]]), jnp.array([[1, 3, 0]]), depth=1)  # the last unit stands on nothing


# ---- a network on what is open of it


def test_a_place_that_is_padding_is_read_as_zero_and_written_nowhere():
    """Layer 1 with its units 0 and 2; then a layer that is padding."""
    network = Network.create("tunnel", 2, 1, width=3, depth=2, key=KEY)
    network = eqx.tree_at(lambda n: n.body.gate.value, network, jnp.full((2, 3), 0.5))
    live = Live({"layer": np.array([1, 2]), "unit": np.array([[0, 2, 3], [3, 3, 3]])}, {})
    small = taken(network, network, live)
    assert small.body.gate.value.tolist() == [[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]
    np.testing.assert_array_equal(small.body.weight[0, :2], network.body.weight[1, [0, 2]])
    assert not small.body.weight[0, 2].any() and not small.body.weight[1].any() and not small.body.bias[1].any()
    np.testing.assert_array_equal(small.embed.weight, network.embed.weight)
    back = put(network, jax.tree.map(lambda leaf: leaf + 1, small), network, live)
    assert back.body.gate.value.tolist() == [[0.5, 0.5, 0.5], [1.5, 0.5, 1.5]]


def test_units_stand_on_their_dimensions_at_every_position():
    h = jnp.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(stood(ROWS, 0, h), [h[2], h[0], jnp.zeros(4)])
    new = 100 + jnp.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(placed(ROWS, 0, h, new), [new[1], h[1], new[0]])
    np.testing.assert_array_equal(placed(ROWS, 0, h[:, :1], new[:, :1]), [new[1, :1], h[1, :1], new[0, :1]])
    assert placed_on(Axis(at=ROWS.at[0]), jnp.array([5.0, 6.0, 7.0])).tolist() == [7.0, 5.0, 0.0]


def test_the_gradient_passes_what_is_moved_and_nothing_else():
    h, factor = jnp.array([5.0, 6.0, 7.0]), jnp.array([1.0, 10.0, 100.0])
    assert jax.grad(lambda h: (factor * stood(ROWS, 0, h)).sum())(h).tolist() == [10.0, 0.0, 1.0]
    into, of_new = jax.grad(lambda h, new: (factor * placed(ROWS, 0, h, new)).sum(), (0, 1))(h, h)
    assert into.tolist() == [0.0, 10.0, 0.0] and of_new.tolist() == [100.0, 1.0, 0.0]


@pytest.mark.parametrize("kind", [Tunnel, Highway, Plain, Residual, Budding])
def test_a_population_of_bodies_has_the_sizes_of_each(kind):
    size = {"capacity": 7} if kind is Budding else {"depth": 7}
    many = jax.eval_shape(jax.vmap(lambda key: kind(5, key=key, **size)), jax.random.split(KEY, 3))
    assert many.width == 5 and {name: getattr(many, name) for name in size} == size
    linear = jax.eval_shape(jax.vmap(lambda key: Linear(2, 4, key=key)), jax.random.split(KEY, 3))
    assert linear.input_shape == (2,) and linear.n_out == 4


# ---- trees


def inner_depths(leaves: int, depth: int = 0) -> list[list[int]]:
    """The depths of the inner nodes, from left to right, of every full binary tree."""
    if leaves == 1:
        return [[]]
    parts = [(inner_depths(n, depth + 1), inner_depths(leaves - n, depth + 1)) for n in range(1, leaves)]
    return [[*left, depth, *right] for lefts, rights in parts for left, right in product(lefts, rights)]


TREES = [[-1, *inner, *[-1] * (4 - leaves)] for leaves in range(1, 5) for inner in inner_depths(leaves)]


def test_these_numbers_are_trees_and_no_others():
    assert len(TREES) == 1 + 1 + 2 + 5
    assert [list(depth) for depth in product(range(-2, 4), repeat=4) if is_tree(depth)] == sorted(TREES)
    assert is_tree([-1]) and not is_tree([]) and not is_tree([0])


def openness(depth: list[int], gamma: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How open nodes and layers are, by recursion from the root."""
    nodes, layers = np.zeros(7), np.zeros(4)

    def visit(first: int, last: int, above: float, right_of: float) -> None:
        if first == last:
            nodes[2 * first], layers[first] = above, right_of
            return
        root = min(range(first + 1, last + 1), key=depth.__getitem__)
        nodes[2 * root - 1] = above
        own = 1 - gamma[2 * root - 1]
        visit(first, root - 1, above * own, right_of)
        visit(root, last, above * own, right_of * own)

    visit(0, sum(own >= 0 for own in depth[1:]), 1.0, 1.0)
    return nodes, layers


def test_a_node_is_as_open_as_its_ancestors_and_a_layer_as_the_nodes_it_is_right_of():
    gamma = np.random.default_rng(0).uniform(0.1, 0.9, (len(TREES), 7)).astype(np.float32)
    compute = jax.jit(jax.vmap(lambda g, d: (node_openness(g, d), leaf_openness(g, d))))
    nodes, layers = compute(gamma, jnp.asarray(TREES, jnp.int32))
    expected = [openness(depth, own) for depth, own in zip(TREES, gamma, strict=True)]
    np.testing.assert_allclose(nodes, np.stack([each[0] for each in expected]), rtol=1e-5)
    np.testing.assert_allclose(layers, np.stack([each[1] for each in expected]), rtol=1e-5)


@pytest.mark.parametrize("probe", ["bud", "zero"])
def test_a_leaf_that_is_yet_to_open_is_compacted_with_its_bud(probe):
    body = Budding(3, capacity=4, probe=probe, key=KEY)
    layers = jax.random.normal(KEY, (4, 3, 3))
    gamma = jnp.array([0.7, 0.4, 1.0, 0.6, 0.2, 1.0, 1.0])
    body = eqx.tree_at(
        lambda b: (b.weight, b.bud.weight, b.leafness.value, b.depth),
        body,
        (layers, layers[::-1], gamma, jnp.array([-1, 1, 0, -1])),
    )
    x = jnp.array([1.0, -2.0, 3.0])
    expected = jax.jit(lambda x: body(x))(x)
    assert expected.any()
    np.testing.assert_allclose(compact_body(body)(x), expected, rtol=1e-5)


def test_a_tree_fits_a_capacity_of_its_own_leaves():
    body = eqx.tree_at(lambda b: b.depth, Budding(3, capacity=4, key=KEY), jnp.array([-1, 0, -1, -1]))
    assert with_capacity(body, 2, [])[0].capacity == 2
    larger = with_capacity(body, 6, [])[0]
    assert larger.leafness.value.tolist() == [1.0] * 11 and larger.depth.tolist() == [-1, 0, -1, -1, -1, -1]
    with pytest.raises(ValueError, match=r"capacity=1 .* 2 "):
        with_capacity(body, 1, [])


@pytest.mark.parametrize("depth", TREES)
def test_a_tree_is_mixed_by_a_number_for_each_pair_of_leaves(depth):
    """Each leaf reads itself and all before it; a single one has no choice."""
    body = eqx.tree_at(lambda b: b.depth, Budding(3, capacity=4, key=KEY), jnp.asarray(depth))
    leaves = 1 + sum(own >= 0 for own in depth[1:])
    assert float(body.axes().n_shares()) == (sum(range(1, leaves + 1)) if leaves > 1 else 0)


# ---- ends of networks


def test_weights_start_within_the_bound_of_their_last_two_axes():
    assert 0.95 < np.abs(glorot(KEY, (50, 4, 2))).max() <= 1, "√(6 / (4 + 2))"
    assert all(0.95 < np.abs(part).max() <= 1 for part in he_layer(KEY, (50, 4, 6))), "√(6 / 6)"
    assert 0.475 < np.abs(random_kernel(KEY, (50, 4), fan_in=24, gain=2)).max() <= 0.5, "√(3 · 2 / 24)"


@pytest.mark.parametrize("shape", [(3, 2), (40, 30), (130, 130)])
def test_weights_are_those_of_a_draw_of_their_own_shape(shape):
    """They are the beginning of a longer draw, alone and in a population, so that shapes share a program."""
    limit, keys = (6 / sum(shape)) ** 0.5, jax.random.split(KEY)
    expected = [np.asarray(jax.random.uniform(key, shape, jnp.float32, -limit, limit)) for key in keys]
    np.testing.assert_array_equal(glorot(keys[1], shape), expected[1])
    np.testing.assert_array_equal(jax.vmap(lambda key: glorot(key, shape))(keys), expected)


def test_outputs_are_divided():
    network = Network.create("tunnel", 2, 3, width=4, depth=1, key=KEY)
    network = eqx.tree_at(lambda n: n.head.bias, network, jnp.array([1.0, 2.0, 3.0]))
    small = divide_outputs(network, 4.0)
    for own, all_of_it in zip(jax.tree.leaves(small.head), jax.tree.leaves(network.head), strict=True):
        np.testing.assert_allclose(4 * own, all_of_it)
        assert own.dtype == all_of_it.dtype
    np.testing.assert_array_equal(small.embed.weight, network.embed.weight)


def test_live_parameters_are_those_of_open_units_of_the_embedding_and_of_the_head():
    network = Network.create("tunnel", 2, 3, width=4, depth=2, key=KEY)
    assert network.live_parameters() == 2 * 4 + 4 * 3 + 3
    gates = jnp.array([[0.5, 0.0, 0.25, 0.0], [0.0, 0.0, 0.0, 1.0]])
    network = eqx.tree_at(lambda n: n.body.gate.value, network, gates)
    assert network.live_parameters() == 2 * 4 + 4 * 3 + 3 + 3 * (4 + 1 + 1), "a weight row, a bias, a gate"


def test_a_closed_trunk_keeps_one_dimension():
    gates = {"trunk": np.zeros(4)}
    small, places = on_open_places(body := Tunnel(4, 2, learn_width=True, key=KEY), body.axes(), gates)
    assert places["trunk"].tolist() == [0] and small.width == 1


def test_stages_alone_are_compacted_between_their_own_trunks():
    keys = jax.random.split(KEY, 3)
    options = {"learn_width": True}
    parts = [Tunnel(4, 1, key=keys[0], **options), Linear(4, 3, key=keys[1]), Tunnel(3, 1, key=keys[2], **options)]
    for place, gates in ((0, [1.0, 0.0, 0.5, 0.0]), (2, [0.0, 0.25, 1.0])):
        replaced = jnp.asarray(gates), jnp.asarray([gates]) * 0.5
        parts[place] = eqx.tree_at(lambda b: (b.trunk.value, b.gate.value), parts[place], replaced)
    body, x = Stages(parts), jnp.array([[1.0, -2.0, 3.0, 4.0], [0.5, 0.0, -1.0, 2.0]])
    np.testing.assert_allclose(jax.vmap(compact_body(body))(x), jax.vmap(body)(x), rtol=1e-5)


def test_a_map_of_the_trunk_to_itself_has_the_gates_in_its_columns():
    class Square(Body):
        weight: jax.Array
        trunk: Confined
        width = property(lambda self: self.weight.shape[-1])

        def priced(self, x):
            return read(self.trunk, x + jnp.tanh(self.weight @ read(self.trunk, x))), with_price(self.trunk, jnp.zeros(()))

        def axes(self, inputs=None, weight=None):
            arrays = declare(self, weight=ArrayAxes((TRUNK, TRUNK), MAP), trunk=ArrayAxes((TRUNK,)))
            return Axes(arrays, {TRUNK: gate_axis(self.trunk)}, size=TRUNK)

        def compact_layers(self):
            return [ResidualLayer(np.asarray(self.weight, float), np.zeros(self.width), "tanh")]

    body, x = (
        Square(jax.random.normal(KEY, (4, 4)), Confined(jnp.array([1.0, 0.0, 0.5, 0.25]))),
        jnp.array([1.0, -2.0, 3.0, 0.5]),
    )
    np.testing.assert_allclose(compact_body(body)(x), body(x), rtol=1e-5)


def test_a_body_without_gates_has_the_size_of_one():
    class Sine(Body):
        width: int = eqx.field(static=True)

        def priced(self, x):
            return jnp.sin(x), jnp.zeros(())

    assert float(soft_size(Sine(3), jnp.ones((1, 3)))) == int(hard_size(Sine(3))) == 1


# ---- what is said of a structure


def test_a_network_in_which_hardly_anything_opened_and_one_without_room():
    def shown(values: list[float]) -> Gates:
        return Gates(np.array([values]), "parameters")

    assert shown([0.05, 0.0]).unopened() is None and shown([0.0, 0.0]).unopened() == "no unit opened"
    clause = shown([0.04, 0.01, 0.0]).unopened()
    assert clause is not None and "2" in clause and "0.04" in clause
    asked = {"most": 4, "waited": False}
    assert shown([0.6] * 95 + [0.5] * 5).crowded(**asked) is None
    sentence = shown([0.6] * 96 + [0.5] * 4).crowded(**asked)
    assert sentence is not None and "96%" in sentence
    fixed = Gates(np.ones((1, 3)), "fixed")
    assert fixed.crowded(**asked) is None and Gates(np.zeros((1, 3)), "inputs").unopened() is None


def test_a_tree_is_crowded_when_an_opening_waited_and_all_places_are_filled():
    tree = Nodes(np.array([-1, 1, 0, -1]), np.ones(7))
    assert tree.n_leaves == 3 and tree.unopened() is None
    assert tree.crowded(most=3, waited=True) is not None
    assert tree.crowded(most=4, waited=True) is None and tree.crowded(most=3, waited=False) is None
    leaf = np.array([-1, -1])
    assert Nodes(leaf, np.ones(3)).unopened() is not None and Nodes(leaf, np.ones(3), 1.0).unopened() is not None
    assert Nodes(np.array([-1, 0]), np.ones(3), 0.5).unopened() is None


# ---- compact networks


@pytest.mark.parametrize(("n", "is_spread"), [(1, False), (2, True), (4, True)])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_a_layer_is_spread_where_half_of_it_is_open_and_computes_the_same(n, is_spread, activation):
    rng = np.random.default_rng(0)
    layer = Gated(rng.normal(size=(n, 4)), rng.normal(size=n), rng.uniform(0.2, 0.8, n), tuple(range(n)), activation)
    assert (spread(layer) is not layer) == is_spread
    x, sigma = rng.normal(size=(BLOCK + 3, 4)), np.tanh if activation == "tanh" else lambda z: np.maximum(z, 0)
    expected = x.copy()
    expected[:, :n] = layer.gate * sigma(x @ layer.weight.T + layer.bias) + (1 - layer.gate) * x[:, :n]
    np.testing.assert_allclose(Predictor(CompactNetwork((layer,))).outputs(x), expected, rtol=1e-12)


def test_rows_that_hang_on_the_last_digits_are_computed_in_double_precision():
    predictor, margins = Predictor(CompactNetwork((Affine(np.array([[1 / 3]]), None),))), []

    def unsure(outputs: np.ndarray, margin: float) -> np.ndarray:
        margins.append(margin)
        return np.arange(len(outputs)) == 1

    outputs = predictor.decisive_outputs(np.array([[1.0], [1.0], [-30.0]]), unsure)[:, 0]
    assert outputs[1] == 1 / 3 != outputs[0] == np.float32(1 / 3) and margins == pytest.approx([0.01])
    with np.errstate(over="ignore"):
        assert predictor.decisive_outputs(np.array([[1e300]]), unsure).tolist() == [[1e300 / 3]] and len(margins) == 1


def test_a_gate_is_closed_only_below_the_limit_and_changed_decisions_are_counted():
    network = Network.create("tunnel", 2, 1, width=2, depth=1, key=KEY)
    identity, zeros = jnp.eye(2), jnp.zeros((1, 2))
    network = eqx.tree_at(
        lambda n: (n.embed.weight, n.body.weight, n.body.bias, n.body.gate.value, n.head.weight),
        network,
        (identity, jnp.zeros((1, 2, 2)), zeros, jnp.array([[0.25, 0.5]]), jnp.array([[1.0, 1.0]])),
    )
    x = jnp.array([[2.0, -3.25], [2.0, 1.0], [-1.0, -1.0], [4.0, 0.0]])
    result = approximate(network, x, gates_below=0.5)
    assert result.closed == 1 and result.moved == pytest.approx(1.0) and result.largest == pytest.approx(3.0)
    assert result.changed == 0.25, "0.75 · 2 − 0.5 · 3.25 is below 0, and 2 − 1.625 is not"


def test_what_a_convolution_multiplies_and_what_a_report_compares():
    kernel = jnp.ones((5, 3, 2))

    def convolution(x: jax.Array) -> jax.Array:
        return jax.lax.conv_general_dilated(x[None], kernel, (1,), "VALID")

    assert multiply_adds(convolution, jnp.ones((3, 8))) == 7 * 5 * 3 * 2
    began = time.perf_counter()
    seconds = in_turns({"a": lambda: jnp.ones(1)}, 4)
    assert {name: len(each) for name, each in seconds.items()} == {"a": 4}
    assert 0 < sum(seconds["a"]) <= time.perf_counter() - began
    table = Report(Cost(2000, 1500, 3e-4), Cost(20, 10, 1e-4), Cost(30, 25, 2e-4), (4, 2), 1000, 1e-7, "cpu")
    assert table.speedup == pytest.approx(3)
    cells = [line.split() for line in str(table).splitlines()[2:]]
    assert cells[0] == ["full", "2,000", "1,500", "300", "µs", "3", "×"] and cells[1][-4:] == ["100", "µs", "1", "×"]
