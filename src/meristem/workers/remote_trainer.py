"""The driver's side: a trainer (train/placement.py) that has members trained by workers, and answers what these ask.

    trainer = RemoteTrainer(executor, host)
    runs = trainer(runs, prepared, max_epochs, watcher, pause_at=…, all_begin=…, together=…)       as train_alone
    trainer.close()

A call makes tasks of its members, submits them all, and ends when each has brought its runs. What a task starts from is packed
when a worker takes it, so memory holds little but the runs, however many tasks wait. Checkpoints of running tasks are in
memory, and go to the ambient store, if there is one.
"""

import pickle
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor, CancelledError, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from typing import Any

import jax
import numpy as np

from meristem.files.document import Document, packed
from meristem.folders.checkpoints import KeyedStore
from meristem.train.callbacks import WatcherGroup
from meristem.train.loop import POLL, AfterEpoch, Epochs, Runs
from meristem.train.run import Run
from meristem.train.saving import STORE
from meristem.train.training_data import Prepared
from meristem.workers.connection import Address, Peer, Server
from meristem.workers.messages import ROWS, ArrayShelf, classes_of, pack_data, pack_runs, unpack_epochs, unpack_runs
from meristem.workers.worker import work

DEATHS = 10  # in a row of one task, without a new epoch
TASKS_PER_WORKER = 16  # at most: fewer members in each keep workers busy to the end, more save messages
USUAL_WORKERS = 8  # where an executor does not say how many it has
GRACE = 5.0  # seconds for running tasks to bring their runs, once all should end
CHECKPOINT_SECONDS = 5.0


class Task:
    """Some members, and what has become of them."""

    def __init__(self, call: "Call", runs: dict[int, Run]):
        self.call, self.runs = call, runs
        self.results: dict[int, Run] | None = None
        self.future: Any = None
        self.peer: Peer | None = None  # who trains it
        self.deaths, self.is_lost = 0, False
        self.stops: set[int] = set()  # members that a watcher has stopped
        self.checkpoints: dict[str, Document] = {}  # the newest of each training


class Call:
    """The training of some members: its goal, its watcher, and the checkpoints of the caller."""

    def __init__(self, header: dict[str, Any], prepared: dict[str, Any], watcher: WatcherGroup, classes: dict[str, Any]):
        self.header, self.data, self.watcher, self.classes = header, prepared, watcher, classes
        store = STORE.get()
        self.store = store if isinstance(store, KeyedStore) else KeyedStore()
        self.epochs: dict[int, int] = {}  # the last that the watcher has been told of, by member
        self.failure: BaseException | None = None
        self.is_over = False
        self.lock, self.news = threading.RLock(), threading.Event()
        self.after_epoch: Callable[[], None] = lambda: None


