"""Paths of estimators: a table of numbers and targets as the members of a path take it, and what they come to.

    table = Table.of(estimator, X, y, weight)                    checked, encoded and scaled once, from all rows
    search = Search(estimator, table, table.folds(5, classes=True))

An estimator is the plain one whose parameters stand for all that is not searched. searching.py says what is tried; cv.py and
`meristem.path` import it.
"""

import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.metrics import get_scorer
from sklearn.model_selection import KFold, StratifiedKFold, check_cv

from meristem.check import short
from meristem.compact import compact
from meristem.compact.inference import as_numpy
from meristem.estimators import buckets
from meristem.estimators.base import Growing
from meristem.estimators.course import SHARE
from meristem.estimators.features import named
from meristem.estimators.parameters import seed_of
from meristem.estimators.settings import PATIENCE, PATIENT
from meristem.estimators.training import Rows, data_of, transformed
from meristem.inputs import Inputs
from meristem.inputs.statistics import n_numbers
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
from meristem.train.objectives import Objective
from meristem.train.population import replay_on_all_rows
from meristem.train.run import Run, of_state
from meristem.train.temperature import tempered
from meristem.train.training_data import Prepared, prepare

ALPHAS = (0.01, 0.3, 10.0)
Folds = list[tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True, eq=False)
class Table:
    """What was given, as members take it."""

    rows: Rows
    targets: Targets
    inputs: Inputs
    seed: int
    y: np.ndarray  # as it was given, for folds

    @staticmethod
    def of(estimator: Growing, X: Any, y: Any, sample_weight: Any = None) -> "Table":
        """Sets the estimator's number and names of features."""
        X, y, weight = estimator._validated(X, y, sample_weight, reset=True)
        targets = estimator._targets(y, weight)
        rows = Rows(X, targets.encode(y), weight)
        return Table(rows, targets, estimator._learn_inputs(rows), seed_of(estimator.random_state), y)

    @cached_property
    def n_numbers(self) -> int:
        """The columns that are more than an indicator."""
        return n_numbers(self.rows.x, self.rows.weight)

    @cached_property
    def z(self) -> Any:
        """The inputs of all rows, made once for folds and training."""
        return transformed(self.rows.x, self.inputs)

    def folds(self, cv: Any, *, classes: bool) -> Folds:
        """(training rows, held-out rows): shuffled, with as much of each class in all of them where that can be.

        Rows with numbers that are far out are never held out where no one says how: all folds learn from them.
        """
        n = len(self.rows.y)
        if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
            if not 2 <= cv <= n:
                raise ValueError(f"cv={cv} must be at least 2, and at most as many as there are samples: n_samples={n}.")
            counts = np.unique(self.y, return_counts=True)[1] if classes and self.y.ndim == 1 else np.zeros(1)
            kind = StratifiedKFold if counts.min() >= cv else KFold
            drawn = kind(int(cv), shuffle=True, random_state=self.seed % 2**31).split(np.zeros((n, 1)), self.y)
            judges = self.inputs.preprocessor.typical(self.z)
            folds = [_judged_by(judges, learn, held) for learn, held in drawn]
            check_weights(folds, self.rows.weight)
            return folds
        try:
            drawn = list(check_cv(cv, self.y, classifier=classes).split(np.zeros((n, 1)), self.y))
            folds = [(np.arange(n)[learn], np.arange(n)[held]) for learn, held in drawn]
        except (ValueError, TypeError, IndexError, AttributeError) as error:
            raise named(error, f"cv={short(cv)}") from error
        if not folds or not all(rows.ndim == 1 and rows.size for fold in folds for rows in fold):
            raise ValueError(f"cv={short(cv)} must give (training rows, held-out rows), neither without any, for each fold.")
        check_weights(folds, self.rows.weight)
        return folds


