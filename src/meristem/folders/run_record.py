"""What is trusted in the folder of a run: plain files, two records, run.json and summary.json, and the files that they name.

    run.json        {"id": "…", "command": "…", "described": {…}, "versions": {…}, "goes_on_with": "--resume", "over": true,
                     "groups": {"tunnel-easy": {"sha256": "…", "seconds": 3.2}}, "began": {"tunnel-easy": 1.3},
                     "plan": {"tunnel-easy": 450}, "members": {"tunnel-easy": {"0": {"penalty": 0.003, "seed": 0}, …}},
                     "wrote": {"history.npz": ["…"]}}
    summary.json    {"run": the id, "files": {"history.npz": "…"}, "digest": "…", …}

Links, pipes and devices are refused, nothing blocks, and nothing is read without a limit. "described": settings, and digests of
data and models, all of which must be equal to resume. "groups": those that are finished; "began": seconds of the others so far.
"goes_on_with": the option that resumes the run; null if nothing of it is saved. For `meristem watch` only: "plan", the expected
epochs of each group, all members together; "members", what distinguishes the networks of a group. "files" and "digest": the
SHA-256 of each other file, and of the summary itself.

A file is a run's own if a summary or "wrote" names its digest; run.json names it before the file is written, so that what a
killed run left is recognized. Any other file is neither overwritten nor deleted. File names stay inside the folder: a record
that names `../mine` would have it deleted.
"""

import hashlib
import json
import math
import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from io import BufferedReader
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from meristem.check import cut
from meristem.files.atomic_write import naming_path
from meristem.json_schema import ANY, FLAG, NUMBER, OBJECT, SHA256, TEXT, Rule, check_json

FLAGS = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
FILE, FOLDER = "-", "d"  # as `ls -l` shows them
KINDS = {"l": "a link", "p": "a pipe", "s": "a socket", "c": "a device", "b": "a device", "d": "a folder", "-": "a plain file"}
SUMMARY, OWN, RUN = "summary.json", ".meristem-run", "run.json"
LONGEST, LONGEST_SUMMARY, LARGEST = 8 << 20, 16 << 20, 4 << 30  # bytes of run.json, of summary.json, and of any file
DEEPEST = 32
NESTED = f"it is nested more than {DEEPEST} deep"
MOST_NETWORKS = 5000  # that are named or followed, all groups together; and groups
Digests = dict[str, list[str]]  # by file name: the digests of contents that it may have


def check_kind(path: Path, expected: str = FILE, most: float = math.inf) -> None:
    """Raise ValueError of one line if the path exists and is not a plain file, or a FOLDER, or longer than `most` bytes."""
    try:
        status = os.lstat(path)
    except OSError:  # it does not exist, or opening it says why it cannot be read
        return
    kind, advice = stat.filemode(status.st_mode)[0], "delete it, or choose another folder"
    if kind != expected:
        raise ValueError(f"{str(path)!r} is {KINDS.get(kind, 'something else')}, not {KINDS[expected]}; {advice}.")
    if status.st_size > most:
        raise ValueError(f"{str(path)!r} has {status.st_size:,} bytes, and at most {most:,} are read; {advice}.")


def open_plain(path: Path, most: float = math.inf) -> BufferedReader:
    """Open a plain file of at most `most` bytes for reading; ValueError if it is not one, OSError if it cannot be read."""
    check_kind(path, most=most)
    file = open(path, "rb", opener=plain_opener)  # noqa: SIM115  (the caller closes it)
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # it has just been replaced
        file.close()
        raise ValueError(f"{str(path)!r} is not a plain file; delete it, or choose another folder.")
    return file


def plain_opener(path: str | Path, flags: int) -> int:
    """Open a file without following links and without waiting; an `opener` for `open`."""
    return os.open(path, flags | FLAGS, 0o666)


