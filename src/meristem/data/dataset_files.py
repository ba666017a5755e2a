"""The files of a data set: where they are, and the arrays in them; a damaged one is a ValueError of one line that names it.

They are in a folder that is named, in MERISTEM_DATA, in the user's cache, or else on the network. A download must have its
checksum before it is moved into the cache, and whenever it is found there. Several processes may download the same files at
once; what a killed one left is deleted by the next. Only this module imports pooch, and only to download.

Nothing is unpickled: a file can hold numbers and names, never code. A header may claim far more than its file holds, so it is
checked before memory is allocated.
"""

import hashlib
import math
import os
import zlib
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from io import BufferedIOBase
from pathlib import Path
from tokenize import TokenError
from zipfile import BadZipFile, ZipFile

import numpy as np
from jaxtyping import Num, Shaped, UInt8

from meristem.check import cut
from meristem.files.atomic_write import clean_leftovers, replacing
from meristem.files.named_arrays import is_between

LARGEST = float(np.finfo(np.float32).max)
BLOCK = 2**20  # bytes read at a time
UNPACKED = 1032  # bytes that a compressed byte becomes at most: zlib's limit
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
# What numpy and zipfile raise for damaged bytes; MemoryError: for an absurd shape.
UNREADABLE = (ValueError, EOFError, OSError, OverflowError, RuntimeError, MemoryError, TokenError, BadZipFile, zlib.error)


def cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "meristem" / "data"


def places(name: str, folder: Path | None = None) -> tuple[str | None, list[Path]]:
    """Return the option that names the data's folder, and that folder and its subfolder `name`; else None and the cache."""
    for source, place in (("--data", folder), ("MERISTEM_DATA", os.environ.get("MERISTEM_DATA"))):
        if place:
            return f"{source}={str(place)!r}", [Path(place), Path(place) / name]
    return None, [cache_folder() / name]


def find(name: str, files: Mapping[str, str], url: str, folder: Path | None = None) -> Path:
    """Return the folder with all `files` (name → md5) of a data set: one of its places, or the cache after a download.

    Checksums are checked in the cache; in a folder that is named a file may be another one, or unpacked.
    """
    named, (cached, *_) = places(name, folder)
    if named:
        return find_local(name, list(files), ", ".join(files), f"get it from {url}", folder)
    if not all((cached / file).is_file() for file in files):
        return _download(name, files, url, cached)
    for file, md5 in files.items():
        if (actual := _md5(cached / file)) != md5:
            problem = f"has the checksum {actual}, not {md5}: it is damaged or another file"
            raise ValueError(f"{cached / file} {problem}; delete it, it will be fetched again.")
    return cached


def file_in(place: Path, file: str) -> Path:
    """Return the path of a gzipped file, or of its unpacked version if only that exists."""
    packed, unpacked = place / file, place / file.removesuffix(".gz")
    return unpacked if unpacked.is_file() and not packed.is_file() else packed


def find_local(name: str, files: Sequence[str], layout: str, advice: str, folder: Path | None = None) -> Path:
    """Return the folder with all `files` of a data set that has no download; `advice` says where to get it."""
    named, folders = places(name, folder)
    for place in folders:
        lacks = [file for file in files if not file_in(place, file).is_file()]
        if not lacks:
            return place
        if len(lacks) < len(files):
            raise ValueError(f"{f'{named}: ' if named else ''}{place} lacks {', '.join(lacks)}; {advice}")
    missing = f"{named} holds no {name} files ({layout})" if named else f"{name} ({layout}) is not on this machine"
    raise ValueError(f"{missing}: {advice}")


def _md5(path: Path) -> str:
    with path.open("rb") as file:  # in blocks, however large it is
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _download(name: str, files: Mapping[str, str], url: str, cached: Path) -> Path:
    """Download the files that are missing in the cache; other processes may do the same at the same time."""
    by_hand = f"download {', '.join(files)} from {url} into {cached}, or name their folder with --data."
    try:
        import pooch
    except ImportError:
        reason = "pooch, which fetches it, is not installed (pip install 'meristem-nn[data]')"
        raise ValueError(f"{name} is not on this machine, and {reason}: {by_hand}") from None
    fetch = pooch.HTTPDownloader(progressbar=find_spec("tqdm") is not None)
    for file, md5 in files.items():
        try:
            cached.mkdir(parents=True, exist_ok=True)
            clean_leftovers(cached)
            if (cached / file).is_file() and _md5(cached / file) == md5:
                continue
            with replacing(cached / file) as temporary:
                fetch(f"{url}{file}", str(temporary), None)
                if (actual := _md5(temporary)) != md5:
                    raise ValueError(f"what came has the checksum {actual}, not {md5}")
        except (OSError, ValueError) as error:
            reason = cut((str(error).splitlines() or [type(error).__name__])[0], 120)
            raise ValueError(f"{file} could not be downloaded ({reason}): {by_hand}") from error
    return cached


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
