"""How each learned baseline is fitted: ridge or logistic regression, gradient boosting, and an MLP; for baselines.py.

The strength of a linear model is chosen by folds: the lowest squared error, or log-loss, of held-out rows. Boosting and MLP are
scikit-learn's at their defaults. Where time is short, `lacks` says what is fewer: rows, columns, strengths, trees or epochs.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from meristem.check import many
from meristem.paths.folds import Fold
from meristem.report.scoring import CLASS, LABELS, NUMBER

ALPHAS = tuple(10.0**power for power in range(4, -4, -1))  # of ridge regression, the strongest first
COSTS = tuple(10.0**power for power in range(-3, 4))  # C of logistic regression, the strongest first
DEFAULT_STRENGTH, STRENGTH_FOLDS, LEAST_ROWS = 1.0, 5, 10
EPOCHS, PATIENCE, TOLERANCE = 200, 10, 1e-4  # scikit-learn's
TREES, TREES_AT_ONCE = 100, 10  # scikit-learn's; the most trees between two looks at the clock, after the first few
TIMED_ROWS, LEAST_EPOCHS = 2000, 20  # rows that fitting is timed with; epochs of the MLP that must fit into its time
TIMED_COLUMNS, FEW_COLUMNS = 100, 1000  # columns that boosting is timed with; of so many it always has all
LEAST_PROBABILITY = 1e-9  # in a log-loss


class TrainingRows(NamedTuple):
    """What a baseline is fitted to: features, scaled inputs, targets; `seconds` is its own limit, None: none."""

    task: str
    x: np.ndarray
    z: np.ndarray
    y: np.ndarray
    folds: Sequence[Fold] | None  # None: five of random rows
    seconds: float | None
    seed: int


class FittedModel(NamedTuple):
    """A model of scikit-learn's, its settings in words, its parameters (None: it has leaves), and what it had time for."""

    model: Any
    settings: str
    n_parameters: int | None
    lacks: list[str]


