"""Thresholds of two classes: rules that choose one, and what each threshold costs; curves of all thresholds.

    best-f1          the highest F1 of the positive class
    cost=FP:FN       the least sum of costs: FP for each false positive, FN for each false negative
    recall=0.9       the highest threshold with at least this recall

The positive class is predicted where its probability is above the threshold. Imported by report/sections_classes.py, which
shows the table and the curves, and by estimators/cv.py, which chooses on out-of-fold probabilities.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from meristem.check import short

BEST_F1, COST, RECALL = "best-f1", "cost=", "recall="
RULES = "'best-f1', 'cost=FP:FN' such as 'cost=1:20', or 'recall=0.9'"
LEVELS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)  # thresholds of a table


@dataclass(frozen=True, eq=False)
class Thresholds:
    """True and false positives at all thresholds that matter [n + 1], from none predicted positive to all."""

    probabilities: np.ndarray  # [n], those that occur, descending
    true_positives: np.ndarray  # [n + 1]
    false_positives: np.ndarray  # [n + 1]

    @classmethod
    def of(cls, is_positive: np.ndarray, probability: np.ndarray) -> "Thresholds":
        """Return the thresholds between two different probabilities [rows], and beyond both ends.

        >>> Thresholds.of(np.array([True, False, True]), np.array([0.8, 0.2, 0.4])).recall.tolist()
        [0.0, 0.5, 1.0, 1.0]
        """
        values, groups = np.unique(-probability, return_inverse=True)  # descending probabilities
        positives, all_rows = np.bincount(groups, is_positive, len(values)), np.bincount(groups, minlength=len(values))
        true = np.concatenate([[0], np.cumsum(positives)])
        return cls(-values, true, np.concatenate([[0], np.cumsum(all_rows)]) - true)

    @property
    def false_negatives(self) -> np.ndarray:
        return np.asarray(self.true_positives[-1] - self.true_positives)

    @property
    def recall(self) -> np.ndarray:
        return np.asarray(self.true_positives / max(1, self.true_positives[-1]))

    @property
    def precision(self) -> np.ndarray:
        """The precision, 1 where nothing is predicted positive."""
        n = self.true_positives + self.false_positives
        return np.where(n > 0, self.true_positives / np.maximum(1, n), 1.0)

    @property
    def false_positive_rate(self) -> np.ndarray:
        return np.asarray(self.false_positives / max(1, self.false_positives[-1]))

    @property
    def f1(self) -> np.ndarray:
        return 2 * self.true_positives / np.maximum(1, 2 * self.true_positives + self.false_positives + self.false_negatives)

    def cost(self, rule: Any) -> np.ndarray:
        """Return the sum of costs at each threshold; a rule without costs counts errors."""
        fp, fn = costs_of(rule)
        return fp * self.false_positives + fn * self.false_negatives

    @property
    def thresholds(self) -> np.ndarray:
        """A threshold in the middle between the probabilities at either side, [n + 1]."""
        bounds = np.concatenate([[1.0], self.probabilities, [0.0]])
        return np.asarray((bounds[1:] + bounds[:-1]) / 2)

    def at(self, threshold: float) -> int:
        """Return the index at which rows with a probability above this threshold are predicted positive."""
        return int((self.probabilities > threshold).sum())


def costs_of(rule: Any) -> tuple[float, float]:
    """Return the costs of a false positive and a false negative in a rule; 1 and 1 where it has none."""
    if not isinstance(rule, str) or not rule.startswith(COST):
        return 1.0, 1.0
    fp, fn = map(float, rule.removeprefix(COST).split(":"))
    return fp, fn


def check_rule(name: str, rule: Any) -> None:
    """Raise ValueError unless a text is a rule."""
    try:
        if rule == BEST_F1:
            return
        if rule.startswith(COST):
            is_valid = all(0 < cost < np.inf for cost in costs_of(rule))
        else:
            is_valid = rule.startswith(RECALL) and 0 < float(rule.removeprefix(RECALL)) <= 1
    except (ValueError, AttributeError):
        is_valid = False
    if not is_valid:
        raise ValueError(f"{name}={short(rule)} must be {RULES}.")


def choose_threshold(rule: str, is_positive: np.ndarray, probability: np.ndarray) -> float:
    """Return the threshold that a rule chooses on these rows; raise ValueError where there is only one class.

    >>> choose_threshold("recall=0.5", np.array([True, False, True]), np.array([0.8, 0.2, 0.4]))
    0.6000000000000001
    """
    if is_positive.all() or not is_positive.any():
        raise ValueError(f"threshold={rule!r} needs held-out rows of both classes; give more rows, or a number.")
    tried = Thresholds.of(is_positive, probability)
    if rule.startswith(RECALL):
        place = int(np.argmax(tried.recall >= float(rule.removeprefix(RECALL)) - 1e-12))
    else:
        place = int(np.argmin(tried.cost(rule))) if rule.startswith(COST) else int(np.argmax(tried.f1))
    return float(np.clip(tried.thresholds[place], 1e-9, 1 - 1e-9))