@dataclass(frozen=True, eq=False)
class Search:
    """How the members of a search are begun and trained."""

    estimator: Growing
    table: Table
    folds: Folds
    seeds: int = 1
    budget: float | None = None
    together: bool | None = None
    scoring: Any = None  # as scikit-learn takes it; None: the held-out loss
    watcher: WatcherGroup = field(default_factory=lambda: WatcherGroup([]))

    def penalties(self, given: Any) -> list[float]:
        """Those that are given, or some that are found from the data; with a budget the price is found by each run."""
        if not isinstance(given, str):
            return [float(penalty) for penalty in given]
        if self.budget is not None:
            return [0.0]
        weight, (y, objective) = self.table.rows.weight, self._as_learned
        n_in, n_out = self.table.inputs.n_inputs, self.table.targets.n_out
        return penalties_below(highest_penalty(y, weight, objective, n_in, n_out, str(self.estimator.price))).tolist()

    def l2s(self, given: Any) -> Any:
        """Those that are given; else, as alpha of ridge regression is counted, from a hundredth to ten."""
        return [alpha / len(self.table.rows.y) for alpha in ALPHAS] if isinstance(given, str) else given

    def dropouts(self, given: Any) -> Any:
        """Those that are given; else none, and what the estimator would drop where dropping may help."""
        return sorted({0.0, self.estimator._auto_dropout(self.table.n_numbers)}) if isinstance(given, str) else given

    def grid(self, *, penalties: Any, l2s: Any, dropouts: Any, rates: Any) -> Members:
        """Every combination, in every fold, from every seed."""
        return grid(
            penalties=penalties, l2s=l2s, dropouts=dropouts, rates=rates, folds=len(self.folds), seeds=range(self.seeds)
        )

    def begun(self, members: Members) -> list[Run]:
        """Before the first epoch. Members of one fold and seed begin alike."""
        targets, folds = self.table.targets, len(self.folds)
        states = {
            (fold, seed): self.estimator._fresh(targets, self.table.inputs, (self.table.seed + folds * seed + fold) % 2**32)
            for fold in range(folds)
            for seed in range(self.seeds)
        }
        knobs = knobs_of(members, fold_weights(self.folds, len(self.prepared.data.x)))
        least = PATIENT if self._is_patient else PATIENCE
        patience = float(self.estimator._patience(len(self.table.rows.y), SHARE, least))
        return [
            of_state(
                states[int(fold), int(seed)],
                self.recipe,
                one._replace(budget=self.budget, patience=patience, passes=self.estimator._passes(len(self.table.rows.y))),
                max_capacity=self.estimator._max_leaves(),
            )
            for one, fold, seed in zip(knobs, members.fold, members.seed, strict=True)
        ]

    def trained(
        self, runs: list[Run], members: Members, stays: Stays | None, first: int = 0, *, all_begin: bool = True
    ) -> list[Run]:
        """At their end; `first`: the number by which watchers call the first of them."""
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
        """Of all members."""
        return self.estimator._recipe(self.table.targets, has_dev=True, work=0, is_patient=self._is_patient)

    @property
    def _is_patient(self) -> bool:
        """Where rows held out may get worse for long: not the loss of classes, which is that at the best temperature."""
        return isinstance(self.estimator.patience, str) and not self.table.targets.objective.outputs_are_logits

    @property
    def max_epochs(self) -> int:
        """Of each member."""
        return self.estimator._epochs(len(self.table.rows.y), SHARE)

    @cached_property
    def begun_network(self) -> Network:
        """As every member begins, but for what is drawn at random."""
        return self.estimator._fresh(self.table.targets, self.table.inputs, self.table.seed).network

    @cached_property
    def prepared(self) -> Prepared:
        """The rows, once for all members."""
        network = self.begun_network
        data = data_of(self.table.rows, self.table.z, network, self.recipe.task)
        return prepare(data, network, self.recipe.task)

    @cached_property
    def constant_losses(self) -> np.ndarray:
        """[folds]: of a network that says the same of all rows."""
        rows, targets = self.table.rows, self.table.targets
        y, objective = self._as_learned
        return constant_losses(y, rows.weight, self.folds, objective, targets.n_out)

    @property
    def _as_learned(self) -> tuple[np.ndarray, Objective]:
        """The targets and their objective as networks that share a shape have them."""
        y, objective = self.table.rows.y, buckets.shared(self.table.targets.objective)
        return (y if objective.targets_are_classes else y.reshape(len(y), -1)), objective

    def on_all_rows(self, runs: list[Run]) -> Run:
        """A network that was trained on all rows as these were on theirs."""
        state = self.estimator._fresh(self.table.targets, self.table.inputs, self.table.seed)
        return replay_on_all_rows(runs, state, self.prepared, len(self.table.rows.y), self.budget, self.watcher.part("replay"))

    def path(self, members: Members, runs: list[Run], seconds: float) -> Path:
        """What they came to."""
        n_in, n_out = self.table.inputs.n_inputs, self.table.targets.n_out
        networks = [trim_ends(run.best, n_in, n_out) for run in runs]
        return result_of(members, runs, networks, self.max_epochs, seconds, self._scores(members, runs))

    def _scores(self, members: Members, runs: list[Run]) -> list[float] | None:
        """Of each member on the rows that it held out, where someone asks for another score than the loss."""
        if self.scoring is None:
            return None
        scorer = get_scorer(self.scoring)  # a function is one already
        X, y = self.table.rows.x, self.table.y

        def score(run: Run, held: np.ndarray) -> float:
            if not run.best_epoch:
                return -np.inf
            one = fitted(self.estimator, self.table, run, float(run.temperature))
            try:
                return float(scorer(one, X[held], y[held]))
            except (ValueError, TypeError, AttributeError) as error:
                raise named(error, f"scoring={short(self.scoring)}") from error

        return [score(run, self.folds[fold][1]) for run, fold in zip(runs, members.fold, strict=True)]


def fitted(plain: Growing, table: Table, run: Run, temperature: float) -> Growing:
    """A plain estimator with the best network of a run."""
    one = copy.copy(plain)
    network = tempered(trim_ends(run.best, table.inputs.n_inputs, table.targets.n_out), temperature)
    facts = {"n_samples_seen_": int((table.rows.weight > 0).sum())}
    small = as_numpy(compact(network))
    one._keep(run, network, small, table.targets, table.inputs, facts, goes_on=False, keeps_last=False)
    return one


def _judged_by(judges: np.ndarray, learn: np.ndarray, held: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A fold of whose held-out rows only judges are held out, if there are any."""
    fit = judges[held]
    return (np.sort(np.concatenate([learn, held[~fit]])), held[fit]) if fit.any() else (learn, held)
