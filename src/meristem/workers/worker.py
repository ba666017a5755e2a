"""What a worker does: take a task from the driver, train it, and send back epochs, checkpoints and at last the runs.

    executor.submit(work, address, key, task)

A thread reports epochs a few times in a second; the answer says which members a watcher has stopped, and whether all should
end.
"""

import os
import signal
import threading
import time
from contextlib import suppress
from multiprocessing import parent_process
from typing import Any

import jax

import meristem
from meristem.cache import keep_programs
from meristem.folders.checkpoints import KeyedStore
from meristem.train.callbacks import Watcher, WatcherGroup
from meristem.train.loop import shares_programs, train_alone, train_packed
from meristem.train.run import Run
from meristem.train.saving import Saver, checkpoint_store
from meristem.train.train_state import EpochInfo
from meristem.train.training_data import Prepared
from meristem.workers.connection import Address, Client, ConnectionLostError, client_of
from meristem.workers.messages import ArrayShelf, Epochs, digests_of, pack_epochs, pack_runs, unpack_data, unpack_runs

REPORT, SILENT = 0.2, 1.0  # seconds between two reports; at most, without news
_shelf, _shelf_lock = ArrayShelf(), threading.Lock()
_prepared: dict[str, Prepared] = {}  # the last data, on the device


def begin_process() -> None:
    """Set up a process of which all is ours: it leaves Ctrl-C to its parent, and ends with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), name="meristem-parent", daemon=True).start()


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)


def work(address: Address, key: bytes, task: int, classes: dict[str, Any]) -> None:
    """Train a task of the driver at an address; nothing, if it is finished. `classes` are those of the runs' parts."""
    if parent_process() is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal; the driver ends this one
    # Threads of XLA and of train/loop.py, before JAX starts: their number changes sums of large layers in the last bits.
    os.environ.setdefault("NPROC", "1")
    keep_programs()
    client = client_of(address, key)
    order = client.ask("take", {"task": task})
    if order.kind != "task":
        return
    header = order.header
    for name, own in (("meristem", meristem.__version__), ("jax", jax.__version__)):
        if order.versions[name] != own:
            raise ValueError(f"This worker has {name} {own}, the driver {order.versions[name]}; install the same on both.")
    if header["x64"] != jax.config.jax_enable_x64:  # type: ignore[attr-defined]  # defined when jax is imported
        jax.config.update("jax_enable_x64", header["x64"])

    def find(digest: str) -> Any:
        with _shelf_lock:
            if digest not in _shelf:
                answer = client.ask("array", {"digest": digest})
                if answer.kind != "array":
                    raise ConnectionLostError("The driver has ended this task.")
                _shelf.put(digest, answer.arrays["array"])
            return _shelf[digest]

    prepared = _data(header["data"], find)
    on_device: dict[str, Any] = {}

    def find_rows(digest: str) -> Any:
        if digest not in on_device:  # shared by the members of a fold
            on_device[digest] = jax.device_put(find(digest))
            rows.put(digest, on_device[digest])
        return on_device[digest]

    rows = ArrayShelf()
    runs = unpack_runs(header["runs"], order.arrays, find_rows, classes)
    del order
    (store, saver), reporter = remote_store(client, header, rows, classes), Reporter(client, task, header)
    with checkpoint_store(store), reporter:
        train = train_packed if shares_programs(header["together"]) else train_alone
        options = {name: header[name] for name in ("pause_at", "all_begin")}
        runs = train(runs, prepared, header["max_epochs"], WatcherGroup([reporter]), **options)
        if reporter.over():  # it is continued later
            saver.now()
    saver.close()
    packed, arrays = pack_runs(runs, rows)
    client.ask("done", {"task": task, "runs": packed}, arrays)


def _data(header: dict[str, Any], find: Any) -> Prepared:
    """Return the data of a task, those of the last one if they are the same."""
    name = repr(sorted(header.items()))
    if name not in _prepared:
        with _shelf_lock:
            if not any(digest in _shelf for digest in digests_of(header)):  # of another training
                _shelf.clear()
        _prepared.clear()
        _prepared[name] = unpack_data(header, find)
    return _prepared[name]


class Reporter(Watcher):
    """Sends epochs to the driver, and learns who should stop; while the context is open.

    Where nobody watches, the driver hears of the newest epoch of each member alone: it would else be what takes most time.
    """

    def __init__(self, client: Client, task: int, header: dict[str, Any]):
        self._client, self._task, self._is_over, self._is_watched = client, task, header["is_over"], header["is_watched"]
        self._epochs: Epochs = []
        self._pulses: dict[int, float] = {}
        self._stops: set[int] = set()
        self._lock, self._ends = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="meristem-reporter", daemon=True)

    def __enter__(self) -> "Reporter":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()
        with suppress(ConnectionLostError):
            self._report()

    def epoch(self, member: int, info: EpochInfo) -> bool:
        with self._lock:
            if not self._is_watched:
                self._epochs = [epoch for epoch in self._epochs if epoch[0] != member]
            self._epochs.append((member, info))
            self._pulses.pop(member, None)
        return self._is_over or member in self._stops

    def pulse(self, member: int, share: float) -> None:
        with self._lock:
            self._pulses[member] = share

    def over(self) -> bool:
        return self._is_over

    def _run(self) -> None:
        last = time.monotonic()
        while not self._ends.wait(REPORT):
            if self._epochs or self._pulses or time.monotonic() - last > SILENT:
                last = time.monotonic()
                try:
                    self._report()
                except ConnectionLostError:
                    self._is_over = True
                    return

    def _report(self) -> None:
        with self._lock:
            epochs, self._epochs = self._epochs, []
            pulses, self._pulses = self._pulses, {}
        chunks, arrays = pack_epochs(epochs)
        header = {"task": self._task, "epochs": chunks, "pulses": [[member, share] for member, share in pulses.items()]}
        answer = self._client.ask("epochs", header, arrays).header
        self._stops |= set(answer["stops"])
        self._is_over |= answer["is_over"]


def remote_store(client: Client, header: dict[str, Any], rows: ArrayShelf, classes: dict[str, Any]) -> tuple[KeyedStore, Saver]:
    """Return the checkpoint store of a task, whose checkpoints the driver has, and what sends them there."""

    def newest(key: str) -> Run | None:
        answer = client.ask("newest", {"task": header["task"], "key": key})
        if answer.kind != "runs":
            return None
        return unpack_runs(answer.header["runs"], answer.arrays, rows.__getitem__, classes)[0]

    def send(key: str, run: Run) -> None:
        runs, arrays = pack_runs({0: run}, rows)
        client.ask("checkpoint", {"task": header["task"], "key": key, "runs": runs}, arrays)

    saver = Saver(send, header["checkpoint_seconds"])
    return KeyedStore(newest, saver.offer, saver.spend), saver
