"""Estimators: what they take (any labels, frames, sparse matrices, several targets), what they learn and what they say."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_linnerud
from sklearn.exceptions import DataConversionWarning

from estimating import CLASSIFIERS, REGRESSORS, iris, split, tunnel, tunnel_regressor, two_irises
from meristem import hard_size, soft_size
from meristem.layers.compact_network import n_floats
from meristem.nn import Network
from meristem.train.objectives import NEVER
from soak import FACTOR

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # most end early, to save time
TWO_LEAVES = "ignore:The tree has all of its 2 leaves:meristem.GrowthWarning"


@eqx.filter_jit
def outputs_of(network, x):
    return jax.vmap(network)(x)


def name_of(value):
    return type(value).__name__ if hasattr(value, "fit") else None


def on_data(sets, models):
    """The first model on all data sets, the others on the first one; in a soak all on all."""
    pairs = [(one, model) for one in sets for model in models if FACTOR > 1 or model is models[0] or one is sets[0]]
    return [pytest.param(*one, model, id=f"{one[0]}-{name_of(model)}") for one, model in pairs]


@pytest.mark.filterwarnings(TWO_LEAVES)
@pytest.mark.parametrize(("data", "least", "model"), on_data([("wine", 0.94), ("iris", 0.9), ("digits", 0.94)], CLASSIFIERS))
def test_classifiers_learn_real_data(data, least, model):
    X, X_test, y, y_test = split(data)
    model = clone(model).set_params(max_epochs=60 if data == "digits" else 200).fit(X, y)
    assert model.score(X_test, y_test) >= least
    assert model.predict_proba(X_test).shape == model.decision_function(X_test).shape == (len(y_test), len(set(y)))


@pytest.mark.filterwarnings("ignore::meristem.GrowthWarning")  # of diabetes not even half can be explained
@pytest.mark.parametrize(("data", "least", "model"), on_data([("friedman", 0.8), ("diabetes", 0.3)], REGRESSORS))
def test_regressors_learn_real_data(data, least, model):
    X, X_test, y, y_test = split(data)
    model = clone(model).set_params(early_stopping=data == "diabetes").fit(X, y)
    assert model.score(X_test, y_test) >= least
    assert model.predict(X_test).shape == y_test.shape


LABELS = {
    "text": np.array(["oak", "ash", "elm"]),
    "objects": np.array(["oak", "ash", "elm"], dtype=object),
    "numbers": np.array([100, -3, 7]),
    "reals": np.array([2.0, 0.0, 1.0]),
}


@pytest.mark.parametrize("names", LABELS.values(), ids=LABELS)
def test_classes_have_any_type(names):
    X, y = iris()
    model = tunnel(max_epochs=80).fit(X, names[y])
    assert model.classes_.tolist() == sorted(names.tolist())
    assert model.classes_.dtype == model.predict(X).dtype == names.dtype
    assert model.score(X, names[y]) > 0.9
    assert (model.classes_[model.predict_proba(X).argmax(1)] == model.predict(X)).all()
    # The order of the classes decides which output is whose, and nothing else.
    order = np.argsort(np.argsort(names))
    assert (tunnel(max_epochs=80).fit(X, order[y]).decision_function(X) == model.decision_function(X)).all()


@pytest.mark.parametrize(
    "names", [np.array([False, True]), np.array(["no", "yes"]), np.array([-1, 1])], ids=["bool", "text", "±1"]
)
def test_two_classes_have_one_logit(names):
    X, y = two_irises()
    model = tunnel(max_epochs=80).fit(X, names[y])
    logit, probability = model.decision_function(X), model.predict_proba(X)
    assert logit.shape == (100,) and probability.shape == (100, 2)
    assert np.allclose(probability.sum(1), 1) and np.allclose(probability[:, 1], 1 / (1 + np.exp(-logit)))
    assert (model.predict(X) == names[(logit > 0).astype(int)]).all() and model.predict(X).dtype == names.dtype
    assert model.score(X, names[y]) > 0.9
    assert model.network_.head.weight.shape == (1, 16)


def test_one_class_is_always_it():
    X, _ = iris()
    model = tunnel(max_epochs=2).fit(X, np.full(150, "oak"))
    assert (model.predict(X) == "oak").all() and (model.predict_proba(X) == 1).all()


def test_labels_are_columns_of_zeros_and_ones():
    X, digit = load_digits(return_X_y=True)
    y = np.stack([digit % 2 == 0, digit > 4, np.isin(digit, (2, 3, 5, 7))], 1).astype(int)
    model = tunnel(max_epochs=30).fit(X[:1200], y[:1200])
    assert model.score(X[1200:], y[1200:]) > 0.75  # all three at once
    assert model.predict(X).shape == model.predict_proba(X).shape == model.decision_function(X).shape == y.shape
    assert (model.predict(X) == (model.predict_proba(X) > 0.5)).all()
    assert model.classes_.tolist() == [0, 1, 2]
    dense, from_sparse = (tunnel(max_epochs=2).fit(X[:1200], labels) for labels in (y[:1200], sparse.csr_array(y[:1200])))
    assert (from_sparse.decision_function(X) == dense.decision_function(X)).all()


def test_several_classes_at_once_are_refused():
    X, y = iris()
    with pytest.raises(ValueError, match="indicator matrix"):
        tunnel().fit(X, np.stack([y, y], 1))


def test_a_column_of_classes_is_taken_with_a_warning():
    X, y = iris()
    with pytest.warns(DataConversionWarning, match="column-vector"):
        model = tunnel(max_epochs=20).fit(X, y[:, None])
    assert model.predict(X).shape == (150,)


@pytest.mark.filterwarnings("ignore::meristem.GrowthWarning")  # twenty middle-aged men
def test_several_numbers_at_once():
    X, y = load_linnerud(return_X_y=True)
    model = tunnel_regressor(l2=1 / 20).fit(X, y)  # a weaker prior than the noise asks for, to see that anything is learned
    assert model.predict(X).shape == y.shape == (20, 3)
    assert model.score(X, y) > 0.2
    assert tunnel_regressor(max_epochs=2).fit(X, y[:, :1]).predict(X).shape == (20, 1)


@pytest.mark.filterwarnings("ignore::meristem.GrowthWarning")  # two epochs
def test_frames_have_feature_names():
    X, y = iris()
    frame = pandas.DataFrame(X, columns=["sepal length", "sepal width", "petal length", "petal width"])
    species = pandas.Series(np.array(["setosa", "versicolor", "virginica"])[y], dtype="category")
    model = tunnel(max_epochs=2).fit(frame, species)
    assert model.feature_names_in_.tolist() == frame.columns.tolist() and model.n_features_in_ == 4
    assert (model.predict_proba(frame) == tunnel(max_epochs=2).fit(X, y).predict_proba(X)).all()
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[frame.columns[::-1]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
def test_sparse_is_the_same_as_dense(kind):
    X, X_test, y, _ = split("digits")
    dense = tunnel(max_epochs=3).fit(X, y)
    other = tunnel(max_epochs=3).fit(kind(X), y)
    assert (other.predict_proba(kind(X_test)) == dense.predict_proba(X_test)).all()


def test_the_scale_of_features_and_targets_does_not_matter():
    X, X_test, y, _ = split("friedman")
    scale, shift = 10.0 ** np.arange(-5, 5), np.linspace(-1e3, 1e3, 10)
    model = tunnel_regressor(max_epochs=20).fit(X, y)
    other = tunnel_regressor(max_epochs=20).fit(X * scale + scale * shift, 1000 * y - 7)
    expected = 1000 * model.predict(X_test) - 7
    assert np.allclose(other.predict(X_test * scale + scale * shift), expected, atol=0.02 * expected.std())
    # A constant feature says nothing, wherever it stands.
    constant = np.full((len(X), 1), 1e9)
    assert tunnel_regressor(max_epochs=20).fit(np.hstack([X, constant]), y).score(np.hstack([X, constant]), y) > 0.7


def test_standardizing_can_be_left_to_the_user():
    X, y = iris()
    scaled = ((X - X.mean(0)) / X.std(0)).astype(np.float32)
    model = tunnel(max_epochs=5, standardize=False).fit(scaled, y)
    assert np.allclose(model.decision_function(scaled), tunnel(max_epochs=5).fit(X, y).decision_function(X), atol=1e-3)
    assert not np.allclose(
        tunnel(max_epochs=5, standardize=False).fit(X, y).decision_function(X), model.decision_function(scaled)
    )


@pytest.mark.filterwarnings(TWO_LEAVES)
@pytest.mark.parametrize("model", [*CLASSIFIERS, *REGRESSORS], ids=name_of)
def test_what_is_learned_is_said(model):
    X, _, y, _ = split("friedman")
    if model in CLASSIFIERS:
        y = np.digitize(y, [10, 18])
    free = {"penalty": 0.0, "l2": 0.0, "early_stopping": False}  # nothing has a price: the loss decides
    model = clone(model).set_params(max_epochs=40, **free).fit(X, y)
    network, n_out = model.network_, 3 if hasattr(model, "classes_") else 1
    assert isinstance(network, Network)
    assert network.embed.weight.shape == (16, 10) and network.head.weight.shape == (n_out, 16)
    x = jnp.asarray((X - X.mean(0)) / X.std(0))
    assert model.soft_size_ == pytest.approx(float(eqx.filter_jit(soft_size)(network, x)), rel=1e-4)
    assert model.hard_size_ == int(hard_size(network)) > 0
    assert 0 < model.n_live_units_ <= 2 * 16
    assert model.n_parameters_ == n_floats(model.compact()) < n_floats(network) + 3
    outputs = outputs_of(network, x)
    if n_out == 3:
        assert np.allclose(model.decision_function(X), outputs, atol=1e-4)
    else:
        assert np.allclose((model.predict(X) - y.mean()) / y.std(), outputs[:, 0], atol=1e-4)
    assert np.allclose(outputs_of(model.compact(), x), outputs, atol=1e-4)
    history = model.history_
    assert set(history) == {"loss", "error", "dev_loss", "dev_error", "layer_sizes", "soft_size", "hard_size", "rate"}
    assert all(len(values) == model.n_iter_ for values in history.values())
    assert model.n_iter_ == 40 and model.best_epoch_ == history["dev_loss"].argmin() + 1
    assert (history["dev_loss"] == history["loss"]).all()
    assert history["rate"][0] == 0.003, "the default for 32 rows a step"
    at = model.best_epoch_ - 1
    assert model.soft_size_ == history["soft_size"][at] and model.hard_size_ == history["hard_size"][at]


def test_what_fills_a_shape_up_stays_out_of_it():
    X, y = iris()
    state = tunnel(max_epochs=5).fit(X, y)._state_
    embed, head, bias = (
        np.asarray(a) for a in (state.network.embed.weight, state.network.head.weight, state.network.head.bias)
    )
    assert embed.shape == (16, 32) and head.shape == (8, 16)
    assert (embed[:, 4:] == 0).all() and (head[3:] == 0).all() and (bias[3:] == NEVER).all()
    assert (embed[:, :4] != 0).all() and (head[:3] != 0).all() and (np.abs(bias[:3]) < 10).all()
    moments = state.opt_state[0].mu
    assert (np.asarray(moments.embed.weight)[:, 4:] == 0).all() and (np.asarray(moments.head.bias)[3:] == 0).all()
