"""Read the files of a run while it writes them: nothing is written, locked, or opened for writing.

    reader = RunReader(out)         ValueError where `out` cannot hold a run
    reader.poll() → RunLog          everything that the files say now

Each poll reads only the new part of epochs.jsonl (folders/epoch_lines.py). An incomplete last line waits for the next poll, a
file that was replaced or truncated is read from its start, damaged lines are counted and skipped. A resumed run writes some
epochs again: the newer line replaces the older one and everything after it. A folder without a run may get one; links, devices,
oversized files, too many networks or an unreadable run.json are a ValueError of one line.
"""

import bisect
import math
import os
from array import array
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from meristem.files.atomic_write import is_alive
from meristem.folders import run_record
from meristem.folders.epoch_lines import LONGEST as LONGEST_FILE, LONGEST_LINE
from meristem.folders.run_record import MOST_NETWORKS, OWN, RECORD, RUN, SUMMARY, check_kind, open_plain, parse, read_record
from meristem.json_schema import ANY, OBJECT, TEXT, Rule, check_json, integer

LONGEST_TEXT = 2000  # characters of an entry of run.json
TAIL = 256  # bytes before the current position that must be unchanged; otherwise the file was replaced
MOST_NUMBERS = 1 << 27  # in memory, over all epochs
MOST_LAYERS = 4096
MOST_EVENTS = 256  # per member; older ones are dropped
EPOCH_NUMBERS = 24  # memory of an epoch without its layers, in numbers
OPEN = 0.05  # units from which a layer counts as open: gates hover just above 0
COLUMNS = ("dev_loss", "dev_error", "soft_size", "hard_size", "opened", "closed")
GROUP = Rule("a text of at most 200 characters", lambda value: isinstance(value, str) and len(value) <= 200)
LINE = {"group": GROUP, "member": integer(0, bits=31), "epoch": integer(1, bits=31), TEXT: ANY}
RUN_ENTRIES = {key.removesuffix("?"): rule for key, rule in RECORD.items() if isinstance(key, str)} | {"members": OBJECT}


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
    folder: str
    run: dict[str, Any] = field(default_factory=dict)  # the valid entries of run.json
    groups: dict[str, dict[int, MemberLog]] = field(default_factory=dict)  # by name and member, oldest group first
    damaged: int = 0  # lines
    n_networks: int = 0  # of all groups
    n_numbers: int = 0  # in memory, at most
    status: str = "waiting"  # or running, interrupted (the process is gone), finished

    def add(self, line: bytes) -> None:
        """Add a line of epochs.jsonl, or count it as damaged."""
        try:
            values = parse(line)
            check_json(values, LINE)
        except (ValueError, RecursionError):
            self.damaged += 1
            return
        members, number = self.groups.setdefault(values["group"], {}), values["member"]
        self.n_networks += number not in members
        member = members.setdefault(number, MemberLog())
        member.add(values["epoch"], values)
        self.n_numbers += EPOCH_NUMBERS + len(member.layers[-1])


class RunReader:
    """A reader of one folder, which may get a run later."""

    def __init__(self, out: Path):
        if out.exists() and not out.is_dir():
            raise ValueError(f"{str(out)!r} is a file; give the folder that a run writes to (its --out, or checkpoint_dir).")
        self._out, self._own, self._lines = out, out / OWN, out / OWN / "epochs.jsonl"
        check_kind(self._own, run_record.FOLDER)
        for path in (self._own / RUN, self._lines):
            check_kind(path, most=LONGEST_FILE)
        if (out / SUMMARY).exists() and not self._own.exists():
            raise ValueError(f"{str(out)!r} holds results without their epoch log ({OWN}); there is nothing to watch.")
        self._start_over()

    def _start_over(self, file: Any = None) -> None:
        """Forget all lines: the file, of this device and inode, is read from its start."""
        self._log, self._file = RunLog(str(self._out)), file
        self._offset, self._before, self._is_skipping = 0, b"", False  # position, bytes before it, inside an oversized line

    def poll(self) -> RunLog:
        """Read what is new; ValueError where there are too many networks or epochs to hold."""
        try:
            run = _valid_entries(read_record(self._own / RUN) or {})
        except ValueError:
            if not self._log.run:
                raise
            run = self._log.run  # it is being written
        if run.get("id") != self._log.run.get("id"):  # a new run in the same folder
            self._start_over()
        try:
            self._read_lines()
        except FileNotFoundError:
            self._start_over()
        except OSError:  # transient: the next poll tries again
            pass
        log, pid = self._log, run_record.read_json(self._own / "lock").get("pid")  # of the process that trains, or did
        log.run, log.status = run, "running"
        if "id" not in run:
            log.status = "waiting"
        elif run.get("over") or run_record.read_json(self._out / SUMMARY).get("run") == run["id"]:
            log.status = "finished"
        elif type(pid) is int and pid > 0 and is_alive(pid) is False:
            log.status = "interrupted"
        return log

    def _read_lines(self) -> None:
        """Add the new complete lines of epochs.jsonl, all of them where it is another file."""
        with open_plain(self._lines, LONGEST_FILE) as file:
            stat = os.fstat(file.fileno())
            file.seek(self._offset - len(self._before))
            if self._file != (stat.st_dev, stat.st_ino) or file.read(len(self._before)) != self._before:
                self._start_over((stat.st_dev, stat.st_ino))
                file.seek(0)
            log = self._log
            while self._offset < LONGEST_FILE and (line := file.readline(LONGEST_LINE)):
                is_end, was_skipping = line.endswith(b"\n"), self._is_skipping
                if not is_end and len(line) < LONGEST_LINE:  # incomplete: the next poll reads it again
                    return
                self._offset, self._before = self._offset + len(line), (self._before + line)[-TAIL:]
                self._is_skipping = not is_end
                log.damaged += self._is_skipping and not was_skipping
                if is_end and not was_skipping and line.strip():
                    log.add(line)
                for n, most, what in ((log.n_networks, MOST_NETWORKS, "networks"), (log.n_numbers, MOST_NUMBERS, "numbers")):
                    if n > most:
                        raise ValueError(f"{str(self._lines)!r} holds more than {most:,} {what}, too many to watch.")


def _valid_entries(run: dict[str, Any]) -> dict[str, Any]:
    valid = {}
    for name in RUN_ENTRIES.keys() & run.keys():
        with suppress(ValueError):
            check_json(run[name], RUN_ENTRIES[name])
            valid[name] = run[name][:LONGEST_TEXT] if isinstance(run[name], str) else run[name]
    return valid


def _number(value: Any) -> float:
    return float(value) if type(value) in (int, float) and abs(value) < 1e300 else math.nan
