"""How estimators are trained: early stopping, callbacks, warm starts, streams, seeds, devices and progress."""

import copy
import os
import pickle
import re
import subprocess
import sys

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import meristem
from estimating import iris, programs, split, tunnel, tunnel_regressor

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # most end early, to save time


def test_early_stopping_sets_rows_aside():
    X, X_test, y, y_test = split("wine")
    heard = []
    options = {"validation_fraction": 0.25, "patience": 3, "max_epochs": 500, "settle": False}
    model = tunnel(early_stopping=np.True_, callbacks=heard.append, **options).fit(X, y)
    first = heard[: len(heard) - model.n_iter_]
    losses = [info["dev_loss"] for info in first]
    assert all(info["dev_loss"] != info["loss"] for info in first)
    assert len(first) < 500 and model.n_iter_ == np.argmin(losses) + 1, "all rows take as long as the best took"
    errors = np.array([info["dev_error"] for info in first]) * 31  # a quarter of 124
    assert np.allclose(errors, errors.round(), atol=1e-4)
    assert model.score(X_test, y_test) > 0.9


def test_rows_that_are_held_out_say_how_long_all_are_trained():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 12))
    y = X[:, 0] + rng.standard_normal(120)
    fresh = rng.standard_normal((1000, 12))
    options = {"l2": 0.0, "penalty": 0.0, "learning_rate": 0.01, "settle": False, "max_epochs": 300, "patience": 5}
    heard = []
    refit = tunnel_regressor(**options, callbacks=heard.append).fit(X, y)
    assert refit.early_stopping == "auto" and refit.best_epoch_ == refit.n_iter_ == len(refit.history_["loss"])
    epochs = [info["epoch"] for info in heard]
    assert len(epochs) > refit.n_iter_ and epochs[-refit.n_iter_ :] == list(range(1, refit.n_iter_ + 1))
    to_the_end = tunnel_regressor(**options, early_stopping=False).fit(X, y)
    assert refit.n_iter_ < to_the_end.n_iter_
    assert refit.score(fresh, fresh[:, 0]) > to_the_end.score(fresh, fresh[:, 0]) + 0.1
    few = tunnel_regressor(**options, early_stopping=True).fit(X[:20], y[:20])  # of which four could be held out
    assert (few.predict(X) == tunnel_regressor(**options, early_stopping=False).fit(X[:20], y[:20]).predict(X)).all()


@pytest.mark.filterwarnings("ignore::meristem.GrowthWarning")  # two epochs
def test_early_stopping_counts_no_row_of_weight_zero():
    X, y = iris()
    weight = np.zeros(150)
    weight[::10] = 1
    model = tunnel(early_stopping=True, validation_fraction=0.4, max_epochs=2).fit(X, y, weight)
    assert np.isfinite(model.history_["dev_loss"]).all()


@pytest.mark.filterwarnings("ignore::meristem.GrowthWarning")  # the first epoch is kept
@pytest.mark.parametrize("make", [tunnel, tunnel_regressor])
def test_a_given_validation_set_decides_which_model_is_kept(make):
    X, X_dev, y, y_dev = split("iris")
    y_dev = (y_dev + 1) % 3  # nothing to learn from it
    model = make(max_epochs=30, patience=30, settle=False).fit(X, y, validation=(X_dev, y_dev))
    history = model.history_
    assert model.best_epoch_ == history["dev_loss"].argmin() + 1 < 30
    assert history["error"][-1] < 0.2 < 0.5 < history["dev_error"][-1]
    alone = make(max_epochs=30, patience=30, settle=False, early_stopping=False).fit(X, y)
    assert np.allclose(history["loss"], alone.history_["loss"], rtol=1e-3)  # it is looked at, and not learned from


def test_callbacks_hear_of_every_epoch_and_may_stop():
    X, y = iris()
    heard, stopped = [], []
    model = tunnel(max_epochs=50, callbacks=[heard.append, lambda info: info["epoch"] == 7 or None, stopped.append]).fit(X, y)
    assert model.n_iter_ == 7 and [info["epoch"] for info in heard] == [1, 2, 3, 4, 5, 6, 7]
    assert len(stopped) == 7 and all(one is other for one, other in zip(heard, stopped, strict=True))
    for name in ("loss", "error", "dev_loss", "dev_error", "soft_size", "hard_size", "rate"):
        assert np.allclose([info[name] for info in heard], model.history_[name])
    assert tunnel(max_epochs=50, callbacks=lambda info: info["epoch"] >= 3).fit(X, y).n_iter_ == 3


def test_a_callback_may_be_a_watcher_of_any_kind():
    class Stopper(meristem.Watcher):
        def epoch(self, member, info):
            return member == 0 and info.epoch >= 4

    class Plain:  # no base class, no pulse
        epochs = 0

        def epoch(self, member, info):
            self.epochs += 1

    plain, members = Plain(), []
    model = tunnel(max_epochs=50, callbacks=[plain, Stopper(), lambda member, info: members.append(member)]).fit(*iris())
    assert model.n_iter_ == plain.epochs == 4 and members == [0, 0, 0, 0]


