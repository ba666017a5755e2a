"""Scores with 95 % confidence intervals, for every kind of target.

    score = 1 − Σ loss / Σ reference loss,  over the rows

    task        loss of a row                             reference loss                  measure
    class       1 if the class is wrong                   1                               accuracy
    labels      share of wrong labels                     1                               share of right labels
    number      squared error                             that of the mean                R², averaged over the columns of y
    quantiles   pinball loss                              that of the best constants      quantile skill, if 0.5 is no quantile

The interval of an accuracy is Wilson's; all others are bootstrap intervals over the rows.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from meristem.report.formatting import score_text
from meristem.targets import Labels, Quantiles

CLASS, LABELS, NUMBER, QUANTILES = "class", "labels", "number", "quantiles"
MEASURES = {CLASS: "accuracy", LABELS: "share of right labels", NUMBER: "R²", QUANTILES: "quantile skill"}
Z95 = 1.959964  # standard deviations on both sides that hold 95 %
DRAWS, LEAST_DRAWS, MOST_DRAWN = 1000, 100, 20_000_000  # of the bootstrap; rows drawn in all
MOST_DRAWN_IN_REPORT = 10_000_000  # a report has an interval for each baseline
BLOCK = 16_384  # rows predicted at a time
MEDIAN = 0.5
TINY = float(np.finfo(float).tiny)


def wilson_interval(right: int, n: int) -> tuple[float, float]:
    share, z = right / n, Z95**2 / n
    middle, half = (share + z / 2) / (1 + z), np.sqrt(share * (1 - share) * z + z**2 / 4) / (1 + z)
    return float(max(0, middle - half)), float(min(1, middle + half))


def bootstrap_interval(
    statistic: Callable[[np.ndarray], float], n: int, seed: int, most_drawn: int = MOST_DRAWN
) -> tuple[float, float]:
    """Return the 95 % interval of a statistic of rows that are drawn with replacement from range(n), where it is defined."""
    rng, draws = np.random.default_rng(seed), max(LEAST_DRAWS, min(DRAWS, most_drawn // n))
    low, high = np.nanquantile([statistic(rng.integers(n, size=n)) for _ in range(draws)], [0.025, 0.975])
    return float(low), float(high)


def r_squared(residual: float, total: float) -> float:
    """Return R² from sums of squares; for constant y, 1 if it is predicted and 0 otherwise, as in scikit-learn."""
    return float(1 - residual / total) if total > 0 else float(residual == 0)


def in_words(score: dict[str, Any]) -> str:
    """Return a score with its interval: "R² 0.000 (-0.020 to 0.000)"."""
    value, low, high = (score_text(score[name], score["measure"]).replace("−", "-") for name in ("value", "low", "high"))
    return f"{score['measure']} {value} ({low} to {high})"


def best_constant(task: str, y: np.ndarray, levels: tuple[float, ...] = ()) -> np.ndarray:
    """Return the best constant prediction for the rows of y: most frequent class, label by label, mean, or quantiles."""
    if task == CLASS:
        return np.asarray(np.bincount(y[y >= 0], minlength=1).argmax())
    if task == QUANTILES:
        return np.quantile(y, levels, axis=0).T.reshape(-1)
    return (y.mean(0) > 0.5).astype(float) if task == LABELS else np.asarray(y.mean(0))


@dataclass(frozen=True, eq=False)
class Scorer:
    """The targets of some rows, and the losses and scores of predictions for them."""

    task: str
    # Class indices [n] (−1: a class that the model does not have), labels 0 or 1 [n, labels], or numbers [n, columns].
    y: np.ndarray = field(repr=False)
    labels: tuple[str, ...] = ()  # of classes
    levels: tuple[float, ...] = ()  # of quantiles
    variance: np.ndarray | None = field(default=None, repr=False)  # [columns], the unit of squared errors; None: that of y

    @classmethod
    def of(cls, model: Any, y: np.ndarray) -> Self:
        """Return the scorer of a fitted estimator for y in the form that `fit` takes."""
        targets = model._targets_
        if isinstance(targets, Labels):
            return cls(LABELS, np.asarray(y, float), tuple(f"label {number}" for number in range(targets.count)))
        if hasattr(model, "classes_"):
            index = {label: number for number, label in enumerate(model.classes_.tolist())}
            codes = np.array([index.get(label, -1) for label in np.asarray(y).tolist()], int)
            return cls(CLASS, codes, tuple(map(str, model.classes_.tolist())))
        levels = targets.levels if isinstance(targets, Quantiles) else ()
        task = QUANTILES if levels and MEDIAN not in levels else NUMBER
        return cls(task, np.asarray(y, float).reshape(len(y), -1), levels=levels)

    def subset(self, rows: np.ndarray) -> "Scorer":
        """Return the scorer of some rows, whose losses stay the same."""
        variance = self.y.var(0) if self.task in (NUMBER, QUANTILES) and self.variance is None else self.variance
        return replace(self, y=self.y[rows], variance=variance)

    @cached_property
    def reference_losses(self) -> np.ndarray:
        return np.ones(len(self.y)) if self.task in (CLASS, LABELS) else self.losses(self.constant_predictions)

    @property
    def constant_predictions(self) -> np.ndarray:
        return np.repeat(best_constant(self.task, self.y, self.levels)[None], len(self.y), 0)

    def losses(self, predictions: np.ndarray) -> np.ndarray:
        """Return the loss of each row [n]; predictions are class indices, labels, numbers, or [n, columns · levels]."""
        if self.task == CLASS:
            return (self.y != predictions).astype(float)
        if self.task == LABELS:
            return np.asarray((self.y != predictions).mean(1))
        predictions = predictions.reshape(len(self.y), -1)
        if self.task == QUANTILES:
            errors, level = np.repeat(self.y, len(self.levels), 1) - predictions, np.tile(self.levels, self.y.shape[1])
            return np.asarray(np.maximum(level * errors, (level - 1) * errors).mean(1))
        variance = self.y.var(0) if self.variance is None else self.variance
        return np.asarray(((self.y - predictions) ** 2 / np.where(variance > 0, variance, 1)).mean(1))

    def score(self, losses: np.ndarray, seed: int = 0) -> dict[str, Any]:
        """Return measure, value, low and high; NaN if all numbers are the same."""
        total = float(self.reference_losses.sum())
        if total <= 0:
            return {"measure": MEASURES[self.task], "value": np.nan, "low": np.nan, "high": np.nan}
        if self.task == CLASS:
            low, high = wilson_interval(round(len(losses) - losses.sum()), len(losses))
        else:
            low, high = (1 + limit for limit in self._interval(-losses, seed))
        return {"measure": MEASURES[self.task], "value": float(1 - losses.sum() / total), "low": low, "high": high}

    def gain(self, losses: np.ndarray, others: np.ndarray, seed: int = 0) -> tuple[float, float, float]:
        """Return how much better the score of `losses` is than that of `others` on the same rows, and its interval."""
        return self._share(others - losses), *self._interval(others - losses, seed)

    def _share(self, gains: np.ndarray, rows: Any = slice(None)) -> float:
        return float(gains[rows].sum() / max(self.reference_losses[rows].sum(), TINY))

    def _interval(self, gains: np.ndarray, seed: int) -> tuple[float, float]:
        return bootstrap_interval(lambda rows: self._share(gains, rows), len(gains), seed, MOST_DRAWN_IN_REPORT)


def as_dense(X: Any) -> np.ndarray:
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, float)


def network_outputs(model: Any, X: Any) -> np.ndarray:
    """Return the outputs of a model's network for X, dense or sparse, computed in blocks of rows."""
    blocks = range(0, X.shape[0], BLOCK)
    return np.concatenate([model._predictor_.outputs(model._inputs_(X[at : at + BLOCK])) for at in blocks])


