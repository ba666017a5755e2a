"""Real processes of meristem in odd surroundings: variables, streams, folders and limits that are not as usual.

    ask(["no HOME", "stdout is full"], "show", folder) → Answer(status, errors)
    wrong(pieces, "show", answer)                      → what is wrong with it, or None

A process ends with a status of docs/api.md that fits what it was asked and where, says at most one line of error, and never
shows a traceback. Pieces of surroundings are combined by `draw`; two that name the same variable or stream are not.
"""

import os
import random
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

LONG = "a" * 300
SECONDS = 300.0


class Piece(NamedTuple):
    """Variables of the environment (None: not there), shell commands before the process, redirections; what may come of it."""

    variables: Mapping[str, str | None] = MappingProxyType({})
    before: str = ""
    streams: str = ""
    may_end: frozenset[int] = frozenset()  # with these statuses, too


class Command(NamedTuple):
    """Arguments with {folder} for where the model is, and the status that it ends with where nothing is odd."""

    args: tuple[str, ...]
    status: int
    computes: bool = False  # whether it needs JAX's device


class Answer(NamedTuple):
    """What a process left."""

    status: int
    errors: str


GONE = frozenset([1])  # output that cannot be written
BAD = frozenset([2])
PIECES = {
    "no HOME": Piece({"HOME": None, "XDG_CACHE_HOME": None}),
    "HOME cannot be written": Piece({"HOME": "/dev/null/home", "XDG_CACHE_HOME": None}),
    "no TMPDIR": Piece({"TMPDIR": "/nowhere", "TEMP": None, "TMP": None}),
    "C locale": Piece({"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}),
    "ascii": Piece({"PYTHONIOENCODING": "ascii"}),
    "no stdout": Piece(streams=">&-", may_end=GONE),
    "no stderr": Piece(streams="2>&-"),
    "no stdin": Piece(streams="<&-"),
    "no streams": Piece(streams="<&- >&- 2>&-", may_end=GONE),
    "stdout is full": Piece(streams=">/dev/full", may_end=GONE),
    "stderr is full": Piece(streams="2>/dev/full"),
    "nobody reads": Piece(streams="| true", may_end=GONE),
    "a platform that is not there": Piece({"JAX_PLATFORMS": "rocket"}, may_end=BAD),
    "no GPU": Piece({"JAX_PLATFORMS": "cuda", "CUDA_VISIBLE_DEVICES": ""}, may_end=BAD),
    "x64": Piece({"JAX_ENABLE_X64": "1"}),
    "a cache that is no folder": Piece({"MERISTEM_CACHE": "/dev/null/cache"}),
    "a cache of nonsense": Piece({"MERISTEM_CACHE": "\x01 \x7f~"}),
    "data nowhere": Piece({"MERISTEM_DATA": "/nowhere"}),
    "a narrow terminal": Piece({"COLUMNS": "1", "LINES": "1"}),
    "a terminal of less": Piece({"COLUMNS": "-5", "TERM": "dumb"}),
    "no color": Piece({"NO_COLOR": "1", "TERM": None}),
    "a folder that is read only": Piece(before="cd /proc"),
    "a folder that is gone": Piece(before="mkdir gone && cd gone && rmdir ../gone", may_end=BAD),
    "no asserts": Piece({"PYTHONOPTIMIZE": "2"}),
    "another hash": Piece({"PYTHONHASHSEED": "7"}),
    "development mode": Piece({"PYTHONDEVMODE": "1"}),
    "nothing for anyone": Piece(before="umask 777"),
    "few files": Piece(before="ulimit -n 40"),
    "a small stack": Piece(before="ulimit -s 1024"),
    "little memory": Piece(before="ulimit -v 2000000"),
    "flags that XLA does not know": Piece({"XLA_FLAGS": "--nonsense"}, may_end=GONE),  # XLA itself ends it, with a line
}
COMMANDS = {
    "help": Command(("-m", "meristem", "--help"), 0),
    "help of a study": Command(("-m", "meristem", "reproduce", "two-spirals", "--help"), 0),
    "version": Command(("-m", "meristem", "--version"), 0),
    "import": Command(("-c", "import meristem; meristem.__version__"), 0),
    "show": Command(("-m", "meristem", "show", "{folder}/model.safetensors", "--png", "{folder}/shown.png"), 0, computes=True),
    "show nothing": Command(("-m", "meristem", "show", "{folder}/nothing.safetensors"), 2),
    "show a folder": Command(("-m", "meristem", "show", "{folder}"), 2),
    "show a long name": Command(("-m", "meristem", "show", LONG), 2),
    "predict nothing": Command(("-m", "meristem", "predict", "{folder}/model.safetensors", "{folder}/nothing.csv"), 2),
    "fit nothing": Command(("-m", "meristem", "fit", "{folder}/nothing.csv", "--target", "y", "--out", "{folder}/fit"), 2),
    "figures of nothing": Command(("-m", "meristem", "figures", "{folder}/nothing"), 2),
    "no command": Command(("-m", "meristem"), 2),
    "no such command": Command(("-m", "meristem", "grwo"), 2),
    "reproduce": Command(
        (
            *("-m", "meristem", "reproduce", "two-spirals", "--task", "easy", "--models", "tunnel", "--seeds", "1"),
            *("--width", "3", "--depth", "1", "--max-epochs", "2", "--out", "{folder}/{new}"),
        ),
        0,
        computes=True,
    ),
}


def draw(chance: random.Random) -> list[str]:
    """One to four pieces that do not contradict each other."""
    wanted, chosen = chance.randint(1, 4), []
    for name in chance.sample([*PIECES], len(PIECES)):
        piece, others = PIECES[name], [PIECES[one] for one in chosen]
        clashes = any(
            piece.variables.keys() & one.variables.keys() or (piece.streams and one.streams) or (piece.before and one.before)
            for one in others
        )
        if not clashes and len(chosen) < wanted:
            chosen.append(name)
    return chosen


def ask(pieces: list[str], command: str, folder: Path) -> Answer:
    """What a process answers to this command in these surroundings; `folder` holds model.safetensors."""
    env = os.environ | {
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": os.pathsep.join(os.path.abspath(path) for path in sys.path if path),
    }
    for piece in (PIECES[name] for name in pieces):
        env = {name: value for name, value in env.items() if name not in piece.variables}
        env |= {name: value for name, value in piece.variables.items() if value is not None}
    new = f"new-{len(os.listdir(folder))}"
    args = [arg.format(folder=folder, new=new) for arg in COMMANDS[command].args]
    before = "".join(f"{PIECES[name].before} && " for name in pieces if PIECES[name].before)
    streams = " ".join(PIECES[name].streams for name in pieces)
    script = f'set -o pipefail; {before}"$@" {streams}'
    done = subprocess.run(
        ["bash", "-c", script, "bash", sys.executable, *args],
        env=env,
        cwd=folder,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=SECONDS,
        check=False,
    )
    return Answer(done.returncode, done.stderr)


def wrong(pieces: list[str], command: str, answer: Answer) -> str | None:
    """What is wrong with an answer, or None."""
    may_end = {COMMANDS[command].status}.union(*(PIECES[name].may_end for name in pieces))
    lines = [line for line in answer.errors.splitlines() if line.strip()]
    if command == "reproduce":  # it tells of its progress, too
        lines = [line for line in lines if line.startswith("meristem")]
    if answer.status not in may_end:
        return f"status {answer.status}, not one of {sorted(may_end)}: {answer.errors[-300:]}"
    if "Traceback" in answer.errors:
        return f"a traceback: {answer.errors[-300:]}"
    if answer.status and (len(lines) > 1 or not all(line.startswith("meristem") or "XLA_FLAGS" in line for line in lines)):
        return f"{len(lines)} lines: {answer.errors[-300:]}"
    if answer.status == 0 and lines:
        return f"it says {answer.errors[-300:]}"
    return None
