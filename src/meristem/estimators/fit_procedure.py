"""The steps of a fit, from encoded rows to a trained run.

    choose_dropout   where dropout may help or harm, or a quick model predicts nothing from the inputs, short trainings with
                     held-out rows decide: with dropout or without; and a strong l2 if a network predicts nothing either
    train            from the initial or stored state
    enlarge          in a larger room (room.py), where the network is crowded or little was learned
    restart          from another seed with a higher learning rate, where the targets are predictable and little was learned
    replay           where held-out rows determined how long to train, all rows are trained as long (train/loop.py)

Heuristics compare the training with the predictability of the targets (predictability.py) and the error of the best constant
prediction.
"""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from meristem.estimators.base import PATIENCE
from meristem.estimators.encoded_table import EncodedTable
from meristem.estimators.fit_warnings import GrowthWarning
from meristem.estimators.room import Room, is_crowded
from meristem.paths.folds import Fold, in_fold
from meristem.paths.halving import least_loss
from meristem.train.callbacks import WatcherGroup
from meristem.train.hyperparameters import Knobs, Recipe
from meristem.train.loop import DivergedError, fit, replay_on_all_rows
from meristem.train.run import Run, of_state
from meristem.train.train_state import TrainState
from meristem.train.training_data import Prepared

STEPS_SHARE = 1 / 3  # of the usual steps and patience, where held-out rows determine when to stop
UNPREDICTABLE = 0.02  # 21 tables with shuffled classes all have less predictability, 27 with their own more than twice that
STRONG_L2 = 30.0  # / rows, so that a network does not memorize noise
LEARNED = 0.5  # of the predictability, at least
PREDICTABLE = 0.2
TRIALS = 3
RESTART_FACTOR = 3.0  # of learning rate and patience; the difficult spirals succeed in 6 of 6 cases, in place of 1


def is_chance(error: float, constant: float, rows: int) -> bool:
    """Return whether the error on held-out rows is not below that of a constant by two standard errors.

    >>> is_chance(0.4, 0.5, 40), is_chance(0.1, 0.5, 40)
    (True, False)
    """
    return not error < constant - 2 * np.sqrt(constant * max(1 - constant, 0.0) / rows)


def learned_too_little(predictability: float, error: float, constant: float) -> bool:
    """Return whether the training error is large although the targets are predictable.

    A tunnel starts linear, and some trainings end before anything opens.

    >>> [learned_too_little(*case) for case in ((0.99, 0.35, 0.5), (0.99, 0.01, 0.5), (0.1, 0.5, 0.5))]
    [True, False, False]
    """
    return predictability > PREDICTABLE and error > (1 - LEARNED * predictability) * constant > 0


