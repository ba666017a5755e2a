"""Weights and targets that no one can learn from: one line names the argument, in `fit` and in `score`, of all estimators."""

import warnings

import numpy as np
import pandas
import pytest

import meristem

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3))
Y = {"Classifier": (X[:, 0] > 0).astype(int), "Regressor": X[:, 0]}
SMALL = {"width": 2, "max_epochs": 1, "random_state": 0}
AT_ONCE = {"input_dropout": 0.0, "early_stopping": False}  # no trials, which compile programs of their own
SEARCH = {"penalties": [1e-3], "l2s": [1e-4], "input_dropouts": [0.0], "cv": 2}
NAMES = [
    "TunnelClassifier",
    "TunnelRegressor",
    "BuddingClassifier",
    "HighwayRegressor",
    "TunnelClassifierCV",
    "TunnelRegressorCV",
]
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::meristem.GrowthWarning")


def made(name, **parameters):
    body = {"max_leaves": 2} if "Budding" in name else {"depth": 2}
    return getattr(meristem, name)(**SMALL | body | (SEARCH if name.endswith("CV") else AT_ONCE) | parameters)


def target(name):
    return Y["Classifier" if "Classifier" in name else "Regressor"]


@pytest.fixture(scope="module")
def fitted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: made(name).fit(X, target(name)) for name in NAMES}


def but(value, row=3):
    weight = np.ones(40)
    weight[row] = value
    return weight


@pytest.mark.parametrize(
    ("weight", "said"),
    [
        (but(np.nan), "sample_weight holds nan in row 3; every weight must be a finite number"),
        (but(-1), r"sample_weight holds -1.0 in row 3; every weight"),
        (but(np.inf), "sample_weight holds inf in row 3; every weight"),
        (["a"] * 40, "sample_weight holds 'a' in row 0, which is not a number"),
        ([None] * 40, "sample_weight holds None in row 0, which is not a number"),
        (np.ones(40) * 1j, "sample_weight holds 1j in row 0, which is not a number"),
        (np.ones(39), r"sample_weight has shape \(39,\)"),
        (np.ones((40, 2)), r"sample_weight has shape \(40, 2\)"),
        (np.zeros(40), "sample_weight is 0 for every row"),
    ],
)
def test_a_weight_that_is_none_is_named(fitted, weight, said):
    for name, model in fitted.items():
        for call in (made(name).fit, model.score):
            with pytest.raises(ValueError, match=said) as error:
                call(X, target(name), sample_weight=weight)
            assert "\n" not in str(error.value)


@pytest.mark.parametrize("size", [1e300, 1e-300])
def test_weights_of_any_size_are_as_if_scaled_by_hand(fitted, size):
    weight = rng.integers(1, 9, 40) * 2.0 ** np.round(np.log2(size))
    for name in ("TunnelClassifier", "TunnelRegressor"):
        huge, plain = (made(name).fit(X, target(name), w) for w in (weight, weight / weight.max()))
        np.testing.assert_array_equal(huge.predict(X), plain.predict(X))
        assert fitted[name].score(X, target(name), weight) == fitted[name].score(X, target(name), weight / weight.max())


def test_what_is_lost_beside_a_huge_weight_does_not_count():
    one, alone = (made("TunnelRegressor").fit(X, Y["Regressor"], w) for w in (but(1e300), np.eye(40)[3]))
    np.testing.assert_array_equal(one.predict(X), alone.predict(X))


CLASSES = [
    ([1, "a", None] * 13 + [1], "y holds None in row 2; remove the rows without a label"),
    ([1, "a"] * 20, "y holds"),
    (np.array(["a", np.nan] * 20, object), "y holds nan in row 1; remove the rows"),
    (pandas.array([0, pandas.NA] * 20, dtype="Int64"), "y .*(nan|NaN|NA)"),
    (np.ones(39), "y has 39 rows but X has 40"),
    (3, "y=3 must hold a value for each row"),
    (np.ones(40) * 1j, "y holds 1j. Complex data not supported"),
    (but(np.nan), "[yY] .*(nan|NaN)"),
    (but(np.inf), "[yY] .*inf"),
]
NUMBERS = [
    ([1, "a", None] * 13 + [1], "y holds 'a' in row 1, which is not a number"),
    ([1.5, None] * 20, "y holds None in row 1, which is not a number"),
    (np.ones(39), "y has 39 rows but X has 40"),
    (but(np.nan), "[yY] .*(nan|NaN)"),
    (but(np.inf), "[yY] .*inf"),
]


@pytest.mark.parametrize(
    ("kind", "y", "said"), [*(("Classifier", *case) for case in CLASSES), *(("Regressor", *case) for case in NUMBERS)]
)
def test_a_target_that_is_none_is_named(fitted, kind, y, said):
    for name, model in fitted.items():
        if kind in name:
            for call in (made(name).fit, model.score):
                with pytest.raises(ValueError, match=said) as error:
                    call(X, y)
                assert "\n" not in str(error.value)


def test_labels_of_several_types_are_named_and_those_of_another_type_not_compared(fitted):
    with pytest.raises(ValueError, match="several types: 1 in row 0, 'a' in row 1; make all of them text"):
        made("TunnelClassifier").fit(X, [1, "a"] * 20)
    for y, said in (
        (["a", "b"] * 20, "y holds 'a', but the classes are such as 0"),
        (X[:, 0], "but the classes are such as 0"),
    ):
        with pytest.raises(ValueError, match=said):
            fitted["TunnelClassifierCV"].score(X, y)
    with pytest.raises(ValueError, match="class_weight"):
        made("TunnelClassifier", class_weight=[1, 2]).fit(X, Y["Classifier"])
