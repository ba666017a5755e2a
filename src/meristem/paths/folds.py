"""Folds as weights of rows, and the held-out loss of the best constant in each.

A member of a fold has weight 1 for its training rows and `dev_weight` 1 for its held-out rows, so that all folds share the data
on the device. Where networks are no better than a constant prediction, comparing settings compares noise (`has_learned`).
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import numpy as np

from meristem.train.objectives import Objective

Fold = tuple[np.ndarray, np.ndarray]  # training rows, held-out rows
MULTIPLE = 16  # the number of measured rows is rounded up to a multiple of this
LEAST_GAIN = 0.01  # relative to the loss of the constant
LEAST_SHARE = 0.75  # of the training rows of the largest fold
DRAWS = 50  # divisions of groups, of which the most balanced is used


def shuffled_folds(rows: int, n: int, seed: int) -> list[Fold]:
    """Return n folds of random rows whose sizes differ by at most one."""
    if not 2 <= n <= rows:
        raise ValueError(f"cv={n} must be at least 2 and at most the number of rows, {rows}.")
    parts = np.array_split(np.random.default_rng(seed).permutation(rows), n)
    return [(np.sort(np.concatenate(parts[:k] + parts[k + 1 :])), np.sort(parts[k])) for k in range(n)]


def fold_weights(folds: Sequence[Fold], rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return weights of training and of held-out rows, [folds, rows] each; `rows` may include padding."""
    weights = np.zeros((2, len(folds), rows), np.float32)
    for k, fold in enumerate(folds):
        for part, chosen in enumerate(fold):
            if not len(chosen):
                raise ValueError(f"cv: fold {k} has no {'held-out' if part else 'training'} rows.")
            weights[part, k, chosen] = 1
    return weights[0], weights[1]


def has_small_fold(folds: Sequence[Fold]) -> bool:
    """Return whether a fold learns from clearly fewer rows than another, as those that go forward in time.

    >>> has_small_fold(shuffled_folds(9, 2, 0)), has_small_fold([(np.arange(3), np.array([3])), (np.arange(6), np.array([6]))])
    (False, True)
    """
    counts = [len(train) for train, _ in folds]
    return min(counts) < LEAST_SHARE * max(counts)


def draw_groups(groups: np.ndarray, classes: np.ndarray, n_rows: float, seed: int) -> np.ndarray:
    """Return which rows are in drawn groups, about `n_rows`; of several draws the one nearest to that in each class.

    >>> draw_groups(np.array([0, 0, 1, 2, 2, 2]), np.zeros(6, int), 2, seed=0).astype(int).tolist()
    [1, 1, 0, 0, 0, 0]
    """
    rng = np.random.default_rng(seed)
    counts = np.zeros((int(groups.max()) + 1, int(classes.max()) + 1))  # rows of each group and class
    np.add.at(counts, (groups, classes), 1)
    used, wanted_counts = np.flatnonzero(counts.sum(1)), counts.sum(0) * n_rows / len(groups)
    best: tuple[float, np.ndarray] = (np.inf, used[:1])
    for _ in range(DRAWS):
        order = rng.permutation(used)
        n_drawn = counts[order].sum(1).cumsum()[:-1]
        drawn = order[: 1 + int(np.argmin(np.abs(n_drawn - n_rows)))] if len(n_drawn) else used
        distance = float(np.abs(counts[drawn].sum(0) - wanted_counts).sum())
        best = min(best, (distance, drawn), key=lambda pair: pair[0])
    return np.isin(groups, best[1])


