"""Epochs as JSON lines: one for each epoch of each network, appended when the epoch ends, for `meristem watch` and loggers.

    {"group": "tunnel-easy", "member": 0, "epoch": 12, "loss": 0.31, …}

A number that is not finite is null. In the folder of a run the file is epochs.jsonl. When a group has finished, its lines are
written again from its history, sorted by member: epochs that a killed run trained twice are there once, and so are those that a
power cut lost, so the file has the same bytes however often the run was interrupted. A fit of an estimator has a group for each
of its parts ("train", "search", "replay"); `tidy` sorts its lines at the end. Beyond a maximum length epochs are not written.
"""

import copy
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import numpy as np

from meristem.files.atomic_write import write_whole
from meristem.folders.run_record import open_plain, parse, plain_opener
from meristem.train.callbacks import Settings, Watcher
from meristem.train.run import Run
from meristem.train.train_state import EpochInfo

LONGEST = 1 << 30  # bytes of the file
LONGEST_LINE = 1 << 20


class EpochLineWatcher(Watcher):
    """A watcher that appends a line for each epoch; `append` says where."""

    def __init__(self, group: str):
        self.group = group

    def append(self, line: bytes, epoch: int) -> None:
        raise NotImplementedError

    def part(self, name: str) -> Self:
        part = copy.copy(self)
        part.group = name
        return part

    def epoch(self, member: int, info: EpochInfo) -> bool:
        values = dict(info)
        epoch = int(values.pop("epoch"))
        self.append(line_of(self.group, member, epoch, values).encode() + b"\n", epoch)
        return False


def line_of(group: str, member: int, epoch: int, values: dict[str, Any]) -> str:
    text = json.dumps({name: np.asarray(values[name]).tolist() for name in sorted(values)})
    finite = json.loads(text, parse_constant=lambda constant: None)  # null for NaN and ±∞
    return json.dumps({"group": group, "member": member, "epoch": epoch, **finite})


class EpochLines(EpochLineWatcher):
    """The file epochs.jsonl of a run's folder; `describe` is called with a group and the settings of its members."""

    def __init__(self, path: Path, describe: Callable[[str, Settings], None]):
        super().__init__("fit")
        self.path, self.describe = path, describe

    def watcher(self, group: str) -> Watcher:
        # A power cut may have left a part of a line, which must not spoil the next.
        with suppress(OSError), open(self.path, "rb+", buffering=0, opener=plain_opener) as file:
            if file.seek(0, os.SEEK_END) and file.seek(-1, os.SEEK_END) >= 0 and file.read(1) != b"\n":
                file.write(b"\n")
        return self.part(group)

    def begin(self, settings: Settings) -> None:
        self.describe(self.group, settings)

    def leave(self, members: Sequence[int]) -> None:
        self.describe(self.group, {member: {"left": 1} for member in members})

    def append(self, line: bytes, epoch: int) -> None:
        """Append a line in one write; a full disk does not end a training: `complete` adds what is missing."""
        with suppress(OSError), open(self.path, "ab", buffering=0, opener=plain_opener) as file:
            if os.fstat(file.fileno()).st_size + len(line) <= LONGEST:
                file.write(line)

    def complete(self, group: str, run: Run) -> None:
        """Replace the lines of a finished group by those of its history: one for each epoch that each member trained."""
        lines = [
            line_of(group, member, epoch + 1, {name: values[epoch, member] for name, values in run.history.items()})
            for member, epochs in enumerate(run.epochs.tolist())
            for epoch in range(epochs)
        ]
        start = f'{{"group": {json.dumps(group)}, '
        others = [line for line in self._lines() if line.startswith('{"group": ') and not line.startswith(start)]
        self._write([*others, *lines])

    def tidy(self) -> None:
        """Keep the last line of each epoch, sorted by group, in order of appearance, member and epoch."""
        groups: dict[str, dict[tuple[int, int], str]] = {}
        for line in self._lines():
            with suppress(ValueError, LookupError, TypeError, RecursionError):
                values = parse(line.encode())
                place = int(values["member"]), int(values["epoch"])
                groups.setdefault(str(values["group"]), {})[place] = line
        if groups:
            self._write([lines[place] for lines in groups.values() for place in sorted(lines)])

    def _lines(self) -> Iterator[str]:
        """Yield complete lines that are not too long."""
        with suppress(OSError, ValueError), open_plain(self.path) as file:
            is_start = True
            while line := file.readline(LONGEST_LINE):
                is_end = line.endswith(b"\n")
                if is_start and is_end:
                    yield line[:-1].decode(errors="replace")
                is_start = is_end

    def _write(self, lines: list[str]) -> None:
        if sum(map(len, lines)) + len(lines) < LONGEST:
            write_whole(self.path, "".join(f"{line}\n" for line in lines).encode())
