"""Intervals and sets: exact coverage over many draws, without training; and those of real fits, their files and commands."""

import csv
import math

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_friedman1

import meristem
from commanding import meristem_here
from meristem.estimators.conformal import ClassScores, HeldOut, NumberScores
from meristem.estimators.estimator_file import pack_search, unpack_search
from meristem.report.scoring import CLASS, NUMBER
from meristem.report.sections import _coverage_text
from meristem.targets import Classes, Numbers

pytestmark = [
    pytest.mark.filterwarnings("ignore::meristem.GrowthWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
QUICK = {"cv": 2, "penalties": [1e-3], "l2s": [1e-4], "input_dropouts": [0.0], "max_width": 8, "depth": 2, "max_epochs": 20}
QUICK |= {"learning_rate": 0.03, "random_state": 0}
X, Y = make_friedman1(300, n_features=5, random_state=0)


def one_network(z, y, outputs):
    """Rows that a single network held out: nothing is averaged."""
    return HeldOut(z, y, outputs[None], np.ones((1, len(y)), bool), 1)


def draws(rng, n):
    """Inputs, and numbers around 0 whose spread depends on the first input."""
    z = rng.normal(size=(n, 2))
    return z, rng.normal(size=n) * np.exp(0.7 * z[:, 0])


@pytest.mark.parametrize("coverage", [0.5, 0.9])
def test_intervals_cover_as_promised_over_many_draws_and_are_wider_where_it_is_difficult(coverage):
    rng, targets = np.random.default_rng(0), Numbers.of(np.array([-1.0, 1.0]), np.ones(2), standardize=False)
    shares, ratios = [], []
    for _ in range(300):
        z, y = draws(rng, 60)
        scores = NumberScores.of(one_network(z, y, np.zeros((60, 1))), targets)
        more, new = draws(rng, 200)
        low, high = scores.bounds(targets, more, np.zeros((200, 1)), coverage).T
        shares.append(((low <= new) & (new <= high)).mean())
        ratios.append((high - low)[more[:, 0] > 0.5].mean() / (high - low)[more[:, 0] < -0.5].mean())
    assert abs(np.mean(shares) - coverage) < 0.012 + 1 / 61 and np.mean(ratios) > 1.5


@pytest.mark.parametrize("coverage", [0.3, 0.6, 0.9])
def test_sets_cover_as_promised_over_many_draws_and_are_empty_only_if_allowed(coverage):
    rng, targets, shares, accuracies = np.random.default_rng(0), Classes(np.arange(4)), [], []

    def classes(n):
        logits = rng.normal(size=(n, 4))
        return logits, (logits + rng.gumbel(size=(n, 4))).argmax(1)

    for _ in range(300):
        logits, y = classes(80)
        scores, (more, new) = ClassScores.of(one_network(logits, y, logits), targets), classes(200)
        members = scores.members(targets.probabilities(more), coverage, allow_empty=False)
        smaller = scores.members(targets.probabilities(more), coverage)
        assert members.any(1).all() and (smaller <= members).all()
        assert (smaller == members).all() or members.sum(1).max() == 1
        shares.append([sets[np.arange(200), new].mean() for sets in (members, smaller)])
        accuracies.append((more.argmax(1) == new).mean())
    least, exact = np.mean(shares, 0)
    assert -0.008 < exact - coverage < 0.008 + 1 / 81
    assert abs(least - max(coverage, np.mean(accuracies))) < 0.008 + 1 / 81


def test_the_rank_has_the_correction_for_finite_samples():
    scores = ClassScores(np.arange(1, 10) / 10)
    assert scores.quantile(0.5) == 0.5 and scores.quantile(0.9) == 0.9 and scores.quantile(1e-6) == 0.1
    with pytest.raises(ValueError, match=r"coverage=0.91 needs 11 held-out rows, and the search had 9 rows"):
        scores.quantile(0.91)


@pytest.mark.parametrize("wrong", [0, 1, -0.1, math.nan, "much", None, True])
def test_a_coverage_is_a_share(wrong):
    with pytest.raises(ValueError, match=r"coverage=.* must be a number above 0 and below 1"):
        ClassScores(np.zeros(9)).quantile(wrong)


def test_a_bag_is_credited_with_what_averaging_gains():
    """Five networks that err independently: the mean of five has residuals of a fifth of the variance, and so have scores."""
    rng, n = np.random.default_rng(0), 5000
    y = 100 * rng.normal(size=n)
    outputs = y[:, None] + rng.normal(size=(5, n, 1))
    is_held_out = np.arange(5)[:, None] == np.arange(n) % 5
    targets = Numbers.of(np.array([-1.0, 1.0]), np.ones(2), standardize=False)
    z = np.zeros((n, 1))
    for averaged, spread in ((1, 1.0), (5, math.sqrt(0.2))):
        scores = NumberScores.of(HeldOut(z, y, outputs, is_held_out, averaged), targets)
        low, high = scores.bounds(targets, z[:1], np.zeros((1, 1)), 0.9)[0]
        assert high == -low and high == pytest.approx(1.645 * spread, rel=0.1)


def test_difficulty_is_never_zero_where_predictions_are_exact():
    targets = Numbers.of(np.array([-1.0, 1.0]), np.ones(2), standardize=False)
    scores = NumberScores.of(one_network(np.ones((20, 1)), np.ones(20), np.ones((20, 1))), targets)
    assert (scores.difficulty(np.ones((3, 1)), np.ones((3, 1))) > 0).all()
    np.testing.assert_array_equal(scores.bounds(targets, np.ones((1, 1)), np.ones((1, 1)), 0.9), [[1.0, 1.0]])


@pytest.fixture(scope="module")
def regressor():
    return meristem.TunnelRegressorCV(**QUICK).fit(X[:200], Y[:200])


def test_a_fit_covers_new_rows_and_its_file_says_the_same(regressor, tmp_path):
    bounds, (low, high) = regressor.predict_interval(X, 0.9), regressor.predict_interval(X[200:]).T
    assert 0.8 < ((low <= Y[200:]) & (Y[200:] <= high)).mean() < 0.98
    np.testing.assert_allclose(bounds.mean(1), regressor.predict(X))
    assert (np.diff(regressor.predict_interval(X, 0.5)) < np.diff(bounds)).all()
    regressor.save(tmp_path / "model")
    np.testing.assert_array_equal(meristem.load(tmp_path / "model").predict_interval(X), bounds)


def test_an_old_file_loads_and_a_wrong_one_is_refused(regressor, tmp_path):
    header, arrays = pack_search(regressor)
    old = unpack_search(header, {name: array for name, array in arrays.items() if not name.startswith("scores.")})
    np.testing.assert_array_equal(old.predict(X), regressor.predict(X))
    with pytest.raises(ValueError, match="earlier version and has no intervals or sets; fit it again"):
        old.predict_interval(X)
    for name, wrong in (("scores", arrays["scores.scores"][:, ::-1]), ("limits", arrays["scores.limits"] * np.nan)):
        with pytest.raises(ValueError, match="of its intervals"):
            unpack_search(header, arrays | {f"scores.{name}": wrong})


def test_several_columns_one_network_and_counts():
    both = np.stack([Y, 10 * Y], 1)[:100]
    bounds = meristem.TunnelRegressorCV(**QUICK, refit="one").fit(X[:100], both).predict_interval(X[:7], 0.8)
    assert bounds.shape == (7, 2, 2) and (bounds[..., 0] < bounds[..., 1]).all()
    counts = np.random.default_rng(0).poisson(0.5, 100)
    assert (meristem.TunnelRegressorCV(**QUICK, loss="poisson").fit(X[:100], counts).predict_interval(X)[:, 0] >= 0).all()


def test_sets_of_classes(tmp_path):
    x, y = load_iris(return_X_y=True)
    model = meristem.TunnelClassifierCV(**QUICK).fit(x[::2], np.array(["a", "b", "c"])[y[::2]])
    small, large = model.predict_set(x, 0.5), model.predict_set(x, 0.97)
    assert small.dtype == bool and small.shape == (150, 3) and (small <= large).all()
    never_empty = model.predict_set(x, 0.5, allow_empty=False)
    assert never_empty.any(1).all() and (small <= never_empty).all() and not small.any(1).all()
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(meristem.load(tmp_path / "model").predict_set(x, 0.97), large)


def test_models_that_have_none_say_so():
    small = {"max_epochs": 2, "max_width": 4, "depth": 1, "random_state": 0}
    with pytest.raises(ValueError, match=r"A TunnelRegressor holds out no rows, .* fit a TunnelRegressorCV"):
        meristem.TunnelRegressor(**small).fit(X[:40], Y[:40]).predict_interval(X)
    labels = (X[:40, :2] > 0.5).astype(int)
    with pytest.raises(ValueError, match="predicts labels, which have no prediction sets"):
        meristem.TunnelClassifierCV(**QUICK | small).fit(X[:40], labels).predict_set(X)
    quantile = meristem.TunnelRegressorCV(**QUICK | small, loss="quantile").fit(X[:40], Y[:40])
    with pytest.raises(ValueError, match="loss='quantile', whose predictions are quantiles"):
        quantile.predict_interval(X)


def test_the_report_says_why_sets_are_empty():
    (line,) = _coverage_text((0.9, 0.93), CLASS)
    assert line.endswith("have an empty set.")
    for coverage, task in (((0.9, 1.6), CLASS), ((0.9, 0.5), NUMBER)):
        assert "empty" not in _coverage_text(coverage, task)[0]


def test_tables_the_command_and_the_report(tmp_path):
    table = {"a": X[:, 0], "b": X[:, 3], "lower": ["x", "y"] * 150, "y": Y}
    number = meristem.fit_table(table, target="y", refit="bag", **QUICK)
    label = meristem.fit_table(table | {"y": np.where(Y > 14, "high", "low")}, target="y", refit="bag", **QUICK)
    with pytest.raises(ValueError, match="The target 'y' is a class"):
        label.predict_interval(table)
    with pytest.raises(ValueError, match="The target 'y' is a number"):
        number.predict_set(table)
    rows = [*zip(*(map(str, np.asarray(values)[:9].tolist()) for values in table.values()), strict=True)]
    (tmp_path / "new.csv").write_text("\n".join(map(",".join, [tuple(table), *rows])))
    for name, model in (("number", number), ("label", label)):
        model.save(tmp_path / name)
        done = meristem_here("predict", tmp_path / name, tmp_path / "new.csv", "--coverage", "0.9", "--keep", "lower")
        assert done.returncode == 0, done.stderr
        lines = list(csv.DictReader(done.stdout.splitlines()))
        first = {column: values[:9] for column, values in table.items()}
        if name == "number":
            written = [[float(line["lower (predicted)"]), float(line["upper"])] for line in lines]
            np.testing.assert_allclose(written, number.predict_interval(first), rtol=1e-6)
            assert next(iter(lines[0])) == "lower"
        else:
            sets = [" | ".join(label.classes[members]) for members in label.predict_set(first)]
            assert [line["set"] for line in lines] == sets
        page = model.report(tmp_path / "report.html").read_text()
        assert f"Its 90 % prediction {'intervals' if name == 'number' else 'sets'} hold the true value in" in page
    wrong = meristem_here("predict", tmp_path / "number", tmp_path / "new.csv", "--coverage", "1.5")
    assert wrong.returncode == 2 and "--coverage=1.5 must be a number above 0 and below 1" in wrong.stderr
