"""Counts that are derived from axes equal those counted by hand, on random structures of all bodies; soft counts, slopes."""

import functools
import math
from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from meristem.complexity import hard_size, layer_sizes, soft_multiply_adds, soft_parameters
from meristem.gate import Confined, fully_open, is_confined
from meristem.nn import ConvBranch, ConvInverted, ConvTunnel, Downsample, Linear, Network, PooledLinear, Stages, Tunnel
from meristem.nn.axes import n_places
from meristem.nn.axis_counts import half_norm
from meristem.nn.images import IMAGE_BODIES
from meristem.nn.tree import is_tree
from soak import many
from test_own_convolution import TIME, TimeTunnel, create as create_convolution
from test_own_feed_forward import FeedForward, create as create_feed_forward

N_IN, N_OUT, WIDTH, DEPTH, CAPACITY = 3, 2, 4, 3, 4
KEY = jax.random.key(0)
TREES = [[-1, -1, -1, -1], [-1, 0, -1, -1], [-1, 1, 0, -1], [-1, 0, 1, -1], [-1, 1, 0, 1], [-1, 2, 1, 0], [-1, 0, 1, 2]]


def create(body: str) -> Network:
    if body == "stages":
        keys = jax.random.split(KEY, 5)
        first, second = Tunnel(3, 2, learn_width=True, key=keys[0]), Tunnel(5, 1, learn_width=True, key=keys[1])
        stages = Stages([first, Linear(3, 5, key=keys[2]), second])
        return Network(Linear(N_IN, 3, use_bias=False, key=keys[3]), stages, Linear(5, N_OUT, key=keys[4]))
    if body in OWN:
        return OWN[body](KEY)
    if body in IMAGE_BODIES:
        return Network.create(body, input_shape=(4, 5, 2), n_out=N_OUT, max_width=(3, 5), depth=2, normalize=True, key=KEY)
    size = {"capacity": CAPACITY} if body == "budding" else {"depth": DEPTH}
    return Network.create(body, N_IN, N_OUT, width="auto", max_width=WIDTH, feature_gates=True, key=KEY, **size)


OWN = {"convolution": create_convolution, "feed-forward": create_feed_forward}
BODIES = ["tunnel", "budding", "highway", "plain", "residual", "stages", *IMAGE_BODIES, *OWN]
network_of = functools.cache(create)


def with_gates(network: Network, seed: int, values: list[float]) -> Network:
    """All gates drawn from these values, one place of each trunk and one input open; a tree of any shape."""
    rng = np.random.default_rng(seed)
    if hasattr(network.body, "leafness"):
        depth = np.array(TREES[rng.integers(len(TREES))])
        assert is_tree(depth.tolist())
        leaves = 1 + int((depth[1:] >= 0).sum())
        gamma = np.ones(2 * CAPACITY - 1, np.float32)
        gamma[1 : 2 * leaves - 1 : 2] = 1 - rng.choice([v for v in values if v > 0], leaves - 1)
        tree = jnp.asarray(depth), jnp.asarray(gamma)
        network = eqx.tree_at(lambda n: (n.body.depth, n.body.leafness.value), network, tree)

    def drawn(node):
        if not is_confined(node) or node.closed:
            return node
        gates = rng.choice(values, node.value.shape).astype(np.float32)
        gates[..., rng.integers(gates.shape[-1])] = max(values)
        return Confined(jnp.asarray(gates))

    return jax.tree.map(drawn, network, is_leaf=is_confined)


