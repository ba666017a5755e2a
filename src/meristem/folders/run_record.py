"""run.json, the record of a run: bounded in length, depth and number of networks, and refused if no run can have written it.

    {"id": "…", "command": "…", "described": {…}, "versions": {…}, "groups": {"tunnel-easy": {"sha256": "…", "seconds": 3.2}},
     "began": {"tunnel-easy": 1.3}, "plan": {"tunnel-easy": 450}, "wrote": {"history.npz": ["…"]}, "over": true,
     "members": {"tunnel-easy": {"0": {"penalty": 0.003, "seed": 0}, …}}, "goes_on_with": "--resume"}

"described": settings, and digests of data and models, all of which must be equal to resume. "groups": those that are finished;
"began": seconds of the others so far. "wrote": the SHA-256 digests that each published file may have. "goes_on_with": the
option that resumes the run; null if nothing of it is saved. For `meristem watch` only: "plan", the expected epochs of each
group, all members together; "members", what distinguishes the networks of a group.

File names stay inside the folder: a record that names `../mine` would have it deleted as a file of the run.
"""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from meristem.folders.plain_files import read_limited

LONGEST = 8 << 20  # bytes
DEEPEST = 32
MOST_NETWORKS = 5000  # that are named or followed, all groups together; and groups
LARGEST = 2**63
DIGEST = re.compile(r"[0-9a-f]{64}")


def read_record(path: Path) -> dict[str, Any] | None:
    """Return the record of a run, None if there is none; ValueError of one line if it is damaged."""
    try:
        data = read_limited(path, LONGEST)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ValueError(f"{str(path)!r} cannot be read ({error.strerror}); choose another folder.") from error
    try:
        record = parse(data)
    except RecursionError as error:
        raise _damaged(path, f"it is nested more than {DEEPEST} deep") from error
    except ValueError as error:
        raise _damaged(path, str(error)) from error
    if not isinstance(record, dict):
        raise _damaged(path, "it is no JSON object")
    for name in ("groups", "members", "began", "plan"):
        entries = record.get(name)
        if not isinstance(entries, dict):
            continue
        n_networks = sum(len(entry) for entry in entries.values() if isinstance(entry, dict)) if name == "members" else 0
        if max(len(entries), n_networks) > MOST_NETWORKS:
            raise _damaged(path, f"its {name!r} has more than {MOST_NETWORKS:,} entries")
    return record


def check_record(path: Path, record: dict[str, Any]) -> None:
    """Raise ValueError of one line unless a run can resume from this record.

    >>> record = {"id": "a1", "command": "meristem", "described": {}, "groups": {}, "began": {}}
    >>> check_record(Path("run.json"), record | {"wrote": {"../mine": []}})
    Traceback (most recent call last):
    ValueError: 'run.json' holds no run: its entry 'wrote' is wrong; delete its folder and begin again.
    """
    for name, fits in ENTRIES.items():
        if (name in record or name in NEEDED) and not fits(record.get(name)):
            raise _damaged(path, f"its entry {name!r} is wrong")


def difference(before: Any, now: Any, place: str = "") -> str | None:
    """Return the first entry in which two descriptions differ, in words, or None.

    >>> difference({"settings": {"seeds": 3}}, {"settings": {"seeds": 2}})
    'settings.seeds was 3 and is 2'
    """
    if isinstance(before, dict) and isinstance(now, dict):
        names = before | now
        parts = (difference(before.get(name), now.get(name), f"{place}.{name}" if place else name) for name in names)
        return next((words for words in parts if words), None)
    if before == now:
        return None
    texts = ["not there" if value is None else json.dumps(value) for value in (before, now)]
    was, is_now = (text if len(text) <= 60 else f"{text[:60]} …" for text in texts)
    return f"{place} was {was} and is {is_now}"


def parse(data: bytes) -> Any:
    """Return the value of a JSON text; ValueError or RecursionError if it is none, or holds what a run never writes.

    >>> parse(b'{"loss": [0.5, 3]}')
    {'loss': [0.5, 3]}
    >>> parse(b'[NaN]')
    Traceback (most recent call last):
    ValueError: it holds NaN
    """
    value = json.loads(data, parse_constant=_constant, parse_int=_integer, parse_float=_float)
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(DEEPEST):
        inside = [entry for node in level for entry in (node.values() if isinstance(node, dict) else node)]
        level = [entry for entry in inside if isinstance(entry, dict | list)]
    if level:
        raise ValueError(f"it is nested more than {DEEPEST} deep")
    return value


def storable(value: Any) -> Any:
    """Return a value with the numbers that `parse` refuses as texts.

    >>> storable({"rates": (0.1, float("inf")), "seed": 10**30})
    {'rates': [0.1, 'inf'], 'seed': '1000000000000000000000000000000'}
    """
    if isinstance(value, dict):
        return {str(name): storable(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [storable(entry) for entry in value]
    is_beyond = (isinstance(value, float) and not math.isfinite(value)) or (type(value) is int and abs(value) >= LARGEST)
    return str(value) if is_beyond else value


def is_inside(name: Any) -> bool:
    """Return whether a name is that of a file inside a folder.

    >>> is_inside("networks/tunnel.safetensors"), is_inside("../mine"), is_inside("/etc/passwd")
    (True, False, False)
    """
    if not isinstance(name, str) or not 0 < len(name) <= 500 or "\0" in name or "\\" in name:
        return False
    return not PurePosixPath(name).is_absolute() and not PureWindowsPath(name).drive and ".." not in PurePosixPath(name).parts


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _is_file_name(name: Any) -> bool:
    return is_inside(name) and "/" not in name


def _is_group(value: Any) -> bool:
    has_digest = isinstance(value, dict) and isinstance(value.get("sha256"), str) and DIGEST.fullmatch(value["sha256"])
    return bool(has_digest) and _is_number(value.get("seconds", 0))


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _named(is_name: Callable[[Any], bool], fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Return a check for an object of such names and values."""
    return lambda value: isinstance(value, dict) and all(is_name(name) and fits(entry) for name, entry in value.items())


NEEDED = ["id", "command", "described", "groups", "began"]
ENTRIES: dict[str, Callable[[Any], bool]] = {
    "id": lambda value: _is_text(value) and 0 < len(value) <= 100,
    "command": _is_text,
    "described": lambda value: isinstance(value, dict),
    "versions": _named(_is_text, _is_text),
    "groups": _named(_is_file_name, _is_group),
    "began": _named(_is_file_name, _is_number),
    "plan": _named(_is_text, _is_number),
    "wrote": _named(is_inside, _are_texts),
    "members": _named(_is_text, lambda value: isinstance(value, dict)),
    "over": lambda value: isinstance(value, bool),
    "goes_on_with": lambda value: value is None or _is_text(value),
}


def _damaged(path: Path, what: str) -> ValueError:
    return ValueError(f"{str(path)!r} holds no run: {what.splitlines()[0][:100]}; delete its folder and begin again.")


def _constant(text: str) -> Any:
    raise ValueError(f"it holds {text}")


def _integer(text: str) -> int:
    if len(text) > 20 or abs(int(text)) >= LARGEST:
        raise ValueError(f"it holds an integer of {len(text):,} digits")
    return int(text)


def _float(text: str) -> float:
    if len(text) > 400 or not math.isfinite(value := float(text)):
        raise ValueError("it holds a number that is too large")
    return value
