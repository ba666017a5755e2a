"""The folder of a run: taken by one process, begun or gone on with, and finished by one switch.

    with RunFolder.take(out) as folder:
        said = folder.begin(described, command, resume=True)        what was found, in words; ValueError where it cannot be
        folder.finished("tunnel-easy") or …                         a group that is over, as a run
        folder.finish("tunnel-easy", run, seconds)
        folder.publish(files, summary)

`described` says what a run is: its settings, and digests of its data and models; it goes on only where all of it is the same.
run.json:

    {"id": "…", "command": "…", "described": {…}, "versions": {…}, "groups": {"tunnel-easy": {"sha256": "…", "seconds": 3.2}},
     "began": {"tunnel-easy": 1.3}, "plan": {"tunnel-easy": 450}, "wrote": {"history.npz": ["…"]}, "over": true,
     "members": {"tunnel-easy": {"0": {"penalty": 0.003, "seed": 0}, …}}, "goes_on_with": "--resume"}

"plan": the epochs that groups take, roughly, all members together; "members": what each network of a group is, by its number:
for those who follow (watch/), nothing else.
"goes_on_with": what is said to go on with a run that was interrupted; null where nothing of it is kept.
"""

import hashlib
import json
import os
import secrets
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import jax

import meristem
from meristem.check import cut
from meristem.files import load, save
from meristem.files.kinds import PackedFile
from meristem.files.whole import clean_leftovers, not_written, write_whole
from meristem.folders import lock, owned
from meristem.folders.checkpoints import Checkpoints
from meristem.folders.epochs import LONGEST as LONGEST_EPOCHS, EpochLines
from meristem.folders.owned import OWN, RUN, SUMMARY
from meristem.folders.plain import check_folder, check_length, check_plain
from meristem.folders.record import MOST_NETWORKS, check_record, read_record, storable
from meristem.train.callbacks import Settings
from meristem.train.run import Run

NETWORKS = "networks"
LONGEST_WORDS = 2000  # characters of what is said of the groups of a run


