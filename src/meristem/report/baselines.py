"""Baselines on the same inputs, rows and folds, as people would defend them, and how much better than them a model is.

    name          model
    constant      the most frequent class, the mean, or the best quantiles
    last_value    the last target in time, where rows are split by time (`last_value=`)
    linear        ridge or logistic regression, its strength chosen by folds: squared error or log-loss of the held-out rows
    boosting      HistGradientBoosting at scikit-learn's defaults; of a single target
    mlp           MLPClassifier or MLPRegressor at scikit-learn's defaults

Ridge, logistic regression and MLP have inputs that are imputed and scaled as an estimator's are; boosting has them as they are.
Numbers to predict are standardized. How each is fitted is in baseline_models.py. Each says its settings and its time.

    compare(scorer, predictions, baselines, facts, seed, outcome=…, metric=…) → a Comparison of each baseline

Where the predictions of both are known, differences are taken row by row; of a file they are those that `fit` stored, or as of
independent samples. The metric is the headline's (task_metrics.py). Used by report_data.py and tables/fitting.py.
"""

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from meristem.inputs import Preprocessor
from meristem.paths.folds import Fold
from meristem.report.baseline_models import LEAST_ROWS, TrainingRows, fit_boosting, fit_linear, fit_mlp, probabilities
from meristem.report.scoring import CLASS, LABELS, NUMBER, QUANTILES, Scorer, as_dense, best_constant
from meristem.report.task_metrics import BY_LABEL, DEFAULTS, Metric, Outcome, Predicted, values

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
    without: Sequence[str] = (),
) -> Iterator[Baseline]:
    """Yield each baseline as soon as it is fitted; if its time was short, `lacks` says what it could use.

    y and predictions are class indices [n], labels [n, labels], or numbers [n] or [n, columns]. Quantiles, and a single class,
    have the constant alone; `seconds` limits fits to a y of rank 1.

    folds          those that strengths are chosen by; None: five of random rows
    n_classes      how many columns probabilities have at least
    without        names of baselines that are left out
    last_value     the training targets in time order, where rows are split by time; None: no such baseline
    """
    n_classes = max(n_classes, int(y.max(initial=0)) + 1) if task == CLASS else 0
    yield _constant(task, y, levels, n_classes)
    if last_value is not None:
        last = last_value[-1:]
        yield Baseline("last_value", "last value, of the training rows", lambda x: np.repeat(last, len(x), 0), n_parameters=1)
    if task == QUANTILES or (task == CLASS and len(np.unique(y)) < 2):
        return
    preprocess = Preprocessor.of(X)
    z = preprocess(X)
    mean, scale = (y.mean(0), np.where(y.std(0) > 0, y.std(0), 1.0)) if task == NUMBER else (0, 1)
    data = TrainingRows(task, X, z, (y - mean) / scale if task == NUMBER else y, folds, None, seed)
    linear = "ridge regression" if task == NUMBER else "logistic regression"
    fits = {"linear": (linear, fit_linear), "boosting": (NAMES["boosting"], fit_boosting), "mlp": (NAMES["mlp"], fit_mlp)}
    for name, (title, fit) in fits.items():
        if name in without or (name == "boosting" and y.ndim == 2):
            continue
        begun = time.monotonic()
        with warnings.catch_warnings(), limited_threads(X):
            warnings.simplefilter("ignore")  # about convergence, and labels that every row has
            own = fit(data._replace(seconds=None if seconds is None else SHARES[name] * seconds))
        inputs = (lambda x: x) if name == "boosting" else preprocess

        def predict(x: np.ndarray, model: Any = own.model, inputs: Any = inputs) -> np.ndarray:
            with limited_threads(x):
                return np.asarray(mean + scale * model.predict(inputs(x)))

        def predict_proba(x: np.ndarray, model: Any = own.model, inputs: Any = inputs) -> np.ndarray:
            with limited_threads(x):
                return probabilities(model, inputs(x), n_classes)

        label, taken = f"{title}, {own.settings}", time.monotonic() - begun
        proba = predict_proba if task == CLASS else None
        yield Baseline(name, label, predict, proba, own.n_parameters, taken, " and ".join(own.lacks))


def limited_threads(X: np.ndarray) -> AbstractContextManager[Any]:
    """Return a context in which scikit-learn has one thread for few numbers: threads wait busily for one another."""
    from threadpoolctl import threadpool_limits  # scikit-learn needs it

    return threadpool_limits(1 if X.size <= MOST_NUMBERS_OF_A_THREAD else None)


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


