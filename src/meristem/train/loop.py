"""Training from the first epoch to the last: `fit`, and the loops behind it.

On a GPU, which a single small network would leave idle, networks train together as one program (`train_packed`); on a CPU each
trains alone in a thread (`train_alone`), so that one that has stopped costs nothing. Both differ in the last bits. `runs` are
by member number. Promises:

- `train_alone` gives the same bits as `train_until`. The first run of each program compiles it, before the others begin.
- `train_packed` repacks the runs that can share a program (the same capacity; all with dropout or all without) when a quarter
  of them has stopped. They train on all devices, in as few groups as fit into their memory (devices.py), which the watcher is
  told; where the memory does not suffice after all, a group is halved, and continues with the next epoch.
- A watcher that returns True stops its run; in one program, all runs when it does so for all of them. Once `watcher.over()` is
  True nothing is started, but for a first epoch of each run if `all_begin`. A thread that is then training or compiling is
  abandoned: its run stays as it was after the last epoch, and watchers are not called for it.
- An exception, of a watcher or an interrupt, ends the other threads with their epoch and is raised here.
- Each epoch goes to the ambient checkpoint store (saving.py), and to `after_epoch`.
"""

import os
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, ThreadPoolExecutor, wait
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from meristem.cache import clear_full_caches
from meristem.check import check_size, many
from meristem.forks import check_fork
from meristem.nn.network import Network
from meristem.train.callbacks import WatcherGroup, watcher_of
from meristem.train.devices import are_one_group, gathered, groups_that_fit, is_out_of_memory, on_all, spread
from meristem.train.hyperparameters import L2, Knobs, Recipe
from meristem.train.placement import TRAINER, Trainer, on_workers
from meristem.train.run import MAX_CAPACITY, Run, advance, begin, settling, stacked, within_budget
from meristem.train.saving import SECONDS, STORE, Saver
from meristem.train.schedules import PLATEAU
from meristem.train.training_data import Prepared, prepare

MAX_EPOCHS = 2000
SHORT = 8  # trainings of fewer epochs do not settle; in others a stage is moved to at most this part of the epochs
POLL = 0.1  # seconds between two calls of `watcher.over()`
REPACK = 0.25  # the stopped share of a packed program at which it is repacked
NO_WATCHER = WatcherGroup([])
Runs = Mapping[int, Run]  # by member number
Epochs = int | None
AfterEpoch = Callable[[Callable[[], dict[int, Run]]], None]


class DivergedError(ArithmeticError):
    """The loss turned non-finite. `run` holds the last good model, if there was one."""

    def __init__(self, run: Run):
        self.run = run
        best, rate = int(run.best_epoch), float(run.history["rate"][-1])
        model = f"the model of epoch {best} is kept" if best else "no epoch was finite, so there is no model to keep"
        super().__init__(
            f"The loss turned non-finite in epoch {int(run.epochs)} at learning rate {rate:.2g}; {model}. "
            f"Try learning_rate={min(rate / 10, 3e-3):.1g} or less, and check the scale of the inputs."
        )


