"""run.json as it is read: of a bounded length, depth and number of networks, and refused where no run can have written it.

    read_record(path) → dict, or None where there is none           ValueError of one line where it is damaged
    check_record(path, record)                                      ValueError where a run cannot go on from it
    parse(data) → what JSON holds: no NaN, no infinity, no integer beyond 64 bits, not too deep
    storable(value) → the same with such numbers as texts, as it is written

Names of files stay inside the folder: a record that names `../mine` would have it deleted as a run's own.
Imports plain; owned.py, folder.py and watch/ import it.
"""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from meristem.folders.plain import read_limited

LONGEST = 8 << 20  # bytes
DEEPEST = 32
MOST_NETWORKS = 5000  # that are named or followed, all groups together; and groups
LARGEST = 2**63
DIGEST = re.compile(r"[0-9a-f]{64}")


def read_record(path: Path) -> dict[str, Any] | None:
    """Return the record of a run; None where there is none."""
    try:
        data = read_limited(path, LONGEST)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ValueError(f"{str(path)!r} cannot be read ({error.strerror}); choose another folder.") from error
    try:
        record = parse(data)
    except (ValueError, RecursionError) as error:
        raise _damaged(
            path, "it is not what JSON can hold here" if isinstance(error, RecursionError) else str(error)
        ) from error
    if not isinstance(record, dict):
        raise _damaged(path, "it is no JSON object")
    for name in ("groups", "members", "began", "plan"):
        entries = record.get(name)
        networks = [len(entry) for entry in entries.values() if isinstance(entry, dict)] if isinstance(entries, dict) else []
        if isinstance(entries, dict) and (
            len(entries) > MOST_NETWORKS or (name == "members" and sum(networks) > MOST_NETWORKS)
        ):
            raise _damaged(path, f"its {name!r} has more than {MOST_NETWORKS:,} entries")
    return record


def check_record(path: Path, record: dict[str, Any]) -> None:
    """Raise ValueError of one line unless a run can go on from this record.

    >>> record = {"id": "a1", "command": "meristem", "described": {}, "groups": {}, "began": {}}
    >>> check_record(Path("run.json"), record | {"wrote": {"../mine": []}})
    Traceback (most recent call last):
    ValueError: 'run.json' holds no run: its entry 'wrote' is wrong; delete its folder and begin again.
    """
    for name, fits in ENTRIES.items():
        if (name in record or name in NEEDED) and not fits(record.get(name)):
            raise _damaged(path, f"its entry {name!r} is wrong")


def parse(data: bytes) -> Any:
    """Return what JSON holds; ValueError or RecursionError where it is not JSON, or holds what a run never writes.

    >>> parse(b'{"loss": [0.5, 3]}')
    {'loss': [0.5, 3]}
    >>> parse(b'[NaN]')
    Traceback (most recent call last):
    ValueError: it holds NaN
    """
    value = json.loads(data, parse_constant=_constant, parse_int=_integer, parse_float=_float)
    level = [value]
    for _ in range(DEEPEST):
        level = [entry for node in level for entry in _inside(node) if isinstance(entry, dict | list)]
    if level:
        raise ValueError(f"it is nested more than {DEEPEST} deep")
    return value


def storable(value: Any) -> Any:
    """Return JSON's values as `parse` takes them: numbers that it refuses become texts.

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
    """Whether a name is that of a file inside a folder.

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


def _is_group(value: Any) -> bool:
    is_entry = isinstance(value, dict) and isinstance(value.get("sha256"), str) and DIGEST.fullmatch(value["sha256"])
    return bool(is_entry) and _is_number(value.get("seconds", 0))


def _are_digests(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _are_named(fits: Callable[[Any], bool], is_name: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Whether a value is an object of such names and such values."""

    def are(value: Any) -> bool:
        return isinstance(value, dict) and all(is_name(name) and fits(entry) for name, entry in value.items())

    return are


def _is_file_name(name: Any) -> bool:
    return is_inside(name) and "/" not in name


NEEDED = ["id", "command", "described", "groups", "began"]
ENTRIES: dict[str, Callable[[Any], bool]] = {
    "id": lambda value: _is_text(value) and 0 < len(value) <= 100,
    "command": _is_text,
    "described": lambda value: isinstance(value, dict),
    "versions": _are_named(_is_text, _is_text),
    "groups": _are_named(_is_group, _is_file_name),
    "began": _are_named(_is_number, _is_file_name),
    "plan": _are_named(_is_number, _is_text),
    "wrote": _are_named(_are_digests, is_inside),
    "members": _are_named(lambda value: isinstance(value, dict), _is_text),
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


def _inside(node: Any) -> Any:
    return node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
