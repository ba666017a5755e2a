"""Counts and rates, at least 0, with a log link: y = e^(z + m), m the logarithm of the mean rate.

The network learns z from y divided by the mean: Poisson's loss of y / e^m at z is that of y at z + m, divided by the mean, but
for a constant. So outputs start at the mean rate, and neither the units of y nor its mean change what a penalty means.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from meristem.targets.numbers import Numbers
from meristem.targets.scaling import Scaling

LARGEST = 700.0  # the exponent of a number that a float still holds


@dataclass(frozen=True)
class Counts(Numbers):
    """y [n] or [n, columns], none below 0.

    >>> from meristem.train.objectives import Poisson
    >>> y = np.array([1.0, 3.0])
    >>> counts = Counts.of(y, np.ones(2), standardize=True, objective=Poisson())
    >>> counts.encode(y).tolist(), counts.decode(np.zeros((1, 1))).tolist()
    ([[0.5], [1.5]], [2.0])
    """

    kind: ClassVar[str] = "counts"
    link: ClassVar[str] = "log"

    def encode(self, y: np.ndarray) -> np.ndarray:
        return (self._checked(y) / np.exp(self.scaling.mean)).astype(np.float32)

    def decode(self, outputs: np.ndarray) -> np.ndarray:
        return np.exp(np.minimum(super().decode(outputs), LARGEST))

    def _learned(self, columns: np.ndarray, weight: np.ndarray) -> Scaling:
        _check_rates(columns)
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
        _check_rates(columns)
        return columns


def _scaling(total: float, rate: np.ndarray) -> Scaling:
    """Z + log rate; where nothing was counted yet, as if half an event had been."""
    return Scaling(total, np.log(np.maximum(rate, 0.5 / total)), np.ones(len(rate)))


def _check_rates(columns: np.ndarray) -> None:
    if (columns < 0).any():
        raise ValueError(f"y holds {columns[columns < 0][0]:g}; loss='poisson' needs counts or rates, none below 0.")
