"""Numbers with outliers: E = Σ_k |o_k − t_k|; targets t [n, k]. Learns the median. The error is the same sum."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import numpy as np
from jaxtyping import Array

from meristem.train.objectives.base import Objective
from meristem.weighted_quantiles import weighted_quantile


@dataclass(frozen=True)
class AbsoluteError(Objective):
    """k values, targets of k values; a constant prediction is best at the median."""

    name: ClassVar[str] = "absolute_error"
    error_name: ClassVar[str] = "absolute error"
    noise_power: ClassVar[float] = 0.5
    learns: ClassVar[str] = "the median, wherever outliers are"

    def loss(self, outputs: Array, target: Array) -> Array:
        distance = outputs - target.astype(outputs.dtype)
        # Not |d|, whose derivative is 1 at 0: an output that is there to fill a shape stays where it is.
        return (jax.nn.relu(distance) + jax.nn.relu(-distance)).sum()

    def error(self, outputs: Array, target: Array) -> Array:
        return self.loss(outputs, target)

    def best_constant(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return weighted_quantile(y, weight, 0.5)

    def constant_error(self, y: np.ndarray, weight: np.ndarray) -> float:
        off = y - self.best_constant(y, weight)
        return float((weight @ np.abs(off) / weight.sum()).sum())
