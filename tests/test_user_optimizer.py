"""Our layers inside a user's own Equinox model, trained by their own optax optimiser."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from meristem import decay_mask, grow, project
from meristem.nn import Budding, Tunnel


class Theirs(eqx.Module):
    """A model that meristem knows nothing of."""

    enter: eqx.nn.Linear
    middle: eqx.Module
    norm: eqx.nn.LayerNorm
    leave: eqx.nn.Linear
    squash: tuple = (jnp.tanh,)  # a leaf that is no array

    def __init__(self, middle: eqx.Module, key):
        first, second = jax.random.split(key)
        self.enter = eqx.nn.Linear(2, 8, key=first)
        self.middle = middle
        self.norm = eqx.nn.LayerNorm(8)
        self.leave = eqx.nn.Linear(8, 1, key=second)

    def __call__(self, x):
        return self.squash[0](self.leave(self.norm(self.middle(self.enter(x)))))[0]


def problem():
    x = jax.random.uniform(jax.random.key(5), (64, 2), minval=-1, maxval=1)
    return x, jnp.where(x[:, 0] * x[:, 1] > 0, 0.8, -0.8)


def loss(model, x, y):
    return ((jax.vmap(model)(x) - y) ** 2).mean()


measured = eqx.filter_jit(loss)


def test_a_tunnel_with_their_adamw_our_mask_and_our_last_link():
    model = Theirs(Tunnel(8, 3, key=jax.random.key(0)), jax.random.key(1))
    optimizer = optax.chain(optax.adamw(1e-2, weight_decay=0.1, mask=decay_mask), project())
    state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))
    x, y = problem()

    @eqx.filter_jit
    def step(model, state):
        value, grads = eqx.filter_value_and_grad(lambda m: loss(m, x, y) + 1e-4 * m.middle.gate.value.sum())(model)
        updates, state = optimizer.update(grads, state, eqx.filter(model, eqx.is_inexact_array))
        return eqx.apply_updates(model, updates), state, value

    first = measured(model, x, y)
    for _ in range(300):
        model, state, value = step(model, state)
        gates = np.asarray(model.middle.gate.value)
        assert ((gates >= 0) & (gates <= 1)).all()
    assert value < 0.2 * first
    assert 0 < (model.middle.gate.value > 0).sum() <= gates.size


def test_a_budding_body_with_their_optimizer_and_the_one_call_that_grows():
    model = Theirs(Budding(8, key=jax.random.key(0)), jax.random.key(1))
    optimizer = optax.chain(optax.adamw(1e-2, mask=decay_mask), project())
    state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))
    x, y = problem()

    @eqx.filter_jit
    def step(model, state, key):
        grads = eqx.filter_grad(loss)(model, x, y)
        updates, state = optimizer.update(grads, state, eqx.filter(model, eqx.is_inexact_array))
        model = eqx.apply_updates(model, updates)
        return grow(model, state, key=key)

    first, opened, most = measured(model, x, y), 0, 0
    for i in range(200):
        before = model
        model, state, info = step(model, state, jax.random.key(i))
        opened, most = opened + int(info.opened), max(most, int(model.middle.n_leaves))
        live = int(model.middle.n_leaves)
        # After growth the optimiser still trains every live layer.
        if live == int(before.middle.n_leaves) and not int(info.opened) and not int(info.closed):
            moved = (np.asarray(model.middle.weight) != np.asarray(before.middle.weight))[:live].any((1, 2))
            assert moved.all(), f"step {i}: a live layer stands still"
    assert opened > 0 and most > 1
    assert measured(model, x, y) < 0.5 * first


def test_without_the_mask_weight_decay_would_open_nodes():
    """Why decay_mask exists: decay pulls γ away from 1."""
    body = Budding(4, key=jax.random.key(0))
    params = eqx.filter(body, eqx.is_inexact_array)
    zero = jax.tree.map(jnp.zeros_like, params)
    for mask, expected in ((None, True), (decay_mask, False)):
        optimizer = optax.chain(optax.adamw(1e-2, weight_decay=0.1, mask=mask), project())
        updates, _ = optimizer.update(zero, optimizer.init(params), params)
        after = eqx.apply_updates(body, updates)
        assert bool((after.leafness.value < 1).any()) is expected
        assert bool((after.bud.weight != body.bud.weight).any()) is expected


def test_two_bodies_in_one_model_grow_each_by_its_own_tree():
    bodies = [Budding(4, key=jax.random.key(i)) for i in range(2)]
    bodies[1] = eqx.tree_at(lambda b: b.leafness.value, bodies[1], bodies[1].leafness.value.at[0].set(0.7))
    state = optax.adam(1e-3).init(eqx.filter(bodies, eqx.is_inexact_array))
    marked = jax.tree.map(lambda leaf: jnp.full_like(leaf, 3), state)
    grown, moved, info = eqx.filter_jit(grow)(bodies, marked, key=jax.random.key(2))
    assert [int(body.n_leaves) for body in grown] == [1, 2] and int(info.opened) == 1
    moments = moved[0].mu[1]
    np.testing.assert_array_equal(moments.weight[:, 0, 0], [3, 0, 0, 0])
    np.testing.assert_array_equal(moments.leafness.value[:3], [0, 3, 0])


def test_a_state_of_another_model_is_refused():
    bodies = [Budding(4, key=jax.random.key(i)) for i in range(2)]
    state = optax.sgd(1e-3, momentum=0.9).init(eqx.filter(bodies[0], eqx.is_inexact_array))
    with pytest.raises(ValueError, match="made for another model"):
        grow(bodies, state, key=jax.random.key(0))
    with pytest.raises(ValueError, match="no body in the model that grows"):
        grow(Tunnel(3, 2, key=jax.random.key(0)), state, key=jax.random.key(0))
