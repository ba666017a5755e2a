"""The loss at the best temperature: against a fine search, in blocks of rows, in files, and in what estimators ship."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.datasets import load_iris

import meristem
from meristem import Data, Recipe, fit
from meristem.nn import Network
from meristem.train.metrics import SPREAD, measures_of, sum_up

KINDS = {"binary": 1, "multiclass": 4, "multilabel": 3}


def targets(kind: str, logits: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Drawn as logits say that are surer than they should be by a factor of three."""
    if kind == "multiclass":
        return (logits / 3 + rng.gumbel(size=logits.shape)).argmax(1)
    drawn = (rng.random(logits.shape) < 1 / (1 + np.exp(-logits / 3))).astype(np.float32)
    return drawn[:, 0] if kind == "binary" else drawn


def network(n_out: int, sure: float = 1.0) -> Network:
    made = Network.create("tunnel", 5, n_out, width=5, depth=2, key=jax.random.key(0))
    return jax.tree.map(lambda leaf: leaf * sure, made)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [40, 3000])
def test_it_is_what_a_fine_search_finds(kind, rows):
    rng = np.random.default_rng(0)
    x, model, recipe = rng.standard_normal((rows, 5)).astype(np.float32), network(KINDS[kind], 2.0), Recipe(objective=kind)
    logits = np.asarray(jax.vmap(model)(jnp.asarray(x)))
    y, weight = targets(kind, logits, rng), rng.integers(0, 3, rows).astype(np.float32)

    def mean_loss(log_temperature: float) -> float:
        losses = jax.vmap(recipe.task.loss)(jnp.asarray(logits * np.exp(-log_temperature)), jnp.asarray(y))
        return float((weight * losses).sum() + log_temperature**2 / (2 * SPREAD**2)) / weight.sum()

    best = minimize_scalar(mean_loss, bounds=(-1.5, 2.5), method="bounded")
    found = measures_of(sum_up(model, x, y, recipe, weight, calibrated=True)[0])
    np.testing.assert_allclose(found.loss, best.fun, rtol=2e-3)
    np.testing.assert_allclose(np.log(found.temperature), best.x, atol=0.05)
    plain = measures_of(sum_up(model, x, y, recipe, weight)[0])
    assert found.loss < plain.loss and plain.temperature is None and found.error == plain.error


def test_blocks_of_rows_a_population_and_a_file_say_the_same(tmp_path):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((200, 5)).astype(np.float32)
    y = targets("multiclass", 3 * x[:, :4], rng)
    recipe = Recipe(objective="multiclass", batch_size=8, select="loss", calibrate=True)
    options = {"learning_rate": 1e-2, "penalty": 1e-3, "recipe": recipe, "max_epochs": 3}
    data = Data(x[:120], y[:120], x[120:], y[120:])
    streamed = fit(network(4), data, key=jax.random.key(1), rows_at_once=40, **options)
    measured = measures_of(sum_up(streamed.last, data.dev_x, data.dev_y, recipe, calibrated=True)[0])
    np.testing.assert_allclose(streamed.history["temperature"][-1], measured.temperature, rtol=1e-4)
    np.testing.assert_allclose(streamed.history["dev_loss"][-1], measured.loss, rtol=1e-5)
    plain = measures_of(sum_up(streamed.last, data.x, data.y, recipe)[0])
    np.testing.assert_allclose(streamed.history["loss"][-1], plain.loss, rtol=1e-5)
    two = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), network(4))
    both = fit(two, data, key=jax.random.split(jax.random.key(1)), **options)
    assert both.temperature.shape == (2,) and both.member(1).temperature == both.temperature[1]
    meristem.save(tmp_path / "run.safetensors", both)
    again = meristem.load(tmp_path / "run.safetensors")
    assert again.recipe == recipe and again.temperature.tolist() == both.temperature.tolist()


def test_without_a_development_set_nothing_is_calibrated():
    x = np.random.default_rng(0).standard_normal((40, 5)).astype(np.float32)
    options = {"learning_rate": 1e-2, "penalty": 1e-3, "key": jax.random.key(0), "max_epochs": 2}
    runs = [fit(network(1), Data(x, x[:, 0] > 0), recipe=Recipe(calibrate=on), **options) for on in (True, False)]
    assert runs[0].history["loss"].tolist() == runs[1].history["loss"].tolist() and runs[0].temperature == 1
    with pytest.raises(ValueError, match="calibrate=True needs an objective whose outputs are logits"):
        Recipe(objective="squared_error", calibrate=True)


def log_loss(logits: np.ndarray, y: np.ndarray, sharper: float = 1.0) -> float:
    z = sharper * logits
    return float(np.mean(np.logaddexp.reduce(z, 1) - z[np.arange(len(y)), y]))


def test_estimators_ship_logits_that_are_as_sure_as_they_should_be():
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    y, order = np.where(rng.random(150) < 0.25, rng.integers(0, 3, 150), y), rng.permutation(150)
    small = {"max_width": 16, "depth": 2, "learning_rate": 0.03, "max_epochs": 60, "random_state": 0}
    learn, held = order[:75], order[75:]
    model = meristem.TunnelClassifier(l2=0.0, penalty=0.0, **small).fit(X[learn], y[learn], validation=(X[held], y[held]))
    found = [(model.decision_function(X[held]), y[held])]
    folds = [(learn, held), (held, learn)]
    bag = meristem.TunnelClassifierCV(penalties=[0.0], l2s=[0.0], input_dropouts=[0.0], cv=folds, **small).fit(X, y)
    each = [one.decision_function(X[rows]) for one, (_, rows) in zip(bag.estimators_, folds, strict=True)]
    found.append((np.concatenate(each), np.concatenate([y[held], y[learn]])))
    for logits, told in found:
        assert log_loss(logits, told) < min(log_loss(logits, told, 0.6), log_loss(logits, told, 1.7))


def test_a_network_that_learned_from_many_blocks_has_a_temperature_of_its_own():
    """The folds of a sample of 48 rows know little and need another one."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((40 * 48 + 3000, 5))
    y = np.where(rng.random(len(x)) < 0.3, rng.integers(0, 3, len(x)), np.abs(x[:, 0]).round().clip(0, 2).astype(int))
    small = {"max_width": 16, "depth": 2, "learning_rate": 0.03, "max_epochs": 60, "random_state": 0, "refit": "one", "cv": 2}
    model = meristem.TunnelClassifierCV(penalties=[0.0], l2s=[0.0], input_dropouts=[0.0], **small)
    blocks = [(x[start : start + 48], y[start : start + 48]) for start in range(0, 40 * 48, 48)]
    model.fit_search(model._planned(*blocks[0]), blocks)
    logits, told = model.decision_function(x[-3000:]), y[-3000:]
    assert log_loss(logits, told) < min(log_loss(logits, told, 0.6), log_loss(logits, told, 1.7))
