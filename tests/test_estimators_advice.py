"""What a person is told: warnings with a reason and a remedy, each provoked, and errors of one line for what does not fit."""

import warnings

import numpy as np
import pytest

import meristem
from estimating import iris, tunnel, tunnel_regressor
from meristem import GrowthWarning
from meristem.data.spirals import two_spirals
from meristem.train.loop import DivergedError


def spirals():
    X, y = two_spirals("difficult")
    return np.asarray(X), np.asarray(y)


def told(model):
    """The warnings of a fit."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(*spirals())
    assert all(w.category is GrowthWarning for w in caught)
    return [str(w.message) for w in caught]


def test_nothing_grew_although_the_fit_is_poor():
    (text,) = told(tunnel(penalty=1e3, max_epochs=20))
    assert "The fit is poor (training error 0." in text and "no unit opened: lower penalty" in text
    (text,) = told(meristem.BuddingClassifier(width=2, penalty=1e3, max_epochs=20, random_state=0))
    assert "The fit is poor" in text and "still a single layer: lower penalty" in text


def test_nothing_is_said_of_a_good_fit_that_needs_no_growth(recwarn):
    X, y = iris()
    model = tunnel(penalty=1e3, max_epochs=60).fit(X, y)
    assert model.hard_size_ == 0 and model.n_live_units_ == 0 and model.score(X, y) > 0.9
    constant = tunnel_regressor(max_epochs=30).fit(X, np.full(150, 5.0))
    assert np.allclose(constant.predict(X), 5, atol=0.3)
    assert len(recwarn) == 0


def test_everything_is_open():
    (text,) = told(tunnel(width=1, depth=1, penalty=0.0, learning_rate=0.05, max_epochs=200))
    assert "100% of the units are open" in text and "more room (width, depth), or raise penalty" in text


def test_a_tree_has_all_of_its_leaves():
    (text,) = told(meristem.BuddingClassifier(width=4, max_leaves=1, penalty=0.0, max_epochs=30, random_state=0))
    assert text == "The tree has all of its 1 leaves and wanted more: raise max_leaves, or raise penalty."
    (text,) = told(meristem.BuddingClassifier(width=4, max_leaves=2, penalty=0.0, max_epochs=60, random_state=0))
    assert "all of its 2 leaves" in text


def test_a_fit_that_breaks_later_keeps_its_best_epoch():
    X, y = iris()
    model = tunnel_regressor(standardize=False, learning_rate=1e4, max_epochs=60)
    with pytest.warns(GrowthWarning, match="The loss turned non-finite in epoch .* Try learning_rate="):
        model.fit(X, 1e18 * y)  # close to what single precision can square
    assert model.best_epoch_ < model.n_iter_ < 60 and not np.isfinite(model.history_["loss"][-1])
    assert np.isfinite(model.predict(X)).all() and np.isfinite(model.soft_size_)


def test_a_fit_that_breaks_at_once_leaves_what_was_there():
    X, y = iris()
    model = tunnel_regressor(max_epochs=50, warm_start=True).fit(X, y)
    before = model.predict(X)
    with pytest.raises(DivergedError, match="Try learning_rate="):
        model.set_params(learning_rate=1e38).fit(X, y)
    assert (model.predict(X) == before).all()


BAD = [
    ("penalty", -1, "a number of at least 0"),
    ("penalty", "high", "a number of at least 0"),
    ("penalty", float("nan"), "a number of at least 0"),
    ("width", 0, "an integer of at least 1"),
    ("width", 2.5, "an integer of at least 1"),
    ("depth", 0, "an integer of at least 1"),
    ("learning_rate", 0.0, "a number above 0"),
    ("learning_rate", np.inf, "a number above 0"),
    ("batch_size", 0, "an integer of at least 1"),
    ("l2", -0.1, "a number of at least 0"),
    ("l2", "some", "a number of at least 0, or 'auto'"),
    ("input_dropout", 1.0, "a number of at least 0 and below 1, or 'auto'"),
    ("input_dropout", "some", "a number of at least 0 and below 1, or 'auto'"),
    ("depth_decay", 0, "a number above 0 and at most 1"),
    ("activation", "rely", "not known. Did you mean 'relu'?"),
    ("activation", 3, "must be a name, such as 'relu'"),
    ("max_epochs", 0, "an integer of at least 1"),
    ("patience", None, "an integer of at least 1"),
    ("early_stopping", "yes", "True or False"),
    ("validation_fraction", 1, "a number above 0 and below 1"),
    ("standardize", None, "True or False"),
    ("warm_start", "no", "True or False"),
    ("random_state", "chance", "None, a whole number"),
    ("random_state", -1, "None, a whole number"),
    ("device", "cup", "not known. Did you mean 'cpu'?"),
    ("device", "tpu", "JAX sees none here, only cpu"),
    ("device", "cpu:99", "Choose one of: cpu"),
    ("device", 0, "Choose one of: cpu"),
    ("callbacks", "print", "a function that takes the epoch's info, or a list of such functions"),
    ("callbacks", [print, 3], "a function that takes the epoch's info, or a list of such functions"),
    ("verbose", "loud", "True or False"),
    ("class_weight", "heavy", "None, 'balanced' or a dictionary"),
]


@pytest.mark.parametrize(("name", "value", "wanted"), BAD)
def test_a_parameter_that_does_not_fit_is_named_in_one_line(name, value, wanted):
    X, y = iris()
    for fit in (tunnel(**{name: value}).fit, tunnel(**{name: value}).partial_fit):
        with pytest.raises(ValueError) as caught:
            fit(X, y, **{"classes": [0, 1, 2]} if fit.__name__ == "partial_fit" else {})
        message = str(caught.value)
        assert message.startswith(f"{name}={value!r}") and wanted in message and "\n" not in message


def test_max_leaves_is_a_size():
    X, y = iris()
    with pytest.raises(ValueError, match=r"^max_leaves=0 must be an integer of at least 1"):
        meristem.BuddingRegressor(max_leaves=0).fit(X, y)


@pytest.mark.parametrize(
    ("validation", "wanted"),
    [
        (np.zeros((3, 4)), r"^validation is a ndarray; it must be a pair \(X, y\)"),
        ((np.zeros((3, 4)),), r"^validation is a tuple; it must be a pair \(X, y\)"),
        ((np.zeros((3, 5)), np.zeros(3)), r"^validation=\(X, y\) does not fit: X has 5 features, but .* is expecting 4"),
        (
            (np.zeros((3, 4)), np.zeros(2)),
            r"^validation=\(X, y\) does not fit: Found input variables with inconsistent numbers",
        ),
        (
            (np.zeros((3, 4)), np.full(3, 9)),
            r"^validation=\(X, y\) does not fit: y holds .*9.*, which is not among the classes",
        ),
        ((np.full((3, 4), np.nan), np.zeros(3)), r"^validation=\(X, y\) does not fit: Input X contains NaN"),
    ],
)
def test_a_validation_set_that_does_not_fit(validation, wanted):
    with pytest.raises(ValueError, match=wanted):
        tunnel().fit(*iris(), validation=validation)


def test_a_validation_set_has_as_many_numbers():
    X, y = iris()
    with pytest.raises(ValueError, match=r"does not fit: y has 2 columns; it must have 1"):
        tunnel_regressor().fit(X, y, validation=(X, X[:, :2]))


@pytest.mark.parametrize("model", [tunnel(), tunnel_regressor()])
def test_compacting_what_is_not_fitted(model):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        model.compact()
