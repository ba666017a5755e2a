"""Cross-entropies of logits o: two classes, k classes, and k labels each of which is present or absent.

Binary       E = log(1 + e^o) − t · o                  one logit; targets t [n] of 0 and 1
Multiclass   E = log Σ_j e^o_j − o_t                   k logits; targets t [n] of 0 … k − 1
Multilabel   E = Σ_k log(1 + e^o_k) − t_k · o_k        k logits; targets t [n, k] of 0 and 1
"""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from meristem.train.objectives.base import NEVER, Objective, check_columns, check_row, check_values


def _cross_entropy(outputs: Array, target: Array) -> Array:
    return (jax.nn.softplus(outputs) - target.astype(outputs.dtype) * outputs).sum()


def _n_wrong(outputs: Array, target: Array) -> Array:
    return ((outputs > 0) != (target > 0)).sum().astype(outputs.dtype)


@dataclass(frozen=True)
class Multilabel(Objective):
    """k logits, targets of k zeros and ones; the error is the number of wrong decisions at a probability of 1/2."""

    name: ClassVar[str] = "multilabel"
    error_name: ClassVar[str] = "wrong labels per instance"
    outputs_are_logits: ClassVar[bool] = True
    outputs_are_labels: ClassVar[bool] = True
    unused_output: ClassVar[float] = NEVER
    target_kind: ClassVar[str] = "labels"

    def loss(self, outputs: Array, target: Array) -> Array:
        return _cross_entropy(outputs, target)

    def error(self, outputs: Array, target: Array) -> Array:
        return _n_wrong(outputs, target)

    def best_constant(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return np.where(2 * weight @ y > weight.sum(), 1.0, -1.0)

    def constant_error(self, y: np.ndarray, weight: np.ndarray) -> float:
        positive = weight @ y / weight.sum()
        return float(np.minimum(positive, 1 - positive).sum())

    def check(self, name: str, y: np.ndarray, n_out: int) -> None:
        check_columns(self, name, y, n_out)
        check_values(self, name, y, np.isin(y, (0, 1)), "objective='multilabel' needs 0 and 1 alone")


class _Classes(Objective):
    """What `Binary` and `Multiclass` have in common."""

    error_name: ClassVar[str] = "error"
    error_is_share: ClassVar[bool] = True
    outputs_are_logits: ClassVar[bool] = True
    unused_output: ClassVar[float] = NEVER
    target_kind: ClassVar[str] = "classes"

    def constant_error(self, y: np.ndarray, weight: np.ndarray) -> float:
        return float(1 - np.bincount(y, weight).max() / weight.sum())


@dataclass(frozen=True)
class Binary(_Classes):
    """One logit, target 0 or 1."""

    name: ClassVar[str] = "binary"

    def loss(self, outputs: Array, target: Array) -> Array:
        return _cross_entropy(outputs, target[None])

    def error(self, outputs: Array, target: Array) -> Array:
        return _n_wrong(outputs, target[None])

    def best_constant(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return np.array([1.0 if 2 * weight @ y > weight.sum() else -1.0])

    def check(self, name: str, y: np.ndarray, n_out: int) -> None:
        if n_out != 1:
            raise ValueError(f"objective='binary' needs a network with n_out=1, not {n_out}; for more classes: 'multiclass'.")
        check_row(self, name, y)
        check_values(self, name, y, np.isin(y, (0, 1)), "objective='binary' needs 0 and 1 alone")


@dataclass(frozen=True)
class Multiclass(_Classes):
    """k logits, target 0 … k − 1."""

    name: ClassVar[str] = "multiclass"
    targets_are_classes: ClassVar[bool] = True

    def loss(self, outputs: Array, target: Array) -> Array:
        return jax.nn.logsumexp(outputs) - jnp.where(jnp.arange(outputs.shape[0]) == target, outputs, 0).sum()

    def error(self, outputs: Array, target: Array) -> Array:
        return (outputs.argmax() != target).astype(outputs.dtype)

    def best_constant(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return np.bincount(y, weight)

    def check(self, name: str, y: np.ndarray, n_out: int) -> None:
        check_row(self, name, y)
        fits = (y == np.floor(y)) & (y >= 0) & (y < n_out)
        check_values(self, name, y, fits, f"with n_out={n_out} classes must be whole numbers from 0 to {n_out - 1}")
