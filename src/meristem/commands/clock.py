"""When the process of a command began: what --seconds counts from.

    start()             first of all, before anything large is imported
    began() → float     as `time.monotonic` has it; where no process of its own was started for a command, now

entry.py and tables.py import it; it imports nothing of meristem.
"""

import time

_began: list[float] = []


def start() -> None:
    """Now; a second call changes nothing."""
    if not _began:
        _began.append(time.monotonic())


def began() -> float:
    """When that was.

    >>> began() <= time.monotonic()
    True
    """
    return _began[0] if _began else time.monotonic()
