"""Baselines on the same inputs and rows: a constant, a linear model and scikit-learn's MLP of default size.

Inputs are imputed and scaled as an estimator's are; numbers to predict are standardized. The MLP stops as scikit-learn's does,
after ten epochs without improvement, or when its time is over. If time is short, fewer rows are used; `lacks` says how many.
"""

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from meristem.check import many
from meristem.inputs import Preprocessor
from meristem.report.metric_formulas import Predicted
from meristem.report.scoring import CLASS, LABELS, NUMBER, QUANTILES, Scorer, as_dense, best_constant

NAMES = {"constant": "constant", "linear": "linear model", "mlp": "MLP of default size"}
EPOCHS, PATIENCE, TOLERANCE = 200, 10, 1e-4  # scikit-learn's
TIMED_ROWS, LEAST_EPOCHS = 2000, 20  # rows that fitting is timed with; epochs of the MLP that must fit into its time
FOLDS, LEAST_ROWS = 3, 10
MOST_NUMBERS = 20_000_000  # rows × columns that are learned from
HIDDEN = 100  # units of scikit-learn's MLP
BaselinePredictions = tuple[dict[str, Predicted], dict[str, str]]  # by name of the baseline, and `lacks` where time was short


@dataclass(frozen=True, eq=False)
class Baseline:
    """A fitted baseline."""

    name: str
    predict: Callable[[np.ndarray], np.ndarray]
    predict_proba: Callable[[np.ndarray], np.ndarray] | None = None  # of classes [n, classes]
    lacks: str = ""  # what it had time for, if time was short


def baselines(
    task: str, X: np.ndarray, y: np.ndarray, *, seconds: float | None, seed: int, levels: tuple[float, ...] = ()
) -> Iterator[Baseline]:
    """Yield each baseline as soon as it is fitted; if its time was short, `lacks` says which rows and epochs it could use.

    y and predictions are class indices [n], labels [n, labels], or numbers [n] or [n, columns]. Quantiles,
    and a single class, have the constant alone; `seconds` limits fits to a y of rank 1.
    """
    yield constant_baseline(task, y, levels)
    if task == QUANTILES or (task == CLASS and len(np.unique(y)) < 2):
        return
    preprocess = Preprocessor.of(X)
    z = preprocess(X)
    mean, scale = (y.mean(0), np.where(y.std(0) > 0, y.std(0), 1.0)) if task == NUMBER else (0, 1)
    fits = (("linear", _fit_linear, None if seconds is None else seconds / 3), ("mlp", _fit_mlp, seconds))
    for name, fit, time_limit in fits:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about convergence, and labels that every row has
            model, rows, epochs = fit(task, z, (y - mean) / scale if task == NUMBER else y, time_limit, seed)

        def predict(x: np.ndarray, model: Any = model) -> np.ndarray:
            return np.asarray(mean + scale * model.predict(preprocess(x)))

        def predict_proba(x: np.ndarray, model: Any = model) -> np.ndarray:
            probabilities = np.zeros((len(x), int(y.max()) + 1))
            probabilities[:, model.classes_] = model.predict_proba(preprocess(x))
            return probabilities

        lacks = ([] if epochs is None else [many(epochs, "epoch")]) + [f"{rows:,} of {len(y):,} rows"] * (rows < len(y))
        yield Baseline(name, predict, predict_proba if task == CLASS else None, " and ".join(lacks))


def constant_baseline(task: str, y: np.ndarray, levels: tuple[float, ...] = ()) -> Baseline:
    """Return the best constant for y; of classes, their frequencies are the probabilities."""
    constant, shares = best_constant(task, y, levels), np.bincount(y[y >= 0]) / len(y) if task == CLASS else None
    predict_proba = None if shares is None else lambda x: np.repeat(shares[None], len(x), 0)
    return Baseline("constant", lambda x: np.repeat(constant[None], len(x), 0), predict_proba)


def _fit_linear(task: str, z: np.ndarray, y: np.ndarray, seconds: float | None, seed: int) -> tuple[Any, int, None]:
    """Return the model and how many rows it was fitted on."""
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.multiclass import OneVsRestClassifier

    logistic = LogisticRegression(max_iter=300)
    if task != CLASS:
        return (OneVsRestClassifier(logistic) if task == LABELS else Ridge()).fit(z, y), len(y), None
    rows = _rows_in_time(seconds, lambda some: logistic.fit(z[some], y[some]), y, seed)
    return logistic.fit(z[rows], y[rows]), len(rows), None


