"""Checkpoints: trainings in progress, each saved as a file of its run, the last three of each.

    with Checkpoints(folder).keeping(): fit(…)          saves on the way; resumes from a checkpoint of the same training

    LABEL.KEY.EPOCH.safetensors         KEY: a digest of the training's start, its data and its goal

A training is identified by that digest alone, so it finds its checkpoints in whatever order and thread it runs; without one it
is trained again, to the same bits. The newest checkpoint that can be read is used; one that is truncated or damaged is reported
and skipped. Saving takes at most 5 % of the time (train/saving.py).
"""

import functools
import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from meristem.files import load, save
from meristem.files.atomic_write import clean_leftovers, naming_path
from meristem.files.network_file import structure_of
from meristem.files.run_file import pack_run
from meristem.sparse import Scattered
from meristem.train.run import Run
from meristem.train.saving import SECONDS, Record, Saver, checkpoint_store
from meristem.train.training_data import Prepared

N_SAVED = 3
FILE = re.compile(r"(?P<label>.+)\.(?P<key>[0-9a-f]{16})\.(?P<epoch>\d{6,})\.safetensors")


class Checkpoints(Saver):
    """A checkpoint store (train/saving.py) in a folder, which is made; `say` gets a line for what fails."""

    def __init__(self, folder: Path, *, seconds: float = SECONDS, say: Callable[[str], None] = lambda line: None):
        with naming_path(folder, "cannot be written to"):
            folder.mkdir(parents=True, exist_ok=True)
            clean_leftovers(folder)
        super().__init__(self._write, seconds)
        self.folder = folder
        self._report = functools.cache(say)  # the same line once

    def keeping(self, label: str = "run") -> AbstractContextManager[None]:
        """Save the trainings inside under this label, and resume them."""
        newest = functools.partial(self.newest, label)
        return checkpoint_store(KeyedStore(newest, lambda key, make: self.offer((label, key), make), self.spend))

    def drop(self, label: str | None = None) -> None:
        """Delete the checkpoints of this label, or all."""
        self.forget()
        for _, path in self._files(label):
            path.unlink(missing_ok=True)

    def stands(self) -> dict[str, list[int]]:
        """Return the last epoch of each training that has a checkpoint, by label."""
        last = {(match["label"], match["key"]): int(match["epoch"]) for match, _ in self._files()}
        labels = dict.fromkeys(label for label, _ in sorted(last))
        return {name: sorted(epoch for (label, _), epoch in last.items() if label == name) for name in labels}

    def newest(self, label: str, key: str) -> Run | None:
        """Return the newest checkpoint that can be read."""
        for _, path in reversed(self._files(label, key)):
            try:
                run: Run = load(path)
                return run
            except ValueError as error:
                self._report(f"{error} The one before it is used.")
        return None

    def _write(self, name: tuple[str, str], run: Run) -> None:
        label, key = name
        path = self.folder / f"{label}.{key}.{int(run.epochs.max()):06d}.safetensors"
        try:
            save(path, run)
        except ValueError as error:  # training continues; the disk may have room again
            self._report(f"No checkpoint: {error}")
            return
        for _, old in self._files(label, key)[:-N_SAVED]:
            old.unlink(missing_ok=True)

    def _files(self, label: str | None = None, key: str | None = None) -> list[tuple[re.Match[str], Path]]:
        """Return the checkpoints of this label and key, or of all, sorted by epoch."""
        matches = [match for name in os.listdir(self.folder) if (match := FILE.fullmatch(name))]
        selected = [m for m in matches if label in (None, m["label"]) and key in (None, m["key"])]
        return [(match, self.folder / match[0]) for match in sorted(selected, key=lambda match: int(match["epoch"]))]


class KeyedStore:
    """A checkpoint store (train/saving.py) that finds a training by the digest of its start, its data and its goal.

    `newest(key)` returns the newest checkpoint of a training, or None; `offer(key, make)` takes a newer run of it, which is
    made when it is saved; `spend(seconds)` counts time as spent on saving. By default nothing is stored.
    """

    def __init__(
        self,
        newest: Callable[[str], Run | None] = lambda key: None,
        offer: Callable[[str, Callable[[], Run]], None] = lambda key, make: None,
        spend: Callable[[float], None] = lambda seconds: None,
    ):
        self.newest, self.offer, self.spend = newest, offer, spend
        self._digests: dict[int, tuple[Any, bytes]] = {}  # of data, by id; the data are held, so that no other gets their id

    def __call__(self, run: Run, prepared: Prepared, goal: tuple[Any, ...]) -> tuple[Run, Record]:
        """Return the newest checkpoint, or the run itself, and what records its epochs."""
        begin = time.monotonic()
        key = self.key_of(run, prepared.data, goal)
        self.spend(time.monotonic() - begin)
        newest = self.newest(key)
        return run if newest is None else newest, lambda later: self.offer(key, lambda: later)

    def key_of(self, run: Run, data: Any, goal: tuple[Any, ...]) -> str:
        header, arrays = pack_run(run)
        settings = [header["recipe"], structure_of(run.last), run.least_capacity, run.max_capacity, run.capacities]
        text = json.dumps([settings, sorted(arrays), repr(goal)], sort_keys=True)
        if id(data) not in self._digests:
            parts = [array for part in data for array in (part.arrays if isinstance(part, Scattered) else [part])]
            self._digests[id(data)] = data, digest_of(parts)
        digests = [text.encode(), digest_of(arrays[name] for name in sorted(arrays)), self._digests[id(data)][1]]
        return hashlib.sha256(b"".join(digests)).hexdigest()[:16]


def digest_of(data: Iterable[Any]) -> bytes:
    """Return a digest of arrays (or None), their types and shapes."""
    digest = hashlib.sha256()
    for part in data:
        array = np.empty(0) if part is None else np.ascontiguousarray(part)
        digest.update(repr(None if part is None else (array.dtype.str, np.shape(part))).encode())
        digest.update(array.view(np.uint8).data if array.size else b"")
    return digest.digest()
