"""The classifier of images that chooses its penalty by cross-validation, or by images that are held out once.

    TunnelImageClassifierCV(cv=0.2).fit(X, y)       penalty_, penalty_min_, penalty_1se_, cv_results_, path_

Every penalty is trained in every fold, each for the epochs of TunnelImageClassifier, from the same first weights in a fold. The
final model is a network that learns from all images at the chosen penalty, or a bag: the networks of the folds, whose outputs
are averaged, as one model with one file and one graph.
"""

import copy
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np

from meristem.cache import keep_programs
from meristem.check import many
from meristem.estimators.cv import cv_results
from meristem.estimators.documentation import registered
from meristem.estimators.encoded_table import checked_groups, splits_of
from meristem.estimators.fit_context import checkpointing, on_device, watchers
from meristem.estimators.flash_budget import FlashBudget
from meristem.estimators.image_base import ImageClassifierBase
from meristem.estimators.image_classifier import RATE, TunnelImageClassifier, padded, smaller, warn_of_failure
from meristem.estimators.image_input import EncodedImages
from meristem.estimators.member_score import score_by
from meristem.estimators.parameters import check_parameters, parameters_of
from meristem.layers.image_layers import bag_of
from meristem.paths.folds import Fold, check_weights, constant_losses, fold_weights
from meristem.paths.halving import least_loss, trained
from meristem.paths.members import Member, by_number, grid, settings_of
from meristem.paths.penalty_path import MemberResult, knobs_of, result_of
from meristem.paths.result import Path, Point
from meristem.train.callbacks import WatcherGroup
from meristem.train.hyperparameters import Recipe
from meristem.train.loop import fit
from meristem.train.placement import on_workers
from meristem.train.run import Run, of_state, within_budget
from meristem.train.settle import check_budget
from meristem.train.train_state import TrainState
from meristem.train.training_data import Prepared, prepare

PENALTIES = (1e-5, 3e-5, 1e-4, 3e-4)  # about that of TunnelImageClassifier


@dataclass(frozen=True, eq=False)
class ImageSearch:
    """The data and settings of a search over penalties."""

    plain: TunnelImageClassifier
    table: EncodedImages
    labels: np.ndarray  # of the images, not encoded
    folds: list[Fold]
    budget: float | None  # of each network; of a budget in bytes a guess
    flash: FlashBudget | None = None

    @property
    def epochs(self) -> int:
        return self.plain._epochs_of(len(self.table.x))

    @cached_property
    def states(self) -> list[TrainState]:
        """The untrained state of each fold."""
        seeds = [(self.table.seed + fold) % 2**31 for fold in range(len(self.folds))]
        return [self.plain._new_state(replace(self.table, seed=seed)) for seed in seeds]

    @cached_property
    def recipe(self) -> Recipe:
        return self.plain._recipe(self.table, next(iter(self.states[0].epoch.devices())).platform)

    @cached_property
    def prepared(self) -> Prepared:
        return prepare(padded(self.table), self.states[0].network, self.recipe.task)

    def begun(self, members: Sequence[Member]) -> list[Run]:
        """Return the runs before the first epoch."""
        own: dict[str, Any] = {"budget": self.budget, "epochs": self.epochs}
        each = knobs_of(members, fold_weights(self.folds, len(self.prepared.data.x)))
        pairs = zip(members, each, strict=True)
        return [of_state(self.states[member.fold], self.recipe, knobs._replace(**own)) for member, knobs in pairs]

    def on_all_images(self, penalty: float) -> Run:
        """Return a run at this penalty on all images, before its first epoch."""
        knobs = self.plain._knobs(self.epochs)._replace(penalty=penalty, budget=self.budget)
        return of_state(self.states[0], self.recipe, knobs)

    def fitted(self, run: Run) -> TunnelImageClassifier:
        """Return a copy of the estimator with the best network of a run."""
        model = copy.copy(self.plain)
        model.set_params(penalty=float(run.knobs.penalty))
        model._store(run, self.table, continues=False)
        return model

    def path(self, members: Sequence[Member], runs: Sequence[Run], seconds: float, scoring: Any) -> Path:
        """Return the path of these runs, with the scores of held-out images if a scoring is given."""
        constant = constant_losses(self.table.y, self.table.weight, self.folds, self.recipe.task, self.table.targets.n_out)[
            [member.fold for member in members]
        ]
        scores = None
        if scoring is not None:
            scores = [self._score(run, member.fold, scoring) for run, member in zip(runs, members, strict=True)]
        results = [MemberResult.of(run, run.best, self.epochs) for run in runs]
        return result_of(members, results, seconds, score=scores, constant_loss=constant)

    def _score(self, run: Run, fold: int, scoring: Any) -> float:
        if not run.best_epoch:
            return -np.inf
        model, held_out, table = self.fitted(run), self.folds[fold][1], self.table
        model.shape, model.n_features_in_ = None, table.x.shape[1]  # it is given images that may have been rows
        if hasattr(model, "feature_names_in_"):
            del model.feature_names_in_
        return score_by(scoring, model, table.x[held_out], table.y[held_out], self.labels[held_out])


