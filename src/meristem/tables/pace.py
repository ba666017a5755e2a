"""How much of a search fits into a time: what one fold takes is measured, then settings, folds and rows are chosen by it.

    options, rows = paced(estimator, X, y, seconds=60.0) → what to change of the estimator, and the rows to search with

The estimators' own search tries some ten settings in five folds, which take about a third of their most epochs. Where that is
too long, first l2 and dropout are not searched, then fewer penalties and folds are, and at last fewer rows. `Deadline` ends it
in any case: the networks are kept as they are then. Imports the estimators.
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
SHARE = 1 / 3  # of the most epochs, that a training takes on average
STEPS = [(10, 5, 5), (5, 5, 5), (5, 5, 3), (3, 3, 3), (3, 3, 2), (1, 1, 2)]  # settings in all, penalties, folds


class Deadline(Watcher):
    """Ends a training when a time has come, and knows whether it did."""

    def __init__(self, at: float):
        self.at, self.has_ended = at, False

    def epoch(self, member: int, info: EpochInfo) -> bool:
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


def paced(estimator: Any, X: np.ndarray, y: np.ndarray, *, seconds: float, seed: int) -> tuple[dict[str, Any], np.ndarray]:
    """Parameters for a search of at most so many seconds, and which rows to take."""
    begun, given = time.monotonic(), estimator.get_params()
    order = np.random.default_rng(seed).permutation(len(y))
    epoch, compiling = _epoch_seconds(estimator, X, y, order)
    left = max(0.0, begun + seconds - time.monotonic() - compiling)  # rows of another number take another program
    is_open = isinstance(given["penalties"], str) and given["budget"] is None
    plan = plan_within(left, estimator._epochs(len(y)) * epoch / cores(), is_open=is_open)
    rows = np.sort(order[: max(LEAST_ROWS, round(len(y) * plan.rows))])
    return options_of(plan, estimator, X[rows], y[rows], is_open=is_open), rows


def _epoch_seconds(estimator: Any, X: np.ndarray, y: np.ndarray, order: np.ndarray) -> tuple[float, float]:
    """What an epoch of one network over all rows takes, from a few of them; and how long its program takes to compile."""
    times, few = _Times(), order[:TRIED]
    cut = max(1, len(few) // 5)
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
