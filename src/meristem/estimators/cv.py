"""Estimators that choose penalty, l2 and dropout by cross-validation, as LassoCV does.

    TunnelClassifierCV().fit(X, y)       penalty_, penalty_min_, penalty_1se_, l2_, input_dropout_, cv_results_, path_

The final model is a *bag*: the networks of the folds at the chosen setting, whose outputs (logits, or standardized numbers) are
averaged; or with refit="one", or a budget, a single network, trained on all rows as long as those of the folds (train/loop.py),
or the best of the folds if a watcher ended the search. Either is one model: one `predict`, one file, one ONNX graph, one torch
module, and `n_parameters_` counts all of it. Each network of a bag is an estimator, too (`estimators_`).
"""

import math
import warnings
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np

from meristem.cache import keep_programs
from meristem.check import many
from meristem.compact import CompactNetwork
from meristem.estimators.base import Estimator
from meristem.estimators.classifiers import BuddingClassifier, ClassifierBase, TunnelClassifier, check_threshold
from meristem.estimators.estimator_file import registered
from meristem.estimators.fit_context import checkpointing, on_device, watchers
from meristem.estimators.fit_procedure import fit_warning
from meristem.estimators.growing import Growing
from meristem.estimators.parameters import check_parameters
from meristem.estimators.regressors import BuddingRegressor, RegressorBase, TunnelRegressor
from meristem.estimators.search import Blocks, Search
from meristem.layers.layer import Bag
from meristem.paths.halving import least_loss
from meristem.paths.result import Path, Point
from meristem.train.run import within_budget
from meristem.train.settle import check_budget, smallest


