"""Read the files of a run while it writes them: nothing is written, locked, or opened for writing.

    reader = RunReader(out)         ValueError where `out` cannot hold a run
    reader.poll() → RunLog          everything that the files say now

Each poll reads only the new part of epochs.jsonl (folders/epoch_lines.py). An incomplete last line waits for the next poll, a
file that was replaced or truncated is read from its start, damaged lines are counted and skipped. A resumed run writes some
epochs again: the newer line replaces the older one and everything after it. A folder without a run is no error: it may get
one. What no run writes (links, devices, oversized files, too many networks, an unreadable run.json) is a ValueError of one
line.
"""

import bisect
import math
import os
from array import array
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from meristem.files.atomic_write import is_alive
from meristem.folders.epoch_lines import LONGEST as LONGEST_FILE, LONGEST_LINE
from meristem.folders.ownership import OWN, RUN, SUMMARY, read_json
from meristem.folders.plain_files import FOLDER, check_kind, open_plain
from meristem.folders.run_record import LONGEST as LONGEST_RECORD, MOST_NETWORKS, parse, read_record

LONGEST_ID = 100  # characters
LONGEST_GROUP = 200  # characters of a group's name
TAIL = 256  # bytes before the current position that must be unchanged; otherwise the file was replaced
MOST_NUMBERS = 1 << 27  # in memory, over all epochs
MOST_INDEX = 2**31  # of a member, and of an epoch
MOST_LAYERS = 4096
MOST_EVENTS = 256  # per member; older ones are dropped
EPOCH_NUMBERS = 24  # memory of an epoch without its layers, in numbers
OPEN = 0.05  # units from which a layer counts as open: gates hover just above 0
COLUMNS = ("dev_loss", "dev_error", "soft_size", "hard_size", "rate", "opened", "closed")


class MemberLog:
    """The epochs of one member: a value per epoch in each column (NaN: unknown), layer sizes, and the last epoch's flags.

    >>> log = MemberLog()
    >>> for epoch in (1, 2, 3, 2):                                      # killed after epoch 3 and resumed from epoch 1
    ...     log.add(epoch, {"dev_loss": 1 / epoch, "layer_sizes": [0.0, 2.0]})
    >>> log.epochs, list(log.columns["dev_loss"]), list(log.layers[-1]), log.events
    ([1, 2], [1.0, 0.5], [0.0, 2.0], [(1, 2, True)])
    """

    def __init__(self) -> None:
        self.epochs: list[int] = []
        self.columns: dict[str, array[float]] = {name: array("d") for name in COLUMNS}
        self.layers: list[array[float]] = []
        self.best_epochs: list[int] = []  # each the best up to then
        self.events: list[tuple[int, int, bool]] = []  # (epoch, layer counted from 1, True: opened, False: closed)
        self.is_stopped = self.is_diverged = self.is_tree = False
        self.version = 0  # changes with each line

    def add(self, epoch: int, values: dict[str, Any]) -> None:
        """Append an epoch, after removing this epoch and later ones if they are present."""
        keep = bisect.bisect_left(self.epochs, epoch)
        if keep < len(self.epochs):
            per_epoch: list[Any] = [self.epochs, self.layers, *self.columns.values()]
            for column in per_epoch:
                del column[keep:]
            self.best_epochs = [best for best in self.best_epochs if best < epoch]
            self.events = [event for event in self.events if event[0] < epoch]
        sizes = values.get("layer_sizes")
        now = array("d", [_number(size) for size in sizes[:MOST_LAYERS]] if isinstance(sizes, list) else [])
        before = self.layers[-1] if self.layers else array("d", [0.0] * len(now)) if epoch == 1 else now
        pairs = enumerate(zip(before, now, strict=False), 1)
        self.events += [(epoch, layer, new >= OPEN) for layer, (old, new) in pairs if (old >= OPEN) != (new >= OPEN)]
        del self.events[:-MOST_EVENTS]
        self.epochs.append(epoch)
        self.layers.append(now)
        for name, column in self.columns.items():
            column.append(_number(values.get(name)))
        if values.get("improved") is True:
            self.best_epochs.append(epoch)
        self.is_stopped, self.is_diverged = values.get("stopped") is True, values.get("diverged") is True
        self.is_tree = self.is_tree or _number(values.get("most_leaves")) > 0
        self.version += 1


@dataclass
class RunLog:
    """What the files of a run say."""

    folder: str
    run: dict[str, Any] = field(default_factory=dict)  # run.json
    groups: dict[str, dict[int, MemberLog]] = field(default_factory=dict)  # by name and member, oldest group first
    damaged: int = 0  # lines
    n_networks: int = 0  # of all groups
    n_numbers: int = 0  # in memory, at most
    is_finished: bool = False
    process: int | None = None  # the process that holds the folder's lock, or held it last
    is_alive: bool | None = None  # that process; None: unknown

    @property
    def has_run(self) -> bool:
        name = self.run.get("id")
        return isinstance(name, str) and len(name) <= LONGEST_ID

    def add(self, line: bytes) -> None:
        """Add a line of epochs.jsonl, or count it as damaged."""
        values = parse_line(line)
        if values is None:
            self.damaged += 1
            return
        members, number = self.groups.setdefault(values["group"], {}), values["member"]
        if number not in members:
            members[number] = MemberLog()
            self.n_networks += 1
        members[number].add(values["epoch"], values)
        self.n_numbers += EPOCH_NUMBERS + len(members[number].layers[-1])

    def clear(self) -> None:
        """Forget all lines."""
        self.groups, self.damaged, self.n_networks, self.n_numbers = {}, 0, 0, 0


