"""Arrays from .npy and .npz files: what is not what it should be is a ValueError of one line that names the file.

Nothing is unpickled: a file can hold numbers and names, never code.
"""

import math
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from tokenize import TokenError

import numpy as np
from jaxtyping import Num, Shaped, UInt8

from meristem.check import cut
from meristem.data.blocks import UNPACKED

ROWS = 1024
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
# What numpy and zipfile raise for bytes that are not what they should be; an absurd shape asks for absurd memory.
UNREADABLE = (
    ValueError,
    EOFError,
    OSError,
    OverflowError,
    RuntimeError,
    MemoryError,
    TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


def read_npy(path: Path, again: str) -> Shaped[np.ndarray, "..."]:
    """The array of a .npy file, left on the disk until its rows are asked for; `again` says where to get a whole one."""
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except UNREADABLE as error:
        raise ValueError(f"{path} is truncated or not a .npy file of numbers ({_reason(error)}); {again}") from error


def read_npz(path: Path, keys: Sequence[str]) -> list[Shaped[np.ndarray, "..."]]:
    """The arrays of an .npz file under `keys`."""
    wanted = f"an .npz file (np.savez) with {', '.join(keys)}"
    if not path.is_file():
        raise ValueError(f"{path} is not there; name {wanted}")
    # Opened here, for np.load does not close a file that it cannot read.
    with path.open("rb") as stream:
        try:
            file = np.load(stream, allow_pickle=False)
        except UNREADABLE as error:
            raise ValueError(f"{path} is truncated or not an .npz file ({_reason(error)}); name {wanted}") from error
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise ValueError(f"{path} is a single array, not an .npz file; name {wanted}")
        missing = [key for key in keys if key not in file.files]
        if missing:
            held = cut(", ".join(map(repr, file.files)) or "nothing", 80)
            raise ValueError(f"{path} lacks {', '.join(missing)} (it holds {held}); name {wanted}")
        return [_member(path, file, key) for key in keys]


def _member(path: Path, file: np.lib.npyio.NpzFile, key: str) -> Shaped[np.ndarray, "..."]:
    advice = "save it again as a plain array of numbers or names"
    archive = file.zip
    assert archive is not None  # it is open
    try:
        if not _is_array(archive, key if key in archive.namelist() else f"{key}.npy"):
            raise ValueError(f"{path}: {key} is not an array; {advice}")
        return file[key]
    except UNREADABLE as error:
        if f"{path}: {key}" in str(error):
            raise
        raise ValueError(f"{path}: {key} cannot be read ({_reason(error)}); {advice}") from error


def _is_array(archive: zipfile.ZipFile, name: str) -> bool:
    """Whether NumPy wrote it; ValueError where its header says more than it holds, before memory for that is asked for."""
    about = archive.getinfo(name)
    with archive.open(about) as stream:
        magic = stream.read(len(np.lib.format.MAGIC_PREFIX) + 2)
        if not magic.startswith(np.lib.format.MAGIC_PREFIX):
            return False
        if tuple(magic[-2:]) not in HEADERS:
            raise ValueError(f"an .npy file of the version {magic[-2]}.{magic[-1]}")
        shape, _, dtype = HEADERS[magic[-2], magic[-1]](stream)
        there = about.file_size - stream.tell()
    is_whole = math.prod(shape) * dtype.itemsize == there and about.file_size <= UNPACKED * (about.compress_size + 1)
    if not is_whole and not dtype.hasobject:  # NumPy refuses those
        raise ValueError(f"its header says {shape} of {dtype}, and it has {there} bytes")
    return True


def as_features(source: str, x: Shaped[np.ndarray, "..."]) -> Num[np.ndarray, "n in"]:
    """A matrix of finite numbers; `source` names it in errors. An array on the disk stays there."""
    if x.ndim != 2 or x.dtype.kind not in "biuf" or x.size == 0:
        raise ValueError(
            f"{source} must be a matrix of numbers, samples × features, not {cut(str(x.dtype), 80)} of shape {x.shape}."
        )
    if x.dtype.kind == "f":
        for start in range(0, len(x), ROWS):
            with np.errstate(over="ignore"):
                finite = np.isfinite(x[start : start + ROWS].astype(np.float32, copy=False)).all(1)
            if not finite.all():
                raise ValueError(f"{source} holds nan, inf or a number beyond float32 in row {start + finite.argmin()}.")
    return x.view(np.uint8) if x.dtype == bool else x


def as_labels(source: str, y: Shaped[np.ndarray, "..."]) -> UInt8[np.ndarray, "n labels"]:
    """A matrix of zeros and ones, as bytes; `source` names it in errors."""
    if y.ndim != 2 or y.dtype.kind not in "biuf" or y.size == 0:
        raise ValueError(
            f"{source} must be a matrix of 0 and 1, samples × labels, not {cut(str(y.dtype), 80)} of shape {y.shape}."
        )
    other = ~((y == 0) | (y == 1))
    if other.any():
        raise ValueError(f"{source} must hold 0 and 1 alone, not {y[other][0]}.")
    return y.astype(np.uint8)


def _reason(error: BaseException) -> str:
    reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
    return "nothing that NumPy wrote" if "unsafely" in str(error) else cut(reason, 60)  # that advice is none of ours
