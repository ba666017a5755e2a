"""Fit a search into a time limit: measure one fold, then choose settings, folds and rows by what it took.

By default an estimator searches some ten settings in five folds, each of which takes about a third of the most epochs. Where
that is too long, first l2 and dropout are not searched, then fewer penalties and folds, at last fewer rows. Other numbers of
rows and folds need another compiled program: where there is no time for it, the measured ones are used. `Deadline` ends the
search in any case: those still compiling are left out (paths/halving.py), and the networks of the best setting settle in a few
more epochs, for which there is time.
"""

import math
import time
from concurrent.futures import Future
from typing import Any, NamedTuple

import numpy as np

from meristem.estimators.search import Search
from meristem.tables.evaluation import MOST_ROWS
from meristem.train.callbacks import Watcher
from meristem.train.loop import cores
from meristem.train.train_state import EpochInfo

END, FILES = 0.03, 2.0  # share of the time, and seconds for the files
SLACK = 0.1  # share of the time by which a limit may be exceeded
SAMPLE = 0.03  # seconds of computing that show how busy a machine is
L2, LEAST_ROWS = 0.3, 500  # alpha of the l2 in the middle; rows below which nothing is left out
TIMED_EPOCHS = 4  # of which the first compiles
TIMED_ROWS = 2000  # rows that an epoch is measured with; all, where there are no more than twice as many
FOLDS, MOST_COMPILING = 5, 2  # folds of a measurement; another program is compiled where this multiple of its time is left
ALL_PASSES, SAMPLE_PASSES = 2.5, 2.0  # predictions of all test rows, for score and graph; of those in a report
LEAST = 0.5  # seconds that an epoch of each fold takes at least
SHARE = 1 / 3  # of the most epochs that a training takes on average
SETTLING_EPOCHS, SETTLING_SHARE = 12, 0.15  # of the networks of a search that was ended, at most; of the time
COMPILING_SETTLING = 0.5  # of the time that compiling an epoch takes
STEPS = [(10, 5, 5), (5, 5, 5), (5, 5, 3), (3, 3, 3), (3, 3, 2), (1, 1, 2)]  # settings in all, penalties, folds


class Deadline(Watcher):
    """Ends a training at a time, and records whether it did, and when it began and each epoch was over."""

    def __init__(self, at: float = math.inf):
        self.at, self.has_ended, self.times = at, False, [time.monotonic()]

    def epoch(self, member: int, info: EpochInfo) -> bool:
        self.times.append(time.monotonic())
        return self.over()

    def over(self) -> bool:
        is_over = time.monotonic() > self.at
        self.has_ended |= is_over
        return is_over

    def ends_at(self) -> float:
        return self.at


class TimedEpochs(Deadline):
    """Ends a training after a few epochs, which tries no larger networks and warns of nothing then."""

    def over(self) -> bool:
        return len(self.times) > TIMED_EPOCHS


def reserve(seconds: float, predicting: float, epoch: float = 0.0, *, slowdown: float = 1.0) -> float:
    """Return the seconds before the end at which a search must stop: for predictions, the running epoch, and files.

    Files take `slowdown` times as long as on an idle machine. No more than half of the time is reserved.
    """
    return min(END * seconds + slowdown * FILES + predicting + epoch, seconds / 2)


def measure_slowdown() -> float:
    """Return how many times as long as on an idle core a thread takes at the moment, at least 1."""
    begun, own = time.monotonic(), time.thread_time()
    while (computed := time.thread_time() - own) < SAMPLE:
        pass
    return max(1.0, (time.monotonic() - begun) / computed)


class SearchPlan(NamedTuple):
    """What is searched: settings in all, penalties among them, folds, and the share of the rows."""

    settings: int
    penalties: int
    folds: int
    rows: float = 1.0