@registered
class TunnelImageClassifierCV(ImageClassifierBase):
    """A classifier of images at a penalty chosen by cross-validation, or by images that are held out once."""

    penalties: Any = "auto"
    cv: Any = 5
    rule: str = "min"
    refit: str = "auto"
    scoring: Any = None
    executor: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Search, choose a penalty, and store its model; images of a group are never on both sides of a fold.

        groups         a label for each image, such as a patient; a splitter of one's own (`cv`) receives them
        """
        check_parameters(self)
        return self.fit_search(self._planned(X, y, sample_weight, groups=groups))

    def _planned(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> ImageSearch:
        """Return the search before it starts; raise ValueError where no network for these images is within the budget."""
        if self.refit == "distill":
            raise ValueError("refit='distill' is not for images; choose 'one' or 'bag'.")
        names = parameters_of(self).keys() & parameters_of(TunnelImageClassifier)
        plain = TunnelImageClassifier(**{name: getattr(self, name) for name in names})
        table = plain._encoded(X, y, sample_weight, None, is_stream=False)
        labels = np.asarray(y).reshape(-1)
        numbers = None if groups is None else checked_groups(groups, len(labels))
        folds = splits_of(self.cv, labels, classes=True, groups=numbers, seed=table.seed)
        check_weights(folds, table.weight)
        networks = len(folds) if self.refit == "bag" else 1
        search = ImageSearch(plain, table, labels, folds, None)
        if self.budget is None:
            return search
        with on_device(self.device):
            network = search.states[0].network
            flash = FlashBudget.of(plain, table, network, search.recipe, networks)
            budget = float(int(self.budget) // networks) if flash is None else flash.first(networks)
            check_budget(network, budget, search.recipe)
        return replace(search, budget=budget, flash=flash)

    def fit_search(self, search: ImageSearch) -> Self:
        """Fit by a planned search. Where a callback ends it, the model is the best network so far."""
        keep_programs()
        table, folds, name, epochs = search.table, search.folds, type(self).__name__, search.epochs
        penalties = PENALTIES if isinstance(self.penalties, str) else self.penalties
        rate = RATE if isinstance(self.learning_rate, str) else float(self.learning_rate)
        lists: dict[str, Any] = {"penalties": [0.0] if search.budget is not None else penalties, "rates": [rate]}
        members, is_bag = grid(**lists, l2s=[0.0], dropouts=[0.0], folds=len(folds)), self.refit == "bag"
        options = {"callbacks": self.callbacks, "verbose": self.verbose}
        n_trainings = len(members) + (not is_bag)
        watched = watchers(name, n_trainings * epochs, table.targets.objective, **options)
        with on_device(self.device), watched as (watch, say), checkpointing(self, table, watch, say) as watcher:
            begun, part = time.perf_counter(), WatcherGroup([watcher.part("search")], range(len(members)))
            watcher.expect(0.0 if is_bag else 1.0)
            part.begin(by_number(members))
            with on_workers(self.executor):
                begun_runs = search.begun(members)
                runs = trained(begun_runs, search.prepared, settings_of(members), max_epochs=epochs, watcher=part)
            path = search.path(members, runs, time.perf_counter() - begun, self.scoring)
            chosen = path.best() if self.rule == "min" else path.within_one_se()
            measure, best = ("score", chosen.score) if "score" in path.table else ("loss", chosen.loss)
            tried = f"{many(len(path.points), 'penalty', 'penalties')} in {many(len(folds), 'fold')}, {path.seconds:.0f} s"
            say(f"{name}: {tried}; penalty {chosen.penalty:.3g}: held-out {measure} {best:.4g}")
            rows = path.replace_failed_folds(chosen) if is_bag else chosen.members
            final = [within_budget(runs[m], search.prepared) for m in rows if runs[m].best_epoch]
            if not final:
                raise ArithmeticError(f"The loss turned non-finite in every fold; the {name} stays unfitted.")
            retrained = None
            if not is_bag:
                watcher.expect(0.0)
                untrained, prepared = search.on_all_images(chosen.penalty), search.prepared
                part = watcher.part("replay")
                run = None if watcher.over() else fit(untrained, prepared, max_epochs=epochs, watch=part)
                final = [min(final, key=least_loss) if run is None or watcher.over() else run]
                retrained = partial(smaller, untrained, prepared, epochs, watcher)
            if search.flash is not None:
                final = search.flash.limited(final, search.prepared, retrained)
            self._store(path, chosen, [search.fitted(run) for run in final])
            say(f"{name}: {many(len(final), 'network')} with {many(self.n_parameters_, 'parameter')} in all")
        if not watcher.over():
            warn_of_failure(final[0], table, stacklevel=3)
        return self

    def _store(self, path: Path, chosen: Point, members: list[TunnelImageClassifier]) -> None:
        """Set all fitted attributes."""
        self.path_, self.estimators_, first = path, members, members[0]
        self.penalty_, self.penalty_min_, self.penalty_1se_ = chosen.penalty, path.best().penalty, path.within_one_se().penalty
        self.cv_results_, self.n_iter_ = cv_results(path), max(member.n_iter_ for member in members)
        for name in ("_targets_", "classes_", "image_shape_", "takes_bytes_", "n_features_in_", "feature_names_in_"):
            if hasattr(first, name):
                setattr(self, name, getattr(first, name))
        self._compact_ = bag_of([member._compact_ for member in members])  # pixels are scaled as all images ask for
