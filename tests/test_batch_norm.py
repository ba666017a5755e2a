"""Normalization over the batch: its values and gradients, what the running statistics follow, and what is left of it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from exporting import assert_close, everywhere
from meristem import Data, Recipe, fit, load, save
from meristem.compact import compact
from meristem.gate import Confined
from meristem.nn import ConvBranch, ConvInverted, ConvTunnel, Network
from meristem.nn.batch_norm import BATCH, EPSILON, SHARE, BatchNorm, Statistics
from meristem.train.optimizer import adam, for_models

KEY, POSITIONS = jax.random.key(0), (4, 3)
KINDS = {"branch": ConvBranch, "inverted": ConvInverted, "tunnel": ConvTunnel}


def a_body(name: str, depth: int = 1):
    sizes = {} if name == "tunnel" else {"units": 4}
    body = KINDS[name](width=3, depth=depth, positions=POSITIONS, normalize=True, gate_start=0.6, key=KEY, **sizes)
    rng = np.random.default_rng(1)

    def drawn(node):
        if not isinstance(node, BatchNorm):
            return node
        values = rng.uniform(0.5, 2, (3, *node.scale.shape))
        return BatchNorm(*map(jnp.asarray, values[:1]), Statistics(*map(jnp.asarray, values[1:])))

    return jax.tree.map(drawn, body, is_leaf=lambda node: isinstance(node, BatchNorm))


def by_the_formula(norm: BatchNorm, bias, z):
    """Of a whole batch [n, units, *positions]."""
    mean, variance = z.mean((0, 2, 3), keepdims=True), z.var((0, 2, 3), keepdims=True)
    scale, shift = (own.reshape(1, -1, 1, 1) for own in (norm.scale, bias))
    return scale * (z - mean) / jnp.sqrt(variance + EPSILON) + shift


def test_values_and_gradients_in_a_step_are_those_of_the_formula():
    with jax.enable_x64(True):
        rng = np.random.default_rng(0)
        z, bias = jnp.asarray(rng.normal(2, 3, (5, 4, *POSITIONS))), jnp.asarray(rng.normal(size=4))
        norm = BatchNorm(jnp.asarray(rng.uniform(0.5, 2, 4)), Statistics(jnp.zeros(4), jnp.ones(4)))

        def slopes(function):
            loss = lambda scale, bias, z: (function(BatchNorm(scale, norm.statistics), bias, z) ** 3).sum()  # noqa: E731
            return jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2)))(norm.scale, bias, z)

        ours = slopes(lambda norm, bias, z: jax.vmap(lambda own: norm(bias, own), axis_name=BATCH)(z))
        for got, expected in zip(jax.tree.leaves(ours), jax.tree.leaves(slopes(by_the_formula)), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", KINDS)
def test_the_gradient_of_running_statistics_is_their_distance_from_those_of_the_batch(name):
    with jax.enable_x64(True):
        body = a_body(name)
        x = jnp.asarray(np.random.default_rng(2).normal(size=(6, 3, *POSITIONS)))
        plain = eqx.tree_at(lambda b: b.norm, body, None)
        first = plain.weight if name == "tunnel" else plain.inner
        weight = first[0] if first.ndim > 3 else first[0][..., None, None]
        z = jax.vmap(lambda h: jax.lax.conv_general_dilated(h[None], weight, (1, 1), "SAME")[0])(x)
        grads = eqx.filter_grad(lambda b: (jax.vmap(b, axis_name=BATCH)(x) ** 2).sum())(body).norm.statistics
        running = body.norm.statistics
        np.testing.assert_allclose(running.mean[0] - grads.mean[0], z.mean((0, 2, 3)), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(running.variance[0] - grads.variance[0], z.var((0, 2, 3)), rtol=1e-9)
        elsewhere = eqx.filter_grad(lambda b: (jax.vmap(b)(x) ** 2).sum())(body).norm.statistics
        assert not any(leaf.any() for leaf in jax.tree.leaves(elsewhere))


@pytest.mark.parametrize("chain", [adam(1.0, weight_decay=0.1), for_models(optax.adamw(1.0))], ids=["ours", "own"])
def test_optimizers_move_running_statistics_by_their_share_alone(chain):
    body = a_body("branch")
    grads = jax.tree.map(lambda leaf: jnp.full_like(leaf, 2.0), eqx.filter(body, eqx.is_inexact_array))
    updates, _ = chain.update(grads, chain.init(body), body, learning_rate=0.5)
    for leaf in jax.tree.leaves(updates.norm.statistics):
        np.testing.assert_allclose(leaf, -2.0 * SHARE, rtol=1e-6)
    assert (jnp.abs(updates.norm.scale) > 0.4).all()


def test_what_was_trained_is_the_same_in_every_form(tmp_path):
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (60, 5, 4, 2), dtype=np.uint8), rng.integers(0, 3, 60)
    x[..., 0] //= np.where(y == 1, 4, 1)[:, None, None].astype(np.uint8)  # dark
    network = Network.create("conv-inverted", input_shape=(5, 4, 2), n_out=3, max_width=4, depth=1, normalize=True, key=KEY)
    recipe = Recipe(objective="multiclass", batch_size=20, depth_decay=1.0, price="parameters", settle=True, patience=4)
    run = fit(network, Data(x, y), learning_rate=0.02, penalty=1e-4, key=KEY, recipe=recipe, max_epochs=12)
    best, inputs = run.best, x.astype(np.float32) / 255
    running = best.body.norm.statistics
    assert (jnp.abs(running.mean) > 1e-3).any() and (running.variance != 1).all()
    expected = np.asarray(jax.vmap(best)(jnp.asarray(inputs)))
    small = compact(best)
    for got in [jax.vmap(small)(jnp.asarray(inputs)), *everywhere(best, inputs)]:
        assert_close(np.asarray(got), expected)
    save(tmp_path / "run.safetensors", run)
    loaded = load(tmp_path / "run.safetensors")
    np.testing.assert_array_equal(jax.vmap(loaded.best)(jnp.asarray(inputs)), expected)


def test_running_statistics_come_to_those_of_all_rows():
    """With nothing to learn: the rate is as good as zero, and each step sees another part of the rows."""
    x, y = np.random.default_rng(0).normal(size=(200, 4, 4)).astype(np.float32), np.zeros(200, np.int32)
    network = Network.create("conv-branch", input_shape=(4, 4), n_out=2, width=3, depth=1, normalize=True, key=KEY)
    recipe = Recipe(objective="multiclass", batch_size=50, depth_decay=1.0)
    run = fit(network, Data(x, y), learning_rate=1e-9, penalty=0.0, key=KEY, recipe=recipe, max_epochs=20)
    h = jax.vmap(run.last.embed)(x)
    z = jax.lax.conv_general_dilated(h, run.last.body.inner[0], (1, 1), "SAME")
    running = run.last.body.norm.statistics
    np.testing.assert_allclose(running.mean[0], z.mean((0, 2, 3)), atol=0.1 * float(z.std()))
    np.testing.assert_allclose(running.variance[0], z.var((0, 2, 3)), rtol=0.1)


@pytest.mark.parametrize("name", KINDS)
def test_gates_in_the_kernels_of_a_step_are_those_of_values(name):
    """In a step they are multiplied into kernels, elsewhere into what these read: the same outputs and gradients."""
    body = eqx.tree_at(lambda b: b.norm, a_body(name), None)
    body = eqx.tree_at(lambda b: b.depthwise_norm, body, None) if name == "inverted" else body
    body = eqx.tree_at(lambda b: b.trunk, body, Confined(jnp.array([0.5, 0.0, 1.0])), is_leaf=lambda leaf: leaf is None)
    x = jax.random.normal(KEY, (6, 3, *POSITIONS))

    def slopes(**axis):
        return jax.jit(jax.value_and_grad(lambda body: (jax.vmap(body, **axis)(x) ** 2).sum(), allow_int=True))(body)

    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-4), slopes(axis_name=BATCH), slopes())
