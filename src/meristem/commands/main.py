"""The command line: parse the arguments, run the command, and turn errors into one line and an exit status.

Standard output and error never raise: a command that cannot print finishes its work and exits with status 1. A stream may be
closed, full, a pipe without a reader (not reported), or of an encoding that lacks a character ("?" replaces it).
"""

import argparse
import errno
import logging
import os
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

from meristem.cache import keep_programs
from meristem.check import short
from meristem.commands.parsing import parser
from meristem.files.atomic_write import CANNOT_WRITE, OutputError
from meristem.xla_flags import be_repeatable

EXTRAS = {  # and the packages that each installs
    "cli": ["matplotlib", "rich"],
    "files": ["safetensors"],
    "live": ["starlette", "uvicorn"],
    "onnx": ["onnx"],
    "sklearn": ["sklearn", "threadpoolctl"],
    "tables": ["pyarrow"],
    "tensorboard": ["tensorboardX"],
    "torch": ["torch"],
}


def main(argv: Sequence[str] | None = None, started_at: float | None = None) -> int:
    """Run a command and return its exit status (docs/api.md); `started_at` is when it began, if not now."""
    out, err = SafeStream(sys.stdout), SafeStream(sys.stderr)
    with redirect_stdout(out), redirect_stderr(err):
        try:
            status = _run(argv, time.monotonic() if started_at is None else started_at)
        except SystemExit as end:  # --help, --version, or invalid arguments
            status = end.code if isinstance(end.code, int) else 0
    out.flush()
    if out.problem is not None and status == 0:
        status = 1
        if not isinstance(out.problem, BrokenPipeError):
            err.write(f"meristem: standard output cannot be written ({out.problem.strerror}).\n")
    err.flush()
    return status


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


def _run(argv: Sequence[str] | None, started_at: float) -> int:
    args = parser().parse_args(argv, argparse.Namespace(started_at=started_at))
    keep_programs()
    be_repeatable()
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it reports its font cache
    try:
        return int(args.run(args) or 0)
    except ValueError as error:
        return _report(str(error), 1 if isinstance(error, OutputError) else 2)
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        extra = next((name for name, packages in EXTRAS.items() if package in packages), None)
        if extra is None and "pip install" not in str(error):
            raise
        return _report(str(error) if extra is None else f"{package} is not installed: pip install 'meristem-nn[{extra}]'", 2)
    except KeyboardInterrupt:
        return _report("interrupted", 130)
    except OSError as error:
        place = f"{short(str(error.filename))}: " if error.filename else ""
        return _report(f"{place}{error.strerror}", 1 if error.errno in CANNOT_WRITE else 2)
    except Exception as error:
        *_, (frame, _) = traceback.walk_tb(error.__traceback__)
        if not str(frame.f_globals.get("__name__", "")).endswith("xla_bridge"):  # where JAX looks for a device
            raise
        platforms, reason = os.environ.get("JAX_PLATFORMS", ""), (str(error) or "there is no such device").splitlines()[0]
        return _report(f"JAX_PLATFORMS={platforms!r} cannot be used: {reason}", 2)


def _report(line: str, status: int) -> int:
    print(f"meristem: {line}", file=sys.stderr)
    return status
