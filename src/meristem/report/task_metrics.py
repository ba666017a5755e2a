"""The table of metrics, each with its 95 % interval; the headline of a report is chosen by the task, or by name.

    METRICS["roc_auc"].value(outcome)        as scikit-learn computes it                          formulas: metric_formulas.py
    evaluate(outcome, seed)                  {"roc_auc": {"value": 0.93, "low": 0.91, "high": 0.95}, …}, all that apply
    headline(outcome, "roc_auc")             the metric of this name; None: by the task, and average precision of a rare class

Imported by the report, by tables/ (summary.json, the console) and by estimators/search.py, which may choose by one.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from meristem.check import unknown
from meristem.report import metric_formulas as formulas
from meristem.report.metric_formulas import Outcome as Outcome, Predicted as Predicted, Statistic
from meristem.report.scoring import CLASS, MOST_DRAWN_IN_REPORT, NUMBER, Scorer, bootstrap_interval, wilson_interval

RARE = 0.1  # share of rows: a class with fewer, and all but one class together with fewer, are rare
MOST_CLASSES = 20  # of which each is ranked against the others
MOST_ROWS = 50_000  # of a bootstrap: intervals of more rows are narrower by the square root of their number


@dataclass(frozen=True)
class Metric:
    """A row of the table of metrics."""

    name: str
    label: str
    task: str
    formula: Callable[[Outcome], Statistic] = field(repr=False)
    scoring: str | None = None  # scikit-learn's name of it; None: no search chooses by it
    lower_is_better: bool = False
    needs_probabilities: bool = False
    is_binary: bool = False
    is_ranking: bool = False  # of each class against the others

    def fits(self, task: str, n_classes: int) -> bool:
        """Return whether it is a metric of so many classes, or of numbers."""
        has_too_many = self.is_ranking and n_classes > MOST_CLASSES
        return task == self.task and not has_too_many and (n_classes == 2 or not self.is_binary)

    def applies(self, outcome: Outcome) -> bool:
        has_probabilities = outcome.predicted.probabilities is not None
        return self.fits(outcome.task, outcome.n_classes) and (has_probabilities or not self.needs_probabilities)

    def value(self, outcome: Outcome) -> float:
        return float(self.formula(outcome)(np.ones(len(outcome.y))))

    def utility(self, outcome: Outcome) -> float:
        """Return the value with the sign that makes more better; raise ValueError where it is not defined."""
        value = self.value(outcome)
        if not np.isfinite(value):
            raise ValueError(f"{self.label} is not defined for rows of one class; give fewer folds, or more rows")
        return -value if self.lower_is_better else value

    def score(self, outcome: Outcome, seed: int = 0) -> dict[str, Any]:
        """Return measure, value, low and high: Wilson's interval of shares, else that of a bootstrap; NaN if not defined."""
        value = self.value(outcome) if self.applies(outcome) else np.nan
        low = high = np.nan
        if np.isfinite(value) and self.name in _SHARES:
            n = _SHARES[self.name](outcome)
            low, high = wilson_interval(round(value * n), n) if n else (0.0, 1.0)
        elif np.isfinite(value):
            low, high = _interval(lambda rows: self.formula(outcome.rows(rows)), len(outcome.y), value, seed)
        return {"measure": self.label, "value": value, "low": low, "high": high}

    def gain(self, outcome: Outcome, others: Predicted, seed: int = 0) -> tuple[float, float, float]:
        """Return how much better the outcome is than other predictions of the same rows, and the interval of that."""
        other, sign = replace(outcome, predicted=others), -1.0 if self.lower_is_better else 1.0
        if not (self.applies(outcome) and self.applies(other)):
            return np.nan, np.nan, np.nan

        def prepare(rows: Any) -> Statistic:
            own, their = self.formula(outcome.rows(rows)), self.formula(other.rows(rows))
            return lambda weight: sign * (own(weight) - their(weight))

        n = len(outcome.y)
        value = prepare(slice(None))(np.ones(n))
        return (value, *_interval(prepare, n, value, seed)) if np.isfinite(value) else (np.nan, np.nan, np.nan)


def _interval(prepare: Callable[[Any], Statistic], n: int, value: float, seed: int) -> tuple[float, float]:
    """Return the bootstrap interval of a statistic, which holds its value; from a sample where there are very many rows."""
    rows: Any = slice(None) if n <= MOST_ROWS else np.random.default_rng(seed).choice(n, MOST_ROWS, replace=False)
    m, statistic = min(n, MOST_ROWS), prepare(rows)
    low, high = bootstrap_interval(lambda drawn: statistic(np.bincount(drawn, minlength=m)), m, seed, MOST_DRAWN_IN_REPORT)
    middle, shrink = (value, 1.0) if m == n else (statistic(np.ones(m)), float(np.sqrt(m / n)))
    return min(value, value + shrink * (low - middle)), max(value, value + shrink * (high - middle))


