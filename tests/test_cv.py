"""Estimators that find their price: one model of a bag, its choice, its file, its exports."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_circles, make_friedman1
from sklearn.model_selection import KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

import meristem
from commanding import meristem_here
from drawing import subplots
from exporting import run, run_torch
from meristem.compact.inference import Predictor
from meristem.layers.layer import Bag
from meristem.paths.result import Path
from meristem.train.callbacks import Watcher
from soak import FACTOR

SMALL = {"cv": 2, "max_width": 8, "max_epochs": 40, "learning_rate": 1e-2, "random_state": 0}
ONE = {"penalties": [1e-3], "l2s": [1e-4], "input_dropouts": [0.0]}
QUICK = {"max_epochs": 16, "learning_rate": 0.03, "halving": False}  # for the many fits of scikit-learn's checks
KINDS = [
    meristem.TunnelClassifierCV(**SMALL, depth=2),
    meristem.BuddingClassifierCV(**SMALL, max_leaves=2),
    meristem.TunnelRegressorCV(**SMALL, depth=2),
    meristem.BuddingRegressorCV(**SMALL, max_leaves=2),
]
pytestmark = [
    pytest.mark.filterwarnings("ignore::meristem.GrowthWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def data(model):
    return load_iris(return_X_y=True) if hasattr(model, "predict_proba") else make_friedman1(120, random_state=0)


@pytest.fixture(scope="module")
def fitted():
    """A tunnel that classifies and a tree that regresses, in a soak each kind, fitted once with three prices."""
    kinds = KINDS if FACTOR > 1 else [KINDS[0], KINDS[3]]
    return [clone(model).set_params(penalties=[1e-4, 1e-2, 1.0], l2s=[1e-4]).fit(*data(model)) for model in kinds]


def test_a_bag_says_the_mean_of_what_its_networks_say(fitted):
    for model in fitted:
        X, _ = data(model)
        x = np.asarray(X, float)
        each = [Predictor(one.compact()).outputs(x) for one in model.estimators_]
        np.testing.assert_allclose(Predictor(model.compact()).outputs(x), np.mean(each, 0), rtol=1e-12)
        assert len(each) == 2 and isinstance(model.compact().layers[0], Bag)
        assert model.n_parameters_ == sum(one.n_parameters_ for one in model.estimators_)
        assert model.score(*data(model)) > (0.9 if hasattr(model, "predict_proba") else 0.5)


def test_what_was_found_is_said_in_the_manner_of_scikit_learn(fitted):
    for model in fitted:
        assert model.penalty_ == model.penalty_min_ <= model.penalty_1se_
        results = model.cv_results_
        assert results["param_penalty"].tolist() == [1e-4, 1e-2, 1.0] and results["rank_test_score"].min() == 1
        assert results["params"][int(results["mean_test_score"].argmax())]["penalty"] == model.penalty_
        np.testing.assert_allclose(results["mean_test_score"], [-point.loss for point in model.path_.points])
        assert {"split0_test_score", "split1_test_score", "std_test_score"} <= set(results)


def test_a_file_holds_the_whole_of_it(fitted, tmp_path):
    for model in fitted:
        X, _ = data(model)
        model.save(tmp_path / "model")
        again = meristem.load(tmp_path / "model")
        assert type(again) is type(model) and again.get_params() == model.get_params()
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert again.penalty_ == model.penalty_ and again.n_parameters_ == model.n_parameters_
        assert again.path_.best() == model.path_.best() and again.cv_results_["params"] == model.cv_results_["params"]


def test_exports_are_one_model(fitted, tmp_path, torch):
    for model in fitted:
        X = data(model)[0].astype(np.float32)
        said = model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)
        written = run(model.to_onnx(tmp_path / "model.onnx"), X)
        np.testing.assert_allclose(np.squeeze(list(written.values())[-1]), said, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(np.squeeze(run_torch(torch, model.to_torch(), X)), said, rtol=1e-4, atol=1e-5)


def test_a_bag_is_shown_and_exported_from_the_command_line(fitted, tmp_path):
    file = tmp_path / "bag.safetensors"
    fitted[0].save(file)
    shown = meristem_here("show", file)
    assert shown.returncode == 0 and "TunnelClassifierCV: an ensemble of 2 networks" in shown.stdout, shown.stderr
    one = meristem_here("show", file, "--member", "1")
    assert one.returncode == 0 and "TunnelClassifier: " in one.stdout, one.stderr
    done = meristem_here("export", file, "--onnx", tmp_path / "bag.onnx")
    assert done.returncode == 0 and (tmp_path / "bag.onnx").exists(), done.stderr


def test_of_a_bag_the_first_network_is_drawn(fitted, tmp_path):
    fitted[0].save(tmp_path / "model.safetensors")
    for model in (*fitted, meristem.load(tmp_path / "model.safetensors")):
        first, X = model.estimators_[0], data(model)[0]
        losses, sizes = meristem.plot_growth(model, axes=subplots(2, 1))
        assert losses.get_title().startswith(f"{type(model).__name__}, network 1 of 2:")
        drawn = [line.get_ydata() for line in losses.lines + sizes.lines]
        for name in ("dev_loss", "soft_size"):
            assert any(np.array_equal(values, first.history_[name]) for values in drawn), name
        of_bag, of_first = (meristem.plot_structure(one, X=X, ax=subplots()) for one in (model, first))
        assert of_bag.get_title() == of_first.get_title().replace(":", " 1 of 2:", 1)


def test_one_network_may_be_kept_instead_and_the_largest_price_within_one_standard_error():
    X, y = load_iris(return_X_y=True)
    model = clone(KINDS[0]).set_params(penalties=[1e-4, 1e-2], l2s=[1e-4], refit="one", rule="1se").fit(X, y)
    assert len(model.estimators_) == 1 and model.penalty_ == model.penalty_1se_ >= model.penalty_min_
    assert model.estimators_[0].n_samples_seen_ == 150, "it has seen all rows"
    assert model.estimators_[0].penalty == model.penalty_
    assert meristem.plot_structure(model, ax=subplots()).get_title().startswith("Tunnel network:")
    assert meristem.plot_growth(model, axes=subplots(2, 1))[0].get_title().startswith("TunnelClassifierCV:")


def test_names_weights_splitters_and_seeds():
    X, y = load_iris(return_X_y=True)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcd"))
    model = clone(KINDS[0]).set_params(**ONE, max_epochs=20)
    first, second = (clone(model).fit(frame, y) for _ in range(2))
    assert first.feature_names_in_.tolist() == list("abcd")
    np.testing.assert_array_equal(first.predict_proba(frame), second.predict_proba(frame))
    weighted = clone(model).fit(X, y, sample_weight=(y != 2).astype(float))
    assert 2 not in weighted.predict(X)
    split = clone(model).set_params(cv=KFold(3)).fit(X[::-1], y[::-1])
    assert len(split.estimators_) == 3


def test_the_budget_is_of_the_whole_bag():
    X, y = load_iris(return_X_y=True)
    model = clone(KINDS[0]).set_params(budget=80, l2s=[1e-4], input_dropouts=[0.0]).fit(X, y)
    assert model.n_parameters_ <= 80


def test_what_is_tried_by_itself_is_found_from_the_data():
    X, y = load_iris(return_X_y=True)
    model = clone(KINDS[0]).set_params(max_epochs=2, halving=False).fit(X, y)
    tried = np.unique(model.path_.table["penalty"])
    assert len(tried) == 5 and tried.max() / tried.min() == pytest.approx(1e4)
    top = np.log(3) / ((4 + 3) / 50)  # what can be gained, and what the cheapest dimension costs
    assert tried.max() == pytest.approx(0.1 * top, rel=1e-3)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"rule": "best"}, "rule='best' is not known"),
        ({"refit": "two"}, "refit='two' is not known"),
        ({"penalties": "some"}, "penalties='some' must be a list of numbers .*'auto'"),
        ({"l2s": []}, r"l2s=\[\] must be a list"),
        ({"cv": 1}, "cv=1 must be at least 2"),
        ({"cv": 1.5}, "cv=1.5 must be a number of folds"),
    ],
)
def test_what_does_not_fit_is_one_line(wrong, said):
    with pytest.raises(ValueError, match=said):
        clone(KINDS[0]).set_params(**wrong).fit(*load_iris(return_X_y=True))


def test_a_score_of_ones_own_chooses():
    X, y = load_iris(return_X_y=True)
    seen = []

    def small_is_best(model, rows, targets):
        seen.append(len(rows))
        return -model.n_parameters_

    given = SMALL | {"penalties": [1e-5, 1.0], "l2s": [1e-4], "input_dropouts": [0.0], "halving": False, "depth": 2}
    model = meristem.TunnelClassifierCV(**given, scoring=small_is_best).fit(X, y)
    assert model.penalty_ == 1.0 and seen == [75] * 4
    assert model.cv_results_["mean_test_score"].tolist() == [-point.n_parameters for point in model.path_.points]
    named = meristem.path(
        meristem.TunnelClassifier(max_width=8, depth=2, max_epochs=5), (X, y), penalties=[1e-3], cv=2, scoring="accuracy"
    )
    assert np.allclose(named.table["score"], 1 - named.table["error"])


def test_the_path_of_an_estimator():
    X, y = load_iris(return_X_y=True)
    plain = meristem.TunnelClassifier(max_width=8, depth=2, max_epochs=4, random_state=0)
    path = meristem.path(plain, (X, y), penalties=[1e-3, 1e-1], cv=2)
    assert len(path.networks) == 4 and path.networks[0].embed.weight.shape == (8, 4)
    with pytest.raises(ValueError, match="data must be a pair"):
        meristem.path(plain, X, penalties=[1e-3])


CHECKED = KINDS if FACTOR > 1 else KINDS[:1]
WHY = "minibatches: a row of weight 2 is not the same as the row twice, and folds hold out other rows"
EXPECTED = {f"check_sample_weight_equivalence_on_{kind}_data": WHY for kind in ("dense", "sparse")}


@parametrize_with_checks(
    [clone(model).set_params(**ONE, **QUICK) for model in CHECKED],
    expected_failed_checks=lambda estimator: EXPECTED,
)
def test_check(estimator, check):
    check(estimator)


def test_l2_is_looked_for_where_something_is_learned():
    """Of two circles a linear model knows nothing: where the price in the middle opens nothing, the next lower one is tried."""
    X, y = make_circles(200, noise=0.05, factor=0.4, random_state=0)
    search = {"penalties": [1e-4, 10.0, 100.0], "l2s": [1e-5, 1e-3], "input_dropouts": [0.0], "cv": 2, "random_state": 0}
    tried = {}
    for name, answers in (("nothing linear", y), ("linear", (X[:, 0] > 0).astype(int))):
        model = meristem.TunnelClassifierCV(**search, depth=1, max_width=8, max_epochs=12, learning_rate=0.03).fit(X, answers)
        tried[name] = {(point.penalty, point.l2) for point in model.path_.points}
    both = {(penalty, l2) for penalty in (1e-4, 10.0) for l2 in (1e-5, 1e-3)}
    assert tried["nothing linear"] >= both
    assert len(tried["linear"] & both) == 3, "here the price in the middle says which l2 is better"


def test_one_network_is_trained_at_the_price_that_was_chosen(monkeypatch):
    """Not at that of a network that stands in for another in a bag."""
    X, y = np.random.default_rng(0).normal(size=(120, 3)), np.arange(120) % 2
    monkeypatch.setattr(Path, "replace_failed_folds", lambda path, point: list(path.points[0].members))
    how = {"penalties": [1e-5, 100.0], "l2s": [1e-4], "input_dropouts": [0.0], "cv": 2, "halving": False, "random_state": 0}
    model = meristem.TunnelClassifierCV(**how, rule="1se", refit="one", depth=2, max_width=8, max_epochs=12).fit(X, y)
    cheap, dear = (point.n_parameters for point in model.path_.points)
    assert model.penalty_ == 100.0 and model.n_parameters_ == dear < cheap


class EndsAfter(Watcher):
    """Ends a search when so many members have had some epochs."""

    def __init__(self, members: int, epochs: int):
        self.members, self.epochs, self.seen = members, epochs, {}

    def epoch(self, member, info):
        self.seen[member] = int(info.epoch)
        return self.over()

    def over(self):
        return sum(epochs >= self.epochs for epochs in self.seen.values()) >= self.members


def test_the_best_networks_of_a_search_that_is_ended_settle():
    settings = SMALL | {"penalties": [1e-4, 10.0], "l2s": [1e-4], "input_dropouts": [0.0], "depth": 2, "halving": False}
    X, y = load_iris(return_X_y=True)
    left = meristem.TunnelClassifierCV(**settings, callbacks=EndsAfter(2, 8)).fit(X, y)
    model = meristem.TunnelClassifierCV(**settings, callbacks=EndsAfter(2, 8))
    model.fit_search(model._planned(X, y), settling=4)
    best = model.path_.best()
    assert best.penalty == model.penalty_ == 1e-4 and best.is_finished and not left.path_.best().is_finished
    settled, before = (own.path_.table["epochs"][list(best.members)] for own in (model, left))
    assert before.tolist()[0] == settled.tolist()[0] == 40, "the first one had ended"
    assert settled[1] > before[1] + 1
    rates = [own.estimators_[1].history_["rate"] for own in (left, model)]
    assert rates[1][-1] < rates[0][-1], "a later stage, in which gates close"
