"""Turn features into the inputs of a network, by statistics of the training rows: fill gaps, standardize, limit.

    x⁺ = [x, its gaps filled; 1 where there was a gap]      an indicator for each feature that had gaps in training
    z  = (x⁺ − mean) / scale
    inputs = c + LIMIT · tanh((z − c) / LIMIT),  c = z clipped to ±LIMIT

The formula is `trace`, written once: NumPy, ONNX graphs and PyTorch modules run it (layers/ops). A gap is NaN, filled by the
mean. Mean and variance are those of values within thirty interquartile ranges of the median, so that an outlier moves neither;
inputs are exact up to four standard deviations and never beyond eight. Features may have any size from 1e-150 to 1e150; what
single precision cannot hold is an error that names the column. With `selected` only those features are inputs (the others were
0 in every training row).
"""

from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np

from meristem.layers.ops.numpy import NUMPY
from meristem.layers.ops.operations import InputOps
from meristem.sparse import Scattered, is_sparse, occurring, rows_at_once
from meristem.targets.scaling import Scaling, blocks, row_of, unit_of
from meristem.weighted_quantiles import weighted_quantiles

LIMIT = 4.0  # standard deviations
FAR = 1.75  # times the limit; twice is never reached
FENCE = 30.0  # interquartile ranges
QUANTILES = [0.5, 0.25, 0.75, 0.05, 0.95]  # the last two where quartiles are equal: most of a column is one value
RARE = 0.99 * QUANTILES[3]  # the share of rows
SAMPLE = 20_000  # rows that quantiles are computed from
DIVIDE = "divide the column by a power of ten, or leave standardize=True."
V = TypeVar("V")


class TooLargeError(ValueError):
    """The numbers of a feature are too large to be squared; `feature` is its index."""

    def __init__(self, feature: int, names: Any = None):
        self.feature = feature
        name = feature if names is None else repr(names[feature])
        super().__init__(f"X holds numbers in column {name} whose squares no float holds; {DIVIDE}")


