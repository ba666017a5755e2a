"""The members of a path: every setting, in every fold, from every seed; a row each.

    grid(penalties=[1e-3, 1e-2], folds=5) → Members of 10 rows

A *setting* is what a person would choose: penalty, l2, dropout, learning rate. Members of one fold and seed begin with the same
weights, so that two settings differ in nothing else: their losses are compared fold by fold.
Imports nothing of meristem but its checks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from meristem.check import check_number

KNOBS = ("penalty", "l2", "dropout", "learning_rate")  # what makes a setting
COLUMNS = (*KNOBS, "fold", "seed")


@dataclass(frozen=True, eq=False)
class Members:
    """A row for each member; `fold` is −1 where there are no folds."""

    penalty: np.ndarray
    l2: np.ndarray
    dropout: np.ndarray
    learning_rate: np.ndarray
    fold: np.ndarray
    seed: np.ndarray

    def __len__(self) -> int:
        return len(self.penalty)

    @property
    def columns(self) -> dict[str, np.ndarray]:
        """By name."""
        return {name: getattr(self, name) for name in COLUMNS}

    @property
    def named(self) -> dict[int, dict[str, float]]:
        """What each member is, by its number, as watchers take it; a fold only where there are some."""
        rows = zip(*(column.tolist() for column in self.columns.values()), strict=True)
        each = (dict(zip(COLUMNS, row, strict=True)) for row in rows)
        return {m: {name: value for name, value in own.items() if name != "fold" or value >= 0} for m, own in enumerate(each)}

    def at(self, rows: np.ndarray) -> "Members":
        """Some of them, in this order."""
        return Members(**{name: column[rows] for name, column in self.columns.items()})

    def joined(self, more: "Members") -> "Members":
        """These, and then more."""
        return Members(**{name: np.concatenate([column, more.columns[name]]) for name, column in self.columns.items()})

    @property
    def settings(self) -> np.ndarray:
        """For each member the number of its setting, in the order in which they come."""
        rows = list(zip(*(getattr(self, name).tolist() for name in KNOBS), strict=True))
        numbers = {row: number for number, row in enumerate(dict.fromkeys(rows))}
        return np.array([numbers[row] for row in rows], int)


def grid(
    *,
    penalties: Any,
    l2s: Any,
    dropouts: Any,
    rates: Any,
    folds: int = 0,
    seeds: Sequence[int] = (0,),
) -> Members:
    """All combinations of these numbers; penalties from the smallest to the largest.

    >>> members = grid(penalties=[0.1, 0.01], l2s=[0.0], dropouts=[0.0], rates=[1e-3], folds=3)
    >>> len(members), members.penalty.tolist(), members.settings.tolist()
    (6, [0.01, 0.01, 0.01, 0.1, 0.1, 0.1], [0, 0, 0, 1, 1, 1])
    """
    each = range(folds) if folds else (-1,)
    lists = [sorted(set(map(float, penalties))), *([float(v) for v in dict.fromkeys(some)] for some in (l2s, dropouts, rates))]
    for name, values in zip(("penalties", "l2s", "dropouts", "learning_rates"), lists, strict=True):
        if not values:
            raise ValueError(f"{name} is empty; give at least one number.")
        for value in values:
            check_number(name, value, "of at least 0", lambda v: 0 <= v < np.inf)
    columns = zip(*product(*lists, each, seeds), strict=True)
    return Members(**{name: np.array(column) for name, column in zip(COLUMNS, columns, strict=True)})
