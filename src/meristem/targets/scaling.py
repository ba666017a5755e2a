"""Columns to mean 0 and standard deviation 1, learned from the training rows; a constant column becomes 0.

    Scaling.of(x) → scaling;  scaling(x) → float32;  scaling.inverse(z);  scaling.with_more(x) → scaling, for a stream

`Scaling.robust` takes the median and the range of the quartiles instead, which outliers do not move. Numbers of any size from
1e-150 to 1e150 are scaled as their hand-scaled equals are, to the bit: squares are taken of multiples of a power of two
(`unit_of`). A variance that a float cannot hold is an error that says so; one below 1e-300 counts as none. Sparse matrices are
made dense here, a block of rows at a time. Imports NumPy and what a quantile is.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from meristem.weighted_quantiles import weighted_quantile

BLOCK = 4096  # rows
NUMBERS = 2**22  # of a block, in which there are fewer rows if they are long
QUARTILES = 1.349  # how far apart those of a normal distribution are, in standard deviations
ROUNDING = 1e-12  # of the mean: what is left of a constant column
LEAST_VARIANCE = 1e-302  # below it a float has fewer digits; standard deviations from 1e-151 on


@dataclass(frozen=True)
class Scaling:
    """z = (x − mean) / scale, column by column.

    Of rows whose weights sum to `total`; at 0 nothing was learned, and everything stays as it is.
    """

    total: float
    mean: np.ndarray
    variance: np.ndarray

    @classmethod
    def none(cls, columns: int) -> Self:
        """Leaves everything as it is."""
        return cls(0.0, np.zeros(columns), np.ones(columns))

    @classmethod
    def of(cls, x: Any, weight: np.ndarray | None = None) -> Self:
        """From dense or sparse rows; those of weight 0 do not count.

        >>> Scaling.of(np.array([[1.0, 5.0], [3.0, 5.0]]))(np.array([[1.0, 6.0]])).tolist()
        [[-1.0, 1.0]]
        """
        w = np.ones(x.shape[0]) if weight is None else np.asarray(weight, float)
        total, size = w.sum(), np.zeros(x.shape[1])
        with np.errstate(over="ignore", invalid="ignore"):  # who asks for a variance looks at it
            mean = sum(w[rows] @ block for rows, block in blocks(x)) / total
            for rows, block in blocks(x):
                size = np.maximum(size, np.abs(_counted(block - mean, w[rows])).max(0, initial=0))
            unit = unit_of(size)
            squares = (w[rows] @ (_counted(block - mean, w[rows]) / unit) ** 2 for rows, block in blocks(x))
            variance = sum(squares) / total * unit**2
        return cls(float(total), mean, variance)

    @classmethod
    def robust(cls, x: np.ndarray, weight: np.ndarray) -> Self:
        """From dense rows [n, columns]: the median, and as `scale` the distance of the quartiles, as for a normal distribution.

        Where both quartiles are the same it is the standard deviation.

        >>> Scaling.robust(np.array([[1.0], [2.0], [3.0], [4.0], [1e6]]), np.ones(5)).mean.tolist()
        [3.0]
        """
        low, median, high = (weighted_quantile(x, weight, level) for level in (0.25, 0.5, 0.75))
        with np.errstate(over="ignore"):
            plain, square = cls.of(x, weight), ((high - low) / QUARTILES) ** 2
        return cls(plain.total, median, np.where(square > 0, square, plain.variance))

    def with_more(self, x: Any, weight: np.ndarray | None = None) -> Self:
        """As if learned from all rows so far and these.

        >>> x = np.array([[1.0], [2.0], [6.0]])
        >>> Scaling.of(x[:1]).with_more(x[1:])(x).round(6).tolist() == Scaling.of(x)(x).round(6).tolist()
        True
        """
        return self.merged(type(self).of(x, weight)) if self.total else self

    def merged(self, more: "Scaling") -> Self:
        """That of two sets of rows together; exact for means and variances."""
        if not self.total:
            return self
        total = self.total + more.total
        share = more.total / total
        step = more.mean - self.mean
        variance = (1 - share) * self.variance + share * more.variance + share * (1 - share) * step**2
        return type(self)(total, self.mean + share * step, variance)

    @property
    def scale(self) -> np.ndarray:
        """The standard deviations; 1, and far more than rounding errors, where these are all that is left of a column."""
        scale, least = np.sqrt(self.variance), ROUNDING * np.abs(self.mean)
        return np.where((scale <= least) | (self.variance < LEAST_VARIANCE), np.maximum(1.0, least), scale)

    @property
    def too_large(self) -> np.ndarray:
        """The columns whose mean or variance is more than a float holds."""
        return np.flatnonzero(~(np.isfinite(self.mean) & np.isfinite(self.variance)))

    def __call__(self, x: Any) -> np.ndarray:
        out, scale = np.empty(x.shape, np.float32), self.scale
        with np.errstate(over="ignore"):  # who scales targets looks at them
            for rows, block in blocks(x):
                out[rows] = (block - self.mean) / scale
        return out

    def inverse(self, z: np.ndarray) -> np.ndarray:
        return z * self.scale + self.mean

    def pack(self) -> dict[str, np.ndarray]:
        """As arrays, for a file."""
        return {"total": np.array([self.total]), "mean": self.mean, "variance": self.variance}

    @classmethod
    def unpack(cls, arrays: dict[str, np.ndarray]) -> Self:
        """What `pack` wrote.

        >>> Scaling.unpack(Scaling.none(2).pack()).mean.tolist()
        [0.0, 0.0]
        """
        rows = [row_of(arrays, name) for name in ("total", "mean", "variance")]
        if len(rows[0]) != 1 or len(rows[1]) != len(rows[2]):
            raise ValueError("its scaling does not hold together.")
        if not np.isfinite(np.concatenate(rows)).all() or rows[0][0] < 0 or (rows[2] < 0).any():
            raise ValueError("its scaling must be of finite numbers, and no variance below 0.")
        return cls(float(rows[0][0]), rows[1], rows[2])


def _counted(block: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The rows with 0 in those of weight 0: however large they are."""
    return block if (weight > 0).all() else np.where(weight[:, None] > 0, block, 0)


def unit_of(size: np.ndarray) -> np.ndarray:
    """The power of two below each size, by which a division changes no digit; 1 where there is none.

    >>> unit_of(np.array([0.0, 3.0, 1e300])).tolist() == [1.0, 2.0, 2.0**996]
    True
    """
    exponent = np.frexp(size)[1] - 1
    return np.where((size > 0) & np.isfinite(size), np.ldexp(1.0, exponent), 1.0)


def row_of(arrays: dict[str, np.ndarray], name: str) -> np.ndarray:
    """A row of a file."""
    if name not in arrays or arrays[name].ndim != 1 or arrays[name].dtype != np.float64:
        raise ValueError(f"its {name} is missing or no row of numbers.")
    return arrays[name]


def blocks(x: Any) -> Iterator[tuple[slice, np.ndarray]]:
    """Dense rows, some at a time."""
    step = max(1, min(BLOCK, NUMBERS // max(1, x.shape[1])))
    for start in range(0, x.shape[0], step):
        rows = slice(start, start + step)
        block = x[rows]
        yield rows, np.asarray(block.toarray() if hasattr(block, "toarray") else block, float)
