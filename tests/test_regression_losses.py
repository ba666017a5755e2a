"""The losses of the regressors: each learns what it should, on data where it matters; scores, streams, files and ONNX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.metrics import d2_tweedie_score
from sklearn.utils.estimator_checks import estimator_checks_generator

import meristem
from estimating import split, tunnel_regressor
from exporting import run
from meristem.compact.inference import Predictor
from meristem.targets import Classes, Counts, Labels, Numbers, Quantiles, losses, unpack
from meristem.train.objectives import OBJECTIVES, AbsoluteError, Huber, Objective, Quantile
from soak import FACTOR

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::meristem.GrowthWarning"),
]


def waves(rows, mean=1.0, seed=0):
    """Features, counts whose rate is a wave of one of them, and the rates."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    rate = mean * np.exp(0.8 * np.sin(2 * X[:, 0]) + 0.5 * X[:, 1])
    return X, rng.poisson(rate).astype(float), rate


@pytest.mark.parametrize("loss", ["absolute_error", "squared_error", *(["huber", "quantile"] if FACTOR > 1 else [])])
def test_outliers_do_not_move_the_middle(loss):
    """A twentieth of the targets is off by a thousand standard deviations; they move the mean."""
    X, y = make_friedman1(600, noise=0.5, random_state=0)
    X_test, y_test = make_friedman1(600, noise=0.0, random_state=1)
    wrong = np.random.default_rng(0).random(600) < 0.05
    y[wrong] += 1000 * y.std()
    if loss == "squared_error":
        assert tunnel_regressor(max_epochs=50).fit(X, y).score(X_test, y_test) < 0
    else:
        assert tunnel_regressor(loss=loss).fit(X, y).score(X_test, y_test) > 0.9


def test_the_rate_of_counts():
    X, y, _ = waves(2000)
    X_test, _, rate = waves(1000, seed=1)
    steps = {"batch_size": 32, "learning_rate": 3e-3}
    model = tunnel_regressor(loss="poisson", **steps).fit(X, y)
    said = model.predict(X_test)
    assert (said > 0).all() and said.mean() == pytest.approx(rate.mean(), rel=0.1)
    told = d2_tweedie_score(rate, said, power=1)
    squared = tunnel_regressor(**steps).fit(X, y).predict(X_test)
    assert (squared < 0).any() and told > max(0.95, 0.02 + d2_tweedie_score(rate, np.maximum(squared, 1e-3), power=1))


def test_the_unit_of_counts_does_not_matter():
    X, y, _ = waves(250)
    model, other = (tunnel_regressor(loss="poisson", max_epochs=20).fit(X, unit * y) for unit in (1, 1e-4))
    assert np.allclose(other.predict(X), 1e-4 * model.predict(X), rtol=1e-3)
    raw = tunnel_regressor(loss="poisson", max_epochs=20, standardize=False).fit(X, y)
    assert np.allclose(np.log(raw.predict(X)), Predictor(raw.compact()).outputs(X.astype(np.float32))[:, 0])


def test_nothing_was_counted():
    X, y, _ = waves(100)
    assert (tunnel_regressor(loss="poisson", max_epochs=2).fit(X, 0 * y).predict(X) < 0.1).all()


