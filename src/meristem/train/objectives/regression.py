"""Losses of numbers: outputs o [k] against targets t [n, k], with d = o − t.

SquaredError    E = ½ Σ d²                                                  learns the mean; the error is Σ d²
AbsoluteError   E = Σ |d|                                                   learns the median; the error is E
Huber           E = Σ ½ d² where |d| ≤ delta, else delta · (|d| − ½ delta)  between both; the error is Σ |d|
Quantile        E = Σ q max(−d, 0) + (1 − q) max(d, 0)                      learns quantiles q; the error is E
Poisson         E = Σ e^o − t · o                                           learns log-rates o; the error is the deviance
"""

import abc
import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from meristem.check import check_number
from meristem.train.objectives.base import NEVER, Objective
from meristem.weighted_quantiles import weighted_quantile


class _Numbers(Objective):
    """What all of them have in common: the error of a constant without compiling anything."""

    @abc.abstractmethod
    def errors(self, y: np.ndarray, constant: np.ndarray) -> np.ndarray:
        """Return the error of each value, [n, k]."""

    def constant_error(self, y: np.ndarray, weight: np.ndarray) -> float:
        return float((weight @ self.errors(y, self.best_constant(y, weight)) / weight.sum()).sum())


@dataclass(frozen=True)
class SquaredError(_Numbers):
    """k values, targets of k values; the best constant is the mean."""

    name = "squared_error"
    error_name = "squared error"
    learns = "the mean"

    def loss(self, outputs: Array, target: Array) -> Array:
        return 0.5 * ((outputs - target.astype(outputs.dtype)) ** 2).sum()

    def error(self, outputs: Array, target: Array) -> Array:
        return ((outputs - target.astype(outputs.dtype)) ** 2).sum()

    def best_constant(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return weight @ y / weight.sum()

    def errors(self, y: np.ndarray, constant: np.ndarray) -> np.ndarray:
        return (y - constant) ** 2


class _Absolute(_Numbers):
    """What `AbsoluteError` and `Huber` have in common: the best constant is the median."""

    error_name = "absolute error"

    def best_constant(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return weighted_quantile(y, weight, 0.5)

    def errors(self, y: np.ndarray, constant: np.ndarray) -> np.ndarray:
        return np.abs(y - constant)


@dataclass(frozen=True)
class AbsoluteError(_Absolute):
    """k values, targets of k values with outliers."""

    name = "absolute_error"
    noise_power = 0.5
    learns = "the median, wherever outliers are"

    def loss(self, outputs: Array, target: Array) -> Array:
        distance = outputs - target.astype(outputs.dtype)
        # Not |d|, whose derivative is 1 at 0: an output that is padding must not move.
        return (jax.nn.relu(distance) + jax.nn.relu(-distance)).sum()


@dataclass(frozen=True)
class Huber(_Absolute):
    """`delta` is in the units of the targets; 1.35 of their standard deviations keeps 95 % of the mean's efficiency."""

    delta: float = 1.35

    name = "huber"
    learns = "the mean of all but outliers (squared up to 1.35 standard deviations, absolute beyond)"

    def __post_init__(self) -> None:
        check_number("delta", self.delta, "above 0", lambda value: 0 < value < math.inf)

    def loss(self, outputs: Array, target: Array) -> Array:
        distance = jnp.abs(outputs - target.astype(outputs.dtype))
        near = jnp.minimum(distance, self.delta)  # ½ near² + delta · (distance − near): both branches in one formula
        return (0.5 * near**2 + self.delta * (distance - near)).sum()

    def error(self, outputs: Array, target: Array) -> Array:
        return jnp.abs(outputs - target.astype(outputs.dtype)).sum()


@dataclass(frozen=True)
class Quantile(_Numbers):
    """`levels` q: one for every output, or a few that repeat; repeat a target's column to learn several quantiles of it."""

    levels: tuple[float, ...] | list[float] = (0.5,)

    name = "quantile"
    error_name = "quantile loss"
    target_kind = "quantiles"
    noise_power = 0.5
    learns = "the `quantiles`"

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

    def best_constant(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return weighted_quantile(y, weight, self._levels(y.shape[1]))

    def errors(self, y: np.ndarray, constant: np.ndarray) -> np.ndarray:
        residual, level = y - constant, self._levels(y.shape[1])
        return np.maximum(level * residual, (level - 1) * residual)

    def _levels(self, outputs: int) -> np.ndarray:
        return np.resize(np.asarray(self.levels, float), outputs)


@dataclass(frozen=True)
class Poisson(_Numbers):
    """k log-rates, targets of k counts or rates; the error is 2 Σ (t log(t / μ) − t + μ) with the rate μ = e^o."""

    name = "poisson"
    error_name = "deviance"
    unused_output = NEVER
    target_kind = "counts"
    noise_power = 0.0  # the deviance has the unit of a likelihood, as that of classes
    learns = "the rate of counts, which are at least 0, by its logarithm"

    def loss(self, outputs: Array, target: Array) -> Array:
        return (jnp.exp(outputs) - target.astype(outputs.dtype) * outputs).sum()

    def error(self, outputs: Array, target: Array) -> Array:
        target = target.astype(outputs.dtype)
        return 2 * (jax.scipy.special.xlogy(target, target) - target * outputs - target + jnp.exp(outputs)).sum()

    def best_constant(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        mean = weight @ y / weight.sum()
        return np.where(mean > 0, np.log(np.maximum(mean, np.finfo(float).tiny)), NEVER)

    def errors(self, y: np.ndarray, constant: np.ndarray) -> np.ndarray:
        ratio = np.divide(y, np.exp(constant), out=np.ones(y.shape), where=y > 0)
        return 2 * y * np.log(ratio)  # the rate is the mean: Σ (μ − t) is 0

    def valid(self, y: np.ndarray, n_out: int) -> tuple[np.ndarray, str]:
        return y >= 0, "counts or rates, none below 0"
