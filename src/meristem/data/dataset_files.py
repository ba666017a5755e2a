"""Where a data set's files are: in a folder that is named, in MERISTEM_DATA, in the user's cache, or else on the network.

A download must have its checksum before it is moved into the cache, and whenever it is found there. Several processes may
download the same files at once; what a killed one left is deleted by the next. A folder that is named may hold other files of
the same names. Only this module imports pooch, and only to download.
"""

import hashlib
import os
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from meristem.check import cut
from meristem.files.atomic_write import clean_leftovers, replacing


def cache_folder() -> Path:
    """Return the user's cache folder for data."""
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