@dataclass(frozen=True, eq=False)
class Preprocessor:
    """Statistics of the training rows, and the module's formula.

    >>> x = np.array([[1.0, 5.0], [3.0, np.nan]])
    >>> Preprocessor.of(x)(x).tolist()
    [[-1.0, 0.0, -1.0], [1.0, 0.0, 1.0]]
    """

    scaling: Scaling  # of all inputs
    fill: np.ndarray  # [features], or [selected]
    gaps: np.ndarray  # indices into `fill` of the features that had gaps, ascending
    limit: float = LIMIT  # ∞: none
    selected: np.ndarray | None = None  # the features that are inputs, ascending; None: all
    width: int = 0  # how many features there are, where only some are inputs

    @property
    def n_features(self) -> int:
        return len(self.fill) if self.selected is None else self.width

    @property
    def n_inputs(self) -> int:
        return len(self.fill) + len(self.gaps)

    @property
    def feature_of_input(self) -> np.ndarray:
        """The feature [n_inputs] that each input comes from."""
        places = np.concatenate([np.arange(len(self.fill)), self.gaps])
        return places if self.selected is None else self.selected[places]

    @classmethod
    def of(
        cls, x: Any, weight: np.ndarray | None = None, *, standardize: bool = True, selected: Any = None, names: Any = None
    ) -> Self:
        """Learn from dense or sparse rows; those of weight 0 do not count. Without `standardize` gaps are filled, no more.

        selected       the indices of the features that are inputs; None: all
        names          of the features, for TooLargeError, which is raised where numbers are too large to be squared
        """
        if selected is not None:
            names = selected.tolist() if names is None else [names[place] for place in selected]
            part = cls.of(x[:, selected], weight, standardize=standardize, names=names)
            return replace(part, selected=selected, width=x.shape[1])
        w = np.ones(x.shape[0]) if weight is None else np.asarray(weight, float)
        gaps = columns_with_gaps(x, w > 0)
        learned = usual_statistics(x, w, gaps)
        if len(learned.too_large):
            raise TooLargeError(int(learned.too_large[0]), names)
        own = cls(learned, learned.mean[: x.shape[1]], gaps)
        return own if standardize else replace(own, scaling=Scaling.none(own.n_inputs), limit=np.inf)

    def with_more(self, x: Any, weight: np.ndarray | None = None) -> Self:
        """Return the preprocessor of all rows so far and these; outliers are judged by these alone."""
        if not self.scaling.total:
            return self
        w = np.ones(x.shape[0]) if weight is None else np.asarray(weight, float)
        x = x if self.selected is None else x[:, self.selected]
        scaling = self.scaling.merged(usual_statistics(x, w, self.gaps))
        return replace(self, scaling=scaling, fill=scaling.mean[: len(self.fill)])

    def trace(self, ops: InputOps[V], x: V) -> V:
        """Apply the module's formula in a set of operations: features [N, n_features] → inputs [N, n_inputs], float32."""
        x = x if self.selected is None else ops.pick(self.selected.tolist(), x)
        filled = ops.fill(self.fill, x)
        if len(self.gaps):
            filled = ops.concat([filled, ops.is_missing(ops.pick(self.gaps.tolist(), x))])
        return self._scaled(ops, filled)

    def _scaled(self, ops: InputOps[V], x: V, inputs: Any = slice(None)) -> V:
        """Return values of some inputs standardized and limited, float32."""
        z = ops.standardize(self.scaling.mean[inputs], self.scaling.scale[inputs], x)
        return ops.single(ops.limit(self.limit, z) if np.isfinite(self.limit) else z)

    def __call__(self, x: Any) -> np.ndarray:
        """Return the inputs [n, n_inputs] of dense or sparse rows, float32."""
        if is_sparse(x):
            return self.scattered(x)[np.arange(x.shape[0])]
        out = np.empty((x.shape[0], self.n_inputs), np.float32)
        with np.errstate(over="ignore"):  # an outlier may be infinitely far out
            for rows, block in blocks(x):
                out[rows] = self.trace(NUMPY, block)
        if not np.isfinite(self.limit) and len(beyond := np.argwhere(~np.isfinite(out))):
            raise self._too_far(*beyond[0])
        return out

    def scattered(self, x: Any) -> Scattered:
        """Return the inputs of sparse rows; rows are made dense when they are indexed."""
        x = x if self.selected is None else x[:, self.selected]
        if not x.has_canonical_format:
            x = x.copy()
            x.sum_duplicates()
        row, column, value = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr)), x.indices, np.asarray(x.data, float)
        is_gap = np.flatnonzero(np.isnan(value))
        marked = is_gap[np.isin(column[is_gap], self.gaps)]
        place = len(self.fill) + np.searchsorted(self.gaps, column[marked])
        value = np.concatenate([np.where(np.isnan(value), self.fill[column], value), np.ones(len(marked))])
        row, column = np.concatenate([row, row[marked]]), np.concatenate([column, place])
        with np.errstate(over="ignore"):
            base, value = self._scaled(NUMPY, np.zeros(self.n_inputs)), self._scaled(NUMPY, value, column)
        order = np.argsort(row, kind="stable")
        row, column, value = row[order], column[order], value[order]
        if not np.isfinite(self.limit) and len(beyond := np.flatnonzero(~np.isfinite(value))):
            raise self._too_far(row[beyond[0]], column[beyond[0]])
        return Scattered(base, np.searchsorted(row, np.arange(x.shape[0] + 1)), column, value)

    def _too_far(self, row: Any, place: Any) -> ValueError:
        column = self.feature_of_input[place]
        return ValueError(f"X holds a number in row {row}, column {column} that single precision cannot hold; {DIVIDE}")

    def typical(self, inputs: np.ndarray | Scattered) -> np.ndarray:
        """Return which rows [n] of inputs hold no outlier; others are not held out for validation.

        A column of 0 and 1 has none: the 1 of a rare category is far from the mean, and is what such rows are.

        >>> p = Preprocessor.of(np.append(np.random.default_rng(0).standard_normal(99), 1e9)[:, None])
        >>> p.typical(p(np.array([[0.0], [5.0], [1e9]]))).tolist()
        [True, True, False]
        >>> rare = np.arange(100.0)[:, None] == 7
        >>> (p := Preprocessor.of(1.0 * rare)).typical(p(1.0 * rare)).all()
        np.True_
        """
        mean, variance = self.scaling.mean, self.scaling.variance
        far = np.where(np.isclose(variance, mean * (1 - mean), rtol=1e-6, atol=0), np.inf, FAR * self.limit)  # as of 0 and 1
        n, step = len(inputs), rows_at_once(self.n_inputs)
        parts = (inputs[np.arange(at, min(n, at + step))] for at in range(0, n, step))
        return np.concatenate([(np.abs(part) < far).all(1) for part in parts])

    def pack(self) -> dict[str, np.ndarray]:
        own = {"fill": self.fill, "gaps": self.gaps.astype(float), "limit": np.array([self.limit])}
        if self.selected is not None:
            own |= {"kept": self.selected.astype(float), "width": np.array([float(self.width)])}
        return self.scaling.pack() | own

    @classmethod
    def unpack(cls, arrays: dict[str, np.ndarray]) -> Self:
        """Return what `pack` wrote, or in old files a Scaling did; ValueError where the arrays do not fit together."""
        scaling = Scaling.unpack(arrays)
        if "fill" not in arrays:
            return cls(scaling, scaling.mean, np.zeros(0, int), np.inf)
        fill, gaps, limit = (row_of(arrays, name) for name in ("fill", "gaps", "limit"))
        is_valid = len(limit) == 1 and limit[0] > 0 and len(fill) + len(gaps) == len(scaling.mean)
        if not is_valid or not _are_indices(gaps, len(fill)):
            raise ValueError("its columns are inconsistent.")
        if not np.isfinite(fill).all():
            raise ValueError("its columns have gaps that are filled with a number that is not finite.")
        own = cls(scaling, fill, gaps.astype(int), float(limit[0]))
        if "kept" not in arrays:
            return own
        selected, width = row_of(arrays, "kept"), row_of(arrays, "width")
        is_valid = len(width) == 1 and 0 < width[0] < 2**31 and width[0] == int(width[0]) and len(selected) == len(fill) > 0
        if not is_valid or not _are_indices(selected, width[0]):
            raise ValueError("its columns are none of those that X has.")
        return replace(own, selected=selected.astype(int), width=int(width[0]))