def test_an_error_in_a_callback_is_the_users():
    def breaks(info):
        raise LookupError("mine")

    X, y = iris()
    with pytest.raises(LookupError, match="mine"):
        tunnel(callbacks=breaks).fit(X, y)


def test_a_warm_start_goes_on():
    X, y = iris()
    model = tunnel(max_epochs=10, warm_start=True).fit(X, y)
    first, size = model.history_, model.n_iter_
    with programs() as compiled:
        model.fit(X, y)
    assert not compiled
    assert size == 10 and model.n_iter_ == 20 and len(model.history_["loss"]) == 20
    assert (model.history_["loss"][:10] == first["loss"]).all()
    assert model.history_["loss"][10] < 1.1 * first["loss"][-1] and model.history_["loss"][-1] < first["loss"][-1]
    assert 10 < model.best_epoch_ <= 20
    heard = []
    model.set_params(callbacks=heard.append).fit(X, y)
    assert heard[0]["epoch"] == 21
    cold = model.set_params(warm_start=False, callbacks=None).fit(X, y)
    assert cold.n_iter_ == 10 and (cold.history_["loss"] == first["loss"]).all()


@pytest.mark.parametrize(("name", "value"), [("width", 8), ("depth", 3), ("activation", "tanh")])
def test_a_warm_start_cannot_change_the_network(name, value):
    X, y = iris()
    model = tunnel(max_epochs=20, warm_start=True).fit(X, y)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match=f"^{name}={value!r}, but .* was made with"):
        model.set_params(**{name: value}).fit(X, y)
    assert (model.predict_proba(X) == before).all()  # what fails changes nothing


@pytest.mark.filterwarnings("ignore::meristem.GrowthWarning")  # two epochs
def test_a_warm_start_cannot_change_the_loss():
    X, y = iris()
    model = tunnel_regressor(max_epochs=2, warm_start=True, loss="huber").fit(X, y)
    with pytest.raises(ValueError, match=r"^loss='poisson', but .* was made with 'huber'"):
        model.set_params(loss="poisson").fit(X, y)
    with pytest.raises(ValueError, match=r"^quantiles=\(0.9,\), but .* was made with \(0.5,\)"):
        tunnel_regressor(max_epochs=2, loss="quantile").fit(X, y).set_params(quantiles=(0.9,)).partial_fit(X, y)


def test_a_warm_start_knows_its_classes():
    X, y = iris()
    model = tunnel(max_epochs=20, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match=r"^y holds .*7.*, which is not among the classes \[0, 1, 2\]"):
        model.fit(X, np.where(y == 2, 7, y))


@pytest.mark.filterwarnings("ignore::meristem.GrowthWarning")  # of two leaves more could be made
def test_a_warm_start_may_have_more_leaves():
    X, y = iris()
    model = meristem.BuddingClassifier(width=16, max_leaves=1, max_epochs=3, warm_start=True, random_state=0).fit(X, y)
    assert model.hard_size_ == 1
    assert model.set_params(max_leaves=2).fit(X, y).n_iter_ == 6


def test_a_stream_of_digits_is_learned_as_well_as_all_at_once():
    X, X_test, y, y_test = split("digits")
    whole = tunnel(max_epochs=6, learning_rate=0.01).fit(X, y)
    stream, order = tunnel(learning_rate=0.01), np.random.default_rng(0)
    for _ in range(6):
        for rows in np.array_split(order.permutation(len(X)), 4):
            with programs() as compiled:
                stream.partial_fit(X[rows], y[rows], classes=range(10))
    assert compiled == []
    assert stream.n_iter_ == stream.best_epoch_ == len(stream.history_["loss"]) == 24
    assert stream.score(X_test, y_test) > whole.score(X_test, y_test) - 0.04 > 0.85
    # The scale is that of all rows, each as often as it came.
    scaling = stream._inputs_.preprocessor.scaling
    assert np.allclose(scaling.mean, X.mean(0)) and np.allclose(scaling.variance, X.var(0))


def test_a_stream_of_numbers():
    X, X_test, y, y_test = split("friedman")
    model = tunnel_regressor(learning_rate=0.03)
    for _ in range(10):
        for rows in np.array_split(np.arange(len(X)), 4):
            model.partial_fit(X[rows], y[rows])
    assert model.score(X_test, y_test) > 0.7
    assert model._targets_.scaling.mean[0] == pytest.approx(y.mean())


def test_a_stream_of_single_rows_finds_its_scale():
    X, y = iris()
    model = tunnel()
    rows = np.random.default_rng(0).permutation(150)[:50]
    for row in rows:
        model.partial_fit(1000 * X[row : row + 1], y[row : row + 1], classes=[0, 1, 2])
    assert model.score(1000 * X, y) > 0.6
    assert np.allclose(model._inputs_.preprocessor.scaling.scale, 1000 * X[rows].std(0))