def _fit_mlp(task: str, z: np.ndarray, y: np.ndarray, seconds: float | None, seed: int) -> tuple[Any, int, int | None]:
    """Return the model, how many rows it was fitted on, and its epochs if its time was over."""
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    kind = MLPRegressor if task == NUMBER else MLPClassifier
    if y.ndim == 2:
        return kind(random_state=seed, max_iter=100 if task == LABELS else EPOCHS).fit(z, y), len(y), None
    options = {"classes": np.unique(y)} if task == CLASS else {}
    # A generator, not a number: with a number each call of partial_fit would shuffle the rows alike.
    model, best, waited = kind(random_state=np.random.RandomState(seed)), np.inf, 0
    end = np.inf if seconds is None else time.monotonic() + 2 * seconds / 3
    epoch = None if seconds is None else 2 * seconds / 3 / LEAST_EPOCHS
    rows = _rows_in_time(epoch, lambda some: kind(random_state=seed).partial_fit(z[some], y[some], **options), y, seed)
    for number in range(1, EPOCHS + 1):
        model.partial_fit(z[rows], y[rows], **options)
        waited = 0 if model.loss_ < best - TOLERANCE else waited + 1
        best = min(best, model.loss_)
        if waited >= PATIENCE:
            break
        if time.monotonic() > end:
            return model, len(rows), number
    return model, len(rows), None


def _rows_in_time(seconds: float | None, fit: Callable[[np.ndarray], Any], y: np.ndarray, seed: int) -> np.ndarray:
    """Return as many rows as `fit` can take in a time, extrapolated from a fit on some; all of them without a limit."""
    if seconds is None or len(y) <= TIMED_ROWS:
        return np.arange(len(y))
    order = np.random.default_rng(seed).permutation(len(y))
    begin = time.monotonic()
    if len(np.unique(y[order[:TIMED_ROWS]])) < 2:
        return order[:TIMED_ROWS]
    fit(order[:TIMED_ROWS])
    return order[: max(TIMED_ROWS, int(TIMED_ROWS * seconds / (time.monotonic() - begin)))]


def baseline_sizes(estimator: Any, n_columns: int = 1) -> dict[str, int]:
    """Return the parameters of each baseline; it has an output for each column of y, or for each of more than two classes."""
    n_in, n_classes = estimator._inputs_.n_inputs, len(getattr(estimator, "classes_", ()))
    n_out = n_classes if n_classes > 2 else n_columns
    return {"constant": n_out, "linear": (n_in + 1) * n_out, "mlp": (n_in + 1) * HIDDEN + (HIDDEN + 1) * n_out}


def fit_baselines(scorer: Scorer, X: Any, train: tuple[Any, np.ndarray], *, seconds: float, seed: int) -> BaselinePredictions:
    """Return predictions for X of baselines fitted on train=(X, y), with y as in `Scorer.y`."""
    task, (x, y) = scorer.task, train
    rows = np.flatnonzero(y >= 0) if task == CLASS else np.arange(len(y))
    most = max(100, MOST_NUMBERS // max(1, x.shape[1] * (y.shape[1] if task == LABELS else 1)))
    if len(rows) > most:
        rows = np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))
    y = y[rows, 0] if task == NUMBER and y.shape[1] == 1 else y[rows]
    models = list(baselines(task, as_dense(x[rows]), y, seconds=seconds, seed=seed, levels=scorer.levels))
    predictions = {model.name: Predicted.by(model, as_dense(X)) for model in models}
    return predictions, {model.name: model.lacks for model in models if model.lacks}


def cross_predict(scorer: Scorer, X: Any, *, seconds: float, seed: int) -> BaselinePredictions:
    """Return predictions for each third of X by baselines fitted on the other two, as far as all thirds have them.

    The constant is the best one for all rows; with few rows it is the only baseline.
    """
    order, predictions, all_lacks = np.random.default_rng(seed).permutation(len(scorer.y)), [], dict[str, str]()
    for fold in np.array_split(order, FOLDS) if len(order) >= LEAST_ROWS else []:
        rest = np.setdiff1d(order, fold)
        train = X[rest], scorer.y[rest]
        own, lacks = fit_baselines(scorer.subset(fold), X[fold], train, seconds=seconds / FOLDS, seed=seed)
        predictions.append(own)
        all_lacks |= lacks
    names = [name for name in ("linear", "mlp") if predictions and all(name in own for own in predictions)]
    rows = np.argsort(order)
    joined = {name: Predicted.joined([own[name] for own in predictions]).rows(rows) for name in names}
    constant = constant_baseline(scorer.task, scorer.y, scorer.levels)
    return {"constant": Predicted.by(constant, scorer.y)} | joined, all_lacks
