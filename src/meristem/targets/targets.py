"""What y means: classes of any type, labels, or numbers; and how a network's outputs become y again.

binary      two classes, one logit              multilabel  an indicator matrix, a logit per label
multiclass  a logit per class                   squared     one or more numbers per row, standardized
"""

import abc
from dataclasses import dataclass
from typing import Any

import numpy as np

from meristem.targets.scaling import Scaling


class Targets(abc.ABC):
    """A meaning of y."""

    @property
    @abc.abstractmethod
    def objective(self) -> str:
        """What training calls it."""

    @property
    @abc.abstractmethod
    def n_out(self) -> int:
        """How many outputs the network needs."""

    @abc.abstractmethod
    def encode(self, y: Any) -> np.ndarray:
        """As training takes it."""

    def columns(self, encoded: np.ndarray) -> np.ndarray:
        """The encoded y as numbers, [n, columns]."""
        return encoded

    @abc.abstractmethod
    def decode(self, outputs: np.ndarray) -> np.ndarray:
        """What the outputs [n, n_out] say y is."""

    @abc.abstractmethod
    def constant_error(self, y: np.ndarray, weight: np.ndarray) -> float:
        """The error of the best constant prediction of the encoded y, as training measures it."""


@dataclass(frozen=True)
class Classes(Targets):
    """One of several classes, ascending."""

    classes: np.ndarray

    @property
    def objective(self) -> str:
        return "binary" if len(self.classes) <= 2 else "multiclass"

    @property
    def n_out(self) -> int:
        return 1 if len(self.classes) <= 2 else len(self.classes)

    def encode(self, y: np.ndarray) -> np.ndarray:
        """Indices of classes.

        >>> Classes(np.array(["ash", "oak"])).encode(np.array(["oak", "ash"])).tolist()
        [1, 0]
        """
        if y.ndim != 1:
            raise ValueError(f"y has shape {y.shape}; it must be [samples], one of {len(self.classes)} classes each.")
        known = np.isin(y, self.classes)
        if not known.all():
            raise ValueError(
                f"y holds {y[~known][0]!r}, which is not among the classes {self.classes.tolist()}; "
                "they are those of the first fit, or of the first partial_fit(…, classes=…)."
            )
        return np.searchsorted(self.classes, y)

    def columns(self, encoded: np.ndarray) -> np.ndarray:
        """One of zeros and ones per class."""
        return np.eye(len(self.classes))[encoded]

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

    def unsure(self, outputs: np.ndarray, within: float) -> np.ndarray:
        """The rows [n] whose class another output, at most so much away, might change.

        >>> Classes(np.arange(3)).unsure(np.array([[0.0, 1.0, 1.1], [0.0, 1.0, 5.0]]), 0.1).tolist()
        [True, False]
        """
        if self.objective == "binary":
            return np.abs(outputs[:, 0]) <= within
        return (outputs >= outputs.max(1, keepdims=True) - 2 * within).sum(1) > 1

    def decode(self, outputs: np.ndarray) -> np.ndarray:
        if len(self.classes) == 1:
            return np.repeat(self.classes, len(outputs))
        return self.classes[(outputs[:, 0] > 0).astype(int) if self.objective == "binary" else outputs.argmax(1)]

    def constant_error(self, y: np.ndarray, weight: np.ndarray) -> float:
        return float(1 - np.bincount(y, weight).max() / weight.sum())


@dataclass(frozen=True)
class Labels(Targets):
    """Any number of labels at once; columns of 0 and 1."""

    count: int

    @property
    def objective(self) -> str:
        return "multilabel"

    @property
    def classes(self) -> np.ndarray:
        return np.arange(self.count)

    @property
    def n_out(self) -> int:
        return self.count

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

    def constant_error(self, y: np.ndarray, weight: np.ndarray) -> float:
        positive = weight @ y / weight.sum()
        return float(np.minimum(positive, 1 - positive).sum())


@dataclass(frozen=True)
class Numbers(Targets):
    """One number per row (`is_flat`) or several."""

    scaling: Scaling
    is_flat: bool

    @property
    def objective(self) -> str:
        return "squared"

    @property
    def n_out(self) -> int:
        return len(self.scaling.mean)

    def encode(self, y: np.ndarray) -> np.ndarray:
        y = y.reshape(len(y), -1)
        if y.shape[1] != self.n_out:
            raise ValueError(f"y has {y.shape[1]} columns; it must have {self.n_out}, as in the first fit.")
        return self.scaling(y)

    def decode(self, outputs: np.ndarray) -> np.ndarray:
        y = self.scaling.inverse(outputs.astype(float))
        return y[:, 0] if self.is_flat else y

    def constant_error(self, y: np.ndarray, weight: np.ndarray) -> float:
        share = weight / weight.sum()
        return float((share @ (y - share @ y) ** 2).sum())


def sigmoid(z: np.ndarray) -> np.ndarray:
    """1 / (1 + e^−z) without overflow.

    >>> sigmoid(np.array([-1000.0, 0.0, 1000.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    return 0.5 * (1 + np.tanh(0.5 * z.astype(float)))