@dataclass(eq=False, repr=False, kw_only=True)
class CrossValidated(Estimator):
    """An estimator that chooses its penalty by cross-validation."""

    penalties: Any = "auto"
    l2s: Any = "auto"
    input_dropouts: Any = "auto"
    cv: Any = 5
    rule: str = "min"
    refit: str = "auto"
    halving: bool = True
    scoring: Any = None

    _plain: ClassVar[type[Growing]]  # the estimator of one network

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Search, choose a setting, and store its model."""
        check_parameters(self)
        return self.fit_search(self._planned(X, y, sample_weight))

    def _planned(self, X: Any, y: Any, sample_weight: Any = None) -> Search:
        """Return the search before it starts; raise ValueError where no network for this table is within the budget."""
        own = {field.name for field in fields(self)}
        plain = self._plain(**{field.name: getattr(self, field.name) for field in fields(self._plain) if field.name in own})
        if isinstance(rule := getattr(self, "threshold", None), str):
            plain.set_params(threshold=None)  # it is chosen later
        table = plain._encoded(X, y, sample_weight)
        if isinstance(rule, str):
            check_threshold(rule, table.targets)
        folds = table.folds(self.cv, classes=hasattr(plain, "predict_proba"))
        networks = len(folds) if self.makes_bag else 1
        budget = None if self.budget is None else float(int(self.budget) // networks)
        search = Search(plain, table, folds, budget=budget, scoring=self.scoring)
        if budget is not None:
            with on_device(self.device):
                if networks == 1:
                    check_budget(search.begun_network, budget, search.recipe)
                elif budget < (least := smallest(search.begun_network, search.recipe)):
                    shared = f"is shared by {networks} networks and below the least, {networks * least}"
                    raise ValueError(f"budget={self.budget} {shared}; give at least that.")
        return search

    @property
    def makes_bag(self) -> bool:
        """Whether the final model has a network of each fold; by default not if they would have to share a budget."""
        return self.budget is None if self.refit == "auto" else self.refit == "bag"

    def fit_search(self, search: Search, blocks: Blocks = ()) -> Self:
        """Fit by a planned search; a single final network learns from these blocks, of which the search has a sample."""
        keep_programs()
        table, folds, name, objective = search.table, search.folds, type(self).__name__, search.table.targets.objective
        rates, rule = [search.estimator._rate_of(len(table.y))], getattr(self, "threshold", None)
        with on_device(self.device):
            lists = search.lists(penalties=self.penalties, l2s=self.l2s, dropouts=self.input_dropouts, rates=rates)
        counts = [len(values) for values in lists.values()]
        settings = sum(counts) - len(counts) + 1 if self.halving else math.prod(counts)
        # A guess, for the progress display: some members stop early.
        epochs = settings * len(folds) * min(search.max_epochs, max(60, search.max_epochs // 5))
        watched = watchers(name, epochs, objective, callbacks=self.callbacks, verbose=self.verbose)
        with on_device(self.device), watched as (watch, say), checkpointing(self, table, watch, say) as watcher:
            search = replace(search, watcher=watcher)
            search, path, runs = search.in_rooms(**lists) if self.halving else (search, *search.every_combination(**lists))
            chosen = path.best() if self.rule == "min" else path.within_one_se()
            measure, best = ("score", chosen.score) if "score" in path.table else ("loss", chosen.loss)
            say(
                f"{name}: {many(len(path.points), 'setting')} in {many(len(folds), 'fold')}, {path.seconds:.0f} s; "
                f"penalty {chosen.penalty:.3g}, l2 {chosen.l2:.3g}, dropout {chosen.dropout:.3g}: held-out {measure} {best:.4g}"
            )
            members = path.replace_failed_folds(chosen) if self.makes_bag else chosen.members
            finite = [runs[m] for m in members if runs[m].best_epoch]  # others diverged in their first epoch
            final = [within_budget(run, search.prepared) for run in finite]  # some were stopped before they settled
            if not final:
                raise ArithmeticError(f"The loss turned non-finite in every fold; the {name} stays unfitted.")
            constant = objective.constant_error(table.y, table.weight)
            judged = [] if search.watcher.over() else final
            each = [fit_warning(run, run.best, search.max_epochs, constant) for run in judged]
            raised = [warning for warning in each if warning is not None]
            warning = raised[0] if 2 * len(raised) > len(final) else None  # that of most networks at the chosen setting
            temperature = float(np.exp(np.mean([np.log(run.temperature) for run in final])))
            of_folds = final, [int(path.table["fold"][m]) for m in members if runs[m].best_epoch]
            if not self.makes_bag:
                run = None if search.watcher.over() else search.on_all_rows(final, blocks)
                final = [min(final, key=least_loss) if run is None or search.watcher.over() else run]
            if isinstance(rule, str):
                search = search.with_threshold(rule, *of_folds, temperature)
            search.estimator.set_params(penalty=chosen.penalty, l2=chosen.l2, input_dropout=chosen.dropout)
            self._store(path, chosen, [search.fitted(run, temperature) for run in final])
            threshold = f"; threshold {self.threshold_:.3g}" if isinstance(rule, str) else ""
            say(f"{name}: {many(len(final), 'network')} with {many(self.n_parameters_, 'parameter')} in all{threshold}")
        if warning is not None:
            warnings.warn(warning, stacklevel=3)
        return self

    def _store(self, path: Path, chosen: Point, members: list[Growing]) -> None:
        """Set all fitted attributes."""
        self.path_, self.estimators_ = path, members
        self.penalty_, self.l2_, self.input_dropout_ = chosen.penalty, chosen.l2, chosen.dropout
        self.penalty_min_, self.penalty_1se_ = path.best().penalty, path.within_one_se().penalty
        self.cv_results_ = cv_results(path)
        self.n_iter_ = max(member.n_iter_ for member in members)
        for name in ("_targets_", "_inputs_", "n_features_in_", "feature_names_in_", "classes_"):
            if hasattr(members[0], name):
                setattr(self, name, getattr(members[0], name))
        bag = CompactNetwork((Bag(tuple(member._compact_.layers for member in members)),))
        self._compact_ = bag if len(members) > 1 else members[0]._compact_
        self._predictor_.layers(np.float64)  # cast now, not in every predict


def cv_results(path: Path) -> dict[str, Any]:
    """Return a row for each setting, as GridSearchCV does; those that stopped early rank last: they are not comparable."""
    points = path.points
    names = {"penalty": "penalty", "l2": "l2", "dropout": "input_dropout", "learning_rate": "learning_rate"}
    scores = np.array([path.scores[list(point.members)] for point in points])  # [settings, folds]
    mean, is_finished = scores.mean(1), np.array([point.is_finished for point in points])
    with np.errstate(invalid="ignore"):  # members that diverged are at −∞
        deviation = scores.std(1)
    is_better = (is_finished[:, None] & ~is_finished) | ((is_finished[:, None] == is_finished) & (mean[:, None] > mean))
    return {
        "params": [{names[name]: value for name, value in point.knobs.items()} for point in points],
        **{f"param_{names[name]}": np.array([point.knobs[name] for point in points]) for name in names},
        **{f"split{fold}_test_score": scores[:, fold] for fold in range(scores.shape[1])},
        "mean_test_score": mean,
        "std_test_score": deviation,
        "rank_test_score": 1 + is_better.sum(0),  # ties share a rank
        "finished": is_finished,
        "mean_n_parameters": np.array([point.n_parameters for point in points]),
    }


@registered
class TunnelClassifierCV(ClassifierBase, CrossValidated):
    """A classifier whose units open one by one, at a penalty chosen by cross-validation."""

    depth: int = 5

    _plain = TunnelClassifier


@registered
class BuddingClassifierCV(ClassifierBase, CrossValidated):
    """A classifier whose layers split in two, at a penalty chosen by cross-validation."""

    max_leaves: int = 4

    _plain = BuddingClassifier


@registered
class TunnelRegressorCV(RegressorBase, CrossValidated):
    """A regressor whose units open one by one, at a penalty chosen by cross-validation."""

    depth: int = 5

    _plain = TunnelRegressor


@registered
class BuddingRegressorCV(RegressorBase, CrossValidated):
    """A regressor whose layers split in two, at a penalty chosen by cross-validation."""

    max_leaves: int = 4

    _plain = BuddingRegressor
