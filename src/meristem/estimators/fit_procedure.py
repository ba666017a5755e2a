"""The steps of a fit, from encoded rows to a trained run.

    choose_dropout   where dropout may help or harm, or a quick model predicts nothing from the inputs, short trainings with
                     held-out rows decide: with dropout or without; and a strong l2 if a network predicts nothing either
    train            from the initial or stored state
    enlarge          in a larger room (training_settings.py), where the network is crowded or little was learned
    restart          from another seed with a higher learning rate, where the targets are predictable and little was learned
    replay           where held-out rows determined how long to train, all rows are trained as long (train/replay.py)
    fit_warning      GrowthWarning: the training failed; nothing opened although the fit is poor; or a limit on the size was
                     reached. scikit-learn's ConvergenceWarning: it ended at max_epochs while the loss was falling considerably

Heuristics compare the training with the predictability of the targets (defaults.py) and the error of the best constant
prediction.
"""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from meristem.estimators.encoded_table import EncodedTable
from meristem.estimators.flash_budget import FlashBudget
from meristem.estimators.training_settings import is_crowded, larger_networks
from meristem.nn import Network
from meristem.nn.structure import structure
from meristem.paths.folds import Fold, fold_weights
from meristem.paths.halving import least_loss
from meristem.show.time_left import ROOM
from meristem.train.callbacks import WatcherGroup
from meristem.train.hyperparameters import Knobs, Recipe
from meristem.train.loop import DivergedError, fit
from meristem.train.replay import replay_on_all_rows
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
POOR, FAILED = 0.5, 2.0  # training error relative to that of a constant prediction
CONSIDERABLE = 0.01  # of the total decrease of the loss
LEAST_EPOCHS = 10  # to judge whether a loss is falling


class GrowthWarning(UserWarning):
    """The training or the size of the network suggests to change a parameter."""


@dataclass(frozen=True, eq=False)
class FitProcedure:
    """The data and settings of a fit."""

    estimator: Any
    table: EncodedTable
    prepared: Prepared
    recipe: Recipe
    knobs: Knobs
    fold: Fold | None  # training and held-out rows, for a replay
    epochs: int
    watch: WatcherGroup
    is_patient: bool  # whether the loss of held-out rows may rise for long
    predictability: float | None  # None: not computed
    flash: FlashBudget | None = None

    def run(self, state: TrainState, *, is_first: bool) -> tuple[Run, Run]:
        """Return the run of the final network, and the one that determined how long to train, which may be the same.

        `is_first`: the network has not been trained before, so its settings may be chosen and its training restarted.
        """
        if not is_first:
            run = self._train(state, self.knobs, "train")
            return self._within_flash(run, [], None), run
        knobs, rooms = self._choose_dropout(state), self.estimator._rooms
        self.watch.expect(float(self.fold is not None))
        is_tree = self.estimator._body == "budding"
        self.watch.may_enlarge(larger_networks(rooms, 0, is_tree=is_tree))
        run, room = self._train(state, knobs, "train"), rooms[0]
        for number, larger in enumerate(rooms[1:], 1):
            if not self._is_complete(run) or not (is_crowded(run.best, room) or self._learned_too_little(run)):
                break
            try:
                self.watch.expect(float(self.fold is not None))
                other = self._train(self.estimator._new_state(self.table, larger), knobs, f"{ROOM}{number}")
            except DivergedError:
                break
            self.watch.may_enlarge(larger_networks(rooms, number, is_tree=is_tree))
            if not self._is_complete(other):
                break
            run, room = (other, larger) if other.state.best[0] < run.state.best[0] else (run, room)
        for number in range(1, TRIALS):
            if not self._is_complete(run) or not self._learned_too_little(run):
                break
            patience = RESTART_FACTOR * self.estimator._patience(self._n)
            restart_knobs = knobs._replace(learning_rate=RESTART_FACTOR * knobs.learning_rate, patience=patience)
            other = self._train(self.estimator._new_state(self.table, room, number), restart_knobs, f"restart-{number}")
            run = min(run, other, key=_training_error)
        if not run.best_epoch or not self._is_complete(run):
            return self._within_flash(run, [], None), run
        if self.fold is None:
            return self._within_flash(run, [run], room), run
        self.watch.may_enlarge(None)
        replayed = self._replayed(run, room, run.knobs.budget, "replay")
        return self._within_flash(run if replayed.diverged else replayed, [run], room), run

    def _replayed(self, run: Run, room: Any, budget: Any, part: str) -> Run:
        state = self.estimator._new_state(self.table, room)
        return replay_on_all_rows([run], state, [self.prepared], self._n, budget, self.watch.part(part))

    def _within_flash(self, run: Run, timed: list[Run], room: Any) -> Run:
        """Return the run, or one whose C file is within a budget in bytes, trained as long as those `timed`, if any."""
        if self.flash is None:
            return run

        def retrained(cost: float, number: int) -> list[Run] | None:
            runs = [self._replayed(own, room, cost, f"smaller-{number}") for own in timed]
            return None if any(own.diverged or self.watch.over() for own in runs) else runs

        return self.flash.limited([run], self.prepared, retrained)[0]

    @property
    def _n(self) -> int:
        return len(self.table.y)

    def _train(self, state: TrainState, knobs: Knobs, part: str) -> Run:
        """Return a complete run, with less patience on some of the rows; one that diverged after a good epoch ends there."""
        if self.fold is not None:
            patience = self.estimator._patience(self._n, STEPS_SHARE, is_patient=self.is_patient)
            share = patience / self.estimator._patience(self._n)
            knobs = knobs._replace(patience=np.round(share * np.asarray(knobs.patience)))
            train, held_out = fold_weights([self.fold], len(self.prepared.data.x))
            knobs = knobs._replace(weight=train[0], dev_weight=held_out[0])
        begun = of_state(state, self.recipe, knobs, max_capacity=self.estimator._most_leaves(state.network))
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
        chooses = isinstance(self.estimator.input_dropout, str) and self.knobs.dropout is not None
        if self.prepared.data.dev_x is not None or not (is_unpredictable or chooses):
            return self.knobs
        knobs, fold = self.knobs, table.split(self.estimator.validation_fraction)
        if fold is not None:
            recipe = self.estimator._recipe(table.targets, self._n, has_dev=True, work=0, is_patient=self.is_patient)
            short = replace(self, recipe=recipe, fold=fold, epochs=self.estimator._epochs(self._n, STEPS_SHARE))
            dropouts, trials = (0.0, knobs.dropout) if chooses else (knobs.dropout,), list[Run]()
            for number, dropout in enumerate(dropouts, 1):
                self.watch.expect(len(dropouts) - number + 1 + float(self.fold is not None))
                trials.append(short._train(state, knobs._replace(dropout=dropout), f"dropout-{number}"))
            best, held_out = min(trials, key=least_loss), fold[1]
            knobs = knobs._replace(dropout=best.knobs.dropout)
            constant = objective.constant_error(table.y[held_out], table.weight[held_out])
            error, deviation = best.history["dev_error"][int(best.best_epoch) - 1], constant * max(1 - constant, 0.0)
            if error < constant - 2 * np.sqrt(deviation / len(held_out)):  # by two standard errors: not by chance
                return knobs
        return knobs._replace(l2=STRONG_L2 / self._n) if is_unpredictable else knobs

    def _is_complete(self, run: Run) -> bool:
        """Return whether a run ended by itself: it was not interrupted and did not diverge."""
        return bool(not run.diverged and (run.stopped or run.epochs >= self.epochs))

    def _learned_too_little(self, run: Run) -> bool:
        """Return whether the error is large although the targets are predictable: some trainings end before anything opens."""
        share = self.predictability
        if share is None or share <= PREDICTABLE or self.prepared.data.dev_x is not None:
            return False
        constant = self.table.targets.objective.constant_error(self.table.y, self.table.weight)
        return _training_error(run) > (1 - LEARNED * share) * constant > 0