class RunFolder:
    """A folder that this process holds."""

    def __init__(self, out: Path, held: lock.Lock):
        self.out, self.own, self._lock = out, out / OWN, held
        self._state: dict[str, Any] = _state_of(self.own / RUN)
        self._mutex = threading.RLock()
        self.epochs = EpochLines(self.own / "epochs.jsonl", self.describe)

    @staticmethod
    def take(out: Path) -> "RunFolder":
        """Hold the folder, which is there; what killed writers left in it goes.

        ValueError where another process has it, or where something in it is no run's: a link, a pipe, a file that is too long.
        """
        own = out / OWN
        _check_own(own)
        try:
            own.mkdir(exist_ok=True)
            taken = lock.take(own / "lock")
        except OSError as error:
            raise not_written(f"{str(own)!r} cannot be written to ({error.strerror}); choose another folder.", error) from error
        try:
            for folder in (out, out / NETWORKS, own, own / "groups", own / "checkpoints"):
                clean_leftovers(folder)
            return RunFolder(out, taken)
        except BaseException as error:
            taken.release()
            if isinstance(error, OSError):
                words = f"{str(own)!r} cannot be written to ({error.strerror}); choose another folder."
                raise not_written(words, error) from error
            raise

    def __enter__(self) -> "RunFolder":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._lock.release()

    @property
    def id(self) -> str:
        return str(self._state["id"])

    @property
    def command(self) -> str:
        """The one that began the run."""
        return str(self._state["command"])

    def checkpoints(self, **options: Any) -> Checkpoints:
        """Those of the run."""
        return Checkpoints(self.own / "checkpoints", **options)

    # Beginning and going on ---------------------------------------------------------------------------------------------------

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
        """A new run, or the one that is there; in words what was found.

        `may_write`: names of files that it will write; `how`: what to say to go on, None where it cannot; `replaces`: a run
        that is there, and is not gone on with, gives way, which is said. Else one that was interrupted is not lost by mistake.
        """
        there = storable(json.loads(json.dumps(described)))
        if resume and self._state and (what := difference(self._state.get("described"), there)):
            raise ValueError(f"{self.out} holds another run: {what}; choose another folder, or delete {self.own} and begin.")
        is_finished, known = self.is_finished, owned.ledger(self.out)
        if not (resume and is_finished):
            owned.check_ours(self.out, may_write, known)
        if resume and self._state:
            return [*self._words(), *self._other_versions()]
        words = "" if is_finished or not self._state else self._to_lose()
        if words and not replaces:
            raise ValueError(
                f"{self.out} holds a run that was interrupted ({words}); go on with {how}, or delete {self.own} and begin."
            )
        said = [f"{self.out} holds no run yet: it begins."] if resume else self._replaced(words) if replaces else []
        self._clear()
        self._state = {
            "id": secrets.token_hex(8),
            "command": command,
            "described": there,
            "versions": _versions(),
            "groups": {},
            "began": {},
            "wrote": known,
            "goes_on_with": how,
        }
        self._write_state()
        return said

    @property
    def is_finished(self) -> bool:
        return bool(self._state.get("over")) or ("id" in self._state and owned.is_finished(self.out, self.id))

    def _to_lose(self) -> str:
        stands = self.checkpoints().stands()
        over = [f"{name} is over" for name in self._state.get("groups", {})]
        under_way = [f"{name} at epoch {_span(epochs)}" for name, epochs in stands.items() if epochs]
        return cut(", ".join(over + under_way), LONGEST_WORDS)

    def _words(self) -> list[str]:
        if self.is_finished:
            return [f"{self.out} holds this run, and it is finished: nothing is left to do."]
        words = self._to_lose()
        goes_on = f"{words}. It goes on from there." if words else "nothing was saved yet; it begins anew."
        return [f"{self.out} holds this run, interrupted: {goes_on}"]

    def _replaced(self, words: str) -> list[str]:
        """What is said of a run that gives way; `words`: what is lost of one that was interrupted."""
        if words:
            return [f"{self.out} held a run that was interrupted ({words}): it is begun anew, without --resume."]
        if self._state and self.is_finished and (self.out / SUMMARY).is_file():
            day = time.strftime("%Y-%m-%d %H:%M", time.localtime((self.out / SUMMARY).stat().st_mtime))
            return [f"replaces the run of {day} in {self.out}"]
        return []

    def _other_versions(self) -> list[str]:
        was, now = self._state.get("versions", {}), _versions()
        return [
            f"It was begun with {name} {was.get(name)}, this is {now[name]}: the same bits are not promised."
            for name in now
            if was.get(name) != now[name]
        ]

    def _clear(self) -> None:
        """What an earlier run needed to go on."""
        for folder in ("groups", "checkpoints"):
            for path in (self.own / folder).glob("*.safetensors"):
                path.unlink(missing_ok=True)
        self.epochs.path.unlink(missing_ok=True)

    # Groups -------------------------------------------------------------------------------------------------------------------

    def finished(self, group: str) -> Run | None:
        """The run of a group that is over, if it is as it was written."""
        entry = self._state["groups"].get(group)
        for place in (self._group(group), self.out / NETWORKS / f"{group}.safetensors"):
            if entry and place.is_file() and owned.sha256(place) == entry["sha256"]:
                return load(place)
        return None

    def seconds(self, group: str) -> float:
        """How long a group has been trained so far, in earlier processes too."""
        return float(self._state["groups"].get(group, {}).get("seconds", self._state["began"].get(group, 0.0)))

    def plan(self, epochs: Mapping[str, float]) -> None:
        """How many epochs each group will take, roughly."""
        with self._mutex:
            self._state["plan"] = dict(epochs)
            self._write_state()

    def describe(self, group: str, settings: Settings) -> None:
        """What members of a group are. A disk that is full does not end a training: then they have no names."""
        with self._mutex, suppress(ValueError):
            named = self._state.setdefault("members", {})
            members = named.setdefault(group, {})
            room = MOST_NETWORKS - sum(map(len, named.values()))
            members |= dict([(str(member), storable(dict(own))) for member, own in settings.items()][: max(0, room)])
            self._write_state()

    def note(self, group: str, seconds: float) -> None:
        """A group that is under way has been trained for so long."""
        with self._mutex:
            self._state["began"][group] = round(seconds, 2)
            self._write_state()

    def finish(self, group: str, run: Run, seconds: float) -> None:
        """A group is over: its networks are kept at once."""
        self.epochs.complete(group, run)
        place = self._group(group)
        _make(place.parent)
        save(place, run)
        with self._mutex:
            self._state["groups"][group] = {"sha256": owned.sha256(place), "seconds": round(seconds, 2)}
            self._write_state()

    def _group(self, group: str) -> Path:
        return self.own / "groups" / f"{group}.safetensors"

    # The end ------------------------------------------------------------------------------------------------------------------

    def end(self) -> None:
        """A run without files of its own is over; its checkpoints stay until another begins."""
        with self._mutex:
            self._state["over"] = True
            self._write_state()

    def publish(self, files: Mapping[str, bytes | PackedFile], summary: Mapping[str, Any]) -> list[Path]:
        """The files of the run, its networks among them, and at last the summary; those of an earlier run go."""
        groups = {f"{NETWORKS}/{group}.safetensors": entry["sha256"] for group, entry in self._state["groups"].items()}
        data = {name: file.data if isinstance(file, PackedFile) else file for name, file in files.items()}
        digests = {name: hashlib.sha256(content).hexdigest() for name, content in data.items()} | groups
        told = {f"{OWN}/{self.epochs.path.name}": owned.sha256(self.epochs.path)} if self.epochs.path.is_file() else {}
        written = owned.summary_bytes(summary, self.id, digests | told)
        known = owned.ledger(self.out)
        owned.check_ours(self.out, [SUMMARY, *digests], known)
        kept = {SUMMARY, *digests, *told}
        stale = [name for name in known if name not in kept and owned.is_ours(self.out, name, known)]
        new = digests | told | {SUMMARY: hashlib.sha256(written).hexdigest()}
        with self._mutex:  # the ledger first: whatever happens, the next run knows what is ours
            self._state["wrote"] = {name: [*known.get(name, []), *([new[name]] if name in new else [])] for name in known | new}
            self._write_state()
        (self.out / SUMMARY).unlink(missing_ok=True)
        for name in stale:
            (self.out / name).unlink(missing_ok=True)
        for name, file in files.items():
            write_whole(self.out / name, *(file if isinstance(file, PackedFile) else (file,)))
        for name in groups:
            _make((self.out / name).parent)
            source = self.own / "groups" / Path(name).name
            if source.is_file():
                _move(source, self.out / name)
        write_whole(self.out / SUMMARY, written)
        with self._mutex:
            self._state["wrote"] = {name: [digest] for name, digest in new.items()}
            self._write_state()
        self.checkpoints().drop()
        return [self.out / name for name in [*files, SUMMARY]]

    def _write_state(self) -> None:
        write_whole(self.own / RUN, json.dumps(self._state, indent=1).encode() + b"\n")


