"""Cross-entropies of logits o: two classes, k classes, and k labels each of which is present or absent.

Binary       E = log(1 + e^o) − t · o                  one logit; targets t [n] of 0 and 1
Multiclass   E = log Σ_j e^o_j − o_t                   k logits; targets t [n] of 0 … k − 1
Multilabel   E = Σ_k log(1 + e^o_k) − t_k · o_k        k logits; targets t [n, k] of 0 and 1
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from meristem.train.objectives.base import NEVER, Objective


class _Labels(Objective):
    """Logits of labels that are present or absent, alike for one and for many."""

    outputs_are_logits = True
    unused_output = NEVER

    def loss(self, outputs: Array, target: Array) -> Array:
        return (jax.nn.softplus(outputs) - target.reshape(outputs.shape).astype(outputs.dtype) * outputs).sum()

    def error(self, outputs: Array, target: Array) -> Array:
        return ((outputs > 0) != (target.reshape(outputs.shape) > 0)).sum().astype(outputs.dtype)

    def best_constant(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return np.atleast_1d(np.where(2 * weight @ y > weight.sum(), 1.0, -1.0))

    def valid(self, y: np.ndarray, n_out: int) -> tuple[np.ndarray, str]:
        return np.isin(y, (0, 1)), "0 and 1 alone"


@dataclass(frozen=True)
class Multilabel(_Labels):
    """k logits, targets of k zeros and ones; the error is the number of wrong decisions at a probability of 1/2."""

    name = "multilabel"
    error_name = "wrong labels per instance"
    outputs_are_labels = True
    target_kind = "labels"

    def constant_error(self, y: np.ndarray, weight: np.ndarray) -> float:
        positive = weight @ y / weight.sum()
        return float(np.minimum(positive, 1 - positive).sum())


class _Classes(Objective):
    """What `Binary` and `Multiclass` have in common."""

    error_name = "error"
    error_is_share = True
    target_kind = "classes"

    def constant_error(self, y: np.ndarray, weight: np.ndarray) -> float:
        return float(1 - np.bincount(y, weight).max() / weight.sum())


@dataclass(frozen=True)
class Binary(_Classes, _Labels):
    """One logit, target 0 or 1."""

    name = "binary"

    def check(self, name: str, y: np.ndarray, n_out: int) -> None:
        if n_out != 1:
            raise ValueError(f"objective='binary' needs a network with n_out=1, not {n_out}; for more classes: 'multiclass'.")
        super().check(name, y, n_out)


@dataclass(frozen=True)
class Multiclass(_Classes):
    """k logits, target 0 … k − 1."""

    name = "multiclass"
    targets_are_classes = True
    outputs_are_logits = True
    unused_output = NEVER

    def loss(self, outputs: Array, target: Array) -> Array:
        return jax.nn.logsumexp(outputs) - jnp.where(jnp.arange(outputs.shape[0]) == target, outputs, 0).sum()

    def error(self, outputs: Array, target: Array) -> Array:
        return (outputs.argmax() != target).astype(outputs.dtype)

    def best_constant(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return np.bincount(y, weight)

    def valid(self, y: np.ndarray, n_out: int) -> tuple[np.ndarray, str]:
        return (y == np.floor(y)) & (y >= 0) & (y < n_out), f"whole numbers from 0 to {n_out - 1}, with n_out={n_out}"
