"""A file is written whole or not at all: beside its place, to the disk, and then moved there."""

import os
import secrets
from pathlib import Path

PATHS = str | os.PathLike[str]


def write_whole(path: PATHS, data: bytes) -> None:
    """A file with these bytes in place of `path`, or the old one; never a part. Raises ValueError with advice."""
    place = Path(os.path.realpath(path))
    if place.is_dir() or not place.parent.is_dir():
        wrong = f"{os.fspath(path)!r} is a folder" if place.is_dir() else f"{str(place.parent)!r} is no folder"
        raise ValueError(f"{wrong}; give the path of a file in a folder that exists.")
    if place.exists() and not place.is_file():  # a device or a pipe, which the new file would take the place of
        raise ValueError(f"{os.fspath(path)!r} is a device or a pipe, no file; choose another place.")
    beside = place.parent / f".meristem-{secrets.token_hex(8)}"
    try:
        try:
            with open(beside, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, place)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ValueError(f"{os.fspath(path)!r} cannot be written ({error.strerror}); choose another place.") from error
