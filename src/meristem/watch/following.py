"""The files of a run, read as they grow: nothing is written, opened for writing, or locked.

    follower = Follower(out)            ValueError where there can be no run
    follower.poll() → Seen              what there is now

Of epochs.jsonl only what is new is read: a part of a line is left for later, a file that was replaced or has shrunk is read
from its beginning, and a line that is damaged is counted and passed over. A folder without a run, or none at all, is waited
for. What no run writes is a ValueError of one line: links, pipes and devices in place of its files, files that are too long,
too many networks, a run.json that cannot be read. Imports folders; view.py imports it.
"""

import os
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from meristem.folders.epoch_lines import LONGEST as LONGEST_FILE
from meristem.folders.ownership import OWN, RUN, SUMMARY, read_json
from meristem.folders.plain_files import check_folder, check_length, check_plain, open_plain
from meristem.folders.run_record import LONGEST as LONGEST_RECORD, MOST_NETWORKS, read_record
from meristem.watch.told import Told, read_line

BLOCK = 1 << 20  # bytes that are read at a time
LONGEST = 1 << 20  # bytes of a line
LONGEST_ID = 100  # characters
TAIL = 256  # bytes by which a file is known again
MOST_NUMBERS = 1 << 27  # that are held of all epochs
Members = dict[int, Told]


@dataclass
class Seen:
    """What the files say."""

    where: str
    run: dict[str, Any] = field(default_factory=dict)  # run.json
    groups: dict[str, Members] = field(default_factory=dict)  # in the order in which they began
    damaged: int = 0  # lines
    n_networks: int = 0  # of all groups
    n_numbers: int = 0  # of all their epochs
    is_finished: bool = False
    process: int | None = None  # that holds the folder, or held it last
    is_alive: bool | None = None  # that process; None: nobody can tell

    @property
    def has_run(self) -> bool:
        name = self.run.get("id")
        return isinstance(name, str) and len(name) <= LONGEST_ID


class Follower:
    """Of one folder.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as out:
    ...     follower = Follower(Path(out))
    ...     before = follower.poll().has_run
    ...     (Path(out) / ".meristem-run").mkdir()
    ...     _ = (Path(out) / ".meristem-run" / "run.json").write_text('{"id": "a1"}')
    ...     lines = Path(out) / ".meristem-run" / "epochs.jsonl"
    ...     _ = lines.write_text('{"group": "easy", "member": 0, "epoch": 1}\\n{"group": "easy", "mem')
    ...     before, follower.poll().has_run, follower.poll().groups["easy"][0].epochs
    (False, True, [1])
    """

    def __init__(self, out: Path):
        check_place(out)
        self._out, self._own = out, out / OWN
        self._seen = Seen(str(out))
        self._lines = _Lines(self._own / "epochs.jsonl")
        self._stamps: dict[Path, Any] = {}
        self._read: dict[Path, dict[str, Any]] = {}

    def poll(self) -> Seen:
        """What there is now."""
        seen, run = self._seen, self._json(self._own / RUN, read_record)
        if run.get("id") != seen.run.get("id"):  # another run has begun
            self._lines.forget()
        seen.run = run
        for line in self._lines.new(seen):
            self._add(line)
        summary = self._json(self._out / SUMMARY)
        seen.is_finished = seen.has_run and (run.get("over") is True or summary.get("run") == run["id"])
        process = self._json(self._own / "lock").get("pid")
        seen.process = process if type(process) is int and process > 0 else None
        seen.is_alive = None if seen.process is None else is_alive(seen.process)
        return seen

    def _add(self, line: bytes) -> None:
        """A line more; ValueError where there are more networks or epochs than can be followed."""
        seen, values = self._seen, read_line(line)
        if values is None:
            seen.damaged += 1
            return
        members = seen.groups.setdefault(values.group, {})
        if values.member not in members:
            members[values.member] = Told()
            seen.n_networks += 1
        member = members[values.member]
        before = member.n_numbers
        member.add(values.epoch, values.values)
        seen.n_numbers += member.n_numbers - before
        for n, most, what in ((seen.n_networks, MOST_NETWORKS, "networks"), (seen.n_numbers, MOST_NUMBERS, "numbers")):
            if n > most:
                raise ValueError(f"{str(self._lines.path)!r} tells of more than {most:,} {what}, which are too many to follow.")

    def _json(self, path: Path, read: Any = read_json) -> dict[str, Any]:
        """An object, read again where the file is another; of one that cannot be read for a moment, the one before."""
        stamp = _stamp(path)
        if stamp is None:
            self._stamps.pop(path, None)
            return self._read.pop(path, {}) and {}
        if stamp != self._stamps.get(path):
            with suppress(ValueError) if path in self._read else nullcontext():
                content = read(path)
                if content is not None:
                    self._stamps[path], self._read[path] = stamp, content
        return self._read.get(path, {})


