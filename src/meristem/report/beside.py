"""What a score is to be seen beside: a constant, a linear model and an MLP of default size, on the same rows.

    fitted_beside(judge, X, train=(X, encoded y), …) → Others({"constant": said, "linear": said, "mlp": said}, what time took)
    crossed(judge, X, …)      the same where there are no other rows to learn from: each third is predicted from the two others

Of one class, or of fewer than ten rows, the constant alone. Imports baselines and scikit-learn; evidence and commands
import it.
"""

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from meristem.report.baselines import Baseline, baselines
from meristem.report.judge import CLASS, LABELS, NUMBER, QUANTILES, Judge

NAMES = {"constant": "constant", "linear": "linear model", "mlp": "MLP of default size"}
PARTS, LEAST_ROWS = 3, 10
MOST_NUMBERS = 20_000_000  # rows × columns that are learned from
HIDDEN = 100  # units of scikit-learn's MLP


class Others(NamedTuple):
    """What each says, by its name, and of those that time cut short what they had, in words."""

    said: dict[str, np.ndarray]
    lacks: dict[str, str]


def n_parameters(n_in: int, n_values: int) -> dict[str, int]:
    """Of each, where a row has so many inputs and so many values are said of it.

    >>> n_parameters(4, 3)
    {'constant': 3, 'linear': 15, 'mlp': 803}
    """
    return {"constant": n_values, "linear": (n_in + 1) * n_values, "mlp": (n_in + 1) * HIDDEN + (HIDDEN + 1) * n_values}


def sizes_beside(estimator: Any, facts: dict[str, Any]) -> dict[str, int]:
    """The same beside a fitted estimator of a table, by its facts."""
    classes = facts["classes"] or []
    return n_parameters(estimator._inputs_.n_inputs, len(classes) if len(classes) > 2 else 1)


def fitted_beside(judge: Judge, X: Any, train: tuple[Any, np.ndarray], *, seconds: float, seed: int) -> Others:
    """What each says of X, learned from rows of their own; y as `Judge.y` has it."""
    rows = _usable(judge, train[1], train[0].shape[1], seed)
    x, y, tested = _dense(train[0][rows]), train[1][rows], _dense(X)
    fitted = list(_models(judge, x, y, seconds, seed))
    said = {one.name: np.asarray(one.predict(tested)) for one in fitted}
    return Others(said, {one.name: one.lacks for one in fitted if one.lacks})


def crossed(judge: Judge, X: Any, *, seconds: float, seed: int) -> Others:
    """What each says of a third of X, learned from the others; only those that all thirds have."""
    order = np.random.default_rng(seed).permutation(len(judge.y))
    parts = np.array_split(order, PARTS) if len(order) >= LEAST_ROWS else [order]
    found: list[Others] = []
    for part in parts:
        rest = np.setdiff1d(order, part) if len(parts) > 1 else part
        found.append(fitted_beside(judge.part(part), X[part], (X[rest], judge.y[rest]), seconds=seconds / PARTS, seed=seed))
    names = [name for name in NAMES if all(name in one.said for one in found) and (len(parts) > 1 or name == "constant")]
    back = np.argsort(np.concatenate(parts))
    said = {name: np.concatenate([one.said[name] for one in found])[back] for name in names}
    return Others(said, {name: lacks for one in found for name, lacks in one.lacks.items()})


def _models(judge: Judge, x: np.ndarray, y: np.ndarray, seconds: float, seed: int) -> Iterator[Baseline]:
    if judge.kind == QUANTILES:
        best = np.quantile(y, judge.levels, axis=0).T.reshape(1, -1)
        yield Baseline("constant", lambda new: np.repeat(best, len(new), 0))
    elif judge.kind == LABELS or (judge.kind == NUMBER and y.shape[1] > 1):
        yield from _of_many(judge.kind, x, y, seed)
    elif judge.kind == NUMBER or len(np.unique(y)) > 1:
        yield from baselines(judge.kind, x, y if judge.kind == CLASS else y[:, 0], seconds=seconds, seed=seed)
    else:
        only = y[0] if len(y) else 0
        yield Baseline("constant", lambda new: np.full(len(new), only))


def _of_many(kind: str, x: np.ndarray, y: np.ndarray, seed: int) -> Iterator[Baseline]:
    """Of several labels or numbers a row."""
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    from meristem.inputs import Preprocessor

    columns, mean, scale = Preprocessor.of(x), y.mean(0), np.where(y.std(0) > 0, y.std(0), 1)
    best = (mean > 0.5).astype(float) if kind == LABELS else mean
    yield Baseline("constant", lambda new: np.repeat(best[None], len(new), 0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of iterations that were not enough, and of labels that are always there
        if kind == LABELS:
            linear = OneVsRestClassifier(LogisticRegression(max_iter=300)).fit(columns(x), y)
            mlp = MLPClassifier(random_state=seed, max_iter=100).fit(columns(x), y)
            yield Baseline("linear", lambda new: linear.predict(columns(new)))
            yield Baseline("mlp", lambda new: mlp.predict(columns(new)))
        else:
            ridge = Ridge().fit(columns(x), y)
            numbers = MLPRegressor(random_state=seed).fit(columns(x), (y - mean) / scale)
            yield Baseline("linear", lambda new: ridge.predict(columns(new)))
            yield Baseline("mlp", lambda new: mean + scale * numbers.predict(columns(new)))


def _usable(judge: Judge, y: np.ndarray, width: int, seed: int) -> np.ndarray:
    """The rows to learn from: those of known classes, and not more than a few seconds are enough for."""
    rows = np.flatnonzero(y >= 0) if judge.kind == CLASS else np.arange(len(y))
    most = max(100, MOST_NUMBERS // max(1, width * (y.shape[1] if judge.kind == LABELS else 1)))
    return rows if len(rows) <= most else np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))


def _dense(X: Any) -> np.ndarray:
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, float)
