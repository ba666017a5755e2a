"""The folder of a run, held by one process: a run is begun or resumed in it, its groups are saved, its files published.

    with RunFolder.take(out) as folder:
        lines = folder.begin(described, command, resume=True)       what the folder held, in words; ValueError if refused
        folder.finished("tunnel-easy") or …                         a finished group, as a run
        folder.finish("tunnel-easy", run, seconds)
        folder.publish(files, summary)

`described` identifies a run: its settings, and digests of its data and models; it resumes only where all of it is the same.
"""

import json
import secrets
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
from meristem.files.atomic_write import clean_leftovers, naming_path, write_whole
from meristem.files.file_kinds import PackedFile
from meristem.folders import ownership
from meristem.folders.checkpoints import Checkpoints
from meristem.folders.epoch_lines import LONGEST as LONGEST_EPOCHS, EpochLines
from meristem.folders.ownership import OWN, RUN, SUMMARY, make_folder, sha256
from meristem.folders.plain_files import check_folder, check_length, check_plain, take_lock
from meristem.folders.run_record import MOST_NETWORKS, check_record, difference, read_record, storable
from meristem.train.callbacks import Settings
from meristem.train.run import Run

NETWORKS = "networks"
LONGEST_WORDS = 2000  # characters of what is said of the groups of a run


