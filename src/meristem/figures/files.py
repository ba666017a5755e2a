"""The two files of a two-spirals study, read and checked: summary.json and history.npz.

Whatever is wrong with them is said in one line, before anything is drawn.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from meristem.data.spirals import TASKS
from meristem.figures.sheet import NAMES

EXPERIMENT = "two-spirals"
RUN_KEYS = ("model", "task", "seed", "zero_error_epoch", "soft_size")
RANKS = {"error": 1, "layer_sizes": 2, "hard_size": 1, "stage": 1}  # what a run must have in history.npz

Run = dict[str, Any]  # an entry of summary.json's "runs"


@dataclass(frozen=True)
class Study:
    """What the two files hold, checked."""

    runs: list[Run]
    paper: dict[str, Any]  # "model/task" → {"soft_size": …, "zero_error_epoch": …}, the paper's
    arrays: dict[str, np.ndarray]  # "model/task/seed/field"; epochs first

    @property
    def models(self) -> list[str]:
        return _ordered([run["model"] for run in self.runs], list(NAMES))

    @property
    def tasks(self) -> list[str]:
        return _ordered([run["task"] for run in self.runs], TASKS)

    @property
    def pictured(self) -> list[str]:
        """The models with a discriminant."""
        return [m for m in self.models if any(self.discriminant(m, task) for task in self.tasks)]

    def of(self, model: str, task: str) -> list[Run]:
        return [run for run in self.runs if (run["model"], run["task"]) == (model, task)]

    def series(self, run: Run, field: str) -> np.ndarray:
        return self.arrays[f"{_key(run)}/{field}"]

    def discriminant(self, model: str, task: str) -> tuple[Run, np.ndarray] | None:
        """The middle seed's, or else that of the first seed which has one."""
        runs = self.of(model, task)
        for run in [middle(runs), *runs] if runs else []:
            if f"{_key(run)}/discriminant" in self.arrays:
                return run, self.series(run, "discriminant").astype(float)
        return None


def middle(runs: list[Run]) -> Run:
    """The run whose zero-error epoch is the lower median; None counts as ∞.

    >>> middle([{"seed": s, "zero_error_epoch": e} for s, e in enumerate([None, 9, 4])])["seed"]
    1
    """
    return sorted(runs, key=lambda run: (zero_epoch(run), run["seed"]))[(len(runs) - 1) // 2]


def load(out: Path) -> Study:
    """Read and check both files."""
    summary_file, history_file = out / "summary.json", out / "history.npz"
    summary = _read_summary(summary_file)
    runs, paper = summary["runs"], summary.get("paper") or {}
    arrays = _read_history(history_file)
    wanted = {f"{_key(run)}/{field}": rank for run in runs for field, rank in RANKS.items()}
    wanted |= {f"data/{run['task']}/{name}": rank for run in runs for name, rank in (("x", 2), ("y", 1))}
    for key in [key for key in arrays if key.endswith("/discriminant")]:
        wanted |= {key: 2, f"{key}_limit": 0}
    _lacking(history_file, [key for key in wanted if key not in arrays])
    for key, rank in wanted.items():
        if arrays[key].ndim != rank or 0 in arrays[key].shape:
            raise _unfit(history_file, f"holds {key!r} of shape {arrays[key].shape}, which must have {rank} filled axes")
    return Study(runs, paper, arrays)


def _read_summary(file: Path) -> dict[str, Any]:
    _present(file)
    try:
        summary = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _unfit(file, "is not readable JSON") from error
    if not isinstance(summary, dict):
        raise _unfit(file, "is not a JSON object")
    _lacking(file, [key for key in ("experiment", "runs") if key not in summary])
    if summary["experiment"] != EXPERIMENT:
        raise _unfit(file, f"is of the experiment {summary['experiment']!r}; figures are drawn for {EXPERIMENT!r}")
    if not isinstance(summary["runs"], list) or not summary["runs"] or not all(isinstance(r, dict) for r in summary["runs"]):
        raise _unfit(file, "holds no runs")
    known = [{key for key, value in run.items() if value is not None or key == "zero_error_epoch"} for run in summary["runs"]]
    _lacking(file, [f"runs[{i}].{key}" for i, keys in enumerate(known) for key in RUN_KEYS if key not in keys])
    return summary


def _read_history(file: Path) -> dict[str, np.ndarray]:
    _present(file)
    try:
        with file.open("rb") as handle, np.load(handle) as archive:
            return {key: archive[key] for key in archive.files}
    except Exception as error:  # zip, zlib, header and pickle errors have no common class
        raise _unfit(file, "is not a readable NumPy archive") from error


def _present(file: Path) -> None:
    if not file.is_file():
        raise _unfit(file, "is missing")


def _lacking(file: Path, keys: list[str]) -> None:
    if keys:
        more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
        raise _unfit(file, f"lacks {keys[0]!r}{more}")


def _unfit(file: Path, problem: str) -> ValueError:
    return ValueError(f"{file} {problem}; run `meristem reproduce {EXPERIMENT} --out {file.parent}` first.")


def _key(run: Run) -> str:
    return f"{run['model']}/{run['task']}/{run['seed']}"


def _ordered(names: list[str], order: list[str]) -> list[str]:
    """Each name once, the known ones first and in their order."""
    once = list(dict.fromkeys(names))
    return [name for name in order if name in once] + [name for name in once if name not in order]


def zero_epoch(run: Run) -> float:
    return math.inf if run["zero_error_epoch"] is None else float(run["zero_error_epoch"])


def solved(run: Run) -> bool:
    return run["zero_error_epoch"] is not None
