"""Which files of a folder a run wrote; `summary.json` is written last and makes the run finished.

    summary["run"], ["files"], ["digest"]       its id, the SHA-256 of each other file by name, and of the summary itself

A file is a run's own if a summary or run.json ("wrote") names its digest; run.json names it before the file is written, so that
what a killed run left is recognized. Any other file is neither overwritten nor deleted.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from meristem.folders.plain_files import check_kind, open_plain, read_limited
from meristem.folders.run_record import is_inside, parse

SUMMARY, OWN, RUN = "summary.json", ".meristem-run", "run.json"
LONGEST, LARGEST = 16 << 20, 4 << 30  # bytes of a JSON file, and of any file
Digests = dict[str, list[str]]  # by file name: the digests of contents that it may have


def sha256(path: Path) -> str:
    """Return the digest of a file; ValueError if it cannot be read or is longer than any that a run writes."""
    place = Path(os.path.realpath(path))
    check_kind(place, most=LARGEST)
    try:
        with open_plain(place) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ValueError(f"{str(path)!r} cannot be read ({error.strerror}).") from error


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the object in a file, or None if there is none that a run can have written."""
    try:
        content = parse(read_limited(path, LONGEST))
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def own_digests(out: Path, wrote: Digests) -> Digests:
    """Return the digests that the folder's summary names, and run.json ("wrote")."""
    summary = read_json(out / SUMMARY) or {}
    named = {name: [digest] for name, digest in _files(summary).items() if is_inside(name)}
    if summary.get("digest") == self_digest(summary):
        named[SUMMARY] = [sha256(out / SUMMARY)]
    return {name: [*named.get(name, []), *wrote.get(name, [])] for name in named | wrote}


def is_own(out: Path, name: str, digests: Digests) -> bool:
    """Return whether a file exists and has one of these digests."""
    path = out / name
    return name in digests and not path.is_symlink() and path.is_file() and sha256(path) in digests[name]


def check_own(out: Path, names: Iterable[str], digests: Digests) -> None:
    """Raise ValueError if one of these files exists and was not written by a run."""
    for name in names:
        path = out / name
        if (path.exists() or path.is_symlink()) and not is_own(out, name, digests):
            advice = "move it away, or choose another folder"
            raise ValueError(f"{str(path)!r} is not a file that a run of meristem's left there so; {advice}.")


def self_digest(summary: Mapping[str, Any]) -> str:
    """Return the digest of a summary without its digest."""
    rest = {name: value for name, value in summary.items() if name != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def summary_bytes(summary: Mapping[str, Any], run: str, files: Mapping[str, str]) -> bytes:
    """Return the content of summary.json."""
    content = {**{k: v for k, v in summary.items() if k != "digest"}, "run": run, "files": dict(sorted(files.items()))}
    digest = self_digest(json.loads(json.dumps(content, allow_nan=False)))
    return json.dumps({**content, "digest": digest}, indent=1).encode() + b"\n"


def is_finished(out: Path, run: str) -> bool:
    """Return whether this run's summary exists and every file it names has its digest."""
    summary = read_json(out / SUMMARY) or {}
    if summary.get("run") != run or summary.get("digest") != self_digest(summary):
        return False
    files = _files(summary).items()
    return all(is_inside(name) and (out / name).is_file() and sha256(out / name) == digest for name, digest in files)


def _files(summary: Mapping[str, Any]) -> dict[str, Any]:
    return summary["files"] if isinstance(summary.get("files"), dict) else {}