def plan_search(seconds: float, training: float, *, is_open: bool = True) -> SearchPlan:
    """Return the largest plan that fits; `training`: seconds of one training, `is_open`: whether penalties are searched."""
    for settings, penalties, folds in STEPS:
        plan = SearchPlan(settings if is_open else max(1, settings // penalties), penalties, folds)
        if (takes := plan.settings * plan.folds * SHARE * training) <= seconds:
            return plan
    return plan._replace(rows=seconds / takes)


class Timing(NamedTuple):
    """Seconds that were measured, and the number of rows they were measured with."""

    epoch: float  # of one network over all rows
    compiling: float
    row: float  # prediction of a row by as many networks as there are folds
    rows: int


def wait_for_timing(timing: Future[Timing], seconds: float, end: float) -> Timing:
    """Return the measurement; raise ValueError where it takes so long that the limit, which ends at `end`, is exceeded."""
    latest = end + SLACK * seconds - reserve(seconds, 0.0) - LEAST
    try:
        return timing.result(timeout=max(0.0, latest - time.monotonic()))
    except TimeoutError:
        why = "to compile a network takes longer here and now (5 to 15 s on an idle machine, and less the second time)"
        least = max(20, round(2 * seconds))
        raise ValueError(f"seconds={seconds:g} is too short: {why}; give at least {least}.") from None


def time_fold(estimator: Any, X: np.ndarray, y: np.ndarray, seed: int) -> Timing:
    """Train one fold for a few epochs; the first compiles the program that a search begins with."""
    watcher, n = TimedEpochs(), len(y) if len(y) <= 2 * TIMED_ROWS else TIMED_ROWS
    few = np.random.default_rng(seed).permutation(len(y))[:n]
    n_held_out = max(1, len(few) // FOLDS)
    fold = (np.arange(n_held_out, len(few)), np.arange(n_held_out))
    options = {"penalties": [1e-3], "l2s": [L2 / len(y)], "input_dropouts": [0.0], "max_epochs": TIMED_EPOCHS}
    options |= {"verbose": False, "cv": [fold], "callbacks": watcher, "executor": None}
    model = type(estimator)(**estimator.get_params() | options).fit(X[few], y[few])
    first, *others = np.diff(watcher.times).tolist()
    epoch, begun = min(others, default=first), time.monotonic()
    model.predict(X[few])
    return Timing(epoch * len(y) / len(few), first - epoch, FOLDS * (time.monotonic() - begun) / len(few), len(few))


def fit_into(
    estimator: Any, X: np.ndarray, y: np.ndarray, timing: Timing, seconds: float, end: float, *, n_test: int, seed: int
) -> tuple[np.ndarray, Deadline, int]:
    """Set the estimator's parameters for a search that ends in time.

    Returns the rows to use, what ends the search, and for how many epochs networks settle that it interrupts.
    """
    parameters, slowdown = estimator.get_params(), measure_slowdown()
    predicting = timing.row * (ALL_PASSES * n_test + SAMPLE_PASSES * min(n_test, MOST_ROWS))
    left = max(0.1, end - reserve(seconds, predicting, slowdown=slowdown) - time.monotonic())
    is_open = isinstance(parameters["penalties"], str) and parameters["budget"] is None
    training, share = estimator._epochs(len(y)) * timing.epoch / cores(), timing.rows / len(y)
    if left >= MOST_COMPILING * timing.compiling:
        plan = plan_search(left - timing.compiling, training, is_open=is_open)
    else:  # there is no time to compile a program for other rows and folds than the measured ones
        n = next((n for n in (5, 3) if is_open and n * FOLDS * SHARE * training * share <= left), 1)
        plan = SearchPlan(n, n, FOLDS, rows=share)
    rows = np.sort(np.random.default_rng(seed).permutation(len(y))[: max(LEAST_ROWS, round(len(y) * plan.rows))])
    epoch = timing.epoch * len(rows) / len(y)
    each = epoch * plan.folds / cores()  # an epoch of all folds
    settling = min(SETTLING_EPOCHS, int(max(0.0, SETTLING_SHARE * left - COMPILING_SETTLING * timing.compiling) / each))
    settling_seconds = COMPILING_SETTLING * timing.compiling + settling * each if settling else 0.0
    deadline = Deadline(end - reserve(seconds, predicting, epoch, slowdown=slowdown) - settling_seconds)
    callbacks = parameters["callbacks"] if isinstance(parameters["callbacks"], list) else [parameters["callbacks"]]
    callbacks = [*(callback for callback in callbacks if callback is not None), deadline]
    estimator.set_params(**options_of(plan, estimator, X[rows], y[rows], is_open=is_open), callbacks=callbacks)
    return rows, deadline, settling


def options_of(plan: SearchPlan, estimator: Any, X: np.ndarray, y: np.ndarray, *, is_open: bool) -> dict[str, Any]:
    """Return the parameters to change; of those that the user set, only `cv` is."""
    parameters: dict[str, Any] = estimator.get_params()
    options: dict[str, Any] = {}
    if plan.settings <= plan.penalties:
        fixed = {"l2s": [L2 / len(y)], "input_dropouts": [0.0]}
        options = {name: value for name, value in fixed.items() if isinstance(parameters[name], str)}
    if is_open and plan.penalties < STEPS[0][1]:
        plain = estimator._plain(price=parameters["price"])
        grid = Search(plain, plain._encoded(X, y), []).penalties("auto")
        options["penalties"] = grid[::2] if plan.penalties > 1 else [grid[len(grid) // 2]]
    if isinstance(parameters["cv"], int):
        options["cv"] = min(parameters["cv"], plan.folds)
    return options
