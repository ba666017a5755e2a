"""One of k classes and a logit each: E = log Σ_j e^o_j − o_t, cross-entropy; targets t [n] of 0 … k − 1."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from meristem.train.objectives.base import NEVER, Objective, check_row, check_values


@dataclass(frozen=True)
class Multiclass(Objective):
    """k logits, target 0 … k − 1."""

    name: ClassVar[str] = "multiclass"
    error_name: ClassVar[str] = "error"
    error_is_share: ClassVar[bool] = True
    outputs_are_logits: ClassVar[bool] = True
    targets_are_classes: ClassVar[bool] = True
    unused_output: ClassVar[float] = NEVER
    target_kind: ClassVar[str] = "classes"

    def loss(self, outputs: Array, target: Array) -> Array:
        return jax.nn.logsumexp(outputs) - jnp.where(jnp.arange(outputs.shape[0]) == target, outputs, 0).sum()

    def error(self, outputs: Array, target: Array) -> Array:
        return (outputs.argmax() != target).astype(outputs.dtype)

    def best_constant(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return np.bincount(y, weight)

    def constant_error(self, y: np.ndarray, weight: np.ndarray) -> float:
        return float(1 - np.bincount(y, weight).max() / weight.sum())

    def check(self, name: str, y: np.ndarray, n_out: int) -> None:
        check_row(self, name, y)
        fits = (y == np.floor(y)) & (y >= 0) & (y < n_out)
        check_values(self, name, y, fits, f"with n_out={n_out} classes must be whole numbers from 0 to {n_out - 1}")
