"""The folder of a run, held by one process: a run is begun or resumed in it, its groups are saved, its files published.

    with RunFolder.take(out) as folder:
        lines = folder.begin(described, command, resume=True)       what the folder held, in words; ValueError if refused
        folder.finished("tunnel-easy") or …                         a finished group, as a run
        folder.finish("tunnel-easy", run, seconds)
        folder.publish(files, summary)

A run resumes only where all of `described` is the same (run_record.py). The lock is the operating system's, so a process that
dies, however it dies, releases it. The file names the process that holds it and is never deleted, because another process may
be about to lock it. Why not filelock: docs/map.md.
"""

import errno
import hashlib
import json
import os
import secrets
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import jax

import meristem
from meristem.check import cut
from meristem.files import load, save
from meristem.files.atomic_write import clean_leftovers, naming_path, not_written, write_whole
from meristem.files.file_kinds import PackedFile
from meristem.folders import run_record
from meristem.folders.checkpoints import Checkpoints
from meristem.folders.epoch_lines import LONGEST as LONGEST_EPOCHS, EpochLines
from meristem.folders.run_record import OWN, RUN, SUMMARY, check_kind, sha256, storable
from meristem.json_schema import first_difference
from meristem.train.callbacks import Settings
from meristem.train.run import Run

NETWORKS = "networks"
LONGEST_WORDS = 2000  # characters of what is said of the groups of a run
CONTENDED = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)
LOCKED_BYTE = 2**30  # on Windows, where a locked byte cannot be read


