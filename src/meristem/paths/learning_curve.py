"""How much more data would help, from networks that learned from a quarter and a half of the rows of each fold.

    gain of twice the rows = D · r        D = s(n) − s(n/2),  r = D / (s(n/2) − s(n/4)), between 0 and 1

s is the mean score of the rows that folds hold out, higher is better. Where s = a − b · n^−c, each doubling gains r = 2^−c of
the one before. The interval is that of a jackknife over folds, with Student's t. Folds share training rows, so it is
approximate. Of fewer than three folds, of folds that go forward in time, of few rows, or where networks are no better than a
constant, nothing is known. Imported by estimators/curve_measurement.py, which trains the networks, and cv.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from meristem.paths.folds import Fold, has_small_fold

SHARES = (0.25, 0.5)  # of the training rows of a fold
LEAST_FOLDS, LEAST_ROWS = 3, 40  # folds; rows of the smallest part


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """Scores [3, folds] of networks that learned from so many rows; higher is better."""

    rows: list[int]
    scores: np.ndarray

    def gain(self) -> tuple[float, float, float]:
        """Return about how much better twice the rows would be, and the 95 % interval of that.

        >>> curve = LearningCurve([100, 200, 400], np.array([[0.5, 0.52, 0.51], [0.6, 0.62, 0.61], [0.65, 0.67, 0.66]]))
        >>> [round(value, 3) for value in curve.gain()]
        [0.025, 0.025, 0.025]
        """
        n = self.scores.shape[1]
        value = _gain(self.scores.mean(1))
        each = np.array([_gain(np.delete(self.scores, fold, 1).mean(1)) for fold in range(n)])
        half = float(_student(n - 1) * np.sqrt((n - 1) / n * ((each - each.mean()) ** 2).sum()))
        return value, value - half, value + half

    def facts(self, metric: Any) -> dict[str, Any] | None:
        """Return the curve in the unit of its metric, made of JSON values; a gain is above 0 where it is better."""
        if not np.isfinite(self.scores).all():
            return None
        means = (-1 if metric.lower_is_better else 1) * self.scores.mean(1)
        gain = dict(zip(("value", "low", "high"), self.gain(), strict=True))
        return {"measure": metric.label, "rows": self.rows, "scores": means.tolist(), "gain": gain}


def _student(degrees: int) -> float:
    """Return the 97.5 % quantile of Student's t, by Cornish and Fisher's expansion: within 0.3 % from 4 degrees of freedom on.

    >>> round(_student(4), 2), round(_student(9), 3)
    (2.77, 2.262)
    """
    z = 1.959964
    terms = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + sum(term / degrees**power for power, term in enumerate(terms, 1))


def _gain(means: np.ndarray) -> float:
    before, last = np.diff(means)
    return float(last * (np.clip(last / before, 0, 1) if before > 0 else 1.0))


def can_be_known(folds: Sequence[Fold]) -> bool:
    """Return whether parts of these folds have rows enough, and a part is a sample of the whole."""
    is_enough = min(len(train) for train, _ in folds) * SHARES[0] >= LEAST_ROWS
    return len(folds) >= LEAST_FOLDS and is_enough and not has_small_fold(folds)


def part_of(train: np.ndarray, classes: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Return a share of rows, of each class at least one; smaller shares are part of larger ones.

    >>> part_of(np.arange(8), np.array([0, 0, 0, 0, 0, 0, 1, 1]), 0.5, seed=0).tolist()
    [2, 3, 4, 6]
    """
    shuffled = np.random.default_rng(seed).permutation(train)
    own, place = classes[shuffled], np.zeros(len(train))
    for label in np.unique(own):
        place[own == label] = np.arange((own == label).sum()) / (own == label).sum()
    return np.sort(shuffled[place < share])
