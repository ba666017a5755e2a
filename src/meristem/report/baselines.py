"""Baselines on the same inputs, rows and folds, as people would defend them; each says its settings and its time.

    name          model
    constant      the most frequent class, the mean, or the best quantiles
    last_value    the last target in time, where rows are split by time (`last_value=`)
    linear        ridge or logistic regression, its strength chosen by folds: squared error or log-loss of the held-out rows
    boosting      HistGradientBoosting at scikit-learn's defaults; of a single target
    mlp           MLPClassifier or MLPRegressor at scikit-learn's defaults

Ridge, logistic regression and MLP have inputs that are imputed and scaled as an estimator's are; boosting has them as they are.
Numbers to predict are standardized. How each is fitted is in baseline_models.py.
"""

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from meristem.inputs import Preprocessor
from meristem.paths.folds import Fold
from meristem.report.baseline_models import LEAST_ROWS, TrainingRows, fit_boosting, fit_linear, fit_mlp, probabilities
from meristem.report.metric_formulas import Predicted
from meristem.report.scoring import CLASS, LABELS, NUMBER, QUANTILES, Scorer, as_dense, best_constant

# Short names; of files of earlier versions, whose baselines have no labels, too.
NAMES = {"constant": "constant", "last_value": "last value", "linear": "linear model", "boosting": "gradient boosting"}
NAMES |= {"mlp": "MLP"}
FOLDS = 3
MOST_NUMBERS = 20_000_000  # rows × columns that are learned from
MOST_NUMBERS_OF_A_THREAD = 2_000_000  # with fewer, threads wait for each other longer than they compute
SHARES = {"linear": 0.25, "boosting": 0.25, "mlp": 0.5}  # of the time


@dataclass(frozen=True, eq=False)
class Baseline:
    """A fitted baseline; `label` names its settings, after the first comma."""

    name: str
    label: str
    predict: Callable[[np.ndarray], np.ndarray]
    predict_proba: Callable[[np.ndarray], np.ndarray] | None = None  # of classes [n, classes]
    n_parameters: int | None = None  # None: it has leaves
    seconds: float = 0.0
    lacks: str = ""  # what it had time for, if time was short

    @property
    def facts(self) -> dict[str, Any]:
        """All but the functions, as JSON values."""
        facts = {"label": self.label, "n_parameters": self.n_parameters, "seconds": round(self.seconds, 3)}
        return facts | ({"lacks": self.lacks} if self.lacks else {})


class BaselineResults(NamedTuple):
    """Predictions of baselines, and their facts, by name."""

    predictions: dict[str, Predicted]
    facts: dict[str, dict[str, Any]]


def baselines(
    task: str,
    X: np.ndarray,
    y: np.ndarray,
    *,
    seconds: float | None,
    seed: int,
    levels: tuple[float, ...] = (),
    folds: Sequence[Fold] | None = None,
    n_classes: int = 0,
    last_value: np.ndarray | None = None,
) -> Iterator[Baseline]:
    """Yield each baseline as soon as it is fitted; if its time was short, `lacks` says what it could use.

    y and predictions are class indices [n], labels [n, labels], or numbers [n] or [n, columns]. Quantiles, and a single class,
    have the constant alone; `seconds` limits fits to a y of rank 1.

    folds          those that strengths are chosen by; None: five of random rows
    n_classes      how many columns probabilities have at least
    last_value     the training targets in time order, where rows are split by time; None: no such baseline
    """
    n_classes = max(n_classes, int(y.max(initial=0)) + 1) if task == CLASS else 0
    yield _constant(task, y, levels, n_classes)
    if last_value is not None:
        yield _last_value(last_value)
    if task == QUANTILES or (task == CLASS and len(np.unique(y)) < 2):
        return
    from threadpoolctl import threadpool_limits  # scikit-learn needs it

    preprocess = Preprocessor.of(X)
    z = preprocess(X)
    mean, scale = (y.mean(0), np.where(y.std(0) > 0, y.std(0), 1.0)) if task == NUMBER else (0, 1)
    data = TrainingRows(task, X, z, (y - mean) / scale if task == NUMBER else y, folds, None, seed)
    linear = "ridge regression" if task == NUMBER else "logistic regression"
    fits = {"linear": (linear, fit_linear), "boosting": (NAMES["boosting"], fit_boosting), "mlp": (NAMES["mlp"], fit_mlp)}
    for name, (title, fit) in fits.items():
        if name == "boosting" and y.ndim == 2:
            continue
        begun = time.monotonic()
        with warnings.catch_warnings(), threadpool_limits(1 if X.size <= MOST_NUMBERS_OF_A_THREAD else None):
            warnings.simplefilter("ignore")  # about convergence, and labels that every row has
            own = fit(data._replace(seconds=None if seconds is None else SHARES[name] * seconds))
        inputs = (lambda x: x) if name == "boosting" else preprocess

        def predict(x: np.ndarray, model: Any = own.model, inputs: Any = inputs) -> np.ndarray:
            return np.asarray(mean + scale * model.predict(inputs(x)))

        def predict_proba(x: np.ndarray, model: Any = own.model, inputs: Any = inputs) -> np.ndarray:
            return probabilities(model, inputs(x), n_classes)

        label, taken = f"{title}, {own.settings}", time.monotonic() - begun
        proba = predict_proba if task == CLASS else None
        yield Baseline(name, label, predict, proba, own.n_parameters, taken, " and ".join(own.lacks))


