"""What y means: classes of any type, labels, or numbers; and how a network's outputs become y again.

binary      two classes, one logit              multilabel  an indicator matrix, a logit per label
multiclass  a logit per class                   squared     one or more numbers per row, standardized
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from meristem.estimators.scaling import Scaling


@dataclass(frozen=True)
class Classes:
    """One of several classes."""

    classes: np.ndarray

    @property
    def objective(self) -> str:
        return "binary" if len(self.classes) <= 2 else "multiclass"

    @property
    def n_out(self) -> int:
        return 1 if len(self.classes) <= 2 else len(self.classes)

    def encode(self, y: np.ndarray) -> np.ndarray:
        index = np.searchsorted(self.classes, y)
        known = index < len(self.classes)
        known[known] = self.classes[index[known]] == y[known]
        if not known.all():
            raise ValueError(f"y holds {y[~known][0]!r}, which is not among the classes {self.classes.tolist()}.")
        return index

    def probabilities(self, outputs: np.ndarray) -> np.ndarray:
        if len(self.classes) == 1:
            return np.ones((len(outputs), 1))
        if self.objective == "binary":
            p = sigmoid(outputs[:, 0])
            return np.stack([1 - p, p], 1)
        z = np.exp(outputs - outputs.max(1, keepdims=True), dtype=float)
        return z / z.sum(1, keepdims=True)

    def decision(self, outputs: np.ndarray) -> np.ndarray:
        return outputs[:, 0] if self.objective == "binary" else outputs

    def decode(self, outputs: np.ndarray) -> np.ndarray:
        if len(self.classes) == 1:
            return np.repeat(self.classes, len(outputs))
        return self.classes[(outputs[:, 0] > 0).astype(int) if self.objective == "binary" else outputs.argmax(1)]


@dataclass(frozen=True)
class Labels:
    """Any number of labels at once; columns of 0 and 1."""

    count: int
    objective = "multilabel"

    @property
    def classes(self) -> np.ndarray:
        return np.arange(self.count)

    @property
    def n_out(self) -> int:
        return self.count

    def encode(self, y: Any) -> np.ndarray:
        y = np.asarray(y.toarray() if hasattr(y, "toarray") else y)
        if y.ndim != 2 or y.shape[1] != self.count:
            raise ValueError(f"y has shape {y.shape}; the labels are a matrix of {self.count} columns.")
        return y.astype(np.float32)

    def probabilities(self, outputs: np.ndarray) -> np.ndarray:
        return sigmoid(outputs)

    def decision(self, outputs: np.ndarray) -> np.ndarray:
        return outputs

    def decode(self, outputs: np.ndarray) -> np.ndarray:
        return (outputs > 0).astype(int)


@dataclass(frozen=True)
class Numbers:
    """One number per row (`is_flat`) or several."""

    scaling: Scaling
    is_flat: bool
    objective = "squared"

    @property
    def n_out(self) -> int:
        return len(self.scaling.mean)

    def encode(self, y: np.ndarray) -> np.ndarray:
        y = np.asarray(y, float).reshape(len(y), -1)
        if y.shape[1] != self.n_out:
            raise ValueError(f"y has {y.shape[1]} columns; it was {self.n_out} before.")
        return self.scaling(y)

    def decode(self, outputs: np.ndarray) -> np.ndarray:
        y = self.scaling.inverse(outputs.astype(float))
        return y[:, 0] if self.is_flat else y


def sigmoid(z: np.ndarray) -> np.ndarray:
    """1 / (1 + e^−z) without overflow.

    >>> sigmoid(np.array([-1000.0, 0.0, 1000.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    return 0.5 * (1 + np.tanh(0.5 * z.astype(float)))