def separate_groups(fold: Fold, groups: np.ndarray, classes: np.ndarray, seed: int) -> Fold:
    """Return a fold without groups on both sides: each is drawn to one of them, and its rows on the other are left out.

    Half of the held-out rows of such groups stay, so that the share of held-out rows hardly changes. `groups` and `classes` are
    numbers, of all rows.

    >>> rows = separate_groups((np.arange(6), np.arange(6, 9)), np.array([0, 0, 1, 1, 2, 2, 0, 1, 3]), np.zeros(9, int), 0)
    >>> [part.tolist() for part in rows]
    [[2, 3, 4, 5], [6, 8]]
    """
    train, held_out = fold
    crosses = np.isin(groups[held_out], groups[train])
    if not crosses.any():
        return fold
    crossing, stays = held_out[crosses], ~crosses
    numbers = np.unique(groups[crossing], return_inverse=True)[1]
    stays[crosses] = draw_groups(numbers, classes[crossing], len(crossing) / 2, seed)
    held_out = held_out[stays]
    return train[~np.isin(groups[train], groups[held_out])], held_out


def check_weights(folds: Sequence[Fold], weight: np.ndarray | None, name: str = "sample_weight") -> None:
    """Raise ValueError where all training rows, or all held-out rows, of a fold have a weight of 0."""
    if weight is None:
        return
    for fold, parts in enumerate(folds):
        for words, rows in zip(("training", "held-out"), parts, strict=True):
            if not (weight[rows] > 0).any():
                raise ValueError(f"{name} is 0 for all {words} rows of fold {fold}; raise some, or choose another cv.")


def measured_rows(train: np.ndarray, held_out: np.ndarray) -> np.ndarray:
    """Return for each fold some training rows and all held-out rows, [folds, 2, m]; shorter lists are filled with others.

    m depends on the held-out share and on the number of rows, padding included: data of similar size share a program.
    """
    rows, n_real = train.shape[1], ((train > 0) | (held_out > 0)).any(0).sum()
    share = (held_out > 0).sum(1).max() / n_real
    m = min(rows, -(-int(np.ceil(rows * share)) // MULTIPLE) * MULTIPLE)
    shuffled = np.random.default_rng(0).permutation(rows)
    of_train = [shuffled[np.argsort(weight[shuffled] == 0, kind="stable")][:m] for weight in train]
    of_held_out = [np.argsort(weight == 0, kind="stable")[:m] for weight in held_out]
    return np.stack([np.stack(of_train), np.stack(of_held_out)], 1).astype(np.int32)


def constant_losses(y: np.ndarray, weight: np.ndarray, folds: Sequence[Fold], objective: Objective, n_out: int) -> np.ndarray:
    """Return the mean held-out loss of the best constant prediction in each fold; y [n] or [n, n_out]."""

    def constant(train: np.ndarray) -> np.ndarray:
        own, share, n = y[train], weight[train] / weight[train].sum(), len(train)
        if not objective.outputs_are_logits:
            return np.broadcast_to(objective.best_constant(own, weight[train]), (n_out,))
        if objective.targets_are_classes:  # the share of each class or label, as logits
            return np.log(np.bincount(own.astype(int), share, minlength=n_out) + 1 / (n + 1))
        positive = np.clip(share @ own.reshape(n, -1), 0.5 / (n + 1), 1 - 0.5 / (n + 1))
        return np.log(positive / (1 - positive))

    losses = np.asarray(row_losses(np.stack([constant(train) for train, _ in folds]).astype(np.float32), y, objective))
    means = [own[rows] @ weight[rows] / max(weight[rows].sum(), 1e-30) for own, (_, rows) in zip(losses, folds, strict=True)]
    return np.array(means, float)


@partial(jax.jit, static_argnums=2)  # as one program: operation by operation it would be thirty
def row_losses(outputs: Any, y: Any, objective: Objective) -> Any:
    """Return the loss of each row for each of several constant predictions, [constants, rows]; outputs [constants, n_out]."""
    return jax.vmap(lambda constant: jax.vmap(lambda target: objective.loss(constant, target))(y))(outputs)


def has_learned(losses: np.ndarray, constant: np.ndarray) -> bool:
    """Return whether networks are better than the constant of the same folds by more than 1 %, in the mean."""
    return bool(np.mean(constant - losses) > LEAST_GAIN * abs(np.mean(constant)))
