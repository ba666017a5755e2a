"""A file that changes while it is read is refused: what was read would be neither the old one nor the new one.

    with unchanged(file, "'people.csv'"):
        … read all of it …

Size and time of change are those of before, and the file was read up to where its size says that it ends; else a ValueError of
one line, whatever else went wrong with such a content. Pipes and devices have no such size. Imports nothing of
meristem; the readers of tables import it.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO


@contextmanager
def unchanged(file: BinaryIO, name: str) -> Iterator[None]:
    """Raise ValueError where the file is not what it was at the begin of the block, or was not read to its end.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("r+b") as file, unchanged(file, "'x.csv'"):
    ...     _ = file.write(b"more"), file.flush()
    Traceback (most recent call last):
    ValueError: 'x.csv' changed while it was read; wait until it is written, or give a copy.
    """
    before = os.fstat(file.fileno())
    try:
        yield
    except Exception as error:
        if _is_other(before, os.fstat(file.fileno())):
            raise _changed(name) from error
        raise
    ends_elsewhere = stat.S_ISREG(before.st_mode) and file.tell() != before.st_size
    if ends_elsewhere or _is_other(before, os.fstat(file.fileno())):
        raise _changed(name)


def _is_other(before: os.stat_result, now: os.stat_result) -> bool:
    is_plain = stat.S_ISREG(before.st_mode)
    return is_plain and (before.st_size, before.st_mtime_ns) != (now.st_size, now.st_mtime_ns)


def _changed(name: str) -> ValueError:
    return ValueError(f"{name} changed while it was read; wait until it is written, or give a copy.")
