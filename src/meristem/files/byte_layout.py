"""Read a safetensors file once, and its arrays only where the header agrees with the file's length.

    8 bytes, little-endian: the header's length │ the header, JSON │ the arrays, one after the other, without a gap

    with open_file(path) as (file, length):
        metadata, places = read_header(file, length)      reads nothing of the arrays
        arrays = read_arrays(file, places, types)         each in memory of its own, aligned for JAX

The whole header is checked before memory is allocated. What is wrong is a ValueError of one line that names the file.
"""

import contextlib
import json
import math
import os
import stat
from collections.abc import Iterator, Mapping
from io import FileIO
from typing import Any, NamedTuple

import numpy as np

from meristem.files.atomic_write import PATHS
from meristem.json_schema import OBJECT, TEXT, check_json, integer

LONGEST_HEADER = 100_000_000  # bytes, the limit of safetensors
MOST_AXES = 32
BLOCK = 1 << 18  # bytes compared at a time: what fits in a cache
ALIGNMENT = 64  # bytes: on a CPU, JAX uses an array that starts at a multiple without a copy
SIZES = [integer(0, bits=63)]
HEADER = {"__metadata__?": OBJECT, TEXT: {"dtype": TEXT, "shape": SIZES, "data_offsets": SIZES}}
ERRORS = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError)
RESAVE = "use a copy, or save it again."
UNREADABLE = f"is damaged: its header cannot be read; {RESAVE}"
PROBLEMS: dict[type, str] = {
    FileNotFoundError: "does not exist; check the path.",
    IsADirectoryError: "is a folder; give the file itself.",
}
LONGEST_NAME = 130  # characters of a file's name in a message


class Misread(Exception):
    """What is wrong with a file, in words that follow its name; `open_file` makes a ValueError of it."""


class Place(NamedTuple):
    """The type, shape and position of an array in a file."""

    name: str
    code: str  # safetensors' name of its type
    shape: tuple[int, ...]
    begin: int
    end: int


@contextlib.contextmanager
def open_file(path: PATHS) -> Iterator[tuple[FileIO, int]]:
    """Open a plain file once and yield it with its length; anything else, such as a pipe, is refused without waiting."""
    try:
        with FileIO(os.fspath(path), opener=lambda _, flags: os.open(path, flags | getattr(os, "O_NONBLOCK", 0))) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise Misread("is no plain file; give the file itself.")
            yield file, status.st_size
    except (Misread, OSError, ValueError) as error:  # ValueError: a zero byte in the name
        reason = getattr(error, "strerror", None) or error
        problem = error if isinstance(error, Misread) else PROBLEMS.get(type(error), f"cannot be read ({reason}).")
        raise ValueError(f"{short_name(path)} {problem}") from error


def short_name(path: PATHS) -> str:
    """Return a file's name for a message: the end of a long path.

    >>> short_name("model.safetensors"), len(short_name("folder/" * 40 + "model.safetensors"))
    ("'model.safetensors'", 130)
    """
    name = repr(os.fspath(path))
    return name if len(name) <= LONGEST_NAME else f"'…{name[1 - LONGEST_NAME + 1 :]}"


def read_header(file: FileIO, length: int) -> tuple[dict[str, Any], list[Place]]:
    """Return the header's metadata and the places of the arrays, sorted by name."""
    start = _filled(file, np.empty(min(length, 9), np.uint8)).tobytes()
    if start[8:9] not in (b"", b"{"):
        raise Misread("is not a safetensors file; give one that meristem saved.")
    if length < 9:
        raise Misread(f"is truncated, or no model at all: it holds {length} bytes; give one that meristem saved.")
    size = int.from_bytes(start[:8], "little")
    truncated = Misread(f"is truncated: it ends after {length} bytes; {RESAVE}")
    if length < 8 + size:
        raise truncated
    if size > LONGEST_HEADER:
        raise Misread(f"is damaged: its header is too long; {RESAVE}")
    try:
        table = json.loads("{" + _filled(file, np.empty(size - 1, np.uint8)).tobytes().decode())
        check_json(table, HEADER)
        metadata = table.pop("__metadata__", {})
        places = [Place(name, x["dtype"], tuple(x["shape"]), *x["data_offsets"]) for name, x in sorted(table.items())]
    except ERRORS as error:
        raise Misread(UNREADABLE) from error
    end = 0
    for place in sorted(places, key=lambda place: (place.begin, place.end)):
        if place.begin != end or place.end < place.begin or len(place.shape) > MOST_AXES:
            raise Misread(f"is damaged: its array {place.name[:40]!r} is not where it should be; {RESAVE}")
        end = place.end
    if 8 + size + end > length:
        raise truncated
    if 8 + size + end < length:
        raise Misread(f"is damaged: it goes on after its last array, for {length - 8 - size - end} bytes; use a copy.")
    return metadata, places


def read_arrays(file: FileIO, places: list[Place], types: Mapping[str, np.dtype]) -> dict[str, np.ndarray]:
    """Return the arrays by name, sorted by name, little-endian."""
    for place in places:
        if place.code not in types:
            what = f"array {place.name[:40]!r} has the type {place.code[:20]}, none of {', '.join(types)}"
            raise Misread(f"cannot be read by this version: {what}.")
        if math.prod(place.shape) * types[place.code].itemsize != place.end - place.begin:
            raise Misread(f"is damaged: its array {place.name[:40]!r} has another size; {RESAVE}")
    arrays = {}
    for place in sorted(places, key=lambda place: place.begin):
        try:
            data = np.empty(place.end - place.begin + ALIGNMENT, np.uint8)
            data = data[-data.ctypes.data % ALIGNMENT :][: place.end - place.begin]
            arrays[place.name] = data.view(types[place.code].newbyteorder("<")).reshape(place.shape)
        except (MemoryError, ValueError) as error:
            raise Misread(f"has an array {place.name[:40]!r} for which there is no memory: {place.shape}.") from error
        _filled(file, data)
    return {place.name: arrays[place.name] for place in places}


def check_same(file: FileIO, data: bytes) -> None:
    """Raise Misread unless the file holds exactly these bytes; compared in blocks, without a second copy in memory."""
    file.seek(0)
    for start in range(0, len(data) + 1, BLOCK):
        if file.read(BLOCK) != data[start : start + BLOCK]:
            raise Misread(f"was not written as it is: the disk holds something else after {start} bytes; choose another place.")


def _filled(file: FileIO, data: np.ndarray) -> np.ndarray:
    """Read the next bytes of the file into an array, all of it."""
    view = data.data
    while view:
        count = file.readinto(view)
        if not count:
            raise Misread(f"is truncated: it became shorter while it was read; {RESAVE}")
        view = view[count:]
    return data
