"""What a search tries: every combination, or one knob after the other.

    all_of(search, penalties=…, l2s=…, dropouts=…, rates=…)  → Path and the members' runs: every combination
    in_parts(search, penalties=…, …)                         at the price in the middle, or the next lower one at which anything
                                                             is learned, l2 is chosen by successive halving, then dropout, slow
                                                             to show what it is worth; with them every other price, of which
                                                             those that are clearly behind leave early
    path_of(estimator, data, …)                              `meristem.path` of an estimator

Imports paths.py; base.py and cv.py import it.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from meristem.cache import keep_programs
from meristem.estimators.base import Growing
from meristem.estimators.course import SHARE
from meristem.estimators.device import on
from meristem.estimators.parameters import check_parameters, check_scoring
from meristem.estimators.paths import Search, Table
from meristem.estimators.watching import watchers
from meristem.paths.constants import has_learned
from meristem.paths.members import Members
from meristem.paths.result import Path
from meristem.paths.training import Stays, better_half, better_than, promising
from meristem.show.measures import error_measure
from meristem.train.run import Run

LISTS = {"penalties": "penalty", "l2s": "l2", "dropouts": "dropout", "rates": "learning_rate"}  # of a search, and of a point


def all_of(search: Search, *, stays: Stays | None = None, **lists: Any) -> tuple[Path, list[Run]]:
    """Every combination; the runs are in the order of the path's rows."""
    begun = time.perf_counter()
    members = search.grid(**lists)
    runs = search.trained(search.begun(members), members, stays)
    return search.path(members, runs, time.perf_counter() - begun), runs


def in_parts(search: Search, **lists: Any) -> tuple[Path, list[Run]]:
    """One knob after the other, at the price in the middle: l2 and rate together, then dropout; at last the other prices.

    Where nothing is learned at that price, not even what a linear model could, the next lower ones are tried: what l2 is worth
    cannot be seen before.
    """
    begun, lists = time.perf_counter(), {name: sorted(values) for name, values in lists.items()}
    prices, first = lists["penalties"], {"dropouts": lists["dropouts"][:1]}
    down = prices[len(prices) // 2 :: -1]
    tried = _Tried(search)
    for price in down:
        tried.add(search.grid(**lists | first | {"penalties": [price]}), better_half)
        if tried.has_learned():
            break
    for name, knob in (("dropouts", "dropout"), ("penalties", "penalty")):
        path = tried.path(0.0)
        chosen, settings = path.best(), [point.knobs for point in path.points]
        others = [value for value in lists[name] if replace(chosen, **{knob: value}).knobs not in settings]
        if others:
            more = search.grid(**{of: [getattr(chosen, own)] for of, own in LISTS.items()} | {name: others})
            tried.add(more, partial(_may_win, chosen.loss))
    return tried.path(time.perf_counter() - begun), tried.runs


class _Tried:
    """The members of a search so far, and what they came to; those of the lowest price first."""

    def __init__(self, search: Search):
        self.search, self.runs = search, list[Run]()
        self.members: Members | None = None

    def add(self, more: Members, stays: Stays) -> None:
        """Train some more, if there is time; settings that did not begin in every fold are left out, but for the first ones."""
        if self.members is None:
            self.members, self.runs = more, self.search.trained(self.search.begun(more), more, stays)
        elif not self.search.watcher.over():
            runs = self.search.trained(self.search.begun(more), more, stays, first=len(self.members), all_begin=False)
            kept = _begun(runs, more.settings)
            joined, runs = self.members.joined(more.at(kept)), self.runs + [runs[m] for m in kept]
            order = np.argsort(joined.penalty, kind="stable")
            self.members, self.runs = joined.at(order), [runs[m] for m in order]

    def path(self, seconds: float) -> Path:
        """What they came to."""
        assert self.members is not None
        return self.search.path(self.members, self.runs, seconds)

    def has_learned(self) -> bool:
        """Whether the best knows more than a constant does."""
        path = self.path(0.0)
        of_best = list(path.best().members)
        constant = self.search.constant_losses[path.table["fold"][of_best]]
        return has_learned(path.table["loss"][of_best], constant)


def _begun(runs: list[Run], settings: np.ndarray) -> np.ndarray:
    """The members of settings that have an epoch in every fold."""
    has_begun = np.array([bool(run.epochs.max()) for run in runs])
    return np.flatnonzero([has_begun[settings == setting].all() for setting in settings])


def _may_win(best: float, losses: Sequence[float], settings: np.ndarray) -> np.ndarray:
    """Which members stay, where a setting that was trained to its end has the best loss so far."""
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
    """`meristem.path` of an estimator; what is not given is as the estimator has it."""
    if not isinstance(data, tuple | list) or len(data) != 2:
        raise ValueError("The data of an estimator are a pair: path(estimator, (X, y), …).")
    check_parameters(estimator)
    check_scoring("scoring", scoring)
    table = Table.of(estimator, *data)
    facts = estimator._facts(table.rows, table.targets, goes_on=False, is_stream=False)
    knobs = estimator._knobs(facts, table.rows, table.targets)
    keep_programs()
    folds = table.folds(cv, classes=is_classifier(estimator))
    objective = table.targets.objective
    measure = error_measure(objective.error_name, is_share=objective.error_is_share)
    usual = len(folds) * seeds * estimator._epochs(len(table.rows.y), SHARE)  # four settings that take a quarter each: a guess
    watched = watchers("path", usual, measure, callbacks=watch, verbose=verbose, before=0)
    with on(estimator.device), watched as (watcher, _):
        search = Search(estimator, table, folds, seeds, together=together, scoring=scoring, watcher=watcher)
        return all_of(
            search,
            stays=promising if halving else None,
            penalties=search.penalties(penalties),
            l2s=[knobs.l2] if l2s is None else search.l2s(l2s),
            dropouts=[knobs.dropout or 0.0] if dropouts is None else search.dropouts(dropouts),
            rates=[knobs.learning_rate] if learning_rates is None else learning_rates,
        )[0]
