"""A file is written whole or not at all: beside its place, to the disk, and then moved there."""

import os
import secrets
from pathlib import Path

PATHS = str | os.PathLike[str]


def write_whole(path: PATHS, data: bytes) -> None:
    """A file with these bytes in place of `path`, or the old one; never a part. Raises ValueError with advice."""
    place = Path(os.path.realpath(path))
    is_other = place.exists() and not place.is_file()  # a device or a pipe would be replaced by the move, not written to
    if is_other or not place.parent.is_dir():
        what = "a folder" if place.is_dir() else "no plain file"
        wrong = f"{os.fspath(path)!r} is {what}" if is_other else f"{str(place.parent)!r} is no folder"
        raise ValueError(f"{wrong}; give the path of a file in a folder that exists.")
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