def difference(was: Any, now: Any, place: str = "") -> str | None:
    """The first entry in which two descriptions differ, in words.

    >>> difference({"settings": {"seeds": 3}}, {"settings": {"seeds": 2}})
    'settings.seeds was 3 and is 2'
    """
    if isinstance(was, dict) and isinstance(now, dict):
        found = (difference(was.get(name), now.get(name), f"{place}.{name}" if place else name) for name in was | now)
        return next((words for words in found if words), None)
    if was == now:
        return None
    return f"{place} was {_short(was)} and is {_short(now)}"


def _short(value: Any) -> str:
    text = "not there" if value is None else json.dumps(value)
    return text if len(text) <= 60 else f"{text[:60]} …"


def _span(epochs: list[int]) -> str:
    return str(epochs[0]) if epochs[0] == epochs[-1] else f"{epochs[0]} … {epochs[-1]}"


def _check_own(own: Path) -> None:
    """Raise ValueError of one line where a part of a run's own folder is something else, such as a link to elsewhere."""
    for folder in (own, own / "groups", own / "checkpoints"):
        check_folder(folder)
    for name in ("lock", RUN, "epochs.jsonl"):
        check_plain(own / name)
    check_length(own / "epochs.jsonl", LONGEST_EPOCHS)


def _state_of(path: Path) -> dict[str, Any]:
    record = read_record(path)
    if record is not None:
        check_record(path, record)
    return record or {}


def _versions() -> dict[str, str]:
    return {"meristem": meristem.__version__, "jax": jax.__version__, "device": jax.devices()[0].device_kind}


def _make(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise not_written(f"{str(folder)!r} cannot be made ({error.strerror}); choose another folder.", error) from error


def _move(source: Path, place: Path) -> None:
    try:
        os.replace(source, place)
    except OSError as error:
        raise not_written(f"{str(place)!r} cannot be written ({error.strerror}); choose another place.", error) from error
