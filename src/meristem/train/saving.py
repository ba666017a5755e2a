"""Saving while it is trained: in a thread of its own, when it is time to, and for a small share of the time.

    saver = Saver(save, seconds=300)
    saver.offer(name, make_run)     after an epoch: keeps the newest of each name; `save(name, run)` is called in the background
    saver.now()                     what was not saved yet, at once
    saver.close()                   waits for what is being saved; raises what went wrong

A run is never changed, so that it can be saved while the next epoch is trained. The time between two savings is at least
`seconds`, and so much longer than saving took that it takes at most 5 % of all time.
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
        self._due = time.monotonic() + seconds
        self._lock, self._writing = threading.Lock(), threading.Lock()
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self.spent = 0.0

    def offer(self, name: Hashable, make: Callable[[], Run]) -> None:
        """A newer run of this name, which is made when it is saved."""
        with self._lock:
            self._latest[name] = make
            if self._error is not None or time.monotonic() < self._due or (self._thread and self._thread.is_alive()):
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
                self.pause(time.monotonic() - begin)

    def pause(self, seconds: float) -> None:
        """So much time was spent on saving: the next one has to wait accordingly."""
        with self._lock:
            self.spent += seconds
            self._due = max(self._due, time.monotonic() + max(self._seconds, seconds * (1 / SHARE - 1)))

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
