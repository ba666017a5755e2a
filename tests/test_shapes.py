"""Shapes are asked of a network: nobody outside of nn reads its embedding or head, and its properties are right."""

import ast
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import meristem
from meristem.nn import Network
from meristem.nn.network import BODIES, mask_ends, trim_ends
from own_body import own_network

SOURCE = Path(meristem.__file__).parent
KEY = jax.random.key(0)


def created(body: str, **options) -> Network:
    size = {"capacity": 4} if body == "budding" else {"depth": 3}
    return Network.create(body, 5, 2, width=7, key=options.pop("key", KEY), **size, **options)


def shapes_of(network: Network) -> tuple:
    return network.input_shape, network.n_out, network.width, network.members, network.dtype


# ---- the rule


def readers_of_ends(text: str) -> list[int]:
    """The lines that read `.embed` or `.head` of anything."""
    nodes = ast.walk(ast.parse(text))
    return sorted(node.lineno for node in nodes if isinstance(node, ast.Attribute) and node.attr in ("embed", "head"))


def test_nobody_outside_of_nn_reads_the_ends():
    modules = [path.relative_to(SOURCE) for path in SOURCE.rglob("*.py")]
    others = [path for path in modules if path.parts[0] != "nn"]
    assert len(others) > 150
    found = {path.as_posix(): lines for path in others if (lines := readers_of_ends((SOURCE / path).read_text()))}
    assert found == {}, "ask the network for input_shape, n_out, width, members or dtype, or write a function in nn/network.py"


def test_the_rule_sees_whoever_breaks_it():
    assert readers_of_ends("x = 1\ny = network.embed.weight.shape\neqx.tree_at(lambda n: n.head, network, None)") == [2, 3]


# ---- the properties


@pytest.mark.parametrize("body", BODIES)
def test_a_network_says_its_shapes(body):
    network = created(body)
    expected = ((5,), 2, 7, (), np.float32)
    assert shapes_of(network) == expected
    assert network(jnp.ones(network.input_shape, network.dtype)).shape == (network.n_out,)
    assert shapes_of(jax.device_get(network)) == expected
    assert shapes_of(jax.eval_shape(lambda: created(body))) == expected
    assert shapes_of(eqx.filter(network, eqx.is_inexact_array)) == expected
    assert not network.has_embed_bias and network.has_head_bias


@pytest.mark.parametrize("body", BODIES)
def test_a_population_says_its_shapes_and_its_members(body):
    networks = eqx.filter_vmap(lambda key: created(body, key=key))(jax.random.split(KEY, 3))
    expected = ((5,), 2, 7, (3,), np.float32)
    assert shapes_of(networks) == shapes_of(jax.device_get(networks)) == expected
    assert shapes_of(jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), networks)) == expected
    assert shapes_of(jax.tree.map(lambda leaf: leaf[None], networks)) == (*expected[:3], (1, 3), expected[4])
    assert shapes_of(jax.tree.map(lambda leaf: leaf[0], networks)) == (*expected[:3], (), expected[4])


@pytest.mark.parametrize("body", BODIES)
def test_what_an_optimizer_keeps_says_the_same(body):
    network = created(body)
    moments = optax.adam(1e-3).init(eqx.filter(network, eqx.is_inexact_array))[0].mu
    assert shapes_of(moments) == shapes_of(network)


def test_shapes_hold_where_width_is_learned_inputs_may_close_and_numbers_are_long():
    with jax.enable_x64(True):
        network = Network.create("tunnel", 5, 2, width="auto", max_width=8, depth=3, feature_gates=True, key=jax.random.key(0))
        assert shapes_of(network) == ((5,), 2, 8, (), np.float64)


def test_a_body_of_ones_own_has_no_part_in_it():
    assert shapes_of(own_network()) == ((2,), 1, 4, (), np.float32)


# ---- the ends


@pytest.mark.parametrize("feature_gates", [False, True])
def test_a_masked_network_computes_what_it_does_when_it_is_trimmed(feature_gates):
    masked = mask_ends(created("tunnel", feature_gates=feature_gates), 3, 1, -9.0)
    small = trim_ends(masked, 3, 1)
    assert shapes_of(small) == ((3,), 1, 7, (), np.float32) and shapes_of(masked) == ((5,), 2, 7, (), np.float32)
    x = jax.random.normal(KEY, (5,))
    np.testing.assert_allclose(masked(x), [small(x[:3])[0], -9.0], rtol=1e-5)
    assert (small.features is not None) == feature_gates
