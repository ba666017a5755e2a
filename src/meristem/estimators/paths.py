"""Paths of estimators: a table of numbers and targets as the members of a path take it, and what they come to.

    table = Table.of(estimator, X, y, weight)            checked, encoded and scaled once, from all rows
    search(estimator, table, cv=5, penalties="auto", …)  → Path and the members' runs

An estimator is the plain one whose parameters stand for all that is not searched. cv.py and `meristem.path` import it.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import KFold, StratifiedKFold, check_cv

from meristem.cache import keep_programs
from meristem.estimators import buckets
from meristem.estimators.base import Growing
from meristem.estimators.device import on
from meristem.estimators.parameters import check_parameters, seed_of
from meristem.estimators.training import Rows, data_of
from meristem.paths.folds import fold_weights
from meristem.paths.members import grid
from meristem.paths.path import knobs_of, result_of
from meristem.paths.penalties import highest, penalties_below
from meristem.paths.result import Path
from meristem.paths.training import trained
from meristem.targets import Scaling, Targets
from meristem.train.run import Run, of_state
from meristem.train.samples import prepare
from meristem.train.watching import watcher_of

Folds = list[tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True, eq=False)
class Table:
    """What was given, as members take it."""

    rows: Rows
    targets: Targets
    scaling: Scaling
    seed: int
    y: np.ndarray  # as it was given, for folds

    @staticmethod
    def of(estimator: Growing, X: Any, y: Any, sample_weight: Any = None) -> "Table":
        """Sets the estimator's number and names of features."""
        X, y, weight = estimator._validated(X, y, sample_weight, reset=True)
        targets = estimator._targets(y, weight)
        rows = Rows(X, targets.encode(y), weight)
        return Table(rows, targets, estimator._scaling(rows), seed_of(estimator.random_state), y)

    def folds(self, cv: Any, *, classes: bool) -> Folds:
        """(training rows, held-out rows): shuffled, with as much of each class in all of them where that can be."""
        n = len(self.rows.y)
        if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
            if not 2 <= cv <= n:
                raise ValueError(f"cv={cv} must be at least 2, and at most as many as there are samples: n_samples={n}.")
            counts = np.unique(self.y, return_counts=True)[1] if classes and self.y.ndim == 1 else np.zeros(1)
            kind = StratifiedKFold if counts.min() >= cv else KFold
            cv = kind(int(cv), shuffle=True, random_state=self.seed % 2**31)
        return list(check_cv(cv, self.y, classifier=classes).split(np.zeros((n, 1)), self.y))


def search(
    estimator: Growing,
    table: Table,
    *,
    cv: Any,
    penalties: Any = "auto",
    l2s: Any = "auto",
    dropouts: Any = "auto",
    learning_rates: Any = None,
    seeds: int = 1,
    budget: float | None = None,
    halving: bool = True,
    together: bool | None = None,
    watch: Any = None,
) -> tuple[Path, list[Run]]:
    """Every setting in every fold; the runs are in the order of the path's rows."""
    keep_programs()
    n, targets = len(table.rows.y), table.targets
    folds = table.folds(cv, classes=is_classifier(estimator))
    if isinstance(penalties, str):
        objective = buckets.shared(targets.objective)
        y = table.rows.y.reshape(n, -1) if not objective.targets_are_classes else table.rows.y
        top = highest(y, table.rows.weight, objective, estimator.n_features_in_, targets.n_out, str(estimator.price))
        penalties = penalties_below(top) if budget is None else [0.0]
    members = grid(
        penalties=penalties,
        l2s=estimator._prior(n, targets) if isinstance(l2s, str) else l2s,
        dropouts=(0.0, estimator._auto_dropout()) if isinstance(dropouts, str) else dropouts,
        rates=[float(estimator.learning_rate)] if learning_rates is None else learning_rates,
        folds=len(folds),
        seeds=range(seeds),
    )
    begun = time.perf_counter()
    with on(estimator.device):
        states = {
            (fold, seed): estimator._fresh(targets, (table.seed + len(folds) * seed + fold) % 2**32)
            for fold in range(len(folds))
            for seed in range(seeds)
        }
        network = states[0, 0].network
        recipe = estimator._recipe(targets, has_dev=True, work=0)
        data = data_of(table.rows, None, table.scaling, network, recipe.task)
        weights = fold_weights(folds, len(data.x))
        runs = [
            of_state(
                states[int(fold), int(seed)],
                recipe,
                knobs if budget is None else knobs._replace(budget=budget),
                max_capacity=estimator._max_leaves(),
            )
            for knobs, fold, seed in zip(knobs_of(members, weights), members.fold, members.seed, strict=True)
        ]
        runs = trained(
            runs,
            prepare(data, network, recipe.task),
            members.settings,
            max_epochs=int(estimator.max_epochs),
            halving=halving,
            together=together,
            watcher=watcher_of("watch", watch),
        )
        networks = [buckets.narrow(run.best, estimator.n_features_in_, targets.n_out) for run in runs]
        path = result_of(members, runs, networks, time.perf_counter() - begun)
    return path, runs


def path_of(estimator: Any, data: Any, *, l2s: Any, dropouts: Any, **how: Any) -> Path:
    """`meristem.path` of an estimator; what is not given is as the estimator has it."""
    if not isinstance(estimator, Growing):
        raise ValueError(f"A {type(estimator).__name__} has no path; give one of meristem's plain estimators, or a Network.")
    if not isinstance(data, tuple | list) or len(data) != 2:
        raise ValueError("The data of an estimator are a pair: path(estimator, (X, y), …).")
    check_parameters(estimator)
    table = Table.of(estimator, *data)
    facts = estimator._facts(table.rows, table.targets, goes_on=False, is_stream=False)
    knobs = estimator._knobs(facts, table.targets)
    l2s, dropouts = [knobs.l2] if l2s is None else l2s, [knobs.dropout or 0.0] if dropouts is None else dropouts
    return search(estimator, table, l2s=l2s, dropouts=dropouts, **how)[0]
