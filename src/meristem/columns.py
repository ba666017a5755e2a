"""What the columns of a table become before a network sees them, learned from the training rows.

    x⁺ = [x, its gaps filled; 1 where there was a gap]      a further input for each column that had gaps when this was learned
    z  = (x⁺ − mean) / scale
    inputs = c + LIMIT · tanh((z − c) / LIMIT),  c = z cut off at ±LIMIT

    Columns.of(x) → columns;  columns(x) → float32 [n, n_inputs];  columns.with_more(x) → columns, for a stream

A gap is NaN; it is filled with the mean. An outlier ruins neither the scale nor the prediction: mean and deviation are those of
values within thirty times the distance of the quartiles from the median, far outside of what is usual, and inputs are exact up
to four standard deviations and never beyond eight. Columns of any size from 1e-150 to 1e150 become the same inputs as scaled by
hand; what single precision cannot hold is an error that names the column, never an infinity. Sparse matrices are made dense a
block of rows at a time.
Imports NumPy and Scaling; estimators, files and exports import it.
"""

import itertools
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from meristem.targets.scaling import Scaling, blocks, row_of, unit_of
from meristem.train.objectives.base import weighted_quantiles

LIMIT = 4.0  # standard deviations
FAR = 1.75  # times the limit; twice is never reached
FENCE = 30.0  # distances of the quartiles
SPREADS = ((0.25, 0.75), (0.05, 0.95))  # the second where the first are the same: most of a column is one value
DIVIDE = "divide the column by a power of ten, or leave standardize=True."
SAMPLE = 20_000  # rows that say where the quartiles are


@dataclass(frozen=True, eq=False)
class Columns:
    """See the module's header.

    >>> x = np.array([[1.0, 5.0], [3.0, np.nan]])
    >>> Columns.of(x)(x).tolist()
    [[-1.0, 0.0, -1.0], [1.0, 0.0, 1.0]]
    """

    scaling: Scaling  # of all inputs
    fill: np.ndarray  # [n_features]
    gaps: np.ndarray  # the columns that had gaps, ascending
    limit: float = LIMIT  # ∞: none

    @property
    def n_features(self) -> int:
        return len(self.fill)

    @property
    def n_inputs(self) -> int:
        return len(self.fill) + len(self.gaps)

    @classmethod
    def of(cls, x: Any, weight: np.ndarray | None = None, *, standardize: bool = True) -> Self:
        """From dense or sparse rows; those of weight 0 do not count. Without `standardize` gaps alone are filled."""
        w = np.ones(x.shape[0]) if weight is None else np.asarray(weight, float)
        found = np.zeros(x.shape[1], bool)
        for rows, block in blocks(x):
            found |= np.isnan(block[w[rows] > 0]).any(0)
        gaps = np.flatnonzero(found)
        learned = _learned(x, w, gaps)
        fill = learned.mean[: x.shape[1]]
        if len(learned.too_large):
            raise ValueError(f"X holds numbers in column {learned.too_large[0]} whose squares no float holds; {DIVIDE}")
        return cls(learned, fill, gaps) if standardize else cls(Scaling.none(len(learned.mean)), fill, gaps, np.inf)

    def with_more(self, x: Any, weight: np.ndarray | None = None) -> Self:
        """As if learned from all rows so far and these, but for how far out is an outlier."""
        if not self.scaling.total:
            return self
        w = np.ones(x.shape[0]) if weight is None else np.asarray(weight, float)
        scaling = self.scaling.merged(_learned(x, w, self.gaps))
        return replace(self, scaling=scaling, fill=scaling.mean[: self.n_features])

    def __call__(self, x: Any) -> np.ndarray:
        out = np.empty((x.shape[0], self.n_inputs), np.float32)
        mean, scale = self.scaling.mean, self.scaling.scale
        with np.errstate(over="ignore"):  # an outlier may be infinitely far out
            for rows, block in blocks(x):
                is_gap = np.isnan(block)
                z = (_with_gaps(np.where(is_gap, self.fill, block), is_gap[:, self.gaps]) - mean) / scale
                out[rows] = limited(z, self.limit)
        if not np.isfinite(self.limit) and len(beyond := np.argwhere(~np.isfinite(out))):
            row, column = beyond[0]
            raise ValueError(f"X holds a number in row {row}, column {column} that single precision cannot hold; {DIVIDE}")
        return out

    def typical(self, x: Any) -> np.ndarray:
        """Which rows have no number so far out that what is said of them says little of others: they are not held out.

        >>> columns = Columns.of(np.append(np.random.default_rng(0).standard_normal(99), 1e9)[:, None])
        >>> columns.typical(np.array([[0.0], [5.0], [1e9]])).tolist()
        [True, True, False]
        """
        is_near: np.ndarray = (np.abs(self(x)) < FAR * self.limit).all(1)
        return is_near

    def pack(self) -> dict[str, np.ndarray]:
        """As arrays, for a file."""
        own = {"fill": self.fill, "gaps": self.gaps.astype(float), "limit": np.array([self.limit])}
        return self.scaling.pack() | own

    @classmethod
    def unpack(cls, arrays: dict[str, np.ndarray]) -> Self:
        """What `pack` wrote, or a Scaling's, in the files of the past.

        >>> Columns.unpack(Scaling.of(np.eye(2)).pack()).limit
        inf
        """
        scaling = Scaling.unpack(arrays)
        if "fill" not in arrays:
            return cls(scaling, scaling.mean, np.zeros(0, int), np.inf)
        fill, gaps, limit = (row_of(arrays, name) for name in ("fill", "gaps", "limit"))
        is_whole = len(limit) == 1 and limit[0] > 0 and len(fill) + len(gaps) == len(scaling.mean)
        if not is_whole or not np.isin(gaps, np.arange(len(fill))).all() or not (np.diff(gaps) > 0).all():
            raise ValueError("its columns do not hold together.")
        if not np.isfinite(fill).all():
            raise ValueError("its columns have gaps that are filled with no finite number.")
        return cls(scaling, fill, gaps.astype(int), float(limit[0]))