@dataclass(frozen=True, eq=False)
class FitProcedure:
    """The data and settings of a fit."""

    estimator: Any
    table: EncodedTable
    prepared: Prepared
    recipe: Recipe
    knobs: Knobs
    dropouts: tuple[Any, ...]  # to choose from: numbers, or None
    fold: Fold | None  # training and held-out rows, for a replay
    least_passes: int  # over the rows, of patience
    predictability: float | None  # None: not computed
    epochs: int
    watch: WatcherGroup

    def run(self, state: TrainState, *, is_first: bool) -> tuple[Run, Run]:
        """Return the run of the final network, and the one that determined how long to train, which may be the same.

        `is_first`: the network has not been trained before, so its settings may be chosen and its training restarted.
        """
        knobs = self._choose_dropout(state) if is_first else self.knobs
        run, room = self._train(state, knobs, "train"), self.estimator._rooms[0]
        for number, larger in enumerate(self.estimator._rooms[1:], 1):
            needs_more = is_first and self._is_complete(run) and (is_crowded(run.best, room) or self._learned_too_little(run))
            if not needs_more or (other := self._in_room(larger, knobs, f"room-{number}")) is None:
                break
            run, room = (other, larger) if other.state.best[0] < run.state.best[0] else (run, room)
        for number in range(1, TRIALS):
            if not is_first or not self._is_complete(run) or not self._learned_too_little(run):
                break
            patience = RESTART_FACTOR * self.estimator._patience(self._n)
            restart_knobs = knobs._replace(learning_rate=RESTART_FACTOR * knobs.learning_rate, patience=patience)
            other = self._train(self._new_state(room, number), restart_knobs, f"restart-{number}")
            run = min(run, other, key=_training_error)
        if self.fold is None or not run.best_epoch or not self._is_complete(run):
            return run, run
        watch = self.watch.part("replay")
        replayed = replay_on_all_rows([run], self._new_state(room), [self.prepared], self._n, run.knobs.budget, watch)
        return run if replayed.diverged else replayed, run

    @property
    def _n(self) -> int:
        return len(self.table.y)

    def _new_state(self, room: Room, number: int = 0) -> TrainState:
        """Return an untrained state, that of the seed or another one."""
        return self.estimator._new_state(self.table.targets, self.table.inputs, (self.table.seed + number) % 2**32, room)

    def _in_room(self, room: Room, knobs: Knobs, part: str) -> Run | None:
        """Return a run in another room; None if it diverged or was interrupted."""
        try:
            run = self._train(self._new_state(room), knobs, part)
        except DivergedError:
            return None
        return run if self._is_complete(run) else None

    def _train(self, state: TrainState, knobs: Knobs, part: str) -> Run:
        """Return a complete run, with less patience on some of the rows; one that diverged after a good epoch ends there."""
        if self.fold is not None:
            share = self.estimator._patience(self._n, STEPS_SHARE, self.least_passes) / self.estimator._patience(self._n)
            knobs = knobs._replace(patience=np.round(share * np.asarray(knobs.patience)))
            knobs = in_fold(knobs, self.fold, len(self.prepared.data.x))
        begun = of_state(state, self.recipe, knobs, max_capacity=self.estimator._max_capacity)
        try:
            return fit(begun, self.prepared, max_epochs=self.epochs, watch=self.watch.part(part))
        except DivergedError as error:
            if not error.run.best_epoch:
                raise
            warnings.warn(str(error), GrowthWarning, stacklevel=6)
            return error.run

    def _choose_dropout(self, state: TrainState) -> Knobs:
        """Return the knobs with the dropout of the least held-out loss, and with a strong l2 where nothing is predictable."""
        table, objective = self.table, self.table.targets.objective
        is_nothing = self.predictability is not None and self.predictability < UNPREDICTABLE
        is_unpredictable = is_nothing and table.has_equal_weights and objective.error_is_share
        if self.prepared.data.dev_x is not None or not (is_unpredictable or len(self.dropouts) > 1):
            return self.knobs
        knobs, fold = self.knobs, table.split(self.estimator.validation_fraction)
        if fold is not None:
            recipe = self.estimator._recipe(
                table.targets, self._n, has_dev=True, work=0, is_patient=self.least_passes > PATIENCE
            )
            short = replace(self, recipe=recipe, fold=fold, epochs=self.estimator._epochs(self._n, STEPS_SHARE))
            trials = [
                short._train(state, knobs._replace(dropout=dropout), f"dropout-{number}")
                for number, dropout in enumerate(self.dropouts, 1)
            ]
            best, held_out = min(trials, key=least_loss), fold[1]
            knobs = knobs._replace(dropout=best.knobs.dropout)
            constant = objective.constant_error(table.y[held_out], table.weight[held_out])
            if not is_chance(float(best.history["dev_error"][int(best.best_epoch) - 1]), constant, len(held_out)):
                return knobs
        return knobs._replace(l2=STRONG_L2 / self._n) if is_unpredictable else knobs

    def _is_complete(self, run: Run) -> bool:
        """Return whether a run ended by itself: it was not interrupted and did not diverge."""
        return bool(not run.diverged and (run.stopped or run.epochs >= self.epochs))

    def _learned_too_little(self, run: Run) -> bool:
        if self.predictability is None or self.prepared.data.dev_x is not None:
            return False
        constant = self.table.targets.objective.constant_error(self.table.y, self.table.weight)
        return learned_too_little(self.predictability, _training_error(run), constant)


def _training_error(run: Run) -> float:
    return float(np.nanmin(run.history["error"], initial=np.inf))
