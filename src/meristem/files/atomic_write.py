"""Write a file completely or not at all: to a temporary file in the same folder, flushed to disk, checked, then renamed.

A killed writer leaves the old file or the new one, and perhaps a `.meristem-PID-…` file, which `clean_leftovers` deletes once
that process has ended. A full or missing disk raises OutputError, for which the command line has an exit status of its own.
"""

import errno
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

PATHS = str | os.PathLike[str]
LEFTOVER = re.compile(r"\.meristem-(\d+)-[0-9a-f]{16}")
CANNOT_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)
OLD = 3600.0  # seconds after which a temporary file is abandoned, where the system does not say which processes are alive


class OutputError(ValueError):
    """Output that cannot be written because a disk is full or gone."""


def not_written(text: str, error: OSError) -> ValueError:
    """Return the error to raise for a failed write: an OutputError if the disk is the reason, else a ValueError."""
    return OutputError(text) if error.errno in CANNOT_WRITE else ValueError(text)


@contextmanager
def naming_path(path: PATHS, what: str = "cannot be written", advice: str = "choose another folder") -> Iterator[None]:
    """Turn an OSError into the error of `not_written`, in one line that names the path."""
    try:
        yield
    except OSError as error:
        raise not_written(f"{os.fspath(path)!r} {what} ({error.strerror}); {advice}.", error) from error


def check_disk_space(out: Path, n_bytes: int) -> None:
    """Raise OutputError if the disk of a folder, which need not exist yet, has less free space than `n_bytes`."""
    place = next(folder for folder in (out.absolute(), *out.absolute().parents) if folder.exists())
    free = shutil.disk_usage(place).free
    if free < n_bytes:
        raise OutputError(
            f"--out={str(out)!r}: the disk has {free / 2**20:,.1f} MiB left, the files of this run take about "
            f"{n_bytes / 2**20:,.1f}; free some, or choose another disk. Nothing was written."
        )


def write_whole(path: PATHS, data: bytes, check: Callable[[Path], None] | None = None) -> None:
    """Replace `path` by a file with these bytes, or leave it as it was; ValueError with advice where that fails.

    `check` gets the path of the new file before it replaces the old one; an exception from it keeps the old one.
    """
    place = Path(os.path.realpath(path))
    is_other = place.exists() and not place.is_file()  # the rename would replace a device or a pipe, not write to it
    if is_other or not place.parent.is_dir():
        what = "a folder" if place.is_dir() else "no plain file"
        wrong = f"{os.fspath(path)!r} is {what}" if is_other else f"{str(place.parent)!r} is no folder"
        raise ValueError(f"{wrong}; give the path of a file in a folder that exists.")
    with naming_path(path, advice="choose another place"), replacing(place) as temporary:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if check is not None:
            check(temporary)


@contextmanager
def replacing(place: Path) -> Iterator[Path]:
    """Yield the path of a temporary file in the same folder, which is then moved to `place`, or deleted after an exception."""
    temporary = place.parent / f".meristem-{os.getpid()}-{secrets.token_hex(8)}"
    try:
        yield temporary
        os.replace(temporary, place)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def clean_leftovers(folder: Path) -> None:
    """Delete the temporary files in a folder whose writers have ended."""
    for path in folder.iterdir() if folder.is_dir() else []:
        match = LEFTOVER.fullmatch(path.name)
        if match and path.is_file():
            has_writer = is_alive(int(match[1]))
            if not (has_writer or (has_writer is None and time.time() - path.stat().st_mtime < OLD)):
                path.unlink(missing_ok=True)


def is_alive(process: int) -> bool | None:
    """Return whether a process exists; None on Windows, where asking would end it."""
    if os.name == "nt":
        return None
    try:
        os.kill(process, 0)
    except PermissionError:  # another user's process
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True