def counted(network: Network) -> tuple[int, int, int]:
    """Parameters, multiply-adds and units of a network whose gates are 0 or 1, counted by loops over what is there."""
    body, inputs = network.body, int((np.asarray(network.features.value) > 0).sum()) if network.features else None
    parts = body.parts if isinstance(body, Stages) else [body]
    bodies = [part for part in parts if not isinstance(part, Linear)]
    trunks = [int((np.asarray(part.trunk.value) > 0).sum()) for part in bodies]
    at = TIME if isinstance(bodies[0], TimeTunnel) else 1
    n_in = network.input_shape[0] if inputs is None else inputs
    products = at * n_in * trunks[0]
    parameters = n_in * trunks[0]
    units = 0
    for before, after in pairwise(trunks):  # the maps between stages
        products, parameters = products + at * before * after, parameters + before * after + after
    for part, trunk in zip(bodies, trunks, strict=True):
        is_there = np.asarray(part.trunk.value) > 0
        if hasattr(part, "leafness"):
            leaves = 1 + int((np.asarray(part.depth)[1:] >= 0).sum())
            parameters, products, units = parameters + leaves * (trunk**2 + trunk), products + leaves * trunk**2, 2 * leaves - 1
            continue
        for layer in range(part.depth):
            if isinstance(part, FeedForward):
                n = int((np.asarray(part.gate.value)[layer] > 0).sum())
                parameters, products, units = parameters + n * (2 * trunk + 2), products + 2 * n * trunk, units + n
            elif hasattr(part, "gate"):
                n, taps = int(((np.asarray(part.gate.value)[layer] > 0) & is_there).sum()), 3 if at > 1 else 1
                parameters, products = parameters + n * (trunk * taps + 2), products + at * n * trunk * taps
                units += n
            else:
                maps = 2 if hasattr(part, "gate_weight") else 1
                parameters, products, units = parameters + maps * trunk * (trunk + 1), products + maps * trunk**2, units + trunk
    return parameters + network.n_out * (trunks[-1] + 1), products + network.n_out * trunks[-1], units


def counted_on_images(network: Network) -> tuple[int, int, int]:
    """The same of stages on images, whose kernels are of 3 × 3."""
    (*shape, channels), n_out = network.input_shape, network.n_out
    parameters, products, units, before = 0, 0, 0, channels
    for place, stage in enumerate(part for part in network.body.parts if not isinstance(part, Downsample)):
        is_there, positions = np.asarray(stage.trunk.value) > 0, math.prod(stage.positions)
        trunk = int(is_there.sum())
        into = before * trunk * (1 if place else 9)  # the stem, or the map between two stages
        parameters, products, before = parameters + into, products + positions * into, trunk
        # Of a unit: weights, and numbers besides.
        each = {ConvTunnel: (9 * trunk, 2), ConvBranch: (18 * trunk, 1), ConvInverted: (2 * trunk + 9, 2)}
        weights, others = each[type(stage)]
        for gates in np.asarray(stage.gate.value) > 0:
            n = int((gates & is_there).sum() if isinstance(stage, ConvTunnel) else gates.sum())
            parameters, products, units = parameters + n * (weights + others), products + positions * n * weights, units + n
    assert math.prod(shape) == math.prod(network.body.parts[0].positions)
    return parameters + n_out * (before + 1), products + n_out * before, units


@eqx.filter_jit
def soft_counts(network: Network) -> list[jax.Array]:
    return [soft_parameters(network), soft_multiply_adds(network)]


@eqx.filter_jit
def units_and_sizes(network: Network) -> tuple[jax.Array, jax.Array]:
    return hard_size(network), layer_sizes(network, jnp.ones((2, *network.input_shape)))


@pytest.mark.parametrize("body", BODIES)
@settings(max_examples=many(6), deadline=None)
@given(seed=st.integers(0, 10**6))
def test_derived_counts_are_those_counted_by_hand(body, seed):
    """Of all bodies; soft counts are exact where gates are 0 or 1."""
    network = with_gates(network_of(body), seed, [0.0, 1.0])
    parameters, products, units = (counted_on_images if body in IMAGE_BODIES else counted)(network)
    assert list(map(float, soft_counts(network))) == [parameters, products]
    found, sizes = units_and_sizes(network)
    assert int(found) == units
    if body != "highway":  # whose units are as open as their inputs say
        assert float(sizes.sum()) == (units if body != "budding" else pytest.approx(units))


