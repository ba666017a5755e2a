"""Sparse tables, of which only a few rows at a time are ever dense: which columns occur, and rows that are made when asked for.

    occurring(x, counts) → columns          of a number other than 0 in a row that counts; all others are 0 throughout
    is_large(x)                             whether it would be more than `DENSE` bytes if all of it were dense
    rows = Scattered(base, indptr, columns, values)        rows[[3, 5]] → float32 [2, in]

A scattered table says what a row of zeros becomes (`base`), and where its rows differ from that: as much memory as the sparse
table has, however the columns are shifted and scaled. Imports what data are; columns and estimators import it.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from meristem.train.training_data import Lazy

DENSE = 2**28  # bytes: what may be dense at once, and trains faster if it is
AT_ONCE = 2**25  # bytes of rows that are made for a step of anything


def is_sparse(x: Any) -> bool:
    """Whether x is one of SciPy's matrices or arrays of compressed rows."""
    return hasattr(x, "indptr")


def is_large(x: Any) -> bool:
    """Whether its rows, as inputs of single precision, are too many to be dense all at once."""
    return is_sparse(x) and 4 * x.shape[0] * x.shape[1] > DENSE


def occurring(x: Any, counts: np.ndarray) -> np.ndarray:
    """The columns, ascending, with a number other than 0 in a row that counts; a gap is one, too.

    >>> from scipy.sparse import csr_array
    >>> occurring(csr_array(np.array([[0, 1.0, 0], [2.0, 0, 0]])), np.array([True, False])).tolist()
    [1]
    """
    found = np.zeros(x.shape[1], bool)
    found[x.indices[np.repeat(counts, np.diff(x.indptr)) & (x.data != 0)]] = True
    return np.flatnonzero(found)


def weight_of_entries(x: Any, weight: np.ndarray) -> np.ndarray:
    """The weight of the rows that have an entry, column by column.

    >>> from scipy.sparse import csr_array
    >>> weight_of_entries(csr_array(np.array([[0, 1.0, 0], [2.0, 3.0, 0]])), np.array([1.0, 5.0])).tolist()
    [5.0, 6.0, 0.0]
    """
    return np.bincount(x.indices, np.repeat(weight, np.diff(x.indptr)), minlength=x.shape[1])


@dataclass(frozen=True, eq=False)
class Scattered(Lazy):
    """Rows that differ from `base` in a few places.

    >>> rows = Scattered(np.zeros(3, np.float32), np.array([0, 1, 2]), np.array([2, 0]), np.array([5.0, 7.0], np.float32))
    >>> rows[np.array([1, 0])].tolist(), rows.filled(4).shape
    ([[7.0, 0.0, 0.0], [0.0, 0.0, 5.0]], (2, 4))
    """

    base: np.ndarray  # [in], float32
    indptr: np.ndarray  # [n + 1]: where the entries of each row begin
    columns: np.ndarray  # [entries]
    values: np.ndarray  # [entries], float32

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.indptr) - 1, len(self.base)

    @property
    def arrays(self) -> list[np.ndarray]:
        return [self.base, self.indptr, self.columns, self.values]

    @property
    def rows_at_once(self) -> int:
        return rows_at_once(len(self.base))

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        """These rows, dense."""
        begin, count = self.indptr[rows], np.diff(self.indptr)[rows]
        entries = np.repeat(begin - np.concatenate([[0], np.cumsum(count)[:-1]]), count) + np.arange(count.sum())
        dense = np.empty((len(rows), len(self.base)), np.float32)
        dense[:] = self.base
        dense[np.repeat(np.arange(len(rows)), count), self.columns[entries]] = self.values[entries]
        return dense

    def filled(self, n_in: int) -> Self:
        """With further inputs that are 0 in all rows."""
        return replace(self, base=np.concatenate([self.base, np.zeros(n_in - len(self.base), np.float32)]))


def rows_at_once(columns: int) -> int:
    """So many rows are dense at a time.

    >>> rows_at_once(10), rows_at_once(200_000)
    (4096, 41)
    """
    return max(1, min(4096, AT_ONCE // (4 * max(1, columns))))
