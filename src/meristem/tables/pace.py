"""How much of a search fits into a time: what one fold takes is measured, then settings, folds and rows are chosen by it.

    options, rows, epoch = paced(estimator, X, y, until=…)   what to change of the estimator, the rows to search with, and
                                                             the seconds of an epoch
    ending(60.0, look, epoch)                                what of the time is kept for what comes after the search

The estimators' own search tries some ten settings in five folds, which take about a third of their most epochs. Where that is
too long, first l2 and dropout are not searched, then fewer penalties and folds are, and at last fewer rows. Rows and folds of
another number take another program: where there is no time to compile one, those that were measured with are taken. `Deadline`
ends it in any case: the networks are kept as they are then, with the epochs that are under way. What comes after it has been
measured: the score takes a look at all rows that are held out, as a baseline did. Imports the estimators.
"""

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from meristem.estimators.paths import Search, Table
from meristem.paths.training import cores
from meristem.train.state import EpochInfo
from meristem.train.watching import Watcher

L2, LEAST_ROWS = 0.3, 500  # alpha of the l2 in the middle; rows below which nothing is left out
TRIED = 2000  # rows that an epoch is measured with
FOLDS, MOST_COMPILING = 5, 2  # folds that it is measured with; so many times as long as compiling takes leaves room for another
END, FILES, LOOKS = 0.03, 2.0, 4.0  # of the time; seconds for the files; looks of a baseline that a score and comparing take
SHARE = 1 / 3  # of the most epochs, that a training takes on average
STEPS = [(10, 5, 5), (5, 5, 5), (5, 5, 3), (3, 3, 3), (3, 3, 2), (1, 1, 2)]  # settings in all, penalties, folds


class Deadline(Watcher):
    """Ends a training when a time has come, and knows whether it did."""

    def __init__(self, at: float):
        self.at, self.has_ended = at, False

    def epoch(self, member: int, info: EpochInfo) -> bool:
        return self.over()

    def over(self) -> bool:
        is_over = time.monotonic() > self.at
        self.has_ended |= is_over
        return is_over


class _Times(Watcher):
    """When each epoch was over."""

    def __init__(self) -> None:
        self.times = [time.monotonic()]

    def epoch(self, member: int, info: EpochInfo) -> bool:
        self.times.append(time.monotonic())
        return False


def ending(seconds: float, look: float, epoch: float = 0.0) -> float:
    """How long before the end a search must: a look at the rows that are held out, and an epoch, take so long.

    No more than half of all, where the time is short.

    >>> ending(100.0, 3.0, 0.5), ending(4.0, 3.0)
    (17.5, 2.0)
    """
    return min(END * seconds + FILES + LOOKS * look + epoch, seconds / 2)


@dataclass(frozen=True)
class Plan:
    """What is searched: settings in all, penalties among them, folds, and the share of the rows."""

    settings: int
    penalties: int
    folds: int
    rows: float = 1.0


def plan_within(seconds: float, epoch: float, *, is_open: bool = True) -> Plan:
    """The most that takes so long, where `epoch` is what all epochs of one training take at most; prices are searched if open.

    >>> plan_within(100.0, 5.0), plan_within(100.0, 50.0), plan_within(100.0, 300.0).rows
    (Plan(settings=10, penalties=5, folds=5, rows=1.0), Plan(settings=3, penalties=3, folds=2, rows=1.0), 0.5)
    """
    for settings, penalties, folds in STEPS:
        plan = Plan(settings if is_open else max(1, settings // penalties), penalties, folds)
        takes = plan.settings * plan.folds * SHARE * epoch
        if takes <= seconds:
            return plan
    return replace(plan, rows=seconds / takes)


def paced(estimator: Any, X: np.ndarray, y: np.ndarray, *, until: float, seed: int) -> tuple[dict[str, Any], np.ndarray, float]:
    """Parameters for a search that ends then (`time.monotonic`), which rows to take, and what an epoch of them takes."""
    given = estimator.get_params()
    order = np.random.default_rng(seed).permutation(len(y))
    epoch, compiling = _epoch_seconds(estimator, X, y, order)
    left = max(0.1, until - time.monotonic())
    is_open = isinstance(given["penalties"], str) and given["budget"] is None
    plan = planned(left, compiling, estimator._epochs(len(y)) * epoch / cores(), len(y), is_open=is_open)
    rows = np.sort(order[: max(LEAST_ROWS, round(len(y) * plan.rows))])
    return options_of(plan, estimator, X[rows], y[rows], is_open=is_open), rows, epoch * len(rows) / len(y)


def planned(left: float, compiling: float, epoch: float, rows: int, *, is_open: bool) -> Plan:
    """The same where a program must be compiled first; where there is no time to, what has its program already.

    >>> planned(100.0, 3.0, 5.0, 8000, is_open=True).settings, planned(5.0, 3.0, 5.0, 8000, is_open=True)
    (10, Plan(settings=1, penalties=1, folds=5, rows=0.25))
    >>> planned(5.0, 3.0, 0.5, 1000, is_open=True)
    Plan(settings=5, penalties=5, folds=5, rows=1.0)
    """
    if left >= MOST_COMPILING * compiling:
        return plan_within(left - compiling, epoch, is_open=is_open)
    share = min(1.0, TRIED / rows)
    fits = [n for n in (5, 3) if n * FOLDS * SHARE * epoch * share <= left]
    n = fits[0] if fits and is_open else 1
    return Plan(n, n, FOLDS, rows=share)


def _epoch_seconds(estimator: Any, X: np.ndarray, y: np.ndarray, order: np.ndarray) -> tuple[float, float]:
    """What an epoch of one network over all rows takes, from a few of them; and how long its program takes to compile."""
    times, few = _Times(), order[:TRIED]
    cut = max(1, len(few) // FOLDS)
    one = {
        "penalties": [1e-3],
        "l2s": [L2 / len(y)],
        "input_dropouts": [0.0],
        "halving": False,
        "max_epochs": 4,
        "verbose": False,
    }
    split = [(np.arange(cut, len(few)), np.arange(cut))]
    type(estimator)(**estimator.get_params() | one | {"cv": split, "callbacks": times}).fit(X[few], y[few])
    first, *others = np.diff(times.times).tolist()
    epoch = min(others, default=first)
    return epoch * len(y) / len(few), first - epoch


def options_of(plan: Plan, estimator: Any, X: np.ndarray, y: np.ndarray, *, is_open: bool) -> dict[str, Any]:
    """What is not as the estimator has it; nothing that was given is changed, but for the folds."""
    given = estimator.get_params()
    options: dict[str, Any] = {}
    if plan.settings <= plan.penalties:
        if isinstance(given["l2s"], str):
            options["l2s"] = [L2 / len(y)]
        if isinstance(given["input_dropouts"], str):
            options["input_dropouts"] = [0.0]
    if is_open and plan.penalties < STEPS[0][1]:
        plain = estimator._plain(price=given["price"])
        tried = Search(plain, Table.of(plain, X, y), []).penalties("auto")
        options["penalties"] = tried[::2] if plan.penalties > 1 else [tried[len(tried) // 2]]
    if isinstance(given["cv"], int):
        options["cv"] = min(given["cv"], plan.folds)
    return options
