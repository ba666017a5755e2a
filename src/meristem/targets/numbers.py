"""Numbers, one per row or several: y = z · scale + mean, where the network learns z.

For the squared error mean and scale are the mean and the standard deviation. Other losses are asked for because of outliers,
which would move these: for them they are the median and the range of the quartiles (`Scaling.robust`).
"""

from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from meristem.targets.base import Targets
from meristem.targets.scaling import LEAST_VARIANCE, ROUNDING, Scaling
from meristem.train.objectives import OBJECTIVES, Objective, SquaredError

SQUARED_ERROR = SquaredError()
OUTLYING = 3.0  # standard deviations


@dataclass(frozen=True)
class Numbers(Targets):
    """y [n], or [n, columns] unless `is_flat`; `scaling` and `link` say how outputs become y: link⁻¹(z · scale + mean).

    >>> y = np.array([1.0, 3.0])
    >>> numbers = Numbers.of(y, np.ones(2), standardize=True)
    >>> numbers.encode(y).tolist(), numbers.decode(np.array([[0.5]])).tolist()
    ([[-1.0], [1.0]], [2.5])
    """

    scaling: Scaling  # of the outputs
    is_flat: bool
    objective: Objective = SQUARED_ERROR

    kind: ClassVar[str] = "numbers"
    link: ClassVar[str] = "identity"

    @classmethod
    def of(cls, y: np.ndarray, weight: np.ndarray, *, standardize: bool, objective: Objective = SQUARED_ERROR) -> Self:
        """For targets like these, trained with the objective."""
        columns = y.reshape(len(y), -1)
        fresh = cls(Scaling.none(columns.shape[1]), y.ndim == 1, objective)
        return replace(fresh, scaling=_tellable(fresh._learned(columns, weight), columns, weight)) if standardize else fresh

    def with_more(self, y: np.ndarray, weight: np.ndarray) -> Self:
        """After more rows of a stream."""
        columns = self._checked(y)
        return replace(self, scaling=_tellable(self.scaling.merged(self._learned(columns, weight)), columns, weight))

    @property
    def n_out(self) -> int:
        return len(self.scaling.mean)

    @property
    def relative_variance(self) -> float:
        """How large the variance of the encoded y is; 1 where it is standardized."""
        return 1.0

    def encode(self, y: np.ndarray) -> np.ndarray:
        columns = self._checked(y)
        return single(self.scaling(columns), columns, scaled=self.scaling.total > 0)

    def typical(self, encoded: np.ndarray) -> np.ndarray:
        return super().typical(encoded) if self._is_plain else (np.abs(encoded) <= OUTLYING).all(1)

    def decode(self, outputs: np.ndarray) -> np.ndarray:
        y = self.scaling.inverse(outputs.astype(float))
        return y[:, 0] if self.is_flat else y

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The first files name no objective: theirs is the squared error."""
        header: dict[str, Any] = {"kind": self.kind, "is_flat": self.is_flat}
        if not self._is_plain:
            options = {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self.objective).items()}
            header["objective"] = {"name": self.objective.name, **options}
        return header, self.scaling.pack()

    @classmethod
    def unpack(cls, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        entry = header.get("objective", {"name": SQUARED_ERROR.name})
        objective = OBJECTIVES.get(str(entry.get("name"))) if isinstance(entry, dict) else None
        if objective is None or objective.target_kind != cls.kind:
            raise ValueError(f"its {cls.kind} are not learned by such an objective.")
        options = {name: tuple(v) if isinstance(v, list) else v for name, v in entry.items() if name != "name"}
        numbers = cls(Scaling.unpack(arrays), header["is_flat"], objective(**options))
        if type(numbers.is_flat) is not bool or not numbers.n_out or (numbers.is_flat and numbers.n_out > 1):
            raise ValueError(f"its {cls.kind} are one column or several, as is_flat says.")
        return numbers

    def _learned(self, columns: np.ndarray, weight: np.ndarray) -> Scaling:
        """The scaling of these rows alone."""
        return (Scaling.of if self._is_plain else Scaling.robust)(columns, weight)

    @property
    def _is_plain(self) -> bool:
        return self.objective == SQUARED_ERROR

    def _checked(self, y: np.ndarray) -> np.ndarray:
        """Y as columns, as many as there were."""
        columns = y.reshape(len(y), -1)
        if columns.shape[1] != self.n_out:
            raise ValueError(f"y has {columns.shape[1]} columns; it must have {self.n_out}, as in the first fit.")
        return columns


def _tellable(scaling: Scaling, columns: np.ndarray, weight: np.ndarray) -> Scaling:
    """The scaling itself, or a ValueError where what y varies by is more or less than a float can tell."""
    columns = columns[weight > 0]
    if len(scaling.too_large):
        raise ValueError(f"y holds {_largest(columns):.3g}, whose square no float holds; divide y by a power of ten.")
    varies = (columns != columns[:1]).any(0)
    is_told = scaling.variance >= LEAST_VARIANCE
    lost = np.flatnonzero(varies & is_told & (np.sqrt(scaling.variance) <= ROUNDING * np.abs(scaling.mean)))
    if len(lost):
        raise ValueError(
            f"y varies by {np.ptp(columns[:, lost[0]]):.3g} about {scaling.mean[lost[0]]:.6g}, less than a float tells apart; "
            "subtract its mean first."
        )
    tiny = np.flatnonzero(varies & ~is_told)
    if len(tiny):
        differs = np.ptp(columns[:, tiny[0]])
        raise ValueError(f"y varies by {differs:.3g}, whose square no float holds; multiply y by a power of ten.")
    return scaling


def single(encoded: np.ndarray, columns: np.ndarray, *, scaled: bool) -> np.ndarray:
    """Targets as training takes them, or a ValueError where single precision cannot hold them."""
    if not np.isfinite(encoded).all():
        how = "remove it, or cut it off" if scaled else "divide y, or leave standardize=True"
        raise ValueError(f"y holds {_largest(columns):.3g}, farther out than single precision holds; {how}.")
    return encoded


def _largest(columns: np.ndarray) -> float:
    return float(columns.ravel()[np.abs(columns).argmax()])
