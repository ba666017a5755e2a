"""The course of a fit, from rows that are ready to a run: what is trained, and what of it is kept.

    look      where dropping inputs may help or harm, or a quick model sees nothing in them, rows held out say which it is: with
              dropout or without; and with a firm prior if a network sees nothing, either
    train     from where the network stands
    again     from another start and more boldly, where much can be told and little of it was learned (doubts.py)
    replay    where rows were held out that said how long it takes, all rows take as long (train/population.py)

base imports it; of an estimator it asks how networks are begun and how long to wait.
"""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from meristem.estimators import doubts
from meristem.estimators.advice import GrowthWarning
from meristem.estimators.settings import PATIENCE
from meristem.estimators.training import Rows
from meristem.inputs import Inputs
from meristem.paths.folds import Fold, in_fold
from meristem.paths.halving import least_loss
from meristem.targets import Targets
from meristem.train.callbacks import WatcherGroup
from meristem.train.hyperparameters import Knobs, Recipe
from meristem.train.loop import DivergedError, fit
from meristem.train.population import replay_on_all_rows
from meristem.train.run import Run, of_state
from meristem.train.train_state import TrainState
from meristem.train.training_data import Prepared

SHARE = 1 / 3  # of the steps that a training alone waits for, where rows are held out that say when it is enough


@dataclass(frozen=True, eq=False)
class Course:
    """What a fit has to go by."""

    estimator: Any
    rows: Rows
    targets: Targets
    inputs: Inputs
    z: Any  # the inputs of all rows
    prepared: Prepared
    recipe: Recipe
    knobs: Knobs
    dropouts: tuple[Any, ...]  # to choose from: numbers, or None
    fold: Fold | None  # the rows to learn from and those to hold out, for a replay
    least: int  # passes over the rows that are waited for at least
    predictability: float | None  # None: nobody asked
    seed: int
    epochs: int
    watch: WatcherGroup

    def run(self, state: TrainState, *, is_first: bool) -> tuple[Run, Run]:
        """The run whose network is kept, and the one that found how long it takes: often the same.

        Of a network that is trained for the first time a bad beginning is put right.
        """
        knobs = self._looked(state) if is_first else self.knobs
        found = self._trained(state, knobs, "train")
        for number in range(1, doubts.TRIES):
            if not is_first or not self._is_over(found) or not self._began_badly(found):
                break
            other = self.estimator._fresh(self.targets, self.inputs, (self.seed + number) % 2**32)
            found = min(found, self._trained(other, self._bolder(knobs), f"again-{number}"), key=self._error)
        if self.fold is None or not found.best_epoch or not self._is_over(found):
            return found, found
        n = len(self.rows.y)
        start = self.estimator._fresh(self.targets, self.inputs, self.seed)
        whole = replay_on_all_rows([found], start, self.prepared, n, found.knobs.budget, self.watch.part("replay"))
        return found if whole.diverged else whole, found

    def _trained(self, state: TrainState, knobs: Knobs, part: str) -> Run:
        """A run at its end, a part of the fit; one that diverged after a good epoch ends there, with a warning."""
        if self.fold is not None:
            knobs = self._in(self.fold, knobs)
        begun = of_state(state, self.recipe, knobs, max_capacity=self.estimator._max_leaves())
        try:
            return fit(begun, self.prepared, max_epochs=self.epochs, watch=self.watch.part(part))
        except DivergedError as error:
            if not error.run.best_epoch:
                raise
            warnings.warn(str(error), GrowthWarning, stacklevel=5)
            return error.run

    def _in(self, fold: Fold, knobs: Knobs) -> Knobs:
        """Of a training on some of the rows, which waits for fewer steps."""
        n = len(self.rows.y)
        less = self.estimator._patience(n, SHARE, self.least) / self.estimator._patience(n)
        patience = np.round(less * np.asarray(knobs.patience))
        return in_fold(knobs._replace(patience=patience), fold, len(self.prepared.data.x))

    def _bolder(self, knobs: Knobs) -> Knobs:
        patience = self.estimator._patience(len(self.rows.y))
        return knobs._replace(learning_rate=doubts.BOLDER * knobs.learning_rate, patience=doubts.BOLDER * patience)

    def _looked(self, state: TrainState) -> Knobs:
        """The knobs that shorter trainings, judged by rows that are held out, find right.

        Of several dropouts the one with the least loss; where a quick model sees nothing in the inputs and a network does not
        either, a firm l2.
        """
        is_in_doubt = self._is_in_doubt
        if self.prepared.data.dev_x is not None or not (is_in_doubt or len(self.dropouts) > 1):
            return self.knobs
        fold = self.estimator._fold(self.rows, self.inputs, self.z, self.seed)
        looks = [] if fold is None else [self._look(state, fold, number) for number in range(len(self.dropouts))]
        seen = min(looks, key=least_loss, default=None)
        knobs = self.knobs if seen is None else self.knobs._replace(dropout=seen.knobs.dropout)
        if not is_in_doubt or (seen is not None and fold is not None and not self._is_chance(seen, fold[1])):
            return knobs
        return knobs._replace(l2=doubts.ALPHA / len(self.rows.y))

    @property
    def _is_in_doubt(self) -> bool:
        is_nothing = self.predictability is not None and doubts.tells_nothing(self.predictability)
        return bool(is_nothing and self.rows.are_alike and self.targets.objective.error_is_share)

    def _look(self, state: TrainState, fold: Fold, number: int) -> Run:
        """With the dropout of this number."""
        recipe = self.estimator._recipe(self.targets, has_dev=True, work=0, is_patient=self.least > PATIENCE)
        short = replace(self, recipe=recipe, fold=fold, epochs=self.estimator._epochs(len(self.rows.y), SHARE))
        return short._trained(state, self.knobs._replace(dropout=self.dropouts[number]), f"look-{number + 1}")

    def _is_chance(self, seen: Run, held: np.ndarray) -> bool:
        constant = self.targets.objective.constant_error(self.rows.y[held], self.rows.weight[held])
        return doubts.is_chance(float(seen.history["dev_error"][int(seen.best_epoch) - 1]), constant, len(held))

    def _is_over(self, run: Run) -> bool:
        """Whether it ended by itself: else someone gave up, or it diverged."""
        return bool(not run.diverged and (run.stopped or run.epochs >= self.epochs))

    def _began_badly(self, run: Run) -> bool:
        if self.predictability is None or self.prepared.data.dev_x is not None:
            return False
        constant = self.targets.objective.constant_error(self.rows.y, self.rows.weight)
        return doubts.began_badly(self.predictability, self._error(run), constant)

    def _error(self, run: Run) -> float:
        """The least of the rows that it learned from."""
        return float(np.nanmin(run.history["error"], initial=np.inf))
