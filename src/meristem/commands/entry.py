"""The process of a command: it listens to signals before large imports, and shuts down in order.

    listen()                          as soon as the process starts
    with on_shutdown(last): …         inside, SIGTERM, SIGHUP or Ctrl-C calls `last()` and prints the text it returns

Signals do not become exceptions: JAX can swallow one, and leaving Python while XLA computes can crash. Instead a thread reads
the signal's number from a wakeup socket and ends the process with status 128 + number (143, 129, 130), however busy the other
threads are. A second signal ends it at once. A signal that was ignored, as with nohup, stays ignored. Imports only the standard
library. `meristem` and `python -m meristem` call `main` here; tests and programs call `meristem.commands.main.main`, which
leaves the process alone.
"""

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

NAMES = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "hung up"}  # Windows has no SIGHUP
LastCall = Callable[[], str | None]

_last_calls: list[LastCall] = []  # the innermost last
_sockets: list[socket.socket] = []  # referenced, so that they stay open


def main() -> None:
    """Run the command that the arguments name, and exit with its status; --seconds counts from here, with the imports."""
    started_at = time.monotonic()
    listen()
    from meristem.commands.main import main as run

    leave(run(started_at=started_at))


def listen() -> None:
    """From now on, end this process in order when a signal arrives."""
    numbers = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
    handled = [number for number in numbers if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler)]
    for number in handled:
        signal.signal(number, lambda number, frame: os._exit(128 + number))  # until the thread listens
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    _sockets.extend([reader, writer])
    threading.Thread(target=_wait_for_signal, args=(reader,), name="meristem-signals", daemon=True).start()
    for number in handled:
        signal.signal(number, lambda number, frame: None)  # the thread has already been woken


@contextmanager
def on_shutdown(last: LastCall) -> Iterator[None]:
    """Inside, call `last` before the process ends by a signal; outer ones are called after it."""
    _last_calls.append(last)
    try:
        yield
    finally:
        _last_calls.remove(last)


def leave(status: int) -> NoReturn:
    """End the process now, without waiting for computations."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(status)


def _wait_for_signal(reader: socket.socket) -> None:
    first = reader.recv(1)
    if not first:  # the process is ending anyway
        return
    threading.Thread(target=_shut_down, args=(first[0],), name="meristem-shutdown", daemon=True).start()
    reader.recv(1)
    os._exit(128 + first[0])


def _shut_down(number: int) -> None:
    texts: list[str | None] = [NAMES[signal.Signals(number).name]]
    for last in reversed(_last_calls):
        try:
            texts.append(last())
        except Exception as error:  # such as a full disk
            texts.append(str(error).splitlines()[0] if str(error) else type(error).__name__)
    with suppress(Exception):
        print(f"\nmeristem: {'; '.join(filter(None, texts))}", file=sys.stderr, flush=True)
    leave(128 + number)
