"""Where a data set's files are found: a folder one names, MERISTEM_DATA, the user's cache, or else the network.

    find("mnist", {"train-images-idx3-ubyte.gz": md5, …}, url, folder) → the folder that holds them, checked

A file counts when its checksum is right. What is downloaded is checked before it is put in the cache, whole. Only this file
imports pooch, and only to download.
"""

import hashlib
import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path


def cache_folder() -> Path:
    """The user's cache for data."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "meristem" / "data"


def find(name: str, files: Mapping[str, str], url: str, folder: Path | None = None) -> Path:
    """The folder with all `files` (name → md5) of the data set `name`.

    A folder that is named (`folder`, then MERISTEM_DATA) is looked into, and into its subfolder `name`; a file there with a
    wrong checksum is an error, not a reason to go on. Then the cache; then a download from `url`.
    """
    for source, place in (("--data", folder), ("MERISTEM_DATA", os.environ.get("MERISTEM_DATA"))):
        if place:
            return _named(name, files, url, source, Path(place))
    cached = cache_folder() / name
    if all((cached / file).is_file() for file in files):
        for file, md5 in files.items():
            _check(cached / file, md5, "delete it; it will be fetched again")
        return cached
    return _download(name, files, url, cached)


def _named(name: str, files: Mapping[str, str], url: str, source: str, place: Path) -> Path:
    for candidate in (place, place / name):
        if any((candidate / file).is_file() for file in files):
            missing = [file for file in files if not (candidate / file).is_file()]
            if missing:
                raise ValueError(f"{source}={str(place)!r}: {candidate} lacks {', '.join(missing)}; get it from {url}")
            for file, md5 in files.items():
                _check(candidate / file, md5, f"get it again from {url}")
            return candidate
    raise ValueError(f"{source}={str(place)!r} holds no {name} files ({', '.join(files)}); get them from {url}")


def _check(path: Path, md5: str, advice: str) -> None:
    found = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
    if found != md5:
        raise ValueError(f"{path} has the checksum {found}, not {md5}: it is damaged or another file; {advice}.")


def _download(name: str, files: Mapping[str, str], url: str, cached: Path) -> Path:
    by_hand = f"download {', '.join(files)} from {url} into {cached}, or name their folder with --data."
    try:
        import pooch
    except ImportError:
        lacks = f"{name} is not on this machine, and pooch, which fetches it, is not installed (pip install pooch)"
        raise ValueError(f"{lacks}: {by_hand}") from None
    for file, md5 in files.items():
        try:
            pooch.retrieve(f"{url}{file}", known_hash=f"md5:{md5}", fname=file, path=cached, progressbar=_has_tqdm())
        except (OSError, ValueError) as error:
            reason = str(error).splitlines()[0][:120]
            raise ValueError(f"{file} could not be downloaded ({reason}): {by_hand}") from error
    return cached


def _has_tqdm() -> bool:
    """Whether pooch can show its progress bar."""
    return find_spec("tqdm") is not None
