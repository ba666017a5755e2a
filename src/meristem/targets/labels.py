"""Any number of labels at once, each there or not: columns of 0 and 1, a logit z per label, probability 1 / (1 + e^−z)."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from meristem.targets.base import Targets
from meristem.train.objectives import Multilabel, Objective


@dataclass(frozen=True)
class Labels(Targets):
    """y [n, count] of 0 and 1.

    >>> Labels(2).decode(np.array([[-1.0, 2.0]])).tolist()
    [[0, 1]]
    """

    count: int

    kind: ClassVar[str] = "labels"

    @property
    def objective(self) -> Objective:
        return Multilabel()

    @property
    def n_out(self) -> int:
        return self.count

    @property
    def classes(self) -> np.ndarray:
        return np.arange(self.count)

    def encode(self, y: np.ndarray) -> np.ndarray:
        if y.ndim != 2 or y.shape[1] != self.count:
            raise ValueError(f"y has shape {y.shape}; it must be [samples, {self.count}], a column of 0 and 1 per label.")
        return y.astype(np.float32)

    def probabilities(self, outputs: np.ndarray) -> np.ndarray:
        return sigmoid(outputs)

    def decision(self, outputs: np.ndarray) -> np.ndarray:
        return outputs

    def unsure(self, outputs: np.ndarray, within: float) -> np.ndarray:
        """The rows [n] of which another output, at most so much away, might change a label."""
        return (np.abs(outputs) <= within).any(1)

    def decode(self, outputs: np.ndarray) -> np.ndarray:
        return (outputs > 0).astype(int)

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return {"kind": self.kind, "count": self.count}, {}

    @classmethod
    def unpack(cls, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        count = header["count"]
        if type(count) is not int or not 1 <= count < 2**31:
            raise ValueError("its number of labels is none.")
        return cls(count)


def sigmoid(z: np.ndarray) -> np.ndarray:
    """1 / (1 + e^−z) without overflow.

    >>> sigmoid(np.array([-1000.0, 0.0, 1000.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    return 0.5 * (1 + np.tanh(0.5 * z.astype(float)))