class RunFolder:
    """A folder that this process has locked."""

    def __init__(self, out: Path, lock: IO[str]):
        self.out, self.own, self._lock = out, out / OWN, lock
        record = read_record(self.own / RUN)
        if record is not None:
            check_record(self.own / RUN, record)
        self._record: dict[str, Any] = record or {}
        self._mutex = threading.RLock()
        self.epochs = EpochLines(self.own / "epochs.jsonl", self.describe)

    @staticmethod
    def take(out: Path) -> "RunFolder":
        """Lock the folder, which exists, and delete what killed writers left in it.

        ValueError if another process has it, or if a part of it is not a run's: a link, a pipe, a file that is too long.
        """
        own = out / OWN
        for folder in (own, own / "groups", own / "checkpoints"):
            check_folder(folder)
        for name in ("lock", RUN, "epochs.jsonl"):
            check_plain(own / name)
        check_length(own / "epochs.jsonl", LONGEST_EPOCHS)
        with naming_path(own, "cannot be written to"):
            own.mkdir(exist_ok=True)
            lock = take_lock(own / "lock")
            try:
                for folder in (out, out / NETWORKS, own, own / "groups", own / "checkpoints"):
                    clean_leftovers(folder)
                return RunFolder(out, lock)
            except BaseException:
                lock.close()
                raise

    def __enter__(self) -> "RunFolder":
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.close()

    @property
    def id(self) -> str:
        return str(self._record["id"])

    @property
    def command(self) -> str:
        """The command that began the run."""
        return str(self._record["command"])

    def checkpoints(self, **options: Any) -> Checkpoints:
        """Return the checkpoint store of the run."""
        return Checkpoints(self.own / "checkpoints", **options)

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Any]]:
        """Yield the record to change it, and write it."""
        with self._mutex:
            yield self._record
            self._write_record()

    def _write_record(self) -> None:
        write_whole(self.own / RUN, json.dumps(self._record, indent=1).encode() + b"\n")

    # Begin and resume ---------------------------------------------------------------------------------------------------------

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
        whether an interrupted run may be replaced. Else beginning anew is refused, so that it is not lost by mistake.
        """
        identity = storable(json.loads(json.dumps(described)))
        if resume and self._record and (what := difference(self._record.get("described"), identity)):
            raise ValueError(f"{self.out} holds another run: {what}; choose another folder, or delete {self.own} and begin.")
        is_finished, digests = self.is_finished, ownership.own_digests(self.out)
        if not (resume and is_finished):
            ownership.check_own(self.out, may_write, digests)
        if resume and self._record:
            return [self._resumed_words(), *self._changed_versions()]
        progress = "" if is_finished or not self._record else self._progress()
        if progress and not replaces:
            raise ValueError(
                f"{self.out} holds a run that was interrupted ({progress}); go on with {how}, or delete {self.own} and begin."
            )
        lines = [f"{self.out} holds no run yet: it begins."] if resume else self._replaced_words(progress) if replaces else []
        for path in [*(self.own / "groups").glob("*.safetensors"), *(self.own / "checkpoints").glob("*.safetensors")]:
            path.unlink(missing_ok=True)
        self.epochs.path.unlink(missing_ok=True)
        self._record = {
            "id": secrets.token_hex(8),
            "command": command,
            "described": identity,
            "versions": _versions(),
            "groups": {},
            "began": {},
            "wrote": digests,
            "goes_on_with": how,
        }
        self._write_record()
        return lines

    @property
    def is_finished(self) -> bool:
        return bool(self._record.get("over")) or ("id" in self._record and ownership.is_finished(self.out, self.id))

    def _progress(self) -> str:
        """Return in words what an interrupted run has saved."""
        finished = [f"{name} is over" for name in self._record.get("groups", {})]
        under_way = [
            f"{name} at epoch {epochs[0]}" + (f" … {epochs[-1]}" if epochs[0] != epochs[-1] else "")
            for name, epochs in self.checkpoints().stands().items()
            if epochs
        ]
        return cut(", ".join(finished + under_way), LONGEST_WORDS)

    def _resumed_words(self) -> str:
        if self.is_finished:
            return f"{self.out} holds this run, and it is finished: nothing is left to do."
        progress = self._progress()
        words = f"{progress}. It goes on from there." if progress else "nothing was saved yet; it begins anew."
        return f"{self.out} holds this run, interrupted: {words}"

    def _replaced_words(self, progress: str) -> list[str]:
        if progress:
            return [f"{self.out} held a run that was interrupted ({progress}): it is begun anew, without --resume."]
        if self._record and self.is_finished and (self.out / SUMMARY).is_file():
            day = time.strftime("%Y-%m-%d %H:%M", time.localtime((self.out / SUMMARY).stat().st_mtime))
            return [f"replaces the run of {day} in {self.out}"]
        return []

    def _changed_versions(self) -> list[str]:
        before = self._record.get("versions", {})
        return [
            f"It was begun with {name} {before.get(name)}, this is {version}: the same bits are not promised."
            for name, version in _versions().items()
            if before.get(name) != version
        ]

    # Groups -------------------------------------------------------------------------------------------------------------------

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
            room = MOST_NETWORKS - sum(map(len, groups.values()))
            members |= dict([(str(member), storable(dict(own))) for member, own in settings.items()][: max(0, room)])

    def note(self, group: str, seconds: float) -> None:
        """Record how long an unfinished group has been trained."""
        with self._changing() as record:
            record["began"][group] = round(seconds, 2)

    def finish(self, group: str, run: Run, seconds: float) -> None:
        """Save the run of a finished group."""
        self.epochs.complete(group, run)
        place = self._group(group)
        make_folder(place.parent)
        save(place, run)
        with self._changing() as record:
            record["groups"][group] = {"sha256": sha256(place), "seconds": round(seconds, 2)}

    def _group(self, group: str) -> Path:
        return self.own / "groups" / f"{group}.safetensors"

    # Finish -------------------------------------------------------------------------------------------------------------------

    def end(self) -> None:
        """Finish a run that publishes no files; its checkpoints stay until another begins."""
        with self._changing() as record:
            record["over"] = True

    def publish(self, files: Mapping[str, bytes | PackedFile], summary: Mapping[str, Any]) -> list[Path]:
        """Write the files of the run, its networks among them, and the summary last; delete those of an earlier run."""
        groups = self._record["groups"].items()
        networks = {f"{NETWORKS}/{name}.safetensors": (self._group(name), entry["sha256"]) for name, entry in groups}
        lines = self.epochs.path
        unchanged = {f"{OWN}/{lines.name}": sha256(lines)} if lines.is_file() else {}

        def record_digests(digests: ownership.Digests) -> None:
            with self._changing() as record:
                record["wrote"] = digests

        ownership.publish(self.out, self.id, summary, files, networks, unchanged, record_digests)
        self.checkpoints().drop()
        return [self.out / name for name in [*files, SUMMARY]]


def _versions() -> dict[str, str]:
    return {"meristem": meristem.__version__, "jax": jax.__version__, "device": jax.devices()[0].device_kind}
