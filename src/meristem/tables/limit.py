"""A limit of time: when it is over, who says so, and what of it is kept for what comes after a search.

    limit = Limit(60.0, begun);  Deadline(limit.end - ending(60.0, looks, epoch))

To score, compare and report takes looks at the rows that are held out, which have been measured with a network of a trial;
files take longer where the machine is busy, and how busy it is can be measured, too. pace.py and fitting.py import it.
"""

import time
from dataclasses import dataclass

from meristem.train.callbacks import Watcher
from meristem.train.train_state import EpochInfo

END, FILES = 0.03, 2.0  # of the time; seconds for the files
SLACK = 0.1  # of the time, by which a limit may be exceeded
SAMPLE = 0.03  # seconds of computing that show how busy a machine is


@dataclass(frozen=True)
class Limit:
    """So many seconds from a moment on, as `time.monotonic` has it."""

    seconds: float
    begun: float

    @property
    def end(self) -> float:
        """When they are over."""
        return self.begun + self.seconds


class Deadline(Watcher):
    """Ends a training when a time has come, and knows whether it did."""

    def __init__(self, at: float):
        self.at, self.has_ended = at, False

    def epoch(self, member: int, info: EpochInfo) -> bool:
        return self.over()

    def over(self) -> bool:
        is_over = time.monotonic() > self.at
        self.has_ended |= is_over
        return is_over


def ending(seconds: float, looks: float, epoch: float = 0.0, *, slow: float = 1.0) -> float:
    """How long before the end a search must: looks at the rows that are held out, and an epoch, take so long.

    Files take `slow` times as long as on an idle machine. No more than half of all, where the time is short.

    >>> ending(100.0, 12.0, 0.5), ending(100.0, 12.0, 0.5, slow=2.0), ending(4.0, 3.0)
    (17.5, 19.5, 2.0)
    """
    return min(END * seconds + slow * FILES + looks + epoch, seconds / 2)


def slowness() -> float:
    """How many times as long as on an idle core a thread takes for what it computes, as busy as the machine is now.

    >>> 1 <= slowness() < 1000
    True
    """
    begun, own = time.monotonic(), time.thread_time()
    while (computed := time.thread_time() - own) < SAMPLE:
        pass
    return max(1.0, (time.monotonic() - begun) / computed)
