"""Boundaries of training that larger tests do not notice: folds, padding, saliency, the learning rate of a step, budgets."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from meristem import Data, Knobs, Recipe, close_to_budget, model_cost, settle, step
from meristem.complexity import PRICES
from meristem.gate import Confined
from meristem.nn import Network
from meristem.paths.folds import shuffled_folds
from meristem.train.epoch import KEY_STRIDE, Batch, _next_plateau, descend, scan_batches
from meristem.train.metrics import Measures
from meristem.train.objectives import Multiclass
from meristem.train.optimizer import adam
from meristem.train.programs import compiles_fast
from meristem.train.settle import FIRST_PRICE, check_budget, next_penalty, smallest
from meristem.train.train_state import Plateau, no_growth, start


@pytest.mark.parametrize(("rows", "n"), [(11, 3), (6, 2), (4, 4)])
def test_training_rows_and_held_out_rows_partition_the_rows(rows, n):
    folds = shuffled_folds(rows, n, seed=5)
    for train, held_out in folds:
        np.testing.assert_array_equal(np.sort(np.concatenate([train, held_out])), np.arange(rows))
    np.testing.assert_array_equal(np.sort(np.concatenate([held_out for _, held_out in folds])), np.arange(rows))


@pytest.mark.parametrize(("n", "n_real"), [(8, 5), (8, 4), (6, 6), (7, 6)])
def test_padding_has_no_weight_in_weighted_minibatches(n, n_real):
    """Rows of weight 0, and the end of the last batch, do not count: the weights of a batch sum to 1 over real rows alone."""
    x = np.arange(1.0, n + 1, dtype=np.float32)[:, None]
    data = Data(x, x, weight=(np.arange(n) < n_real).astype(np.float32))

    def record(carry, batch):
        place, weights, rows = carry
        return place + 1, weights.at[place].set(batch.weight), rows.at[place].set(batch.x[:, 0])

    carry = (jnp.zeros((), int), jnp.zeros((2, 4)), jnp.zeros((2, 4)))
    steps, weights, rows = scan_batches(record, carry, data, 4, jax.random.key(0), jnp.zeros((), jnp.int32), 1)
    assert int(steps) == -(-n_real // 4)
    np.testing.assert_array_equal(np.sort(rows[weights > 0]), x[:n_real, 0])
    np.testing.assert_allclose(weights.sum(1)[: int(steps)], 1, rtol=1e-6)


@pytest.mark.parametrize("closed", [0.0, 1.0])
def test_saliency_is_the_distance_of_a_gate_from_closed(closed):
    """The nearly closed gate closes and the other stays: alone, the first costs 0.1 of the loss and saves 0.4."""
    distance, direction = np.array([0.1, 0.8], np.float32), 1 - 2 * closed
    model = {"gate": Confined(jnp.asarray(closed + direction * distance), closed)}
    x = jnp.zeros((3, 1))
    settled = settle(model, lambda m, x, y: -direction * m["gate"].value.sum(), x, x, penalty=0.4, price="units")
    np.testing.assert_array_equal(settled["gate"].is_open, [False, True])


def test_while_gates_close_only_a_thousandth_of_the_cost_is_an_improvement():
    recipe = Recipe(settle=True)
    network = Network.create("tunnel", 2, 1, width=3, depth=2, key=jax.random.key(0))

    def epochs_since(stage: int, best: float, loss: float) -> int:
        plateau = Plateau(jnp.float32(best), jnp.int32(5), jnp.int32(stage))
        state = eqx.tree_at(lambda s: s.plateau, start(network, jax.random.key(0), recipe), plateau)
        measures = Measures(*[None] * len(Measures._fields))._replace(loss=jnp.float32(loss))
        return int(_next_plateau(state, measures, network, Knobs(1e-3, 0.0), recipe).since)

    assert epochs_since(1, 2.0, 1.997) == 0 and epochs_since(1, 2.0, 1.999) == 6
    assert epochs_since(1, -2.0, -2.001) == 6 and epochs_since(1, -2.0, -2.003) == 0, "relative to its size"
    assert epochs_since(1, np.inf, 2.0) == 0 and epochs_since(0, 2.0, 1.999) == 0


def test_no_two_passes_of_a_training_share_a_random_key():
    epochs, passes = np.arange(2000), np.arange(50)[:, None]
    numbers = epochs + passes * KEY_STRIDE
    assert len(np.unique(numbers)) == numbers.size and numbers.max() < 2**31


def test_every_pass_of_an_epoch_has_an_order_of_its_own():
    """A second pass is not the first one once more; shapes and types stay, or the next epoch would compile anew."""
    recipe, rows = Recipe(batch_size=4), jnp.arange(16.0).reshape(8, 2) / 16
    data = Data(rows, jnp.arange(8.0) % 2)
    state = start(Network.create("tunnel", 2, 1, width=3, depth=2, key=jax.random.key(0)), jax.random.key(1), recipe)

    @jax.jit
    def after(own, passes):
        knobs = Knobs(jnp.asarray(0.1), jnp.asarray(1e-3), passes=passes)
        return descend(own, no_growth(), data, knobs, jnp.zeros((), jnp.int32), recipe, parts=1)[0]

    once, twice = (after(state, jnp.asarray(passes)) for passes in (1, 2))
    repeated = after(once, jnp.asarray(1))  # its epoch, and so its key, is that of the first
    for new, old in zip(jax.tree.leaves(twice), jax.tree.leaves(state), strict=True):
        assert (new.shape, new.dtype) == (old.shape, old.dtype)
    assert (twice.network.embed.weight != repeated.network.embed.weight).any()


def test_adam_is_optaxs_where_all_layers_have_one_rate_and_age():
    model = {"weight": jnp.array([[1.0, -2.0], [0.5, 3.0]]), "bias": jnp.array([0.1, -0.2])}
    own, usual = adam(depth_decay=1.0), optax.adam(0.1)
    own_state, state = own.init(model), usual.init(model)
    for number in range(3):
        grads = jax.tree.map(lambda leaf, n=number: jnp.sin(leaf + n), model)
        own_updates, own_state = own.update(grads, own_state, model, learning_rate=0.1)
        updates, state = usual.update(grads, state, model)
        for mine, theirs in zip(jax.tree.leaves(own_updates), jax.tree.leaves(updates), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-4)


def test_the_loss_of_classes_is_the_negative_logarithm_of_the_probability():
    outputs = np.array([0.5, -1.0, 2.0, 0.0], np.float32)
    probabilities = np.exp(outputs) / np.exp(outputs).sum()
    losses = [float(Multiclass().loss(jnp.asarray(outputs), jnp.asarray(k))) for k in range(4)]
    np.testing.assert_allclose(losses, -np.log(probabilities), rtol=1e-5)


def test_a_step_has_the_learning_rate_of_its_stage():
    recipe = Recipe(batch_size=4, scales=(1.0, 0.5, 0.25))
    network = Network.create("tunnel", 2, 1, width=3, depth=2, key=jax.random.key(0))
    first = start(network, jax.random.key(1), recipe)
    batch = Batch(jax.random.key(2), jnp.ones((4, 2)), jnp.ones(4))
    compiled = eqx.filter_jit(step)

    def weights(stage: int, rate: float) -> list[np.ndarray]:
        state = eqx.tree_at(lambda s: s.plateau.stage, first, jnp.asarray(stage, jnp.int32))
        after, _ = compiled(state, batch, Knobs(jnp.asarray(rate), jnp.asarray(1e-3)), recipe)
        return jax.tree.leaves(after.network)

    for stage, rate in ((1, 0.005), (2, 0.0025), (3, 0.0)):
        for dropped, plain in zip(weights(stage, 0.01), weights(0, rate), strict=True):
            np.testing.assert_array_equal(dropped, plain)
    assert any((a != b).any() for a, b in zip(weights(0, 0.01), weights(1, 0.01), strict=True))


def test_the_smallest_network_is_within_a_budget_of_its_own_cost():
    recipe = Recipe(settle=True, price="parameters")
    network = Network.create("tunnel", 2, 1, width="auto", max_width=8, depth=2, key=jax.random.key(0))
    least = smallest(network, recipe)
    check_budget(network, float(least), recipe)
    with pytest.raises(ValueError, match=f"budget={least - 1} .* {least} parameters"):
        check_budget(network, float(least - 1), recipe)


def test_arrays_without_axes_are_stored_and_all_but_vectors_are_multiplied_by():
    model = {"bias": jnp.ones(3), "matrix": jnp.ones((3, 2)), "counts": jnp.ones(4, int)}
    assert {price: float(model_cost(model, price)) for price in PRICES} == {
        "units": 0,
        "parameters": 9,
        "bytes": 15,
        "multiply-adds": 6,
    }


def test_a_model_of_ones_own_may_be_closed_to_its_least_cost():
    model, x = {"gate": Confined(jnp.array([0.5, 0.5]))}, jnp.zeros((3, 1))
    closed = close_to_budget(model, lambda m, x, y: m["gate"].value.sum(), x, x, budget=0, price="units")
    assert float(model_cost(closed, "units")) == 0


def test_the_penalty_of_a_budget_restarts_when_the_cost_is_exactly_the_budget():
    knobs = Knobs(1e-3, np.float32(1e-4), budget=np.float32(100))
    assert float(next_penalty(knobs, 100.0)) == np.float32(FIRST_PRICE)
    assert float(next_penalty(knobs, 101.0)) == pytest.approx(1e-4 * np.exp(0.001), rel=1e-6)
    assert float(next_penalty(knobs, 1e9)) == pytest.approx(1e-4 * np.exp(0.1), rel=1e-6)


@pytest.mark.parametrize(("asked", "least", "fast"), [(True, False, True), (True, True, False), (False, False, False)])
def test_programs_compile_fast_where_asked_and_where_jax_does_not_ask_for_still_less(asked, least, fast):
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", least)
    try:
        assert compiles_fast(Recipe(compile_fast=asked)) is fast
    finally:
        jax.config.update("jax_disable_most_optimizations", before)
