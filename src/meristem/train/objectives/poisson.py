"""Counts and rates: the outputs are logarithms of rates, μ = e^o; E = Σ_k μ_k − t_k · o_k; targets t [n, k] of at least 0.

The error is the deviance, 2 Σ_k (t log(t / μ) − t + μ): 0 where the rate is the target.
"""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from meristem.train.objectives.base import NEVER, Objective, check_columns, check_values


@dataclass(frozen=True)
class Poisson(Objective):
    """k log-rates, targets of k counts or rates."""

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
        """2 Σ t log(t / μ), for the rates μ that are the means."""
        rate = np.exp(self.best_constant(y, weight))
        ratio = np.divide(y, rate, out=np.ones(y.shape), where=y > 0)
        return float((2 * weight @ (y * np.log(ratio)) / weight.sum()).sum())

    def check(self, name: str, y: np.ndarray, n_out: int) -> None:
        check_columns(self, name, y, n_out)
        check_values(self, name, y, y >= 0, "objective='poisson' needs counts or rates, none below 0")
