"""What a model is compared with: tuned linear models, boosting and an MLP; and what its inputs do, in words and pictures."""

import json

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.metrics import log_loss
from threadpoolctl import threadpool_info, threadpool_limits

import meristem
from meristem.report import from_table, render_page
from meristem.report.baselines import baselines
from meristem.report.report_text import summary
from reporting import SHORT_SEARCH, Page

pytestmark = [
    pytest.mark.filterwarnings("ignore::meristem.GrowthWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
QUICK = SHORT_SEARCH | {"max_epochs": 5, "penalties": [1e-3], "learning_rate": 0.03}


@pytest.fixture(scope="module")
def indicators():
    """Few rows of 162 indicators: without regularization a linear model is worse than a constant."""
    rng, sizes = np.random.default_rng(0), (40, 40, 30, 30, 22)
    X = np.concatenate([np.eye(size)[rng.integers(0, size, 600)] for size in sizes], 1)
    return X, 0.5 * X @ rng.normal(size=162) + 1.2 * rng.normal(size=600)


def test_ridge_is_as_strong_as_folds_say(indicators):
    X, y = indicators
    fitted = {one.name: one for one in baselines("number", X[:400], y[:400], seconds=None, seed=0)}
    assert list(fitted) == ["constant", "linear", "boosting", "mlp"]
    ridge = fitted["linear"]
    assert ridge.label == "ridge regression, α = 100 by 5-fold cross-validation" and ridge.n_parameters == 163

    def r2(predicted):
        return 1 - ((y[400:] - predicted) ** 2).mean() / y[400:].var()

    own = RidgeCV(alphas=10.0 ** np.arange(-3, 5)).fit(X[:400], y[:400])
    assert r2(ridge.predict(X[400:])) == pytest.approx(r2(own.predict(X[400:])), abs=0.05)
    assert r2(ridge.predict(X[400:])) > 0.1 and fitted["boosting"].n_parameters is None and "trees" in fitted["boosting"].label


def test_probabilities_have_a_column_for_every_class(indicators):
    X, y = indicators
    classes = np.digitize(y, [-1.0, 1.0])
    fitted = list(baselines("class", X[:400], classes[:400], seconds=None, seed=0, n_classes=4))
    losses = {one.name: log_loss(classes[400:], one.predict_proba(X[400:]), labels=range(4)) for one in fitted}
    assert all(one.predict_proba(X[:5]).shape == (5, 4) for one in fitted)
    assert losses["linear"] < losses["mlp"] and "C = " in fitted[1].label and "5-fold" in fitted[1].label
    for one in fitted[1:]:
        assert (one.predict_proba(X[400:]).argmax(1) == one.predict(X[400:])).all()


def test_few_rows_are_predicted_in_one_thread(monkeypatch):
    """Threads wait busily for one another: on a busy machine a thousand predictions of few rows took minutes."""
    predict, threads = HistGradientBoostingRegressor.predict, []

    def counted(model, X):
        threads.extend(pool["num_threads"] for pool in threadpool_info())
        return predict(model, X)

    monkeypatch.setattr(HistGradientBoostingRegressor, "predict", counted)
    X = np.random.default_rng(0).normal(size=(60, 2))
    with threadpool_limits(2):
        *_, boosting = baselines("number", X, X[:, 0], seconds=None, seed=0, without=["linear", "mlp"])
        boosting.predict(X)
    assert set(threads) == {1}


def test_the_last_value_is_a_baseline_of_rows_in_time_order():
    X, y = np.arange(40.0)[:, None], np.arange(40.0)
    named = {one.name: one for one in baselines("number", X, y, seconds=None, seed=0, last_value=y)}
    assert named["last_value"].predict(X[:3]).tolist() == [39.0] * 3
    assert json.dumps(named["last_value"].facts)


def test_rows_of_the_search_are_its_folds():
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60.0)
    folds = [(np.arange(30), np.arange(30, 60)), (np.arange(30, 60), np.arange(30)), (np.arange(20, 60), np.arange(20))]
    _, ridge, *_ = baselines("number", X, y, seconds=None, seed=0, folds=folds)
    assert ridge.label.endswith("by 3-fold cross-validation")


@pytest.fixture(scope="module")
def steep():
    """A table whose target a line predicts, and a network of one epoch does not; one column is noise, one is a category."""
    rng = np.random.default_rng(0)
    x, color = rng.normal(size=400), np.array(["red", "green", "blue"])[np.arange(400) % 3]
    table = {"x": x, "noise": rng.normal(size=400), "color": color, "y": 3 * x + (color == "red") + 0.1 * rng.normal(size=400)}
    return table, meristem.fit_table(table, target="y", **QUICK | {"max_epochs": 1})


def test_clearly_worse_is_a_warning_and_in_the_first_sentence(steep, capsys):
    table, model = steep
    (warning, *_) = [line for line in model.facts["warnings"] if "ridge regression" in line]
    assert warning.startswith("It is clearly worse than ridge regression (difference −")
    first = summary(from_table(model))[0]
    assert "clearly worse than ridge regression (0.9" in first
    assert warning in Page(render_page(from_table(model))).said
    meristem.fit_table(table, target="y", **QUICK | {"max_epochs": 1}, verbose=True)
    assert any(
        line.startswith("found: ") and "clearly worse than ridge" in line for line in capsys.readouterr().err.splitlines()
    )


def test_inputs_are_told_in_words_and_noise_in_a_line(steep):
    model = meristem.fit_table(steep[0], target="y", **QUICK | {"max_epochs": 60})
    data = from_table(model)
    assert data.dependences[0].column == "x" and data.importance.rows == 80 and data.importance.repeats == 5
    page = Page(render_page(data))
    assert "With “x” from −" in page.said and "“y” rises from −" in page.said and "1 input makes no difference" in page.said
    assert {"importance", "dependence"} <= set(page.figures)
    color = next(own for own in data.dependences if own.column == "color")
    assert max(zip(color.means, color.values, strict=True))[1] == "red" and len(color.values) == 3
    assert render_page(from_table(model)) == render_page(data), "rows are those of the seed"


@pytest.mark.parametrize("task", ["number", "class"])
def test_in_a_short_time_boosting_has_the_columns_that_tell_most(task):
    """The target follows from two of 1,200 columns, of which one has gaps, as boosting takes them."""
    X = np.random.default_rng(0).normal(size=(300, 1200)).astype(np.float32)
    y = X[:, 170] + X[:, 1190]
    X[::7, 1190], X[:, 3] = np.nan, 1.0
    y = (y > 0).astype(int) if task == "class" else y
    *_, boosting = baselines(task, X, y, seconds=1e-6, seed=0, without=["linear", "mlp"])
    assert boosting.lacks == "1 of 100 rounds and 100 of 1,200 columns"
    assert ((boosting.predict(X) > y.mean()) == (y > y.mean())).mean() > 0.65, "100 columns at random hardly have either"
    if task == "class":
        assert boosting.predict_proba(X).shape == (300, 2)
