"""How much of a search fits into a time: what one fold takes is measured, then settings, folds and rows are chosen by it.

    trying = Trying(estimator, X, y, limit, seed=0)                   a fold of some rows is trained, in a thread of its own
    trial = trying.result()                                           what compiling and an epoch take
    rows, deadline = paced(estimator, X, y, trial, limit, held=…, …)  the rows to search with; the estimator is set to a search
                                                                      that ends in time

The estimators' own search tries some ten settings in five folds, which take about a third of their most epochs. Where that is
too long, first l2 and dropout are not searched, then fewer penalties and folds are, and at last fewer rows. Rows and folds of
another number take another program: where there is no time to compile one, those that were measured with are taken. `Deadline`
ends it in any case: the networks are kept as they are then, and who is still compiling is left behind (paths/halving.py). A
time in which no network can be compiled is refused when it is over. Imports the estimators; fitting.py imports it.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from meristem.estimators.paths import Search, Table
from meristem.tables.evaluation import MOST_ROWS
from meristem.tables.limit import SLACK, Deadline, Limit, ending, slowness
from meristem.train.callbacks import Watcher
from meristem.train.population import cores
from meristem.train.train_state import EpochInfo

L2, LEAST_ROWS = 0.3, 500  # alpha of the l2 in the middle; rows below which nothing is left out
TRIED = 2000  # rows that an epoch is measured with; all, where there are no more than twice as many
FOLDS, MOST_COMPILING = 5, 2  # folds that it is measured with; so many times as long as compiling takes leaves room for another
WHOLE, SOME = 2.5, 2.0  # looks at all rows that are held out, for score and graph; at those that a report is about
LEAST = 0.5  # seconds that an epoch of each fold takes at least
SHARE = 1 / 3  # of the most epochs, that a training takes on average
STEPS = [(10, 5, 5), (5, 5, 5), (5, 5, 3), (3, 3, 3), (3, 3, 2), (1, 1, 2)]  # settings in all, penalties, folds


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


@dataclass(frozen=True)
class Trial:
    """What was measured: seconds of an epoch of one network over all rows, of compiling, and of what a bag of as many networks
    as there are folds says of a row; and the rows that it was measured with.
    """

    epoch: float
    compiling: float
    row: float
    rows: int


class Trying:
    """A trial under way, beside what else there is to do while a program is compiled."""

    def __init__(self, estimator: Any, X: np.ndarray, y: np.ndarray, limit: Limit, *, seed: int):
        self.limit, pool = limit, ThreadPoolExecutor(1)
        self.future = pool.submit(_trial, estimator, X, y, seed)
        pool.shutdown(wait=False)

    def result(self) -> Trial:
        """What it came to; ValueError where it takes so long that the limit would be exceeded."""
        seconds = self.limit.seconds
        latest = self.limit.end + SLACK * seconds - ending(seconds, 0.0) - LEAST
        try:
            return self.future.result(timeout=max(0.0, latest - time.monotonic()))
        except TimeoutError:
            raise ValueError(
                f"seconds={seconds:g} is too short: to compile a network takes longer here and now (5 to 15 s on an idle "
                f"machine, and less the second time); give at least {max(20, round(2 * seconds))}."
            ) from None


def paced(
    estimator: Any, X: np.ndarray, y: np.ndarray, trial: Trial, limit: Limit, *, held: int, seed: int
) -> tuple[np.ndarray, Deadline]:
    """Sets the estimator's parameters for a search that ends in time, and says which rows to take; so many are held out."""
    given, slow = estimator.get_params(), slowness()
    looks = trial.row * (WHOLE * held + SOME * min(held, MOST_ROWS))
    left = max(0.1, limit.end - ending(limit.seconds, looks, slow=slow) - time.monotonic())
    is_open = isinstance(given["penalties"], str) and given["budget"] is None
    all_epochs = estimator._epochs(len(y)) * trial.epoch / cores()
    plan = planned(left, trial.compiling, all_epochs, trial.rows / len(y), is_open=is_open)
    rows = np.sort(_shuffled(y, seed)[: max(LEAST_ROWS, round(len(y) * plan.rows))])
    epoch = trial.epoch * len(rows) / len(y)
    deadline = Deadline(limit.end - ending(limit.seconds, looks, epoch, slow=slow))
    told = given["callbacks"] if isinstance(given["callbacks"], list) else [given["callbacks"]]
    callbacks = [*(one for one in told if one is not None), deadline]
    estimator.set_params(**options_of(plan, estimator, X[rows], y[rows], is_open=is_open), callbacks=callbacks)
    return rows, deadline


def planned(left: float, compiling: float, epoch: float, share: float, *, is_open: bool) -> Plan:
    """The same where a program must be compiled first; where there is no time to, what has its program: this share of rows.

    >>> planned(100.0, 3.0, 5.0, 0.25, is_open=True).settings, planned(5.0, 3.0, 5.0, 0.25, is_open=True)
    (10, Plan(settings=1, penalties=1, folds=5, rows=0.25))
    >>> planned(5.0, 3.0, 0.5, 1.0, is_open=True)
    Plan(settings=5, penalties=5, folds=5, rows=1.0)
    """
    if left >= MOST_COMPILING * compiling:
        return plan_within(left - compiling, epoch, is_open=is_open)
    fits = [n for n in (5, 3) if n * FOLDS * SHARE * epoch * share <= left]
    n = fits[0] if fits and is_open else 1
    return Plan(n, n, FOLDS, rows=share)


def _shuffled(y: np.ndarray, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).permutation(len(y))


def _trial(estimator: Any, X: np.ndarray, y: np.ndarray, seed: int) -> Trial:
    """A few epochs of one fold."""
    times, few = _Times(), _shuffled(y, seed)[: len(y) if len(y) <= 2 * TRIED else TRIED]
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
    model = type(estimator)(**estimator.get_params() | one | {"cv": split, "callbacks": times}).fit(X[few], y[few])
    first, *others = np.diff(times.times).tolist()
    epoch, begun = min(others, default=first), time.monotonic()
    model.predict(X[few])
    return Trial(epoch * len(y) / len(few), first - epoch, FOLDS * (time.monotonic() - begun) / len(few), len(few))


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
