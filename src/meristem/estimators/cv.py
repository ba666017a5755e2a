"""Estimators that find their price: penalty, l2 and dropout by cross-validation, as one population; in the manner of LassoCV.

    TunnelClassifierCV().fit(X, y)       penalty_, penalty_min_, penalty_1se_, l2_, input_dropout_, cv_results_, path_

The model that is kept is a *bag*: the networks of the folds at the setting that was chosen, whose outputs (logits, or numbers
in the units that were learned) are averaged; or with refit="one" a single network for all rows, trained as long as they were
(train/replay.py), or where a watcher says that it is over the best of the folds. Either is one model: one `predict`, one file,
one ONNX graph, one torch module, and `n_parameters_` counts all of it.

What a bag says is said by a plain estimator whose compact network is the bag (compact/layers.py); each network of it is a plain
estimator, too (`estimators_`).
"""

import copy
import math
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import jax
import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from meristem.cache import keep_programs
from meristem.check import many
from meristem.compact import CompactNetwork
from meristem.estimators.base import Growing
from meristem.estimators.classifiers import BuddingClassifier, TunnelClassifier
from meristem.estimators.course import SHARE
from meristem.estimators.device import on
from meristem.estimators.docstrings import documented
from meristem.estimators.estimator_file import registered
from meristem.estimators.kept import keeping
from meristem.estimators.parameters import check_parameters
from meristem.estimators.paths import Search, Table, fitted
from meristem.estimators.regressors import BuddingRegressor, TunnelRegressor
from meristem.estimators.repr import Shown
from meristem.estimators.searching import all_of, in_parts
from meristem.estimators.settings import ClassWeight, Depth, Leaves, Loss, Settings
from meristem.estimators.shipping import Shipping
from meristem.estimators.watching import watchers
from meristem.layers.layer import Bag
from meristem.paths.result import Path, Point
from meristem.paths.training import least_loss
from meristem.show.measures import error_measure
from meristem.train.budget import check_budget
from meristem.train.run import Run, within_budget
from meristem.train.settle import smallest
from meristem.train.watching import Everyone

USUAL = {"penalties": 5, "l2s": 3, "input_dropouts": 2}  # that are tried where none are given