class _Lines:
    """The new lines of a file."""

    def __init__(self, path: Path):
        self.path = path
        self.forget()

    def forget(self) -> None:
        self._file: Any = None  # which file it was
        self._offset, self._tail, self._is_skipping = 0, b"", False  # how far it was read, and the bytes before that

    def new(self, seen: Seen) -> Iterator[bytes]:
        """Those since the last time; `seen` is emptied where they are those of another file."""
        try:
            check_length(self.path, LONGEST_FILE)
            with open_plain(self.path) as file:
                now = os.fstat(file.fileno())
                file.seek(self._offset - len(self._tail))
                if self._file != (now.st_dev, now.st_ino) or file.read(len(self._tail)) != self._tail:  # another, or shorter
                    self._begin(seen)
                    self._file = now.st_dev, now.st_ino
                    file.seek(0)
                rest = b""
                while self._offset + len(rest) < LONGEST_FILE and (block := file.read(BLOCK)):
                    *whole, rest = (rest + block).split(b"\n")
                    yield from self._taken(whole)
                    if len(rest) > LONGEST:
                        self._offset, self._tail, rest = self._offset + len(rest), rest[-TAIL:], b""
                        seen.damaged += not self._is_skipping
                        self._is_skipping = True
        except FileNotFoundError:
            self._begin(seen)
        except OSError:  # for a moment: it is tried again
            return

    def _taken(self, whole: list[bytes]) -> list[bytes]:
        if whole:
            self._offset += sum(map(len, whole)) + len(whole)
            self._tail = (whole[-1] + b"\n")[-TAIL:]
        if whole and self._is_skipping:  # the end of one that was too long
            whole, self._is_skipping = whole[1:], False
        return [line for line in whole if line.strip()]

    def _begin(self, seen: Seen) -> None:
        self.forget()
        seen.groups, seen.damaged, seen.n_networks, seen.n_numbers = {}, 0, 0, 0


def check_place(out: Path) -> None:
    """Raise ValueError where there is something that no run will be in; a folder without a run is no mistake: it may come."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"{str(out)!r} is a file; give the folder that a run writes to (its --out, or checkpoint_dir).")
    check_folder(out / OWN)
    for name, most in ((RUN, LONGEST_RECORD), ("epochs.jsonl", LONGEST_FILE)):
        check_plain(out / OWN / name)
        check_length(out / OWN / name, most)
    if (out / SUMMARY).exists() and not (out / OWN).exists():
        raise ValueError(f"{str(out)!r} holds results without the lines of their epochs ({OWN}); there is nothing to follow.")


def is_alive(process: int) -> bool | None:
    """Whether a process is there; None where the system does not say without ending it.

    >>> is_alive(os.getpid()) in (True, None), is_alive(2**22 + 1) in (False, None)
    (True, True)
    """
    if os.name == "nt":
        return None
    try:
        os.kill(process, 0)
    except PermissionError:  # someone else's
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True


def _stamp(path: Path) -> Any:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
