"""The bytes of a safetensors file, read once: first its header, and the rest only where the header fits the file's length.

    8 bytes, little-endian: the header's length │ the header, JSON │ the arrays, one after the other, without a gap

    with opened(path) as (file, length):
        metadata, places = header_of(file, length)      nothing of the arrays is read yet
        arrays = arrays_of(file, places, types)         each into memory of its own, aligned as JAX likes it

The header says where each array is; all of it is checked against the length before anything is allocated. Whatever is wrong is
a `Misread` in a few words. Imports NumPy alone.
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

from meristem.files.whole import PATHS

LONGEST_HEADER = 100_000_000  # bytes, as safetensors has it
MOST_AXES = 32
BLOCK = 1 << 18  # bytes that are compared at a time: as many as a cache holds
ALIGNMENT = 64  # bytes: where an array begins so, JAX takes it over on a CPU without a copy
ERRORS = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError)


class Misread(Exception):
    """What is wrong with a file, in a few words that follow its name."""


class Place(NamedTuple):
    """Where an array is, and what."""

    name: str
    code: str  # safetensors' name of its type
    shape: tuple[int, ...]
    begin: int
    end: int


@contextlib.contextmanager
def opened(path: PATHS) -> Iterator[tuple[FileIO, int]]:
    """A plain file and its length; it is opened once, and nothing that is not one is waited for."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        number = os.open(path, flags)
    except FileNotFoundError:
        raise Misread("does not exist; check the path.") from None
    except (OSError, ValueError) as error:  # a name with a zero in it
        raise Misread(f"cannot be read ({getattr(error, 'strerror', None) or error}).") from error
    try:
        found = os.fstat(number)
        if not stat.S_ISREG(found.st_mode):
            what = "a folder" if stat.S_ISDIR(found.st_mode) else "no plain file"
            raise Misread(f"is {what}; give the file itself.")
        with os.fdopen(number, "rb", buffering=0, closefd=False) as file:
            yield file, found.st_size
    except OSError as error:
        raise Misread(f"cannot be read ({error.strerror}).") from error
    finally:
        os.close(number)


def header_of(file: FileIO, length: int) -> tuple[Any, list[Place]]:
    """The header's metadata, and where the arrays are, in the order of their names."""
    start = _exactly(file, min(length, 9))
    if start[8:9] not in (b"", b"{"):
        raise Misread("is not a safetensors file; give one that meristem saved.")
    if length < 9:
        raise Misread(f"is truncated, or no model at all: it holds {length} bytes; give one that meristem saved.")
    size = int.from_bytes(start[:8], "little")
    truncated = Misread(f"is truncated: it ends after {length} bytes; use a copy, or save it again.")
    if length < 8 + size:
        raise truncated
    if size > LONGEST_HEADER:
        raise Misread("is damaged: its header is too long; use a copy, or save it again.")
    try:
        table = json.loads((b"{" + _exactly(file, size - 1)).decode())
        metadata = table.pop("__metadata__", {})
        places = [_place(name, entry) for name, entry in sorted(table.items())]
        if not isinstance(metadata, dict):
            raise TypeError(metadata)
    except ERRORS as error:
        raise Misread("is damaged: its header cannot be read; use a copy, or save it again.") from error
    end = 0
    for place in sorted(places, key=lambda place: (place.begin, place.end)):
        if place.begin != end:
            raise Misread(f"is damaged: its array {place.name[:40]!r} is not where it should be; use a copy, or save it again.")
        end = place.end
    if 8 + size + end > length:
        raise truncated
    if 8 + size + end < length:
        raise Misread(f"is damaged: it goes on after its last array, for {length - 8 - size - end} bytes; use a copy.")
    return metadata, places


def arrays_of(file: FileIO, places: list[Place], types: Mapping[str, np.dtype]) -> dict[str, np.ndarray]:
    """The arrays by name, in the order of the names; little-endian."""
    for place in places:
        if place.code not in types:
            known = ", ".join(types)
            raise Misread(f"is of another time: array {place.name[:40]!r} has the type {place.code[:20]}, none of {known}.")
        if math.prod(place.shape) * types[place.code].itemsize != place.end - place.begin:
            raise Misread(f"is damaged: its array {place.name[:40]!r} has another size; use a copy, or save it again.")
    arrays = {}
    for place in sorted(places, key=lambda place: place.begin):
        try:
            data = _aligned(place.end - place.begin)
            array = data.view(types[place.code].newbyteorder("<")).reshape(place.shape)
        except (MemoryError, ValueError) as error:
            raise Misread(f"has an array {place.name[:40]!r} for which there is no memory: {place.shape}.") from error
        _read_into(file, data.data)
        arrays[place.name] = array
    return {place.name: arrays[place.name] for place in places}


def check_same(file: FileIO, data: bytes) -> None:
    """Raise unless the whole file holds these bytes; a block at a time, so that it takes no memory to speak of."""
    file.seek(0)
    done = 0
    while part := file.read(BLOCK):
        if part != data[done : done + len(part)]:
            break
        done += len(part)
    if done != len(data):
        raise Misread(f"was not written as it is: the disk holds something else after {done} bytes; choose another place.")


def _aligned(size: int) -> np.ndarray:
    """Bytes that begin where JAX can use them in place."""
    room = np.empty(size + ALIGNMENT, np.uint8)
    begin = -room.ctypes.data % ALIGNMENT
    return room[begin : begin + size]


def _read_into(file: FileIO, view: memoryview) -> None:
    while view:
        count = file.readinto(view)
        if not count:
            raise Misread("is truncated: it became shorter while it was read; use a copy, or save it again.")
        view = view[count:]


def _exactly(file: FileIO, size: int) -> bytes:
    data = bytearray(size)
    _read_into(file, memoryview(data))
    return bytes(data)


def _place(name: str, entry: dict[str, Any]) -> Place:
    code, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(code, str) or not isinstance(shape, list) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise TypeError(entry)
    sizes = (*shape, begin, end)
    if not all(type(size) is int and 0 <= size < 2**63 for size in sizes) or begin > end or len(shape) > MOST_AXES:
        raise ValueError(entry)
    return Place(name, code, tuple(shape), begin, end)
