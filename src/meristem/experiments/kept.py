"""What a study keeps while it runs, to go on after whatever ends it: each group that is over, and where the next one is.

    kept = Kept(folder, checkpoints)
    run, seconds = kept.train("tunnel", "easy", lambda watchers: fit(…, watch=watchers))

A group is one population: a model on a task. It is called by both, `tunnel-easy`; where there are several of the same (rates
that are tried one after another, ways to prepare a task) by their number, too: `tunnel-easy-2`. Studies train in an order that
their options alone decide, so that a study which goes on gives each group the same name.
"""

import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from meristem.experiments.options import Options
from meristem.experiments.runs import Task, Train
from meristem.files.run_file import pack_recipe
from meristem.folders.checkpoints import Checkpoints, digest_of
from meristem.folders.run_folder import RunFolder
from meristem.train.run import Run


class Kept:
    """In a folder."""

    def __init__(self, folder: RunFolder, checkpoints: Checkpoints):
        self.folder, self.checkpoints, self._counts = folder, checkpoints, Counter[str]()
        self._now: tuple[str, float] | None = None  # the group that is under way, and when it began, less what came before

    def train(self, model: str, task: str, train: Train) -> tuple[Run, float]:
        """The run of a group, and the seconds that it took: kept, or trained and then kept."""
        name = self._name(model, task)
        there = self.folder.finished(name)
        if there is not None:
            return there, self.folder.seconds(name)
        begin = time.perf_counter() - self.folder.seconds(name)
        self._now = name, begin
        with self.checkpoints.keeping(name):
            run = train([self.folder.epochs.watcher(name)])
        seconds, self._now = time.perf_counter() - begin, None
        self.folder.finish(name, run, seconds)
        self.checkpoints.drop(name)
        return run, seconds

    def now(self) -> None:
        """The process is about to end: what there is goes to the disk."""
        self.checkpoints.now()
        if self._now is not None:
            name, begin = self._now
            self.folder.note(name, time.perf_counter() - begin)

    def _name(self, model: str, task: str) -> str:
        name = group_name(model, task)
        self._counts[name] += 1
        return name if self._counts[name] == 1 else f"{name}-{self._counts[name]}"


def group_name(model: str, task: str) -> str:
    """Of the first group of a model on a task.

    >>> group_name("tunnel", "two: easy")
    'tunnel-two__easy'
    """
    return re.sub(r"[^A-Za-z0-9_-]", "_", f"{model}-{task}")[:80]


def described(options: Options, tasks: Sequence[Task]) -> dict[str, Any]:
    """What makes a study the same: its settings, its data, its models. Where its files lie is no part of it."""
    given = {one.name: getattr(options, one.name) for one in fields(options)}
    return {
        "settings": {name: value for name, value in given.items() if not _has_paths(value)},
        "data": {f"{n}: {task.name}": _data(task) for n, task in enumerate(tasks)},
        "model": {
            f"{n}: {task.name}": {
                "outputs": task.n_out,
                "width": task.width,
                "depth": task.depth,
                "learns_width": task.learns_width,
                "recipe": pack_recipe(task.recipe),
            }
            for n, task in enumerate(tasks)
        },
    }


def _data(task: Task) -> Mapping[str, str]:
    parts = {"training": task.data, "test": task.test or ()}
    return {name: digest_of(part).hex()[:16] for name, part in parts.items()}


def _has_paths(value: Any) -> bool:
    return isinstance(value, Path) or (isinstance(value, tuple) and any(isinstance(one, Path) for one in value))
