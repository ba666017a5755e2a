"""epochs.jsonl: a line for each epoch of each network, written when the epoch is over, for whoever wants to follow.

    {"group": "tunnel-easy", "member": 0, "epoch": 12, "loss": 0.31, …}

Whole lines are appended. When a group is over its lines are written once more from its history, member by member: those of
epochs that a run which was killed told of and then trained again are there once, those that a power cut lost are there, too,
and the file of a run is the same to the byte, however often it was interrupted. A fit of an estimator, which trains more than
once, has a group for each part of it ("train", "search", "replay"), and `tidy` puts its lines in order at the end: each once,
by group and member. A number that is not finite is null. `meristem watch` reads the file (watch/following.py). It has a longest
length, beyond which epochs are trained and not told of.
"""

import json
import math
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np

from meristem.files.whole import write_whole
from meristem.folders.plain import FLAGS, open_plain
from meristem.folders.record import parse
from meristem.train.callbacks import Settings, Watcher
from meristem.train.run import Run
from meristem.train.train_state import EpochInfo

LONGEST = 1 << 30  # bytes of the file
LONGEST_LINE = 1 << 20


class EpochLines:
    """The file."""

    def __init__(self, path: Path, begin: Callable[[str, Settings], None]):
        self.path, self.begin = path, begin  # who is told what the members of a group are

    def watcher(self, group: str) -> Watcher:
        """Who writes the lines of this group."""
        self._end_line()
        return _Writer(self, group)

    def append(self, line: str) -> None:
        """One line, in one piece. A disk that is full does not end a training: what is missing is written when it is over."""
        with suppress(OSError), open(self.path, "ab", buffering=0, opener=_opener) as file:
            if os.fstat(file.fileno()).st_size + len(line) < LONGEST:
                file.write(line.encode() + b"\n")

    def _end_line(self) -> None:
        """A power cut may have left a part of one, which must not spoil the next."""
        with suppress(OSError), open(self.path, "rb+", buffering=0, opener=_opener) as file:
            if file.seek(0, os.SEEK_END) and file.seek(-1, os.SEEK_END) >= 0 and file.read(1) != b"\n":
                file.write(b"\n")

    def complete(self, group: str, run: Run) -> None:
        """The lines of a group that is over: one for each epoch that each of its members took."""
        wanted = [
            line_of(group, member, epoch + 1, {name: values[epoch, member] for name, values in run.history.items()})
            for member, epochs in enumerate(run.epochs.tolist())
            for epoch in range(epochs)
        ]
        start = _start_of(group)
        others = [line for line in self._lines() if line.startswith('{"group": ') and not line.startswith(start)]
        self._write([*others, *wanted])

    def tidy(self) -> None:
        """The lines of a fit at its end: each epoch once, what was told of it last, member by member; groups as they began."""
        last: dict[tuple[str, int, int], str] = {}
        for line in self._lines():
            with suppress(ValueError, LookupError, TypeError, RecursionError):
                values = parse(line.encode())
                last[str(values["group"]), int(values["member"]), int(values["epoch"])] = line
        order = {group: place for place, group in enumerate(dict.fromkeys(group for group, _, _ in last))}
        places = sorted(last, key=lambda place: (order[place[0]], *place[1:]))
        if places:
            self._write([last[place] for place in places])

    def _lines(self) -> Iterator[str]:
        """Whole lines that are not too long; the last one may be a part."""
        with suppress(OSError, ValueError), open_plain(self.path) as raw, BufferedReader(raw) as file:
            is_part = False
            while line := file.readline(LONGEST_LINE):
                is_end = line.endswith(b"\n")
                if is_end and not is_part:
                    yield line[:-1].decode(errors="replace")
                is_part = not is_end

    def _write(self, lines: list[str]) -> None:
        if sum(map(len, lines)) + len(lines) < LONGEST:
            write_whole(self.path, "".join(f"{line}\n" for line in lines).encode())


class _Writer(Watcher):
    def __init__(self, lines: EpochLines, group: str):
        self.lines, self.group = lines, group

    def part(self, name: str) -> Watcher:
        return _Writer(self.lines, name)

    def begin(self, settings: Settings) -> None:
        self.lines.begin(self.group, settings)

    def epoch(self, member: int, info: EpochInfo) -> bool:
        values = {name: np.asarray(getattr(info, name)) for name in info.keys() if name != "epoch"}  # noqa: SIM118
        self.lines.append(line_of(self.group, member, int(info.epoch), values))
        return False


def line_of(group: str, member: int, epoch: int, values: dict[str, Any]) -> str:
    """The line of an epoch.

    >>> line_of("tunnel-easy", 0, 1, {"loss": np.float32(0.5), "layer_sizes": np.array([1.0, np.inf])})
    '{"group": "tunnel-easy", "member": 0, "epoch": 1, "layer_sizes": [1.0, null], "loss": 0.5}'
    """
    plain = {name: _finite(np.asarray(values[name]).tolist()) for name in sorted(values)}
    return json.dumps({"group": group, "member": member, "epoch": epoch, **plain})


def _finite(value: Any) -> Any:
    if isinstance(value, list):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags | FLAGS, 0o666)


def _start_of(group: str) -> str:
    return f'{{"group": {json.dumps(group)}, '