def measured_coverage(model: Any, X: Any, outputs: np.ndarray, scorer: Scorer, coverage: float) -> tuple[float, float] | None:
    """Return the share of rows in their interval or set, and the mean width or size; None of a model that has none."""
    scores = getattr(model, "_scores_", None)
    if scores is None or not scores.covers(coverage):
        return None
    if scorer.task == CLASS:
        members = scores.members(model._targets_.probabilities(outputs), coverage)
        is_right = (scorer.y >= 0) & members[np.arange(len(members)), scorer.y]
        return float(is_right.mean()), float(members.sum(1).mean())
    starts = range(0, X.shape[0], BLOCK)
    parts = [(model._inputs_(X[at : at + BLOCK]), outputs[at : at + BLOCK]) for at in starts]
    bounds = np.concatenate([scores.bounds(model._targets_, *part, coverage) for part in parts])
    low, high = (bounds[..., side].reshape(scorer.y.shape) for side in (0, 1))
    return float(((low <= scorer.y) & (scorer.y <= high)).mean()), float((high - low).mean())


def decode_predictions(model: Any, outputs: np.ndarray, scorer: Scorer) -> np.ndarray:
    """Return predictions as `Scorer.losses` takes them; of several quantiles the median, if it is one of them."""
    predictions = np.asarray(model._targets_.decode(outputs))
    if scorer.task == CLASS:
        return np.searchsorted(model.classes_, predictions)
    if scorer.task == NUMBER:
        predictions = predictions.reshape(len(predictions), -1)
        return predictions[:, scorer.levels.index(MEDIAN) :: len(scorer.levels)] if scorer.levels else predictions
    return predictions
