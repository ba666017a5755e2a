"""Folds as weights of rows: what a member learns from weighs 1, what it is judged by weighs 1 in the other list.

shuffled_folds(rows, n, seed) → [(training rows, held-out rows), …]
fold_weights(folds, rows) → [folds, rows] of training, [folds, rows] held out
"""

from collections.abc import Sequence

import numpy as np

Fold = tuple[np.ndarray, np.ndarray]


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
