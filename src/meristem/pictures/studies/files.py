"""The two files of a study, read and checked: summary.json and history.npz.

Whatever is wrong with them is said in one line, before anything is drawn. A run without a good epoch is not drawn: there is
nothing to see of it.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from meristem.folders.ownership import sha256
from meristem.pictures.studies.catalog import CATALOG, pictures_of
from meristem.pictures.studies.records import Required, Run, StudyFiles, StudyPictures, key

ON_PATH = ("model", "task", "penalty", "n_parameters")


class _UnfitError(Exception):
    """A file and what is wrong with it."""

    def __init__(self, file: Path, problem: str):
        super().__init__(f"{file} {problem}")


def load(out: Path) -> StudyFiles:
    """Read both files; check them against what the study's pictures need."""
    summary_file, history_file = out / "summary.json", out / "history.npz"
    with _advice(out, next(iter(CATALOG))):
        summary = _read_summary(summary_file)
    pictures, runs = _pictures(summary_file, summary), _with_a_good_epoch(summary_file, summary)
    with _advice(out, summary["experiment"]):
        _check_runs(summary_file, runs, pictures.required())
        arrays = _read_history(history_file)
        _check_together(history_file, summary)
    return checked(summary, arrays, out)


def checked(summary: dict[str, Any], arrays: dict[str, np.ndarray], out: Path) -> StudyFiles:
    """What the two files in `out` hold, or will hold, checked against what the study's pictures need."""
    summary_file, history_file = out / "summary.json", out / "history.npz"
    pictures, runs = _pictures(summary_file, summary), _with_a_good_epoch(summary_file, summary)
    with _advice(out, summary["experiment"]):
        required = pictures.required()
        _check_runs(summary_file, runs, required)
        _check_arrays(history_file, arrays, runs, required)
        tried = summary.get("tried") or []
        _check_tried(summary_file, tried, required)
        path = _good(summary.get("path") or [])
        _check_path(summary_file, path)
    return StudyFiles(pictures, runs, summary.get("paper") or {}, arrays, tried, path)


def _with_a_good_epoch(file: Path, summary: dict[str, Any]) -> list[Any]:
    """The runs of which there is something to draw."""
    runs = _good(summary["runs"])
    if summary["runs"] and not runs:
        raise ValueError(f"{file} holds no run with a good epoch, all diverged; there is nothing to draw.")
    return runs


def _pictures(file: Path, summary: dict[str, Any]) -> StudyPictures:
    """Those of the study, by what the summary says."""
    name, named = summary["experiment"], summary.get("pictures")
    if named is None and name not in list(CATALOG):  # a list, for the name may be anything
        raise ValueError(f"{file} is of the experiment {name!r}; figures are drawn for: {', '.join(CATALOG)}.")
    try:
        return pictures_of(name, named)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{file} asks for pictures that are not known ({error}); a study writes there what StudyPictures.as_json() gives."
        ) from error


@contextmanager
def _advice(out: Path, experiment: str) -> Iterator[None]:
    try:
        yield
    except _UnfitError as error:
        raise ValueError(f"{error}; run `meristem reproduce {experiment} --out {out}` first.") from error.__cause__


def _read_summary(file: Path) -> dict[str, Any]:
    _present(file)
    try:
        summary = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise _UnfitError(file, "is not readable JSON") from error
    if not isinstance(summary, dict):
        raise _UnfitError(file, "is not a JSON object")
    _lacking(file, [name for name in ("experiment", "runs") if name not in summary])
    return summary


def _check_runs(file: Path, runs: Any, required: Required) -> None:
    if not isinstance(runs, list) or not runs or not all(isinstance(run, dict) for run in runs):
        raise _UnfitError(file, "holds no runs")
    for i, run in enumerate(runs):
        lacking = [name for name in required.values if run.get(name) is None]
        lacking += [name for name in required.nulls if name not in run]
        _lacking(file, [f"runs[{i}].{name}" for name in lacking])


def _good(runs: Any) -> Any:
    """The runs that had a good epoch."""
    if not isinstance(runs, list):
        return runs
    return [run for run in runs if not isinstance(run, dict) or run.get("best_epoch") != 0]


def _check_tried(file: Path, tried: Any, required: Required) -> None:
    if not isinstance(tried, list) or not all(isinstance(one, dict) for one in tried):
        raise _UnfitError(file, "holds no list of settings that were tried")
    for i, one in enumerate(tried):
        _lacking(file, [f"tried[{i}].{name}" for name in required.tried if name not in one])


def _check_path(file: Path, path: Any) -> None:
    if not isinstance(path, list) or not all(isinstance(one, dict) for one in path):
        raise _UnfitError(file, "holds no list of the runs of a path")
    for i, one in enumerate(path):
        _lacking(file, [f"path[{i}].{name}" for name in ON_PATH if one.get(name) is None])
        numbers = [one["penalty"], one["n_parameters"]]
        if not all(isinstance(value, int | float) for value in numbers):
            raise _UnfitError(file, f"path[{i}] has a penalty or a size that is no number")


def _read_history(file: Path) -> dict[str, np.ndarray]:
    _present(file)
    try:
        with file.open("rb") as handle, np.load(handle) as archive:
            return {name: archive[name] for name in archive.files}
    except Exception as error:  # zip, zlib, header and pickle errors have no common class
        raise _UnfitError(file, "is not a readable NumPy archive") from error


def _check_together(file: Path, summary: dict[str, Any]) -> None:
    """That both files are of one run, where the summary says so."""
    wanted = summary["files"].get(file.name) if isinstance(summary.get("files"), dict) else None
    if wanted is not None and sha256(file) != wanted:
        raise _UnfitError(file, "is not the one that summary.json was written with")


def _check_arrays(file: Path, arrays: dict[str, np.ndarray], runs: list[Run], required: Required) -> None:
    wanted = {f"{key(run)}/{name}": rank for run in runs for name, rank in required.arrays.items()}
    wanted |= {f"data/{run['task']}/{name}": rank for run in runs for name, rank in required.points.items()}
    for name in [name for name in arrays if name.endswith("/discriminant")]:
        wanted |= {name: 2, f"{name}_limit": 0}
    _lacking(file, [name for name in wanted if name not in arrays])
    for name, rank in wanted.items():
        if arrays[name].ndim != rank or 0 in arrays[name].shape:
            raise _UnfitError(file, f"holds {name!r} of shape {arrays[name].shape}, which must have {rank} filled axes")


def _present(file: Path) -> None:
    if not file.is_file():
        raise _UnfitError(file, "is missing")


def _lacking(file: Path, names: list[str]) -> None:
    if names:
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        raise _UnfitError(file, f"lacks {names[0]!r}{more}")
