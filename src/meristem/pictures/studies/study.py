"""A study in memory, and what is known of its kind: an `Experiment` is data that the reader of files and the pictures share."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from meristem.pictures.sheet import NAMES, Figure

Run = dict[str, Any]  # an entry of summary.json's "runs"
Pictures = dict[str, Callable[["Study"], Figure]]  # name → what draws it, in reading order


@dataclass(frozen=True)
class Experiment:
    """A kind of study: what its files must hold, and what is drawn of them."""

    subject: str  # what titles call it
    tasks: dict[str, str]  # the known ones in reading order → how a picture calls them
    values: tuple[str, ...]  # what a run must have in summary.json
    nulls: tuple[str, ...]  # what it must have there too, but which may be null
    arrays: dict[str, int]  # what a run must have in history.npz → the number of its axes
    rank: Callable[[Run], float]  # of several seeds the one with the lower median is drawn
    pictures: Callable[["Study"], Pictures]
    points: dict[str, int] = field(default_factory=dict)  # what a task must have in history.npz, below data/ → axes
    tried: tuple[str, ...] = ()  # what a setting that was tried must have in summary.json


@dataclass(frozen=True)
class Study:
    """What the two files hold, checked."""

    experiment: Experiment
    runs: list[Run]
    paper: dict[str, Any]  # "model/task" → {"soft_size": …}, the paper's
    arrays: dict[str, np.ndarray]  # "model/task/seed/field"; epochs first
    tried: list[Run] = field(default_factory=list)  # each setting of several: its knobs, and what came of it over its seeds

    @property
    def subject(self) -> str:
        """What titles call it, with the inputs where an experiment has several."""
        features = {run["features"] for run in self.runs if run.get("features")}
        return self.experiment.subject + (f", from {' and '.join(sorted(features))}" if features else "")

    @property
    def models(self) -> list[str]:
        return _ordered([run["model"] for run in self.runs], list(NAMES))

    @property
    def named(self) -> list[str]:
        """The models that have a picture of their own."""
        return [model for model in self.models if model in NAMES]

    @property
    def tasks(self) -> list[str]:
        return _ordered([run["task"] for run in self.runs], list(self.experiment.tasks))

    @property
    def pictured(self) -> list[str]:
        """The models with a discriminant."""
        return [m for m in self.models if any(self.discriminant(m, task) for task in self.tasks)]

    def label(self, task: str) -> str:
        return self.experiment.tasks.get(task, task)

    def of(self, model: str, task: str) -> list[Run]:
        return [run for run in self.runs if (run["model"], run["task"]) == (model, task)]

    def middle(self, runs: list[Run]) -> Run:
        return middle(runs, self.experiment.rank)

    def series(self, run: Run, field: str) -> np.ndarray:
        return self.arrays[f"{key(run)}/{field}"]

    def paper_value(self, model: str, task: str, field: str) -> float | None:
        """The paper's figure for something that was run here, or None."""
        return self.paper.get(f"{model}/{task}", {}).get(field) if self.of(model, task) else None

    def discriminant(self, model: str, task: str) -> tuple[Run, np.ndarray] | None:
        """The middle seed's, or else that of the first seed which has one."""
        runs = self.of(model, task)
        for run in [self.middle(runs), *runs] if runs else []:
            if f"{key(run)}/discriminant" in self.arrays:
                return run, self.series(run, "discriminant").astype(float)
        return None


def middle(runs: list[Run], rank: Callable[[Run], float]) -> Run:
    """The run whose rank is the lower median; equals go by their seed.

    >>> middle([{"seed": s, "dev_error": e} for s, e in enumerate([0.3, 0.2, 0.1, 0.4])], lambda run: run["dev_error"])["seed"]
    1
    """
    return sorted(runs, key=lambda run: (rank(run), run["seed"]))[(len(runs) - 1) // 2]


def key(run: Run) -> str:
    """Where history.npz has the run's arrays."""
    return f"{run['model']}/{run['task']}/{run['seed']}"


def _ordered(names: list[str], order: list[str]) -> list[str]:
    """Each name once, the known ones first and in their order."""
    once = list(dict.fromkeys(names))
    return [name for name in order if name in once] + [name for name in once if name not in order]