def limited(z: np.ndarray, limit: float) -> np.ndarray:
    """As it is up to the limit, never beyond twice the limit.

    >>> limited(np.array([3.0, -1e9]), 4.0).tolist(), limited(np.array([1e9]), np.inf).tolist()
    ([3.0, -8.0], [1000000000.0])
    """
    if not np.isfinite(limit):
        return z
    c = np.clip(z, -limit, limit)
    return c + limit * np.tanh((z - c) / limit)


def n_numbers(x: Any, weight: np.ndarray | None = None) -> int:
    """How many columns are more than an indicator: of more than two values.

    >>> n_numbers(np.array([[0, 1.5, 3], [1, 2.5, 3], [1, 0.5, 3]]))
    1
    """
    counted = slice(None) if weight is None else np.flatnonzero(weight > 0)
    low, high, more = np.full(x.shape[1], np.inf), np.full(x.shape[1], -np.inf), np.zeros(x.shape[1], bool)
    x = x[counted]
    for _, block in blocks(x):
        low, high = np.fmin(low, np.fmin.reduce(block)), np.fmax(high, np.fmax.reduce(block))
    for _, block in blocks(x):
        more |= ((block != low) & (block != high) & ~np.isnan(block)).any(0)
    return int(more.sum())


def _learned(x: Any, w: np.ndarray, gaps: np.ndarray) -> Scaling:
    """Mean and variance of all inputs, of values within the fence."""
    low, high = _fence(x, w)
    n, total = x.shape[1], w.sum()
    weight, mean, missing, size = np.zeros(n), np.zeros(n), np.zeros(len(gaps)), np.zeros(n)
    with np.errstate(over="ignore", invalid="ignore"):
        for rows, block in blocks(x):
            is_usual = (low <= block) & (block <= high) & (w[rows] > 0)[:, None]  # no gap either
            usual = np.where(is_usual, block, 0)
            weight += w[rows] @ is_usual
            missing += w[rows] @ np.isnan(block[:, gaps])
            mean += w[rows] @ usual
            size = np.maximum(size, np.abs(usual).max(0, initial=0))
        weight = np.where(weight > 0, weight, 1)
        mean, variance, unit = mean / weight, np.zeros(n), unit_of(size)
        for rows, block in blocks(x):
            is_usual = (low <= block) & (block <= high) & (w[rows] > 0)[:, None]
            variance += w[rows] @ (np.where(is_usual, block - mean, 0) / unit) ** 2
        share, variance = missing / total, variance / weight * unit**2
    return Scaling(float(total), _with_gaps(mean, share), _with_gaps(variance, share * (1 - share)))


def _fence(x: Any, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Between what values of each column are usual."""
    rows = np.flatnonzero(w > 0)
    rows = rows[:: max(1, len(rows) // SAMPLE)]
    low, high = np.full(x.shape[1], -np.inf), np.full(x.shape[1], np.inf)
    step = max(1, SAMPLE * 100 // max(1, len(rows)))  # columns at a time
    for begin in range(0, x.shape[1], step):
        part = slice(begin, begin + step)
        block = np.asarray(x[rows][:, part].toarray() if hasattr(x, "toarray") else x[:, part][rows], float)
        weight = np.where(np.isnan(block), 0, w[rows][:, None])
        median, *others = weighted_quantiles(block, weight, [0.5, *itertools.chain(*SPREADS)])
        spread = np.zeros(block.shape[1])
        with np.errstate(over="ignore"):  # then there is no fence
            for below, above in zip(others[::2], others[1::2], strict=True):
                spread = np.where(spread > 0, spread, above - below)
            is_fenced = spread > 0
            low[part] = np.where(is_fenced, median - FENCE * spread, -np.inf)
            high[part] = np.where(is_fenced, median + FENCE * spread, np.inf)
    return low, high


def _with_gaps(columns: np.ndarray, gaps: np.ndarray) -> np.ndarray:
    return np.concatenate([columns, gaps], axis=-1)