def test_the_first_part_of_a_stream_says_which_classes_come():
    X, y = iris()
    with pytest.raises(ValueError, match=r"^classes=None: "):
        tunnel().partial_fit(X, y)
    model = tunnel().partial_fit(X[:50], y[:50], classes=[2, 1, 0]).partial_fit(X[50:], y[50:])
    assert model.classes_.tolist() == [0, 1, 2] and model.predict_proba(X).shape == (150, 3)
    with pytest.raises(ValueError, match=r"^classes=\[0, 1\] were \[0, 1, 2\] before"):
        model.partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="which is not among the classes"):
        model.partial_fit(X, y + 1)
    with pytest.raises(ValueError, match=r"^class_weight='balanced' needs all of y"):
        tunnel(class_weight="balanced").partial_fit(X, y, classes=[0, 1, 2])


def test_labels_of_a_stream_need_no_classes():
    X, y = iris()
    labels = np.stack([y == 0, y > 0], 1).astype(int)
    assert tunnel().partial_fit(X, labels).partial_fit(X, labels, classes=[0, 1]).predict(X).shape == (150, 2)


def test_the_same_seed_gives_the_same_bits():
    X, y = iris()

    def said(seed):
        return tunnel(max_epochs=20, random_state=seed).fit(X, y).decision_function(X)

    assert (said(0) == said(0)).all() and (said(np.random.RandomState(3)) == said(np.random.RandomState(3))).all()
    assert not (said(0) == said(1)).any() and not (said(None) == said(None)).any()
    generator = np.random.RandomState(0)
    assert not (said(generator) == said(generator)).any()


ON_THE_SECOND = """
import jax
from sklearn.datasets import load_iris
from meristem import TunnelClassifier

X, y = load_iris(return_X_y=True)
first, second = jax.devices("cpu")
seen = []
for device in ("cpu:1", "cpu", None):
    small = {"width": 4, "depth": 1, "max_epochs": 2, "settle": False}
    model = TunnelClassifier(**small, device=device, random_state=0).fit(X, y)
    seen += [leaf.devices() for leaf in jax.tree.leaves((model.network_, model._state_))]
    assert seen[-1] == {second if device == "cpu:1" else first}, (device, seen[-1])
assert len(set(map(frozenset, seen))) == 2
"""


def test_training_runs_where_one_says():
    """In a process with two devices: on the one that is not the default."""
    environment = os.environ | {
        "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=2",
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
        "PYTHONWARNINGS": "ignore",
    }
    subprocess.run([sys.executable, "-c", ON_THE_SECOND], env=environment, check=True)


def test_progress_is_told_to_stderr(capsys):
    X, y = iris()
    tunnel(max_epochs=20).fit(X, y)
    assert capsys.readouterr() == ("", "")
    model = tunnel(max_epochs=20, verbose=True).fit(X, y)
    out, err = capsys.readouterr()
    assert out == "" and "TunnelClassifier" in err and "20 epochs" in err and f"loss {model.history_['loss'][-1]:.4g}" in err
    assert f"; {model.n_parameters_:,} parameters" in err


@pytest.mark.filterwarnings("ignore::meristem.GrowthWarning")  # two epochs
def test_progress_shows_errors_by_what_they_are(monkeypatch, capsys):
    """Wrong classes in per cent, squared and other errors as numbers."""
    monkeypatch.setattr("meristem.show.progress.PLAIN_SECONDS", 0.0)
    X, y = iris()
    tunnel(max_epochs=2, verbose=True).fit(X, y)
    assert re.search(r"epoch 2, error \d+\.\d\d %, ", capsys.readouterr().err)
    tunnel_regressor(max_epochs=2, verbose=True).fit(X, y)
    assert re.search(r"epoch 2, squared error \d\.\d+, ", capsys.readouterr().err)
    tunnel_regressor(max_epochs=2, verbose=True, loss="poisson").fit(X, y)
    assert re.search(r"epoch 2, deviance \d\.\d+, ", capsys.readouterr().err)


def test_pipelines_searches_and_copies(tmp_path):
    X, y = iris()
    model = tunnel(max_epochs=20)
    pipeline = make_pipeline(PolynomialFeatures(2), model).fit(X, y)
    assert pipeline.score(X, y) > 0.9
    assert clone(model).get_params() == model.get_params() and not hasattr(clone(pipeline[-1]), "network_")
    model.fit(X, y)
    joblib.dump(model, tmp_path / "model.joblib")
    for copied in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), joblib.load(tmp_path / "model.joblib")):
        assert (copied.predict_proba(X) == model.predict_proba(X)).all()
        # Whoever was packed away learns on as if nothing had been.
        onward = copy.copy(model).partial_fit(X, y)
        assert (copied.partial_fit(X, y).predict_proba(X) == onward.predict_proba(X)).all()


def test_two_processes_at_a_time():
    X, y = iris()
    model = tunnel(max_epochs=100)
    scores = cross_val_score(model, X, y, cv=2, n_jobs=2)
    assert (scores > 0.85).all() and (scores == cross_val_score(model, X, y, cv=2)).all()
    search = GridSearchCV(model, {"penalty": [1e-4, 1e-3]}, cv=2, n_jobs=2).fit(X, y)
    assert search.best_score_ > 0.85 and search.best_estimator_.n_iter_ <= 100
