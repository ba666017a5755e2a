"""The formulas of metrics: outcomes of rows in, functions of the weights of rows out.

    statistic = roc_auc(Outcome(CLASS, y, Predicted(values, probabilities), n_classes=2))
    statistic(np.ones(n))                    as scikit-learn computes it;  statistic(weights): with sample_weight

An outcome is prepared once, as by sorting it: each draw of a bootstrap is then a weighted sum. Metrics of two classes are those
of the positive class; of several, the mean of each class against all others. Imported by report/task_metrics.py, their table.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np

from meristem.report.scoring import CLASS, r_squared

BINS, LEAST_IN_BIN = 10, 5
LEAST = float(np.finfo(float).eps)  # probability, of which the logarithm is taken
Statistic = Callable[[np.ndarray], float]  # weights [n] → value


class Predicted(NamedTuple):
    """What a model predicts for some rows."""

    values: np.ndarray  # indices of classes [n], labels, or numbers
    probabilities: np.ndarray | None = None  # of classes [n, classes]

    def rows(self, rows: Any) -> "Predicted":
        return Predicted(self.values[rows], None if self.probabilities is None else self.probabilities[rows])

    @classmethod
    def by(cls, model: Any, X: Any, *, with_probabilities: bool = True) -> "Predicted":
        """Return what a baseline predicts for rows of features, and of classes their probabilities."""
        probabilities = model.predict_proba(X) if with_probabilities and model.predict_proba is not None else None
        return cls(np.asarray(model.predict(X)), probabilities)

    @classmethod
    def joined(cls, parts: "Sequence[Predicted]") -> "Predicted":
        """Return the predictions of all parts; each may lack the probabilities of the last classes."""
        probabilities = [part.probabilities for part in parts if part.probabilities is not None]
        most = max((own.shape[1] for own in probabilities), default=0)
        padded = [np.pad(own, ((0, 0), (0, most - own.shape[1]))) for own in probabilities]
        is_complete = len(padded) == len(parts)
        return cls(np.concatenate([part.values for part in parts]), np.concatenate(padded) if is_complete else None)


@dataclass(frozen=True, eq=False)
class Outcome:
    """Rows with their true and predicted values."""

    task: str
    y: np.ndarray = field(repr=False)  # indices of classes [n] (negative: a class that the model does not have), or numbers
    predicted: Predicted = field(repr=False)
    n_classes: int = 0
    positive: int = 1  # index of the positive class, of two

    @property
    def is_binary(self) -> bool:
        return self.task == CLASS and self.n_classes == 2

    @property
    def columns(self) -> tuple[np.ndarray, np.ndarray]:
        """True and predicted numbers, [n, columns] each."""
        return self.y.reshape(len(self.y), -1), self.predicted.values.reshape(len(self.y), -1)

    @property
    def probabilities(self) -> np.ndarray:
        """The probabilities of all classes, [n, classes]; a baseline may not know the last ones."""
        own = np.asarray(self.predicted.probabilities)
        return np.pad(own, ((0, 0), (0, self.n_classes - own.shape[1])))

    @property
    def is_positive(self) -> np.ndarray:
        return np.asarray(self.y == self.positive)

    def rows(self, rows: Any) -> Self:
        return replace(self, y=self.y[rows], predicted=self.predicted.rows(rows))


def _mean(values: np.ndarray) -> Statistic:
    return lambda weight: float(weight @ values / weight.sum())


def _ratio(top: Any, bottom: Any, otherwise: float) -> float:
    return float(top / bottom) if bottom > 0 else otherwise


def _by_counts(formula: Callable[..., float]) -> Callable[[Outcome], Statistic]:
    """Return a metric of the rows of each class, those predicted as it, and both, [classes + 1]; the last are unknown."""

    def prepare(outcome: Outcome) -> Statistic:
        y, values, n = np.where(outcome.y < 0, outcome.n_classes, outcome.y), outcome.predicted.values, outcome.n_classes + 1
        is_right = y == values

        def statistic(weight: np.ndarray) -> float:
            true, predicted, right = (y, weight), (values, weight), (y, weight * is_right)
            return formula(outcome, *(np.bincount(rows, each, n) for rows, each in (true, predicted, right)))

        return statistic

    return prepare


def _balanced_accuracy(outcome: Outcome, true: np.ndarray, predicted: np.ndarray, right: np.ndarray) -> float:
    return float((right[true > 0] / true[true > 0]).mean())


def _f1(outcome: Outcome, *counts: np.ndarray) -> float:
    """Return that of the positive one of two classes, of several the mean."""
    true, predicted, right = (own[[outcome.positive]] if outcome.is_binary else own for own in counts)
    occurs = true + predicted > 0
    return float((2 * right[occurs] / (true + predicted)[occurs]).mean()) if occurs.any() else 0.0


def _ranked(formula: Callable[[np.ndarray, np.ndarray], float]) -> Callable[[Outcome], Statistic]:
    """Return a metric of a ranking: that of the positive class, or the mean over classes, each against the others.

    Its formula gets the sums of positive and of all weights by score, the highest score first.
    """

    def prepare(outcome: Outcome) -> Statistic:
        classes = [outcome.positive] if outcome.is_binary else range(outcome.n_classes)
        each = [_in_order(outcome.y == c, outcome.probabilities[:, c]) for c in classes]

        def statistic(weight: np.ndarray) -> float:
            values = np.array([formula(*sums(weight)) for sums in each])
            return float(values[np.isfinite(values)].mean()) if np.isfinite(values).any() else np.nan

        return statistic

    return prepare


def _in_order(is_positive: np.ndarray, score: np.ndarray) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Return weights → sums of positive and of all weights by score [different scores], the highest score first."""
    order = np.argsort(-score, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], np.diff(score[order]) != 0]))
    is_positive = is_positive[order]

    def sums(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        weight = np.asarray(weight, float)[order]
        return np.add.reduceat(weight * is_positive, starts), np.add.reduceat(weight, starts)

    return sums


def _roc_auc(positive: np.ndarray, every: np.ndarray) -> float:
    negative = every - positive
    below = negative.sum() - np.cumsum(negative) + negative / 2  # a tie counts half
    return _ratio(positive @ below, positive.sum() * negative.sum(), np.nan)


def _average_precision(positive: np.ndarray, every: np.ndarray) -> float:
    precisions = np.cumsum(positive) / np.maximum(np.cumsum(every), LEAST)
    return _ratio(positive @ precisions, positive.sum(), np.nan)


def log_losses(probabilities: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return −log of the probability [n, classes] of each row's class [n]; a class that is not known has probability 0."""
    own = np.where(y < 0, 0.0, probabilities[np.arange(len(y)), np.maximum(y, 0)])
    return -np.log(np.clip(own, LEAST, 1.0))


def log_loss(outcome: Outcome) -> Statistic:
    return _mean(log_losses(outcome.probabilities, outcome.y))


def calibration_error(outcome: Outcome) -> Statistic:
    """Return the mean distance of probability and frequency in bins: of the positive class, or of the predicted one."""
    probability, occurred = calibrated_rows(outcome)
    parts = probability_bins(probability)
    number = np.empty(len(probability), int)
    for k, rows in enumerate(parts):
        number[rows] = k
    gaps = probability - occurred
    return lambda weight: float(np.abs(np.bincount(number, weight * gaps, len(parts))).sum() / weight.sum())


def calibrated_rows(outcome: Outcome) -> tuple[np.ndarray, np.ndarray]:
    """Return the probability of the positive class, or of the likeliest of several, and whether it occurred, [n] each."""
    p = outcome.probabilities
    if outcome.is_binary:
        return p[:, outcome.positive], outcome.is_positive.astype(float)
    return p.max(1), (p.argmax(1) == outcome.y).astype(float)


def probability_bins(probability: np.ndarray) -> list[np.ndarray]:
    """Return rows in bins of ascending probability and equal shares of the variance p (1 − p), of at least five rows each.

    Bins of equally many rows would put nearly all rows of a rare class into the last one.
    """
    order = np.argsort(probability, kind="stable")
    cumulative = np.cumsum(probability[order] * (1 - probability[order]) + LEAST)
    cuts = np.searchsorted(cumulative, cumulative[-1] * np.arange(1, BINS) / BINS, side="right")
    parts, begin = list[np.ndarray](), 0
    for end in [*cuts.tolist(), len(order)]:
        if end - begin >= LEAST_IN_BIN and (len(order) - end >= LEAST_IN_BIN or end == len(order)):
            parts.append(order[begin:end])
            begin = end
    return parts or [order]


def r2(outcome: Outcome) -> Statistic:
    true, predicted = outcome.columns
    spread, furthest = np.abs(true - true.mean(0)).max(0), np.abs(true - predicted).max(0)
    unit = np.where(spread > 0, spread, np.where(furthest > 0, furthest, 1.0))  # avoids overflow of squares
    squares, y = ((true - predicted) / unit) ** 2, (true - true.mean(0)) / unit

    def statistic(weight: np.ndarray) -> float:
        mean = weight @ y / weight.sum()
        pairs = zip(weight @ squares, weight @ (y - mean) ** 2, strict=True)
        return float(np.mean([r_squared(residual, total) for residual, total in pairs]))

    return statistic


def rmse(outcome: Outcome) -> Statistic:
    errors = np.abs(np.subtract(*outcome.columns))
    unit = float(errors.max()) or 1.0
    squares = (errors / unit) ** 2
    return lambda weight: float(unit * np.sqrt(weight @ squares / weight.sum()).mean())


def mean_absolute_error(outcome: Outcome) -> Statistic:
    return _mean(np.abs(np.subtract(*outcome.columns)).mean(1))


def median_absolute_error(outcome: Outcome) -> Statistic:
    errors = np.abs(np.subtract(*outcome.columns))
    orders = np.argsort(errors, 0)

    def statistic(weight: np.ndarray) -> float:
        medians = []
        for column, order in zip(errors.T, orders.T, strict=True):
            sums = np.cumsum(weight[order])
            middle = [np.searchsorted(sums, sums[-1] / 2, side) for side in ("left", "right")]
            medians.append(column[order[np.minimum(middle, len(order) - 1)]].mean())
        return float(np.mean(medians))

    return statistic


accuracy = _by_counts(lambda outcome, true, predicted, right: float(right.sum() / true.sum()))
recall = _by_counts(lambda own, true, predicted, right: _ratio(right[own.positive], true[own.positive], np.nan))
precision = _by_counts(lambda own, true, predicted, right: _ratio(right[own.positive], predicted[own.positive], 0.0))
balanced_accuracy, f1 = _by_counts(_balanced_accuracy), _by_counts(_f1)
roc_auc, average_precision = _ranked(_roc_auc), _ranked(_average_precision)
