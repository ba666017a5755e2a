"""Fit a search over penalties into a time limit: time an epoch, then choose penalties, folds and epochs by what it took.

Where the default search is too long, first a share is held out once in place of folds, then a single penalty is tried, and at
last trainings have fewer epochs. A deadline ends the search in any case: the model is then the best network so far.
"""

import time
from typing import Any

import numpy as np

from meristem.estimators.image_classifier import PENALTY, TunnelImageClassifier
from meristem.estimators.image_cv import PENALTIES, ImageSearch
from meristem.estimators.parameters import parameters_of
from meristem.tables.time_limit import Deadline as Deadline, measure_slowdown, reserve

LEAST_EPOCHS, TIMED_EPOCHS = 8, 3
HELD_OUT = 0.2
MARGIN = 1.3  # of an epoch, whose time was that of all gates open and of no held-out pictures


def fit_into(estimator: Any, search: ImageSearch, groups: np.ndarray | None, seconds: float, end: float) -> ImageSearch:
    """Set the parameters of an estimator for a search that ends in time, and return that search."""
    x, labels, timing = search.table.x, search.labels, Deadline(end)
    names = parameters_of(estimator).keys() & parameters_of(TunnelImageClassifier)
    plain = TunnelImageClassifier(**{name: getattr(estimator, name) for name in names})
    plain.set_params(callbacks=timing, epochs=TIMED_EPOCHS, verbose=False).fit(x, labels)
    first, *others = np.diff(timing.times).tolist()
    epoch = MARGIN * min(others, default=first)
    left = end - reserve(seconds, 0.0, epoch, slowdown=measure_slowdown()) - time.monotonic() - max(0.0, first - epoch)
    penalties = list(PENALTIES) if isinstance(estimator.penalties, str) else list(estimator.penalties)
    tried = [(penalties, estimator.cv, len(search.folds)), (penalties, HELD_OUT, 1), ([PENALTY], HELD_OUT, 1)]
    n_trainings = [(len(own) if estimator.budget is None else 1) * folds + 1 for own, _, folds in tried]
    epochs = [int(left / epoch / n) for n in n_trainings]
    at = next((at for at, own in enumerate(epochs) if own >= search.epochs), len(tried) - 1)
    own, cv, _ = tried[at]
    estimator.set_params(penalties=own, cv=cv, epochs=max(LEAST_EPOCHS, min(epochs[at], search.epochs)))
    callbacks = estimator.callbacks if isinstance(estimator.callbacks, list) else [estimator.callbacks]
    deadline = Deadline(end - reserve(seconds, 0.0, epoch))
    estimator.set_params(callbacks=[*(callback for callback in callbacks if callback is not None), deadline])
    planned: ImageSearch = estimator._planned(x, labels, groups=groups)
    return planned
