"""Checkpoints of a study: finished groups are loaded, and the interrupted one continues from its last checkpoint.

    checkpoints = StudyCheckpoints(folder, folder.checkpoints())
    run, seconds = checkpoints.train("tunnel", "easy", lambda watchers: fit(…, watch=watchers))

A group is one population, a model on a task, and is called `tunnel-easy`; further ones of the same model and task (other rates,
other preprocessing) are numbered: `tunnel-easy-2`. The options alone determine the order of training, so a resumed study gives
each group the same name.
"""

import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from meristem.experiments.options import Options
from meristem.experiments.study import Task
from meristem.experiments.study_training import Train
from meristem.files.run_file import pack_recipe
from meristem.folders.checkpoints import Checkpoints, digest_of
from meristem.folders.run_folder import RunFolder
from meristem.train.run import Run


class StudyCheckpoints:
    """Trains the groups of a study in a run folder."""

    def __init__(self, folder: RunFolder, checkpoints: Checkpoints):
        self.folder, self.checkpoints, self._counts = folder, checkpoints, Counter[str]()
        self._current: tuple[str, float] | None = None  # the group being trained, and its start less the time trained before

    def train(self, model: str, task: str, train: Train) -> tuple[Run, float]:
        """Return the run of a group and its training time in seconds, loaded or trained."""
        name = group_name(model, task)
        self._counts[name] += 1
        if self._counts[name] > 1:
            name = f"{name}-{self._counts[name]}"
        finished = self.folder.finished(name)
        if finished is not None:
            return finished, self.folder.seconds(name)
        start = time.perf_counter() - self.folder.seconds(name)
        self._current = name, start
        with self.checkpoints.keeping(name):
            run = train([self.folder.epochs.watcher(name)])
        seconds, self._current = time.perf_counter() - start, None
        self.folder.finish(name, run, seconds)
        self.checkpoints.drop(name)
        return run, seconds

    def save_now(self) -> None:
        """Write a checkpoint, as the process is about to end."""
        self.checkpoints.now()
        if self._current is not None:
            name, start = self._current
            self.folder.note(name, time.perf_counter() - start)


def group_name(model: str, task: str) -> str:
    """Return the name of the first group of a model on a task.

    >>> group_name("tunnel", "two: easy")
    'tunnel-two__easy'
    """
    return re.sub(r"[^A-Za-z0-9_-]", "_", f"{model}-{task}")[:80]


def study_config(options: Options, tasks: Sequence[Task]) -> dict[str, Any]:
    """Return what must be equal for a study to be resumed: settings, data and models, but no paths."""
    settings = {field.name: getattr(options, field.name) for field in fields(options)}
    data, models = {}, {}
    for n, task in enumerate(tasks):
        name = f"{n}: {task.name}"
        data[name] = {"training": digest_of(task.data).hex()[:16], "test": digest_of(task.test or ()).hex()[:16]}
        size = {"outputs": task.n_out, "width": task.width, "depth": task.depth, "learns_width": task.learns_width}
        models[name] = size | {"recipe": pack_recipe(task.recipe)}
    return {
        "settings": {name: value for name, value in settings.items() if not _has_paths(value)},
        "data": data,
        "model": models,
    }


def _has_paths(value: Any) -> bool:
    return any(isinstance(entry, Path) for entry in (value if isinstance(value, tuple) else (value,)))
