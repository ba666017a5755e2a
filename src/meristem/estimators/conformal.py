"""Intervals and sets of classes with a promised coverage, from the rows that the folds of a search held out (cross-conformal).

    numbers   score_i = |y_i − μ_i| / s(x_i)                            interval  μ(x) ± q · s(x), column by column of y
    classes   score_i(y) = [y is not the likeliest] − p_i(y)            set       the classes whose score is at most q
    q = the ⌈(n + 1) · coverage⌉-th smallest of n scores of the true values; of sets at least 0, so that none is empty

μ_i and p_i are those of the network that held row i out. A bag is better than its networks, whatever y is: averaging lowers
the squared error by mean_k (μ_k − μ̄)², and the log loss of logits z by mean_k lse(z_k) − lse(z̄). For rows that no network has
seen, the differences between the network that held a row out and those that learned from it estimate this. Residuals are
scaled, or logits moved towards the true class, z + τ (1_y − p), until the mean loss is lower by as much; otherwise intervals
would be too wide. A single final network needs no correction. This correction is an estimate, so the coverage is measured
(results/log/2026-11-18-coverage.md), not guaranteed.

The difficulty s is positive: log s is a ridge regression of log(|residual| + median) on the output, hinges of it, the inputs
and their absolute values, limited to its usual range. Scores use its exact leave-one-out predictions, which also choose the
ridge, ∞ (a constant s) included. At most 10,000 rows are used.
Imported by search.py, cv.py, classifiers.py, regressors.py and estimator_file.py.
"""

import math
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from meristem.check import check_number, many
from meristem.files.named_arrays import Arrays, is_between
from meristem.targets import Classes, Labels, Numbers, Quantiles, Targets
from meristem.targets.categorical import log_sum_exp