@dataclass(frozen=True)
class Comparison:
    """A baseline on the same rows; `gain` is how much better the model scores, with its 95 % interval."""

    name: str
    score: dict[str, Any]
    gain: tuple[float, float, float]
    n_parameters: int | None  # None: it has leaves, or an earlier version did not count them
    same: tuple[str, int] | None = None  # ("predictions" or "scores", rows) if both models have the same on all rows
    settings: str = ""
    seconds: float | None = None
    metrics: dict[str, float] = field(default_factory=dict)  # all that apply, by name


def compare(
    scorer: Scorer,
    predictions: np.ndarray,
    baselines: dict[str, Predicted],
    facts: dict[str, dict[str, Any]],
    seed: int,
    *,
    outcome: Outcome | None = None,
    metric: Metric | None = None,
) -> tuple[Comparison, ...]:
    """Compare a model with baselines row by row, given their predictions and facts: score and gain, too, if they are known."""
    losses, comparisons = scorer.losses(predictions), []
    is_by_rows = metric is None or metric in DEFAULTS.values()
    for name, others in baselines.items():
        other_losses, own, same = scorer.losses(others.values), facts[name], None
        other = None if outcome is None else replace(outcome, predicted=others)
        score = own if "value" in own else score_by(metric, scorer, other, others.values, seed)
        if is_by_rows and np.array_equal(losses, other_losses):
            same = ("predictions" if np.array_equal(predictions.ravel(), others.values.ravel()) else "scores", len(losses))
        gain = _stored_gain(own)
        if gain is None and metric is not None and outcome is not None and not is_by_rows:
            gain = metric.gain(outcome, others, seed)
        metrics = own.get("test", {} if other is None else values(other))
        comparisons.append(_comparison(name, own, score, gain or scorer.gain(losses, other_losses, seed), metrics, same))
    return tuple(comparisons)


def score_by(metric: Metric | None, scorer: Scorer, outcome: Any, predictions: np.ndarray, seed: int) -> dict[str, Any]:
    """Return the score by a metric, or by the measure of the task, which is not defined where all numbers are the same."""
    if metric is None or metric in DEFAULTS.values():
        return scorer.score(scorer.losses(predictions), seed)
    return metric.score(outcome, seed)


def compare_scores(facts: dict[str, dict[str, Any]], score: dict[str, Any], *, is_held_out: bool) -> tuple[Comparison, ...]:
    """Compare a model with baselines by the gains of the fit; or if these are not known, or of other rows, by scores alone."""
    comparisons, sign = [], -1 if BY_LABEL[score["measure"]].lower_is_better else 1
    for name, other in sorted(facts.items(), key=lambda item: list(NAMES).index(item[0])):  # files have them by name
        gain = sign * (score["value"] - other["value"])
        half = float(np.hypot(score["high"] - score["low"], other["high"] - other["low"]) / 2)
        stored = _stored_gain(other) if is_held_out else None
        comparisons.append(_comparison(name, other, other, stored or (gain, gain - half, gain + half), other.get("test", {})))
    return tuple(comparisons)


def short_of_time(facts: dict[str, dict[str, Any]]) -> str:
    """Return a sentence for each baseline that had too little time."""
    sentence = " Of {} there was time for {} only; with more it may score higher."
    lacks = {_title(name, own)[0]: own["lacks"] for name, own in facts.items() if "lacks" in own}
    return "".join(sentence.format(name, used) for name, used in lacks.items())


def _stored_gain(facts: dict[str, Any]) -> tuple[float, float, float] | None:
    gain = facts.get("gain")
    return None if gain is None else (gain["value"], gain["low"], gain["high"])


def _title(name: str, facts: dict[str, Any]) -> tuple[str, str]:
    """Return the short name of a baseline and its settings."""
    title, _, settings = str(facts.get("label", NAMES[name])).partition(", ")
    return title, settings


def _comparison(
    name: str, facts: dict[str, Any], score: dict[str, Any], gain: Any, metrics: dict[str, float], same: Any = None
) -> Comparison:
    title, settings = _title(name, facts)
    return Comparison(title, score, gain, facts.get("n_parameters"), same, settings, facts.get("seconds"), metrics)
