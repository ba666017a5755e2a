"""The contract of every body: what all of them promise, checked over all of them."""

import dataclasses
import inspect

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meristem import Knobs, Recipe, hard_size, layer_sizes, soft_size, trainable
from meristem.nn import Body, Budding, Highway, Network, Plain, Residual, Stages, Tunnel, structure
from meristem.nn.axes import depths
from meristem.nn.axis_counts import half_norm
from meristem.nn.network import BODIES
from meristem.train.epoch import cost
from meristem.train.objectives import objective

OPTIONS = {"budding": {"capacity": 3}}
KEY = jax.random.key(0)

# Compiled as a whole: operation by operation takes a program for each.
gradient_of_cost = eqx.filter_jit(eqx.filter_grad(cost))


@eqx.filter_jit
def output(model, x):
    return model(x)


@eqx.filter_jit
def priced(body, x):
    return body.priced(x)


def network(body: str, **more: object) -> Network:
    return Network.create(body, 4, 2, width=5, key=KEY, **(OPTIONS.get(body, {"depth": 3}) | more))


@pytest.mark.parametrize("body", BODIES)
def test_one_sample_in_one_out_and_batches_by_vmap(body):
    net = network(body)
    x = np.asarray(jax.random.normal(jax.random.key(1), (7, 4)))
    alone = np.stack([output(net, sample) for sample in x])
    assert alone.shape == (7, 2)
    np.testing.assert_allclose(jax.jit(jax.vmap(net))(x), alone, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("body", BODIES)
def test_gradients_reach_every_trainable_parameter(body):
    net = network(body, activation="tanh")
    if isinstance(net.body, Tunnel):  # a closed unit's weights see no error, by design
        net = eqx.tree_at(lambda n: n.body.gate.value, net, jnp.full_like(net.body.gate.value, 0.5))
    if isinstance(net.body, Budding):  # all three leaves live
        grown = Budding(5, capacity=3, activation="tanh", key=jax.random.key(9))
        weight = jax.random.normal(jax.random.key(8), grown.weight.shape)
        grown = eqx.tree_at(
            lambda b: (b.depth, b.weight, b.leafness.value),
            grown,
            (jnp.array([-1, 1, 0], jnp.int32), weight, jnp.array([1, 0.3, 1, 0.6, 1])),
        )
        net = eqx.tree_at(lambda n: n.body, net, grown)
    x, y = jax.random.normal(jax.random.key(1), (6, 4)), jnp.array([0, 1, 0, 1, 1, 0])
    grads = gradient_of_cost(net, x, y, Knobs(1e-3, penalty=1e-3), Recipe(objective="multiclass"))
    for path, leaf in jax.tree.leaves_with_path(eqx.filter(grads, trainable(net))):
        assert (np.asarray(leaf) != 0).all(), f"no gradient in {jax.tree_util.keystr(path)}"
    frozen = jax.tree.leaves(eqx.filter(grads, trainable(net), inverse=True))
    assert all((np.asarray(leaf) == 0).all() for leaf in frozen)


@pytest.mark.parametrize("body", BODIES)
def test_depths_are_prefixes_of_the_parameters_shapes(body):
    part = network(body).body
    for value, depth in zip(jax.tree.leaves(part), jax.tree.leaves(depths(part, part.axes())), strict=True):
        assert value.shape[: depth.ndim] == depth.shape


def test_at_rest_a_tunnel_is_the_identity_and_costs_nothing():
    tunnel = Tunnel(5, 3, key=KEY)
    x = jax.random.normal(KEY, (5,))
    y, price = priced(tunnel, x)
    assert (np.asarray(y) == x).all() and price == 0
    assert soft_size(tunnel, x[None]) == 0 and hard_size(tunnel) == 0


def test_at_rest_a_budding_body_with_an_identity_root_is_the_identity_and_costs_nothing():
    body = Budding(5, root="identity", key=KEY)
    x = jax.random.normal(KEY, (5,))
    y, price = priced(body, x)
    assert (y == x).all() and price == 0
    assert soft_size(body, x[None]) == 0 and hard_size(body) == 0 and half_norm(body, body.axes()) == 0
    gradient = eqx.filter_jit(eqx.filter_grad(lambda b: b(x).sum()))(body)
    assert gradient.identity.value != 0 and (gradient.weight == 0).all()


@pytest.mark.parametrize("body", BODIES)
def test_a_body_says_how_to_make_it_again(body):
    made = network(body).body
    again = type(made)(**made.options(), key=KEY)
    assert jax.tree.structure(again) == jax.tree.structure(made)
    assert jax.tree.map(jnp.shape, again) == jax.tree.map(jnp.shape, made)


@pytest.mark.parametrize("body", BODIES)
def test_what_is_seen_of_a_body_has_its_size(body):
    made = network(body).body
    seen = structure(made)
    if not made.axes().capacity:
        x = jax.random.normal(KEY, (7, 5))
        assert seen.values.shape == (3, 5) and ((seen.values >= 0) & (seen.values <= 1)).all()
        np.testing.assert_allclose(np.asarray(structure(made, x).values).sum(1), layer_sizes(made, x), rtol=1e-5)
    else:
        assert 2 * seen.n_leaves - 1 == int(hard_size(made))


def test_the_limits_of_equation_1():
    """G = 1 everywhere is the plain stack; a residual layer adds the input to it."""
    tunnel = Tunnel(5, 1, key=KEY)
    full = eqx.tree_at(lambda t: t.gate.value, tunnel, jnp.ones((1, 5)))
    plain, residual = Plain(5, 1, key=KEY), Residual(5, 1, key=KEY)
    x = jax.random.normal(jax.random.key(2), (5,))
    np.testing.assert_array_equal(full(x), plain(x))
    np.testing.assert_allclose(residual(x), plain(x) + x, rtol=1e-6)
    assert soft_size(plain, x[None]) == 5 and layer_sizes(full, x[None]).tolist() == [5.0]


def test_sizes_of_a_network_are_those_of_its_body():
    soft = eqx.filter_jit(soft_size)
    for body in BODIES:
        net = network(body)
        x = jax.random.normal(KEY, (7, 4))
        np.testing.assert_allclose(soft(net, x), soft(net.body, jax.vmap(net.embed)(x)), rtol=1e-6)
        assert hard_size(net) == hard_size(net.body)


def test_a_highway_starts_near_the_identity():
    highway = Highway(5, 2, gate_bias=-30.0, key=KEY)
    x = jax.random.normal(KEY, (5,))
    np.testing.assert_allclose(highway(x), x, atol=1e-6)
    gates = Highway(5, 2, key=KEY).gates(x)
    assert ((gates > 0) & (gates < 1)).all()


def test_l2_spares_closed_units_and_free_places():
    tunnel = Tunnel(5, 2, key=KEY)
    assert half_norm(tunnel, tunnel.axes()) == 0
    opened = eqx.tree_at(lambda t: t.gate.value, tunnel, tunnel.gate.value.at[0, 3].set(0.1))
    np.testing.assert_allclose(half_norm(opened, opened.axes()), 0.5 * (opened.weight[0, 3] ** 2).sum(), rtol=1e-6)
    budding = Budding(5, capacity=3, key=KEY)
    np.testing.assert_allclose(half_norm(budding, budding.axes()), 0.5 * (budding.weight[0] ** 2).sum(), rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: Tunnel(0, 2, key=KEY), "width=0 must be an integer of at least 1"),
        (lambda: Tunnel(3, True, key=KEY), "depth=True must be an integer"),
        (lambda: Budding(3, capacity=0, key=KEY), "capacity=0"),
        (lambda: Tunnel(3, 2, activation="rleu", key=KEY), "Did you mean 'relu'"),
        (lambda: Budding(3, probe="buds", key=KEY), "Did you mean 'bud'"),
        (lambda: Budding(3, root="identiy", key=KEY), "Did you mean 'identity'"),
        (lambda: Network.create("tunel", 2, 1, key=KEY), "Did you mean 'tunnel'"),
        (lambda: objective("binry"), "Did you mean 'binary'"),
        (lambda: Network.create("tunnel", 0, 1, depth=1, key=KEY), "n_in=0"),
        (lambda: Network.create("tunnel", 2, 1, key=KEY), "body='tunnel' needs its number of layers"),
        (lambda: Network.create("tunnel", 2, 1, depht=3, key=KEY), "Did you mean 'depth'"),
        (lambda: Network.create("budding", 2, 1, depth=3, key=KEY), "option of body='budding'='depth' is not known"),
        (lambda: Network.create("tunnel", 2, 1, depth=3, key=0), "key=0 is not a random key"),
        (lambda: network("tunnel")(jnp.ones((7, 4))), r"use jax.vmap\(network\)\(x\)"),
    ],
)
def test_bad_arguments_are_named(call, says):
    with pytest.raises(ValueError, match=says):
        call()


def test_a_body_has_eight_members_at_most():
    """What the rest of the library may ask of a body; those of trees and of what it inherits included."""
    asked = {name for kind in (Body, Budding, Stages) for name in dir(kind) if not name.startswith("_")} | {"__call__"}
    own = set(dir(eqx.Module)) | set(inspect.signature(Budding).parameters) | {"parts", "positions"}  # fields, and options
    fields = {field.name for kind in (Budding, Stages) for field in dataclasses.fields(kind)} | {"n_leaves"}
    assert asked - own - fields == {
        "__call__",
        *("priced", "axes", "compact_layers", "after_update", "with_capacity", "options", "fault"),
    }