MEANINGS = {
    "accuracy": "Accuracy is the share of rows whose class is predicted correctly.",
    "balanced_accuracy": "Balanced accuracy is the mean recall of the classes: rare ones count as much as frequent ones.",
    "roc_auc": "ROC AUC is the probability that a row of the class is ranked above a row of another class; 0.5 is chance.",
    "average_precision": "Average precision is the area under the precision–recall curve; by chance, the share of the class.",
    "log_loss": "Log loss is the mean of −log of the probability predicted for the true class; lower is better.",
    "f1": "F1 is the harmonic mean of recall and precision; of several classes the mean.",
    "recall": "Recall is the share of the rows of the positive class that are predicted as that class.",
    "precision": "Precision is the share of the rows predicted as the positive class that are of that class.",
    "calibration_error": "The calibration error is the mean distance of predicted probabilities from observed frequencies.",
    "r2": "R² is the share of the target’s variance that is predicted: 1 is perfect, 0 is no better than the mean.",
    "rmse": "The root mean squared error is in the unit of the target; lower is better.",
    "mae": "The mean absolute error is in the unit of the target; lower is better.",
    "median_absolute_error": "Half of the rows have an absolute error below the median absolute error; lower is better.",
}
_RANKING: dict[str, Any] = {"needs_probabilities": True, "is_ranking": True}
_LOSS: dict[str, Any] = {"needs_probabilities": True, "lower_is_better": True}
_SHARES: dict[str, Callable[[Outcome], int]] = {  # what they are shares of
    "accuracy": lambda outcome: len(outcome.y),
    "recall": lambda outcome: int(outcome.is_positive.sum()),
    "precision": lambda outcome: int((outcome.predicted.values == outcome.positive).sum()),
}
_ROWS = (
    Metric("accuracy", "accuracy", CLASS, formulas.accuracy, "accuracy"),
    Metric("balanced_accuracy", "balanced accuracy", CLASS, formulas.balanced_accuracy, "balanced_accuracy"),
    Metric("roc_auc", "ROC AUC", CLASS, formulas.roc_auc, "roc_auc", **_RANKING),
    Metric("average_precision", "average precision", CLASS, formulas.average_precision, "average_precision", **_RANKING),
    Metric("log_loss", "log loss", CLASS, formulas.log_loss, "neg_log_loss", **_LOSS),
    Metric("f1", "F1", CLASS, formulas.f1, "f1"),
    Metric("recall", "recall", CLASS, formulas.recall, "recall", is_binary=True),
    Metric("precision", "precision", CLASS, formulas.precision, "precision", is_binary=True),
    Metric("calibration_error", "calibration error", CLASS, formulas.calibration_error, None, **_LOSS),
    Metric("r2", "R²", NUMBER, formulas.r2, "r2"),
    Metric("rmse", "root mean squared error", NUMBER, formulas.rmse, "neg_root_mean_squared_error", lower_is_better=True),
    Metric("mae", "mean absolute error", NUMBER, formulas.mean_absolute_error, "neg_mean_absolute_error", lower_is_better=True),
    Metric(
        *("median_absolute_error", "median absolute error", NUMBER, formulas.median_absolute_error),
        *("neg_median_absolute_error", True),
    ),
)
METRICS: dict[str, Metric] = {metric.name: metric for metric in _ROWS}
BY_LABEL: dict[str, Metric] = {metric.label: metric for metric in _ROWS}
DEFAULTS = {CLASS: METRICS["accuracy"], NUMBER: METRICS["r2"]}


def metric_of(scoring: Any) -> Metric | None:
    """Return the metric of a name, ours or scikit-learn's; None where there is none, as for a function."""
    names = METRICS | {str(metric.scoring): metric for metric in METRICS.values()}
    return names.get(scoring) if isinstance(scoring, str) else None


def check_metric(name: str, task: str, n_classes: int) -> None:
    """Raise ValueError unless a metric of this name is one of the task."""
    fitting = [metric.name for metric in METRICS.values() if metric.fits(task, n_classes) and metric.scoring]
    if name not in fitting:
        raise unknown("metric", name, fitting)


def evaluate(outcome: Outcome, seed: int = 0) -> dict[str, dict[str, Any]]:
    """Return the scores of all metrics that apply and are defined, by name."""
    scores = {name: metric.score(outcome, seed) for name, metric in METRICS.items() if metric.applies(outcome)}
    return {name: score for name, score in scores.items() if np.isfinite(score["value"])}


def values(outcome: Outcome) -> dict[str, float]:
    """Return the values of all metrics that apply and are defined, by name, without intervals."""
    every = {name: metric.value(outcome) for name, metric in METRICS.items() if metric.applies(outcome)}
    return {name: value for name, value in every.items() if np.isfinite(value)}


def headline(outcome: Outcome, scoring: Any = None) -> Metric:
    """Return the metric of a name, if it applies; else the one that fits the task and the frequencies of the classes."""
    metric, default = metric_of(scoring), DEFAULTS[outcome.task]
    if metric is not None and metric.applies(outcome):
        return metric
    if outcome.task != CLASS:
        return default
    counts = np.bincount(outcome.y[outcome.y >= 0], minlength=outcome.n_classes) / max(1, len(outcome.y))
    is_rare = outcome.is_binary and 0 < counts[outcome.positive] < RARE
    metric = METRICS["average_precision" if is_rare else "balanced_accuracy"]
    return metric if 1 - RARE < counts.max() < 1 and metric.applies(outcome) else default


def outcome_of(model: Any, scorer: Scorer, predictions: np.ndarray, outputs: np.ndarray) -> Outcome | None:
    """Return the outcome that metrics are computed from; None of labels and quantiles, which have a score only."""
    if scorer.task == NUMBER:
        return Outcome(NUMBER, scorer.y, Predicted(predictions))
    if scorer.task != CLASS:
        return None
    predicted = Predicted(predictions, model._targets_.probabilities(outputs))
    return Outcome(CLASS, scorer.y, predicted, len(scorer.labels), model._targets_.positive)


def scores_in(facts: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the scores by all metrics that `fit` measured; files of earlier versions have none."""
    limits = facts.get("test_intervals", {})
    return {
        name: {"value": value, "low": limits[name][0], "high": limits[name][1]}
        for name, value in facts.get("test", {}).items()
        if name in METRICS and name in limits
    }