def fit(
    start: Network | Run,
    data: Any,
    *,
    learning_rate: Any = None,
    penalty: Any = None,
    l2: Any = L2,
    dropout: Any = None,
    weight: Any = None,
    dev_weight: Any = None,
    budget: Any = None,
    key: Any = None,
    recipe: Recipe = Recipe(),
    max_epochs: int = MAX_EPOCHS,
    max_capacity: int = MAX_CAPACITY,
    rows_at_once: int | None = None,
    together: bool | None = None,
    watch: Any = None,
    save: Callable[[Run], Any] | None = None,
    save_seconds: float = SECONDS,
    executor: Any = None,
) -> Run:
    """Train until every member has stopped, or `max_epochs` is reached.

    start           a network; several, with a leading axis; or a `Run`, which continues with its recipe and knobs
    data            Data(x, y) or Data(x, y, dev_x, dev_y); a tuple of these does, too
    learning_rate, penalty, l2, dropout, weight, dev_weight, budget
                    the `Knobs`: numbers, or one for each member; weights are [rows], or [members, rows]
    key             a random key, or as many as there are members
    recipe          everything that is the same for all members; see `Recipe`
    max_epochs      the most epochs; a recipe that settles drops the learning rate early enough that each later stage has
                    `patience` epochs, or an eighth of all in a short training
    max_capacity    the most leaves of a body that grows; openings beyond them wait
    rows_at_once    how many rows are sent to the device at a time if the data do not fit it; None: as many as fit
    together        whether the members of a population share a program; None: on an accelerator
    watch           a function of an epoch's info, or of (member, info), that may return True to stop; a `Watcher`; or several
    save            called with the run every `save_seconds`, in a thread of its own, for at most 5 % of the time, and at the
                    end, also after an exception: `partial(meristem.save, path)`
    executor        what trains the members of a population on other processes or machines: "processes", "ray", or an object
                    with `submit`; watchers then hear of epochs shortly after they ended (docs/scale.md)

    A network whose loss turns non-finite raises `DivergedError`; a member of a population ends with its last good model, and
    the others continue.

    >>> from meristem.data.spirals import two_spirals
    >>> network = Network.create("tunnel", 2, 1, width=3, depth=2, key=jax.random.key(0))
    >>> data, recipe = two_spirals("easy"), Recipe(batch_size=32)
    >>> run = fit(network, data, learning_rate=3e-3, penalty=1e-3, key=jax.random.key(1), recipe=recipe, max_epochs=3)
    >>> run.history["loss"].shape
    (3,)
    >>> fit(run, data, max_epochs=5).history["loss"].shape
    (5,)
    """
    check_size("max_epochs", max_epochs)
    check_fork()
    clear_full_caches()
    if not isinstance(start, Run):
        penalty = 0.0 if penalty is None and budget is not None else penalty  # the run adapts it
        for name, value in (("learning_rate", learning_rate), ("penalty", penalty), ("key", key)):
            if value is None:
                raise ValueError(f"{name} is missing: fit(network, data, learning_rate=…, penalty=…, key=jax.random.key(0)).")
        epochs = None if recipe.schedule == PLATEAU else max_epochs
        knobs = Knobs(learning_rate, penalty, l2, dropout, weight, dev_weight, budget, epochs=epochs)
        run = begin(start, recipe, knobs, key, max_capacity=max_capacity)
    else:
        run = start
    del start  # its memory may be needed
    prepared = prepare(data, run.last, run.recipe.task, rows_at_once=rows_at_once)
    watcher = watcher_of("watch", watch)
    saver = Saver(lambda name, run: save(run) if save else None, save_seconds)

    newest = [run]

    def offer(run: Run | Callable[[], dict[int, Run]]) -> None:
        newest[:] = [run] if isinstance(run, Run) else newest
        if save is not None:
            saver.offer("run", lambda: run if isinstance(run, Run) else stacked([*run().values()]))

    try:
        with on_workers(executor):
            is_whole = not TRAINER.get() and shares_programs(together) and run.members and are_one_group(run, prepared)
            if is_whole or not run.members:
                try:
                    run = train_until(run, prepared, max_epochs, watcher, after_epoch=offer)
                except Exception as error:
                    if not run.members or not is_out_of_memory(error):
                        raise
                    is_whole, run = False, newest[0]
            if run.members and not is_whole:
                members, train = dict(enumerate(run.each())), trainer_of(together)
                del run, newest[:]
                run = stacked([*train(members, prepared, max_epochs, watcher, after_epoch=offer).values()])
        run = within_budget(run, prepared)
    except BaseException:
        with suppress(Exception):  # the first exception is the one to raise
            saver.now()
        raise
    offer(run)
    saver.now()
    saver.close()
    if not run.members and run.diverged:
        raise DivergedError(run)
    return run


def shares_programs(together: bool | None) -> bool:
    """Return whether runs are packed; by default on an accelerator, which a single small network would leave idle."""
    return jax.default_backend() != "cpu" if together is None else together


def trainer_of(together: bool | None) -> Trainer:
    """Return what trains members: workers inside `on_workers`, else one program or threads of this process."""
    remote = TRAINER.get()
    if remote is not None:
        return partial(remote, together=together)
    return train_packed if shares_programs(together) else train_alone


