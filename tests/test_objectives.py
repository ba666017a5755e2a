"""Every objective against its formula: loss, error, best constant, what targets it takes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from meristem import Data, Recipe, fit
from meristem.nn import Network
from meristem.train.epoch import _to_minimize
from meristem.train.metrics import Measures
from meristem.train.objectives import OBJECTIVES, Huber, Objective, Quantile, objective

OURS = [name for name, kind in OBJECTIVES.items() if kind.__module__.startswith("meristem.")]  # other tests register their own
LOSSES = [
    ("binary", [2.0], 0.0, np.log1p(np.exp(2.0)), 1),
    ("binary", [-700.0], 0.0, 0.0, 0),
    ("multiclass", [1.0, 3.0, 2.0], 1, -np.log(np.exp(3) / np.exp([1, 3, 2]).sum()), 0),
    ("multiclass", [1.0, 3.0, 2.0], 2, -np.log(np.exp(2) / np.exp([1, 3, 2]).sum()), 1),
    ("multilabel", [1.0, -1.0, 2.0], [1, 1, 0], np.log1p(np.exp([-1, 1, 2])).sum(), 2),
    ("squared_error", [1.0, 3.0], [0.0, 1.0], 2.5, 5),
    ("squared", [1.0, 3.0], [0.0, 1.0], 2.5, 5),  # its first name
    ("absolute_error", [1.0, -3.0], [0.0, 1.0], 5, 5),
    (Huber(delta=2.0), [1.0, -3.0], [0.0, 1.0], 0.5 + 2 * (4 - 1), 5),
    ("poisson", [np.log(3.0)], [2.0], 3 - 2 * np.log(3), 2 * (2 * np.log(2 / 3) - 2 + 3)),
    ("poisson", [0.0], [0.0], 1, 2),
    (Quantile((0.1, 0.9)), [1.0, 3.0], [2.0, 2.0], 0.1 * 1 + 0.1 * 1, 0.2),
    (Quantile((0.1, 0.9)), [3.0, 1.0], [2.0, 2.0], 0.9 * 1 + 0.9 * 1, 1.8),
]


@pytest.mark.parametrize(("kind", "outputs", "target", "loss", "error"), LOSSES)
def test_losses_and_errors(kind, outputs, target, loss, error):
    one = objective(kind)
    np.testing.assert_allclose(one.loss(jnp.array(outputs), jnp.asarray(target)), loss, rtol=1e-6)
    np.testing.assert_allclose(one.error(jnp.array(outputs), jnp.asarray(target)), error, rtol=1e-6)


def test_every_objective_is_shown_above():
    assert {objective(kind).name for kind, *_ in LOSSES} == set(OURS)


def targets(name: str, random: np.random.Generator) -> np.ndarray:
    if name in ("binary", "multiclass"):
        return random.integers(0, 2 if name == "binary" else 3, 40)
    if name == "multilabel":
        return random.integers(0, 2, (40, 2)).astype(float)
    return random.gamma(1.0, 3.0, (40, 2))


def test_more_is_better_of_macro_f1_alone():
    measures = Measures(*map(jnp.asarray, (1.0, 2.0, 0.5)))
    assert [float(_to_minimize(measures, name)) for name in ("loss", "cost", "error", "macro_f1")] == [1.0, 1.0, 2.0, -0.5]
    assert [name for name in OURS if objective(name).outputs_are_labels] == ["multilabel"], "their macro-F1 is measured"


@pytest.mark.parametrize("name", OURS)
def test_no_constant_is_better_than_the_best_one(name):
    """A little away from the best constant's outputs the mean of what the objective minimizes is no lower."""
    one = objective(name)

    @given(st.integers(0, 2**16))
    @settings(max_examples=10, deadline=None)
    def check(seed):
        random = np.random.default_rng(seed)
        y, weight = targets(name, random), random.integers(0, 3, 40).astype(float) + (np.arange(40) == 0)
        best = one.best_constant(y, weight)

        def mean(outputs):
            each = jax.vmap(lambda target: one.error(outputs, target))(jnp.asarray(y))
            return float(weight @ np.asarray(each) / weight.sum())

        for change in np.concatenate([np.eye(len(best)), -np.eye(len(best))]):
            for size in (0.1, 3.0):
                assert mean(jnp.asarray(best + size * change)) >= mean(jnp.asarray(best)) - 1e-5

    check()