def _are_indices(values: np.ndarray, n: float) -> bool:
    """Return whether values are ascending integers from 0 to n − 1."""
    return bool(np.isin(values, np.arange(n)).all() and (np.diff(values) > 0).all())


def n_numbers(x: Any, weight: np.ndarray | None = None) -> int:
    """Return how many columns have more than two different values."""
    x = x if weight is None else x[np.flatnonzero(weight > 0)]
    x = x[:, occurring(x, np.ones(x.shape[0], bool))] if is_sparse(x) else x
    low, high, more = np.full(x.shape[1], np.inf), np.full(x.shape[1], -np.inf), np.zeros(x.shape[1], bool)
    for _, block in blocks(x):
        low, high = np.fmin(low, np.fmin.reduce(block)), np.fmax(high, np.fmax.reduce(block))
    for _, block in blocks(x):
        more |= ((block != low) & (block != high) & ~np.isnan(block)).any(0)
    return int(more.sum())


def columns_with_gaps(x: Any, counts: np.ndarray) -> np.ndarray:
    """Return the columns, ascending, with a NaN in a row that counts."""
    if is_sparse(x):
        return occurring(x, counts, np.isnan(x.data))
    has_gap = np.zeros(x.shape[1], bool)
    for rows, block in blocks(x):
        has_gap |= np.isnan(block[counts[rows]]).any(0)
    return np.flatnonzero(has_gap)


def usual_statistics(x: Any, weight: np.ndarray, gaps: np.ndarray) -> Scaling:
    """Return mean and variance of the usual values of each column, then of the indicators of the columns `gaps`."""
    if is_sparse(x) and len(used := np.union1d(occurring(x, weight > 0), gaps)) < x.shape[1]:
        part = usual_statistics(x[:, used], weight, np.searchsorted(used, gaps))
        mean, variance = np.zeros((2, x.shape[1] + len(gaps)))
        at = np.concatenate([used, x.shape[1] + np.arange(len(gaps))])
        mean[at], variance[at] = part.mean, part.variance
        return Scaling(part.total, mean, variance)
    low, high = _fence(x, weight)
    n, total = x.shape[1], weight.sum()
    counted, mean, missing, size = np.zeros(n), np.zeros(n), np.zeros(len(gaps)), np.zeros(n)
    with np.errstate(over="ignore", invalid="ignore"):
        for rows, block in blocks(x):
            is_usual = (low <= block) & (block <= high) & (weight[rows] > 0)[:, None]  # NaN is not
            usual = np.where(is_usual, block, 0)
            counted += weight[rows] @ is_usual
            missing += weight[rows] @ np.isnan(block[:, gaps])
            mean += weight[rows] @ usual
            size = np.maximum(size, np.abs(usual).max(0, initial=0))
        counted = np.where(counted > 0, counted, 1)
        mean, variance, unit = mean / counted, np.zeros(n), unit_of(size)
        for rows, block in blocks(x):
            is_usual = (low <= block) & (block <= high) & (weight[rows] > 0)[:, None]
            variance += weight[rows] @ (np.where(is_usual, block - mean, 0) / unit) ** 2
        share, variance = missing / total, variance / counted * unit**2
    return Scaling(float(total), np.append(mean, share), np.append(variance, share * (1 - share)))


def _fence(x: Any, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the lowest and the highest usual value of each column."""
    rows = np.flatnonzero(weight > 0)
    rows = rows[:: max(1, len(rows) // SAMPLE)]
    low, high, x = np.full(x.shape[1], -np.inf), np.full(x.shape[1], np.inf), x[rows]
    columns = np.arange(x.shape[1])
    if is_sparse(x):  # where nearly all are 0, so are all quantiles, and there is no fence
        weight_of_entries = np.bincount(x.indices, np.repeat(weight[rows], np.diff(x.indptr)), minlength=x.shape[1])
        columns = np.flatnonzero(weight_of_entries >= RARE * weight[rows].sum())
    step = max(1, SAMPLE * 100 // max(1, len(rows)))  # columns at a time
    for begin in range(0, len(columns), step):
        part = columns[begin : begin + step]
        block = x[:, part]
        block = np.asarray(block.toarray() if hasattr(block, "toarray") else block, float)
        counted = np.where(np.isnan(block), 0, weight[rows][:, None])
        median, lower, upper, lowest, highest = weighted_quantiles(block, counted, QUANTILES)
        with np.errstate(over="ignore"):  # then there is no fence
            spread = np.where(upper - lower > 0, upper - lower, highest - lowest)
            low[part] = np.where(spread > 0, median - FENCE * spread, -np.inf)
            high[part] = np.where(spread > 0, median + FENCE * spread, np.inf)
    return low, high
