"""What columns become: gaps that are filled and said, outliers that ruin nothing, in streams, files and exports too."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_iris

import meristem
from exporting import run, run_torch
from meristem.inputs.preprocessor import LIMIT, Preprocessor, n_numbers
from meristem.targets import Scaling

pytestmark = [
    pytest.mark.filterwarnings("ignore::meristem.GrowthWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
SMALL = {"width": 16, "depth": 2, "max_epochs": 40, "settle": False, "learning_rate": 1e-2, "random_state": 0}


def table(rows=400, seed=0):
    return np.random.default_rng(seed).normal(size=(rows, 4)) * [1, 10, 0.1, 1000] + [0, 5, -3, 1e4]


@pytest.fixture(scope="module")
def gappy():
    """Rows of iris in which two columns have gaps, and a model of them."""
    X, y = load_iris(return_X_y=True)
    X, rng = X.copy(), np.random.default_rng(0)
    for column in (1, 3):
        X[rng.random(150) < 0.2, column] = np.nan
    return X, y, meristem.TunnelClassifier(**SMALL).fit(X, y)


def test_what_is_usual_is_standardized_and_nothing_else():
    x = table()
    x[0] = [30, 5, -3, 1e4]  # thirty standard deviations out, and inside the fence it is not
    usual = np.abs((x - x[1:].mean(0)) / x[1:].std(0)).max(1) < LIMIT
    columns = Preprocessor.of(x[1:])
    np.testing.assert_allclose(columns(x)[usual], Scaling.of(x[1:])(x)[usual], rtol=1e-6)
    assert 7.9 < columns(x)[0, 0] <= 2 * LIMIT


def test_an_outlier_ruins_neither_the_scale_nor_what_is_said_of_it():
    x = table()
    spoilt = np.concatenate([x, [[1e12, 5, -3, -1e15]]])
    clean, learned = Preprocessor.of(x), Preprocessor.of(spoilt)
    np.testing.assert_allclose(learned.scaling.scale, clean.scaling.scale, rtol=0.01)
    assert np.abs(learned(spoilt)).max() <= 2 * LIMIT
    y = x[:, 0] + 0.1 * x[:, 1]
    model = meristem.TunnelRegressor(**SMALL).fit(spoilt, np.append(y, 0.0))
    assert model.score(x, y) > 0.95
    assert np.abs(model.predict([[1e300, 5, -3, 1e4]]) - y.mean()).max() < 20 * y.std()
    search = {"penalties": [1e-3], "l2s": [1e-4], "input_dropouts": [0.0], "cv": 2}
    assert meristem.TunnelRegressorCV(**SMALL, **search).fit(spoilt, np.append(y, 0.0)).score(x, y) > 0.95


def test_a_column_that_is_mostly_one_value_keeps_what_is_rare():
    x = np.zeros((1000, 2))
    x[:5, 0] = 1
    x[:, 1] = np.arange(1000) % 2
    learned = Preprocessor.of(x)
    np.testing.assert_allclose(learned.scaling.scale, x.std(0))
    assert learned(x)[0, 0] > LIMIT


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix], ids=["dense", "sparse"])
def test_gaps_are_filled_with_the_mean_and_are_inputs_themselves(form):
    x = np.array([[1.0, np.nan, 0.0], [2.0, 4.0, 0.0], [3.0, 6.0, 1.0], [np.nan, 5.0, 1.0]])
    columns = Preprocessor.of(form(x))
    assert columns.gaps.tolist() == [0, 1] and columns.n_inputs == 5
    z = columns(form(x))
    assert z[3, 0] == z[0, 1] == 0, "the mean"
    np.testing.assert_allclose(z[:, 3], (np.array([0, 0, 0, 1]) - 0.25) / np.sqrt(0.25 * 0.75), rtol=1e-6)
    unseen = columns(form(np.array([[1.0, 5.0, np.nan]])))
    assert unseen[0, 2] == 0 and np.isfinite(unseen).all(), "a gap where there was none"
    plain = Preprocessor.of(form(x), standardize=False)
    np.testing.assert_allclose(plain(form(x))[3], [2, 5, 1, 1, 0])


def test_weights_are_numbers_of_rows_and_rows_of_weight_zero_do_not_count():
    x = table(50)
    x[3, 1] = np.nan
    weight = np.random.default_rng(1).integers(0, 4, 50)
    weight[3] = 0
    weighted, repeated = Preprocessor.of(x, weight), Preprocessor.of(np.repeat(x, weight, axis=0))
    assert weighted.gaps.tolist() == repeated.gaps.tolist() == []
    np.testing.assert_allclose(weighted.scaling.mean, repeated.scaling.mean)
    np.testing.assert_allclose(weighted.scaling.variance, repeated.scaling.variance)


def test_a_stream_is_scaled_as_all_of_its_rows():
    x = table()
    x[::9, 2] = np.nan
    streamed, whole = Preprocessor.of(x[:90]).with_more(x[90:]), Preprocessor.of(x)
    np.testing.assert_allclose(streamed(x), whole(x), atol=0.01)
    rows, y = load_iris(return_X_y=True)
    model = meristem.TunnelClassifier(**SMALL).partial_fit(rows, y, classes=[0, 1, 2])
    rows = rows.copy()
    rows[:, 0] = np.nan
    assert model.partial_fit(rows, y).predict(rows).shape == (150,), "gaps that come later"


def test_columns_come_back_from_a_file_and_forged_ones_are_refused():
    x = table()
    x[::9, 2] = np.nan
    columns = Preprocessor.of(x)
    np.testing.assert_array_equal(Preprocessor.unpack(columns.pack())(x), columns(x))
    for name, value in [("gaps", [7.0]), ("gaps", []), ("limit", [-1.0]), ("fill", [0.0]), ("limit", [np.nan])]:
        with pytest.raises(ValueError, match="inconsistent"):
            Preprocessor.unpack(columns.pack() | {name: np.array(value)})


def test_an_estimator_learns_from_gaps_and_says_so(gappy):
    X, y, model = gappy
    assert model.score(X, y) > 0.9 and model.n_features_in_ == 4
    assert model.network_.embed.weight.shape[1] == 6, "two of its inputs say where there were gaps"
    assert (model.predict(np.full((1, 4), np.nan)) >= 0).all()
    with pytest.raises(ValueError, match="infinity"):
        model.predict(np.full((1, 4), np.inf))
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcd"))
    chosen = meristem.TunnelClassifier(**SMALL, feature_gates=True).fit(frame, y).selected_features_
    assert set(chosen) <= set("abcd")


def test_files_and_exports_know_about_gaps_and_outliers(gappy, tmp_path, torch):
    X, _, model = gappy
    X = np.concatenate([X, [[1e30, np.nan, -1e30, np.nan]]]).astype(np.float32)
    said = model.predict_proba(X)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(meristem.load(tmp_path / "model").predict_proba(X), said)
    np.testing.assert_allclose(run(model.to_onnx(tmp_path / "model.onnx"), X)["probabilities"], said, atol=1e-5)
    np.testing.assert_allclose(run_torch(torch, model.to_torch(), X), said, atol=1e-5)


def test_a_gap_tells_where_that_is_what_matters():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), rng.integers(0, 2, 300)
    X[y == 1, 0] = np.where(rng.random((y == 1).sum()) < 0.8, np.nan, X[y == 1, 0])
    assert meristem.TunnelClassifier(**SMALL).fit(X, y).score(X, y) > 0.85


def test_indicators_are_not_dropped():
    rng = np.random.default_rng(0)
    indicators, numbers = rng.integers(0, 2, (60, 30)).astype(float), rng.normal(size=(60, 16))
    assert n_numbers(indicators) == 0 and n_numbers(np.concatenate([indicators, numbers], 1)) == 16
    assert n_numbers(scipy.sparse.csr_matrix(indicators)) == 0
    y, short = rng.integers(0, 2, 60), SMALL | {"max_epochs": 1}
    assert meristem.TunnelClassifier(**short).fit(indicators, y).input_dropout_ == 0


@pytest.mark.parametrize(("kind", "dropped"), [("product", 0), ("copies", 0.25)])
def test_rows_held_out_say_whether_numbers_are_dropped(kind, dropped):
    """A product of two columns is gone with either; of many noisy copies of one number each is better not relied on."""
    rng = np.random.default_rng(0)
    if kind == "product":
        X = rng.normal(size=(400, 16))
        y = X[:, 0] * X[:, 1] > 0
    else:
        truth = rng.normal(size=120)
        X, y = truth[:, None] + 3 * rng.normal(size=(120, 60)), truth > 0
    model = meristem.TunnelClassifier(**SMALL | {"learning_rate": 0.01, "max_epochs": 60}).fit(X, y)
    assert model.input_dropout_ == dropped