def read_record(path: Path, schema: Any = OBJECT) -> dict[str, Any] | None:
    """Return the record of a run, None if there is none; ValueError of one line if it is damaged or misfits the schema."""
    try:
        with open_plain(path, LONGEST) as file:
            data = file.read(LONGEST)  # no more, should it grow meanwhile
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ValueError(f"{str(path)!r} cannot be read ({error.strerror}); choose another folder.") from error
    try:
        record = parse(data)
        check_json(record, OBJECT)
        for name in ("groups", "members", "began", "plan"):
            entries = record[name] if isinstance(record.get(name), dict) else {}
            n_networks = sum(len(entry) for entry in entries.values() if isinstance(entry, dict)) if name == "members" else 0
            if max(len(entries), n_networks) > MOST_NETWORKS:
                raise ValueError(f"its {name!r} has more than {MOST_NETWORKS:,} entries")
        check_json(record, schema)
    except (ValueError, RecursionError) as error:
        problem = NESTED if isinstance(error, RecursionError) else cut(str(error).splitlines()[0].removesuffix("."), 100)
        raise ValueError(f"{str(path)!r} holds no run: {problem}; delete its folder and start again.") from error
    return record


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a file, empty if there is none that a run can have written."""
    with suppress(OSError, ValueError, RecursionError), open_plain(path, LONGEST_SUMMARY) as file:
        content = parse(file.read(LONGEST_SUMMARY))
        return content if isinstance(content, dict) else {}
    return {}


def parse(data: bytes) -> Any:
    """Return the value of a JSON text; ValueError or RecursionError if it is none, or holds what a run never writes."""
    value = json.loads(data)
    level = [value]
    for _ in range(DEEPEST + 1):
        if beyond := list(filter(_is_beyond, level)):
            raise ValueError(f"it holds {cut(json.dumps(beyond[0]), 40)}")
        containers = [node for node in level if isinstance(node, dict | list)]
        level = [entry for node in containers for entry in (node.values() if isinstance(node, dict) else node)]
    if level:
        raise ValueError(NESTED)
    return value


def storable(value: Any) -> Any:
    """Return a value with the numbers that `parse` refuses as texts."""
    if isinstance(value, dict):
        return {str(name): storable(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [storable(entry) for entry in value]
    return str(value) if _is_beyond(value) else value


def _is_beyond(value: Any) -> bool:
    return not math.isfinite(value) if isinstance(value, float) else type(value) is int and abs(value) >= 2**63


def is_inside(name: Any) -> bool:
    """Return whether a name is that of a file inside a folder."""
    if not isinstance(name, str) or not 0 < len(name) <= 500 or "\0" in name or "\\" in name:
        return False
    return not PurePosixPath(name).is_absolute() and not PureWindowsPath(name).drive and ".." not in PurePosixPath(name).parts


ID = Rule("a text of 1 to 100 characters", lambda value: isinstance(value, str) and 0 < len(value) <= 100)
FILE_NAME = Rule("the name of a file", lambda value: is_inside(value) and "/" not in value)
INSIDE = Rule("a path inside the folder", is_inside)
SECONDS = Rule("a number of at least 0", lambda value: NUMBER.fits(value) and value >= 0)
RECORD: dict[Any, Any] = {
    **{"id": ID, "command": TEXT, "described": OBJECT, "versions?": {TEXT: TEXT}, "over?": FLAG, "goes_on_with?": (None, TEXT)},
    "groups": {FILE_NAME: {"sha256": SHA256, "seconds?": SECONDS, TEXT: ANY}},
    **{"began": {FILE_NAME: SECONDS}, "plan?": {TEXT: SECONDS}, "wrote?": {INSIDE: [TEXT]}, "members?": {TEXT: OBJECT}},
    TEXT: ANY,
}


def sha256(path: Path) -> str:
    """Return the digest of a file; ValueError if it cannot be read or is longer than any that a run writes."""
    with naming_path(path, "cannot be read"), open_plain(Path(os.path.realpath(path)), LARGEST) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def self_digest(summary: Mapping[str, Any]) -> str:
    rest = {name: value for name, value in summary.items() if name != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def summary_bytes(summary: Mapping[str, Any], run: str, files: Mapping[str, str]) -> bytes:
    content = {**{k: v for k, v in summary.items() if k != "digest"}, "run": run, "files": dict(sorted(files.items()))}
    digest = self_digest(json.loads(json.dumps(content, allow_nan=False)))
    return json.dumps({**content, "digest": digest}, indent=1).encode() + b"\n"


def is_finished(out: Path, run: str) -> bool:
    """Return whether this run's summary exists and every file it names has its digest."""
    summary = read_json(out / SUMMARY)
    if summary.get("run") != run or summary.get("digest") != self_digest(summary):
        return False
    files = _files(summary).items()
    return all(is_inside(name) and (out / name).is_file() and sha256(out / name) == digest for name, digest in files)


def own_digests(out: Path, wrote: Digests) -> Digests:
    """Return the digests that the folder's summary names, and run.json ("wrote")."""
    summary = read_json(out / SUMMARY)
    named = {name: [digest] for name, digest in _files(summary).items() if is_inside(name)}
    if summary.get("digest") == self_digest(summary):
        named[SUMMARY] = [sha256(out / SUMMARY)]
    return {name: [*named.get(name, []), *wrote.get(name, [])] for name in named | wrote}


def _files(summary: Mapping[str, Any]) -> dict[str, Any]:
    return summary["files"] if isinstance(summary.get("files"), dict) else {}


def is_own(out: Path, name: str, digests: Digests) -> bool:
    path = out / name
    return name in digests and not path.is_symlink() and path.is_file() and sha256(path) in digests[name]


def check_own(out: Path, names: Iterable[str], digests: Digests) -> None:
    """Raise ValueError if one of these files exists and was not written by a run."""
    for name in names:
        if os.path.lexists(out / name) and not is_own(out, name, digests):
            advice = "move it away, or choose another folder"
            raise ValueError(f"{str(out / name)!r} is not a file that a run of meristem's left there so; {advice}.")
