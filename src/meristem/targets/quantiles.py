"""Quantiles of numbers: an output for each level of each column of y, column by column, levels in the order given."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from meristem.targets.numbers import Numbers
from meristem.targets.scaling import Scaling
from meristem.train.objectives import Objective, Quantile


@dataclass(frozen=True)
class Quantiles(Numbers):
    """y [n] or [n, columns]; decoded [n, columns · levels], or [n] where there is one of both.

    >>> y = np.array([1.0, 3.0])
    >>> quantiles = Quantiles.of(y, np.ones(2), standardize=False, objective=Quantile((0.1, 0.9)))
    >>> quantiles.encode(y).tolist()
    [[1.0, 1.0], [3.0, 3.0]]
    """

    kind: ClassVar[str] = "quantiles"

    @classmethod
    def of(cls, y: np.ndarray, weight: np.ndarray, *, standardize: bool, objective: Objective = Quantile()) -> Self:
        assert isinstance(objective, Quantile)
        each, levels = super().of(y, weight, standardize=standardize, objective=objective), len(objective.levels)
        return replace(each, scaling=_repeated(each.scaling, levels), is_flat=each.is_flat and levels == 1)

    @classmethod
    def unpack(cls, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        quantiles = super().unpack(header, arrays)
        if quantiles.n_out % len(quantiles.levels):
            raise ValueError("its quantiles are not one for each level of each column.")
        return quantiles

    @property
    def levels(self) -> tuple[float, ...]:
        assert isinstance(self.objective, Quantile)
        return tuple(self.objective.levels)

    def columns(self, encoded: np.ndarray) -> np.ndarray:
        return encoded[:, :: len(self.levels)]

    def _checked(self, y: np.ndarray) -> np.ndarray:
        columns, wanted = y.reshape(len(y), -1), self.n_out // len(self.levels)
        if columns.shape[1] != wanted:
            raise ValueError(f"y has {columns.shape[1]} columns; it must have {wanted}, as in the first fit.")
        return np.repeat(columns, len(self.levels), 1)


def _repeated(scaling: Scaling, times: int) -> Scaling:
    return Scaling(scaling.total, np.repeat(scaling.mean, times), np.repeat(scaling.variance, times))
