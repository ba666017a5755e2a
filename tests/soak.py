"""How hard the tests try that draw at random, and what a soak counts: `make soak` tries many times as often as the suite does.

many(30)                                30 examples in the suite, 30 · MERISTEM_SOAK in a soak
many(30, suite=10)                      10 in the suite, 30 · MERISTEM_SOAK in a soak
parts(4)                                range(4) in a soak, for tests that two cores share; range(1) in the suite
tell("kills", population=50)            counts of a soak, in a file of their own below MERISTEM_SOAK_REPORT
python tests/soak.py FOLDER FILE        puts all of them into one file: results/soak.json
"""

import json
import os
import sys
from pathlib import Path

FACTOR = int(os.environ.get("MERISTEM_SOAK", "1"))


def many(tries: int, suite: int | None = None) -> int:
    """So many tries in the suite, or as many as `suite` says."""
    return tries * FACTOR if suite is None or FACTOR > 1 else suite


def parts(count: int) -> range:
    """A test of many tries in so many parts, which processes can share: in a soak; in the suite there is one."""
    return range(count if FACTOR > 1 else 1)


def tell(what: str, **counts: object) -> None:
    """What was tried, and how often it came to what; several processes may tell."""
    folder = os.environ.get("MERISTEM_SOAK_REPORT")
    if folder:
        file = Path(folder) / f"{what}.json"
        known = json.loads(file.read_text()) if file.exists() else {}
        file.write_text(json.dumps(known | counts))


def main() -> None:
    folder, file = map(Path, sys.argv[1:])
    found = {part.stem: json.loads(part.read_text()) for part in sorted(folder.glob("*.json"))}
    before = json.loads(file.read_text()) if file.exists() else {}  # of parts that were not run now
    file.write_text(json.dumps(before | {"factor": FACTOR, **found}, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
