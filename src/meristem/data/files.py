"""Where a data set's files are found: a folder one names, MERISTEM_DATA, the user's cache, or else the network.

    find("mnist", {"train-images-idx3-ubyte.gz": md5, …}, url, folder) → the folder that holds them
    find_local("mirflickr", ["labels.npy", …], …)                     → the same without a download
    file_in(folder, "train-images-idx3-ubyte.gz")                     → the file itself, or unpacked beside it

What is downloaded must have its checksum, before it is put in the cache, whole, and whenever it is found there. Several
processes may download the same at once; what a killed one left is taken away by the next. A folder that is named may hold other
files of the same names. Only this file imports pooch, and only to download.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from meristem.check import cut
from meristem.files.whole import clean_leftovers, leftover


def cache_folder() -> Path:
    """The user's cache for data."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "meristem" / "data"


def places(name: str, folder: Path | None = None) -> tuple[str | None, list[Path]]:
    """Where the data set `name` is looked for, and who named it: `folder`, else MERISTEM_DATA, else nobody and the cache.

    A folder that is named is looked into, and into its subfolder `name`; it is meant, so there is no going on from it.
    """
    for source, place in (("--data", folder), ("MERISTEM_DATA", os.environ.get("MERISTEM_DATA"))):
        if place:
            return f"{source}={str(place)!r}", [Path(place), Path(place) / name]
    return None, [cache_folder() / name]


def find(name: str, files: Mapping[str, str], url: str, folder: Path | None = None) -> Path:
    """The folder with all `files` (name → md5) of the data set `name`: one of its places, or else the cache after a download.

    In the cache a file with a wrong checksum is an error; in a folder that is named a file may be another one, or unpacked.
    """
    named, folders = places(name, folder)
    if not named:
        (cached,) = folders
        if not all((cached / file).is_file() for file in files):
            return _download(name, files, url, cached)
        for file, md5 in files.items():
            _check(cached / file, md5)
        return cached
    place = _holder(f"{named} holds no {name} files ({', '.join(files)}); get them from {url}", folders, files)
    _check_all_there(place, files, named, f"get it from {url}")
    return place


def file_in(place: Path, file: str) -> Path:
    """The file, or what it was before it was gzipped if only that is there."""
    packed, unpacked = place / file, place / file.removesuffix(".gz")
    return unpacked if unpacked.is_file() and not packed.is_file() else packed


def find_local(name: str, files: Sequence[str], layout: str, advice: str, folder: Path | None = None) -> Path:
    """The folder with all `files` of the data set `name`, which has no download: `advice` says where to get and to put it."""
    named, folders = places(name, folder)
    lacks = f"{named} holds no {name} files ({layout})" if named else f"{name} ({layout}) is not on this machine"
    place = _holder(f"{lacks}: {advice}", folders, files)
    _check_all_there(place, files, named, advice)
    return place


def _holder(otherwise: str, folders: Sequence[Path], files: Iterable[str]) -> Path:
    """The first folder that holds some of the files."""
    for place in folders:
        if any(file_in(place, file).is_file() for file in files):
            return place
    raise ValueError(otherwise)


def _check_all_there(place: Path, files: Iterable[str], named: str | None, advice: str) -> None:
    missing = [file for file in files if not file_in(place, file).is_file()]
    if missing:
        raise ValueError(f"{f'{named}: ' if named else ''}{place} lacks {', '.join(missing)}; {advice}")


def _check(path: Path, md5: str) -> None:
    if (found := _md5(path)) != md5:
        raise ValueError(
            f"{path} has the checksum {found}, not {md5}: it is damaged or another file; delete it, it will be fetched again."
        )


def _md5(path: Path) -> str:
    with path.open("rb") as file:  # in blocks, however large it is
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _download(name: str, files: Mapping[str, str], url: str, cached: Path) -> Path:
    """All files that are not there; what killed downloads left is taken away, and others that download at the same time may."""
    by_hand = f"download {', '.join(files)} from {url} into {cached}, or name their folder with --data."
    try:
        import pooch
    except ImportError:
        lacks = (
            f"{name} is not on this machine, and pooch, which fetches it, is not installed (pip install 'meristem-nn[data]')"
        )
        raise ValueError(f"{lacks}: {by_hand}") from None
    fetch = pooch.HTTPDownloader(progressbar=_has_tqdm())
    for file, md5 in files.items():
        try:
            cached.mkdir(parents=True, exist_ok=True)
            clean_leftovers(cached)
            if not (cached / file).is_file() or _md5(cached / file) != md5:
                _fetch(fetch, f"{url}{file}", cached / file, md5)
        except (OSError, ValueError) as error:
            reason = cut((str(error).splitlines() or [type(error).__name__])[0], 120)
            raise ValueError(f"{file} could not be downloaded ({reason}): {by_hand}") from error
    return cached


def _fetch(fetch: Callable[..., object], url: str, place: Path, md5: str) -> None:
    """A file is fetched beside its place, and moved there when it has its checksum."""
    beside = leftover(place.parent)
    try:
        fetch(url, str(beside), None)
        if (found := _md5(beside)) != md5:
            raise ValueError(f"what came has the checksum {found}, not {md5}")
        os.replace(beside, place)
    finally:
        beside.unlink(missing_ok=True)


def _has_tqdm() -> bool:
    """Whether pooch can show its progress bar."""
    return find_spec("tqdm") is not None
