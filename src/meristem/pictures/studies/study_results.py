"""The results of a study in memory: the runs of summary.json and the arrays of history.npz."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from meristem.pictures.figure_style import COLORS, model_colors

Run = dict[str, Any]  # an entry of summary.json's "runs"


@dataclass(frozen=True)
class StudyResults:
    """The validated content of summary.json and history.npz."""

    pictures: Any  # StudyPictures
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
        return _ordered([run["model"] for run in self.runs], list(COLORS))

    @property
    def tasks(self) -> list[str]:
        return _ordered([run["task"] for run in self.runs], list(self.pictures.tasks))

    @property
    def colors(self) -> dict[str, Any]:
        return model_colors(self.models)

    @property
    def settings(self) -> list[Run]:
        return [setting for setting in self.tried if setting["model"] in self.models]

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


def finite_value(run: Run, field: str) -> float | None:
    """Return a value of a run, or None if it is missing or not finite."""
    value = run.get(field)
    return None if value is None or not math.isfinite(value) else float(value)


def run_key(run: Run) -> str:
    """Return the prefix of a run's arrays in history.npz."""
    return f"{run['model']}/{run['task']}/{run['seed']}"


def _ordered(names: Sequence[str], order: list[str]) -> list[str]:
    """Return each name once, those of `order` first."""
    return sorted(dict.fromkeys(names), key=lambda name: order.index(name) if name in order else len(order))
