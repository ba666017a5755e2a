"""How much of a search fits into a time: what one fold takes is measured, then settings, folds and rows are chosen by it.

    options, rows = paced(estimator, X, y, seconds=60.0) → what to change of the estimator, and the rows to search with

The estimators' own search tries some ten settings in five folds, which take about a third of their most epochs. Where that is
too long, first l2 and dropout are not searched, then fewer penalties and folds are, and at last fewer rows. `Deadline` ends it
in any case: the networks are kept as they are then. Imports the estimators.
"""

import time
from typing import Any

import numpy as np

from meristem.estimators.paths import Search, Table
from meristem.paths.training import cores
from meristem.train.state import EpochInfo
from meristem.train.watching import Watcher

L2, LEAST_ROWS = 0.3, 500  # alpha of the l2 in the middle; rows below which nothing is left out
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

    def __init__(self, at: float) -> None:
        self.times, self.at = [time.monotonic()], at

    def epoch(self, member: int, info: EpochInfo) -> bool:
        self.times.append(time.monotonic())
        return self.times[-1] > self.at


def paced(estimator: Any, X: np.ndarray, y: np.ndarray, *, seconds: float, seed: int) -> tuple[dict[str, Any], np.ndarray]:
    """Parameters for a search of at most so many seconds, and which rows to take."""
    begun, given = time.monotonic(), estimator.get_params()
    order = np.random.default_rng(seed).permutation(len(y))
    epoch = _epoch_seconds(estimator, X, y, order, begun + seconds / 4)
    left, epochs = begun + seconds - time.monotonic(), estimator._epochs(len(y))
    is_open = isinstance(given["penalties"], str) and given["budget"] is None
    for settings, penalties, folds in STEPS:
        settings = settings if is_open else max(1, settings // penalties)
        takes = settings * folds * SHARE * epochs * epoch / cores()
        if takes <= left:
            return _options(estimator, X, y, settings, penalties, folds, is_open), np.arange(len(y))
    rows = np.sort(order[: max(LEAST_ROWS, int(len(y) * left / takes))])
    options = _options(estimator, X[rows], y[rows], settings, penalties, folds, is_open)
    return options, rows


def _epoch_seconds(estimator: Any, X: np.ndarray, y: np.ndarray, order: np.ndarray, at: float) -> float:
    """What an epoch of one network takes, its program being compiled: the search finds it ready."""
    times, cut = _Times(at), len(order) // 5
    few = {
        "penalties": [1e-3],
        "l2s": [L2 / len(y)],
        "input_dropouts": [0.0],
        "halving": False,
        "max_epochs": 4,
        "verbose": False,
    }
    trial = type(estimator)(**estimator.get_params() | few | {"cv": [(order[cut:], order[:cut])], "callbacks": times})
    trial.fit(X, y)
    spans = np.diff(times.times)
    return float(spans[1:].min() if len(spans) > 1 else spans.min())


def _options(
    estimator: Any, X: np.ndarray, y: np.ndarray, settings: int, penalties: int, folds: int, is_open: bool
) -> dict[str, Any]:
    """What is not as the estimator has it; nothing that was given is changed, but for the folds."""
    given, options = estimator.get_params(), {}
    if settings <= penalties or not is_open:
        if isinstance(given["l2s"], str):
            options["l2s"] = [L2 / len(y)]
        if isinstance(given["input_dropouts"], str):
            options["input_dropouts"] = [0.0]
    if is_open and penalties < STEPS[0][1]:
        plain = estimator._plain(price=given["price"])
        tried = Search(plain, Table.of(plain, X, y), []).penalties("auto")
        options["penalties"] = tried[::2] if penalties > 1 else [tried[len(tried) // 2]]
    if isinstance(given["cv"], int):
        options["cv"] = min(given["cv"], folds)
    return options
