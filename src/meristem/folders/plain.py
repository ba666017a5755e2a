"""Plain files alone: links, pipes and devices are refused, nothing is waited for, and nothing is read without a limit.

    check_plain(path)                   ValueError of one line where something else than a plain file is there
    check_folder(path)                  the same of a folder
    with open_plain(path) as file: …    FileNotFoundError where nothing is there
    read_limited(path, most) → bytes    ValueError where the file is longer

Imports nothing of meristem; the rest of this folder and watch/ import it.
"""

import errno
import os
import stat
from io import FileIO
from pathlib import Path

FLAGS = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
    stat.S_IFREG: "a file",
}
REFUSED = (errno.ELOOP, errno.EMLINK, errno.ENXIO)  # what a link or a socket answers that took the place of a file just now


def check_plain(path: Path) -> None:
    """Raise ValueError of one line where something else than a plain file is there.

    >>> check_plain(Path("/"))
    Traceback (most recent call last):
    ValueError: '/' is a folder, not a plain file; delete it, or choose another folder.
    """
    _check(path, stat.S_IFREG, "a plain file")


def check_folder(path: Path) -> None:
    """Raise ValueError of one line where something else than a folder is there; a link to one is something else."""
    _check(path, stat.S_IFDIR, "a folder")


def open_plain(path: Path) -> FileIO:
    """Open a plain file for reading; ValueError where it is something else, OSError where it cannot be read."""
    check_plain(path)
    try:
        number = os.open(path, os.O_RDONLY | FLAGS)
    except OSError as error:
        if error.errno in REFUSED:
            raise ValueError(f"{str(path)!r} is not a plain file; delete it, or choose another folder.") from error
        raise
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise ValueError(f"{str(path)!r} is not a plain file; delete it, or choose another folder.")
    return FileIO(number, "rb")


def check_length(path: Path, most: int) -> None:
    """Raise ValueError of one line where a file is longer than `most` bytes; one that is not there is not."""
    try:
        length = os.lstat(path).st_size
    except OSError:
        return
    if length > most:
        raise ValueError(
            f"{str(path)!r} has {length:,} bytes, and at most {most:,} are read; delete it, or choose another folder."
        )


def read_limited(path: Path, most: int) -> bytes:
    """Read a whole plain file of at most `most` bytes."""
    with open_plain(path) as file:
        check_length(path, most)
        data = bytearray()
        while len(data) <= most and (block := file.read(most + 1 - len(data))):
            data += block
    if len(data) > most:
        raise ValueError(f"{str(path)!r} has more than {most:,} bytes, which are read at most; delete it.")
    return bytes(data)


def _check(path: Path, wanted: int, words: str) -> None:
    try:
        kind = stat.S_IFMT(os.lstat(path).st_mode)
    except OSError:  # nothing is there, or whoever opens it says why not
        return
    if kind != wanted:
        raise ValueError(
            f"{str(path)!r} is {KINDS.get(kind, 'something else')}, not {words}; delete it, or choose another folder."
        )
