"""What features become before a network reads them, learned from the training rows: gaps, scale, limit.

    x⁺ = [x, its gaps filled; 1 where there was a gap]      an indicator for each feature that had gaps in training
    z  = (x⁺ − mean) / scale
    inputs = c + LIMIT · tanh((z − c) / LIMIT),  c = z cut off at ±LIMIT

    Preprocessor.of(x) → p;  p(x) → float32 [n, n_inputs];  p.trace(ops, x) → the same formula in any set of operations

The formula is `trace`, written once: NumPy, ONNX graphs and PyTorch modules run it (compact/ops). A gap is NaN; the mean fills
it. Mean and deviation are those of usual values (statistics.py), inputs are exact up to four standard deviations and
never beyond eight. Features of any size from 1e-150 to 1e150 become the same inputs as scaled by hand; what single precision
cannot hold is an error that names the column. Sparse matrices are made dense a block of rows at a time; with `selected` only
those features are inputs: nothing could be learned of the others, which were 0 in every training row.
Imports NumPy, Scaling, sparse and the operations; estimators, files, exports and reports hold one in their Inputs.
"""

from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np

from meristem.inputs.statistics import columns_with_gaps, usual_statistics
from meristem.layers.ops.base import InputOps
from meristem.layers.ops.numpy import NUMPY
from meristem.sparse import Scattered, is_sparse, rows_at_once
from meristem.targets.scaling import Scaling, blocks, row_of

LIMIT = 4.0  # standard deviations
FAR = 1.75  # times the limit; twice is never reached
DIVIDE = "divide the column by a power of ten, or leave standardize=True."
V = TypeVar("V")


class TooLargeError(ValueError):
    """Numbers of a feature cannot be squared; `feature` is its place."""

    def __init__(self, feature: int, names: Any = None):
        self.feature = feature
        name = feature if names is None else repr(names[feature])
        super().__init__(f"X holds numbers in column {name} whose squares no float holds; {DIVIDE}")


