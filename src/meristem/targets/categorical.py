"""Classes and labels: one of several classes per row, or any number of labels per row.

Two classes share one logit z, the second class where z is above that of the threshold; more classes have a logit each. A label
has a logit z and the probability 1 / (1 + e^−z).
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from meristem.targets.scaling import Packed
from meristem.train.objectives import Binary, Multiclass, Multilabel

DEFAULT_THRESHOLD = 0.5


class _Categorical:
    def with_more(self, y: np.ndarray, weight: np.ndarray) -> Self:
        return self

    def typical(self, encoded: np.ndarray) -> np.ndarray:
        return np.ones(len(encoded), bool)


@dataclass(frozen=True)
class Classes(_Categorical):
    """y [n], each one of `classes`, which are ascending and of any type.

    Of two classes, the positive one is predicted where its probability is above the threshold.

    >>> Classes(np.array(["ash", "oak"])).encode(np.array(["oak", "ash"])).tolist()
    [1, 0]
    >>> Classes(np.array(["ash", "oak"]), threshold=0.9).decode(np.array([[2.0], [3.0]])).tolist()
    ['ash', 'oak']
    """

    classes: np.ndarray
    threshold: float = DEFAULT_THRESHOLD
    positive: int = 1  # the index of the positive class, of two
    kind: ClassVar[str] = "classes"

    @property
    def cut(self) -> float:
        """The logit above which the second of two classes is predicted."""
        logit = float(np.log(self.threshold / (1 - self.threshold)))
        return logit if self.positive else -logit

    @property
    def objective(self) -> Binary | Multiclass:
        return Binary() if self.n_out == 1 else Multiclass()

    @property
    def n_out(self) -> int:
        return 1 if len(self.classes) <= 2 else len(self.classes)

    def encode(self, y: np.ndarray) -> np.ndarray:
        if y.ndim != 1:
            raise ValueError(f"y has shape {y.shape}; it must be [samples], one of {len(self.classes)} classes each.")
        is_class = np.isin(y, self.classes)
        if not is_class.all():
            what = f"y holds {y[~is_class][0]!r}, which is not among the classes {self.classes.tolist()}"
            raise ValueError(f"{what}; they are those of the first fit, or of the first partial_fit(…, classes=…).")
        return np.searchsorted(self.classes, y)

    def columns(self, encoded: np.ndarray) -> np.ndarray:
        """Return an indicator column for each class that occurs."""
        return (encoded[:, None] == np.unique(encoded)).astype(float)

    def decode(self, outputs: np.ndarray) -> np.ndarray:
        index = (outputs[:, 0] > self.cut).astype(int) if self.n_out == 1 else outputs.argmax(1)
        return self.classes[np.minimum(index, len(self.classes) - 1)]  # there may be a single class

    def decision(self, outputs: np.ndarray) -> np.ndarray:
        return outputs[:, 0] if self.n_out == 1 else outputs

    def logits(self, outputs: np.ndarray) -> np.ndarray:
        """Return a logit for each class, [..., classes], of outputs [..., n_out]."""
        zero = np.zeros_like(outputs)
        return outputs if self.n_out > 1 else np.concatenate([zero, outputs], -1)[..., : len(self.classes)]

    def probabilities(self, outputs: np.ndarray) -> np.ndarray:
        if len(self.classes) == 1:
            return np.ones((len(outputs), 1))
        if self.n_out == 1:
            p = sigmoid(outputs[:, 0])
            return np.stack([1 - p, p], 1)
        z = np.exp(outputs - outputs.max(1, keepdims=True), dtype=float)
        return z / z.sum(1, keepdims=True)

    def unsure(self, outputs: np.ndarray, margin: float) -> np.ndarray:
        """Return the rows [n] whose class may change if outputs change by at most `margin`."""
        if self.n_out == 1:
            return np.abs(outputs[:, 0] - self.cut) <= margin
        return (outputs >= outputs.max(1, keepdims=True) - 2 * margin).sum(1) > 1

    def pack(self) -> Packed:
        """Return numeric classes as an array, texts in the header."""
        header: dict[str, Any] = {"kind": self.kind}
        if self.threshold != DEFAULT_THRESHOLD:
            header["threshold"] = self.threshold
        if not self.positive:
            header["positive"] = self.positive
        if self.classes.dtype.kind in "biuf":
            return header, {"classes": self.classes}
        names = self.classes.tolist()
        if not all(isinstance(name, str) for name in names):
            raise ValueError(f"y: classes of type {self.classes.dtype} cannot be written to a file; fit with numbers or texts.")
        return header | {"names": names, "is_object": self.classes.dtype.kind == "O"}, {}

    @classmethod
    def unpack(cls, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        if "names" in header:
            names, is_object = header["names"], header["is_object"]
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or type(is_object) is not bool:
                raise ValueError("its classes are no texts.")
            classes = np.array(names, dtype=object if is_object else None)
        else:
            classes = arrays["classes"]
        if classes.ndim != 1 or not len(classes) or classes.dtype.kind not in "biufUO":
            raise ValueError("its classes are not a vector of numbers or texts.")
        if not (classes[1:] > classes[:-1]).all() or (classes.dtype.kind == "f" and not np.isfinite(classes).all()):
            raise ValueError("its classes are not ascending.")
        threshold, positive = header.get("threshold", DEFAULT_THRESHOLD), header.get("positive", 1)
        if type(threshold) is not float or not 0 < threshold < 1 or type(positive) is not int or positive not in (0, 1):
            raise ValueError("its threshold is not between 0 and 1, or its positive class not one of two.")
        if (threshold != DEFAULT_THRESHOLD or not positive) and len(classes) != 2:
            raise ValueError(f"it has a threshold, which is for two classes, and {len(classes)} of them.")
        return cls(classes, threshold, positive)


@dataclass(frozen=True)
class Labels(_Categorical):
    """y [n, count] of 0 and 1.

    >>> Labels(2).decode(np.array([[-1.0, 2.0]])).tolist()
    [[0, 1]]
    """

    count: int
    kind: ClassVar[str] = "labels"
    objective: ClassVar[Multilabel] = Multilabel()

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

    def columns(self, encoded: np.ndarray) -> np.ndarray:
        return encoded

    def decode(self, outputs: np.ndarray) -> np.ndarray:
        return (outputs > 0).astype(int)

    def decision(self, outputs: np.ndarray) -> np.ndarray:
        return outputs

    def probabilities(self, outputs: np.ndarray) -> np.ndarray:
        return sigmoid(outputs)

    def unsure(self, outputs: np.ndarray, margin: float) -> np.ndarray:
        return (np.abs(outputs) <= margin).any(1)

    def pack(self) -> Packed:
        return {"kind": self.kind, "count": self.count}, {}

    @classmethod
    def unpack(cls, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        count = header["count"]
        if type(count) is not int or not 1 <= count < 2**31:
            raise ValueError("its number of labels is not a positive integer.")
        return cls(count)


def log_sum_exp(logits: np.ndarray) -> np.ndarray:
    """Return log Σ e^z over the last axis, without overflow."""
    most = logits.max(-1, keepdims=True)
    return np.asarray((most + np.log(np.exp(logits - most).sum(-1, keepdims=True)))[..., 0])


def sigmoid(z: np.ndarray) -> np.ndarray:
    """Return 1 / (1 + e^−z) without overflow."""
    return 0.5 * (1 + np.tanh(0.5 * z.astype(float)))
