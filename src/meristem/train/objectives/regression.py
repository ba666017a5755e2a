"""Losses of numbers: outputs o [k] against targets t [n, k], with d = o − t.

SquaredError    E = ½ Σ d²                                                  learns the mean; the error is Σ d²
AbsoluteError   E = Σ |d|                                                   learns the median; the error is E
Huber           E = Σ ½ d² where |d| ≤ delta, else delta · (|d| − ½ delta)  between both; the error is Σ |d|
Quantile        E = Σ q max(−d, 0) + (1 − q) max(d, 0)                      learns quantiles q; the error is E
Poisson         E = Σ e^o − t · o                                           learns log-rates o; the error is the deviance
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from meristem.check import check_number
from meristem.train.objectives.base import NEVER, Objective, check_columns, check_values
from meristem.weighted_quantiles import weighted_quantile


@dataclass(frozen=True)
class SquaredError(Objective):
    """k values, targets of k values; the best constant is the mean."""

    name: ClassVar[str] = "squared_error"
    error_name: ClassVar[str] = "squared error"
    learns: ClassVar[str] = "the mean"

    def loss(self, outputs: Array, target: Array) -> Array:
        return 0.5 * ((outputs - target.astype(outputs.dtype)) ** 2).sum()

    def error(self, outputs: Array, target: Array) -> Array:
        return ((outputs - target.astype(outputs.dtype)) ** 2).sum()

    def best_constant(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return weight @ y / weight.sum()

    def constant_error(self, y: np.ndarray, weight: np.ndarray) -> float:
        return _mean((y - self.best_constant(y, weight)) ** 2, weight)


class _Absolute(Objective):
    """What `AbsoluteError` and `Huber` have in common: the best constant is the median."""

    error_name: ClassVar[str] = "absolute error"

    def best_constant(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return weighted_quantile(y, weight, 0.5)

    def constant_error(self, y: np.ndarray, weight: np.ndarray) -> float:
        return _mean(np.abs(y - self.best_constant(y, weight)), weight)


@dataclass(frozen=True)
class AbsoluteError(_Absolute):
    """k values, targets of k values with outliers."""

    name: ClassVar[str] = "absolute_error"
    noise_power: ClassVar[float] = 0.5
    learns: ClassVar[str] = "the median, wherever outliers are"

    def loss(self, outputs: Array, target: Array) -> Array:
        distance = outputs - target.astype(outputs.dtype)
        # Not |d|, whose derivative is 1 at 0: an output that is padding must not move.
        return (jax.nn.relu(distance) + jax.nn.relu(-distance)).sum()

    def error(self, outputs: Array, target: Array) -> Array:
        return self.loss(outputs, target)


@dataclass(frozen=True)
class Huber(_Absolute):
    """`delta` is in the units of the targets; 1.35 of their standard deviations keeps 95 % of the mean's efficiency."""

    delta: float = 1.35

    name: ClassVar[str] = "huber"
    learns: ClassVar[str] = "the mean of all but outliers (squared up to 1.35 standard deviations, absolute beyond)"

    def __post_init__(self) -> None:
        check_number("delta", self.delta, "above 0", lambda value: 0 < value < math.inf)

    def loss(self, outputs: Array, target: Array) -> Array:
        distance = jnp.abs(outputs - target.astype(outputs.dtype))
        near = jnp.minimum(distance, self.delta)  # ½ near² + delta · (distance − near): both branches in one formula
        return (0.5 * near**2 + self.delta * (distance - near)).sum()

    def error(self, outputs: Array, target: Array) -> Array:
        return jnp.abs(outputs - target.astype(outputs.dtype)).sum()


@dataclass(frozen=True)
class Quantile(Objective):
    """`levels` q: one for every output, or a few that repeat; repeat a target's column to learn several quantiles of it."""

    levels: tuple[float, ...] | list[float] = (0.5,)

    name: ClassVar[str] = "quantile"
    error_name: ClassVar[str] = "quantile loss"
    target_kind: ClassVar[str] = "quantiles"
    noise_power: ClassVar[float] = 0.5
    learns: ClassVar[str] = "the `quantiles`"

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", tuple(self.levels))
        if not self.levels:
            raise ValueError("levels=() must hold at least one number between 0 and 1.")
        for level in self.levels:
            check_number("levels", level, "above 0 and below 1", lambda value: 0 < value < 1)

    def loss(self, outputs: Array, target: Array) -> Array:
        level = jnp.asarray(self._levels(outputs.shape[0]), outputs.dtype)
        # relu has the derivative 0 at 0: an output that is padding must not move.
        below = jax.nn.relu(target.astype(outputs.dtype) - outputs)
        above = jax.nn.relu(outputs - target.astype(outputs.dtype))
        return (level * below + (1 - level) * above).sum()

    def error(self, outputs: Array, target: Array) -> Array:
        return self.loss(outputs, target)

    def best_constant(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return weighted_quantile(y, weight, self._levels(y.shape[1]))

    def constant_error(self, y: np.ndarray, weight: np.ndarray) -> float:
        residual, level = y - self.best_constant(y, weight), self._levels(y.shape[1])
        return _mean(np.maximum(level * residual, (level - 1) * residual), weight)

    def _levels(self, outputs: int) -> np.ndarray:
        return np.resize(np.asarray(self.levels, float), outputs)


@dataclass(frozen=True)
class Poisson(Objective):
    """k log-rates, targets of k counts or rates; the error is 2 Σ (t log(t / μ) − t + μ) with the rate μ = e^o."""

    name: ClassVar[str] = "poisson"
    error_name: ClassVar[str] = "deviance"
    unused_output: ClassVar[float] = NEVER
    target_kind: ClassVar[str] = "counts"
    noise_power: ClassVar[float] = 0.0  # the deviance has the unit of a likelihood, as that of classes
    learns: ClassVar[str] = "the rate of counts, which are at least 0, by its logarithm"

    def loss(self, outputs: Array, target: Array) -> Array:
        return (jnp.exp(outputs) - target.astype(outputs.dtype) * outputs).sum()

    def error(self, outputs: Array, target: Array) -> Array:
        target = target.astype(outputs.dtype)
        return 2 * (jax.scipy.special.xlogy(target, target) - target * outputs - target + jnp.exp(outputs)).sum()

    def best_constant(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        mean = weight @ y / weight.sum()
        return np.where(mean > 0, np.log(np.maximum(mean, np.finfo(float).tiny)), NEVER)

    def constant_error(self, y: np.ndarray, weight: np.ndarray) -> float:
        rate = np.exp(self.best_constant(y, weight))  # the mean: Σ (μ − t) is 0
        ratio = np.divide(y, rate, out=np.ones(y.shape), where=y > 0)
        return 2 * _mean(y * np.log(ratio), weight)

    def check(self, name: str, y: np.ndarray, n_out: int) -> None:
        check_columns(self, name, y, n_out)
        check_values(self, name, y, y >= 0, "objective='poisson' needs counts or rates, none below 0")


def _mean(errors: np.ndarray, weight: np.ndarray) -> float:
    """Return the weighted mean of errors [n, k], summed over k."""
    return float((weight @ errors / weight.sum()).sum())
