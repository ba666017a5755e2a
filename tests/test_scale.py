"""Numbers of any size: scaled by hand or not, the result is the same, or one line says why not; what diverged is said."""

import json
import warnings

import numpy as np
import pytest
from sklearn.datasets import make_friedman1

import meristem
from commanding import meristem_here
from exporting import run
from meristem.compact import CompactNetwork
from meristem.inputs import Inputs, Preprocessor
from meristem.layers.layer import Affine
from meristem.targets import Scaling

X, y = make_friedman1(100, random_state=0)
SMALL = {"width": 8, "depth": 2, "max_epochs": 8, "early_stopping": False, "settle": False, "random_state": 0}
SIZES = [2.0**-498, 2.0**-43, 2.0**43, 2.0**498]  # 1e-150, 1e-13, 1e13, 1e150; by powers of two no digit changes
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def model(**parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", meristem.GrowthWarning)
        return meristem.TunnelRegressor(**SMALL | parameters)


@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
def test_targets_of_any_size_are_as_if_scaled_by_hand(loss):
    plain = model(loss=loss).fit(X, y).predict(X)
    for size in SIZES:
        np.testing.assert_allclose(model(loss=loss).fit(X, size * y).predict(X) / size, plain, rtol=1e-3, err_msg=f"{size:g}")


def test_columns_of_any_size_are_as_if_scaled_by_hand():
    x = np.where(X < 0.05, np.nan, X)
    plain = Preprocessor.of(x)(x)
    for size in SIZES:
        np.testing.assert_array_equal(Preprocessor.of(size * x)(size * x), plain, err_msg=f"{size:g}")
    sizes = np.resize([1.0, *SIZES], X.shape[1])
    np.testing.assert_array_equal(model().fit(sizes * X, y).predict(sizes * X), model().fit(X, y).predict(X))


def test_a_constant_column_is_nothing_whatever_its_size():
    for value in (0.0, 1e-150, 0.1, 1e150):
        column = np.full((50, 1), value)
        np.testing.assert_allclose(Preprocessor.of(column)(column), 0, atol=1e-2)


def test_a_row_that_does_not_count_may_be_of_any_size():
    weight = np.append(np.ones(100), 0)
    scaling = Scaling.of(np.append(y, 1e300)[:, None], weight)
    np.testing.assert_array_equal(scaling.variance, Scaling.of(y[:, None]).variance)


@pytest.mark.parametrize(
    ("x_size", "y_size", "parameters", "said"),
    [
        (1, 1e155, {}, "y holds 2.6.e.156, whose square no float holds; divide y"),
        (1, 1e-170, {}, "y varies by .*e-169, whose square no float holds; multiply y"),
        (1e200, 1, {}, "X holds numbers in column 0 whose squares no float holds; divide"),
        (1, 1e150, {"standardize": False}, "y holds 2.6.e.151, .*single precision; .*standardize=True"),
        (1e150, 1, {"standardize": False}, "X holds a number in row 0, column 0 that single precision cannot hold"),
        (1, 1e300, {"loss": "huber"}, "y holds .*, whose square no float holds"),
    ],
)
def test_what_no_float_holds_is_said(x_size, y_size, parameters, said):
    with pytest.raises(ValueError, match=said) as error:
        model(**parameters).fit(x_size * X, y_size * y)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("size", [1e-100, 1e38, 1e100])
def test_numbers_that_single_precision_cannot_hold_are_exported_in_double(tmp_path, size):
    regressor = model().fit(X, size * y)
    predictions = run(regressor.to_onnx(tmp_path / "model.onnx"), X)["predictions"]
    assert predictions.dtype == np.float64
    np.testing.assert_allclose(predictions, regressor.predict(X), rtol=0, atol=1e-5 * size * y.std())


def test_a_regressor_that_diverged_says_so():
    with pytest.warns(meristem.GrowthWarning, match="The training diverged: the error of its best model is .*learning_rate"):
        model(learning_rate=1e3).fit(X, y)
    with pytest.raises(ArithmeticError, match=r"no epoch was finite.*stays unfitted"):
        model(learning_rate=1e30).fit(X, y)
    search = {"penalties": [1e-3], "l2s": [1e-4], "input_dropouts": [0.0], "cv": 2}
    own = {name: value for name, value in SMALL.items() if name != "early_stopping"}
    with pytest.raises(ArithmeticError, match="non-finite in every fold"):
        meristem.TunnelRegressorCV(**own | search | {"learning_rate": 1e30}).fit(X, y)


def test_a_prediction_that_is_no_number_is_said():
    regressor = model().fit(X, y)
    regressor._compact_ = CompactNetwork((Affine(np.full((1, 10), 1e300), None),))
    wide = Scaling(1.0, np.zeros(10), np.full(10, 1e-20))
    regressor._inputs_ = Inputs(Preprocessor(wide, np.zeros(10), np.zeros(0, int), np.inf))
    with np.errstate(over="ignore"), pytest.warns(RuntimeWarning, match=r"no finite prediction for .* of 100 rows"):
        regressor.predict(1e10 * X)


@pytest.mark.parametrize("more", [[], ["--penalties", 2]])
def test_a_study_that_diverged_says_so(tmp_path, more):
    study = ("reproduce", "two-spirals", "--task", "easy", "--models", "tunnel", "--seeds", 1, "--max-epochs", 2)
    done = meristem_here(*study, *more, "--rate", 1e30, "--out", tmp_path)
    assert done.returncode == 3
    assert "no epoch was good, none is kept" in done.stderr
    assert "1 of 1 runs diverged" in done.stderr and "tunnel on easy with seed 0" in done.stderr
    assert "nan" not in done.stdout
    text = (tmp_path / "summary.json").read_text()
    (run,) = json.loads(text, parse_constant=pytest.fail)["runs"]
    assert (run["best_epoch"], run["soft_size"], run["train_error"], run["n_parameters"]) == (0, None, None, None)
    again = meristem_here("figures", tmp_path)
    assert (again.returncode, again.stderr.count("\n")) == (2, 1)
    assert "no run with a good epoch" in again.stderr


def test_of_a_study_what_is_good_is_drawn(tmp_path):
    study = ("reproduce", "two-spirals", "--task", "easy", "--models", "tunnel", "--seeds", 1, "--max-epochs", 2)
    done = meristem_here(*study, "--rate", "1e30,1e-3", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "tried.png").is_file()
    json.loads((tmp_path / "summary.json").read_text(), parse_constant=pytest.fail)
