"""Standardize columns to mean 0 and standard deviation 1; a constant column becomes 0.

    Scaling.of(x) → scaling;  scaling(x) → float32;  scaling.inverse(z);  scaling.merged(more) → scaling, for a stream

`Scaling.robust` uses the median and the interquartile range instead, which outliers do not move. Columns between 1e-150 and
1e150 are scaled exactly as if they were multiplied by a power of two first (`unit_of`). Sparse matrices are made dense here,
a block of rows at a time.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from meristem.weighted_quantiles import weighted_quantiles

BLOCK_ROWS, BLOCK_NUMBERS = 4096, 2**22  # the most of both in a block
Packed = tuple[dict[str, Any], dict[str, np.ndarray]]  # a JSON header, and arrays by name
QUARTILES = 1.349  # the interquartile range of a normal distribution, in standard deviations
ROUNDING = 1e-12  # relative to the mean: the standard deviation that rounding errors leave of a constant column
LEAST_VARIANCE = 1e-302  # below it a float has fewer digits, and a column counts as constant


@dataclass(frozen=True)
class Scaling:
    """z = (x − mean) / scale, column by column."""

    total: float  # the sum of the rows' weights; 0 for the identity
    mean: np.ndarray
    variance: np.ndarray

    @classmethod
    def none(cls, columns: int) -> Self:
        return cls(0.0, np.zeros(columns), np.ones(columns))

    @classmethod
    def of(cls, x: Any, weight: np.ndarray | None = None) -> Self:
        """Return the mean and variance of dense or sparse rows; rows of weight 0 do not count.

        >>> Scaling.of(np.array([[1.0, 5.0], [3.0, 5.0]]))(np.array([[1.0, 6.0]])).tolist()
        [[-1.0, 1.0]]
        """
        w = np.ones(x.shape[0]) if weight is None else np.asarray(weight, float)
        total, size = w.sum(), np.zeros(x.shape[1])
        with np.errstate(over="ignore", invalid="ignore"):  # `too_large` tells
            mean = sum(w[rows] @ block for rows, block in blocks(x)) / total
            for rows, block in blocks(x):
                size = np.maximum(size, np.abs(block - mean).max(0, initial=0, where=w[rows, None] > 0))
            unit = unit_of(size)
            squares = (w[rows] @ (np.where(w[rows, None] > 0, block - mean, 0) / unit) ** 2 for rows, block in blocks(x))
            variance = sum(squares) / total * unit**2
        return cls(float(total), mean, variance)

    @classmethod
    def robust(cls, x: np.ndarray, weight: np.ndarray) -> Self:
        """Return the median and the interquartile range / 1.349, or standard deviation where that is 0, of dense rows."""
        low, median, high = weighted_quantiles(x, weight, [0.25, 0.5, 0.75])
        with np.errstate(over="ignore"):
            plain, square = cls.of(x, weight), ((high - low) / QUARTILES) ** 2
        return cls(plain.total, median, np.where(square > 0, square, plain.variance))

    def merged(self, more: "Scaling") -> Self:
        """Return the scaling of two sets of rows together; exact for means and variances."""
        if not self.total:
            return self
        total = self.total + more.total
        share = more.total / total
        step = more.mean - self.mean
        variance = (1 - share) * self.variance + share * more.variance + share * (1 - share) * step**2
        return type(self)(total, self.mean + share * step, variance)

    @property
    def scale(self) -> np.ndarray:
        """The standard deviations; for a constant column 1, or more where rounding errors would exceed it."""
        scale, least = np.sqrt(self.variance), ROUNDING * np.abs(self.mean)
        return np.where((scale <= least) | (self.variance < LEAST_VARIANCE), np.maximum(1.0, least), scale)

    @property
    def too_large(self) -> np.ndarray:
        """The columns whose mean or variance is no finite float."""
        return np.flatnonzero(~(np.isfinite(self.mean) & np.isfinite(self.variance)))

    def __call__(self, x: Any) -> np.ndarray:
        out, scale = np.empty(x.shape, np.float32), self.scale
        with np.errstate(over="ignore"):  # targets are checked after it
            for rows, block in blocks(x):
                out[rows] = (block - self.mean) / scale
        return out

    def inverse(self, z: np.ndarray) -> np.ndarray:
        return z * self.scale + self.mean

    def pack(self) -> dict[str, np.ndarray]:
        return {"total": np.array([self.total]), "mean": self.mean, "variance": self.variance}

    @classmethod
    def unpack(cls, arrays: dict[str, np.ndarray]) -> Self:
        rows = [row_of(arrays, name) for name in ("total", "mean", "variance")]
        if len(rows[0]) != 1 or len(rows[1]) != len(rows[2]):
            raise ValueError("the arrays of its scaling differ in length.")
        if not np.isfinite(np.concatenate(rows)).all() or rows[0][0] < 0 or (rows[2] < 0).any():
            raise ValueError("its scaling must be of finite numbers, and no variance below 0.")
        return cls(float(rows[0][0]), rows[1], rows[2])


def unit_of(size: np.ndarray) -> np.ndarray:
    """Return the power of two below each size, division by which is exact; 1 where there is none."""
    return np.where((size > 0) & np.isfinite(size), np.ldexp(1.0, np.frexp(size)[1] - 1), 1.0)


def row_of(arrays: dict[str, np.ndarray], name: str) -> np.ndarray:
    """Return a vector of a file; raise ValueError if it is missing or something else."""
    if name not in arrays or arrays[name].ndim != 1 or arrays[name].dtype != np.float64:
        raise ValueError(f"its {name} is missing or no vector of float64.")
    return arrays[name]


def blocks(x: Any) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield slices of rows and these rows, dense."""
    step = max(1, min(BLOCK_ROWS, BLOCK_NUMBERS // max(1, x.shape[1])))
    for start in range(0, x.shape[0], step):
        rows = slice(start, start + step)
        block = x[rows]
        yield rows, np.asarray(block.toarray() if hasattr(block, "toarray") else block, float)
