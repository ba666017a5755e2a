"""Several labels, each there or not, a logit each: E = Σ_k log(1 + e^o_k) − t_k · o_k; targets t [n, k] of 0 and 1."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import numpy as np
from jaxtyping import Array

from meristem.train.objectives.base import NEVER, Objective, check_columns, check_values


def cross_entropy(outputs: Array, target: Array) -> Array:
    """log(1 + e^o) − t · o, summed over outputs, without overflow."""
    return (jax.nn.softplus(outputs) - target.astype(outputs.dtype) * outputs).sum()


def wrong(outputs: Array, target: Array) -> Array:
    """How many decisions at a probability of 1/2 are wrong."""
    return ((outputs > 0) != (target > 0)).sum().astype(outputs.dtype)


@dataclass(frozen=True)
class Multilabel(Objective):
    """k logits, targets of k zeros and ones."""

    name: ClassVar[str] = "multilabel"
    error_name: ClassVar[str] = "wrong labels per instance"
    outputs_are_logits: ClassVar[bool] = True
    outputs_are_labels: ClassVar[bool] = True
    unused_output: ClassVar[float] = NEVER
    target_kind: ClassVar[str] = "labels"

    def loss(self, outputs: Array, target: Array) -> Array:
        return cross_entropy(outputs, target)

    def error(self, outputs: Array, target: Array) -> Array:
        return wrong(outputs, target)

    def best_constant(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return np.where(2 * weight @ y > weight.sum(), 1.0, -1.0)

    def constant_error(self, y: np.ndarray, weight: np.ndarray) -> float:
        positive = weight @ y / weight.sum()
        return float(np.minimum(positive, 1 - positive).sum())

    def check(self, name: str, y: np.ndarray, n_out: int) -> None:
        check_columns(self, name, y, n_out)
        check_values(self, name, y, np.isin(y, (0, 1)), "objective='multilabel' needs 0 and 1 alone")
