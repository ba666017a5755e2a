"""Standard output and error that never raise: a command that cannot print finishes its work and exits with status 1.

    with safe_output() as finish: …; finish(0)     1, with a line on standard error, where output could not be written

A stream may be closed, full, a pipe without a reader (not reported), or of an encoding that lacks a character ("?" replaces
it). Failures of standard error are ignored.
"""

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class SafeStream:
    """A text stream whose writes never fail; `problem` is the first error."""

    def __init__(self, stream: Any):
        self.problem: OSError | None = None if stream else OSError(errno.EBADF, os.strerror(errno.EBADF))
        self._stream = stream or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # as long as the process
        if hasattr(self._stream, "reconfigure"):
            self._stream.reconfigure(errors="replace")

    def write(self, text: str) -> int:
        self._try(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        self._try(self._stream.flush)

    def _try(self, action: Any) -> None:
        try:
            action()
        except OSError as error:
            self.problem = self.problem or error
            # Python flushes the buffer when it exits, which must not fail again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def safe_output() -> Iterator[Callable[[int], int]]:
    """Inside, sys.stdout and sys.stderr are safe streams; yields a function that flushes and returns the exit status."""
    before = sys.stdout, sys.stderr
    out, err = SafeStream(sys.stdout), SafeStream(sys.stderr)

    def finish(status: int) -> int:
        out.flush()
        if out.problem is None:
            return status
        if status == 0 and not isinstance(out.problem, BrokenPipeError):  # otherwise an error was already printed
            err.write(f"meristem: standard output cannot be written ({out.problem.strerror}).\n")
        return status or 1

    sys.stdout, sys.stderr = out, err
    try:
        yield finish
    finally:
        err.flush()
        sys.stdout, sys.stderr = before
