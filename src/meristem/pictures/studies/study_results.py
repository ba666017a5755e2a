"""The results of a study in memory, and the base class of what is drawn of them.

    StudyResults     the runs of summary.json and the arrays of history.npz
    StudyPictures    plain data of a study: the names in titles, its tasks; a subclass knows which figures there are

A study writes its `StudyPictures` into summary.json (`as_json`), so a new study with the usual figures changes nothing here.
Whether a model is a stack of layers or a tree is read from its runs.
"""

import abc
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from meristem.pictures.figure_style import NAMES, Figure, model_colors

Run = dict[str, Any]  # an entry of summary.json's "runs"
Drawings = dict[str, Callable[["StudyResults"], Figure]]  # name of a figure → function that draws it, in reading order
SIZES = {"layer_sizes": 2, "hard_size": 1, "stage": 1}  # arrays of every run in history.npz → number of axes


@dataclass(frozen=True)
class Required:
    """What the files of a study must hold for its figures."""

    values: tuple[str, ...]  # of every run in summary.json
    nullable: tuple[str, ...]  # of every run too, but it may be null
    arrays: dict[str, int]  # of every run in history.npz → number of axes
    points: dict[str, int] = field(default_factory=dict)  # of every task in history.npz, below data/ → number of axes
    tried: tuple[str, ...] = ()  # of every tried setting in summary.json


@dataclass(frozen=True)
class StudyPictures(abc.ABC):
    """What is drawn of a study, as plain data."""

    kind: ClassVar[str]  # the name of the subclass in summary.json

    subject: str  # the study's name in titles
    tasks: dict[str, str] = field(default_factory=dict)  # name of a task → its label, in reading order

    @abc.abstractmethod
    def required(self) -> Required:
        """Return what the files must hold."""

    @abc.abstractmethod
    def rank(self, run: Run) -> float:
        """Return the value whose lower median is the seed that is drawn."""

    @abc.abstractmethod
    def drawings(self, results: "StudyResults") -> Drawings:
        """Return the figures that can be drawn of these results."""

    def as_json(self) -> dict[str, Any]:
        """Return what summary.json holds under "pictures"."""
        return {"kind": self.kind, **asdict(self)}

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Self:
        """Return the inverse of `as_json`, whose result comes without its kind."""
        return cls(**fields)


@dataclass(frozen=True)
class StudyResults:
    """The validated content of summary.json and history.npz."""

    pictures: StudyPictures
    runs: list[Run]
    paper: dict[str, Any]  # "model/task" → {"soft_size": …}, as reported in the paper
    arrays: dict[str, np.ndarray]  # "model/task/seed/field", epochs first
    tried: list[Run] = field(default_factory=list)  # each setting that was tried, averaged over its seeds
    path: list[Run] = field(default_factory=list)  # every run of a penalty path

    @property
    def subject(self) -> str:
        """The name in titles, with the features where a study has several kinds."""
        features = {run["features"] for run in self.runs if run.get("features")}
        return self.pictures.subject + (f", from {' and '.join(sorted(features))}" if features else "")

    @property
    def models(self) -> list[str]:
        return _ordered([run["model"] for run in self.runs], list(NAMES))

    @property
    def tasks(self) -> list[str]:
        return _ordered([run["task"] for run in self.runs], list(self.pictures.tasks))

    @property
    def colors(self) -> dict[str, Any]:
        return model_colors(self.models)

    @property
    def settings(self) -> list[Run]:
        """The tried settings of the models that have runs."""
        return [setting for setting in self.tried if setting["model"] in self.models]

    @property
    def models_with_discriminant(self) -> list[str]:
        return [model for model in self.models if any(self.discriminant(model, task) for task in self.tasks)]

    def task_label(self, task: str) -> str:
        return self.pictures.tasks.get(task, task)

    def runs_of(self, model: str, task: str) -> list[Run]:
        return [run for run in self.runs if (run["model"], run["task"]) == (model, task)]

    def is_layered(self, model: str) -> bool:
        """Return whether a model's size is counted in units layer by layer, rather than in nodes of a tree."""
        run = next(run for run in self.runs if run["model"] == model)
        if "layer_sizes" in run:
            return run["layer_sizes"] is not None
        return self.series(run, "layer_sizes").shape[1] > 1

    def median_run(self, runs: list[Run]) -> Run:
        """Return the run whose rank is the lower median; ties are broken by seed."""
        return sorted(runs, key=lambda run: (self.pictures.rank(run), run["seed"]))[(len(runs) - 1) // 2]

    def series(self, run: Run, field: str) -> np.ndarray:
        return self.arrays[f"{run_key(run)}/{field}"]

    def paper_value(self, model: str, task: str, field: str) -> float | None:
        """Return the paper's value for a model and task that have runs, or None."""
        return self.paper.get(f"{model}/{task}", {}).get(field) if self.runs_of(model, task) else None

    def discriminant(self, model: str, task: str) -> tuple[Run, np.ndarray] | None:
        """Return the median run's discriminant, or that of the first run which has one."""
        runs = self.runs_of(model, task)
        for run in [self.median_run(runs), *runs] if runs else []:
            if f"{run_key(run)}/discriminant" in self.arrays:
                return run, self.series(run, "discriminant").astype(float)
        return None


def finite_value(run: Run, field: str) -> float | None:
    """Return a value of a run, or None if it is missing or not finite."""
    value = run.get(field)
    return None if value is None or not math.isfinite(value) else float(value)


def run_key(run: Run) -> str:
    """Return the prefix of a run's arrays in history.npz."""
    return f"{run['model']}/{run['task']}/{run['seed']}"


def _ordered(names: Sequence[str], order: list[str]) -> list[str]:
    """Return each name once, those of `order` first."""
    unique = list(dict.fromkeys(names))
    return [name for name in order if name in unique] + [name for name in unique if name not in order]
