"""The rows of a fit or a search, encoded and scaled once; how they are split into folds, and padded to few shared shapes.

    rows      256, 512, …, 2048, then four sizes between one power of two and the next
    features  32, 64, 128, 256, 320, 384, 448, 512, 640, …
    outputs   1, 8, 16, 32, 64, 80, …

A compiled program belongs to one shape. Small shapes are cheap, so there are few of them; at most a fifth of a large one is
padding. Padding changes no result: rows get weight 0, features are 0 in every sample, and unused outputs are constant (the
objective's `unused_output`). Rows with outliers are trained on, not held out: no loss on them is meaningful.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
    check_cv,
    train_test_split,
)

from meristem.check import short
from meristem.estimators.input_checks import naming_argument
from meristem.inputs import Inputs
from meristem.nn import Network
from meristem.paths.folds import Fold, check_weights, separate_groups
from meristem.sparse import Scattered, is_large
from meristem.targets import Targets
from meristem.train.objectives import Objective
from meristem.train.training_data import Data, Prepared, prepare

ROWS, FEATURES, OUTPUTS = 256, 32, 8  # the smallest padded sizes, but for a single output, whose loss would cost eight times
LEAST_HELD_OUT = 5  # rows


def padded_size(n: int, least: int) -> int:
    """Return the next shared size."""
    power = max(least, 1 << (n - 1).bit_length())
    step = power if power <= 8 * least else power // 8
    return -(-n // step) * step


@dataclass(frozen=True, eq=False)
class EncodedTable:
    """Rows, the encoding of their targets, and the preprocessing of their features."""

    x: Any  # [n, features], dense or sparse
    y: np.ndarray  # encoded
    weight: np.ndarray  # [n]
    targets: Targets
    inputs: Inputs
    seed: int
    raw_y: np.ndarray  # not encoded, for folds and scores
    continues: bool = False  # a training that earlier rows began
    is_stream: bool = False  # which is one epoch, of these rows

    @property
    def has_equal_weights(self) -> bool:
        """Whether all rows of a weight above 0 have the same one."""
        counted = self.weight[self.weight > 0]
        return bool(np.ptp(counted) <= 1e-6 * counted.max())

    @cached_property
    def z(self) -> Any:
        """The network inputs [n, n_inputs] of all rows, float32; those of a large sparse table are made on demand."""
        x, is_scattered = self.x, is_large(self.x, padded_size(self.inputs.n_inputs, FEATURES))
        return self.inputs.preprocessor.scattered(x) if is_scattered else self.inputs(x)

    def split(self, fraction: float) -> Fold | None:
        """Return training and held-out rows, stratified by class where possible; None where there are too few to judge by."""
        counted = np.flatnonzero(self.weight > 0)
        n, n_test = len(counted), int(np.ceil(len(counted) * fraction))
        if n * fraction < LEAST_HELD_OUT:
            return None
        if n_test >= n:
            raise ValueError(f"validation_fraction={fraction} of {n} rows leaves none to learn from; lower it.")
        y = self.y[counted]
        counts = np.unique(y, return_counts=True)[1] if y.ndim == 1 else np.zeros(1)
        stratify = y if counts.min() >= 2 and len(counts) <= min(n_test, n - n_test) else None
        train, test = train_test_split(counted, test_size=fraction, random_state=self.seed, stratify=stratify)
        is_typical = self.inputs.preprocessor.typical(self.z[test])
        return (np.concatenate([train, test[~is_typical]]), test[is_typical]) if is_typical.sum() >= LEAST_HELD_OUT else None

    def folds(self, cv: Any, *, classes: bool, groups: Any = None, times: np.ndarray | None = None) -> list[Fold]:
        """Return the training and held-out rows of each fold (`splits_of`); a number of folds is stratified if possible.

        With groups, rows of one are on one side. With times, in which the rows are ordered, a fold learns from earlier rows
        than it holds out; a group that is then on both sides is drawn to one, and its other rows are left out. In either case
        rows with outliers are left out where they would be held out.
        """
        n, is_number = len(self.y), isinstance(cv, int | np.integer)
        groups = None if groups is None else checked_groups(groups, n)
        if is_number and times is not None:
            counts = np.unique(self.raw_y, return_counts=True)[1] if classes and self.raw_y.ndim == 1 else np.zeros(1)
            splits = forward_folds(times, _checked_count(cv, n))
            if groups is not None:
                codes = np.unique(self.raw_y, return_inverse=True)[1] if counts.min() > 0 else np.zeros(n, int)
                splits = [separate_groups(fold, groups, codes, self.seed % 2**31) for fold in splits]
                splits = [fold for fold in splits if all(len(rows) for rows in fold)]
            if not splits:
                raise ValueError("No fold can go forward in time without a group on both sides; leave out one of the columns.")
        else:
            splits = splits_of(cv, self.raw_y, classes=classes, groups=groups, seed=self.seed)
        folds = splits
        if is_number:
            is_typical, folds = self.inputs.preprocessor.typical(self.z), []
            for train, test in splits:
                stays = is_typical[test] if is_typical[test].any() else np.ones(len(test), bool)
                further = test[~stays] if times is None and groups is None else test[:0]
                folds.append((np.sort(np.concatenate([train, further])), test[stays]))
        check_weights(folds, self.weight)
        return folds


def splits_of(cv: Any, y: np.ndarray, *, classes: bool, groups: np.ndarray | None, seed: int) -> list[Fold]:
    """Return the rows of each fold: of a number of folds, of a share that is held out once, of a splitter, or as given.

    Rows of a group, a number for each row, are on one side of a number of folds or a share.

    >>> [(len(train), len(test)) for train, test in splits_of(0.25, np.zeros(8), classes=True, groups=None, seed=0)]
    [(6, 2)]
    """
    n, seed, nothing = len(y), seed % 2**31, np.zeros((len(y), 1))
    counts = np.unique(y, return_counts=True)[1] if classes and y.ndim == 1 else np.zeros(1)
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        n_folds = _checked_count(cv, n)
        if groups is not None:
            return _group_folds(groups, y, n_folds, stratify=bool(counts.min() >= cv), seed=seed)
        kind = StratifiedKFold if counts.min() >= cv else KFold
        return list(kind(n_folds, shuffle=True, random_state=seed).split(nothing, y))
    if isinstance(cv, float):
        n_held_out = int(np.ceil(cv * n))
        can_stratify = counts.min() >= 2 and len(counts) <= min(n_held_out, n - n_held_out)
        kinds = {True: GroupShuffleSplit, False: StratifiedShuffleSplit if can_stratify else ShuffleSplit}
        cv = kinds[groups is not None](n_splits=1, test_size=cv, random_state=seed)
    try:
        splits = list(check_cv(cv, y, classifier=classes).split(nothing, y, groups))
        folds = [(np.arange(n)[train], np.arange(n)[test]) for train, test in splits]
    except (ValueError, TypeError, IndexError, AttributeError) as error:
        raise naming_argument(error, f"cv={short(cv)}") from error
    if not folds or not all(rows.ndim == 1 and rows.size for fold in folds for rows in fold):
        raise ValueError(f"cv={short(cv)} must give non-empty (training rows, held-out rows) for each fold.")
    return folds


def _checked_count(cv: Any, n: int) -> int:
    if not 2 <= cv <= n:
        raise ValueError(f"cv={cv} must be at least 2, and at most as many as there are samples: n_samples={n}.")
    return int(cv)


def forward_folds(times: np.ndarray, n_folds: int) -> list[Fold]:
    """Return folds of rows in order of their times: each holds out rows that are later than all it learns from.

    >>> [(len(train), test.tolist()) for train, test in forward_folds(np.array([1, 2, 3, 4, 4, 4, 5, 6, 7]), 2)]
    [(3, [3, 4, 5]), (6, [6, 7, 8])]
    """
    n = len(times)
    if n_folds >= n:
        raise ValueError(f"cv={n_folds} folds in order of time need more than {n} rows; give fewer folds.")
    first = [test[0] for _, test in TimeSeriesSplit(n_folds).split(times)]
    begins = np.unique(np.searchsorted(times, times[first]))  # rows of the same time stay together
    begins = begins[begins > 0].tolist()
    if not begins:
        raise ValueError("The rows to learn from have one time: no fold can go forward; choose another time column.")
    return [(np.arange(begin), np.arange(begin, end)) for begin, end in pairwise([*begins, n])]


def _group_folds(groups: np.ndarray, y: np.ndarray, n_folds: int, *, stratify: bool, seed: int) -> list[Fold]:
    n_groups = len(np.unique(groups))
    if n_groups < n_folds:
        raise ValueError(f"cv={n_folds} folds need as many groups, and there are {n_groups}; give fewer folds.")
    kinds = [StratifiedGroupKFold, GroupKFold] if stratify else [GroupKFold]
    every = (list(kind(n_folds, shuffle=True, random_state=seed).split(groups, y, groups)) for kind in kinds)
    return next(folds for folds in every if all(len(part) for fold in folds for part in fold))  # balancing may empty one


def checked_groups(groups: Any, n: int) -> np.ndarray:
    """Return the number of each row's group; raise ValueError where there is none for some row."""
    labels = np.asarray(groups)
    if labels.shape != (n,):
        raise ValueError(f"groups has shape {labels.shape}; it must have a label for each row, here ({n},).")
    return np.unique(labels.astype(str) if labels.dtype.kind == "O" else labels, return_inverse=True)[1]


def prepared_data(table: EncodedTable, network: Network, objective: Objective, dev: EncodedTable | None = None) -> Prepared:
    """Return training and validation rows in the shapes of a padded network, on the device."""
    x, y, weight = _padded(table, network, objective)
    dev_x, dev_y, dev_weight = (None, None, None) if dev is None else _padded(dev, network, objective)
    return prepare(Data(x, y, dev_x, dev_y, weight, dev_weight), network, objective)


def _padded(table: EncodedTable, network: Network, objective: Objective) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return padded samples, targets and weights; the rows of a large sparse table are not padded."""
    y, z, (n_in,) = table.y, table.z, network.input_shape
    is_scattered = isinstance(z, Scattered)
    n = len(y) if is_scattered else padded_size(len(y), ROWS)
    y = y if objective.targets_are_classes else y.reshape(len(y), -1).astype(np.float32)
    x = z.filled(n_in) if is_scattered else _zero_padded(z, n, n_in)
    return x, _zero_padded(y, n, *[network.n_out] * (y.ndim - 1)), _zero_padded(table.weight, n)


def _zero_padded(array: np.ndarray, *shape: int) -> np.ndarray:
    return np.pad(array, [(0, n - own) for n, own in zip(shape, array.shape, strict=True)])
