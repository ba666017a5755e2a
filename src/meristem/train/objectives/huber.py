"""Numbers with some outliers: squared near the target, absolute far from it; targets t [n, k].

    E = Σ_k ½ d²  where |d| ≤ delta,  delta · (|d| − ½ delta)  elsewhere;  d = o_k − t_k

The error is Σ_k |d|.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from meristem.check import check_number
from meristem.train.objectives.base import Objective
from meristem.weighted_quantiles import weighted_quantile


@dataclass(frozen=True)
class Huber(Objective):
    """`delta` is in the units of the targets; 1.35 of their standard deviations keeps 95 % of the mean's efficiency."""

    delta: float = 1.35

    name: ClassVar[str] = "huber"
    error_name: ClassVar[str] = "absolute error"
    learns: ClassVar[str] = "the mean of all but outliers (squared up to 1.35 standard deviations, absolute beyond)"

    def __post_init__(self) -> None:
        check_number("delta", self.delta, "above 0", lambda value: 0 < value < math.inf)

    def loss(self, outputs: Array, target: Array) -> Array:
        distance = jnp.abs(outputs - target.astype(outputs.dtype))
        near = jnp.minimum(distance, self.delta)  # ½ near² + delta · (distance − near): both branches in one formula
        return (0.5 * near**2 + self.delta * (distance - near)).sum()

    def error(self, outputs: Array, target: Array) -> Array:
        return jnp.abs(outputs - target.astype(outputs.dtype)).sum()

    def best_constant(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return weighted_quantile(y, weight, 0.5)

    def constant_error(self, y: np.ndarray, weight: np.ndarray) -> float:
        off = y - self.best_constant(y, weight)
        return float((weight @ np.abs(off) / weight.sum()).sum())
