"""What the columns of a table become before a network sees them, learned from the training rows.

    x⁺ = [x, its gaps filled; 1 where there was a gap]      a further input for each column that had gaps when this was learned
    z  = (x⁺ − mean) / scale
    inputs = c + LIMIT · tanh((z − c) / LIMIT),  c = z cut off at ±LIMIT

    Columns.of(x) → columns;  columns(x) → float32 [n, n_inputs];  columns.with_more(x) → columns, for a stream

A gap is NaN; it is filled with the mean. An outlier ruins neither the scale nor the prediction: mean and deviation are those of
values within thirty times the distance of the quartiles from the median, far outside of what is usual, and inputs are exact up
to four standard deviations and never beyond eight. Columns of any size from 1e-150 to 1e150 become the same inputs as scaled by
hand; what single precision cannot hold is an error that names the column, never an infinity. Sparse matrices are made dense a
block of rows at a time, and only in the columns that occur; with `kept` these alone are inputs: nothing could be learned of the
others.
Imports NumPy, Scaling and what is sparse; estimators, files and exports import it.
"""

import itertools
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from meristem.sparse import Scattered, is_sparse, occurring, rows_at_once, weight_of_entries
from meristem.targets.scaling import Scaling, blocks, row_of, unit_of
from meristem.train.objectives.base import weighted_quantiles

LIMIT = 4.0  # standard deviations
FAR = 1.75  # times the limit; twice is never reached
FENCE = 30.0  # distances of the quartiles
SPREADS = ((0.25, 0.75), (0.05, 0.95))  # the second where the first are the same: most of a column is one value
DIVIDE = "divide the column by a power of ten, or leave standardize=True."
RARE = 0.99 * SPREADS[1][0]  # the share of rows
SAMPLE = 20_000  # rows that say where the quartiles are


