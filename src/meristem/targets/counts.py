"""Counts and rates, at least 0, with a log link: y = e^(z + m), m the logarithm of the mean rate.

The network learns z from y divided by the mean: Poisson's loss of y / e^m at z is that of y at z + m, divided by the mean, but
for a constant. So outputs start at the mean rate, and neither the units of y nor its mean change what a penalty means.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from meristem.targets.numbers import Numbers, single
from meristem.targets.scaling import Scaling
from meristem.train.objectives import Objective, Poisson

POISSON = Poisson()
LARGEST = 700.0  # the exponent of a number that a float still holds


@dataclass(frozen=True)
class Counts(Numbers):
    """y [n] or [n, columns], none below 0.

    >>> y = np.array([1.0, 3.0])
    >>> counts = Counts.of(y, np.ones(2), standardize=True)
    >>> counts.encode(y).tolist(), counts.decode(np.zeros((1, 1))).tolist()
    ([[0.5], [1.5]], [2.0])
    """

    relative_variance: float = 1.0  # of y / mean in the first rows: 1 / mean of pure chance, so large where events are rare

    kind: ClassVar[str] = "counts"
    link: ClassVar[str] = "log"

    @classmethod
    def of(cls, y: np.ndarray, weight: np.ndarray, *, standardize: bool, objective: Objective = POISSON) -> Self:
        counts = super().of(y, weight, standardize=standardize, objective=objective)
        columns, rate = counts._checked(y), weight @ counts._checked(y) / weight.sum()
        variance = weight @ (columns / np.where(rate > 0, rate, 1) - 1) ** 2 / weight.sum()
        return replace(counts, relative_variance=float(variance.mean()))

    def encode(self, y: np.ndarray) -> np.ndarray:
        columns = self._checked(y)
        with np.errstate(over="ignore"):
            encoded = (columns / np.exp(self.scaling.mean)).astype(np.float32)
        return single(encoded, columns, scaled=self.scaling.total > 0)

    def typical(self, encoded: np.ndarray) -> np.ndarray:
        return np.ones(len(encoded), bool)

    def decode(self, outputs: np.ndarray) -> np.ndarray:
        return np.exp(np.minimum(super().decode(outputs), LARGEST))

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        header, arrays = super().pack()
        return header | {"relative_variance": self.relative_variance}, arrays

    @classmethod
    def unpack(cls, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        counts, variance = super().unpack(header, arrays), header["relative_variance"]
        if type(variance) is not float or not 0 <= variance < np.inf or np.abs(counts.scaling.mean).max() > LARGEST:
            raise ValueError("its counts are of no rate that there is.")
        return replace(counts, relative_variance=variance)

    def _learned(self, columns: np.ndarray, weight: np.ndarray) -> Scaling:
        self._check_rates(columns)
        total = float(weight.sum())
        return _scaling(total, weight @ columns / total)

    def with_more(self, y: np.ndarray, weight: np.ndarray) -> Self:
        if not self.scaling.total:
            return self
        more = self._learned(self._checked(y), weight)
        total = self.scaling.total + more.total
        rate = (self.scaling.total * np.exp(self.scaling.mean) + more.total * np.exp(more.mean)) / total
        return replace(self, scaling=_scaling(total, rate))

    def _checked(self, y: np.ndarray) -> np.ndarray:
        columns = super()._checked(y)
        self._check_rates(columns)
        return columns

    def _check_rates(self, columns: np.ndarray) -> None:
        if (columns < 0).any():
            least, loss = columns[columns < 0][0], self.objective.name
            raise ValueError(f"y holds {least:g}; loss={loss!r} needs counts or rates, none below 0.")


def _scaling(total: float, rate: np.ndarray) -> Scaling:
    """Z + log rate; where nothing was counted yet, as if half an event had been."""
    return Scaling(total, np.log(np.where(rate > 0, rate, 0.5 / total)), np.ones(len(rate)))
