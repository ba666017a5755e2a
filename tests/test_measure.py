"""Measures against their plain definitions, and training that is steered by macro-F1."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from meristem import Data, Knobs, Recipe, fit
from meristem.nn import Network
from meristem.train.epoch import cost
from meristem.train.metrics import PIECE, Sums, evaluate, measures_of, piece_of, sum_up
from meristem.train.objectives import Binary, Multilabel


def plain_macro_f1(predicted: np.ndarray, actual: np.ndarray) -> float:
    scores = []
    for p, a in zip(predicted.T, actual.T, strict=True):
        if a.any():
            hits, wrong, missed = (p & a).sum(), (p & ~a).sum(), (~p & a).sum()
            scores.append(2 * hits / (2 * hits + wrong + missed))
    return float(np.mean(scores)) if scores else 0.0


@given(st.integers(0, 2**20 - 1), st.integers(0, 2**20 - 1))
@settings(max_examples=60, deadline=None)
def test_macro_f1_is_the_mean_over_labels_that_occur(first, second):
    predicted, actual = (np.array([value >> i & 1 for i in range(20)], bool).reshape(5, 4) for value in (first, second))
    counts = jnp.asarray([(predicted & actual).sum(0), predicted.sum(0), actual.sum(0)], jnp.float32)
    found = measures_of(Sums(jnp.ones(()), jnp.ones(()), jnp.ones(()), counts)).macro_f1
    np.testing.assert_allclose(found, plain_macro_f1(predicted, actual), rtol=1e-6)


def labelled(n: int) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(0).standard_normal((n, 5)).astype(np.float32)
    return x, (x[:, :3] + x[:, 1:4] > 0.8).astype(np.float32)


def test_ten_thousand_classes_are_never_there_for_all_rows():
    """800 rows × 10,000 outputs are 32 MB; a piece of them is 4 MB, and no array of the program is more than twice that."""
    network = Network.create("tunnel", 5, 10_000, width=6, depth=2, key=jax.random.key(0))
    x, y = labelled(800)[0], np.arange(800) % 10_000
    program = jax.jit(lambda x, y: measures_of(sum_up(network, x, y, Recipe(objective="multiclass"))[0])).lower(x, y).compile()
    assert program.memory_analysis().temp_size_in_bytes < 4 * 2 * 10_000 * piece_of(network, x) * 2 < 4 * 800 * 10_000
    outputs = jax.vmap(network)(jnp.asarray(x[::100]))
    expected = jax.nn.logsumexp(outputs, 1) - outputs[np.arange(8), y[::100]]
    found = measures_of(sum_up(network, x[::100], y[::100], Recipe(objective="multiclass"))[0])
    np.testing.assert_allclose(float(found.loss), np.mean(expected), rtol=1e-5)


def test_a_large_set_is_measured_in_pieces_and_counted_whole():
    x, y = labelled(2 * PIECE + 77)
    network = Network.create("highway", 5, 3, width=6, depth=2, key=jax.random.key(0))
    measures = evaluate(network, x, y, Multilabel())
    outputs = np.asarray(jax.vmap(network)(jnp.asarray(x)))
    assert measures.macro_f1 is not None
    np.testing.assert_allclose(measures.macro_f1, plain_macro_f1(outputs > 0, y > 0), rtol=1e-5)
    np.testing.assert_allclose(measures.error, ((outputs > 0) != (y > 0)).sum(1).mean(), rtol=1e-5)
    np.testing.assert_allclose(measures.loss, (np.logaddexp(0, outputs) - y * outputs).sum(1).mean(), rtol=1e-5)


def test_macro_f1_steers_the_schedule_and_chooses_the_model():
    x, y = labelled(160)
    recipe = Recipe(objective="multilabel", batch_size=8, watch="macro_f1", select="macro_f1", patience=3)
    result = fit(
        Network.create("tunnel", 5, 3, width=6, depth=2, key=jax.random.key(0)),
        Data(x[:100], y[:100], x[100:], y[100:]),
        learning_rate=1e-2,
        penalty=1e-3,
        key=jax.random.key(1),
        recipe=recipe,
        max_epochs=60,
    )
    scores = result.history["dev_macro_f1"]
    assert scores[result.best_epoch - 1] == scores.max() > scores[0]
    found = evaluate(result.best, x[100:], y[100:], Multilabel()).macro_f1
    np.testing.assert_allclose(found, scores.max(), rtol=1e-6)
    # The rate shrinks when the score has not risen for three epochs, no earlier.
    cut = int(np.flatnonzero(np.diff(result.history["stage"]))[0]) + 1
    assert scores[:cut].argmax() == cut - 1 - recipe.patience


@pytest.mark.parametrize("feature_gates", [False, True])
def test_the_price_is_that_of_the_cost(feature_gates):
    """J of the measures is J of the steps, with the price of input gates."""
    gates = {"feature_gates": feature_gates}
    network = Network.create("budding", 5, 1, width=6, capacity=2, key=jax.random.key(0), **gates)
    x, y = labelled(9)[0], np.zeros(9, np.float32)
    measures = measures_of(sum_up(network, x, y, Recipe(select="cost"))[0])
    wanted = cost(network, jnp.asarray(x), jnp.asarray(y), Knobs(1e-3, penalty=0.1, l2=0.01), Recipe())
    np.testing.assert_allclose(measures.loss + 0.1 * measures.price + 0.01 * network.half_norm(), wanted, rtol=1e-6)
    assert float(measures.price) == (5 if feature_gates else 0)


def test_a_run_that_selects_by_cost_pays_for_its_inputs():
    """At a huge penalty the best epoch is one without open inputs, although others have a lower loss."""
    x, y = labelled(160)
    network = Network.create("tunnel", 5, 3, width=6, depth=1, key=jax.random.key(0), feature_gates=True)
    recipe = Recipe(objective="multilabel", batch_size=8, select="cost", patience=50)
    data = Data(x[:100], y[:100], x[100:], y[100:])
    run = fit(network, data, learning_rate=1e-2, penalty=10.0, key=jax.random.key(1), recipe=recipe, max_epochs=12)
    assert run.best.features is not None and not run.best.features.value.any()
    assert run.history["dev_loss"].argmin() < run.best_epoch - 1
    knobs = {"penalty": 0.5, "l2": 0.25}  # the measure that is compared is J
    run = fit(network, data, learning_rate=1e-2, **knobs, key=jax.random.key(1), recipe=recipe, max_epochs=1)
    wanted = cost(run.best, jnp.asarray(x[100:]), jnp.asarray(y[100:]), Knobs(1e-2, **knobs), recipe)
    np.testing.assert_allclose(run.state.best[0], wanted, rtol=1e-5)


def test_there_is_no_macro_f1_without_labels():
    network = Network.create("tunnel", 5, 1, width=6, depth=2, key=jax.random.key(0))
    assert evaluate(network, labelled(9)[0], np.zeros(9), Binary()).macro_f1 is None
    for option in ("watch", "select"):
        with pytest.raises(ValueError, match=f"{option}='macro_f1' needs objective='multilabel'"):
            Recipe(**{option: "macro_f1"})
    with pytest.raises(ValueError, match="Did you mean 'macro_f1'"):
        Recipe(objective="multilabel", watch="macro_f")
