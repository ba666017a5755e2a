"""Folds as weights of rows: what a member learns from weighs 1, what it is judged by weighs 1 in the other list.

shuffled_folds(rows, n, seed) → [(training rows, held-out rows), …]
check_weights(folds, weight) : ValueError where nothing of a fold counts
fold_weights(folds, rows) → [folds, rows] of training, [folds, rows] held out
in_fold(knobs, fold, rows) → the knobs of a member
measured_rows(learn, held) → [folds, 2, m]: the rows that an epoch is measured by, as many to learn from as are held out
"""

from collections.abc import Sequence

import jax
import numpy as np

from meristem.train.knobs import Knobs

Fold = tuple[np.ndarray, np.ndarray]
EACH = 16  # rows, by which the number of those that are measured grows


def shuffled_folds(rows: int, n: int, seed: int) -> list[Fold]:
    """As many rows in each, but for one.

    >>> [held.size for _, held in shuffled_folds(7, 3, 0)]
    [3, 2, 2]
    """
    if not 2 <= n <= rows:
        raise ValueError(f"cv={n} must be at least 2 and at most the number of rows, {rows}.")
    parts = np.array_split(np.random.default_rng(seed).permutation(rows), n)
    return [(np.sort(np.concatenate(parts[:k] + parts[k + 1 :])), np.sort(parts[k])) for k in range(n)]


def fold_weights(folds: Sequence[Fold], rows: int) -> tuple[np.ndarray, np.ndarray]:
    """1 where a row counts, of `rows` that may be more than the folds speak of.

    >>> learn, held = fold_weights([(np.array([0, 1]), np.array([2]))], 4)
    >>> learn.tolist(), held.tolist()
    ([[1.0, 1.0, 0.0, 0.0]], [[0.0, 0.0, 1.0, 0.0]])
    """
    weights = np.zeros((2, len(folds), rows), np.float32)
    for k, fold in enumerate(folds):
        for part, chosen in enumerate(fold):
            if not len(chosen):
                raise ValueError(f"cv: fold {k} has no {'held-out' if part else 'training'} rows.")
            weights[part, k, chosen] = 1
    return weights[0], weights[1]


def check_weights(folds: Sequence[Fold], weight: np.ndarray | None, name: str = "sample_weight") -> None:
    """Raise ValueError where all training rows, or all held-out rows, of a fold have a weight of 0.

    >>> check_weights([(np.array([0, 1]), np.array([2]))], np.array([1.0, 1.0, 0.0]))
    Traceback (most recent call last):
    ValueError: sample_weight is 0 for all held-out rows of fold 0; give some of them more, or choose another cv.
    """
    for fold, parts in enumerate(folds if weight is not None else ()):
        for words, rows in zip(("training", "held-out"), parts, strict=True):
            if weight is not None and not (weight[rows] > 0).any():
                raise ValueError(
                    f"{name} is 0 for all {words} rows of fold {fold}; give some of them more, or choose another cv."
                )


def measured_rows(learn: np.ndarray, held: np.ndarray) -> np.ndarray:
    """For each fold some rows that it learns from and all that are held out; lists that are short of those go on with others.

    m depends on the share that is held out and on the rows that there is room for: data of a like size share a program.

    >>> learn, held = fold_weights([(np.array([0, 1, 3]), np.array([2])), (np.array([2, 3]), np.array([0, 1]))], 4)
    >>> measured_rows(learn, held)[:, 1, :2].tolist()
    [[2, 0], [0, 1]]
    """
    rows, there = learn.shape[1], ((learn > 0) | (held > 0)).any(0).sum()
    share = (held > 0).sum(1).max() / there
    m = min(rows, -(-int(np.ceil(rows * share)) // EACH) * EACH)
    shuffled = np.random.default_rng(0).permutation(rows)
    of_learn = [shuffled[np.argsort(learn[fold][shuffled] == 0, kind="stable")][:m] for fold in range(len(learn))]
    of_held = [np.argsort(held[fold] == 0, kind="stable")[:m] for fold in range(len(held))]
    return np.stack([np.stack(of_learn), np.stack(of_held)], 1).astype(np.int32)


def in_fold(knobs: Knobs, fold: Fold, rows: int) -> Knobs:
    """The knobs of a member that learns from some of the rows and is judged by others."""
    learn, held = fold_weights([fold], rows)
    return knobs._replace(weight=jax.device_put(learn[0]), dev_weight=jax.device_put(held[0]))
