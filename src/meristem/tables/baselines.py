"""What a score is to be seen beside: a constant, a linear model and an MLP of default size, fitted on the same inputs and rows.

    for name, predict in baselines("class", X, y, seconds=None, seed=0): predict(X_of_the_test_part)

Inputs are filled and scaled as an estimator's are; numbers to predict are standardized. An MLP ends as scikit-learn's does,
when ten epochs were no better, or with its time; where time is short, fewer rows are taken. Imports scikit-learn.
"""

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from meristem.columns import Columns

EPOCHS, PATIENCE, TOLERANCE = 200, 10, 1e-4  # scikit-learn's
TRIED, LEAST_EPOCHS = 2000, 20  # rows that a time is measured with; epochs of the MLP that must fit in
Predict = Callable[[np.ndarray], np.ndarray]


def baselines(task: str, X: np.ndarray, y: np.ndarray, *, seconds: float | None, seed: int) -> Iterator[tuple[str, Predict]]:
    """Each by its name, when it is fitted; y and what is predicted are places of classes, or numbers.

    >>> X, y = np.arange(20.0)[:, None], np.arange(20) // 10
    >>> {name: predict(X[[0, 19]]).tolist() for name, predict in baselines("class", X, y, seconds=None, seed=0)}["linear"]
    [0, 1]
    """
    columns = Columns.of(X)
    z = columns(X)
    constant = np.bincount(y).argmax() if task == "class" else y.mean()
    yield "constant", lambda x: np.full(len(x), constant)
    mean, scale = (0, 1) if task == "class" else (y.mean(), y.std() or 1.0)
    learned = y if task == "class" else (y - mean) / scale
    linear = _linear(task, z, learned, None if seconds is None else seconds / 3, seed)
    yield "linear", lambda x: mean + scale * linear.predict(columns(x))
    mlp = _mlp(task, z, learned, seconds, seed)
    yield "mlp", lambda x: mean + scale * mlp.predict(columns(x))


def _linear(task: str, z: np.ndarray, y: np.ndarray, seconds: float | None, seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression, Ridge

    if task != "class":
        return Ridge().fit(z, y)

    def fit(rows: np.ndarray) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of iterations that were not enough
            return LogisticRegression(max_iter=300).fit(z[rows], y[rows])

    return fit(_rows_within(seconds, fit, y, seed))


def _mlp(task: str, z: np.ndarray, y: np.ndarray, seconds: float | None, seed: int) -> Any:
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    kind, more = (MLPClassifier, {"classes": np.unique(y)}) if task == "class" else (MLPRegressor, {})
    model, best, waited = kind(random_state=seed), np.inf, 0
    end = np.inf if seconds is None else time.monotonic() + 2 * seconds / 3
    epoch = None if seconds is None else 2 * seconds / 3 / LEAST_EPOCHS
    rows = _rows_within(epoch, lambda few: kind(random_state=seed).partial_fit(z[few], y[few], **more), y, seed)
    for _ in range(EPOCHS):
        model.partial_fit(z[rows], y[rows], **more)
        waited = 0 if model.loss_ < best - TOLERANCE else waited + 1
        best = min(best, model.loss_)
        if waited >= PATIENCE or time.monotonic() > end:
            break
    return model


def _rows_within(seconds: float | None, fit: Callable[[np.ndarray], Any], y: np.ndarray, seed: int) -> np.ndarray:
    """As many rows as `fit` takes so long for, by what it takes for some; all of them where nobody counts."""
    if seconds is None or len(y) <= TRIED:
        return np.arange(len(y))
    order = np.random.default_rng(seed).permutation(len(y))
    begun = time.monotonic()
    if len(np.unique(y[order[:TRIED]])) < 2:
        return order[:TRIED]
    fit(order[:TRIED])
    return order[: max(TRIED, int(TRIED * seconds / (time.monotonic() - begun)))]