@dataclass(frozen=True, eq=False)
class Columns:
    """See the module's header.

    >>> x = np.array([[1.0, 5.0], [3.0, np.nan]])
    >>> Columns.of(x)(x).tolist()
    [[-1.0, 0.0, -1.0], [1.0, 0.0, 1.0]]
    """

    scaling: Scaling  # of all inputs
    fill: np.ndarray  # [n_features], or of those that are kept
    gaps: np.ndarray  # the columns that had gaps, ascending; of those that are kept
    limit: float = LIMIT  # ∞: none
    kept: np.ndarray | None = None  # the columns that are inputs, ascending; None: all
    width: int = 0  # n_features where only some are kept

    @property
    def n_features(self) -> int:
        return len(self.fill) if self.kept is None else self.width

    @property
    def n_inputs(self) -> int:
        return len(self.fill) + len(self.gaps)

    @classmethod
    def of(cls, x: Any, weight: np.ndarray | None = None, *, standardize: bool = True, kept: np.ndarray | None = None) -> Self:
        """From dense or sparse rows; those of weight 0 do not count. Without `standardize` gaps alone are filled."""
        if kept is not None:
            return replace(cls.of(x[:, kept], weight, standardize=standardize), kept=kept, width=x.shape[1])
        w = np.ones(x.shape[0]) if weight is None else np.asarray(weight, float)
        gaps = _with_a_gap(x, w > 0)
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
        scaling = self.scaling.merged(_learned(self._picked(x), w, self.gaps))
        return replace(self, scaling=scaling, fill=scaling.mean[: len(self.fill)])

    def __call__(self, x: Any) -> np.ndarray:
        if is_sparse(x):
            return self.scattered(x)[np.arange(x.shape[0])]
        out = np.empty((x.shape[0], self.n_inputs), np.float32)
        with np.errstate(over="ignore"):  # an outlier may be infinitely far out
            for rows, block in blocks(self._picked(x)):
                is_gap = np.isnan(block)
                out[rows] = self._scaled(_with_gaps(np.where(is_gap, self.fill, block), is_gap[:, self.gaps]))
        if not np.isfinite(self.limit) and len(beyond := np.argwhere(~np.isfinite(out))):
            raise self._too_far(*beyond[0])
        return out

    def scattered(self, x: Any) -> Scattered:
        """The inputs of sparse rows, none of which is dense before someone asks for it."""
        x = self._picked(x)
        if not x.has_canonical_format:
            x = x.copy()
            x.sum_duplicates()
        row, column, value = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr)), x.indices, np.asarray(x.data, float)
        at_gap = np.flatnonzero(np.isnan(value))
        said = at_gap[np.isin(column[at_gap], self.gaps)]
        place = len(self.fill) + np.searchsorted(self.gaps, column[said])
        value = np.concatenate([np.where(np.isnan(value), self.fill[column], value), np.ones(len(said))])
        row, column = np.concatenate([row, row[said]]), np.concatenate([column, place])
        with np.errstate(over="ignore"):
            base, value = self._scaled(np.zeros(self.n_inputs)), self._scaled(value, column)
        order = np.argsort(row, kind="stable")
        row, column, value = row[order], column[order], value[order]
        if not np.isfinite(self.limit) and len(beyond := np.flatnonzero(~np.isfinite(value))):
            raise self._too_far(row[beyond[0]], column[beyond[0]])
        return Scattered(base, np.searchsorted(row, np.arange(x.shape[0] + 1)), column, value)

    def _picked(self, x: Any) -> Any:
        return x if self.kept is None else x[:, self.kept]

    def _scaled(self, x: np.ndarray, columns: Any = slice(None)) -> np.ndarray:
        """Numbers of the inputs, or of these alone, as a network takes them."""
        return limited((x - self.scaling.mean[columns]) / self.scaling.scale[columns], self.limit).astype(np.float32)

    def _too_far(self, row: Any, column: Any) -> ValueError:
        column = column if self.kept is None else self.kept[column]
        return ValueError(f"X holds a number in row {row}, column {column} that single precision cannot hold; {DIVIDE}")

    def typical(self, x: Any) -> np.ndarray:
        """Which rows have no number so far out that what is said of them says little of others: they are not held out.

        >>> columns = Columns.of(np.append(np.random.default_rng(0).standard_normal(99), 1e9)[:, None])
        >>> columns.typical(np.array([[0.0], [5.0], [1e9]])).tolist()
        [True, True, False]
        """
        step = rows_at_once(self.n_inputs) if is_sparse(x) else max(1, x.shape[0])
        parts = (self(x[start : start + step]) for start in range(0, x.shape[0], step))
        return np.concatenate([(np.abs(part) < FAR * self.limit).all(1) for part in parts])

    def pack(self) -> dict[str, np.ndarray]:
        """As arrays, for a file."""
        own = {"fill": self.fill, "gaps": self.gaps.astype(float), "limit": np.array([self.limit])}
        if self.kept is not None:
            own |= {"kept": self.kept.astype(float), "width": np.array([float(self.width)])}
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
        if "kept" not in arrays:
            return cls(scaling, fill, gaps.astype(int), float(limit[0]))
        kept, width = row_of(arrays, "kept"), row_of(arrays, "width")
        is_whole = len(width) == 1 and 0 < width[0] < 2**31 and width[0] == int(width[0]) and len(kept) == len(fill) > 0
        if not is_whole or not np.isin(kept, np.arange(width[0])).all() or not (np.diff(kept) > 0).all():
            raise ValueError("its columns are none of those that X has.")
        return cls(scaling, fill, gaps.astype(int), float(limit[0]), kept.astype(int), int(width[0]))


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
    x = x if weight is None else x[np.flatnonzero(weight > 0)]
    x = x[:, occurring(x, np.ones(x.shape[0], bool))] if is_sparse(x) else x
    low, high, more = np.full(x.shape[1], np.inf), np.full(x.shape[1], -np.inf), np.zeros(x.shape[1], bool)
    for _, block in blocks(x):
        low, high = np.fmin(low, np.fmin.reduce(block)), np.fmax(high, np.fmax.reduce(block))
    for _, block in blocks(x):
        more |= ((block != low) & (block != high) & ~np.isnan(block)).any(0)
    return int(more.sum())


def _with_a_gap(x: Any, counts: np.ndarray) -> np.ndarray:
    """The columns with a gap in a row that counts."""
    if is_sparse(x):
        return np.unique(x.indices[np.repeat(counts, np.diff(x.indptr)) & np.isnan(x.data)]).astype(int)
    found = np.zeros(x.shape[1], bool)
    for rows, block in blocks(x):
        found |= np.isnan(block[counts[rows]]).any(0)
    return np.flatnonzero(found)


def _learned(x: Any, w: np.ndarray, gaps: np.ndarray) -> Scaling:
    """Mean and variance of all inputs, of values within the fence."""
    if is_sparse(x) and len(there := np.union1d(occurring(x, w > 0), gaps)) < x.shape[1]:
        part, mean, variance = _learned(x[:, there], w, np.searchsorted(there, gaps)), *np.zeros((2, x.shape[1] + len(gaps)))
        at = np.concatenate([there, x.shape[1] + np.arange(len(gaps))])
        mean[at], variance[at] = part.mean, part.variance
        return Scaling(part.total, mean, variance)
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
    low, high, x = np.full(x.shape[1], -np.inf), np.full(x.shape[1], np.inf), x[rows]
    columns = np.arange(x.shape[1])
    if is_sparse(x):  # where nearly all are 0, so are all quantiles, and there is no fence
        columns = np.flatnonzero(weight_of_entries(x, w[rows]) >= RARE * w[rows].sum())
    step = max(1, SAMPLE * 100 // max(1, len(rows)))  # columns at a time
    for begin in range(0, len(columns), step):
        part = columns[begin : begin + step]
        block = x[:, part]
        block = np.asarray(block.toarray() if hasattr(block, "toarray") else block, float)
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
