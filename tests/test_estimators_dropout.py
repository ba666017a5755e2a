"""What `input_dropout="auto"` and `l2="auto"` make of the data: of redundant features, of noise, of the rows of a stream."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_diabetes, make_friedman1, make_friedman2, make_friedman3, make_regression

from estimating import programs, split, tunnel, tunnel_regressor
from meristem import load
from meristem.estimators.redundancy import SAMPLE, redundancy

RNG = np.random.default_rng(0)
DIABETES = load_diabetes().data
pytestmark = pytest.mark.filterwarnings("ignore::meristem.GrowthWarning")  # an epoch or two


def by_hand(x):
    """The formula, correlation by correlation."""
    n, d = x.shape
    squares = (np.corrcoef(x, rowvar=False) ** 2).sum()
    return 1 - d / max(d, squares - d * (d - 1) / (n - 1))


def low_rank(rows, features):
    return RNG.normal(size=(rows, 3)) @ RNG.normal(size=(3, features)) + RNG.normal(size=(rows, features))


@pytest.mark.parametrize("shape", [(200, 12), (40, 40), (30, 90)], ids=["long", "square", "wide"])
def test_the_formula(shape):
    x = low_rank(*shape)
    assert 0.3 < redundancy(x) < 0.95
    assert redundancy(x) == pytest.approx(by_hand(x), abs=1e-5)
    assert redundancy(5 - 1e6 * x) == pytest.approx(by_hand(x), abs=1e-5)


def test_diabetes_repeats_itself_and_generated_numbers_do_not():
    assert redundancy(DIABETES) == pytest.approx(0.543, abs=1e-3)
    assert min(redundancy(DIABETES[np.random.default_rng(seed).permutation(442)[:331]]) for seed in range(10)) > 0.51
    for make in (make_friedman1, make_friedman2, make_friedman3):
        assert redundancy(make(375, random_state=0)[0]) < 0.05


@pytest.mark.parametrize("shape", [(112, 200), (50, 500), (10, 100)])
def test_many_features_in_few_rows_are_not_redundant(shape):
    x = make_regression(*shape, random_state=0)[0]
    assert redundancy(x) < 0.1
    assert 1 - shape[1] / (np.corrcoef(x, rowvar=False) ** 2).sum() > 0.6  # what chance alone makes of them


def test_constant_features_are_not_there():
    constant = np.full((442, 5), 1e9) * np.arange(5)
    assert redundancy(np.hstack([constant, DIABETES])) == pytest.approx(redundancy(DIABETES), abs=1e-6)
    assert redundancy(constant) == redundancy(DIABETES[:1]) == redundancy(DIABETES[:, :1]) == 0


def test_rows_of_weight_zero_are_not_there():
    x, _ = make_friedman1(300, random_state=0)
    x[:100] = 1e6  # all features at once
    weight = np.r_[np.zeros(100), np.linspace(0.1, 5, 200)]
    assert redundancy(x) > 0.8 and redundancy(x, weight) == redundancy(x[100:]) < 0.1


def test_a_sample_of_many_rows_says_as_much():
    x = low_rank(3 * SAMPLE, 8)
    assert redundancy(x) == redundancy(x) == pytest.approx(by_hand(x), abs=0.02)


def test_redundant_numbers_are_dropped():
    X, _, y, _ = split("diabetes")
    for form in (X, sparse.csr_array(X)):
        assert tunnel_regressor(max_epochs=1).fit(form, y).input_dropout_ == 0.25
    assert tunnel_regressor(max_epochs=1, standardize=False).fit(X, y).input_dropout_ == 0.25
    assert tunnel_regressor(max_epochs=1, input_dropout=0).fit(X, y).input_dropout_ == 0
    assert tunnel_regressor(max_epochs=1).fit(*make_friedman1(100, random_state=0)).input_dropout_ == 0
    assert tunnel_regressor(max_epochs=1).fit(*make_regression(50, 200, random_state=0)).input_dropout_ == 0


def test_classes_are_dropped_by_the_number_of_features():
    for features, share in ((15, 0.0), (16, 0.25)):
        X = RNG.normal(size=(40, features))
        assert tunnel(max_epochs=1).fit(X, X[:, 0] > 0).input_dropout_ == share


def test_the_first_rows_of_a_stream_decide(tmp_path):
    X, y = DIABETES, load_diabetes().target
    other, z = make_friedman1(100, random_state=0)
    for rows, share in (((X, y), 0.25), ((other, z), 0.0)):
        model = tunnel_regressor().partial_fit(*rows)
        model.save(tmp_path / "model")
        with programs() as compiled:
            for going_on in (model, load(tmp_path / "model")):
                going_on.partial_fit(X[:100], y[:100]).partial_fit(other, z).partial_fit(X[:1], y[:1])
                assert going_on.input_dropout_ == share
        assert compiled.count("jit(epoch)") <= 1  # of an epoch of fewer rows


@pytest.mark.parametrize("standardize", [True, False])
def test_the_prior_of_a_stream_counts_all_rows_so_far(standardize, monkeypatch, tmp_path):
    X, _, y, _ = split("diabetes")
    model = tunnel_regressor(standardize=standardize, max_epochs=1)
    asked = []
    monkeypatch.setattr(type(model), "_auto_l2", lambda self, rows: asked.append(rows) or 1 / rows)
    for rows in np.array_split(np.arange(300), 3):
        model.partial_fit(X[rows], y[rows], np.where(rows % 10, 3.0, 0.0))
    model.save(tmp_path / "model")
    load(tmp_path / "model").partial_fit(X[:7], y[:7])
    model.fit(X, y)
    assert asked == [90, 180, 270, 277, 309] and model.n_samples_seen_ == 309
