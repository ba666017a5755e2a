"""Metrics agree with scikit-learn's, thresholds do what their rules say, and a fit has them in model, file, ONNX, report."""

import numpy as np
import pytest
from sklearn import metrics as theirs

import meristem
from exporting import run, session
from meristem.export import onnx_of
from meristem.report import from_table, render_page
from meristem.report.metric_formulas import probability_bins
from meristem.report.scoring import CLASS, NUMBER
from meristem.report.task_metrics import METRICS, Outcome, Predicted, check_metric, evaluate, headline
from meristem.report.thresholds import Thresholds, check_rule, choose_threshold
from meristem.targets import Classes, unpack
from reporting import SHORT_SEARCH

pytestmark = [
    pytest.mark.filterwarnings("ignore::meristem.GrowthWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
N = 300
SMALL = SHORT_SEARCH | {"max_epochs": 8, "penalties": [1e-3], "random_state": 0}


def binary(share: float = 0.2) -> tuple[Outcome, np.ndarray, np.ndarray]:
    """Rows of two classes with tied probabilities; the outcome, those of the second class, and weights."""
    rng = np.random.default_rng(0)
    y = (rng.random(N) < share).astype(int)
    p = np.clip(rng.beta(1, 4, N) + 0.3 * y, 0.01, 0.99).round(2)
    return Outcome(CLASS, y, Predicted((p > 0.4).astype(int), np.stack([1 - p, p], 1)), 2), p, rng.integers(0, 4, N)


@pytest.mark.parametrize("is_weighted", [False, True])
def test_metrics_of_two_classes_are_those_of_scikit_learn(is_weighted):
    outcome, p, weight = binary()
    weight = weight if is_weighted else np.ones(N)
    y, values, how = outcome.y, outcome.predicted.values, {"sample_weight": weight}
    expected = {
        "accuracy": theirs.accuracy_score(y, values, **how),
        "balanced_accuracy": theirs.balanced_accuracy_score(y, values, **how),
        "roc_auc": theirs.roc_auc_score(y, p, **how),
        "average_precision": theirs.average_precision_score(y, p, **how),
        "log_loss": theirs.log_loss(y, outcome.probabilities, **how),
        "f1": theirs.f1_score(y, values, **how),
        "recall": theirs.recall_score(y, values, **how),
        "precision": theirs.precision_score(y, values, **how),
    }
    assert {name: METRICS[name].formula(outcome)(weight) for name in expected} == pytest.approx(expected)
    flipped = Outcome(CLASS, 1 - y, Predicted(1 - values, outcome.probabilities[:, ::-1]), 2, positive=0)
    assert {name: METRICS[name].formula(flipped)(weight) for name in expected} == pytest.approx(expected)


def test_metrics_of_several_classes_and_of_numbers_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 3, N), rng.dirichlet(np.ones(3), N)
    outcome = Outcome(CLASS, y, Predicted(p.argmax(1), p), 3)
    expected = {
        "roc_auc": theirs.roc_auc_score(y, p, multi_class="ovr"),
        "average_precision": theirs.average_precision_score(np.eye(3)[y], p),
        "log_loss": theirs.log_loss(y, p),
        "f1": theirs.f1_score(y, p.argmax(1), average="macro"),
    }
    assert {name: METRICS[name].value(outcome) for name in expected} == pytest.approx(expected)
    assert not {"recall", "precision"} & set(evaluate(outcome)), "which class would they be of?"
    true = rng.normal(size=(N, 2))
    predicted = true + rng.normal(size=(N, 2))
    expected = {
        "r2": theirs.r2_score(true, predicted),
        "rmse": theirs.root_mean_squared_error(true, predicted),
        "mae": theirs.mean_absolute_error(true, predicted),
        "median_absolute_error": theirs.median_absolute_error(true, predicted),
    }
    scores = evaluate(Outcome(NUMBER, true, Predicted(predicted)))
    assert {name: score["value"] for name, score in scores.items()} == pytest.approx(expected)
    assert all(score["low"] < score["value"] < score["high"] for score in scores.values())


def test_intervals_of_very_many_rows_come_from_a_sample():
    rng = np.random.default_rng(0)
    y = rng.normal(size=80_000)
    outcome = Outcome(NUMBER, y, Predicted(y + rng.normal(size=len(y))))
    errors = np.abs(outcome.predicted.values - y)
    score = METRICS["mae"].score(outcome)
    assert (score["high"] - score["low"]) / 2 == pytest.approx(1.96 * errors.std() / np.sqrt(len(y)), rel=0.2)


def test_the_headline_fits_the_task():
    assert headline(binary(0.4)[0]).name == "accuracy" and headline(binary(0.05)[0]).name == "average_precision"
    assert headline(binary(0.95)[0]).name == "balanced_accuracy", "the positive class is not the rare one"
    assert headline(binary(0.05)[0], "neg_log_loss").name == headline(binary(0.4)[0], "log_loss").name == "log_loss"
    numbers = Outcome(NUMBER, np.arange(3.0), Predicted(np.arange(3.0)))
    assert (
        headline(numbers).name == "r2" and headline(numbers, "roc_auc").name == "r2" and headline(numbers, "mae").name == "mae"
    )
    for name, task, n_classes in (("r2", CLASS, 2), ("recall", CLASS, 3), ("roc_auc", NUMBER, 0), ("roc_auc", CLASS, 50)):
        with pytest.raises(ValueError, match=rf"metric='{name}' is not known"):
            check_metric(name, task, n_classes)


def test_the_gain_is_paired_and_more_is_better():
    outcome, *_ = binary()
    worse = Predicted(np.zeros(N, int), np.tile([0.8, 0.2], (N, 1)))
    for name in ("average_precision", "log_loss"):
        gain, low, high = METRICS[name].gain(outcome, worse)
        assert 0 < low < gain < high
    assert METRICS["roc_auc"].gain(outcome, outcome.predicted) == (0, 0, 0)


def test_thresholds_do_what_their_rules_say():
    outcome, p, _ = binary()
    y = outcome.is_positive
    curve = Thresholds.of(y, p)
    rate, recall, _ = theirs.roc_curve(y, p, drop_intermediate=False)
    assert np.allclose(curve.recall, recall) and np.allclose(curve.false_positive_rate, rate)
    assert (p > (t := choose_threshold("recall=0.9", y, p)))[y].mean() >= 0.9 > (p > t + 0.01)[y].mean()
    tried = np.arange(0.005, 1, 0.01)
    best = max(theirs.f1_score(y, p > each) for each in tried)
    assert theirs.f1_score(y, p > choose_threshold("best-f1", y, p)) == pytest.approx(best)
    costs = [((p > each) & ~y).sum() + 7 * (y & (p <= each)).sum() for each in (*tried, choose_threshold("cost=1:7", y, p))]
    assert costs[-1] == min(costs) and choose_threshold("cost=1:7", y, p) < choose_threshold("cost=7:1", y, p)
    assert curve.true_positives[curve.at(0.4)] == (p > 0.4)[y].sum()
    for rule in ("best-f2", "cost=1", "cost=0:1", "recall=2", "recall=x", 7):
        with pytest.raises(ValueError, match=r"threshold=.* must be 'best-f1'"):
            check_rule("threshold", rule)


def test_bins_resolve_a_rare_class():
    _, p, _ = binary(0.02)
    rare = np.concatenate([np.full(5000, 0.001), p])
    parts = probability_bins(rare)
    assert np.sort(np.concatenate(parts)).tolist() == list(range(len(rare))) and min(map(len, parts)) >= 5
    assert len(parts) > 5 and rare[parts[-1]].min() > np.quantile(p, 0.7)


def test_a_threshold_is_in_the_targets_file_and_old_files_have_none():
    targets = Classes(np.array(["a", "b"]), 0.2, 0)
    again = unpack(*targets.pack())
    z = np.array([[-2.0], [1.3], [1.5]])  # P(a) = 0.88, 0.21, 0.18
    assert again.decode(z).tolist() == targets.decode(z).tolist() == ["a", "a", "b"]
    assert unpack({"kind": "classes"}, {"classes": np.arange(2)}).threshold == 0.5
    for header in ({"threshold": 1.5}, {"positive": 2}):
        with pytest.raises(ValueError, match=r"its threshold is not between 0 and 1"):
            unpack({"kind": "classes"} | header, {"classes": np.arange(2)})
    with pytest.raises(ValueError, match=r"for two classes, and 3 of them"):
        unpack({"kind": "classes", "threshold": 0.2}, {"classes": np.arange(3)})


def rare_rows(n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 3))
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 1.75, "bad", "good")