def _training_error(run: Run) -> float:
    return float(np.nanmin(run.history["error"], initial=np.inf))


def fit_warning(run: Run, network: Network, max_epochs: int, constant: float, max_capacity: int) -> Warning | None:
    """Return the warning of a fit, or None; `constant` is the error of the best constant prediction."""
    error = float(run.history["error"][int(run.best_epoch) - 1])
    if error > FAILED * constant > 0:  # a linear start alone is better
        return GrowthWarning(
            f"The training diverged: the error of its best model is {error:.3g}, that of a constant prediction {constant:.3g}. "
            "Lower learning_rate, or check the scale of the features."
        )
    waited = bool(((run.history["waited"] > 0) & (run.history["most_leaves"] >= max_capacity)).any())
    body = structure(network.body)
    crowded, unopened = body.crowded(most=max_capacity, waited=waited), body.unopened()
    if crowded is not None:
        return GrowthWarning(crowded)
    if unopened is not None and error > POOR * constant > 0:
        return GrowthWarning(
            f"The fit is poor (training error {error:.3g}, that of a constant prediction is {constant:.3g}), and {unopened}: "
            "lower penalty, raise learning_rate or max_epochs, or check the scale and relevance of the features."
        )
    epochs, best = int(run.epochs), int(run.best_epoch)
    patience = min(run.patience, max(LEAST_EPOCHS, epochs // 2))
    if run.stopped or not max_epochs == epochs > patience or epochs - best >= patience:
        return None
    losses = run.history["dev_loss"]
    late, total = losses[:-patience].min() - losses[best - 1], losses[0] - losses[best - 1]
    if not late > CONSIDERABLE * total:
        return None
    return ConvergenceWarning(
        f"Training ended at max_epochs={max_epochs} while the loss was still falling, in the last {patience} epochs by "
        f"{late / total:.1%} of its total decrease: raise max_epochs."
    )