@dataclass(frozen=True, eq=False)
class Preprocessor:
    """See the module's header.

    >>> x = np.array([[1.0, 5.0], [3.0, np.nan]])
    >>> Preprocessor.of(x)(x).tolist()
    [[-1.0, 0.0, -1.0], [1.0, 0.0, 1.0]]
    """

    scaling: Scaling  # of all inputs
    fill: np.ndarray  # [features], or [selected]
    gaps: np.ndarray  # places in `fill` of the features that had gaps, ascending
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
        cls,
        x: Any,
        weight: np.ndarray | None = None,
        *,
        standardize: bool = True,
        selected: np.ndarray | None = None,
        names: Any = None,
    ) -> Self:
        """Learn from dense or sparse rows; those of weight 0 do not count. Without `standardize` gaps alone are filled.

        Raises ValueError where a feature's numbers are too large to be squared; `names` are what it is called by then.
        """
        if selected is not None:
            return replace(cls.of(x[:, selected], weight, standardize=standardize), selected=selected, width=x.shape[1])
        w = np.ones(x.shape[0]) if weight is None else np.asarray(weight, float)
        gaps = columns_with_gaps(x, w > 0)
        learned = usual_statistics(x, w, gaps)
        fill = learned.mean[: x.shape[1]]
        if len(learned.too_large):
            raise TooLargeError(int(learned.too_large[0]), names)
        return cls(learned, fill, gaps) if standardize else cls(Scaling.none(len(learned.mean)), fill, gaps, np.inf)

    def with_more(self, x: Any, weight: np.ndarray | None = None) -> Self:
        """As if learned from all rows so far and these, but for how far out is an outlier."""
        if not self.scaling.total:
            return self
        w = np.ones(x.shape[0]) if weight is None else np.asarray(weight, float)
        scaling = self.scaling.merged(usual_statistics(self._select(x), w, self.gaps))
        return replace(self, scaling=scaling, fill=scaling.mean[: len(self.fill)])

    def trace(self, ops: InputOps[V], x: V) -> V:
        """The module's formula in a set of operations: features [N, n_features] → inputs [N, n_inputs], float32."""
        x = x if self.selected is None else ops.pick(self.selected.tolist(), x)
        filled = ops.fill(self.fill, x)
        if len(self.gaps):
            filled = ops.concat([filled, ops.is_missing(ops.pick(self.gaps.tolist(), x))])
        z = ops.standardize(self.scaling.mean, self.scaling.scale, filled)
        return ops.single(ops.limit(self.limit, z) if np.isfinite(self.limit) else z)

    def __call__(self, x: Any) -> np.ndarray:
        """Inputs [n, n_inputs] of dense or sparse rows, float32."""
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
        """The inputs of sparse rows, none of which is dense before it is asked for."""
        x = self._select(x)
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
            base, value = self._scaled(np.zeros(self.n_inputs)), self._scaled(value, column)
        order = np.argsort(row, kind="stable")
        row, column, value = row[order], column[order], value[order]
        if not np.isfinite(self.limit) and len(beyond := np.flatnonzero(~np.isfinite(value))):
            raise self._too_far(row[beyond[0]], column[beyond[0]])
        return Scattered(base, np.searchsorted(row, np.arange(x.shape[0] + 1)), column, value)

    def _scaled(self, x: np.ndarray, inputs: Any = slice(None)) -> np.ndarray:
        """The end of `trace` for single values of some inputs: of a sparse table there are no rows to trace."""
        z = NUMPY.standardize(self.scaling.mean[inputs], self.scaling.scale[inputs], x)
        return NUMPY.single(NUMPY.limit(self.limit, z) if np.isfinite(self.limit) else z)

    def _select(self, x: Any) -> Any:
        return x if self.selected is None else x[:, self.selected]

    def _too_far(self, row: Any, place: Any) -> ValueError:
        column = self.feature_of_input[place]
        return ValueError(f"X holds a number in row {row}, column {column} that single precision cannot hold; {DIVIDE}")

    def typical(self, inputs: np.ndarray | Scattered) -> np.ndarray:
        """Which rows [n] of inputs hold no outlier: others say little of new rows, and are not held out.

        >>> p = Preprocessor.of(np.append(np.random.default_rng(0).standard_normal(99), 1e9)[:, None])
        >>> p.typical(p(np.array([[0.0], [5.0], [1e9]]))).tolist()
        [True, True, False]
        """
        n, step = len(inputs), rows_at_once(self.n_inputs)
        parts = (inputs[np.arange(at, min(n, at + step))] for at in range(0, n, step))
        return np.concatenate([(np.abs(part) < FAR * self.limit).all(1) for part in parts])

    def pack(self) -> dict[str, np.ndarray]:
        """As arrays, for a file."""
        own = {"fill": self.fill, "gaps": self.gaps.astype(float), "limit": np.array([self.limit])}
        if self.selected is not None:
            own |= {"kept": self.selected.astype(float), "width": np.array([float(self.width)])}
        return self.scaling.pack() | own

    @classmethod
    def unpack(cls, arrays: dict[str, np.ndarray]) -> Self:
        """What `pack` wrote, or a Scaling's, in the files of the past; ValueError where it does not hold together.

        >>> Preprocessor.unpack(Scaling.of(np.eye(2)).pack()).limit
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
        selected, width = row_of(arrays, "kept"), row_of(arrays, "width")
        is_whole = len(width) == 1 and 0 < width[0] < 2**31 and width[0] == int(width[0]) and len(selected) == len(fill) > 0
        if not is_whole or not np.isin(selected, np.arange(width[0])).all() or not (np.diff(selected) > 0).all():
            raise ValueError("its columns are none of those that X has.")
        return cls(scaling, fill, gaps.astype(int), float(limit[0]), selected.astype(int), int(width[0]))
