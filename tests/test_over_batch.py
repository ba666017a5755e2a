"""Samples with copies of their own: the same outputs, prices and gradients as the plain mean over a batch."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meristem.nn import Network
from meristem.train.epoch import over_batch

with_copies = partial(over_batch, with_copies=True)


def sum_of(over, network, x, weight):
    outputs, prices = over(network, x)
    return (weight * jnp.sin(outputs).sum(1)).sum() + (weight * prices).sum()


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_copies_change_no_gradient(activation):
    with jax.enable_x64():
        network = Network.create("tunnel", 5, 3, width=8, depth=4, activation=activation, key=jax.random.key(0))
        gates = jax.random.uniform(jax.random.key(1), (4, 8)).at[0, :3].set(0.0)
        network = eqx.tree_at(lambda n: n.body.gate.value, network, gates)
        x, weight = jax.random.normal(jax.random.key(2), (7, 5)), jax.random.uniform(jax.random.key(3), (7,))
        for one, other in zip(eqx.filter_jit(with_copies)(network, x), eqx.filter_jit(over_batch)(network, x), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-13)
        gradient = eqx.filter_jit(eqx.filter_grad(lambda n, over: sum_of(over, n, x, weight)))
        copied, plain = gradient(network, with_copies), gradient(network, over_batch)
        for one, other in zip(jax.tree.leaves(copied), jax.tree.leaves(plain), strict=True):
            assert one.shape == other.shape and one.any()
            np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-13)


def test_members_of_a_population_keep_to_themselves():
    networks = jax.vmap(lambda key: Network.create("tunnel", 2, 1, width=3, depth=2, key=key))(
        jax.random.split(jax.random.key(0), 2)
    )
    networks = eqx.tree_at(lambda n: n.body.gate.value, networks, jnp.array([0.25, 0.75])[:, None, None] * jnp.ones((2, 2, 3)))
    outputs, prices = jax.vmap(with_copies, in_axes=(0, None))(networks, jnp.ones((4, 2)))
    assert outputs.shape == (2, 4, 1)
    np.testing.assert_allclose(prices, np.array([[1.5] * 4, [4.5] * 4]))
