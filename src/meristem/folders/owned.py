"""Which files of a folder are ours, and the one switch that makes a run a finished one: `summary.json`, written last.

    summary["run"], ["files"], ["digest"]       its id, the SHA-256 of each other file by its name, and of the summary itself

A file is ours if its content is one that a summary or the ledger of a run (`run.json`, "wrote") names; the ledger names a file
before it is written, so that a run that is killed between two of them is recognized. What is not ours is neither overwritten
nor deleted. Imports files; folder.py and pictures import it.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from meristem.files.whole import write_whole
from meristem.folders.plain import check_length, open_plain, read_limited
from meristem.folders.record import is_inside, parse

SUMMARY, OWN, RUN = "summary.json", ".meristem-run", "run.json"
LONGEST, LARGEST = 16 << 20, 4 << 30  # bytes of a file of JSON, and of any
Digests = dict[str, list[str]]  # of a file's name: contents that it may have


def sha256(path: Path) -> str:
    """Of a file's content; ValueError where it cannot be read, or is longer than any that a run writes."""
    place = Path(os.path.realpath(path))
    check_length(place, LARGEST)
    try:
        with open_plain(place) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ValueError(f"{str(path)!r} cannot be read ({error.strerror}).") from error


def read_json(path: Path) -> dict[str, Any] | None:
    """An object, or None where there is none, or none that a run wrote."""
    try:
        content = parse(read_limited(path, LONGEST))
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def ledger(out: Path) -> Digests:
    """What the folder's summary and its run.json name inside the folder.

    >>> ledger(Path("nowhere"))
    {}
    """
    summary, run = read_json(out / SUMMARY) or {}, read_json(out / OWN / RUN) or {}
    named = {name: [digest] for name, digest in _plain(summary.get("files")).items()}
    if "digest" in summary and summary["digest"] == self_digest(summary):
        named[SUMMARY] = [sha256(out / SUMMARY)]
    for name, digests in _plain(run.get("wrote")).items():
        named[name] = [*named.get(name, []), *(digests if isinstance(digests, list) else [])]
    return {name: digests for name, digests in named.items() if is_inside(name)}


def is_ours(out: Path, name: str, known: Digests) -> bool:
    """Whether a file that is there is one that we wrote."""
    path = out / name
    return name in known and not path.is_symlink() and path.is_file() and sha256(path) in known[name]


def check_ours(out: Path, names: Iterable[str], known: Digests) -> None:
    """Raise ValueError where one of these files is there and not ours."""
    for name in names:
        path = out / name
        if (path.exists() or path.is_symlink()) and not is_ours(out, name, known):
            raise ValueError(
                f"{str(path)!r} is not a file that a run of meristem's left there so; move it away, or choose another folder."
            )


def self_digest(summary: Mapping[str, Any]) -> str:
    """Of a summary without its digest."""
    rest = {name: value for name, value in summary.items() if name != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def write_summary(out: Path, summary: Mapping[str, Any], run: str, files: Mapping[str, str]) -> None:
    """The switch: summary.json, with the digests of the other files."""
    write_whole(out / SUMMARY, summary_bytes(summary, run, files))


def summary_bytes(summary: Mapping[str, Any], run: str, files: Mapping[str, str]) -> bytes:
    """The summary as it is written."""
    bound = {**{k: v for k, v in summary.items() if k != "digest"}, "run": run, "files": dict(sorted(files.items()))}
    return (
        json.dumps({**bound, "digest": self_digest(json.loads(json.dumps(bound, allow_nan=False)))}, indent=1).encode() + b"\n"
    )


def is_finished(out: Path, run: str) -> bool:
    """Whether this run's summary is there, and all that it names is as it was written."""
    summary = read_json(out / SUMMARY) or {}
    return (
        summary.get("run") == run
        and summary.get("digest") == self_digest(summary)
        and all(_is_as(out, name, digest) for name, digest in _plain(summary.get("files")).items())
    )


def _is_as(out: Path, name: str, digest: Any) -> bool:
    """Whether a file inside the folder is as it was written."""
    return is_inside(name) and (out / name).is_file() and sha256(out / name) == digest


def _plain(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
