"""The driver of training: one program until it ends, or several runs at a time.

    train_until(run, prepared, max_epochs, watcher) → run        one network, or a population that is one program
    train_alone(runs, prepared, max_epochs, watcher) → runs      single networks, a thread per core
    train_packed(runs, prepared, max_epochs, watcher) → runs     single networks, stacked into few programs

`runs` are by the number that watchers know them by. Every run has its own schedule, stop and best model. Promises:

- Alone, a run comes out as from `train_until`, to the bit, whatever the threads. The first run of each program compiles it and
  the others begin after it, with the program ready.
- Packed, runs that can share a program (the same capacity; all with dropout or all without) are one `vmap`ped program, packed
  anew as soon as a quarter of it has stopped. Alone and packed differ in the last bits.
- A watcher that returns True stops its run; in one program, all runs when it does so for all of them. From when
  `watcher.over()` is True nothing begins any more, but for a first epoch of each run if `all_begin`. A thread that is within an
  epoch then, or compiles, is left behind: its run stays that of the epoch before, and watchers do not hear of it again.
- An exception, of a watcher or an interrupt, ends the other threads with their epoch and is raised here.
- Each epoch goes to the ambient checkpoint store (checkpoint_store.py), and to `after_epoch`.

`fit`, replay.py and paths/training.py import it.
"""

import os
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextvars import copy_context
from functools import partial

import jax
import numpy as np

from meristem.train.checkpoint_store import restore
from meristem.train.run import Run, advance, settling, stacked
from meristem.train.samples import Prepared
from meristem.train.state import EpochInfo
from meristem.train.watching import Everyone, Named, Watcher

SHORT = 8  # a training of fewer epochs does not settle; in others no stage of it takes more than this part
POLL = 0.1  # seconds, after which `watcher.over()` is asked again
REPACK = 0.25  # of a packed program, that has stopped when it is packed anew


def shares_programs(together: bool | None) -> bool:
    """Whether runs are packed; None: on an accelerator, which a single small network would leave idle."""
    return jax.default_backend() != "cpu" if together is None else together


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def train_until(
    run: Run,
    prepared: Prepared,
    max_epochs: int,
    watcher: Everyone,
    *,
    pause_at: int | None = None,
    stop_after: int | None = None,
    after_epoch: Callable[[Run], None] = lambda run: None,
) -> Run:
    """Train until `max_epochs`, or for now until epoch `pause_at`, or until `stop_after` members (None: all) have stopped."""
    pause_at = max_epochs if pause_at is None else min(pause_at, max_epochs)
    run, record = restore(run, prepared, (max_epochs, pause_at, stop_after))
    stopped, epochs = run.stopped, run.epochs
    while stopped.sum() < (stopped.size if stop_after is None else stop_after) and epochs.max() < pause_at:
        running = np.flatnonzero(~stopped).tolist() if run.members else [0]
        if run.recipe.settle and max_epochs >= SHORT:
            run = settling(run, int(max_epochs - epochs.max()), min(run.patience, max_epochs // SHORT))
        run, info = advance(run, prepared, pulse=partial(_pulse, watcher, running) if watcher.watchers else None)
        stopped, epochs = np.asarray(info.stopped), np.asarray(info.epoch - run.begun_at)
        ends = [watcher.epoch(m, info.member(m) if run.members else info) for m in running if watcher.watchers]
        after_epoch(run)
        record(run)
        if ends and all(ends):
            break
    return run


def _pulse(watcher: Everyone, members: Sequence[int], share: float) -> None:
    for member in members:
        watcher.pulse(member, share)


def train_alone(
    runs: Mapping[int, Run],
    prepared: Prepared,
    max_epochs: int,
    watcher: Everyone,
    *,
    pause_at: int | None = None,
    all_begin: bool = True,
    after_epoch: Callable[[dict[int, Run]], None] = lambda runs: None,
) -> dict[int, Run]:
    """Train each run by itself; `after_epoch` of any of them gets all as they are, one call at a time."""
    latest, lock = dict(runs), threading.Lock()
    left = threading.Event()  # set under the lock: what a thread computes from then on is dropped

    def train(m: int) -> None:
        if watcher.over() and (latest[m].epochs.max() or not all_begin):
            return

        def update(run: Run) -> None:
            with lock:
                if left.is_set():
                    raise _LateError
                latest[m] = run
                after_epoch(dict(latest))

        own = Everyone([_MemberWatcher(watcher, m, left)] if watcher.watchers else [])
        update(train_until(latest[m], prepared, max_epochs, own, pause_at=pause_at, after_epoch=update))

    def may_leave() -> bool:
        return watcher.over() and (not all_begin or all(run.epochs.max() for run in latest.values()))

    first = list({_program(latest[m]): m for m in reversed(latest)}.values())
    pool = ThreadPoolExecutor(cores())
    try:
        for members in (first, [m for m in latest if m not in first]):
            waiting = {pool.submit(copy_context().run, train, m) for m in members}
            while waiting and not may_leave():
                done, waiting = wait(waiting, timeout=POLL, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
    finally:
        with lock:
            left.set()
        pool.shutdown(wait=not may_leave(), cancel_futures=True)
    return latest


class _LateError(Exception):
    """Ends a thread that was left behind."""


class _MemberWatcher(Watcher):
    """The watcher of a population as that of one member, until its thread is left behind."""

    def __init__(self, watcher: Watcher, member: int, left: threading.Event):
        self.watcher, self.member, self.left = watcher, member, left

    def epoch(self, member: int, info: EpochInfo) -> bool | None:
        return self.left.is_set() or self.watcher.epoch(self.member, info)

    def pulse(self, member: int, share: float) -> None:
        if not self.left.is_set():
            self.watcher.pulse(self.member, share)


def train_packed(
    runs: Mapping[int, Run],
    prepared: Prepared,
    max_epochs: int,
    watcher: Everyone,
    *,
    pause_at: int | None = None,
    all_begin: bool = True,
) -> dict[int, Run]:
    """Train all runs that can share a program as one, one program after another."""
    latest, until = dict(runs), max_epochs if pause_at is None else pause_at
    groups = defaultdict(list)
    for m, run in runs.items():
        groups[_program(run)].append(m)
    for group in groups.values():
        while group := [m for m in group if not latest[m].stopped]:
            epochs = latest[group[0]].epochs
            if epochs >= until or (watcher.over() and (epochs or not all_begin)):
                break
            own = Everyone([Named(watcher, dict(enumerate(group)))] if watcher.watchers else [])
            enough = max(1, round(REPACK * len(group)))
            population = stacked([latest[m] for m in group])
            population = train_until(population, prepared, max_epochs, own, pause_at=pause_at, stop_after=enough)
            latest |= zip(group, population.each(), strict=True)
            if population.stopped.sum() < enough:  # it pauses, or the watcher has stopped all of them
                break
    return latest


def _program(run: Run) -> tuple[bool, int]:
    """What runs of one compiled program have in common."""
    return run.knobs.dropout is None, run.last.capacity