@pytest.mark.parametrize("name", OURS)
def test_the_error_of_the_best_constant_is_that_of_its_outputs(name):
    random, task = np.random.default_rng(0), objective(name)
    y, weight = targets(name, random), random.integers(0, 3, 40).astype(float)
    y[:5] = 0
    assert task.constant_error(y, weight) == pytest.approx(Objective.constant_error(task, y, weight), rel=1e-4)


@pytest.mark.parametrize(
    ("name", "y", "is_valid"),
    [
        ("binary", [0, 1, 2, -1], [True, True, False, False]),
        ("multiclass", [0, 2, 3, -1, 0.5], [True, True, False, False, False]),
        ("poisson", [0, 0.5, -0.5], [True, True, False]),
    ],
)
def test_which_values_may_be_targets(name, y, is_valid):
    assert objective(name).valid(np.array(y), 3)[0].tolist() == is_valid


def test_of_two_labels_as_frequent_as_their_absence_neither_is_predicted():
    y, weight = np.array([[1.0, 1.0], [0.0, 1.0]]), np.ones(2)
    assert objective("multilabel").best_constant(y, weight).tolist() == [-1.0, 1.0]
    assert objective("poisson").best_constant(np.array([[0.0, 2.0]]), np.ones(1)).tolist() == pytest.approx([-1e9, np.log(2)])


@pytest.mark.parametrize("name", OURS)
def test_an_output_that_fills_a_shape_costs_nothing_and_learns_nothing(name):
    one = objective(name)
    if name in ("binary", "multiclass"):
        return
    outputs = jnp.array([0.3, one.unused_output])
    target = jnp.array([1.0, 0.0])
    loss, gradient = jax.value_and_grad(one.loss)(outputs, target)
    np.testing.assert_allclose(loss, one.loss(outputs[:1], target[:1]), rtol=1e-6)
    assert gradient[1] == 0 and gradient[0] != 0


@pytest.mark.parametrize(
    ("kind", "y", "says"),
    [
        ("poisson", [[-1.0]], "y holds -1.0; objective='poisson' needs counts or rates, none below 0"),
        ("huber", [1.0], r"objective='huber' needs \[samples, 1\], a column per output"),
        ("quantile", [[1.0, 2.0]], r"objective='quantile' needs \[samples, 1\]"),
    ],
)
def test_targets_that_do_not_fit_are_named(kind, y, says):
    network = Network.create("tunnel", 2, 1, width=3, depth=1, key=jax.random.key(0))
    with pytest.raises(ValueError, match=says):
        fit(
            network,
            Data(np.ones((1, 2)), np.array(y)),
            learning_rate=1e-3,
            penalty=0.0,
            key=jax.random.key(0),
            recipe=Recipe(objective=kind),
        )


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Huber(delta=0.0), "delta=0.0 must be a number above 0"),
        (lambda: Quantile(()), r"levels=\(\) must hold at least one number"),
        (lambda: Quantile((0.5, 1.0)), "levels=1.0 must be a number above 0 and below 1"),
    ],
)
def test_parameters_that_do_not_fit_are_named(make, says):
    with pytest.raises(ValueError, match=says):
        make()


def learned(kind: object, y: np.ndarray) -> np.ndarray:
    """The outputs of a network that sees nothing but a constant: what the objective's minimum is."""
    network = Network.create("tunnel", 1, y.shape[1], width=3, depth=1, key=jax.random.key(0))
    run = fit(
        network,
        Data(np.ones((len(y), 1)), y),
        learning_rate=3e-2,
        penalty=1.0,
        l2=0.0,
        key=jax.random.key(1),
        max_epochs=60,
        recipe=Recipe(objective=kind, batch_size=50, select="loss"),
    )
    return np.asarray(run.best(jnp.ones(1)))


def test_what_each_objective_learns_of_a_skewed_sample():
    y = np.random.default_rng(0).gamma(1.0, 2.0, (400, 1))
    np.testing.assert_allclose(learned("squared_error", y), y.mean(0), rtol=0.1)
    np.testing.assert_allclose(learned("absolute_error", y), np.median(y, 0), rtol=0.1)
    np.testing.assert_allclose(np.exp(learned("poisson", y)), y.mean(0), rtol=0.1)
    np.testing.assert_allclose(learned(Quantile((0.2, 0.8)), y.repeat(2, 1)), np.quantile(y, [0.2, 0.8]), rtol=0.1)
    assert np.median(y) < learned(Huber(delta=1.0), y)[0] < y.mean()
