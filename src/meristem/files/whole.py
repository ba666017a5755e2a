"""A file is written whole or not at all: beside its place, to the disk, looked at once more, and then moved there.

A writer that is killed leaves the old file or the new one, and perhaps a `.meristem-PID-…` beside it: `clean_leftovers` takes
those away whose writer is gone. A disk that is full or gone is an OutputError, which is a ValueError: no argument was wrong,
and the command line ends with another status.
"""

import errno
import os
import re
import secrets
import time
from collections.abc import Callable
from pathlib import Path

PATHS = str | os.PathLike[str]
LEFTOVER = re.compile(r"\.meristem-(\d+)-[0-9a-f]{16}")
CANNOT_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)
OLD = 3600.0  # seconds, after which nobody is still writing, where the system does not say who is alive


class OutputError(ValueError):
    """Output that cannot be written because a disk is full or gone."""


def not_written(text: str, error: OSError) -> ValueError:
    """Return the error to raise where something could not be written: an OutputError where the disk is the reason.

    >>> type(not_written("'a' cannot be written.", OSError(errno.ENOSPC, "No space left on device"))).__name__
    'OutputError'
    """
    return OutputError(text) if error.errno in CANNOT_WRITE else ValueError(text)


def write_whole(path: PATHS, data: bytes, check: Callable[[Path], None] | None = None) -> None:
    """A file with these bytes in place of `path`, or the old one; never a part. Raises ValueError with advice.

    `check` is given the new file before it is moved into place; what it raises leaves the old one there.
    """
    place = Path(os.path.realpath(path))
    is_other = place.exists() and not place.is_file()  # a device or a pipe would be replaced by the move, not written to
    if is_other or not place.parent.is_dir():
        what = "a folder" if place.is_dir() else "no plain file"
        wrong = f"{os.fspath(path)!r} is {what}" if is_other else f"{str(place.parent)!r} is no folder"
        raise ValueError(f"{wrong}; give the path of a file in a folder that exists.")
    beside = leftover(place.parent)
    try:
        try:
            with open(beside, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if check is not None:
                check(beside)
            os.replace(beside, place)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise not_written(f"{os.fspath(path)!r} cannot be written ({error.strerror}); choose another place.", error) from error


def leftover(folder: Path) -> Path:
    """A new name in a folder for what this process writes there; `clean_leftovers` finds what it leaves."""
    return folder / f".meristem-{os.getpid()}-{secrets.token_hex(8)}"


def clean_leftovers(folder: Path) -> list[Path]:
    """Delete what killed writers left in a folder; those that are still writing are not disturbed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     for name in (f".meristem-{2**22 + 1}-0123456789abcdef", f".meristem-{os.getpid()}-0123456789abcdef", "mine"):
    ...         _ = (Path(place) / name).write_bytes(b"a part")
    ...     [path.name[:17] for path in clean_leftovers(Path(place))], len(os.listdir(place))
    (['.meristem-4194305'], 2)
    """
    gone = []
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        found = LEFTOVER.fullmatch(path.name)
        if found and path.is_file() and not _is_writing(int(found[1]), path):
            path.unlink(missing_ok=True)
            gone.append(path)
    return gone


def _is_writing(process: int, path: Path) -> bool:
    if os.name == "nt":  # there, asking for a process would end it
        return time.time() - path.stat().st_mtime < OLD
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # someone else's, and alive
        return True
    return True
