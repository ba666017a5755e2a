"""Saving runs while they train: in the background, or to an ambient checkpoint store.

Runs never change, so they can be saved while the next epoch trains. Between two savings are at least `seconds`, and a saving is
skipped if, taking as long as the one before, it would bring saving above 5 % of the time so far.

    with checkpoint_store(restore): fit(…)      all training inside uses the store, also in the threads of `train_alone`

A store is a function: restore(run, data, goal) returns the newest checkpoint of the training that these three identify, or the
run itself, and a function that records its epochs. The training continues from there, to the same bits. It is a context
variable, so that no function in between has to pass it on.
"""

import threading
import time
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from meristem.train.run import Run
from meristem.train.training_data import Prepared

SECONDS = 300.0
SHARE = 0.05  # of the time, at most
Record = Callable[[Run], None]  # called after each epoch
Restore = Callable[[Run, Prepared, tuple[Any, ...]], tuple[Run, Record]]
STORE: ContextVar[Restore] = ContextVar("store", default=lambda run, prepared, goal: (run, lambda run: None))


class Saver:
    """Calls save(name, run) in a thread for the newest run of each name; `spent` is the seconds that it has taken so far."""

    def __init__(self, save: Callable[[Any, Run], Any], seconds: float = SECONDS):
        self._save, self._seconds = save, seconds
        self._latest: dict[Hashable, Callable[[], Run]] = {}
        self._begin = self._last = time.monotonic()
        self._cost = 0.0  # of the last saving
        self._lock, self._writing = threading.Lock(), threading.Lock()
        self._pool = ThreadPoolExecutor(1, "meristem-saver")
        self._saving: Future[None] | None = None
        self.spent = 0.0

    def offer(self, name: Hashable, make: Callable[[], Run]) -> None:
        """Take a newer run of this name, which is made when it is saved."""
        with self._lock:
            self._latest[name] = make
            now = time.monotonic()
            is_due = now - self._last >= self._seconds and self.spent + self._cost <= SHARE * (now - self._begin)
            if is_due and (self._saving is None or (self._saving.done() and self._saving.exception() is None)):
                self._saving = self._pool.submit(self.now)

    def forget(self) -> None:
        """Drop what was offered, after what is being saved."""
        with self._writing, self._lock:
            self._latest.clear()

    def now(self) -> None:
        """Save what is not saved yet, and wait for it."""
        with self._writing:
            with self._lock:
                waiting, self._latest = self._latest, {}
            begin = time.monotonic()
            try:
                for name, make in waiting.items():
                    self._save(name, make())
            finally:
                self._last = time.monotonic()
                self._cost = self._last - begin
                self.spend(self._cost)

    def spend(self, seconds: float) -> None:
        """Add to the time spent on saving."""
        with self._lock:
            self.spent += seconds

    def close(self) -> None:
        """Wait for the thread, and raise its exception."""
        saving, self._saving = self._saving, None
        if saving is not None:
            saving.result()


@contextmanager
def checkpoint_store(restore: Restore) -> Iterator[None]:
    """Use this store inside."""
    token = STORE.set(restore)
    try:
        yield
    finally:
        STORE.reset(token)