def cores() -> int:
    """Return how many cores this process may use; fewer where $NPROC says so, which XLA heeds, too."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = os.environ.get("NPROC", "")
    return min(available, max(1, int(limit))) if limit.isdecimal() else available


def train_until(
    run: Run,
    prepared: Prepared,
    max_epochs: int,
    watcher: WatcherGroup,
    *,
    pause_at: Epochs = None,
    stop_after: int | None = None,
    after_epoch: Callable[[Run], None] = lambda run: None,
    blocks: Sequence[Prepared] = (),
) -> Run:
    """Train until `max_epochs`, or pause at epoch `pause_at`, or when `stop_after` members (None: all) have stopped.

    Each epoch trains on the next of several `blocks` of rows, if there are any; `prepared` is then the first.
    """
    pause_at = max_epochs if pause_at is None else min(pause_at, max_epochs)
    run, record = STORE.get()(run, prepared, (max_epochs, pause_at, stop_after, *([len(blocks)] if blocks else [])))
    stopped, epochs = run.stopped, run.epochs
    running: list[int] = []

    def pulse(share: float) -> None:
        for member in running:
            watcher.pulse(member, share)

    while stopped.sum() < (stopped.size if stop_after is None else stop_after) and epochs.max() < pause_at:
        running = np.flatnonzero(~stopped).tolist()
        if run.recipe.settle and run.recipe.schedule == PLATEAU and max_epochs >= SHORT:
            run = settling(run, int(max_epochs - epochs.max()), min(run.patience, max_epochs // SHORT))
        rows = blocks[int(epochs.max()) % len(blocks)] if blocks else prepared
        run, info = advance(run, rows, pulse=pulse if watcher.watchers else None)
        stopped, epochs = np.asarray(info.stopped), np.asarray(info.epoch - run.begun_at)
        ends = [watcher.epoch(m, info.member(m) if run.members else info) for m in running if watcher.watchers]
        after_epoch(run)
        record(run)
        if ends and all(ends):
            break
    return run


def train_alone(
    runs: Runs,
    prepared: Prepared,
    max_epochs: int,
    watcher: WatcherGroup,
    *,
    pause_at: Epochs = None,
    all_begin: bool = True,
    after_epoch: AfterEpoch = lambda runs: None,
) -> dict[int, Run]:
    """Train each run separately; `after_epoch` gets a function to all runs after an epoch of any, one call at a time."""
    latest, lock = dict(runs), threading.Lock()
    abandoned = threading.Event()  # set under the lock: what threads compute afterwards is dropped

    def train(m: int) -> None:
        if watcher.over() and (latest[m].epochs.max() or not all_begin):
            return

        def update(run: Run) -> None:
            with lock:
                if abandoned.is_set():
                    raise CancelledError
                latest[m] = run
                after_epoch(dict(latest).copy)

        own = WatcherGroup([watcher] if watcher.watchers else [], [m], abandoned.is_set)
        try:
            update(train_until(latest[m], prepared, max_epochs, own, pause_at=pause_at, after_epoch=update))
        except CancelledError:
            return
        except BaseException:
            with lock:
                abandoned.set()  # here, for the others need not wait until it is raised below
            raise

    def may_leave() -> bool:
        return watcher.over() and (not all_begin or all(run.epochs.max() for run in latest.values()))

    first = [members[0] for members in _by_program(latest)]
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
            abandoned.set()
        pool.shutdown(wait=not may_leave(), cancel_futures=True)
    return latest


def train_packed(
    runs: Runs,
    prepared: Prepared,
    max_epochs: int,
    watcher: WatcherGroup,
    *,
    pause_at: Epochs = None,
    all_begin: bool = True,
    after_epoch: AfterEpoch = lambda runs: None,
) -> dict[int, Run]:
    """Train the runs that can share a program together, one program after another; `after_epoch` as in `train_alone`."""
    latest, until, prepared = dict(runs), max_epochs if pause_at is None else pause_at, on_all(prepared)
    groups = groups_that_fit(_by_program(latest), latest, prepared, watcher)
    while groups:
        group = [m for m in groups[0] if not latest[m].stopped]
        epochs = latest[group[0]].epochs if group else until
        if epochs >= until or (watcher.over() and (epochs or not all_begin)):
            groups.pop(0)
            continue
        own, newest = WatcherGroup([watcher] if watcher.watchers else [], group), list[Run]()
        try:
            packed = spread([latest[m] for m in group])
            n_stop = max(1, round(REPACK * len(group))) + packed.members[0] - len(group)
            update = partial(_note, after_epoch, latest, group, newest)
            packed = train_until(packed, prepared, max_epochs, own, pause_at=pause_at, stop_after=n_stop, after_epoch=update)
        except Exception as error:
            if not is_out_of_memory(error) or len(group) == 1:
                raise
            latest |= _by_member(group, newest[0]) if newest else {}
            packed = latest[group[0]]  # its memory is free then
            half = -(-len(group) // 2)
            groups[:1] = [group[:half], group[half:]]
            watcher.say(f"{many(len(group), 'network')} need more memory than there is: half of them at a time")
        else:
            if packed.stopped.sum() < n_stop:  # it paused, or the watcher has stopped all members
                groups.pop(0)
            latest |= _by_member(group, packed)
    return latest


def _note(after_epoch: AfterEpoch, latest: dict[int, Run], group: list[int], newest: list[Run], run: Run) -> None:
    """Hold the newest run of a group, and call `after_epoch`."""
    newest[:], others = [run], dict(latest)
    after_epoch(lambda: others | _by_member(group, run))


def _by_member(group: list[int], packed: Run) -> dict[int, Run]:
    return dict(zip(group, gathered(packed).each(), strict=False))  # copies come last


def _by_program(runs: Runs) -> list[list[int]]:
    """Return the members in groups that share a compiled program."""
    groups = defaultdict(list)
    for m, run in runs.items():
        groups[run.knobs.dropout is None, run.last.capacity].append(m)
    return list(groups.values())


def seed_keys(seeds: Sequence[int], purpose: int) -> Key[Array, " seeds"]:
    """Return a key per seed; keys of different purposes (weights, training) do not overlap."""
    return jnp.stack([jax.random.fold_in(jax.random.key(seed), purpose) for seed in seeds])
