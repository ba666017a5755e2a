"""Quantiles of numbers: output k learns the value that its target is below with probability q; targets t [n, k].

    E = Σ_k q_k · max(t_k − o_k, 0) + (1 − q_k) · max(o_k − t_k, 0)        q_k = levels[k mod len(levels)]

To learn several quantiles of one target, repeat its column once for each level. The error is the same sum.
"""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from meristem.check import check_number
from meristem.train.objectives.base import Objective
from meristem.weighted_quantiles import weighted_quantile


@dataclass(frozen=True)
class Quantile(Objective):
    """`levels`: one for every output, or a few that repeat."""

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
        # relu has the derivative 0 at 0: an output that is there to fill a shape stays where it is.
        below = jax.nn.relu(target.astype(outputs.dtype) - outputs)
        above = jax.nn.relu(outputs - target.astype(outputs.dtype))
        return (level * below + (1 - level) * above).sum()

    def error(self, outputs: Array, target: Array) -> Array:
        return self.loss(outputs, target)

    def best_constant(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return weighted_quantile(y, weight, self._levels(y.shape[1]))

    def constant_error(self, y: np.ndarray, weight: np.ndarray) -> float:
        off, level = y - self.best_constant(y, weight), self._levels(y.shape[1])
        return float((weight @ np.maximum(level * off, (level - 1) * off) / weight.sum()).sum())

    def _levels(self, outputs: int) -> np.ndarray:
        return np.resize(np.asarray(self.levels, float), outputs)
