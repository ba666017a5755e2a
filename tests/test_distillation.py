"""One network that learned what a bag answers: how near it is, what it costs, its file, and a fit that goes on inside of it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.datasets import load_iris, make_friedman1

import meristem
from meristem.estimators import fit_context
from meristem.train.callbacks import Watcher
from meristem.train.objectives import OBJECTIVES, objective

pytestmark = [
    pytest.mark.filterwarnings("ignore::meristem.GrowthWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
SMALL = {"cv": 2, "max_width": 8, "depth": 2, "max_epochs": 40, "learning_rate": 1e-2, "random_state": 0}  # as in test_cv.py
SETTING = {"penalties": [1e-3], "l2s": [1e-3]}
OURS = [name for name, kind in OBJECTIVES.items() if kind.__module__.startswith("meristem.")]


@pytest.mark.parametrize("name", OURS)
def test_nothing_has_a_lower_loss_for_an_answer_than_the_outputs_that_gave_it(name):
    task, outputs = objective(name), jnp.array([0.4, -1.3, 2.0])[: 1 if name == "binary" else 3]
    answer = task.answer(outputs)
    least = float(task.loss(outputs, answer))
    for moved in (outputs + 0.2, outputs - 0.2, outputs.at[0].add(0.3)):
        assert float(task.loss(moved, answer)) >= least - 1e-6
    np.testing.assert_allclose(jax.grad(task.loss)(outputs, answer), 0, atol=1e-6)


def test_the_loss_of_a_class_is_that_of_the_share_one():
    task, outputs = objective("multiclass"), jnp.array([0.4, -1.3, 2.0])
    for label in range(3):
        hard, soft = jnp.asarray(label), jnp.eye(3)[label]
        assert float(task.loss(outputs, hard)) == pytest.approx(float(task.loss(outputs, soft)))
        assert float(task.error(outputs, hard)) == float(task.error(outputs, soft))


def search_data(kind):
    return load_iris(return_X_y=True) if "Classifier" in kind else make_friedman1(200, noise=1.0, random_state=0)


@pytest.mark.parametrize("kind", ["TunnelClassifierCV", "TunnelRegressorCV"])
def test_one_network_agrees_with_the_bag_better_than_one_of_the_targets(kind, tmp_path):
    X, y = search_data(kind)

    def fitted(refit):
        return getattr(meristem, kind)(**SMALL, **SETTING, refit=refit).fit(X[::2], y[::2])

    def said(model):
        return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)

    bag, model, of_targets = (fitted(refit) for refit in ("bag", "distill", "one"))
    assert len(model.estimators_) == 1 and model.n_parameters_ < bag.n_parameters_
    distances = [np.abs(said(own) - said(bag))[1::2].mean() for own in (model, of_targets)]  # rows that none has learned
    assert distances[0] < 0.7 * distances[1], distances
    own = model.estimators_[0]
    assert own.n_samples_seen_ == len(X[::2]) and own.l2 == 0.0 and own.penalty <= model.penalty_ / 2 * (1 + 1e-6)
    assert (model.path_.best(), model.penalty_, model.l2_) == (bag.path_.best(), bag.penalty_, bag.l2_), (
        "the search is the same"
    )
    model.save(tmp_path / "model")
    again = meristem.load(tmp_path / "model")
    np.testing.assert_array_equal(said(again), said(model))
    assert again.get_params()["refit"] == "distill"


class Stop(Exception):
    pass


class StopIn(Watcher):
    """Ends a fit in the third epoch of a part."""

    def __init__(self, name, current=""):
        self.name, self.current = name, current

    def part(self, name):
        return StopIn(self.name, name)

    def epoch(self, member, info):
        if self.current == self.name and int(info.epoch) >= 3:
            raise Stop


def test_a_fit_goes_on_within_the_distillation(tmp_path, monkeypatch):
    monkeypatch.setattr(fit_context, "SECONDS", 0.0)
    X, y = load_iris(return_X_y=True)
    options = {**SMALL, **SETTING, "max_epochs": 12, "input_dropouts": [0.0], "refit": "distill"}
    uninterrupted = meristem.TunnelClassifierCV(**options).fit(X, y)
    folder = {"checkpoint_dir": tmp_path / "fit"}
    with pytest.raises(Stop):
        meristem.TunnelClassifierCV(**options, **folder, callbacks=StopIn("distill-1")).fit(X, y)
    epochs = []
    model = meristem.TunnelClassifierCV(**options, **folder, resume=True, callbacks=lambda info: epochs.append(int(info.epoch)))
    np.testing.assert_array_equal(model.fit(X, y).decision_function(X), uninterrupted.decision_function(X))
    assert epochs[0] == 3, "the search was over, and two epochs of the distillation were kept"


def test_a_budget_holds_for_the_network_that_learned_answers():
    X, y = load_iris(return_X_y=True)
    model = meristem.TunnelClassifierCV(**SMALL, l2s=[1e-3], input_dropouts=[0.0], budget=40, refit="distill").fit(X, y)
    assert len(model.estimators_) == 1 and model.n_parameters_ <= 40 and model.score(X, y) > 0.8


def test_images_are_not_distilled():
    images = np.zeros((8, 4, 4), np.uint8)
    with pytest.raises(ValueError, match="refit='distill' is not for images"):
        meristem.TunnelImageClassifierCV(refit="distill").fit(images, [0, 1] * 4)
