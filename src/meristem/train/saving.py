"""Saving while it is trained: in a thread of its own, when it is time to, and for a small share of the time.

    saver = Saver(save, seconds=300)
    saver.offer(name, make_run)     after an epoch: keeps the newest of each name; `save(name, run)` is called in the background
    saver.now()                     what was not saved yet, at once
    saver.close()                   waits for what is being saved; raises what went wrong

A run is never changed, so that it can be saved while the next epoch is trained. Between two savings are at least `seconds`, and
there is none that would make saving take more than 5 % of the time so far, if it takes as long as the one before.
"""

import threading
import time
from collections.abc import Callable, Hashable
from typing import Any

from meristem.train.run import Run

SECONDS = 300.0
SHARE = 0.05  # of the time, at most


class Saver:
    """See the module's header. `spent`: the seconds that saving has taken so far."""

    def __init__(self, save: Callable[[Any, Run], Any], seconds: float = SECONDS):
        self._save, self._seconds = save, seconds
        self._latest: dict[Hashable, Callable[[], Run]] = {}
        self._begin = self._last = time.monotonic()
        self._cost = 0.0  # of the last saving
        self._lock, self._writing = threading.Lock(), threading.Lock()
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self.spent = 0.0

    def offer(self, name: Hashable, make: Callable[[], Run]) -> None:
        """A newer run of this name, which is made when it is saved."""
        with self._lock:
            self._latest[name] = make
            if self._error is not None or not self._is_due or (self._thread and self._thread.is_alive()):
                return
            self._thread = threading.Thread(target=self._in_background, name="meristem-saver", daemon=True)
            self._thread.start()

    def forget(self) -> None:
        """What was offered is of no use any more; waits for what is being saved."""
        with self._writing, self._lock:
            self._latest.clear()

    def now(self) -> None:
        """Save what was not saved yet, and wait for it."""
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
        """So much time was spent on saving."""
        with self._lock:
            self.spent += seconds

    @property
    def _is_due(self) -> bool:
        now = time.monotonic()
        return now - self._last >= self._seconds and self.spent + self._cost <= SHARE * (now - self._begin)

    def close(self) -> None:
        """Wait for the thread, and raise what went wrong in it."""
        if self._thread is not None:
            self._thread.join()
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _in_background(self) -> None:
        try:
            self.now()
        except BaseException as error:
            self._error = error