def test_quantiles_cover_what_they_say():
    """Noise that grows with a feature: within 3 % over all rows, within 5 % in either half."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (5000, 2))
    y = np.sin(3 * X[:, 1]) + (0.6 + 0.4 * X[:, 0]) * rng.normal(size=5000)
    (X, X_test), (y, y_test) = np.split(X, 2), np.split(y, 2)
    levels = (0.9, 0.1, 0.5)
    model = tunnel_regressor(loss="quantile", quantiles=levels).fit(X, y)
    below = y_test[:, None] < model.predict(X_test)
    assert below.shape == (2500, 3)
    assert np.abs(below.mean(0) - levels).max() < 0.03
    for half in (X_test[:, 0] < 0, X_test[:, 0] > 0):
        assert np.abs(below[half].mean(0) - levels).max() < 0.05
    width = np.ptp(model.predict(X_test)[:, :2], axis=1)
    assert width[X_test[:, 0] > 0.5].mean() > 2 * width[X_test[:, 0] < -0.5].mean()
    # The score is that of the median.
    median = model.predict(X_test)[:, 2]
    assert model.score(X_test, y_test) == pytest.approx(
        1 - ((y_test - median) ** 2).sum() / ((y_test - y_test.mean()) ** 2).sum()
    )


def test_quantiles_of_several_targets_stand_target_by_target():
    X, _, _ = waves(250)
    noise = np.random.default_rng(1).normal(size=(250, 2))
    y = np.stack([X[:, 0], 100 + 10 * X[:, 1]], 1) + [0.5, 5] * noise
    model = tunnel_regressor(loss="quantile", quantiles=[0.25, 0.5]).fit(X, y)
    said = model.predict(X)
    assert said.shape == (250, 4)
    assert [np.corrcoef(said[:, i], y[:, i // 2])[0, 1] > 0.8 for i in range(4)] == [True] * 4
    assert np.abs((y[:, [0, 0, 1, 1]] < said).mean(0) - [0.25, 0.5, 0.25, 0.5]).max() < 0.1
    assert model.score(X, y) > 0.7


def test_a_score_needs_a_median():
    X, y, _ = waves(50)
    model = tunnel_regressor(loss="quantile", quantiles=(0.1, 0.9), max_epochs=2).fit(X, y)
    with pytest.raises(ValueError, match=r"^score .*quantiles=\(0.1, 0.9\); add 0.5, or use .*$"):
        model.score(X, y)
    alone = tunnel_regressor(loss="quantile", quantiles=(0.9,), max_epochs=2).fit(X, y)
    assert alone.predict(X).shape == (50,) and np.isfinite(alone.score(X, y))


def test_counts_are_not_below_zero():
    X, y, _ = waves(50)
    model = tunnel_regressor(loss="poisson", max_epochs=2)
    for fails in (
        lambda: model.fit(X, y - 1),
        lambda: model.fit(X, y, validation=(X, y - 1)),
        lambda: model.partial_fit(X, y - 1),
        lambda: model.set_params(standardize=False).fit(X, y - 1),
    ):
        with pytest.raises(ValueError, match=r"y holds -1; loss='poisson' needs counts or rates, none below 0\.$"):
            fails()


def test_a_stream_of_counts_knows_the_mean_rate_of_all_rows():
    X, y, _ = waves(250, mean=3.0)
    model = tunnel_regressor(loss="poisson")
    for rows in np.array_split(np.arange(250), 7):
        model.partial_fit(X[rows], y[rows])
    assert np.exp(model._targets_.scaling.mean[0]) == pytest.approx(y.mean())
    assert model._targets_.decode(np.zeros((1, 1)))[0] == pytest.approx(y.mean())
    with pytest.raises(ValueError, match=r"^y has 2 columns; it must have 1, as in the first fit"):
        model.partial_fit(X, np.stack([y, y], 1))


@pytest.mark.parametrize("loss", ["absolute_error", "quantile"])
def test_a_stream_finds_its_middle(loss):
    X, _, y, _ = split("friedman")
    y[::20] += 1e4
    model = tunnel_regressor(loss=loss, quantiles=(0.25, 0.5))
    for rows in np.array_split(np.arange(len(X)), 4):
        model.partial_fit(X[rows], y[rows])
    # The middle of the parts' medians and quartiles, not theirs together: near enough.
    assert np.abs(model._targets_.scaling.mean - np.median(y)).max() < 0.5
    assert np.abs(model._targets_.scaling.scale / (np.subtract(*np.percentile(y, [75, 25])) / 1.349) - 1).max() < 0.2


LOSSES = [loss for loss in losses() if OBJECTIVES[loss].__module__.startswith("meristem.")]  # other tests register their own
OPTIONS = {"quantile": {"quantiles": (0.25, 0.5)}}


@pytest.mark.parametrize("loss", LOSSES)
def test_files_and_onnx_say_the_same(loss, tmp_path):
    X, y, _ = waves(200)
    model = tunnel_regressor(loss=loss, max_epochs=3, **OPTIONS.get(loss, {})).fit(X, y)
    model.save(tmp_path / "model")
    again = meristem.load(tmp_path / "model")
    assert again.get_params() == model.get_params()
    assert (again.predict(X) == model.predict(X)).all() and again.n_parameters_ == model.n_parameters_
    assert (again.partial_fit(X, y).predict(X) == model.partial_fit(X, y).predict(X)).all()
    (said,) = run(model.to_onnx(tmp_path / "model.onnx"), X).values()
    assert said.shape == model.predict(X).shape and np.allclose(said, model.predict(X), rtol=1e-4, atol=1e-5)


Y = np.abs(np.random.default_rng(0).normal(size=(40, 2))).round(1)
WEIGHT = np.random.default_rng(1).integers(0, 3, 40).astype(float)
MEANINGS = {
    "two classes": (Classes(np.array([0, 1])), (Y[:, 0] > 1).astype(int)),
    "classes": (Classes(np.array(["a", "b", "c"])), np.array(["a", "b", "c"])[np.digitize(Y[:, 0], [0.5, 1.2])]),
    "labels": (Labels(2), (Y > 1).astype(int)),
    "numbers": (Numbers.of(Y, WEIGHT, standardize=True), Y),
    "one number": (Numbers.of(Y[:, 0], WEIGHT, standardize=True, objective=AbsoluteError()), Y[:, 0]),
    "with outliers": (Numbers.of(Y, WEIGHT, standardize=True, objective=Huber()), Y),
    "counts": (Counts.of(Y, WEIGHT, standardize=True), Y),
    "quantiles": (Quantiles.of(Y, WEIGHT, standardize=True, objective=Quantile((0.2, 0.5, 0.9))), Y),
}


@pytest.mark.parametrize(("targets", "y"), MEANINGS.values(), ids=MEANINGS)
def test_what_y_means_is_written_and_read(targets, y):
    again, encoded = unpack(*targets.pack()), targets.encode(y)
    assert type(again) is type(targets) and again.objective == targets.objective and again.n_out == targets.n_out
    assert (again.encode(y) == encoded).all() and targets.pack()[0] == again.pack()[0]
    targets.objective.check("y", encoded, targets.n_out)
    outputs = np.random.default_rng(0).normal(size=(40, targets.n_out))
    assert (again.decode(outputs) == targets.decode(outputs)).all()


@pytest.mark.parametrize(("targets", "y"), MEANINGS.values(), ids=MEANINGS)
def test_the_error_of_a_constant_is_the_objectives(targets, y):
    encoded = targets.encode(y)
    best = jnp.asarray(targets.objective.best_constant(encoded, WEIGHT))
    errors = jax.vmap(lambda target: targets.objective.error(best, target))(jnp.asarray(encoded))
    mean = float(WEIGHT @ np.asarray(errors) / WEIGHT.sum())
    assert targets.objective.constant_error(encoded, WEIGHT) == pytest.approx(mean, rel=1e-5)
    assert Objective.constant_error(targets.objective, encoded, WEIGHT) == pytest.approx(mean, rel=1e-5)


@pytest.mark.parametrize("kind", ["numbers", "counts", "quantiles", "classes", "labels", "chance", None])
def test_what_a_file_does_not_say_is_said(kind):
    with pytest.raises(ValueError, match=r"^its ") as caught:
        unpack({"kind": kind}, {})
    assert "\n" not in str(caught.value)


CHECKS = [
    "check_regressors_train",
    "check_regressors_int",
    "check_regressor_multioutput",
    "check_supervised_y_2d",
    "check_fit2d_1sample",
    "check_dict_unchanged",
    "check_fit_idempotent",
    "check_estimators_pickle",
    "check_sample_weights_list",
]


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss == "quantile" or (FACTOR > 1 and loss != "squared_error")])
def test_scikit_learn_is_content(loss):
    """A few of its checks; all of them, for the default loss, in test_sklearn_checks.py."""
    run = []
    model = tunnel_regressor(max_epochs=60, loss=loss, random_state=None)
    for estimator, check in estimator_checks_generator(model):
        name = check.func.__name__
        if name in CHECKS and (loss, name) != ("poisson", "check_regressor_multioutput"):  # it has targets below 0
            check(estimator)
            run.append(name)
    assert len(set(run)) >= len(CHECKS) - 1


def test_poisson_targets_start_at_the_weighted_mean_rate():
    """Outputs of 0 are the mean rate; the relative variance is that of y / rate, 1 for a column without any event."""
    y, weight = np.array([[1.0, 0.0], [3.0, 0.0], [9.0, 0.0]]), np.array([1.0, 1.0, 2.0])
    counts = Counts.of(y, weight, standardize=True)
    rate = (1 + 3 + 2 * 9) / 4
    np.testing.assert_allclose(counts.decode(np.zeros((1, 2))), [[rate, 0.5 / 4]])
    np.testing.assert_allclose(counts.encode(y), y / [rate, 0.5 / 4], rtol=1e-6)
    relative = ((1 / rate - 1) ** 2 + (3 / rate - 1) ** 2 + 2 * (9 / rate - 1) ** 2) / 4
    assert counts.relative_variance == pytest.approx((relative + 1) / 2)
    assert Counts.of(y, weight, standardize=False).relative_variance == counts.relative_variance
