"""A search over penalty, l2 and dropout: the encoded table, and how its members are started, trained and scored.

    table = EncodedTable.of(estimator, X, y, weight)             checked, encoded and scaled once, from all rows
    search = Search(estimator, table, table.folds(5, classes=True))

The estimator has one network; its parameters apply to everything that is not searched. search_strategies.py determines what
is tried.
"""

import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.metrics import get_scorer
from sklearn.model_selection import KFold, StratifiedKFold, check_cv

from meristem.check import short
from meristem.estimators.base import HELD_OUT_PATIENCE, PATIENCE
from meristem.estimators.fit_procedure import STEPS_SHARE
from meristem.estimators.growing import Growing
from meristem.estimators.input_checks import naming_argument
from meristem.estimators.padding import Rows, padded_data, shared_objective, transformed
from meristem.estimators.parameters import seed_of
from meristem.inputs import Inputs
from meristem.inputs.preprocessor import n_numbers
from meristem.nn import Network
from meristem.nn.ends import trim_ends
from meristem.paths.folds import check_weights, constant_losses, fold_weights
from meristem.paths.halving import Stays, trained
from meristem.paths.members import Members, grid, highest_penalty, penalties_below
from meristem.paths.penalty_path import knobs_of, result_of
from meristem.paths.result import Path
from meristem.targets import Targets
from meristem.train.callbacks import RenumberedWatcher, WatcherGroup
from meristem.train.hyperparameters import Recipe
from meristem.train.loop import replay_on_all_rows
from meristem.train.metrics import tempered
from meristem.train.objectives import Objective
from meristem.train.run import Run, of_state
from meristem.train.train_state import TrainState
from meristem.train.training_data import Prepared, prepare

ALPHAS = (0.01, 0.3, 10.0)  # l2 · rows, as alpha of ridge regression
Folds = list[tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True, eq=False)
class EncodedTable:
    """The rows of a search."""

    rows: Rows
    targets: Targets
    inputs: Inputs
    seed: int
    y: np.ndarray  # not encoded, for folds and scores

    @staticmethod
    def of(estimator: Growing, X: Any, y: Any, sample_weight: Any = None) -> "EncodedTable":
        """Return the encoded rows; sets the number and names of the estimator's features."""
        X, y, weight = estimator._validated(X, y, sample_weight, reset=True)
        targets = estimator._make_targets(y, weight)
        rows = Rows(X, targets.encode(y), weight)
        return EncodedTable(rows, targets, estimator._learn_inputs(rows), seed_of(estimator.random_state), y)

    @cached_property
    def z(self) -> Any:
        """The network inputs of all rows, for folds and training."""
        return transformed(self.rows.x, self.inputs)

    def folds(self, cv: Any, *, classes: bool) -> Folds:
        """Return (training rows, held-out rows) of each fold.

        A number of folds are shuffled, stratified if possible, and do not hold out outliers: every fold trains on them.
        """
        n = len(self.rows.y)
        if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
            if not 2 <= cv <= n:
                raise ValueError(f"cv={cv} must be at least 2, and at most as many as there are samples: n_samples={n}.")
            counts = np.unique(self.y, return_counts=True)[1] if classes and self.y.ndim == 1 else np.zeros(1)
            kind = StratifiedKFold if counts.min() >= cv else KFold
            splits = kind(int(cv), shuffle=True, random_state=self.seed % 2**31).split(np.zeros((n, 1)), self.y)
            is_typical = self.inputs.preprocessor.typical(self.z)
            folds = [_without_outliers(is_typical, train, test) for train, test in splits]
        else:
            try:
                splits = list(check_cv(cv, self.y, classifier=classes).split(np.zeros((n, 1)), self.y))
                folds = [(np.arange(n)[train], np.arange(n)[test]) for train, test in splits]
            except (ValueError, TypeError, IndexError, AttributeError) as error:
                raise naming_argument(error, f"cv={short(cv)}") from error
            if not folds or not all(rows.ndim == 1 and rows.size for fold in folds for rows in fold):
                raise ValueError(f"cv={short(cv)} must give non-empty (training rows, held-out rows) for each fold.")
        check_weights(folds, self.rows.weight)
        return folds


