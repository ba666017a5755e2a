"""Output that cannot be written loses no work: whoever does not listen is told once, at the end, by the exit status.

    with steady() as streams: …; streams.status(0)        1 where standard output could not be written, with one line on stderr

A stream may be closed, full, a pipe whose reader has gone (of which nothing is said), or of an encoding that lacks a character,
which is then a question mark. Standard error that nobody hears changes nothing.
"""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple


class Stream:
    """A text stream that never fails; `problem` is what happened at the first write that did."""

    def __init__(self, stream: Any):
        self.problem: OSError | None = None if stream else OSError(errno.EBADF, os.strerror(errno.EBADF))
        self._stream = stream or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # as long as the process
        if hasattr(self._stream, "reconfigure"):
            self._stream.reconfigure(errors="replace")

    def write(self, text: str) -> int:
        """All of it, or as if."""
        self._try(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        """The same."""
        self._try(self._stream.flush)

    def _try(self, act: Any) -> None:
        try:
            act()
        except OSError as error:
            self.problem = self.problem or error
            # What is still in the buffer must go somewhere when Python ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Streams(NamedTuple):
    """Standard output and standard error."""

    out: Stream
    err: Stream

    def status(self, status: int) -> int:
        """The exit status, after all is written."""
        self.out.flush()
        if self.out.problem is None:
            return status
        if status == 0 and not isinstance(self.out.problem, BrokenPipeError):  # else one line was said, and that is enough
            self.err.write(f"meristem: standard output cannot be written ({self.out.problem.strerror}).\n")
        return status or 1


@contextmanager
def steady() -> Iterator[Streams]:
    """Inside, what is printed goes there as far as it can."""
    before = sys.stdout, sys.stderr
    streams = Streams(Stream(sys.stdout), Stream(sys.stderr))
    sys.stdout, sys.stderr = streams
    try:
        yield streams
    finally:
        streams.err.flush()
        sys.stdout, sys.stderr = before
