"""What a search tries: every combination, or one hyperparameter after the other.

every_combination(search, penalties=…, l2s=…, dropouts=…, rates=…)  → Path and the members' runs
one_by_one(search, penalties=…, …)      at the middle penalty, or the next lower one at which anything is learned, l2 by
successive halving, then dropout, whose effect shows late; with these every other
penalty, of which those that are clearly behind stop early
path_of(estimator, data, …)             `meristem.path` of an estimator
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from meristem.cache import keep_programs
from meristem.estimators.fit_context import on_device, watchers
from meristem.estimators.fit_procedure import STEPS_SHARE
from meristem.estimators.growing import Growing
from meristem.estimators.parameters import check_parameter, check_parameters
from meristem.estimators.search import EncodedTable, Search
from meristem.paths.folds import has_learned
from meristem.paths.halving import Stays, better_half, better_than, promising
from meristem.paths.members import Members
from meristem.paths.result import Path
from meristem.train.run import Run

LISTS = {
    "penalties": "penalty",
    "l2s": "l2",
    "dropouts": "dropout",
    "rates": "learning_rate",
}  # name in a search: name of a point


def every_combination(search: Search, *, stays: Stays | None = None, **lists: Any) -> tuple[Path, list[Run]]:
    """Return the path and the runs, in the order of the path's rows, of every combination."""
    begun = time.perf_counter()
    members = search.grid(**lists)
    runs = search.trained(search.begun(members), members, stays)
    return search.path(members, runs, time.perf_counter() - begun), runs


def one_by_one(search: Search, **lists: Any) -> tuple[Path, list[Run]]:
    """Choose l2 and learning rate at the middle penalty, then dropout, then the penalty.

    Where nothing is learned at that penalty, not even a linear model, lower ones are tried: l2 has no effect before.
    """
    begun, lists = time.perf_counter(), {name: sorted(values) for name, values in lists.items()}
    penalties, first_dropout = lists["penalties"], {"dropouts": lists["dropouts"][:1]}
    trials = _Trials(search)
    for penalty in penalties[len(penalties) // 2 :: -1]:
        trials.add(search.grid(**lists | first_dropout | {"penalties": [penalty]}), better_half)
        if trials.has_learned():
            break
    for name, knob in (("dropouts", "dropout"), ("penalties", "penalty")):
        path = trials.path(0.0)
        chosen, settings = path.best(), [point.knobs for point in path.points]
        others = [value for value in lists[name] if replace(chosen, **{knob: value}).knobs not in settings]
        if others:
            same = {list_name: [getattr(chosen, own)] for list_name, own in LISTS.items()}
            trials.add(search.grid(**same | {name: others}), partial(_may_win, chosen.loss))
    return trials.path(time.perf_counter() - begun), trials.runs


class _Trials:
    """The members of a search so far and their runs, by ascending penalty."""

    def __init__(self, search: Search):
        self.search, self.runs = search, list[Run]()
        self.members: Members | None = None

    def add(self, more: Members, stays: Stays) -> None:
        """Train more members, if there is time; only settings that started in every fold are added to the first ones."""
        if self.members is None:
            self.members, self.runs = more, self.search.trained(self.search.begun(more), more, stays)
        elif not self.search.watcher.over():
            runs = self.search.trained(self.search.begun(more), more, stays, first=len(self.members), all_begin=False)
            begun = _begun(runs, more.settings)
            joined, runs = self.members.joined(more.at(begun)), self.runs + [runs[m] for m in begun]
            order = np.argsort(joined.penalty, kind="stable")
            self.members, self.runs = joined.at(order), [runs[m] for m in order]

    def path(self, seconds: float) -> Path:
        assert self.members is not None
        return self.search.path(self.members, self.runs, seconds)

    def has_learned(self) -> bool:
        """Return whether the best setting has a lower loss than a constant prediction."""
        path = self.path(0.0)
        best = list(path.best().members)
        constant = self.search.constant_losses[path.table["fold"][best]]
        return has_learned(path.table["loss"][best], constant)


def _begun(runs: list[Run], settings: np.ndarray) -> np.ndarray:
    """Return the members of settings that have an epoch in every fold."""
    has_begun = np.array([bool(run.epochs.max()) for run in runs])
    return np.flatnonzero([has_begun[settings == setting].all() for setting in settings])


def _may_win(best: float, losses: Sequence[float], settings: np.ndarray) -> np.ndarray:
    """Return which members continue, given the best loss of a complete setting so far."""
    return promising(losses, settings) | better_than(best, losses, settings)


def path_of(
    estimator: Growing,
    data: Any,
    *,
    penalties: Any,
    l2s: Any,
    dropouts: Any,
    learning_rates: Any,
    cv: Any,
    seeds: int,
    halving: bool,
    together: bool | None,
    scoring: Any,
    watch: Any,
    verbose: bool,
) -> Path:
    """Return `meristem.path` of an estimator, whose parameters are the default of what is None."""
    if not isinstance(data, tuple | list) or len(data) != 2:
        raise ValueError("data must be a pair for an estimator: path(estimator, (X, y), …).")
    check_parameters(estimator)
    check_parameter("scoring", scoring)
    table = EncodedTable.of(estimator, *data)
    facts = estimator._facts(table.rows, table.targets, {}, is_stream=False)
    knobs = estimator._knobs(facts, table.rows, table.targets)
    keep_programs()
    folds = table.folds(cv, classes=is_classifier(estimator))
    epochs = len(folds) * seeds * estimator._epochs(len(table.rows.y), STEPS_SHARE)  # a guess: four settings, a quarter each
    watched = watchers("path", epochs, table.targets.objective, callbacks=watch, verbose=verbose)
    with on_device(estimator.device), watched as (watcher, _):
        search = Search(estimator, table, folds, seeds, together=together, scoring=scoring, watcher=watcher)
        return every_combination(
            search,
            stays=promising if halving else None,
            penalties=search.penalties(penalties),
            l2s=[knobs.l2] if l2s is None else search.l2s(l2s),
            dropouts=[knobs.dropout or 0.0] if dropouts is None else search.dropouts(dropouts),
            rates=[knobs.learning_rate] if learning_rates is None else learning_rates,
        )[0]