@pytest.fixture(scope="module")
def model():
    X, y = rare_rows()
    frame = {f"x{k}": column for k, column in enumerate(X.T)} | {"y": y}
    return meristem.fit_table(frame, target="y", threshold="recall=0.9", metric="average_precision", **SMALL)


def test_a_fit_has_metrics_and_a_threshold_everywhere(model, tmp_path):
    facts, estimator = model.facts, model.estimator
    assert estimator.scoring == "average_precision" and facts["score"]["measure"] == "average precision"
    assert "score" in estimator.path_.table, "the search chooses by it, too"
    assert facts["test"]["average_precision"] == facts["score"]["value"]
    assert {"roc_auc", "log_loss", "balanced_accuracy", "recall", "precision", "calibration_error"} < set(facts["test"])
    assert all(low <= facts["test"][name] <= high for name, (low, high) in facts["test_intervals"].items())
    assert set(facts["baselines"]["linear"]["test"]) == set(facts["test"]) and facts["test_table"] is None
    assert estimator.positive_class_ == facts["positive_class"] == "bad" and facts["threshold"] == estimator.threshold_ != 0.5
    X = rare_rows(1000)[0]
    expected = np.where(estimator.predict_proba(X)[:, 0] >= estimator.threshold_, "bad", "good")
    assert (estimator.predict(X) == expected).all() and (expected == "bad").sum() > 0
    model.save(tmp_path / "model.safetensors")
    loaded = meristem.load(tmp_path / "model.safetensors")
    assert (loaded.estimator.predict(X) == expected).all() and loaded.facts["test"] == facts["test"]
    got = run(session(onnx_of(loaded.estimator, tmp_path / "model.onnx")), X.astype(np.float32))
    near = np.abs(estimator.predict_proba(X)[:, 0] - estimator.threshold_) < 1e-5
    assert (got["label"] == expected)[~near].all()


