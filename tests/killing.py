"""Real processes that are killed, or told to end, at some moment, and go on until they are done; what they leave, to compare.

    done = survive(Study(out, …), moments)      started again after each kill, with --resume

A moment is when to kill: so many seconds after the start, or when there is something to be seen in the folder.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

CLOCK = ["wall_seconds", "seconds", "steps_per_second", "run", "digest", "command"]
SECONDS = 120.0  # that a tiny process may take on a machine that does much else
Moment = Callable[[Path], bool]  # of the folder: whether it has come


@dataclass(frozen=True)
class Study:
    """A tiny study: its folder, and what is trained."""

    out: Path
    options: tuple[str, ...]
    every: float = 0.0  # seconds between checkpoints

    @property
    def args(self) -> list[str]:
        options = [*self.options, "--checkpoint-every", str(self.every), "--out", str(self.out)]
        return ["reproduce", "two-spirals", *options, "--resume"]

    def start(self) -> subprocess.Popen[str]:
        return start("-m", "meristem", *self.args)


@dataclass(frozen=True)
class Script:
    """A Python program that keeps what it trains in its folder."""

    out: Path
    code: str

    def start(self) -> subprocess.Popen[str]:
        self.out.mkdir(exist_ok=True)
        return start("-c", self.code, cwd=self.out)


def start(*args: str, cwd: Path | None = None) -> subprocess.Popen[str]:
    """A Python process that finds what this one does."""
    env = os.environ | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, *args], **pipes, env=env, cwd=cwd)


def survive(what: Study | Script, moments: Sequence[Moment]) -> tuple[str, int]:
    """Kill a process at each of these moments, start it again, and let it end; what it said last, and how many kills hit."""
    hits = 0
    for moment in moments:
        with what.start() as process:
            wait_for(process, lambda moment=moment: moment(what.out))
            hits += process.poll() is None
            process.send_signal(signal.SIGKILL)
            process.communicate()
    with what.start() as process:
        _, errors = process.communicate(timeout=2 * SECONDS)
    assert process.returncode == 0, errors
    return errors, hits


def wait_for(process: subprocess.Popen[str], has_come: Callable[[], bool]) -> None:
    """Until something has come, or the process is over."""
    deadline = time.monotonic() + SECONDS
    while process.poll() is None and not has_come():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.005)


def after(seconds: float) -> Moment:
    """So long after the start."""
    begin: list[float] = []

    def has_come(out: Path) -> bool:
        begin.append(time.monotonic())
        return time.monotonic() - begin[0] > seconds

    return has_come


def lines(more: int) -> Moment:
    """When so many more epochs have been told of."""
    before: list[int] = []

    def has_come(out: Path) -> bool:
        file = out / ".meristem-run" / "epochs.jsonl"
        size = file.stat().st_size // 200 if file.exists() else 0
        before.append(size)
        return size >= before[0] + more

    return has_come


def saving(out: Path) -> bool:
    """While a checkpoint is being written."""
    folder = out / ".meristem-run" / "checkpoints"
    return folder.is_dir() and any(name.startswith(".meristem-") for name in os.listdir(folder))


def drawing(groups: int) -> Moment:
    """When all that is trained is there: pictures are drawn, files written."""

    def has_come(out: Path) -> bool:
        folder = out / ".meristem-run" / "groups"
        return folder.is_dir() and len(list(folder.glob("*.safetensors"))) >= groups

    return has_come


def some(chance: random.Random, seconds: float, groups: int) -> Moment:
    """One of all kinds."""
    kinds = [after(chance.uniform(0, seconds)), lines(chance.randrange(1, 200)), saving, drawing(groups)]
    return chance.choice(kinds)


def left_by(out: Path) -> dict[str, Any]:
    """Everything that a study left, clock times aside: the summary, every array, every line, the bytes of other files."""
    summary = without_clock(json.loads((out / "summary.json").read_text()))
    with np.load(out / "history.npz") as history:
        arrays = {name: (values.dtype.str, values.shape, values.tobytes()) for name, values in sorted(history.items())}
    told = (out / ".meristem-run" / "epochs.jsonl").read_text().splitlines()
    files = [path for path in sorted(out.rglob("*")) if path.suffix in (".png", ".safetensors")]
    return {
        "summary": summary,
        "arrays": arrays,
        "lines": told,
        "files": {str(path.relative_to(out)): path.read_bytes() for path in files},
    }


def without_clock(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_clock(one) for name, one in value.items() if name not in CLOCK}
    return [without_clock(one) for one in value] if isinstance(value, list) else value
