"""What a score is to be seen beside: a constant, a linear model and an MLP of default size, fitted on the same inputs and rows.

    for name, predict, lacks in baselines("class", X, y, seconds=None, seed=0): predict(X_of_the_test_part)

Inputs are filled and scaled as an estimator's are; numbers to predict are standardized. An MLP ends as scikit-learn's does,
when ten epochs were no better, or with its time; where time is short, fewer rows are taken, and `lacks` says so in words.
Imports scikit-learn; beside and tables/fitting import it.
"""

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from meristem.check import many
from meristem.inputs import Preprocessor

EPOCHS, PATIENCE, TOLERANCE = 200, 10, 1e-4  # scikit-learn's
TRIED, LEAST_EPOCHS = 2000, 20  # rows that a time is measured with; epochs of the MLP that must fit in
Predict = Callable[[np.ndarray], np.ndarray]


class Baseline(NamedTuple):
    """A model by its name; `lacks`: what time took from it, in words, or nothing."""

    name: str
    predict: Predict
    lacks: str = ""


def baselines(task: str, X: np.ndarray, y: np.ndarray, *, seconds: float | None, seed: int) -> Iterator[Baseline]:
    """Each when it is fitted; y and what is predicted are places of classes, or numbers.

    >>> X, y = np.arange(20.0)[:, None], np.arange(20) // 10
    >>> {one.name: one.predict(X[[0, 19]]).tolist() for one in baselines("class", X, y, seconds=None, seed=0)}["linear"]
    [0, 1]
    """
    columns = Preprocessor.of(X)
    z = columns(X)
    constant = np.bincount(y).argmax() if task == "class" else y.mean()
    yield Baseline("constant", lambda x: np.full(len(x), constant))
    mean, scale = (0, 1) if task == "class" else (y.mean(), y.std() or 1.0)
    learned = y if task == "class" else (y - mean) / scale
    linear, rows = _linear(task, z, learned, None if seconds is None else seconds / 3, seed)
    yield Baseline("linear", lambda x: mean + scale * linear.predict(columns(x)), _lacks(rows, len(y)))
    mlp, rows, epochs = _mlp(task, z, learned, seconds, seed)
    yield Baseline("mlp", lambda x: mean + scale * mlp.predict(columns(x)), _lacks(rows, len(y), epochs))


def _lacks(rows: int, n: int, epochs: int | None = None) -> str:
    """What it had, where that is not all.

    >>> _lacks(10, 10), _lacks(2000, 8000, 7), _lacks(10, 10, 1)
    ('', '7 epochs and 2,000 of 8,000 rows', '1 epoch')
    """
    parts = [] if epochs is None else [many(epochs, "epoch")]
    return " and ".join(parts + ([f"{rows:,} of {n:,} rows"] if rows < n else []))


def _linear(task: str, z: np.ndarray, y: np.ndarray, seconds: float | None, seed: int) -> tuple[Any, int]:
    """The model, and how many rows it had."""
    from sklearn.linear_model import LogisticRegression, Ridge

    if task != "class":
        return Ridge().fit(z, y), len(y)

    def fit(rows: np.ndarray) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of iterations that were not enough
            return LogisticRegression(max_iter=300).fit(z[rows], y[rows])

    rows = _rows_within(seconds, fit, y, seed)
    return fit(rows), len(rows)


def _mlp(task: str, z: np.ndarray, y: np.ndarray, seconds: float | None, seed: int) -> tuple[Any, int, int | None]:
    """The model, how many rows it had, and epochs, where its time ended it."""
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    kind, more = (MLPClassifier, {"classes": np.unique(y)}) if task == "class" else (MLPRegressor, {})
    # A generator, not a number: with a number each call of partial_fit would shuffle the rows alike.
    model, best, waited = kind(random_state=np.random.RandomState(seed)), np.inf, 0
    end = np.inf if seconds is None else time.monotonic() + 2 * seconds / 3
    epoch = None if seconds is None else 2 * seconds / 3 / LEAST_EPOCHS
    rows = _rows_within(epoch, lambda few: kind(random_state=seed).partial_fit(z[few], y[few], **more), y, seed)
    for number in range(1, EPOCHS + 1):
        model.partial_fit(z[rows], y[rows], **more)
        waited = 0 if model.loss_ < best - TOLERANCE else waited + 1
        best = min(best, model.loss_)
        if waited >= PATIENCE:
            break
        if time.monotonic() > end:
            return model, len(rows), number
    return model, len(rows), None


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