@pytest.mark.parametrize("body", BODIES)
@settings(max_examples=many(6), deadline=None)
@given(seed=st.integers(0, 10**6))
def test_soft_counts_lie_between_nothing_and_what_is_open(body, seed):
    network = with_gates(network_of(body), seed, [0.0, 0.25, 0.7, 1.0])
    for count, most in zip(soft_counts(network), soft_counts(fully_open(network)), strict=True):
        assert 0 < float(count) <= float(most) + 1e-3


@pytest.mark.parametrize("body", BODIES)
def test_slopes_of_soft_counts_and_of_l2_are_right(body):
    """In double precision, against differences; counts are products of gates, so that a small step is exact enough."""
    with jax.enable_x64(True):
        network = jax.tree.map(
            lambda leaf: leaf.astype(jnp.float64) if eqx.is_inexact_array(leaf) else leaf,
            with_gates(network_of(body), 3, [0.25, 0.5, 0.75]),
        )
        arrays, rest = eqx.partition(network, eqx.is_inexact_array)
        rng = np.random.default_rng(0)
        way = jax.tree.map(lambda leaf: jnp.asarray(rng.normal(size=leaf.shape)), arrays)

        def counts(arrays):
            network = eqx.combine(arrays, rest)
            return jnp.stack([soft_parameters(network), soft_multiply_adds(network), network.half_norm()])

        @jax.jit
        def slopes_and_differences(arrays, way):
            ends = [counts(jax.tree.map(lambda a, w, step=step: a + step * w, arrays, way)) for step in (1e-5, -1e-5)]
            return jax.jvp(counts, (arrays,), (way,))[1], (ends[0] - ends[1]) / 2e-5

        slopes, differences = slopes_and_differences(arrays, way)
        np.testing.assert_allclose(slopes, differences, rtol=1e-6, atol=1e-6)


def test_half_norm_is_over_what_is_open():
    network = with_gates(network_of("stages"), 1, [0.0, 1.0])
    small = network.compact()  # no nonlinearity is joined in it where units are open in between
    total = sum(float((np.asarray(w) ** 2).sum()) for w in masked_maps(network))
    np.testing.assert_allclose(float(network.half_norm()), total / 2, rtol=1e-5)
    assert small.n_parameters > 0 and float(half_norm(network.body, network.body.axes())) < float(network.half_norm())


def masked_maps(network: Network) -> list[np.ndarray]:
    """The weights of a network of two stages of tunnels, 0 where they are at closed places."""
    first, between, second = network.body.parts
    one, two = (np.asarray(part.trunk.value) > 0 for part in (first, second))
    maps = [np.asarray(network.embed.weight) * one[:, None], np.asarray(between.weight) * two[:, None] * one[None, :]]
    for part, is_there in ((first, one), (second, two)):
        is_open = (np.asarray(part.gate.value) > 0) & is_there
        maps.append(np.asarray(part.weight) * is_open[:, :, None] * is_there[None, None, :])
    return [*maps, np.asarray(network.head.weight) * two[None, :]]


def test_a_chain_shares_what_leaves_one_part_and_enters_the_next():
    network = network_of("stages")
    declared = network.axes()
    assert len(declared.trunks) == 2 and [n_places(network, declared, name) for name in declared.trunks] == [3, 5]
    assert len(declared.sizes) == 2 and layer_sizes(network, jnp.ones((1, N_IN))).shape == (3,)
    depths = {name: axis.depth().tolist() for name, axis in declared.axes.items() if axis.depth is not None}
    assert sorted(depths.values()) == [[0, 1], [2]], "depth-wise rates go on where the stage before ended"


def test_pooling_reads_all_positions():
    head = PooledLinear(2, 3, positions=(4,), key=KEY)
    x = jax.random.normal(KEY, (2, 4))
    np.testing.assert_allclose(head(x), head.weight @ x.mean(1) + head.bias, rtol=1e-6)
