"""A file is written whole or not at all: beside its place, to the disk, looked at once more, and then moved there."""

import os
import secrets
from collections.abc import Callable
from pathlib import Path

PATHS = str | os.PathLike[str]


def write_whole(path: PATHS, data: bytes, check: Callable[[Path], None] | None = None) -> None:
    """A file with these bytes in place of `path`, or the old one; never a part. Raises ValueError with advice.

    `check` is given the new file before it is moved into place; what it raises leaves the old one there.
    """
    place = Path(os.path.realpath(path))
    if place.is_dir() or not place.parent.is_dir():
        wrong = f"{os.fspath(path)!r} is a folder" if place.is_dir() else f"{str(place.parent)!r} is no folder"
        raise ValueError(f"{wrong}; give the path of a file in a folder that exists.")
    beside = place.parent / f".meristem-{secrets.token_hex(8)}"
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
        raise ValueError(f"{os.fspath(path)!r} cannot be written ({error.strerror}); choose another place.") from error