class RunFolder:
    """A folder that this process has locked."""

    def __init__(self, out: Path):
        self.out, self.own = out, out / OWN
        self._record: dict[str, Any] = run_record.read_record(self.own / RUN, run_record.RECORD) or {}
        self._mutex = threading.RLock()
        self.epochs = EpochLines(self.own / "epochs.jsonl", self.describe)

    @staticmethod
    @contextmanager
    def take(out: Path) -> Iterator["RunFolder"]:
        """Lock the folder, which exists, and delete what killed writers left in it.

        ValueError if another process has it, or if a part of it is not a run's: a link, a pipe, a file that is too long.
        """
        own = out / OWN
        folders = own, own / "groups", own / "checkpoints"
        for folder in folders:
            check_kind(folder, run_record.FOLDER)
        for name in ("lock", RUN, "epochs.jsonl"):
            check_kind(own / name, most=LONGEST_EPOCHS)
        with naming_path(own, "cannot be written to"):
            own.mkdir(exist_ok=True)
        with take_lock(own / "lock"):
            with naming_path(own, "cannot be written to"):
                for folder in (out, out / NETWORKS, *folders):
                    clean_leftovers(folder)
            yield RunFolder(out)

    @property
    def id(self) -> str:
        return str(self._record["id"])

    @property
    def command(self) -> str:
        return str(self._record["command"])

    def checkpoints(self, **options: Any) -> Checkpoints:
        return Checkpoints(self.own / "checkpoints", **options)

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Any]]:
        """Yield the record to change it, and write it."""
        with self._mutex:
            yield self._record
            write_whole(self.own / RUN, json.dumps(self._record, indent=1).encode() + b"\n")

    def begin(
        self,
        described: Mapping[str, Any],
        command: str,
        *,
        resume: bool,
        may_write: Iterable[str] = (),
        how: str | None = "--resume",
        replaces: bool = False,
    ) -> list[str]:
        """Begin a new run, or resume the one in the folder; return lines that say which.

        `may_write`: names of files that it will write; `how`: the option that resumes it, None if it cannot be; `replaces`:
        whether an interrupted run may be replaced; otherwise that is refused, so that it is not lost by mistake.
        """
        identity = storable(json.loads(json.dumps(described)))
        fresh = f"choose another folder, or delete {self.own} and start again"
        if resume and self._record and (difference := first_difference(self._record["described"], identity)):
            raise ValueError("{} holds another run: {} was {} and is {}; {}.".format(self.out, *difference, fresh))
        is_finished, digests = self.is_finished, run_record.own_digests(self.out, self._record.get("wrote", {}))
        if not (resume and is_finished):
            run_record.check_own(self.out, may_write, digests)
        progress = "" if is_finished or not self._record else self._progress()
        if resume and self._record:
            return self._resumed(is_finished, progress)
        if progress and not replaces:
            raise ValueError(f"{self.out} holds an interrupted run ({progress}); resume it with {how}, or {fresh}.")
        lines = [f"{self.out} holds no run yet: this one starts."] if resume else []
        if replaces and progress:
            lines = [f"{self.out} held an interrupted run ({progress}), which is replaced: --resume was not given."]
        elif replaces and is_finished and (self.out / SUMMARY).is_file():
            day = time.strftime("%Y-%m-%d %H:%M", time.localtime((self.out / SUMMARY).stat().st_mtime))
            lines = [f"replaces the run of {day} in {self.out}"]
        for path in [*(self.own / "groups").glob("*.safetensors"), *(self.own / "checkpoints").glob("*.safetensors")]:
            path.unlink(missing_ok=True)
        self.epochs.path.unlink(missing_ok=True)
        self._record = {"id": secrets.token_hex(8), "command": command, "described": identity, "versions": _versions()}
        with self._changing() as record:
            record |= {"groups": {}, "began": {}, "wrote": digests, "goes_on_with": how}
        return lines

    @property
    def is_finished(self) -> bool:
        return bool(self._record.get("over")) or ("id" in self._record and run_record.is_finished(self.out, self.id))

    def _progress(self) -> str:
        finished = [f"{name} is finished" for name in self._record["groups"]]
        started = [
            f"{name} at epoch {epochs[0]}" + (f" … {epochs[-1]}" if epochs[0] != epochs[-1] else "")
            for name, epochs in self.checkpoints().stands().items()
        ]
        return cut(", ".join(finished + started), LONGEST_WORDS)

    def _resumed(self, is_finished: bool, progress: str) -> list[str]:
        saved = f"{progress}. It resumes from there." if progress else "nothing was saved yet; it starts again."
        words = "and it is finished: nothing is left to do." if is_finished else f"interrupted: {saved}"
        before = self._record.get("versions", {})
        return [f"{self.out} holds this run, {words}"] + [
            f"It was started with {name} {before.get(name)}, this is {version}: results may differ in the last bits."
            for name, version in _versions().items()
            if before.get(name) != version
        ]

    def finished(self, group: str) -> Run | None:
        """Return the run of a finished group, if its file is as it was written."""
        entry = self._record["groups"].get(group)
        for place in (self._group(group), self.out / NETWORKS / f"{group}.safetensors"):
            if entry and place.is_file() and sha256(place) == entry["sha256"]:
                return load(place)
        return None

    def seconds(self, group: str) -> float:
        """Return how long a group has been trained so far, in earlier processes too."""
        return float(self._record["groups"].get(group, {}).get("seconds", self._record["began"].get(group, 0.0)))

    def plan(self, epochs: Mapping[str, float]) -> None:
        """Record how many epochs each group will take, roughly."""
        with self._changing() as record:
            record["plan"] = dict(epochs)

    def describe(self, group: str, settings: Settings) -> None:
        """Record what distinguishes the members of a group; a full disk leaves them without names and ends no training."""
        with suppress(ValueError), self._changing() as record:
            groups = record.setdefault("members", {})
            members = groups.setdefault(group, {})
            room = run_record.MOST_NETWORKS - sum(map(len, groups.values()))
            new = [m for m in settings if str(m) not in members][: max(0, room)]
            for member in (m for m in settings if m in new or str(m) in members):
                members[str(member)] = members.get(str(member), {}) | storable(dict(settings[member]))

    def note(self, group: str, seconds: float) -> None:
        """Record how long an unfinished group has been trained."""
        with self._changing() as record:
            record["began"][group] = round(seconds, 2)

    def finish(self, group: str, run: Run, seconds: float) -> None:
        self.epochs.complete(group, run)
        place = self._group(group)
        with naming_path(place.parent, "cannot be made"):
            place.parent.mkdir(exist_ok=True)
        save(place, run)
        with self._changing() as record:
            record["groups"][group] = {"sha256": sha256(place), "seconds": round(seconds, 2)}

    def _group(self, group: str) -> Path:
        return self.own / "groups" / f"{group}.safetensors"

    def end(self) -> None:
        """Finish a run that publishes no files; its checkpoints stay until another begins."""
        with self._changing() as record:
            record["over"] = True

    def publish(self, files: Mapping[str, bytes | PackedFile], summary: Mapping[str, Any]) -> list[Path]:
        """Write the files of the run, its networks among them, and the summary last; delete those of an earlier run."""
        packed = {name: (file, None) if isinstance(file, bytes) else file for name, file in files.items()}
        digests = {name: hashlib.sha256(data).hexdigest() for name, (data, _) in packed.items()}
        networks = {f"{NETWORKS}/{name}.safetensors": name for name in self._record["groups"]}
        digests |= {name: self._record["groups"][group]["sha256"] for name, group in networks.items()}
        before = run_record.own_digests(self.out, self._record.get("wrote", {}))
        run_record.check_own(self.out, [SUMMARY, *digests], before)
        if self.epochs.path.is_file():
            digests[f"{OWN}/{self.epochs.path.name}"] = sha256(self.epochs.path)
        text = run_record.summary_bytes(summary, self.id, digests)
        digests[SUMMARY] = hashlib.sha256(text).hexdigest()
        with self._changing() as record:
            record["wrote"] = before | {name: [*before.get(name, []), digest] for name, digest in digests.items()}
        (self.out / SUMMARY).unlink(missing_ok=True)
        for name in before:
            if name not in digests and run_record.is_own(self.out, name, before):
                (self.out / name).unlink(missing_ok=True)
        for name, (data, check) in packed.items():
            write_whole(self.out / name, data, check)
        for name, group in networks.items():
            with naming_path(self.out / name, advice="choose another place"):
                (self.out / NETWORKS).mkdir(exist_ok=True)
                if self._group(group).is_file():
                    os.replace(self._group(group), self.out / name)
        write_whole(self.out / SUMMARY, text)
        with self._changing() as record:
            record["wrote"] = {name: [digest] for name, digest in digests.items()}
        self.checkpoints().drop()
        return [self.out / name for name in [*files, SUMMARY]]


def _versions() -> dict[str, str]:
    return {"meristem": meristem.__version__, "jax": jax.__version__, "device": jax.devices()[0].device_kind}


def take_lock(path: Path) -> IO[bytes]:
    """Lock this file, which is made, until the result is closed or the process ends; ValueError if it is locked already."""
    check_kind(path)
    with naming_path(path):
        file = open(path, "ab+", buffering=0, opener=run_record.plain_opener)  # noqa: SIM115  (the lock lives while it is open)
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(LOCKED_BYTE)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.truncate(0)
        file.write(json.dumps({"pid": os.getpid(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}).encode())
    except OSError as error:
        file.close()
        if error.errno in CONTENDED:
            entries = run_record.read_json(path)  # empty if it has not written its name yet
            is_named = type(entries.get("pid")) is int
            holder = f" (process {entries['pid']}, since {str(entries.get('since'))[:40]})" if is_named else ""
            raise ValueError(f"Another run{holder} is writing to this folder; wait for it, or choose another folder.") from None
        problem = f"{str(path)!r} cannot be locked ({error.strerror}); choose a folder on another disk."
        raise not_written(problem, error) from error
    return file
