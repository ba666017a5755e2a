"""The members of a path, trained: together where a device is idle with one, each alone in threads where it is not.

    trained(runs, data, settings, …) → runs             every member with its own schedule, stop and best model

A member that has stopped costs nothing any more: alone its thread takes the next one; of a population the rest is packed anew
as soon as a quarter has stopped. With `halving`, at some epochs (rungs) the settings are compared by their least held-out loss
so far, fold by fold: one that is in the worse half, and behind the best by more than its standard error, leaves for good.
Members that a program cannot share stay apart: with dropout and without, of other room for leaves.

Imports train; paths.path and the estimators import it.
"""

import os
import threading
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import numpy as np

from meristem.train.loop import go_on
from meristem.train.run import Run, stacked
from meristem.train.samples import Prepared
from meristem.train.watching import Calling, Everyone, Renamed, Watcher

FIRST_RUNG = 16  # epochs; the next ones at twice as many each
LEFT = 0.75  # of a population, that is packed anew when fewer of it are left


def trained(
    runs: Sequence[Run],
    prepared: Prepared,
    settings: np.ndarray,
    *,
    max_epochs: int,
    halving: bool = False,
    together: bool | None = None,
    watcher: Everyone = Everyone([]),
) -> list[Run]:
    """The runs at their end; `settings`: for each the number of its setting."""
    if together is None:
        together = jax.default_backend() != "cpu"
    found, alive = list(runs), [m for m, run in enumerate(runs) if not run.stopped]
    train = _together if together else _alone
    for rung, until in enumerate(_rungs(max_epochs, halving)):
        if rung:
            chosen = promising([least_loss(run) for run in found], settings)
            alive = [m for m in alive if chosen[m]]
        train(found, alive, prepared, until, max_epochs, watcher)
        alive = [m for m in alive if not found[m].stopped]
        if not alive:
            break
    return found


def promising(losses: Sequence[float], settings: np.ndarray) -> np.ndarray:
    """Which members stay, by the losses so far: those of the better half of settings, and all that are not clearly behind.

    >>> promising([1.0, 1.1, 3.0, 3.1, 1.0, 1.2, 2.0, 2.2], np.array([0, 0, 1, 1, 2, 2, 3, 3])).tolist()
    [True, True, False, False, True, True, False, False]
    """
    loss = np.asarray(losses, float)
    rows = [np.flatnonzero(settings == number) for number in range(settings.max() + 1)]
    means = np.array([loss[own].mean() for own in rows])
    best = loss[rows[int(np.argmin(means))]]
    stays = np.zeros(len(loss), bool)
    for place, number in enumerate(np.argsort(means, kind="stable")):
        behind = loss[rows[number]] - best
        error = behind.std(ddof=1) / np.sqrt(len(behind)) if len(behind) > 1 and np.isfinite(behind).all() else 0.0
        stays[rows[number]] = place < -(-len(rows) // 2) or behind.mean() <= error
    return stays


def least_loss(run: Run) -> float:
    """The least loss on what is held out, so far; of a run that diverged at once, infinity."""
    losses = run.history.get("dev_loss", np.array([np.inf]))
    return float(np.where(np.isnan(losses), np.inf, losses).min())


def _rungs(max_epochs: int, halving: bool) -> list[int]:
    """Where settings are compared, and the end."""
    rungs, at = [], FIRST_RUNG
    while halving and at < max_epochs:
        rungs.append(at)
        at *= 2
    return [*rungs, max_epochs]


def _alone(found: list[Run], alive: list[int], prepared: Prepared, until: int, max_epochs: int, watcher: Everyone) -> None:
    over = threading.Event()  # after an interrupt the threads end with their epoch

    def train(m: int) -> None:
        own = Everyone([Renamed(watcher, m), Calling(lambda info: over.is_set())])
        found[m] = go_on(found[m], prepared, max_epochs, own, until=until)

    first = {_program(found[m]): m for m in reversed(alive)}.values()  # they compile; the others find the program ready
    pool = ThreadPoolExecutor(os.cpu_count())
    try:
        list(pool.map(train, first))
        list(pool.map(train, [m for m in alive if m not in set(first)]))
    finally:
        over.set()
        pool.shutdown(cancel_futures=True)


def _together(found: list[Run], alive: list[int], prepared: Prepared, until: int, max_epochs: int, watcher: Everyone) -> None:
    groups = defaultdict(list)
    for m in alive:
        groups[_program(found[m])].append(m)
    for group in groups.values():
        running = [m for m in group if not found[m].stopped]
        while running and found[running[0]].epochs < until:
            run = stacked([found[m] for m in running])
            names = dict(enumerate(running))
            own = Everyone([_Named(watcher, names)]) if watcher.watchers else Everyone([])
            run = go_on(run, prepared, max_epochs, own, until=until, enough=max(1, round((1 - LEFT) * len(running))))
            for m, member in zip(running, run.each(), strict=True):
                found[m] = member
            running = [m for m in running if not found[m].stopped]


def _program(run: Run) -> Any:
    """What members of one program share."""
    return run.knobs.dropout is None, run.last.body.capacity


class _Named(Watcher):
    """A watcher of members of a population that was packed anew: by their names in the path."""

    def __init__(self, watcher: Everyone, names: dict[int, int]):
        self.watcher, self.names = watcher, names

    def epoch(self, member: int, info: Any) -> bool | None:
        return self.watcher.epoch(self.names[member], info)

    def pulse(self, member: int, share: float) -> None:
        self.watcher.pulse(self.names[member], share)