class OfColumns(NamedTuple):
    """A model of scikit-learn's that was fitted to some of the columns."""

    model: Any
    columns: np.ndarray

    @property
    def classes_(self) -> np.ndarray:
        return np.asarray(self.model.classes_)

    def predict(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(self.model.predict(x[:, self.columns]))

    def predict_proba(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(self.model.predict_proba(x[:, self.columns]))


def probabilities(model: Any, inputs: np.ndarray, n_classes: int) -> np.ndarray:
    """Return probabilities [n, classes], 0 for those that the model has not seen; of labels [n, labels]."""
    proba = np.asarray(model.predict_proba(inputs), float)
    if not n_classes:
        return proba
    columns = np.zeros((len(inputs), n_classes))
    columns[:, model.classes_] = proba / proba.sum(1, keepdims=True)  # those of an MLP are in single precision
    return columns


def fit_linear(data: TrainingRows) -> FittedModel:
    """Return ridge or logistic regression; a row of labels has one of each, at scikit-learn's default strength."""
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.multiclass import OneVsRestClassifier

    task, y, seed = data.task, data.y, data.seed
    if task == LABELS:
        model = OneVsRestClassifier(LogisticRegression(max_iter=300)).fit(data.z, y)
        return FittedModel(model, f"C = {DEFAULT_STRENGTH:g}", (data.z.shape[1] + 1) * y.shape[1], [])
    z = data.z.astype(float)  # a weak ridge is singular in single precision

    def make(strength: float) -> Any:
        return Ridge(alpha=strength) if task == NUMBER else LogisticRegression(C=strength, max_iter=300)

    symbol, strengths = ("α", ALPHAS) if task == NUMBER else ("C", COSTS)
    folds, n_fits = data.folds, len(strengths) * (STRENGTH_FOLDS if data.folds is None else len(data.folds))
    deadline = np.inf if data.seconds is None else time.monotonic() + data.seconds
    each = None if data.seconds is None else data.seconds / (n_fits + 1)
    rows = _rows_in_time(each, lambda some: make(DEFAULT_STRENGTH).fit(z[some], y[some]), y, seed)
    if len(rows) < len(y):
        z, y, folds = z[rows], y[rows], None
    folds = _random_folds(task, y, seed) if folds is None else folds
    strength, was_searched = _best_strength(task, z, y, folds, strengths, make, deadline)
    model = make(strength).fit(z, y)
    lacks = [] if was_searched or len(y) < LEAST_ROWS else [f"{symbol} = {strength:g}"]
    by_folds = f" by {len(folds)}-fold cross-validation" if was_searched else ""
    size = int(np.size(model.coef_) + np.size(model.intercept_))
    return FittedModel(model, f"{symbol} = {strength:g}{by_folds}", size, lacks + _fewer_rows(rows, data.y))


def _random_folds(task: str, y: np.ndarray, seed: int) -> list[Fold]:
    """Return five folds, stratified if the classes have as many rows; none of very few rows."""
    from sklearn.model_selection import KFold, StratifiedKFold

    if len(y) < LEAST_ROWS:
        return []
    is_stratified = task == CLASS and np.bincount(y).max() >= STRENGTH_FOLDS
    kind = StratifiedKFold if is_stratified else KFold
    return list(kind(STRENGTH_FOLDS, shuffle=True, random_state=seed).split(np.zeros(len(y)), y))


def _best_strength(
    task: str,
    z: np.ndarray,
    y: np.ndarray,
    folds: Sequence[Fold],
    strengths: Sequence[float],
    make: Callable[[float], Any],
    deadline: float,
) -> tuple[float, bool]:
    """Return the strength of the lowest mean held-out loss, and whether there was time and rows to search it.

    From strong to weak regularization; the search ends when two strengths in a row are worse than the best.
    """
    folds = [fold for fold in folds if task == NUMBER or len(np.unique(y[fold[0]])) > 1]
    losses: list[float] = []
    for strength in strengths if folds else []:
        if time.monotonic() > deadline:
            return DEFAULT_STRENGTH, False
        losses.append(float(np.mean([_held_out_loss(task, make(strength), z, y, fold) for fold in folds])))
        if len(losses) - 1 - int(np.argmin(losses)) >= 2:
            break
    return (strengths[int(np.argmin(losses))], True) if losses else (DEFAULT_STRENGTH, False)


def _held_out_loss(task: str, model: Any, z: np.ndarray, y: np.ndarray, fold: Fold) -> float:
    """Return the squared error, or the log-loss, of the held-out rows of a fold."""
    train, held_out = fold
    model.fit(z[train], y[train])
    if task == NUMBER:
        return float(((y[held_out] - model.predict(z[held_out])) ** 2).mean())
    proba = probabilities(model, z[held_out], int(y.max()) + 1)[np.arange(len(held_out)), y[held_out]]
    return float(-np.log(np.maximum(proba, LEAST_PROBABILITY)).mean())


def fit_boosting(data: TrainingRows) -> FittedModel:
    """Return gradient boosting; with a time limit, ten trees at a time, of the columns that there is time for."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    x, y, is_class = data.x, data.y, data.task == CLASS
    kind = HistGradientBoostingClassifier if is_class else HistGradientBoostingRegressor
    options: dict[str, Any] = {"random_state": data.seed}
    if is_class and np.bincount(y)[np.unique(y)].min() < 2:
        options["early_stopping"] = False  # it holds out rows of every class
    rows, columns, lacks = np.arange(len(y)), np.arange(x.shape[1]), list[str]()
    if data.seconds is None:
        model = kind(**options, max_iter=TREES).fit(x, y)
    else:
        deadline, few = time.monotonic() + data.seconds, {"max_iter": TREES_AT_ONCE}
        columns = _columns_in_time(data.seconds / 4, lambda some, of: kind(**options | few).fit(x[some][:, of], y[some]), data)
        x = x[:, columns]
        rows = _rows_in_time(data.seconds / 2, lambda some: kind(**options | few).fit(x[some], y[some]), y, data.seed)
        model, trees = kind(**options, warm_start=True), 0
        while trees < TREES and (not trees or (model.n_iter_ == trees and time.monotonic() < deadline)):
            trees = min(TREES, trees + min(TREES_AT_ONCE, max(1, trees)))  # 1, 2, 4, …: of many columns one takes a second
            model.set_params(max_iter=trees).fit(x[rows], y[rows])
        lacks = [f"{trees} of {TREES} rounds"] if model.n_iter_ == trees < TREES else []
    grown = [tree for trees_of_step in model._predictors for tree in trees_of_step]
    leaves = sum(tree.get_n_leaf_nodes() for tree in grown)
    settings = f"scikit-learn’s defaults, {many(len(grown), 'tree')}, {many(leaves, 'leaf', 'leaves')}"
    if len(columns) < data.x.shape[1]:
        lacks.append(f"{len(columns):,} of {data.x.shape[1]:,} columns")
        model = OfColumns(model, columns)
    return FittedModel(model, settings, None, lacks + _fewer_rows(rows, y))


def fit_mlp(data: TrainingRows) -> FittedModel:
    """Return the MLP as `fit` makes it; with a time limit, epoch by epoch."""
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    task, z, y, seed = data.task, data.z, data.y, data.seed
    kind = MLPRegressor if task == NUMBER else MLPClassifier
    rows, lacks = np.arange(len(y)), list[str]()
    if data.seconds is None or y.ndim == 2:
        model = kind(random_state=seed, max_iter=100 if task == LABELS else EPOCHS).fit(z, y)
    else:
        options = {"classes": np.unique(y)} if task == CLASS else {}
        # A generator, not a number: with a number each call of partial_fit would shuffle the rows alike.
        model, best, waited = kind(random_state=np.random.RandomState(seed)), np.inf, 0
        end, epoch = time.monotonic() + data.seconds, data.seconds / LEAST_EPOCHS
        rows = _rows_in_time(epoch, lambda some: kind(random_state=seed).partial_fit(z[some], y[some], **options), y, seed)
        for number in range(1, EPOCHS + 1):
            model.partial_fit(z[rows], y[rows], **options)
            waited = 0 if model.loss_ < best - TOLERANCE else waited + 1
            best = min(best, model.loss_)
            if waited >= PATIENCE:
                break
            if time.monotonic() > end:
                lacks = [many(number, "epoch")]
                break
    size = sum(weight.size for weight in [*model.coefs_, *model.intercepts_])
    settings = f"{many(model.hidden_layer_sizes[0], 'hidden unit')}, scikit-learn’s defaults, standardized inputs"
    return FittedModel(model, settings, int(size), lacks + _fewer_rows(rows, y))


def _fewer_rows(rows: np.ndarray, y: np.ndarray) -> list[str]:
    return [f"{len(rows):,} of {len(y):,} rows"] * (len(rows) < len(y))


def _columns_in_time(seconds: float, fit: Callable[[np.ndarray, np.ndarray], Any], data: TrainingRows) -> np.ndarray:
    """Return as many columns as `fit` can take in a time, extrapolated from a fit on some: those that tell most of the target.

    What a column tells alone is the F statistic of a linear fit, or of the means of the classes, on all rows.
    """
    from sklearn.feature_selection import f_classif, f_regression

    n, order = data.x.shape[1], np.random.default_rng(data.seed).permutation(len(data.y))[:TIMED_ROWS]
    if n <= FEW_COLUMNS or len(np.unique(data.y[order])) < 2:
        return np.arange(n)
    begin = time.monotonic()
    fit(order, np.arange(TIMED_COLUMNS))
    most = max(TIMED_COLUMNS, int(TIMED_COLUMNS * seconds / (time.monotonic() - begin)))
    if most >= n:
        return np.arange(n)
    with np.errstate(all="ignore"):  # a constant column has none
        tells = np.nan_to_num(
            (f_classif if data.task == CLASS else f_regression)(data.z[:, :n], data.y)[0]
        )  # marks of gaps are last
    return np.sort(np.argsort(-tells, kind="stable")[:most])


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
