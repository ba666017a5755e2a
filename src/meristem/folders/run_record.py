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
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from meristem.check import cut
from meristem.folders.plain_files import read_limited
from meristem.json_schema import ANY, FLAG, NUMBER, OBJECT, SHA256, TEXT, Rule, check_json

LONGEST = 8 << 20  # bytes
DEEPEST = 32
NESTED = f"it is nested more than {DEEPEST} deep"
MOST_NETWORKS = 5000  # that are named or followed, all groups together; and groups
LARGEST = 2**63


def read_record(path: Path, schema: Any = OBJECT) -> dict[str, Any] | None:
    """Return the record of a run, None if there is none; ValueError of one line if it is damaged or misfits the schema."""
    try:
        data = read_limited(path, LONGEST)
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
    return not math.isfinite(value) if isinstance(value, float) else type(value) is int and abs(value) >= LARGEST


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
