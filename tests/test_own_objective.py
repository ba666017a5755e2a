"""An objective of one's own is one class: recipes, regressors, searches and files find it by its name, no list does."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import onnxruntime
import pytest
from sklearn.datasets import make_friedman1

import meristem
from estimating import tunnel_regressor
from filing import create
from meristem import Data, Recipe, fit, load, save
from meristem.train.objectives import OBJECTIVES, Objective, SquaredError


@dataclass(frozen=True)
class LogCosh(Objective):
    """E = Σ_k log cosh(o_k − t_k): squared near the target, absolute far from it, smooth in between."""

    name: ClassVar[str] = "log_cosh"
    error_name: ClassVar[str] = "log cosh"

    def loss(self, outputs, target):
        off = outputs - target
        return (jnp.logaddexp(off, -off) - jnp.log(2.0)).sum()

    error = loss

    def best_constant(self, y, weight):
        return np.average(y, 0, weight)


pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::meristem.GrowthWarning")


def test_recipes_and_runs_find_it_by_its_name(tmp_path):
    recipe, x = Recipe(objective="log_cosh", batch_size=16), np.linspace(-1, 1, 64)[:, None].repeat(2, 1)
    assert recipe == Recipe(objective=LogCosh(), batch_size=16)
    run = fit(
        create("plain"), Data(x, x[:, :1]), learning_rate=1e-2, penalty=1e-3, key=jax.random.key(0), recipe=recipe, max_epochs=9
    )
    assert run.history["loss"][-1] < run.history["loss"][0]
    save(tmp_path / "run", run)
    assert load(tmp_path / "run").recipe == recipe


def test_regressors_searches_and_their_files_find_it(tmp_path):
    X, y = make_friedman1(300, noise=0.1, random_state=0)
    y[::50] += 1000
    model = tunnel_regressor(loss="log_cosh", max_epochs=80).fit(X, y)
    clean = np.arange(300) % 50 > 0
    assert model.score(X[clean], y[clean]) > 0.8, "outliers do not move it"
    targets = model._targets_
    encoded, ones = targets.encode(y), np.ones(300)
    off = encoded - LogCosh().best_constant(encoded, ones)
    constant = targets.objective.constant_error(encoded, ones)
    assert constant == pytest.approx(float((np.logaddexp(off, -off) - np.log(2)).mean()), rel=1e-5)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.loss == "log_cosh" and again._targets_.objective == LogCosh()
    assert (again.predict(X) == model.predict(X)).all()
    session = onnxruntime.InferenceSession(model.to_onnx(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"])
    assert np.allclose(session.run(None, {"X": X.astype(np.float32)})[0], model.predict(X), rtol=1e-4, atol=1e-4)
    small = {"max_epochs": 3, "depth": 2, "max_width": 8, "cv": 2, "penalties": [1e-3], "l2s": [1e-3], "random_state": 0}
    assert np.isfinite(meristem.TunnelRegressorCV(loss="log_cosh", **small).fit(X, y).predict(X)).all()


def test_a_loss_of_counts_says_what_y_may_be():
    @dataclass(frozen=True)
    class RootRate(SquaredError):
        """Another loss of rates."""

        name: ClassVar[str] = "root_rate"
        target_kind: ClassVar[str] = "counts"

        def loss(self, outputs, target):
            return ((jnp.exp(outputs / 2) - jnp.sqrt(target)) ** 2).sum()

        def best_constant(self, y, weight):
            return 2 * np.log(np.average(np.sqrt(y), 0, weight))

        def valid(self, y, n_out):
            return y >= 0, "rates"

    try:
        X, y = make_friedman1(100, random_state=0)
        model = tunnel_regressor(loss="root_rate", max_epochs=20)
        assert model.__sklearn_tags__().target_tags.positive_only
        assert (model.fit(X, y).predict(X) > 0).all()
        with pytest.raises(ValueError, match=r"loss='root_rate' needs counts or rates, none below 0\.$"):
            model.fit(X, -y)
    finally:
        del OBJECTIVES["root_rate"]


def test_a_name_belongs_to_one_module():
    with pytest.raises(ValueError, match=r"^name='huber' is taken by meristem\.train\.objectives\.Huber; "):
        type("Huber", (SquaredError,), {"name": "huber", "__module__": __name__})
    assert OBJECTIVES["huber"].__module__ == "meristem.train.objectives"
    try:  # as a cell that is run twice
        again = dataclass(frozen=True)(type("LogCosh", (LogCosh,), {"name": "log_cosh", "__module__": __name__}))
        assert Recipe(objective="log_cosh").task == again()
    finally:
        OBJECTIVES["log_cosh"] = LogCosh


@pytest.mark.parametrize("loss", ["binary", "multilabel", "log_cos", ["huber"]])
def test_other_names_are_no_losses(loss):
    with pytest.raises(ValueError, match=r"^loss=.* is not known\..*Choose one of: squared_error, .*log_cosh"):
        tunnel_regressor(loss=loss).fit(np.zeros((9, 2)), np.zeros(9))
