"""Sparse tables, of which only a few rows at a time are dense.

    rows = Scattered(base, indptr, columns, values);  rows[[3, 5]] → float32 [2, in]

A scattered table stores what a row of zeros becomes (`base`) and where its rows differ from it: as much memory as the sparse
table, however its columns are shifted and scaled.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

DENSE = 2**28  # bytes: smaller tables are made dense, which trains faster
AT_ONCE = 2**25  # bytes of rows that are dense at a time


def is_sparse(x: Any) -> bool:
    """Return whether x is a compressed-sparse-row matrix or array of SciPy."""
    return hasattr(x, "indptr")


def is_large(x: Any, columns: int | None = None) -> bool:
    """Return whether x is sparse, and would take more than `DENSE` bytes as dense float32 with so many columns."""
    return is_sparse(x) and 4 * x.shape[0] * (columns or x.shape[1]) > DENSE


def occurring(x: Any, counts: np.ndarray, is_entry: Any = None) -> np.ndarray:
    """Return the columns, ascending, with an entry in a row that counts: by default a number other than 0, or NaN."""
    is_entry = x.data != 0 if is_entry is None else is_entry
    return np.flatnonzero(np.bincount(x.indices[np.repeat(counts, np.diff(x.indptr)) & is_entry], minlength=x.shape[1]))


@dataclass(frozen=True, eq=False)
class Scattered:
    """Finite samples [n, in], computed when they are indexed: rows that differ from `base` in a few places."""

    base: np.ndarray  # [in], float32
    indptr: np.ndarray  # [n + 1]: where the entries of each row begin
    columns: np.ndarray  # [entries]
    values: np.ndarray  # [entries], float32

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.indptr) - 1, len(self.base)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def arrays(self) -> list[np.ndarray]:
        """What determines the samples."""
        return [self.base, self.indptr, self.columns, self.values]

    @property
    def rows_at_once(self) -> int:
        """How many rows should be computed at a time."""
        return rows_at_once(len(self.base))

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        begin, count = self.indptr[rows], np.diff(self.indptr)[rows]
        entries = np.repeat(begin - np.concatenate([[0], np.cumsum(count)[:-1]]), count) + np.arange(count.sum())
        dense = np.empty((len(rows), len(self.base)), np.float32)
        dense[:] = self.base
        dense[np.repeat(np.arange(len(rows)), count), self.columns[entries]] = self.values[entries]
        return dense

    def filled(self, n_in: int) -> Self:
        """Return the rows with `n_in` inputs; the added ones are 0."""
        return replace(self, base=np.concatenate([self.base, np.zeros(n_in - len(self.base), np.float32)]))


def rows_at_once(columns: int) -> int:
    """Return how many rows are made dense at a time."""
    return max(1, min(4096, AT_ONCE // (4 * max(1, columns))))
