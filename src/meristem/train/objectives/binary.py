"""Two classes and one logit o: E = log(1 + e^o) − t · o, binary cross-entropy; targets t [n] of 0 and 1."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Array

from meristem.train.objectives.base import NEVER, Objective, check_row, check_values
from meristem.train.objectives.multilabel import cross_entropy, wrong


@dataclass(frozen=True)
class Binary(Objective):
    """One logit, target 0 or 1."""

    name: ClassVar[str] = "binary"
    error_name: ClassVar[str] = "error"
    error_is_share: ClassVar[bool] = True
    outputs_are_logits: ClassVar[bool] = True
    unused_output: ClassVar[float] = NEVER
    target_kind: ClassVar[str] = "classes"

    def loss(self, outputs: Array, target: Array) -> Array:
        return cross_entropy(outputs, target[None])

    def error(self, outputs: Array, target: Array) -> Array:
        return wrong(outputs, target[None])

    def best_constant(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return np.array([1.0 if 2 * weight @ y > weight.sum() else -1.0])

    def constant_error(self, y: np.ndarray, weight: np.ndarray) -> float:
        return float(1 - np.bincount(y, weight).max() / weight.sum())

    def check(self, name: str, y: np.ndarray, n_out: int) -> None:
        if n_out != 1:
            raise ValueError(
                f"objective='binary' needs a network with n_out=1; this one has {n_out}. For classes: 'multiclass'."
            )
        check_row(self, name, y)
        check_values(self, name, y, np.isin(y, (0, 1)), "objective='binary' needs 0 and 1 alone")
