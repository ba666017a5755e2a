"""What a person is told: warnings with a reason and a remedy, each provoked, and errors of one line for what does not fit."""

import warnings

import numpy as np
import pandas
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import meristem
from estimating import SMALL, iris, tunnel, tunnel_regressor
from meristem import GrowthWarning
from meristem.data.spirals import two_spirals
from meristem.train.loop import DivergedError


def spirals():
    X, y = two_spirals("difficult")
    return np.asarray(X), np.asarray(y)


def warnings_of(model):
    """The warnings of a fit."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(*spirals())
    assert all(w.category is GrowthWarning for w in caught)
    return [str(w.message) for w in caught]


def test_nothing_grew_although_the_fit_is_poor():
    (text,) = warnings_of(tunnel(penalty=1e3, max_epochs=20))
    assert "The fit is poor (training error 0." in text and "no unit opened: lower penalty" in text
    (text,) = warnings_of(meristem.BuddingClassifier(**SMALL, max_leaves=2, penalty=1e3, max_epochs=20))
    assert "The fit is poor" in text and "still a single layer: lower penalty" in text


def test_units_that_are_open_by_a_hair_are_not_said_to_be_closed():
    with pytest.warns(GrowthWarning, match="The fit is poor") as caught:
        model = tunnel(max_epochs=2).fit(*iris())
    gates = np.asarray(model.network_.body.gate.value)
    assert 0 < gates.max() < 0.05
    assert f", and of {(gates > 0).sum()} open units none is open by more than {gates.max():.2g}: lower" in str(
        caught[0].message
    )


def test_nothing_is_said_of_a_good_fit_that_needs_no_growth(recwarn):
    X, y = iris()
    model = tunnel(penalty=1e3).fit(X, y)
    assert model.hard_size_ == 0 and model.n_live_units_ == 0 and model.score(X, y) > 0.9
    constant = tunnel_regressor().fit(X, np.full(150, 5.0))
    assert np.allclose(constant.predict(X), 5, atol=0.3)
    assert len(recwarn) == 0


def test_everything_is_open():
    (text,) = warnings_of(tunnel(width=1, depth=1, penalty=0.0, l2=1e-5, learning_rate=0.05, max_epochs=200))
    assert "100% of the units are open" in text and "more room (width, depth), or raise penalty" in text


def test_a_tree_has_all_of_its_leaves():
    (text,) = warnings_of(meristem.BuddingClassifier(**SMALL, max_leaves=1, penalty=0.0, max_epochs=30))
    assert text == "The tree has all of its 1 leaves and wanted more: raise max_leaves, or raise penalty."
    (text,) = warnings_of(meristem.BuddingClassifier(**SMALL, max_leaves=2, penalty=0.0, max_epochs=60))
    assert "all of its 2 leaves" in text


def test_a_fit_that_breaks_later_keeps_its_best_epoch():
    X, y = iris()
    model = tunnel_regressor(standardize=False, learning_rate=7e3, max_epochs=60, early_stopping=False)
    with pytest.warns(GrowthWarning, match="The loss turned non-finite in epoch .* Try learning_rate="):
        model.fit(X, 3e17 * y)  # close to what single precision can square
    assert model.best_epoch_ < model.n_iter_ < 60 and not np.isfinite(model.history_["loss"][-1])
    assert np.isfinite(model.predict(X)).all() and np.isfinite(model.soft_size_)


def test_a_fit_that_breaks_at_once_leaves_what_was_there():
    X, y = iris()
    model = tunnel_regressor(warm_start=True).fit(X, y)
    before = model.predict(X)
    for warm, features in ((True, X), (False, X[:, :2])):
        model.set_params(learning_rate=1e38, warm_start=warm)
        with pytest.raises(DivergedError, match=r"Try learning_rate=.* The TunnelRegressor is as it was before\.$"):
            model.fit(features, y)
        assert (model.predict(X) == before).all() and model.n_features_in_ == 4


def test_a_first_fit_that_breaks_at_once_leaves_the_estimator_unfitted():
    model = tunnel_regressor(learning_rate=1e38)
    with pytest.raises(
        DivergedError, match=r"in epoch 1 .*Try learning_rate=.* The TunnelRegressor stays unfitted\.$"
    ) as caught:
        model.fit(*iris())
    assert "\n" not in str(caught.value)
    with pytest.raises(NotFittedError):
        model.predict(iris()[0])
    assert not hasattr(model, "n_features_in_")


def unfinished(model, X, y):
    """The lines that say that training ended early."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert all(w.category in (ConvergenceWarning, GrowthWarning) for w in caught)
    return [str(w.message) for w in caught if w.category is ConvergenceWarning]


def test_training_that_ends_while_the_loss_falls():
    X, y = iris()
    (text,) = unfinished(tunnel(max_epochs=20), X, y)
    assert "at max_epochs=20 while the loss was still falling, in the last 10 epochs by " in text and text.endswith(
        "raise max_epochs."
    )


