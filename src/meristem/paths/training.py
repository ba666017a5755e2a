"""The members of a path, trained: together where a device is idle with one, each alone in threads where it is not.

    trained(runs, data, settings, …) → runs             every member with its own schedule, stop and best model

A member that has stopped costs nothing any more: alone its thread takes the next one; of a population the rest is packed anew
as soon as a quarter has stopped. With a rule for who `stays`, the settings are compared at some epochs (rungs) by their least
held-out loss (so far, or since they settle), fold by fold, and who does not stay leaves for good: `better_half` keeps just
that, `promising` also what is not clearly behind the best, by the standard error of the difference.
Members that a program cannot share stay apart: with dropout and without, of other room for leaves. When a watcher says that it
is over, who has begun stays as it is, and who has not is begun only if all must be; a thread that is within an epoch then, or
waits for a program to be compiled, is left behind: its network is that of the epoch before.

Imports train; paths.path and the estimators import it.
"""

import os
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import Any

import jax
import numpy as np

from meristem.room import make_room
from meristem.train.keeping import carried
from meristem.train.loop import go_on
from meristem.train.run import Run, stacked
from meristem.train.samples import Prepared
from meristem.train.state import EpochInfo
from meristem.train.watching import Everyone, Named, Renamed, Watcher

FIRST_RUNG = 16, 400  # epochs and steps, whichever takes longer; the next ones at twice as many each
Stays = Callable[[Sequence[float], np.ndarray], np.ndarray]
SINCE = 3  # epochs of settling, after which what came before does not count
BREATH = 0.1  # seconds, after which it is asked again whether it is over
LEFT = 0.75  # of a population, that is packed anew when fewer of it are left


def trained(
    runs: Sequence[Run],
    prepared: Prepared,
    settings: np.ndarray,
    *,
    max_epochs: int,
    stays: Stays | None = None,
    together: bool | None = None,
    all_begin: bool = True,
    watcher: Everyone = Everyone([]),
) -> list[Run]:
    """The runs at their end; `settings`: for each the number of its setting; `all_begin`: each has an epoch in any case."""
    make_room()
    if together is None:
        together = jax.default_backend() != "cpu"
    found, alive = list(runs), [m for m, run in enumerate(runs) if not run.stopped]
    there = np.ones(len(found), bool)  # has not left; it may have stopped by itself
    train = _together if together else _alone
    rungs = [] if stays is None else _rungs(max_epochs, _steps(runs[0], prepared))
    for rung, until in enumerate([*rungs, max_epochs]):
        if rung and stays is not None:
            there &= stays([least_loss(run) if here else np.inf for run, here in zip(found, there, strict=True)], settings)
            alive = [m for m in alive if there[m]]
        train(found, alive, prepared, until, max_epochs, watcher, all_begin)
        alive = [m for m in alive if not found[m].stopped]
        if not alive or watcher.over():
            break
    return list(found)  # into which no thread that was left behind writes


def promising(losses: Sequence[float], settings: np.ndarray) -> np.ndarray:
    """Which members stay, by the losses so far: those of the better half of settings, and all that are not clearly behind.

    >>> promising([1.0, 1.1, 3.0, 3.1, 1.0, 1.2, 2.0, 2.2], np.array([0, 0, 1, 1, 2, 2, 3, 3])).tolist()
    [True, True, False, False, True, True, False, False]
    """
    loss = np.asarray(losses, float)
    stays = better_half(losses, settings)
    best = loss[settings == _best(loss, settings)[0]]
    for number in np.unique(settings[np.isfinite(loss)]):
        with np.errstate(invalid="ignore"):  # members that diverged are at ∞
            behind = loss[settings == number] - best
        error = behind.std(ddof=1) / np.sqrt(len(behind)) if len(behind) > 1 and np.isfinite(behind).all() else 0.0
        stays[settings == number] |= behind.mean() <= error
    return stays


