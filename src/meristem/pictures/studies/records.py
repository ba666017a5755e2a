"""What a study's two files hold, in memory, and what is drawn of it.

    StudyFiles       the runs of summary.json, the arrays of history.npz, and what pictures ask of them
    StudyPictures    plain data that a study gives: what titles call it, its tasks; a subclass knows what the files must hold
                     and what draws them

A study writes its `StudyPictures` into summary.json (`as_json`); files that were written before are found by their name in
`catalog.py`. So a new study with the usual pictures changes nothing here. Models are names: whether a model's size is counted
layer by layer or in the nodes of a tree is what the files say of it.
"""

import abc
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from meristem.pictures.sheet import NAMES, Figure, colors_of

Run = dict[str, Any]  # an entry of summary.json's "runs"
Drawings = dict[str, Callable[["StudyFiles"], Figure]]  # name of a picture → what draws it, in reading order
SIZES = {"layer_sizes": 2, "hard_size": 1, "stage": 1}  # what every run has in history.npz


@dataclass(frozen=True)
class Required:
    """What the files of a study must hold for its pictures."""

    values: tuple[str, ...]  # in every run of summary.json
    nulls: tuple[str, ...]  # there too, but it may be null
    arrays: dict[str, int]  # of every run in history.npz → the number of its axes
    points: dict[str, int] = field(default_factory=dict)  # of every task in history.npz, below data/ → axes
    tried: tuple[str, ...] = ()  # in every setting that was tried, in summary.json


@dataclass(frozen=True)
class StudyPictures(abc.ABC):
    """What is drawn of a study: plain data. `tasks`: the known ones in reading order → how a picture calls them."""

    kind: ClassVar[str]  # by which summary.json names the subclass

    subject: str  # what titles call the study
    tasks: dict[str, str] = field(default_factory=dict)

    @abc.abstractmethod
    def required(self) -> Required:
        """What the files must hold."""

    @abc.abstractmethod
    def rank(self, run: Run) -> float:
        """Of several seeds the one with the lower median is drawn."""

    @abc.abstractmethod
    def drawings(self, files: "StudyFiles") -> Drawings:
        """The pictures there are for what the files hold."""

    def as_json(self) -> dict[str, Any]:
        """As it stands in summary.json, under "pictures"."""
        return {"kind": self.kind, **asdict(self)}

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Self:
        """What `as_json` gave, without its kind."""
        return cls(**fields)


@dataclass(frozen=True)
class StudyFiles:
    """What the two files hold, checked."""

    pictures: StudyPictures
    runs: list[Run]
    paper: dict[str, Any]  # "model/task" → {"soft_size": …}, the paper's
    arrays: dict[str, np.ndarray]  # "model/task/seed/field"; epochs first
    tried: list[Run] = field(default_factory=list)  # each setting of several, and what came of it over its seeds
    path: list[Run] = field(default_factory=list)  # every run of a path of penalties

    @property
    def subject(self) -> str:
        """What titles call it, with the inputs where a study has several."""
        features = {run["features"] for run in self.runs if run.get("features")}
        return self.pictures.subject + (f", from {' and '.join(sorted(features))}" if features else "")

    @property
    def models(self) -> list[str]:
        return _ordered([run["model"] for run in self.runs], list(NAMES))

    @property
    def colors(self) -> dict[str, Any]:
        """Model → its color."""
        return colors_of(self.models)

    @property
    def settings(self) -> list[Run]:
        """Those that were tried, of the models that were run."""
        return [one for one in self.tried if one["model"] in self.models]

    @property
    def tasks(self) -> list[str]:
        return _ordered([run["task"] for run in self.runs], list(self.pictures.tasks))

    @property
    def pictured(self) -> list[str]:
        """The models with a discriminant."""
        return [m for m in self.models if any(self.discriminant(m, task) for task in self.tasks)]

    def label(self, task: str) -> str:
        return self.pictures.tasks.get(task, task)

    def of(self, model: str, task: str) -> list[Run]:
        return [run for run in self.runs if (run["model"], run["task"]) == (model, task)]

    def is_layered(self, model: str) -> bool:
        """Whether its size is counted in units, layer by layer, rather than in the nodes of a tree: a run says so."""
        run = next(run for run in self.runs if run["model"] == model)
        if "layer_sizes" in run:
            return run["layer_sizes"] is not None
        return self.series(run, "layer_sizes").shape[1] > 1

    def middle(self, runs: list[Run]) -> Run:
        return middle(runs, self.pictures.rank)

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


def value_of(run: Run, field: str) -> float | None:
    """None where the run has none, as one that diverged at once."""
    value = run.get(field)
    return None if value is None or not math.isfinite(value) else float(value)


def key(run: Run) -> str:
    """Where history.npz has the run's arrays."""
    return f"{run['model']}/{run['task']}/{run['seed']}"


def _ordered(names: Sequence[str], order: list[str]) -> list[str]:
    """Each name once, the known ones first and in their order."""
    once = list(dict.fromkeys(names))
    return [name for name in order if name in once] + [name for name in once if name not in order]
