"""Estimators that choose penalty, l2 and dropout by cross-validation, as LassoCV does.

    TunnelClassifierCV().fit(X, y)       penalty_, penalty_min_, penalty_1se_, l2_, input_dropout_, cv_results_, path_

The final model is a *bag*: the networks of the folds at the chosen setting, whose outputs (logits, or standardized numbers) are
averaged; or with refit="one", or a budget, a single network, trained on all rows as long as those of the folds (replay.py);
or with refit="distill" one that learned the answers of the bag (distillation.py); or the best of the folds if a watcher ended
the search. Each is one model: one `predict`, one file, one ONNX graph, one torch module, and `n_parameters_` counts all of it.
Each network of a bag is an estimator, too (`estimators_`).
"""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from meristem.cache import keep_programs
from meristem.check import many
from meristem.estimators.base import Estimator
from meristem.estimators.classifiers import BuddingClassifier, ClassifierBase, TunnelClassifier, check_threshold
from meristem.estimators.conformal import Scores
from meristem.estimators.curve_measurement import COST, measure_curve
from meristem.estimators.distillation import LONGER, distilled
from meristem.estimators.documentation import registered
from meristem.estimators.fit_context import checkpointing, on_device, watchers
from meristem.estimators.fit_procedure import fit_warning
from meristem.estimators.flash_budget import FlashBudget
from meristem.estimators.network_estimator import NetworkEstimator
from meristem.estimators.parameters import check_parameters, parameters_of
from meristem.estimators.regressors import BuddingRegressor, RegressorBase, TunnelRegressor
from meristem.estimators.search import Blocks, Search
from meristem.estimators.training_settings import Budding, Tunnel
from meristem.inputs import Inputs
from meristem.layers.image_layers import bag_of
from meristem.paths.folds import Fold, has_small_fold
from meristem.paths.halving import least_loss
from meristem.paths.learning_curve import SHARES
from meristem.paths.result import Path, Point
from meristem.show.time_left import trainings
from meristem.train.loop import cores
from meristem.train.placement import on_workers
from meristem.train.run import Run, within_budget
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
    executor: Any = None

    _plain: ClassVar[type[NetworkEstimator]]  # the estimator of one network

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Search, choose a setting, and store its model; rows of a group are never on both sides of a fold.

        groups         a label for each row, such as a patient; a splitter of one's own (`cv`) receives them
        """
        check_parameters(self)
        return self.fit_search(self._planned(X, y, sample_weight, groups=groups))

    def _planned(
        self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None, times: Any = None, columns: Any = None
    ) -> Search:
        """Return the search before it starts; raise ValueError where no network for this table is within the budget.

        `columns`: the schema of a table and its rows as codes, which its C file reads in place of features.
        """
        names = parameters_of(self).keys() & parameters_of(self._plain)
        plain = self._plain(**{name: getattr(self, name) for name in names})
        if isinstance(rule := getattr(self, "threshold", None), str):
            plain.set_params(threshold=None)  # it is chosen later
        table = plain._encoded(X, y, sample_weight)
        if isinstance(rule, str):
            check_threshold(rule, table.targets)
        folds = table.folds(self.cv, classes=hasattr(plain, "predict_proba"), groups=groups, times=times)
        networks = len(folds) if self.makes_bag(folds) else 1
        if isinstance(self.budget, str):
            with on_device(self.device):
                search = Search(plain, table, folds, scoring=self.scoring)
                inputs = None if columns is None else (Inputs(table.inputs.preprocessor, columns[0]), columns[1])
                flash = FlashBudget.of(plain, table, search.begun_network, search.recipe, networks, inputs)
            return replace(search, flash=flash, budget=None if flash is None else flash.first(networks))
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

    def makes_bag(self, folds: Sequence[Fold]) -> bool:
        """Return whether the final model has a network of each fold.

        By default not if they would have to share a budget, or if one learned from few rows, as where folds go forward in time.
        """
        return self.budget is None and not has_small_fold(folds) if self.refit == "auto" else self.refit == "bag"

    def fit_search(self, search: Search, blocks: Blocks = (), settling: int = 0, curve: str | None = None) -> Self:
        """Fit by a planned search; a single final network learns from these blocks, of which the search has a sample.

        Where a callback ends the search, the best networks so far settle for `settling` epochs. `curve` is the metric of a
        learning curve, which is then measured, too.
        """
        keep_programs()
        table, folds, name, objective = search.table, search.folds, type(self).__name__, search.table.targets.objective
        rates, rule = [search.estimator._rate_of(len(table.y))], getattr(self, "threshold", None)
        with on_device(self.device):
            lists = search.lists(penalties=self.penalties, l2s=self.l2s, dropouts=self.input_dropouts, rates=rates)
        counts = {name: len(values) for name, values in lists.items()}
        first, later = math.prod(counts.values()), 0.0  # a guess, for the progress display
        if self.halving:
            later = sum(trainings(counts[name] - 1, 1) for name in ("dropouts", "penalties"))
            first = counts["l2s"] * counts["rates"]
        epochs = round((first + later) * len(folds) * search.usual_epochs)
        options = {"callbacks": self.callbacks, "verbose": self.verbose, "most_epochs": search.max_epochs}
        watched = watchers(name, epochs, objective, **options)
        with on_device(self.device), watched as (watch, say), checkpointing(self, table, watch, say) as watcher:
            makes_bag, distills = self.makes_bag(folds), self.refit == "distill" and not blocks  # else all rows tell more
            replay = 0 if makes_bag else min(cores(), len(folds)) * (LONGER if distills else 1)  # it leaves other cores idle
            of_curve = 0 if curve is None else COST * len(SHARES) * len(folds)
            search = replace(search, watcher=watcher, afterwards=replay + of_curve)
            with on_workers(self.executor):
                search, path, runs = search.in_rooms(**lists) if self.halving else (search, *search.every_combination(**lists))
            if settling and watcher.over():
                path, runs = search.with_best_settled(path, runs, settling)
            chosen = path.best() if self.rule == "min" else path.within_one_se()
            measure, best = ("score", chosen.score) if "score" in path.table else ("loss", chosen.loss)
            say(
                f"{name}: {many(len(path.points), 'setting')} in {many(len(folds), 'fold')}, {path.seconds:.0f} s; "
                f"penalty {chosen.penalty:.3g}, l2 {chosen.l2:.3g}, dropout {chosen.dropout:.3g}: held-out {measure} {best:.4g}"
            )
            search = replace(search, afterwards=replay)
            self._curve_ = None if curve is None else measure_curve(search, path, chosen.members, runs, curve)
            members = path.replace_failed_folds(chosen) if makes_bag or distills else chosen.members
            members = [m for m in members if runs[m].best_epoch]  # others diverged in their first epoch
            of_folds = [within_budget(runs[m], search.prepared) for m in members]  # some were stopped before they settled
            if makes_bag and search.flash is not None and of_folds:
                of_folds = search.flash.limited(of_folds, search.prepared)
            final = of_folds
            if not final:
                raise ArithmeticError(f"The loss turned non-finite in every fold; the {name} stays unfitted.")
            constant = objective.constant_error(table.y, table.weight)
            judged = [] if search.watcher.over() else final
            most = search.estimator._max_capacity
            each = [fit_warning(run, run.best, search.max_epochs, constant, most) for run in judged]
            raised = [warning for warning in each if warning is not None]
            warning = raised[0] if 2 * len(raised) > len(final) else None  # that of most networks at the chosen setting
            temperature = float(np.exp(np.mean([np.log(run.temperature) for run in final])))
            own_folds = [int(path.table["fold"][m]) for m in members]
            if not makes_bag:
                n_learned = [len(folds[fold][0]) if has_small_fold(folds) else 0 for fold in own_folds]
                timed = [run for run, n in zip(final, n_learned, strict=True) if 2 * n >= max(n_learned)]
                bag = [search.fitted(run, temperature) for run in timed] if distills else []
                retrained = partial(trained_again, timed=timed, blocks=blocks, bag=bag)
                run = None if search.watcher.over() else retrained(search)
                final = [min(timed, key=least_loss) if run is None or search.watcher.over() else run]
                distills = distills and final[0] is run
                if search.flash is not None:
                    final = search.flash.limited(final, search.prepared, partial(smaller, search, retrained))
            if isinstance(rule, str):
                search = search.with_threshold(rule, of_folds, own_folds, temperature)
            search.estimator.set_params(penalty=chosen.penalty, l2=chosen.l2, input_dropout=chosen.dropout)
            models = [search.fitted(run, temperature) for run in of_folds]
            scores = search.held_out_scores(models, own_folds, len(final))
            if not makes_bag:
                if distills:
                    temperature = 1.0  # that of the answers
                    search.estimator.set_params(penalty=float(final[0].knobs.penalty), l2=0.0, input_dropout=0.0)
                models = [search.fitted(run, float(run.temperature) if blocks else temperature) for run in final]
            self._store(path, chosen, models, scores)
            threshold = f"; threshold {self.threshold_:.3g}" if isinstance(rule, str) else ""
            say(f"{name}: {many(len(final), 'network')} with {many(self.n_parameters_, 'parameter')} in all{threshold}")
        if warning is not None:
            warnings.warn(warning, stacklevel=3)
        return self

    def _store(self, path: Path, chosen: Point, members: list[NetworkEstimator], scores: Scores | None) -> None:
        """Set all fitted attributes; `scores` are those of held-out rows, None of an old file."""
        self.path_, self.estimators_, self._scores_ = path, members, scores
        self.penalty_, self.l2_, self.input_dropout_ = chosen.penalty, chosen.l2, chosen.dropout
        self.penalty_min_, self.penalty_1se_ = path.best().penalty, path.within_one_se().penalty
        self.cv_results_ = cv_results(path)
        self.n_iter_ = max(member.n_iter_ for member in members)
        for name in ("_targets_", "_inputs_", "n_features_in_", "feature_names_in_", "classes_"):
            if hasattr(members[0], name):
                setattr(self, name, getattr(members[0], name))
        self._compact_ = bag_of([member._compact_ for member in members])
        self._predictor_.layers(np.float64)  # cast now, not in every predict


def trained_again(
    search: Search, *, timed: list[Run], blocks: Blocks, bag: list[NetworkEstimator], part: str = ""
) -> Run | None:
    """Return the run of a single final network, None where it diverged: it learns the answers of a bag, if there is one."""
    run = distilled(search, timed, bag, part or "distill") if bag else search.on_all_rows(timed, blocks, part or "replay")
    return None if run is None or run.diverged else run


def smaller(search: Search, retrained: Callable[..., Run | None], cost: float, number: int) -> list[Run] | None:
    """Return a run on all rows of a network that costs no more, or None where it diverged, or there is no time."""
    run = None if search.watcher.over() else retrained(replace(search, budget=cost), part=f"smaller-{number}")
    return None if run is None or search.watcher.over() else [run]


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
class TunnelClassifierCV(Tunnel, ClassifierBase, CrossValidated):
    """A classifier whose units open one by one, at a penalty chosen by cross-validation."""

    _plain = TunnelClassifier


@registered
class BuddingClassifierCV(Budding, ClassifierBase, CrossValidated):
    """A classifier whose layers split in two, at a penalty chosen by cross-validation."""

    _plain = BuddingClassifier


@registered
class TunnelRegressorCV(Tunnel, RegressorBase, CrossValidated):
    """A regressor whose units open one by one, at a penalty chosen by cross-validation."""

    _plain = TunnelRegressor


@registered
class BuddingRegressorCV(Budding, RegressorBase, CrossValidated):
    """A regressor whose layers split in two, at a penalty chosen by cross-validation."""

    _plain = BuddingRegressor
