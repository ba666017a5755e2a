"""Statistics of the columns of a table, from dense or sparse rows: what a preprocessor learns.

    usual_statistics(x, weight, gaps) → Scaling      mean and variance of each column and of each indicator of gaps
    columns_with_gaps(x, counts) → columns           that have a NaN in a row that counts
    n_numbers(x, weight) → int                       columns of more than two values

An outlier moves neither: mean and variance are those of values within thirty interquartile ranges of the median. Rows pass
in blocks, so that no copy of the table is made. Imports NumPy, Scaling, sparse and quantiles; the preprocessor imports it.
"""

import itertools
from typing import Any

import numpy as np

from meristem.sparse import is_sparse, occurring, weight_of_entries
from meristem.targets.scaling import Scaling, blocks, unit_of
from meristem.weighted_quantiles import weighted_quantiles

FENCE = 30.0  # interquartile ranges
SPREADS = ((0.25, 0.75), (0.05, 0.95))  # the second where the first are equal: most of a column is one value
RARE = 0.99 * SPREADS[1][0]  # the share of rows
SAMPLE = 20_000  # rows that quantiles are taken from


def n_numbers(x: Any, weight: np.ndarray | None = None) -> int:
    """Return how many columns are more than an indicator: of more than two values.

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


def columns_with_gaps(x: Any, counts: np.ndarray) -> np.ndarray:
    """Return the columns, ascending, with a NaN in a row that counts."""
    if is_sparse(x):
        return np.unique(x.indices[np.repeat(counts, np.diff(x.indptr)) & np.isnan(x.data)]).astype(int)
    has_gap = np.zeros(x.shape[1], bool)
    for rows, block in blocks(x):
        has_gap |= np.isnan(block[counts[rows]]).any(0)
    return np.flatnonzero(has_gap)


def usual_statistics(x: Any, weight: np.ndarray, gaps: np.ndarray) -> Scaling:
    """Return mean and variance of the usual values of each column, then of the indicators of the columns `gaps`."""
    if is_sparse(x) and len(there := np.union1d(occurring(x, weight > 0), gaps)) < x.shape[1]:
        part = usual_statistics(x[:, there], weight, np.searchsorted(there, gaps))
        mean, variance = np.zeros((2, x.shape[1] + len(gaps)))
        at = np.concatenate([there, x.shape[1] + np.arange(len(gaps))])
        mean[at], variance[at] = part.mean, part.variance
        return Scaling(part.total, mean, variance)
    low, high = _fence(x, weight)
    n, total = x.shape[1], weight.sum()
    counted, mean, missing, size = np.zeros(n), np.zeros(n), np.zeros(len(gaps)), np.zeros(n)
    with np.errstate(over="ignore", invalid="ignore"):
        for rows, block in blocks(x):
            is_usual = (low <= block) & (block <= high) & (weight[rows] > 0)[:, None]  # no gap either
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
        columns = np.flatnonzero(weight_of_entries(x, weight[rows]) >= RARE * weight[rows].sum())
    step = max(1, SAMPLE * 100 // max(1, len(rows)))  # columns at a time
    for begin in range(0, len(columns), step):
        part = columns[begin : begin + step]
        block = x[:, part]
        block = np.asarray(block.toarray() if hasattr(block, "toarray") else block, float)
        counted = np.where(np.isnan(block), 0, weight[rows][:, None])
        median, *others = weighted_quantiles(block, counted, [0.5, *itertools.chain(*SPREADS)])
        spread = np.zeros(block.shape[1])
        with np.errstate(over="ignore"):  # then there is no fence
            for below, above in zip(others[::2], others[1::2], strict=True):
                spread = np.where(spread > 0, spread, above - below)
            is_fenced = spread > 0
            low[part] = np.where(is_fenced, median - FENCE * spread, -np.inf)
            high[part] = np.where(is_fenced, median + FENCE * spread, np.inf)
    return low, high