@dataclass(frozen=True, eq=False)
class Search:
    """How the members of a search are started, trained and scored."""

    estimator: Growing
    table: EncodedTable
    folds: Folds
    seeds: int = 1
    budget: float | None = None
    together: bool | None = None
    scoring: Any = None  # as scikit-learn takes it; None: the held-out loss
    watcher: WatcherGroup = field(default_factory=lambda: WatcherGroup([]))

    def penalties(self, values: Any) -> list[float]:
        """Return the values, or for "auto" a grid that depends on the data; with a budget each run adapts its penalty."""
        if not isinstance(values, str):
            return [float(penalty) for penalty in values]
        if self.budget is not None:
            return [0.0]
        weight, (y, objective) = self.table.rows.weight, self._shared_targets
        n_in, n_out = self.table.inputs.n_inputs, self.table.targets.n_out
        return penalties_below(highest_penalty(y, weight, objective, n_in, n_out, str(self.estimator.price))).tolist()

    def l2s(self, values: Any) -> Any:
        return [alpha / len(self.table.rows.y) for alpha in ALPHAS] if isinstance(values, str) else values

    def dropouts(self, values: Any) -> Any:
        if not isinstance(values, str):
            return values
        n_numeric = n_numbers(self.table.rows.x, self.table.rows.weight)
        return sorted({0.0, self.estimator._defaults.dropout(n_numeric)})

    def grid(self, *, penalties: Any, l2s: Any, dropouts: Any, rates: Any) -> Members:
        """Return the members of every combination, in every fold, from every seed."""
        lists = {"penalties": penalties, "l2s": l2s, "dropouts": dropouts, "rates": rates}
        return grid(**lists, folds=len(self.folds), seeds=range(self.seeds))

    def begun(self, members: Members) -> list[Run]:
        """Return the runs before the first epoch; members of one fold and seed have the same initial state."""
        folds, n = len(self.folds), len(self.table.rows.y)
        states = {
            (fold, seed): self._new_state((self.table.seed + folds * seed + fold) % 2**32)
            for fold in range(folds)
            for seed in range(self.seeds)
        }
        knobs = knobs_of(members, fold_weights(self.folds, len(self.prepared.data.x)))
        patience = self.estimator._patience(n, STEPS_SHARE, HELD_OUT_PATIENCE if self._is_patient else PATIENCE)
        shared: dict[str, Any] = {"budget": self.budget, "patience": float(patience), "passes": self.estimator._passes(n)}
        return [
            of_state(
                states[int(fold), int(seed)], self.recipe, own._replace(**shared), max_capacity=self.estimator._max_capacity
            )
            for own, fold, seed in zip(knobs, members.fold, members.seed, strict=True)
        ]

    def _new_state(self, seed: int) -> TrainState:
        return self.estimator._new_state(self.table.targets, self.table.inputs, seed)

    def trained(
        self, runs: list[Run], members: Members, stays: Stays | None, first: int = 0, *, all_begin: bool = True
    ) -> list[Run]:
        """Return the complete runs; `first`: the number of the first one for watchers."""
        watcher = WatcherGroup([RenumberedWatcher(self.watcher.part("search"), {m: first + m for m in range(len(runs))})])
        watcher.begin(members.named)
        return trained(
            runs,
            self.prepared,
            members.settings,
            max_epochs=self.max_epochs,
            stays=stays,
            together=self.together,
            all_begin=all_begin,
            watcher=watcher,
        )

    @cached_property
    def recipe(self) -> Recipe:
        """The recipe of all members."""
        return self.estimator._recipe(self.table.targets, has_dev=True, work=0, is_patient=self._is_patient)

    @property
    def _is_patient(self) -> bool:
        """Whether the held-out loss may rise for long: not that of classes, which is taken at the best temperature."""
        return isinstance(self.estimator.patience, str) and not self.table.targets.objective.outputs_are_logits

    @property
    def max_epochs(self) -> int:
        """The most epochs of a member."""
        return self.estimator._epochs(len(self.table.rows.y), STEPS_SHARE)

    @cached_property
    def begun_network(self) -> Network:
        """An untrained network."""
        return self._new_state(self.table.seed).network

    @cached_property
    def prepared(self) -> Prepared:
        """The padded rows of all members."""
        network = self.begun_network
        data = padded_data(self.table.rows, self.table.z, network, self.recipe.task)
        return prepare(data, network, self.recipe.task)

    @cached_property
    def constant_losses(self) -> np.ndarray:
        """The held-out loss of a constant prediction in each fold, [folds]."""
        rows, targets = self.table.rows, self.table.targets
        y, objective = self._shared_targets
        return constant_losses(y, rows.weight, self.folds, objective, targets.n_out)

    @property
    def _shared_targets(self) -> tuple[np.ndarray, Objective]:
        """The targets and their objective as padded networks have them."""
        y, objective = self.table.rows.y, shared_objective(self.table.targets.objective)
        return (y if objective.targets_are_classes else y.reshape(len(y), -1)), objective

    def on_all_rows(self, runs: list[Run]) -> Run:
        """Return a run on all rows with the schedule of these runs."""
        state, watcher = self._new_state(self.table.seed), self.watcher.part("replay")
        return replay_on_all_rows(runs, state, self.prepared, len(self.table.rows.y), self.budget, watcher)

    def path(self, members: Members, runs: list[Run], seconds: float) -> Path:
        """Return the results."""
        n_in, n_out = self.table.inputs.n_inputs, self.table.targets.n_out
        networks = [trim_ends(run.best, n_in, n_out) for run in runs]
        return result_of(members, runs, networks, self.max_epochs, seconds, self._scores(members, runs))

    def _scores(self, members: Members, runs: list[Run]) -> list[float] | None:
        """Return the score of each member on its held-out rows; None where the score is the loss."""
        if self.scoring is None:
            return None
        scorer = get_scorer(self.scoring)  # returns a function as it is
        X, y = self.table.rows.x, self.table.y

        def score(run: Run, test: np.ndarray) -> float:
            if not run.best_epoch:
                return -np.inf
            model = fitted(self.estimator, self.table, run, float(run.temperature))
            try:
                return float(scorer(model, X[test], y[test]))
            except (ValueError, TypeError, AttributeError) as error:
                raise naming_argument(error, f"scoring={short(self.scoring)}") from error

        return [score(run, self.folds[fold][1]) for run, fold in zip(runs, members.fold, strict=True)]


def fitted(estimator: Growing, table: EncodedTable, run: Run, temperature: float) -> Growing:
    """Return a copy of an estimator with the best network of a run."""
    model = copy.copy(estimator)
    network = tempered(trim_ends(run.best, table.inputs.n_inputs, table.targets.n_out), temperature)
    facts = {"n_samples_seen_": int((table.rows.weight > 0).sum())}
    model._store(run, network, table.targets, table.inputs, facts)
    return model


def _without_outliers(is_typical: np.ndarray, train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a fold with the outliers among its held-out rows moved to its training rows, unless all are outliers."""
    stays = is_typical[test]
    return (np.sort(np.concatenate([train, test[~stays]])), test[stays]) if stays.any() else (train, test)
