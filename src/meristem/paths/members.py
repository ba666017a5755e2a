"""The members of a path: every setting, in every fold, from every seed; a row each.

A *setting* is a choice of penalty, l2, dropout and learning rate. Members of one fold and seed begin with the same weights, so
that settings can be compared fold by fold. Penalties may come from the data, downward from the price at which nothing opens:

    highest_penalty = (mean loss of outputs that are 0) / (cost of the cheapest unit)

A gate stays open only if it lowers the mean loss by more than its price, and none can lower it by more than all of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from meristem.check import check_number
from meristem.complexity import SOFT, UNIT
from meristem.paths.folds import row_losses
from meristem.train.objectives import Objective

KNOBS = ("penalty", "l2", "dropout", "learning_rate")  # of a setting
COLUMNS = (*KNOBS, "fold", "seed")
N_PENALTIES = 5
FROM, TO = 1e-5, 1e-1  # relative to the highest penalty


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
        return {name: getattr(self, name) for name in COLUMNS}

    @property
    def named(self) -> dict[int, dict[str, float]]:
        """The columns of each member by its number, for watchers; without a fold of −1."""
        columns = {name: column.tolist() for name, column in self.columns.items() if name != "fold" or (column >= 0).all()}
        return {m: {name: values[m] for name, values in columns.items()} for m in range(len(self))}

    def at(self, rows: np.ndarray) -> "Members":
        """Return these members, in this order."""
        return Members(**{name: column[rows] for name, column in self.columns.items()})

    def joined(self, more: "Members") -> "Members":
        """Return these members, followed by more."""
        return Members(**{name: np.concatenate([column, more.columns[name]]) for name, column in self.columns.items()})

    @property
    def settings(self) -> np.ndarray:
        """The number of each member's setting, in order of appearance."""
        numbers: dict[tuple[float, ...], int] = {}
        rows = zip(*(self.columns[name].tolist() for name in KNOBS), strict=True)
        return np.array([numbers.setdefault(row, len(numbers)) for row in rows], int)


def grid(*, penalties: Any, l2s: Any, dropouts: Any, rates: Any, folds: int = 0, seeds: Sequence[int] = (0,)) -> Members:
    """Return all combinations of these numbers, penalties in ascending order.

    >>> members = grid(penalties=[0.1, 0.01], l2s=[0.0], dropouts=[0.0], rates=[1e-3], folds=3)
    >>> len(members), members.penalty.tolist(), members.settings.tolist()
    (6, [0.01, 0.01, 0.01, 0.1, 0.1, 0.1], [0, 0, 0, 1, 1, 1])
    """
    lists = [sorted(set(map(float, penalties))), *([float(v) for v in dict.fromkeys(some)] for some in (l2s, dropouts, rates))]
    for name, values in zip(("penalties", "l2s", "dropouts", "learning_rates"), lists, strict=True):
        if not values:
            raise ValueError(f"{name} is empty; give at least one number.")
        for value in values:
            check_number(name, value, "of at least 0", lambda v: 0 <= v < np.inf)
    columns = zip(*product(*lists, range(folds) if folds else (-1,), seeds), strict=True)
    return Members(**{name: np.array(column) for name, column in zip(COLUMNS, columns, strict=True)})


def highest_penalty(y: np.ndarray, weight: np.ndarray, objective: Objective, n_in: int, n_out: int, price: str) -> float:
    """Return the penalty above which nothing opens, for `n_in` features and `n_out` outputs."""
    losses = row_losses(np.zeros((1, n_out)), y, objective)[0]
    cheapest = (n_in + n_out) / UNIT if price in SOFT else 1.0
    return float(losses @ weight / np.sum(weight)) / cheapest


def penalties_below(highest: float, n: int = N_PENALTIES) -> np.ndarray:
    """Return n penalties, evenly spaced by their logarithm.

    >>> penalties_below(1.0, 3).tolist()
    [1e-05, 0.001, 0.1]
    """
    return np.geomspace(FROM * highest, TO * highest, n)
