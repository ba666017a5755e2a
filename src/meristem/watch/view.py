"""The picture of a run now, as often as one asks for it.

    view = View(out)                ValueError where there can be no run
    view.now() → State              see state.py

The time left is estimated from what was done of the plan since the view began. One thread at a time may ask.
terminal.py and server.py import it.
"""

import time
from pathlib import Path

from meristem.watch.following import Follower
from meristem.watch.state import Done, State, picture, share

LEAST_SHARE = 0.01  # of the plan, that must have been done before anything is said of the time left


class View:
    """Of one folder."""

    def __init__(self, out: Path):
        self._follower = Follower(out)
        self._done: Done = {}
        self._pace = Pace()

    def now(self) -> State:
        """The picture of what there is now."""
        seen = self._follower.poll()
        run = seen.run["id"] if seen.has_run else None
        left = None if seen.is_finished else self._pace.left(run, share(seen), time.monotonic())
        return picture(seen, left=left, done=self._done)


class Pace:
    """How long it takes to do the rest, from what was done since one looks.

    >>> pace = Pace()
    >>> pace.left("a", 0.2, 100.0), pace.left("a", 0.4, 110.0), pace.left("b", 0.1, 111.0), pace.left("b", None, 112.0)
    (None, 30.0, None, None)
    """

    def __init__(self) -> None:
        self._run: str | None = None
        self._first: tuple[float, float] | None = None

    def left(self, run: str | None, share: float | None, now: float) -> float | None:
        """Seconds; None where it is not known."""
        if run != self._run or (self._first is not None and (share is None or share < self._first[0])):
            self._run, self._first = run, None
        if share is None:
            return None
        self._first = self._first or (share, now)
        began, since = self._first
        return None if share - began < LEAST_SHARE else round((1 - share) * (now - since) / (share - began), 3)