def test_the_report_shows_them(model):
    page = render_page(from_table(model))
    for text in (
        "figure-roc",
        "figure-precision-recall",
        "(chosen)",
        "recall=0.9",
        "All metrics",
        "log-likelihood",
        "(recall)",
    ):
        assert text in page, text
    assert f"average precision of {model.facts['score']['value']:.3f}" in page


def test_what_does_not_fit_is_one_line():
    X, y = rare_rows(60)
    with pytest.raises(ValueError, match=r"threshold='best-f1' is chosen on out-of-fold predictions.*TunnelClassifierCV"):
        meristem.TunnelClassifier(threshold="best-f1").fit(X, y)
    with pytest.raises(ValueError, match=r"threshold='best-f1' is for two classes, y has 3 classes"):
        meristem.TunnelClassifierCV(threshold="best-f1").fit(X, np.arange(60) % 3)
    with pytest.raises(ValueError, match=r"threshold=2 must be a number above 0 and below 1"):
        meristem.TunnelClassifierCV(threshold=2).fit(X, y)
    with pytest.raises(ValueError, match=r"threshold=0\.3 is for two classes; the target 'y' is a number"):
        meristem.fit_table({"x": X[:, 0], "y": X[:, 1]}, target="y", threshold=0.3)
    with pytest.raises(ValueError, match=r"metric='f3' is not known"):
        meristem.fit_table({"x": X[:, 0], "y": X[:, 1]}, target="y", metric="f3")


def test_a_plain_classifier_takes_a_number():
    X, y = rare_rows()
    plain = meristem.TunnelClassifier(threshold=0.1, max_epochs=3, max_width=8, depth=2, random_state=0).fit(X, y == "bad")
    assert plain.threshold_ == 0.1 and plain.positive_class_
    assert (plain.predict(X) == (plain.predict_proba(X)[:, 1] > 0.1)).all()