class RunReader:
    """A reader of one folder, which may get a run later; `poll` returns the same RunLog each time, brought up to date."""

    def __init__(self, out: Path):
        if out.exists() and not out.is_dir():
            raise ValueError(f"{str(out)!r} is a file; give the folder that a run writes to (its --out, or checkpoint_dir).")
        self._out, self._own = out, out / OWN
        check_kind(self._own, FOLDER)
        for name, most in ((RUN, LONGEST_RECORD), ("epochs.jsonl", LONGEST_FILE)):
            check_kind(self._own / name, most=most)
        if (out / SUMMARY).exists() and not self._own.exists():
            raise ValueError(f"{str(out)!r} holds results without their epoch log ({OWN}); there is nothing to watch.")
        self._log, self._tail = RunLog(str(out)), _FileTail(self._own / "epochs.jsonl")
        self._contents: dict[Path, tuple[Any, dict[str, Any]]] = {}  # of files, with what changes when they do

    def poll(self) -> RunLog:
        """Read what is new; ValueError where there are too many networks or epochs to hold."""
        log, run = self._log, self._read_json(self._own / RUN, read_record)
        if run.get("id") != log.run.get("id"):  # a new run in the same folder
            self._tail.rewind()
        log.run = run
        for line in self._tail.new_lines(log):
            log.add(line)
            for n, most, what in ((log.n_networks, MOST_NETWORKS, "networks"), (log.n_numbers, MOST_NUMBERS, "numbers")):
                if n > most:
                    raise ValueError(f"{str(self._tail.path)!r} holds more than {most:,} {what}, too many to watch.")
        summary = self._read_json(self._out / SUMMARY)
        log.is_finished = log.has_run and (run.get("over") is True or summary.get("run") == run["id"])
        process = self._read_json(self._own / "lock").get("pid")
        log.process = process if type(process) is int and process > 0 else None
        log.is_alive = None if log.process is None else is_alive(log.process)
        return log

    def _read_json(self, path: Path, read: Callable[[Path], dict[str, Any] | None] = read_json) -> dict[str, Any]:
        """Return the object in a file, {} without one; while a changed file is unreadable, its previous content."""
        try:
            stat = path.stat()
        except OSError:
            self._contents.pop(path, None)
            return {}
        stamp = stat.st_ino, stat.st_size, stat.st_mtime_ns
        before, content = self._contents.get(path, (None, {}))
        if stamp != before:
            with suppress(ValueError) if path in self._contents else nullcontext():
                now = read(path)
                if now is not None:
                    self._contents[path], content = (stamp, now), now
        return content


class _FileTail:
    """The lines that were appended to a file since the last call."""

    def __init__(self, path: Path):
        self.path = path
        self.rewind()

    def rewind(self) -> None:
        self._file: Any = None  # (device, inode)
        self._offset, self._before, self._is_skipping = 0, b"", False  # position, bytes before it, inside an oversized line

    def new_lines(self, log: RunLog) -> Iterator[bytes]:
        """Yield complete new lines; `log` is cleared first where the file is another one."""
        try:
            check_kind(self.path, most=LONGEST_FILE)
            with open_plain(self.path) as file:
                stat = os.fstat(file.fileno())
                file.seek(self._offset - len(self._before))
                if self._file != (stat.st_dev, stat.st_ino) or file.read(len(self._before)) != self._before:
                    self.rewind()
                    log.clear()
                    self._file = stat.st_dev, stat.st_ino
                    file.seek(0)
                while self._offset < LONGEST_FILE and (line := file.readline(LONGEST_LINE)):
                    is_end, was_skipping = line.endswith(b"\n"), self._is_skipping
                    if not is_end and len(line) < LONGEST_LINE:  # incomplete: the next poll reads it again
                        return
                    self._offset, self._before = self._offset + len(line), (self._before + line)[-TAIL:]
                    self._is_skipping = not is_end
                    log.damaged += self._is_skipping and not was_skipping
                    if is_end and not was_skipping and line.strip():
                        yield line
        except FileNotFoundError:
            self.rewind()
            log.clear()
        except OSError:  # transient: the next poll tries again
            return


def parse_line(line: bytes) -> dict[str, Any] | None:
    """Return the values of a line of epochs.jsonl, or None where it is damaged.

    >>> parse_line(b'{"group": "easy", "member": 1, "epoch": 2}')
    {'group': 'easy', 'member': 1, 'epoch': 2}
    >>> parse_line(b'{"group": "easy", "mem') is parse_line(b'{"group": "easy", "member": -1, "epoch": true}') is None
    True
    """
    try:
        values = parse(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, dict):
        return None
    group, member, epoch = (values.get(name) for name in ("group", "member", "epoch"))
    if type(member) is not int or type(epoch) is not int or not 0 <= member < MOST_INDEX or not 1 <= epoch < MOST_INDEX:
        return None
    return values if isinstance(group, str) and len(group) <= LONGEST_GROUP else None


def _number(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
    return float(value) if is_number and math.isfinite(value) else math.nan