class RemoteTrainer:
    """Trains members on the workers of an executor, whose address for this process is `host`."""

    def __init__(self, executor: Any, host: str, *, checkpoint_seconds: float = CHECKPOINT_SECONDS):
        self.executor, self.checkpoint_seconds = executor, checkpoint_seconds
        self._tasks: dict[int, Task] = {}
        self._count = self._broken_pools = 0  # tasks so far; pools in a row that broke before a task was taken
        self._shelf = ArrayShelf()
        self._server = Server(host, self._answer, self._lost, self._is_busy)

    @property
    def address(self) -> Address:
        return self._server.address

    def close(self) -> None:
        self._server.close()

    def __call__(
        self,
        runs: Runs,
        prepared: Prepared,
        max_epochs: int,
        watcher: WatcherGroup,
        *,
        pause_at: Epochs = None,
        all_begin: bool = True,
        after_epoch: AfterEpoch = lambda runs: None,
        together: bool | None = None,
    ) -> dict[int, Run]:
        """Return the runs as `train_alone` would, or `train_packed`; `after_epoch` is called when a task has ended."""
        header: dict[str, Any] = {"max_epochs": max_epochs, "pause_at": pause_at, "all_begin": all_begin, "together": together}
        header |= {"x64": bool(jax.config.jax_enable_x64), "checkpoint_seconds": self.checkpoint_seconds}  # type: ignore[attr-defined]
        if self._shelf.digest(prepared.data.y) is None:  # other data than in the call before
            self._shelf = ArrayShelf()
        shelf, classes = self._shelf, classes_of(next(iter(runs.values())))
        check_pickles(self.executor, classes)
        call = Call(header, pack_data(prepared, shelf), watcher, classes)
        for run in runs.values():
            for rows in (getattr(run.knobs, name) for name in ROWS):
                if rows is not None:
                    shelf.add(rows)
        latest, size = dict(runs), self._members_per_task(len(runs), together)
        members = list(runs)
        numbers = range(self._count, self._count + -(-len(members) // size))
        self._count = numbers.stop
        tasks = {n: Task(call, {m: runs[m] for m in members[i * size :][:size]}) for i, n in enumerate(numbers)}
        self._tasks |= tasks
        try:
            for number in tasks:
                self._submit(number)
            while waiting := [number for number in tasks if number in self._tasks]:
                call.news.wait(POLL)
                call.news.clear()
                for number in waiting:
                    self._settle(number)
                    results = tasks[number].results
                    if results is not None:
                        latest |= results
                        del self._tasks[number]
                        after_epoch(dict(latest).copy)
                if call.failure is not None:
                    raise call.failure
                if watcher.over():
                    self._end(call, tasks)
        except BaseException:
            call.is_over = True
            self._end(call, tasks)
            raise
        finally:
            for number in tasks:
                self._tasks.pop(number, None)
        for number in tasks:
            latest |= tasks[number].results or {}
        return {m: latest[m] for m in runs}

    def _members_per_task(self, members: int, together: bool | None) -> int:
        """Return how many members a task has: those of a program as many as a worker has to train, others few."""
        workers = workers_of(self.executor)
        is_packed = together or (together is None and bool(getattr(self.executor, "num_gpus", 0)))
        return max(1, -(-members // (workers * (1 if is_packed else TASKS_PER_WORKER))))

    def _submit(self, number: int) -> None:
        task, where = self._tasks[number], (self.address, self._server.key)
        task.peer, task.is_lost = None, False
        try:
            task.future = self.executor.submit(work, *where, number, task.call.classes)
        except BrokenExecutor:
            self.executor, self._broken_pools = respawned(self.executor), self._broken_pools + 1
            task.future = self.executor.submit(work, *where, number, task.call.classes)
        if hasattr(task.future, "add_done_callback"):
            task.future.add_done_callback(lambda future: task.call.news.set())

    def _settle(self, number: int) -> None:
        """Submit a task again whose worker died; take over the exception of one that failed for its own reason."""
        task = self._tasks[number]
        if task.results is not None or task.call.is_over or not (task.is_lost or task.future.done()):
            return
        problem = None if task.is_lost else _exception(task.future)
        if problem is not None and not isinstance(problem, BrokenExecutor | CancelledError):
            raise problem
        if task.results is not None:  # it came in between
            return
        if task.peer is not None or not isinstance(problem, BrokenProcessPool):  # others were only waiting in a pool that broke
            task.deaths += 1
        if max(task.deaths, self._broken_pools) >= DEATHS:
            members, why = ", ".join(map(str, task.runs)), f" ({problem})" if problem else ""
            raise RuntimeError(
                f"{DEATHS} workers in a row died with members {members}, without ending an epoch{why}; check their memory and "
                "output, and that they reach this machine."
            ) from problem
        self._submit(number)

    def _end(self, call: Call, tasks: Mapping[int, Task]) -> None:
        """Wait a little for running tasks, which end with their epoch; the members of others stay as they were."""
        waits = {n: task for n, task in tasks.items() if n in self._tasks and task.results is None}
        for task in waits.values():
            has_begun = all(run.epochs.max() for run in task.runs.values())
            must_begin = call.header["all_begin"] and not call.is_over and not has_begun
            if task.peer is None and not must_begin:
                task.results = task.runs
                with suppress(Exception):
                    task.future.cancel()
        deadline = time.monotonic() + GRACE
        while any(task.results is None and task.peer is not None for task in waits.values()) and time.monotonic() < deadline:
            call.news.wait(POLL)
            call.news.clear()
        for task in waits.values():
            if task.peer is not None and task.results is None:
                task.results = task.runs

    def _lost(self, peer: Peer) -> None:
        for task in list(self._tasks.values()):
            if task.peer is peer and task.results is None:
                task.is_lost = True
                task.call.news.set()

    def _is_busy(self, peer: Peer) -> bool:
        return any(task.peer is peer and task.results is None for task in list(self._tasks.values()))

    def _answer(self, peer: Peer, message: Document) -> bytes:
        """Return the answer to a message of a worker; in a thread of its own."""
        header = message.header
        if message.kind == "array" and header["digest"] in self._shelf:
            return packed("array", {"array": np.asarray(self._shelf[header["digest"]])}, {})
        task = self._tasks.get(header.get("task", -1))
        if task is None or (message.kind == "take" and (task.call.is_over or task.results is not None)):
            return packed("over", {}, {"is_over": True, "stops": []})
        with task.call.lock:
            try:
                return _ANSWERS[message.kind](self, task, message, peer)
            except Exception as error:  # of a watcher, or of a checkpoint that cannot be read
                task.call.failure = task.call.failure or error
                task.call.is_over = True
                task.call.news.set()
                return packed("over", {}, {"is_over": True, "stops": []})

    def _take(self, task: Task, message: Document, peer: Peer) -> bytes:
        task.peer, self._broken_pools = peer, 0
        runs, arrays = pack_runs(task.runs, self._shelf)
        call, watcher = task.call, task.call.watcher
        header = call.header | {"task": message.header["task"], "data": call.data, "runs": runs}
        header |= {"is_over": watcher.over(), "is_watched": bool(watcher.watchers)}
        return packed("task", arrays, header)

    def _newest(self, task: Task, message: Document, peer: Peer) -> bytes:
        key = message.header["key"]
        if key in task.checkpoints:
            document = task.checkpoints[key]
            return packed("runs", document.arrays, {"runs": document.header["runs"]})
        run = task.call.store.newest(key)
        if run is None:
            return packed("none", {}, {})
        runs, arrays = pack_runs({0: run}, self._shelf)
        return packed("runs", arrays, {"runs": runs})

    def _checkpoint(self, task: Task, message: Document, peer: Peer) -> bytes:
        key = message.header["key"]
        task.checkpoints[key] = message
        task.deaths = 0
        task.call.store.offer(key, lambda: self._runs(message, task)[0])
        return packed("taken", {}, {})

    def _epochs(self, task: Task, message: Document, peer: Peer) -> bytes:
        call = task.call
        for member, info in unpack_epochs(message.header["epochs"], message.arrays):
            epoch = int(info.epoch)
            if epoch > call.epochs.get(member, 0):  # not yet told, by a worker that died since
                call.epochs[member], task.deaths = epoch, 0
                if call.watcher.epoch(member, info):
                    task.stops.add(member)
        for member, share in message.header["pulses"]:
            call.watcher.pulse(member, share)
        return packed("heard", {}, {"stops": sorted(task.stops), "is_over": call.is_over or call.watcher.over()})

    def _done(self, task: Task, message: Document, peer: Peer) -> bytes:
        if task.results is None:
            task.results = self._runs(message, task)
            task.checkpoints.clear()
        task.call.news.set()
        return packed("taken", {}, {})

    def _runs(self, message: Document, task: Task) -> dict[int, Run]:
        return unpack_runs(message.header["runs"], message.arrays, self._shelf.__getitem__, task.call.classes)


_ANSWERS: dict[str, Callable[[RemoteTrainer, Task, Document, Peer], bytes]] = {
    "take": RemoteTrainer._take,
    "newest": RemoteTrainer._newest,
    "checkpoint": RemoteTrainer._checkpoint,
    "epochs": RemoteTrainer._epochs,
    "done": RemoteTrainer._done,
}


def workers_of(executor: Any) -> int:
    """Return how many tasks an executor runs at a time, or a guess."""
    count = getattr(executor, "_max_workers", None)
    return count if isinstance(count, int) and count > 0 else USUAL_WORKERS


def respawned(executor: Any) -> Any:
    """Return a new pool like one whose processes died; other executors start new workers by themselves."""
    if not isinstance(executor, ProcessPoolExecutor):
        return executor
    names = {"mp_context": "_mp_context", "initializer": "_initializer", "initargs": "_initargs"}
    return type(executor)(workers_of(executor), **{name: getattr(executor, own) for name, own in names.items()})


def check_pickles(executor: Any, classes: dict[str, Any]) -> None:
    """Raise ValueError where a pool of processes cannot get a user's own optimizer or classes; Ray and Dask can send more."""
    if isinstance(executor, ProcessPoolExecutor):
        try:
            pickle.dumps(classes)
        except Exception as error:
            advice = "define it at the top of a module, or use executor='ray', which sends functions, too"
            raise ValueError(f"A process cannot be sent what it needs to train ({str(error)[:100]}): {advice}.") from error


def _exception(future: Any) -> BaseException | None:
    try:
        problem: BaseException | None = future.exception()
        return problem
    except CancelledError as error:
        return error