def last_value(targets: np.ndarray, n: int) -> np.ndarray:
    """Return the last of the targets, in time order, as the prediction of n later rows.

    >>> last_value(np.array([3.0, 5.0, 4.0]), 2).tolist()
    [4.0, 4.0]
    """
    return np.repeat(np.asarray(targets)[-1:], n, 0)


def _last_value(targets: np.ndarray) -> Baseline:
    return Baseline("last_value", "last value, of the training rows", lambda x: last_value(targets, len(x)), n_parameters=1)


def _constant(task: str, y: np.ndarray, levels: tuple[float, ...], n_classes: int) -> Baseline:
    """Return the best constant; its probabilities are the shares of the classes, or of the labels."""
    constant = best_constant(task, y, levels)
    shares = np.bincount(y, minlength=n_classes) / max(1, len(y)) if task == CLASS else y.mean(0)
    words = {CLASS: "the most frequent class", LABELS: "label by label", NUMBER: "the mean", QUANTILES: "the quantiles"}[task]
    proba = (lambda x: np.repeat(shares[None], len(x), 0)) if task == CLASS else None
    return Baseline("constant", f"constant, {words}", lambda x: np.repeat(constant[None], len(x), 0), proba, constant.size)


def fit_baselines(scorer: Scorer, X: Any, train: tuple[Any, np.ndarray], *, seconds: float, seed: int) -> BaselineResults:
    """Return what baselines fitted on train=(X, y), with y as in `Scorer.y`, predict for X."""
    task, (x, y) = scorer.task, train
    rows = np.flatnonzero(y >= 0) if task == CLASS else np.arange(len(y))
    most = max(100, MOST_NUMBERS // max(1, x.shape[1] * (y.shape[1] if task == LABELS else 1)))
    if len(rows) > most:
        rows = np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))
    y = y[rows, 0] if task == NUMBER and y.shape[1] == 1 else y[rows]
    options: dict[str, Any] = {"levels": scorer.levels, "n_classes": len(scorer.labels)}
    models = list(baselines(task, as_dense(x[rows]), y, seconds=seconds, seed=seed, **options))
    predictions = {model.name: Predicted.by(model, as_dense(X)) for model in models}
    return BaselineResults(predictions, {model.name: model.facts for model in models})


def cross_predict(scorer: Scorer, X: Any, *, seconds: float, seed: int) -> BaselineResults:
    """Return predictions for each third of X by baselines fitted on the other two, as far as all thirds have them.

    The constant is the best one for all rows; with few rows it is the only baseline. Settings are those of the first third.
    """
    order, results = np.random.default_rng(seed).permutation(len(scorer.y)), list[BaselineResults]()
    for fold in np.array_split(order, FOLDS) if len(order) >= LEAST_ROWS else []:
        rest = np.setdiff1d(order, fold)
        train = X[rest], scorer.y[rest]
        results.append(fit_baselines(scorer.subset(fold), X[fold], train, seconds=seconds / FOLDS, seed=seed))
    names = [name for name in SHARES if results and all(name in own.facts for own in results)]
    rows = np.argsort(order)
    joined = {name: Predicted.joined([own.predictions[name] for own in results]).rows(rows) for name in names}
    facts = {name: results[0].facts[name] | {"seconds": sum(own.facts[name]["seconds"] for own in results)} for name in names}
    for own in results:
        facts |= {name: facts[name] | {"lacks": own.facts[name]["lacks"]} for name in names if "lacks" in own.facts[name]}
    y = scorer.y[scorer.y >= 0] if scorer.task == CLASS else scorer.y
    constant = _constant(scorer.task, y, scorer.levels, len(scorer.labels))
    return BaselineResults({"constant": Predicted.by(constant, scorer.y)} | joined, {"constant": constant.facts} | facts)