def better_half(losses: Sequence[float], settings: np.ndarray) -> np.ndarray:
    """Which members stay: those of the better half of the settings that are still there; who has left has a loss of infinity.

    >>> better_half([1.0, 1.1, 3.0, 3.1, 1.0, 1.2], np.array([0, 0, 1, 1, 2, 2])).tolist()
    [True, True, False, False, True, True]
    """
    loss = np.asarray(losses, float)
    places = _best(loss, settings)
    there = sum(np.isfinite(loss[settings == number]).all() for number in places)
    return np.isin(settings, places[: max(1, -(-int(there) // 2))])


def better_than(loss: float, losses: Sequence[float], settings: np.ndarray) -> np.ndarray:
    """Which members are of a setting whose mean loss so far is less than this one.

    >>> better_than(2.0, [1.0, 2.0, 3.0, 2.0], np.array([0, 0, 1, 1])).tolist()
    [True, True, False, False]
    """
    means = {number: np.asarray(losses)[settings == number].mean() for number in np.unique(settings)}
    return np.array([means[number] < loss for number in settings])


def _best(loss: np.ndarray, settings: np.ndarray) -> np.ndarray:
    """The settings by their mean loss, the best first."""
    numbers = np.unique(settings)
    return numbers[np.argsort([loss[settings == number].mean() for number in numbers], kind="stable")]


def least_loss(run: Run) -> float:
    """The least loss on what is held out, so far; of a run that diverged at once, infinity.

    A network that settles is not what it was before: as soon as it does, only what came since counts.
    """
    losses = run.history.get("dev_loss", np.array([np.inf]))
    if run.recipe.settle and len(since := losses[run.history.get("stage", np.zeros(len(losses))) >= 1]) >= SINCE:
        losses = since
    return float(np.where(np.isnan(losses), np.inf, losses).min())


def _steps(run: Run, prepared: Prepared) -> int:
    """Of an epoch."""
    passes = 1 if run.knobs.passes is None else int(np.max(run.knobs.passes))
    return passes * -(-len(prepared.data.x) // run.recipe.batch_size)


def _rungs(max_epochs: int, steps: int) -> list[int]:
    """The epochs, of so many steps each, at which settings are compared.

    >>> _rungs(200, 60), _rungs(200, 5)
    ([16, 32, 64, 128], [80, 160])
    """
    epochs, least = FIRST_RUNG
    rungs, at = [], max(epochs, -(-least // steps))
    while at < max_epochs:
        rungs.append(at)
        at *= 2
    return rungs


def _alone(
    found: list[Run],
    alive: list[int],
    prepared: Prepared,
    until: int,
    max_epochs: int,
    watcher: Everyone,
    all_begin: bool,
) -> None:
    over = threading.Event()  # nobody waits any more for the threads that are within an epoch

    def train(m: int) -> None:
        if watcher.over() and (found[m].epochs.max() or not all_begin):
            return

        def keep(run: Run) -> None:
            if over.is_set():
                raise _LeftBehind
            found[m] = run

        keep(go_on(found[m], prepared, max_epochs, Everyone([_While(watcher, m, over)]), until=until, after_epoch=keep))

    def may_leave() -> bool:
        return watcher.over() and (not all_begin or all(found[m].epochs.max() for m in alive))

    first = list({_program(found[m]): m for m in reversed(alive)}.values())  # they compile; the others find the program ready
    pool = ThreadPoolExecutor(cores())
    try:
        for members in (first, [m for m in alive if m not in set(first)]):
            waiting = {pool.submit(carried(train), m) for m in members}
            while waiting and not may_leave():
                done, waiting = wait(waiting, timeout=BREATH, return_when=FIRST_COMPLETED)
                for one in done:
                    one.result()
    finally:
        over.set()
        pool.shutdown(wait=not may_leave(), cancel_futures=True)


class _LeftBehind(Exception):
    """Ends a thread whose epoch came too late."""


class _While(Renamed):
    """A watcher of one member, who is told nothing any more when it is over."""

    def __init__(self, watcher: Watcher, member: int, over: threading.Event):
        super().__init__(watcher, member)
        self.is_over = over.is_set

    def epoch(self, member: int, info: EpochInfo) -> bool | None:
        return self.is_over() or super().epoch(member, info)

    def pulse(self, member: int, share: float) -> None:
        if not self.is_over():
            super().pulse(member, share)


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _together(
    found: list[Run],
    alive: list[int],
    prepared: Prepared,
    until: int,
    max_epochs: int,
    watcher: Everyone,
    all_begin: bool,
) -> None:
    groups = defaultdict(list)
    for m in alive:
        groups[_program(found[m])].append(m)
    for group in groups.values():
        running = [m for m in group if not found[m].stopped]
        while running and found[running[0]].epochs < until:
            if watcher.over() and (found[running[0]].epochs or not all_begin):
                break
            run = stacked([found[m] for m in running])
            names = dict(enumerate(running))
            own = Everyone([Named(watcher, names)]) if watcher.watchers else Everyone([])
            run = go_on(run, prepared, max_epochs, own, until=until, enough=max(1, round((1 - LEFT) * len(running))))
            for m, member in zip(running, run.each(), strict=True):
                found[m] = member
            running = [m for m in running if not found[m].stopped]


def _program(run: Run) -> Any:
    """What members of one program share."""
    return run.knobs.dropout is None, run.last.capacity