MOST_ROWS, MOST_INPUTS = 10_000, 128  # inputs beyond which the difficulty depends on the output alone
HINGES = [0.1, 0.3, 0.5, 0.7, 0.9]  # quantiles of the output
USUAL = [0.02, 0.98]  # quantiles of log s
RIDGES = [*(10.0**power for power in range(-3, 4)), math.inf]  # relative to the number of rows
MOST_LEVERAGE, MOST_GAIN = 0.999, 0.9
STEPS, MOST_STEP = 40, 20.0  # of the bisection for τ


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows that some network held out: inputs [n, n_in], targets [n] or [n, columns], outputs [networks, n, n_out]."""

    z: np.ndarray
    y: np.ndarray  # indices of classes, or numbers
    outputs: np.ndarray
    is_held_out: np.ndarray  # [networks, n]
    n_averaged: int  # networks of the final model

    @property
    def own(self) -> np.ndarray:
        """The outputs [n, n_out] of the network that held a row out; of several, the mean."""
        return self._mean(self.outputs, self.is_held_out)

    def gain(self, difference: np.ndarray) -> np.ndarray:
        """Return how much averaging lowers the mean loss, from that of pairs of networks [networks, n, …] to their mean."""
        return np.asarray(2 * (1 - 1 / self.n_averaged) * self._mean(difference, ~self.is_held_out).mean(0))

    def _mean(self, values: np.ndarray, counts: np.ndarray) -> np.ndarray:
        weight = (counts / np.maximum(counts.sum(0), 1)).reshape(*counts.shape, *[1] * (values.ndim - 2))
        return (weight * values).sum(0)


class _Scores:
    scores: np.ndarray

    def pack(self) -> Arrays:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def covers(self, coverage: float) -> bool:
        """Return whether there are scores enough to promise this coverage."""
        return _rank(self.scores.shape[-1], coverage) <= self.scores.shape[-1]

    def quantile(self, coverage: Any) -> Any:
        """Return q, for each column of y; raise ValueError for a coverage that is none, or needs more rows."""
        check_number("coverage", coverage, "above 0 and below 1", lambda value: 0 < value < 1)
        n = self.scores.shape[-1]
        if not self.covers(coverage):
            least, rows = math.ceil(coverage / (1 - coverage) - 1e-9), many(n, "row")
            raise ValueError(f"coverage={coverage} needs {least:,} held-out rows, and the search had {rows}; give a lower one.")
        return self.scores[..., _rank(n, coverage) - 1]


@dataclass(frozen=True, eq=False)
class ClassScores(_Scores):
    """The scores [n] of the true classes, ascending; the likeliest class of a row has one of at most 0, others at least 0."""

    scores: np.ndarray

    @classmethod
    def of(cls, rows: HeldOut, targets: Classes) -> Self:
        logits, rows_of_y = targets.logits(rows.own), (np.arange(len(rows.y)), rows.y)
        each = targets.logits(rows.outputs)
        pairs = (log_sum_exp(logits) + log_sum_exp(each)) / 2 - log_sum_exp((logits + each) / 2)
        is_true = np.zeros(logits.shape)
        is_true[rows_of_y] = 1
        errors = is_true - np.exp(logits - log_sum_exp(logits)[:, None])

        def loss(step: float) -> float:
            moved = logits + step * errors
            return float((log_sum_exp(moved) - moved[rows_of_y]).mean())

        low, high, least = 0.0, MOST_STEP, max(loss(0.0) - float(rows.gain(pairs)), (1 - MOST_GAIN) * loss(0.0))
        for _ in range(STEPS if least < loss(0.0) else 0):
            middle = (low + high) / 2
            low, high = (middle, high) if loss(middle) > least else (low, middle)
        moved = logits + low * errors
        return cls(np.sort(cls._scores(np.exp(moved - log_sum_exp(moved)[:, None]))[rows_of_y]))

    def members(self, probabilities: np.ndarray, coverage: float, *, allow_empty: bool = True) -> np.ndarray:
        """Return which classes are in the set of each row, [n, classes], from their probabilities."""
        most = self.quantile(coverage)
        return np.asarray(self._scores(probabilities) <= (most if allow_empty else max(most, 0.0)))

    @staticmethod
    def _scores(probabilities: np.ndarray) -> np.ndarray:
        likeliest = probabilities.argmax(1, keepdims=True)
        scores = np.maximum(1 - probabilities, 0.0)
        np.put_along_axis(scores, likeliest, -np.take_along_axis(probabilities, likeliest, 1), 1)
        return scores

    @classmethod
    def unpack(cls, arrays: Arrays, targets: Classes, n_inputs: int) -> Self:
        return cls(_checked_scores(arrays, {"scores"}, 1, least=-1.0))


@dataclass(frozen=True, eq=False)
class NumberScores(_Scores):
    """The scores [columns, n] of each column of y, ascending, and the regression of log s."""

    scores: np.ndarray
    weights: np.ndarray  # [columns, 1 + features of the regression], the constant first
    hinges: np.ndarray  # [columns, hinges]
    limits: np.ndarray  # [columns, 2], of log s

    @classmethod
    def of(cls, rows: HeldOut, targets: Numbers) -> Self:
        own = rows.own
        centers = _columns(targets.decode(own))
        each = np.stack([_columns(targets.decode(outputs)) for outputs in rows.outputs])
        residuals = np.abs(_columns(rows.y) - centers)
        units = np.where(residuals.max(0) > 0, residuals.max(0), 1.0)
        residuals, pairs = residuals / units, ((each - centers) / units / 2) ** 2
        squares = (residuals**2).mean(0)
        gain = np.minimum(rows.gain(pairs), MOST_GAIN * squares) / np.where(squares > 0, squares, 1.0)
        residuals = residuals * np.sqrt(1 - gain)
        hinges, parts = np.quantile(own, HINGES, axis=0).T, []
        for column, knots in enumerate(hinges):
            basis = _basis(rows.z, own[:, column], knots, len(rows.z[0]) <= MOST_INPUTS)
            scores, weights, limits = _difficulty(basis, residuals[:, column])
            weights[0] += np.log(units[column])
            parts.append((np.sort(scores), weights, limits + np.log(units[column])))
        scores, weights, limits = (np.stack(arrays) for arrays in zip(*parts, strict=True))
        return cls(scores, weights, hinges, limits)

    def difficulty(self, z: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        """Return s [n, columns] of rows of inputs and outputs."""
        is_full = self.weights.shape[1] > 2 + len(HINGES)
        logs = [
            np.clip(weights[0] + _basis(z, output, knots, is_full) @ weights[1:], *limits)
            for weights, knots, limits, output in zip(self.weights, self.hinges, self.limits, outputs.T, strict=True)
        ]
        return np.exp(np.stack(logs, 1))

    def bounds(self, targets: Numbers, z: np.ndarray, outputs: np.ndarray, coverage: float) -> np.ndarray:
        """Return lower and upper bounds of rows of inputs and outputs, [n, 2] or [n, columns, 2]; of counts none below 0."""
        predicted = targets.decode(outputs)
        half = self.quantile(coverage) * self.difficulty(z, outputs)
        half = half.reshape(predicted.shape)
        low = predicted - half
        return np.stack([np.maximum(low, 0.0) if targets.link == "log" else low, predicted + half], -1)

    @classmethod
    def unpack(cls, arrays: Arrays, targets: Numbers, n_inputs: int) -> Self:
        n_features = 2 + len(HINGES) + (2 * n_inputs if n_inputs <= MOST_INPUTS else 0)
        shapes = {"weights": n_features, "hinges": len(HINGES), "limits": 2}
        scores = _checked_scores(arrays, {"scores", *shapes}, 2)
        for name, length in shapes.items():
            if arrays[name].shape != (targets.n_out, length) or not is_between(arrays[name]):
                raise ValueError(f"the {name} of its intervals have another shape or are not finite.")
        if len(scores) != targets.n_out or (np.diff(arrays["limits"]) < 0).any() or np.abs(arrays["limits"]).max() > 700:
            raise ValueError("the scores or the limits of its intervals do not fit its targets.")
        return cls(scores, *(arrays[name] for name in shapes))


Scores = ClassScores | NumberScores


def scores_kind(targets: Targets) -> Any:
    """Return the kind of scores of these targets; None for labels and quantiles, which have none."""
    if isinstance(targets, Labels | Quantiles):
        return None
    return ClassScores if isinstance(targets, Classes) else NumberScores


def scores_of(model: Any) -> Any:
    """Return the scores of a fitted estimator; raise ValueError where it has none."""
    check_is_fitted(model)
    name, scores = type(model).__name__, getattr(model, "_scores_", None)
    if isinstance(model._targets_, Labels):
        raise ValueError(f"This {name} predicts labels, which have no prediction sets; fit a classifier for each column of y.")
    if isinstance(model._targets_, Quantiles):
        raise ValueError(f"This {name} has loss='quantile', whose predictions are quantiles; fit it with another loss.")
    if not hasattr(model, "estimators_"):
        cross_validated = f"{name.replace('Highway', 'Tunnel')}CV"
        raise ValueError(f"A {name} holds out no rows, which intervals and sets need; fit a {cross_validated}.")
    if scores is None:
        raise ValueError(f"This {name} was fitted by an earlier version and has no intervals or sets; fit it again.")
    return scores


def _rank(n: int, coverage: float) -> int:
    return max(1, math.ceil((n + 1) * coverage - 1e-9))


def _columns(y: np.ndarray) -> np.ndarray:
    return y.reshape(len(y), -1)


def _basis(z: np.ndarray, output: np.ndarray, hinges: np.ndarray, is_full: bool) -> np.ndarray:
    """Return the features [n, …] of the regression of log s, without the constant."""
    parts = [output[:, None], np.maximum(output[:, None] - hinges, 0.0)]
    return np.concatenate([*parts, z, np.abs(z)] if is_full else parts, axis=1)


def _difficulty(basis: np.ndarray, residuals: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the scores [n], the weights and the limits of log s; the ridge has the least exponential deviance of scores."""
    offset = np.median(residuals) or residuals.mean() or 1.0
    n, logs, center, scale = len(residuals), np.log(residuals + offset), basis.mean(0), basis.std(0)
    scale = np.where(scale > 1e-9 * np.abs(center), scale, np.inf)  # a constant feature has no weight
    standard, mean = (basis - center) / scale, logs.mean()
    values, vectors = np.linalg.eigh(standard.T @ standard)
    rotated, values, best = standard @ vectors, np.maximum(values, 0.0), math.inf
    for ridge in RIDGES:
        shrunk = (rotated.T @ (logs - mean)) / (values + n * ridge)
        fitted, leverage = mean + rotated @ shrunk, 1 / n + (rotated**2 / (values + n * ridge)).sum(1)
        left_out = logs - (logs - fitted) / (1 - np.minimum(leverage, MOST_LEVERAGE))
        limits = np.quantile(fitted, USUAL)
        tried = np.clip(left_out, *limits)
        scores = residuals * np.exp(-tried)
        deviance = tried.mean() + np.log(max(scores.mean(), np.finfo(float).tiny))
        if deviance < best - 1e-9:
            weights = (vectors @ shrunk) / scale
            best, chosen = deviance, (scores, np.concatenate([[mean - center @ weights], weights]), limits)
    return chosen


def _checked_scores(arrays: Arrays, names: set[str], ndim: int, least: float = 0.0) -> np.ndarray:
    """Return the scores of a file; raise ValueError unless the arrays have these names and the scores ascend from `least`."""
    scores = arrays.get("scores", np.zeros(0))
    if set(arrays) != names or any(array.dtype != np.float64 for array in arrays.values()) or scores.ndim != ndim:
        raise ValueError("its intervals are not complete.")
    if not 0 < scores.shape[-1] <= MOST_ROWS or not is_between(scores, least) or (np.diff(scores) < 0).any():
        raise ValueError(f"the scores of its intervals are not ascending numbers of at least {least:g}.")
    return scores