def test_nothing_is_said_of_training_that_ends_as_it_should():
    X, y = iris()
    assert unfinished(tunnel(), X, y) == []  # it creeps on, by less than is of any use
    assert unfinished(tunnel(patience=1, max_epochs=1000), X, y) == []  # it stopped by itself
    assert unfinished(tunnel(max_epochs=20, callbacks=lambda info: info["epoch"] == 15), X, y) == []  # a person stopped it
    assert unfinished(tunnel(max_epochs=2), X, y) == []  # too short to say anything


def test_text_among_the_features_is_named_with_what_to_do():
    X, y = iris()
    frame = pandas.DataFrame(X, columns=["a", "b", "c", "d"]).astype({"b": object, "c": object})
    frame["b"] = frame["b"].astype(str)  # numbers as texts are numbers
    frame.loc[7, "c"] = "wide"
    model = tunnel(max_epochs=10)
    for fails, named in ((lambda: model.fit(frame, y), "'c', such as 'wide'"), (lambda: model.fit(frame.to_numpy(), y), "2, ")):
        with pytest.raises(ValueError) as caught:
            fails()
        message = str(caught.value)
        assert message.startswith(f"X holds text in column {named}") and "OneHotEncoder or OrdinalEncoder" in message
        assert "\n" not in message
    model.fit(X, y)
    with pytest.raises(ValueError, match=r"^X holds text in column 0, such as 'red'"):
        model.predict([["red", 1, 2, 3]])
    with pytest.raises(ValueError, match="contains infinity"):  # all else as scikit-learn says it
        model.predict(np.full((2, 4), np.inf))


BAD = [
    ("penalty", -1, "a number of at least 0"),
    ("penalty", "high", "a number of at least 0 or 'auto'"),
    ("penalty", float("nan"), "a number of at least 0"),
    ("width", 0, "an integer of at least 1"),
    ("width", 2.5, "an integer of at least 1"),
    ("depth", 0, "an integer of at least 1"),
    ("learning_rate", 0.0, "a number above 0"),
    ("learning_rate", np.inf, "a number above 0"),
    ("batch_size", 0, "an integer of at least 1"),
    ("l2", -0.1, "a number of at least 0"),
    ("l2", "some", "a number of at least 0 or 'auto'"),
    ("input_dropout", 1.0, "a number of at least 0 and below 1 or 'auto'"),
    ("input_dropout", "some", "a number of at least 0 and below 1 or 'auto'"),
    ("depth_decay", 0, "a number above 0 and at most 1"),
    ("activation", "rely", "not known. Did you mean 'relu'?"),
    ("activation", 3, "must be a name, such as 'relu'"),
    ("max_epochs", 0, "an integer of at least 1"),
    ("patience", None, "an integer of at least 1"),
    ("early_stopping", "yes", "True or False or 'auto'"),
    ("validation_fraction", 1, "a number above 0 and below 1"),
    ("standardize", None, "True or False"),
    ("warm_start", "no", "True or False"),
    ("random_state", "chance", "None, an integer"),
    ("random_state", -1, "None, an integer"),
    ("device", "cup", "not known. Did you mean 'cpu'?"),
    ("device", "tpu", "JAX sees none here, only cpu"),
    ("device", "cpu:99", "Choose one of: cpu"),
    ("device", 0, "Choose one of: cpu"),
    ("callbacks", "print", "a function that takes the epoch's info, an object with epoch(member, info), or a list of these"),
    ("callbacks", [print, 3], "a function that takes the epoch's info, an object with epoch(member, info), or a list of these"),
    ("verbose", "loud", "True or False"),
    ("class_weight", "heavy", "{class: weight}, 'balanced' or None"),
]


@pytest.mark.parametrize(("name", "value", "wanted"), BAD)
def test_a_parameter_that_does_not_fit_is_named_in_one_line(name, value, wanted):
    X, y = iris()
    for fit in (tunnel(**{name: value}).fit, tunnel(**{name: value}).partial_fit):
        with pytest.raises(ValueError) as caught:
            fit(X, y, **{"classes": [0, 1, 2]} if fit.__name__ == "partial_fit" else {})
        message = str(caught.value)
        assert message.startswith(f"{name}={value!r}") and wanted in message and "\n" not in message


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("loss", "squared", "not known. Did you mean 'squared_error'?"),
        ("loss", None, "not known. Choose one of: squared_error"),
        ("quantiles", (), "a list of numbers above 0 and below 1"),
        ("quantiles", 0.5, "a list of numbers above 0 and below 1"),
        ("quantiles", [0.5, 1], "a list of numbers above 0 and below 1"),
        ("quantiles", "median", "a list of numbers above 0 and below 1"),
    ],
)
def test_a_loss_that_does_not_fit_is_named_in_one_line(name, value, wanted):
    with pytest.raises(ValueError) as caught:
        tunnel_regressor(**{name: value}).fit(*iris())
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
            r"^validation=\(X, y\) does not fit: y has 2 rows but X has 3; they must be equal",
        ),
        (
            (np.zeros((3, 4)), np.full(3, 9)),
            r"^validation=\(X, y\) does not fit: y holds .*9.*, which is not among the classes",
        ),
        ((np.full((3, 4), np.inf), np.zeros(3)), r"^validation=\(X, y\) does not fit: Input X contains infinity"),
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
    with pytest.raises(NotFittedError):
        model.compact()
