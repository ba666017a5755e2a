"""SIGTERM, SIGHUP and Ctrl-C end a command in order: a last checkpoint where there is something to keep, last words, a status.

    listen()                          as soon as the process begins, before anything large is imported
    with ends_with(words): …          inside, `words()` is called when the process is told to end; what it returns is printed

A signal is not turned into an exception: one can get lost inside JAX, and to leave Python while XLA computes can crash. Python
notes it in a socket, a thread of ours reads it there, however busy the others are, and ends the process itself: status 128 plus
the signal's number, 143, 129 or 130. A second signal ends it at once. A signal that is ignored, as nohup has it, stays so.
Imports nothing of meristem.
"""

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

NAMES = ["SIGINT", "SIGTERM", "SIGHUP"]  # Windows has no SIGHUP
WORDS = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "hung up"}
LastWords = Callable[[], str | None]

_words: list[LastWords] = []  # the innermost last


def listen() -> None:
    """From now on the signals end this process in order; a second call changes nothing."""
    signals = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
    wanted = [one for one in signals if signal.getsignal(one) in (signal.SIG_DFL, signal.default_int_handler)]
    for one in wanted:
        signal.signal(one, _at_once)  # until the thread listens
    reading, writing = socket.socketpair()
    writing.setblocking(False)
    signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
    _kept_open.extend([reading, writing])
    threading.Thread(target=_listen, args=(reading,), name="meristem-ending", daemon=True).start()
    for one in wanted:
        signal.signal(one, _noted)


@contextmanager
def ends_with(words: LastWords) -> Iterator[None]:
    """Inside, these are the last words; those outside are said, too."""
    _words.append(words)
    try:
        yield
    finally:
        _words.remove(words)


def leave(status: int) -> NoReturn:
    """End the process now: nothing is computed any more that Python could wait for."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(status)


_kept_open: list[socket.socket] = []


def _noted(number: int, frame: FrameType | None) -> None:
    """What Python calls when it comes to it: the thread knows already."""


def _at_once(number: int, frame: FrameType | None) -> None:
    os._exit(128 + number)


def _listen(reading: socket.socket) -> None:
    first = reading.recv(1)
    if not first:  # the process is ending anyway
        return
    threading.Thread(target=_end, args=(first[0],), name="meristem-last-words", daemon=True).start()
    reading.recv(1)
    os._exit(128 + first[0])


def _end(number: int) -> None:
    said = []
    for words in reversed(_words):
        try:
            said.append(words())
        except Exception as error:  # a disk that is full, say: that is the last word, then
            said.append(str(error).splitlines()[0] if str(error) else type(error).__name__)
    name = WORDS[signal.Signals(number).name]
    with suppress(Exception):
        print(f"\nmeristem: {'; '.join([name, *filter(None, said)])}", file=sys.stderr, flush=True)
    leave(128 + number)
