"""Numbers: E = ½ Σ_k (o_k − t_k)²; targets t [n, k]. The error is the squared distance, Σ_k (o_k − t_k)²."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Array

from meristem.train.objectives.base import Objective


@dataclass(frozen=True)
class SquaredError(Objective):
    """k values, targets of k values; a constant prediction is best at the mean."""

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
        off = y - self.best_constant(y, weight)
        return float((weight @ off**2 / weight.sum()).sum())