@dataclass(eq=False, repr=False, kw_only=True)
class CrossValidated(Shown, Shipping, Settings):
    """An estimator whose network finds its own size, at a price that is found from the data."""

    penalties: Any = "auto"
    l2s: Any = "auto"
    input_dropouts: Any = "auto"
    cv: Any = 5
    rule: str = "min"
    refit: str = "bag"
    halving: bool = True
    scoring: Any = None

    _plain: ClassVar[type[Growing]]

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Search, choose, and keep the model of what was chosen."""
        check_parameters(self)
        return self.fit_search(self._planned(X, y, sample_weight))

    def fit_search(self, search: Search) -> Self:
        """Fit by a search that was planned."""
        path, chosen, kept, temperature = self._searched(search)
        plain = search.estimator.set_params(penalty=chosen.penalty, l2=chosen.l2, input_dropout=chosen.dropout)
        self._keep(path, chosen, [fitted(plain, search.table, run, temperature) for run in kept])
        return self

    def _planned(self, X: Any, y: Any, sample_weight: Any = None) -> Search:
        """The search before it begins; ValueError where no networks for this table are within the budget."""
        plain = self._plain(**{one.name: getattr(self, one.name) for one in fields(Settings) + self._own_fields()})
        table = Table.of(plain, X, y, sample_weight)
        folds = table.folds(self.cv, classes=hasattr(plain, "predict_proba"))
        networks = len(folds) if self.refit == "bag" else 1
        budget = None if self.budget is None else float(int(self.budget) // networks)
        search = Search(plain, table, folds, budget=budget, scoring=self.scoring)
        with on(self.device):
            _check_shared(search, networks, self.budget)
        return search

    def _searched(self, search: Search) -> tuple[Path, Point, list[Run], float]:
        """What was tried, what was chosen, the runs whose networks are kept, and how sure they should be."""
        keep_programs()
        table, folds = search.table, search.folds
        name, objective = type(self).__name__, table.targets.objective
        measure = error_measure(objective.error_name, is_share=objective.error_is_share)
        usual = self._usual_settings() * len(folds) * usual_epochs(self._epochs(len(table.rows.y), SHARE))
        watched = watchers(name, usual, measure, callbacks=self.callbacks, verbose=bool(self.verbose), before=0)
        with on(self.device), watched as (watch, say), keeping(self, table.seed, table.rows._asdict(), say) as told:
            search = replace(search, watcher=Everyone([*watch.watchers, told]))
            tried = {
                "penalties": search.penalties(self.penalties),
                "l2s": search.l2s(self.l2s),
                "dropouts": search.dropouts(self.input_dropouts),
                "rates": [float(self.learning_rate)],
            }
            path, runs = in_parts(search, **tried) if self.halving else all_of(search, **tried)
            chosen = path.best() if self.rule == "min" else path.within_one_se()
            say(
                f"{name}: {many(len(path.points), 'setting')} in {many(len(folds), 'fold')}, {path.seconds:.0f} s; "
                f"penalty {chosen.penalty:.2g}, l2 {chosen.l2:.2g}, dropout {chosen.dropout:g}: "
                f"{measure.label} {measure.show(chosen.error)}, {chosen.n_parameters:,.0f} parameters a network"
            )
            taken = path.stand_ins(chosen) if self.refit == "bag" else chosen.members  # one network has this price and no other
            good = [runs[m] for m in taken if runs[m].best_epoch]  # others diverged at once
            of_folds = [within_budget(run, search.prepared) for run in good]  # those that were ended before they settled
            if not of_folds:
                raise ArithmeticError(f"The loss turned non-finite in every fold; the {name} stays unfitted.")
            temperature = float(np.exp(np.mean([np.log(run.temperature) for run in of_folds])))
            kept = of_folds if self.refit == "bag" else [_one_of(of_folds, search)]
        return path, chosen, kept, temperature

    def _usual_settings(self) -> int:
        """How many are tried, as far as that can be told before there are any."""
        usual = USUAL | ({} if self.budget is None else {"penalties": 1})
        given = {name: getattr(self, name) for name in usual}
        n = {name: usual[name] if isinstance(values, str) else len(values) for name, values in given.items()}
        return sum(n.values()) - len(n) + 1 if self.halving else math.prod(n.values())

    def _own_fields(self) -> tuple[Any, ...]:
        """Parameters of the plain estimator besides those that all share."""
        shared, mine = {one.name for one in fields(Settings)}, {one.name for one in fields(self)}
        return tuple(one for one in fields(self._plain) if one.name in mine - shared)

    def _keep(self, path: Path, chosen: Point, members: list[Growing]) -> None:
        """Everything that ends in an underscore."""
        self.path_, self.estimators_ = path, members
        self.penalty_, self.l2_, self.input_dropout_ = chosen.penalty, chosen.l2, chosen.dropout
        self.penalty_min_, self.penalty_1se_ = path.best().penalty, path.within_one_se().penalty
        self.cv_results_ = cv_results(path)
        self._model_ = _as_one(members)
        for name in ("n_features_in_", "feature_names_in_", "classes_"):
            if hasattr(members[0], name):
                setattr(self, name, getattr(members[0], name))

    # What it says is what the bag says ----------------------------------------------------------------------------------------

    @property
    def _compact_(self) -> CompactNetwork:
        return self._model_._compact_

    @property
    def _predictor_(self) -> Any:
        return self._model_._predictor_

    @property
    def _targets_(self) -> Any:
        return self._model_._targets_

    @property
    def _inputs_(self) -> Any:
        return self._model_._inputs_

    @property
    def n_parameters_(self) -> int:
        return self._compact_.n_parameters

    @property
    def n_iter_(self) -> int:
        return max(one.n_iter_ for one in self.estimators_)

    def compact(self) -> CompactNetwork:
        """The networks of the bag as one, with nothing in it but what lives; it takes standardized features."""
        check_is_fitted(self)
        return jax.device_put(self._compact_)

    def predict(self, X: Any) -> np.ndarray:
        """As the plain estimator says it."""
        check_is_fitted(self)
        return self._model_.predict(X)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        plain = self._plain().__sklearn_tags__()
        for name in ("input_tags", "target_tags", "classifier_tags", "regressor_tags"):
            setattr(tags, name, getattr(plain, name))
        return tags


def usual_epochs(most: int) -> int:
    """How many epochs a training takes on average, of so many at most: some leave early, others have learned enough.

    >>> usual_epochs(300), usual_epochs(9)
    (60, 9)
    """
    return min(most, max(60, most // 5))


def _check_shared(search: Search, networks: int, budget: Any) -> None:
    """Raise ValueError, in the terms of who gave a budget, where it is too little for all networks that share it."""
    if search.budget is None:
        return
    if networks == 1:
        check_budget(search.begun_network, search.budget, search.recipe)
        return
    least = networks * smallest(search.begun_network, search.recipe)
    if int(budget) < least:
        raise ValueError(f"budget={budget} is shared by {networks} networks and below the least, {least}; give at least that.")


def _one_of(of_folds: list[Run], search: Search) -> Run:
    """A network trained on all rows as those of the folds were; where the time for it is over, the best of these."""
    one = None if search.watcher.over() else search.on_all_rows(of_folds)
    return min(of_folds, key=least_loss) if one is None or search.watcher.over() else one


def _as_one(members: list[Growing]) -> Growing:
    """A plain estimator that says the mean of what all say."""
    one = copy.copy(members[0])
    if len(members) > 1:
        one._compact_ = CompactNetwork((Bag(tuple(member._compact_.layers for member in members)),))
        one._predictor_.layers(np.float64)
    return one


def cv_results(path: Path) -> dict[str, Any]:
    """A row for each setting, in the manner of GridSearchCV; more is better: of no `scoring`, losses with their sign turned.

    Settings that left early rank behind those that were trained to their end (`finished`): their scores are not comparable.
    """
    points = path.points
    is_finished = np.array([point.is_finished for point in points])
    names = {"penalty": "penalty", "l2": "l2", "dropout": "input_dropout", "learning_rate": "learning_rate"}
    scores = np.array([path.scores[list(point.members)] for point in points])  # [settings, folds]
    return {
        "params": [{names[name]: value for name, value in point.knobs.items()} for point in points],
        **{f"param_{names[name]}": np.array([point.knobs[name] for point in points]) for name in names},
        **{f"split{fold}_test_score": scores[:, fold] for fold in range(scores.shape[1])},
        "mean_test_score": scores.mean(1),
        "std_test_score": scores.std(1),
        "rank_test_score": _ranks(scores.mean(1), is_finished),
        "finished": is_finished,
        "mean_n_parameters": np.array([point.n_parameters for point in points]),
    }


def _ranks(scores: np.ndarray, is_finished: np.ndarray) -> np.ndarray:
    """1 is the best of the finished; ties share.

    >>> _ranks(np.array([0.5, 0.9, 0.7]), np.array([True, False, True])).tolist()
    [2, 3, 1]
    """
    ahead = (is_finished[:, None] & ~is_finished) | ((is_finished[:, None] == is_finished) & (scores[:, None] > scores))
    return 1 + ahead.sum(0)


@dataclass(eq=False, repr=False, kw_only=True)
class ClassifierCV(ClassifierMixin, ClassWeight, CrossValidated):
    """What the classifiers share."""

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class, or of each label."""
        check_is_fitted(self)
        return self._model_.predict_proba(X)

    def decision_function(self, X: Any) -> np.ndarray:
        """Logits: one per row for two classes, else one per class or label."""
        check_is_fitted(self)
        return self._model_.decision_function(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows, by their weight, whose class is predicted; of labels, of rows with all of them."""
        check_is_fitted(self)
        return self._model_.score(X, y, sample_weight)


@dataclass(eq=False, repr=False, kw_only=True)
class RegressorCV(RegressorMixin, Loss, CrossValidated):
    """What the regressors share."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the prediction, whatever the loss; of several quantiles that of the median, if it is among them."""
        check_is_fitted(self)
        return self._model_.score(X, y, sample_weight)


@registered
@documented
@dataclass(eq=False, repr=False, kw_only=True)
class TunnelClassifierCV(Depth, ClassifierCV):
    """A classifier whose units open one by one, at a price found by cross-validation.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> small = {"max_width": 8, "depth": 2, "learning_rate": 0.01, "max_epochs": 60}     # for this example to be quick
    >>> model = TunnelClassifierCV(penalties=[1e-3, 1e-2], cv=2, random_state=0, **small).fit(X, y)
    >>> model.score(X, y) > 0.9, len(model.estimators_)
    (True, 2)
    """

    _plain = TunnelClassifier


@registered
@documented
@dataclass(eq=False, repr=False, kw_only=True)
class BuddingClassifierCV(Leaves, ClassifierCV):
    """A classifier whose layers become two, at a price found by cross-validation.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> small = {"max_width": 8, "max_leaves": 2, "learning_rate": 0.01, "max_epochs": 60}
    >>> model = BuddingClassifierCV(penalties=[1e-3, 1e-2], cv=2, random_state=0, **small).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    _plain = BuddingClassifier


@registered
@documented
@dataclass(eq=False, repr=False, kw_only=True)
class TunnelRegressorCV(Depth, RegressorCV):
    """A regressor whose units open one by one, at a price found by cross-validation.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> X, y = make_friedman1(200, random_state=0)
    >>> model = TunnelRegressorCV(penalties=[1e-3], cv=2, max_width=16, depth=2, max_epochs=60, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.7
    True
    """

    _plain = TunnelRegressor


@registered
@documented
@dataclass(eq=False, repr=False, kw_only=True)
class BuddingRegressorCV(Leaves, RegressorCV):
    """A regressor whose layers become two, at a price found by cross-validation.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> X, y = make_friedman1(200, random_state=0)
    >>> model = BuddingRegressorCV(penalties=[1e-3], cv=2, max_width=16, max_leaves=2, max_epochs=60, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.7
    True
    """

    _plain = BuddingRegressor
