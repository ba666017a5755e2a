"""A lock that a folder's writer holds: the operating system's, so that a process that dies gives it back, however it dies.

    lock = take(path)           or ValueError, in one line, with the process that has it
    lock.release()

The file says who holds it; it is never deleted, for another process may be about to lock it. Imports plain and files.whole.
"""

import errno
import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

from meristem.files.whole import not_written
from meristem.folders.plain import FLAGS, check_plain, read_limited

LONGEST = 4096  # bytes of the file
PLACE = 2**30  # the byte that is locked on Windows, where a locked one cannot be read


class Lock:
    """Held until it is released, or the process ends."""

    def __init__(self, file: IO[str]):
        self._file = file

    def release(self) -> None:
        """Another may have it now; a second call changes nothing."""
        self._file.close()


def take(path: Path) -> Lock:
    """The lock of this file, which is made; ValueError where another process, or another part of this one, has it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lock = take(Path(folder) / "lock")
    ...     try:
    ...         take(Path(folder) / "lock")
    ...     except ValueError as error:
    ...         print(f"process {os.getpid()}" in str(error))
    ...     lock.release()
    ...     take(Path(folder) / "lock").release()
    True
    """
    check_plain(path)
    try:
        file = open(path, "a+", encoding="utf-8", opener=_opener)  # noqa: SIM115  (a lock lives as long as its file is open)
    except OSError as error:
        raise not_written(f"{str(path)!r} cannot be written ({error.strerror}); choose another folder.", error) from error
    try:
        _lock(file)
    except OSError as error:
        file.close()
        if error.errno in (errno.EAGAIN, errno.EACCES, errno.EDEADLK):
            raise ValueError(f"{_holder(path)} is writing to this folder; wait for it, or choose another folder.") from None
        raise ValueError(f"{str(path)!r} cannot be locked ({error.strerror}); choose a folder on another disk.") from error
    try:
        file.seek(0)
        file.truncate()
        file.write(json.dumps({"pid": os.getpid(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}))
        file.flush()
    except OSError as error:
        with suppress(OSError):  # what could not be written is tried once more
            file.close()
        raise not_written(f"{str(path)!r} cannot be written ({error.strerror}); choose another folder.", error) from error
    return Lock(file)


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags | FLAGS, 0o666)


def _holder(path: Path) -> str:
    try:
        holder = json.loads(read_limited(path, LONGEST))
        return f"Another run (process {int(holder['pid'])}, since {str(holder['since'])[:40]})"
    except (OSError, ValueError, LookupError, TypeError, RecursionError):  # it has just taken it
        return "Another run"


if sys.platform == "win32":

    def _lock(file: IO[str]) -> None:
        import msvcrt

        file.seek(PLACE)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)

else:

    def _lock(file: IO[str]) -> None:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
