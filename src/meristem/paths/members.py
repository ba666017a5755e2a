"""The members of a path: every setting, in every fold, from every seed.

A *setting* is a choice of penalty, l2, dropout and learning rate. Members of one fold and seed begin with the same weights, so
that settings can be compared fold by fold. Penalties may come from the data, downward from the price at which nothing opens:

    highest_penalty = (mean loss of outputs that are 0) / (cost of the cheapest unit)

A gate stays open only if it lowers the mean loss by more than its price, and none can lower it by more than all of it.
"""

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from meristem.check import check_number
from meristem.complexity import SOFT, UNIT
from meristem.paths.folds import row_losses
from meristem.train.objectives import Objective

N_PENALTIES = 5
FROM, TO = 1e-5, 1e-1  # relative to the highest penalty


class Member(NamedTuple):
    """A setting, in a fold, from a seed; `fold` is −1 where there are no folds."""

    penalty: float
    l2: float
    dropout: float
    learning_rate: float
    fold: int
    seed: int


COLUMNS, KNOBS = Member._fields, Member._fields[:4]  # KNOBS are those of a setting


def grid(*, penalties: Any, l2s: Any, dropouts: Any, rates: Any, folds: int = 0, seeds: Sequence[int] = (0,)) -> list[Member]:
    """Return all combinations of these numbers, penalties in ascending order."""
    lists = [sorted(set(map(float, penalties))), *([float(v) for v in dict.fromkeys(some)] for some in (l2s, dropouts, rates))]
    for name, values in zip(("penalties", "l2s", "dropouts", "learning_rates"), lists, strict=True):
        if not values:
            raise ValueError(f"{name} is empty; give at least one number.")
        for value in values:
            check_number(name, value, "of at least 0", lambda v: 0 <= v < np.inf)
    rows: Any = product(*lists, range(folds) if folds else (-1,), seeds)
    return [Member(*row) for row in rows]


def settings_of(members: Iterable[tuple[float, ...]]) -> np.ndarray:
    """Return the number of each member's setting, in order of appearance."""
    numbers: dict[tuple[float, ...], int] = {}
    return np.array([numbers.setdefault(member[: len(KNOBS)], len(numbers)) for member in members], int)


def by_number(members: Sequence[Member]) -> dict[int, dict[str, float]]:
    """Return the members by their number and column, for watchers; without a fold of −1."""
    rows = enumerate(member._asdict() for member in members)
    return {m: {name: value for name, value in row.items() if name != "fold" or value >= 0} for m, row in rows}


def default_penalties(y: np.ndarray, weight: np.ndarray, objective: Objective, n_in: int, n_out: int, price: str) -> np.ndarray:
    """Return penalties below the highest one, for `n_in` features and `n_out` outputs, evenly spaced by their logarithm."""
    losses = np.asarray(row_losses(np.zeros((1, n_out), np.float32), y, objective))[0]
    cheapest = (n_in + n_out) / UNIT if price in SOFT else 1.0
    highest = float(losses @ weight / np.sum(weight)) / cheapest
    return np.geomspace(FROM * highest, TO * highest, N_PENALTIES)
