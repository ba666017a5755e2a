"""Read arrays of .npy and .npz files and blocks of bytes; a damaged file is a ValueError of one line that names it.

Nothing is unpickled: a file can hold numbers and names, never code. A header may claim far more than its file holds, so it is
checked before memory is allocated.
"""

import math
import zlib
from collections.abc import Sequence
from io import BufferedIOBase
from pathlib import Path
from tokenize import TokenError
from zipfile import BadZipFile, ZipFile

import numpy as np
from jaxtyping import Num, Shaped, UInt8

from meristem.check import cut
from meristem.files.named_arrays import is_between

LARGEST = float(np.finfo(np.float32).max)
BLOCK = 2**20  # bytes read at a time
UNPACKED = 1032  # bytes that a compressed byte becomes at most: zlib's limit
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
# What numpy and zipfile raise for damaged bytes; MemoryError: for an absurd shape.
UNREADABLE = (ValueError, EOFError, OSError, OverflowError, RuntimeError, MemoryError, TokenError, BadZipFile, zlib.error)


def read_block(stream: BufferedIOBase, size: int) -> bytes:
    """Return the next `size` bytes of a stream, or as many as there are, without allocating more than that."""
    data = bytearray()
    while len(data) < size and (more := stream.read(min(BLOCK, size - len(data)))):
        data += more
    return bytes(data)


def read_npy(path: Path, advice: str) -> Shaped[np.ndarray, "..."]:
    """Return the array of a .npy file, memory-mapped; `advice` ends the message if it is damaged."""
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except UNREADABLE as error:
        raise ValueError(f"{path} is truncated or not a .npy file of numbers ({_reason(error)}); {advice}") from error


def read_npz(path: Path, keys: Sequence[str]) -> list[Shaped[np.ndarray, "..."]]:
    """Return the arrays of an .npz file under `keys`."""
    expected = f"an .npz file (np.savez) with {', '.join(keys)}"
    if not path.is_file():
        raise ValueError(f"{path} is not there; name {expected}")
    with path.open("rb") as stream:  # np.load does not close a file that it cannot read
        try:
            file = np.load(stream, allow_pickle=False)
        except UNREADABLE as error:
            raise ValueError(f"{path} is truncated or not an .npz file ({_reason(error)}); name {expected}") from error
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise ValueError(f"{path} is a single array, not an .npz file; name {expected}")
        missing = [key for key in keys if key not in file.files]
        if missing:
            content = cut(", ".join(map(repr, file.files)) or "nothing", 80)
            raise ValueError(f"{path} lacks {', '.join(missing)} (it holds {content}); name {expected}")
        arrays, archive = [], file.zip
        assert archive is not None  # it is open
        for key in keys:
            try:
                _check_size(archive, key if key in archive.namelist() else f"{key}.npy")
                arrays.append(file[key])
            except UNREADABLE as error:
                advice = "save it again as a plain array of numbers or names"
                raise ValueError(f"{path}: {key} cannot be read ({_reason(error)}); {advice}") from error
        return arrays


def _check_size(archive: ZipFile, name: str) -> None:
    """Raise ValueError if a member is no array, or if its header claims another size than it has."""
    entry = archive.getinfo(name)
    with archive.open(entry) as stream:
        magic = stream.read(len(np.lib.format.MAGIC_PREFIX) + 2)
        if not magic.startswith(np.lib.format.MAGIC_PREFIX):
            raise ValueError("it is not an array")
        if tuple(magic[-2:]) not in HEADERS:
            raise ValueError(f"an .npy file of the version {magic[-2]}.{magic[-1]}")
        shape, _, dtype = HEADERS[magic[-2], magic[-1]](stream)
        size = entry.file_size - stream.tell()
    is_complete = math.prod(shape) * dtype.itemsize == size and entry.file_size <= UNPACKED * (entry.compress_size + 1)
    if not is_complete and not dtype.hasobject:  # NumPy refuses objects
        raise ValueError(f"its header says {shape} of {dtype}, and it has {size} bytes")


def as_features(source: str, x: Shaped[np.ndarray, "..."]) -> Num[np.ndarray, "n in"]:
    """Return a matrix if it holds finite numbers; `source` names it in errors. A memory map stays one."""
    _check_matrix(source, x, "numbers, samples × features")
    if x.dtype.kind == "f" and not is_between(x, -LARGEST, LARGEST):
        row = (np.abs(x) <= LARGEST).all(1).argmin()
        raise ValueError(f"{source} holds nan, inf or a number beyond float32 in row {row}.")
    return x.view(np.uint8) if x.dtype == bool else x


def as_labels(source: str, y: Shaped[np.ndarray, "..."]) -> UInt8[np.ndarray, "n labels"]:
    """Return a matrix of zeros and ones as bytes; `source` names it in errors."""
    _check_matrix(source, y, "0 and 1, samples × labels")
    other = ~((y == 0) | (y == 1))
    if other.any():
        raise ValueError(f"{source} must hold 0 and 1 alone, not {y[other][0]}.")
    return y.astype(np.uint8)


def _check_matrix(source: str, array: Shaped[np.ndarray, "..."], what: str) -> None:
    if array.ndim != 2 or array.dtype.kind not in "biuf" or array.size == 0:
        raise ValueError(f"{source} must be a matrix of {what}, not {cut(str(array.dtype), 80)} of shape {array.shape}.")


def _reason(error: BaseException) -> str:
    reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
    return "nothing that NumPy wrote" if "unsafely" in str(error) else cut(reason, 60)  # NumPy advises to unpickle
