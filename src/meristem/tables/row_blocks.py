"""The training rows of a large table in blocks of as many rows as its search had; imported by fitting.py."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from meristem.tables.encoding import features
from meristem.tables.split import CLASS, TableSplit
from meristem.train.loop import n_held_out


class RowBlocks(Sequence[tuple[np.ndarray, np.ndarray]]):
    """Training rows in random order, as features and targets, in blocks as long as `y`.

    `y` are the targets of the search: rows of a class that it has not seen are left out, since no network has an output for it.
    """

    def __init__(self, split: TableSplit, y: np.ndarray, seed: int):
        rows = np.random.default_rng(seed).permutation(split.train_rows)
        if split.target.task == CLASS:
            rows = rows[np.isin(split.target.values[rows], y)]
        self.split, self.blocks = split, in_blocks(rows, len(y))
        n_held = n_held_out(len(y)) if split.target.task == CLASS and len(self.blocks) > 1 else 0  # for a temperature
        self.n_learned = len(rows) - len(np.unique(self.blocks[:, len(y) - n_held :]))

    def __len__(self) -> int:
        return len(self.blocks)

    def __getitem__(self, number: Any) -> Any:
        rows = self.blocks[number]
        return features(self.split.schema, self.split.table, rows), self.split.target.values[rows]


def in_blocks(rows: np.ndarray, size: int) -> np.ndarray:
    """Return rows in blocks; the last is filled up with the end of the first: each row has one place, learned or held out.

    >>> in_blocks(np.array([7, 3, 9, 5, 8]), 3).tolist()
    [[7, 3, 9], [5, 8, 9]]
    """
    filling = rows[len(rows) % size : size] if len(rows) % size else rows[:0]
    return np.concatenate([rows, filling]).reshape(-1, size)
