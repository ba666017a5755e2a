"""Checkpoints: the trainings that are under way, each as a file of its run (`meristem.save`), the last three of each.

    with Checkpoints(folder).keeping(): fit(…)          saved on the way; what was kept of the same training goes on

    LABEL.KEY.EPOCH.safetensors         KEY: a digest of what the training starts from, of its data and its goal

A training is known by that digest alone, so that anything that is trained again, in whatever order and thread, finds what was
kept of it; what was not kept is trained again, to the same bits. The newest that can be read is used; one that is truncated or
damaged is passed over, which is said. Saving takes at most 5 % of the time (train/saving.py).
"""

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from meristem.files import load, recipe, save
from meristem.files.arrays import by_path
from meristem.files.network import structure_of
from meristem.files.whole import clean_leftovers, not_written
from meristem.train.run import Run
from meristem.train.saving import SECONDS, Record, Saver, checkpoint_store
from meristem.train.training_data import Lazy, Prepared

KEPT = 3
FILE = re.compile(r"(?P<label>.+)\.(?P<key>[0-9a-f]{16})\.(?P<epoch>\d{6,})\.safetensors")


class Checkpoints:
    """A checkpoint store (train/saving.py) in a folder, which is made.

    `say` gets a line for what cannot be read or written.

    >>> import jax, tempfile
    >>> from meristem import fit
    >>> from meristem.data.spirals import two_spirals
    >>> from meristem.nn import Network
    >>> network = Network.create("tunnel", 2, 1, width=3, depth=2, key=jax.random.key(0))
    >>> given = {"learning_rate": 3e-3, "penalty": 1e-3, "key": jax.random.key(1), "max_epochs": 3}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for _ in range(2):                                      # the second time it is there already
    ...         checkpoints = Checkpoints(Path(folder), seconds=0)
    ...         with checkpoints.keeping():
    ...             run = fit(network, two_spirals("easy"), **given)
    ...         checkpoints.now()
    ...         int(run.epochs), checkpoints.stands()
    (3, {'run': [3]})
    (3, {'run': [3]})
    """

    def __init__(self, folder: Path, *, seconds: float = SECONDS, say: Callable[[str], None] = lambda line: None):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            clean_leftovers(folder)
        except OSError as error:
            raise not_written(
                f"{str(folder)!r} cannot be written to ({error.strerror}); choose another folder.", error
            ) from error
        self.folder, self._say, self._label = folder, say, "run"
        self._saver = Saver(self._write, seconds)
        self._digests: dict[int, tuple[Any, bytes]] = {}  # of data, by their identity; they are held, so that it stays theirs
        self._told: set[str] = set()

    @property
    def spent(self) -> float:
        """Seconds that keeping has taken."""
        return self._saver.spent

    @contextmanager
    def keeping(self, label: str = "run") -> Iterator[None]:
        """What is trained inside is kept under this name."""
        before, self._label = self._label, label
        try:
            with checkpoint_store(self):
                yield
        finally:
            self._label = before

    def now(self) -> None:
        """Everything that is not on the disk yet."""
        self._saver.now()

    def close(self) -> None:
        """Wait for what is being written."""
        self._saver.close()

    def drop(self, label: str | None = None) -> None:
        """Those of this name, or all, are not needed any more."""
        self._saver.forget()
        for _, path in self._files(label):
            path.unlink(missing_ok=True)

    def stands(self) -> dict[str, list[int]]:
        """Label → the last epoch of each training that is kept."""
        last: dict[tuple[str, str], int] = {}
        for found, _ in self._files():
            place = found["label"], found["key"]
            last[place] = max(last.get(place, 0), int(found["epoch"]))
        labels = dict.fromkeys(label for label, _ in sorted(last))
        return {name: sorted(epoch for (label, _), epoch in last.items() if label == name) for name in labels}

    def restore(self, run: Run, prepared: Prepared, goal: tuple[Any, ...]) -> tuple[Run, Record]:
        """See train/saving.py."""
        begin = time.monotonic()
        label, key = self._label, self._key(run, prepared, goal)
        self._saver.spend(time.monotonic() - begin)

        def record(later: Run) -> None:
            self._saver.offer((label, key), lambda: later)

        return self._newest(label, key) or run, record

    def _key(self, run: Run, prepared: Prepared, goal: tuple[Any, ...]) -> str:
        # As in a file, but unchecked: to check what `begin` has just made would take longer than an epoch.
        parts = {"state": run.state, "best": run.best, "knobs": run.knobs._asdict(), "history": run.history}
        arrays = by_path(parts | {"best_epoch": run.best_epoch, "begun_at": run.begun_at})
        how = [recipe.pack(run.recipe), structure_of(run.last), run.least_capacity, run.max_capacity, run.capacities]
        text = json.dumps([how, sorted(arrays), repr(goal)], sort_keys=True)
        digests = [text.encode(), digest_of(arrays[name] for name in sorted(arrays)), self._digest(prepared.data)]
        return hashlib.sha256(b"".join(digests)).hexdigest()[:16]

    def _digest(self, data: Any) -> bytes:
        if id(data) not in self._digests:
            parts = [array for part in data for array in (part.arrays if isinstance(part, Lazy) else [part])]
            self._digests[id(data)] = data, digest_of(parts)
        return self._digests[id(data)][1]

    def _newest(self, label: str, key: str) -> Run | None:
        for _, path in sorted(self._files(label, key), key=lambda one: -int(one[0]["epoch"])):
            try:
                return load(path)
            except ValueError as error:
                self._tell(f"{error} The one before it is used.")
        return None

    def _write(self, name: tuple[str, str], run: Run) -> None:
        label, key = name
        path = self.folder / f"{label}.{key}.{int(run.epochs.max()):06d}.safetensors"
        try:
            save(path, run)
        except ValueError as error:  # the training can go on; the disk may have room again
            self._tell(f"No checkpoint: {error}")
            return
        files = sorted(self._files(label, key), key=lambda one: int(one[0]["epoch"]))
        for _, old in files[:-KEPT]:
            old.unlink(missing_ok=True)

    def _files(self, label: str | None = None, key: str | None = None) -> list[tuple[re.Match[str], Path]]:
        found = [(FILE.fullmatch(name), self.folder / name) for name in os.listdir(self.folder)]
        return [
            (match, path) for match, path in found if match and label in (None, match["label"]) and key in (None, match["key"])
        ]

    def _tell(self, line: str) -> None:
        if line not in self._told:
            self._told.add(line)
            self._say(line)


def digest_of(data: Iterable[Any]) -> bytes:
    """Of arrays, their types and shapes; None where there is none.

    >>> digest_of([np.zeros(3), None]) == digest_of([np.zeros(3), None]) != digest_of([np.zeros((3, 1)), None])
    True
    """
    digest = hashlib.sha256()
    for part in data:
        array = None if part is None else np.ascontiguousarray(part)
        digest.update(repr(None if array is None else (array.dtype.str, np.shape(part))).encode())
        if array is not None:
            digest.update(array.view(np.uint8).data if array.size else b"")
    return digest.digest()
