"""Open and lock plain files only: links, pipes and devices are refused, nothing blocks, and nothing is read without a limit.

The lock is the operating system's, so a process that dies, however it dies, releases it. The file names the process that holds
it and is never deleted, because another process may be about to lock it. Why not filelock: docs/map.md.
"""

import errno
import json
import math
import os
import stat
import sys
import time
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from typing import IO

from meristem.files.atomic_write import naming_path, not_written

FLAGS = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
FILE, FOLDER = "-", "d"  # as `ls -l` shows them
KINDS = {"l": "a link", "p": "a pipe", "s": "a socket", "c": "a device", "b": "a device", "d": "a folder", "-": "a plain file"}
CONTENDED = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)
LONGEST_LOCK = 4096  # bytes of the file
LOCKED_BYTE = 2**30  # on Windows, where a locked byte cannot be read


def check_kind(path: Path, expected: str = FILE, most: float = math.inf) -> None:
    """Raise ValueError of one line if the path exists and is not a plain file, or a FOLDER, or longer than `most` bytes."""
    try:
        status = os.lstat(path)
    except OSError:  # it does not exist, or opening it says why it cannot be read
        return
    kind, advice = stat.filemode(status.st_mode)[0], "delete it, or choose another folder"
    if kind != expected:
        raise ValueError(f"{str(path)!r} is {KINDS.get(kind, 'something else')}, not {KINDS[expected]}; {advice}.")
    if status.st_size > most:
        raise ValueError(f"{str(path)!r} has {status.st_size:,} bytes, and at most {most:,} are read; {advice}.")


def open_plain(path: Path, most: float = math.inf) -> BufferedReader:
    """Open a plain file of at most `most` bytes for reading; ValueError if it is not one, OSError if it cannot be read."""
    check_kind(path, most=most)
    file = open(path, "rb", opener=plain_opener)  # noqa: SIM115  (the caller closes it)
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # it has just been replaced
        file.close()
        raise ValueError(f"{str(path)!r} is not a plain file; delete it, or choose another folder.")
    return file


def plain_opener(path: str | Path, flags: int) -> int:
    """Open a file without following links and without waiting; an `opener` for `open`."""
    return os.open(path, flags | FLAGS, 0o666)


def read_limited(path: Path, most: int) -> bytes:
    """Return the content of a plain file of at most `most` bytes; no more of one that grows meanwhile."""
    with open_plain(path, most) as file:
        return file.read(most)


def take_lock(path: Path) -> IO[bytes]:
    """Lock this file, which is made, until the result is closed or the process ends; ValueError if it is locked already."""
    check_kind(path)
    with naming_path(path):
        file = open(path, "ab+", buffering=0, opener=plain_opener)  # noqa: SIM115  (the lock lives while it is open)
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(LOCKED_BYTE)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.truncate(0)
        file.write(json.dumps({"pid": os.getpid(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}).encode())
    except OSError as error:
        file.close()
        if error.errno in CONTENDED:
            holder = ""
            with suppress(OSError, ValueError, LookupError, TypeError, RecursionError):  # it has not written its name yet
                entries = json.loads(read_limited(path, LONGEST_LOCK))
                holder = f" (process {int(entries['pid'])}, since {str(entries['since'])[:40]})"
            raise ValueError(f"Another run{holder} is writing to this folder; wait for it, or choose another folder.") from None
        problem = f"{str(path)!r} cannot be locked ({error.strerror}); choose a folder on another disk."
        raise not_written(problem, error) from error
    return file
