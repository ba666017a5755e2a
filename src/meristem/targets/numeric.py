"""Numeric targets: numbers, counts and quantiles, in one column or several.

Numbers      y = z · scale + mean, where the network predicts z: mean and standard deviation for the squared error, median and
             interquartile range for losses that are robust to outliers
Counts       y = e^(z + m), m the logarithm of the mean rate. The network is trained on y divided by its mean: the Poisson
             loss of y / e^m at z is that of y at z + m, divided by the mean, plus a constant. Outputs of 0 are the mean rate,
             and a penalty means the same in any unit of y
Quantiles    an output for each level of each column of y, column by column, levels in the order of the parameter
"""

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from meristem.targets.scaling import LEAST_VARIANCE, ROUNDING, Packed, Scaling
from meristem.train.objectives import OBJECTIVES, Objective, Poisson, Quantile, SquaredError

SQUARED_ERROR, POISSON = SquaredError(), Poisson()
OUTLYING = 3.0  # standard deviations
LARGEST = 700.0  # the exponent of a number that a float still holds


@dataclass(frozen=True)
class Numbers:
    """y [n], or [n, columns] unless `is_flat`; decoded as link⁻¹(z · scale + mean).

    >>> y = np.array([1.0, 3.0])
    >>> numbers = Numbers.of(y, np.ones(2), standardize=True)
    >>> numbers.encode(y).tolist(), numbers.decode(np.array([[0.5]])).tolist()
    ([[-1.0], [1.0]], [2.5])
    """

    scaling: Scaling  # of the outputs
    is_flat: bool
    objective: Objective = SQUARED_ERROR
    relative_variance: float = 1.0  # of counts: that of y / mean in the first rows, 1 / mean for pure Poisson noise

    kind: ClassVar[str] = "numbers"
    link: ClassVar[str] = "identity"

    @classmethod
    def of(cls, y: np.ndarray, weight: np.ndarray, *, standardize: bool, objective: Objective = SQUARED_ERROR) -> Self:
        n_out = math.prod(y.shape[1:]) * _outputs_per_column(objective)
        numbers = cls(Scaling.none(n_out), y.ndim == 1 and n_out == 1, objective)
        columns = numbers._as_columns(y)
        return numbers._with_scaling(numbers._scaling_of(columns, weight), columns, weight) if standardize else numbers

    def with_more(self, y: np.ndarray, weight: np.ndarray) -> Self:
        columns = self._as_columns(y)
        return self._with_scaling(self.scaling.merged(self._scaling_of(columns, weight)), columns, weight)

    @property
    def n_out(self) -> int:
        return len(self.scaling.mean)

    def encode(self, y: np.ndarray) -> np.ndarray:
        columns = self._as_columns(y)
        encoded = self._scaled(columns)
        if not np.isfinite(encoded).all():
            advice = "remove it, or clip it" if self.scaling.total > 0 else "divide y, or leave standardize=True"
            raise ValueError(f"y holds {_largest(columns):.3g}, which is out of the range of single precision; {advice}.")
        return encoded

    def decode(self, outputs: np.ndarray) -> np.ndarray:
        y = self.scaling.inverse(outputs.astype(float))
        return y[:, 0] if self.is_flat else y

    def columns(self, encoded: np.ndarray) -> np.ndarray:
        return encoded[:, :: _outputs_per_column(self.objective)]

    def typical(self, encoded: np.ndarray) -> np.ndarray:
        is_robust = self.link == "identity" and self.objective != SQUARED_ERROR
        return (np.abs(encoded) <= OUTLYING).all(1) if is_robust else np.ones(len(encoded), bool)

    def pack(self) -> Packed:
        header: dict[str, Any] = {"kind": self.kind, "is_flat": self.is_flat}
        if self.objective != SQUARED_ERROR:  # the first files name no objective: theirs is the squared error
            options = {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self.objective).items()}
            header["objective"] = {"name": self.objective.name, **options}
        return header, self.scaling.pack()

    @classmethod
    def unpack(cls, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        entry = header.get("objective", {"name": SQUARED_ERROR.name})
        objective = OBJECTIVES.get(str(entry.get("name"))) if isinstance(entry, dict) else None
        if objective is None or objective.target_kind != cls.kind:
            raise ValueError(f"its {cls.kind} do not belong to such an objective.")
        options = {name: tuple(v) if isinstance(v, list) else v for name, v in entry.items() if name != "name"}
        numbers = cls(Scaling.unpack(arrays), header["is_flat"], objective(**options))
        if type(numbers.is_flat) is not bool or not numbers.n_out or (numbers.is_flat and numbers.n_out > 1):
            raise ValueError(f"its {cls.kind} are one column or several, as is_flat says.")
        if numbers.n_out % _outputs_per_column(numbers.objective):
            raise ValueError(f"its {cls.kind} are not one for each level of each column.")
        return numbers

    def _scaling_of(self, columns: np.ndarray, weight: np.ndarray) -> Scaling:
        return (Scaling.of if self.objective == SQUARED_ERROR else Scaling.robust)(columns, weight)

    def _with_scaling(self, scaling: Scaling, columns: np.ndarray, weight: np.ndarray) -> Self:
        """Return these targets so scaled; raise ValueError where the variance of y is too large or too small for a float."""
        columns = columns[weight > 0]
        if len(scaling.too_large):
            raise ValueError(f"y holds {_largest(columns):.3g}, whose square no float holds; divide y by a power of ten.")
        for column, mean, variance in zip(columns.T, scaling.mean, scaling.variance, strict=True):
            low, high = column.min(), column.max()
            if low < high and variance < LEAST_VARIANCE:
                raise ValueError(f"y varies by {high - low:.3g}, whose square no float holds; multiply y by a power of ten.")
            if low < high and np.sqrt(variance) <= ROUNDING * abs(mean):
                advice = "less than float precision; subtract its mean first"
                raise ValueError(f"y varies by {high - low:.3g} about {mean:.6g}, {advice}.")
        return replace(self, scaling=scaling)

    def _scaled(self, columns: np.ndarray) -> np.ndarray:
        return self.scaling(columns)

    def _as_columns(self, y: np.ndarray) -> np.ndarray:
        """Return y as a column for each output; raise ValueError unless it has as many columns as in the first fit."""
        columns, repeats = y.reshape(len(y), -1), _outputs_per_column(self.objective)
        if columns.shape[1] * repeats != self.n_out:
            raise ValueError(f"y has {columns.shape[1]} columns; it must have {self.n_out // repeats}, as in the first fit.")
        return columns if repeats == 1 else np.repeat(columns, repeats, 1)


@dataclass(frozen=True)
class Counts(Numbers):
    """Counts or rates: y [n] or [n, columns], none below 0, with a log link.

    >>> y = np.array([1.0, 3.0])
    >>> counts = Counts.of(y, np.ones(2), standardize=True)
    >>> counts.encode(y).tolist(), counts.decode(np.zeros((1, 1))).tolist()
    ([[0.5], [1.5]], [2.0])
    """

    kind: ClassVar[str] = "counts"
    link: ClassVar[str] = "log"

    @classmethod
    def of(cls, y: np.ndarray, weight: np.ndarray, *, standardize: bool, objective: Objective = POISSON) -> Self:
        counts = super().of(y, weight, standardize=standardize, objective=objective)
        columns, total = counts._as_columns(y), weight.sum()
        rate = weight @ columns / total
        variance = weight @ (columns / np.where(rate > 0, rate, 1) - 1) ** 2 / total
        return replace(counts, relative_variance=float(variance.mean()))

    def with_more(self, y: np.ndarray, weight: np.ndarray) -> Self:
        if not self.scaling.total:
            return self
        more = self._scaling_of(self._as_columns(y), weight)
        rates, totals = np.exp([self.scaling.mean, more.mean]), np.array([self.scaling.total, more.total])
        return replace(self, scaling=self._scaling_of(rates, totals))

    def decode(self, outputs: np.ndarray) -> np.ndarray:
        return np.exp(np.minimum(super().decode(outputs), LARGEST))

    def pack(self) -> Packed:
        header, arrays = super().pack()
        return header | {"relative_variance": self.relative_variance}, arrays

    @classmethod
    def unpack(cls, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        counts, variance = super().unpack(header, arrays), header["relative_variance"]
        if type(variance) is not float or not 0 <= variance < np.inf or np.abs(counts.scaling.mean).max() > LARGEST:
            raise ValueError("the mean or variance of its counts is out of range.")
        return replace(counts, relative_variance=variance)

    def _scaling_of(self, columns: np.ndarray, weight: np.ndarray) -> Scaling:
        """Return the scaling z + log rate; a column of zeros counts as if half an event had occurred."""
        total = float(weight.sum())
        rate = weight @ columns / total
        return Scaling(total, np.log(np.where(rate > 0, rate, 0.5 / total)), np.ones(len(rate)))

    def _scaled(self, columns: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return (columns / np.exp(self.scaling.mean)).astype(np.float32)

    def _as_columns(self, y: np.ndarray) -> np.ndarray:
        if (y < 0).any():
            raise ValueError(f"y holds {y[y < 0][0]:g}; loss={self.objective.name!r} needs counts or rates, none below 0.")
        return super()._as_columns(y)


@dataclass(frozen=True)
class Quantiles(Numbers):
    """y [n] or [n, columns]; decoded [n, columns · levels], or [n] for one column and one level."""

    kind: ClassVar[str] = "quantiles"

    @property
    def levels(self) -> tuple[float, ...]:
        assert isinstance(self.objective, Quantile)
        return tuple(self.objective.levels)


def losses() -> dict[str, type[Numbers]]:
    """Return the registered objectives with numeric targets, the squared error first, and the kind of target of each."""
    kinds = {kind.kind: kind for kind in (Numbers, Counts, Quantiles)}
    names = sorted(OBJECTIVES, key=lambda name: name != SQUARED_ERROR.name)
    return {name: kinds[kind] for name in names if (kind := OBJECTIVES[name].target_kind) in kinds}


def _outputs_per_column(objective: Objective) -> int:
    return len(objective.levels) if isinstance(objective, Quantile) else 1


def _largest(columns: np.ndarray) -> float:
    return float(columns.ravel()[np.abs(columns).argmax()])
