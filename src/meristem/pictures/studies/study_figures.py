"""The files of a study, summary.json and history.npz, read and validated, and the figures drawn from them.

Problems with the files are reported in one line before anything is drawn. Runs without a finite epoch are not drawn; of several
seeds the lower median by the study's measure is. Settings of matplotlib are restored.
"""

import hashlib
import io
import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from meristem.data.spirals import TASKS
from meristem.files.atomic_write import write_whole
from meristem.folders import run_record
from meristem.folders.run_folder import RunFolder
from meristem.pictures.figure_style import COLORS, STYLE, require_matplotlib
from meristem.pictures.image_files import is_picture, png
from meristem.pictures.studies.study_pictures import ImagePictures, LearningPictures, SolvingPictures, StudyPictures
from meristem.pictures.studies.study_results import Run, StudyResults, run_key
from meristem.show.measures import MACRO_F1, WRONG_LABELS

KINDS: dict[str, type[StudyPictures]] = {kind.kind: kind for kind in (LearningPictures, SolvingPictures, ImagePictures)}
# The paper's studies by name, for files that do not say what is to be drawn.
CATALOG: dict[str, StudyPictures] = {
    "two-spirals": SolvingPictures("two spirals", {task: task for task in TASKS}),
    # Two classes are so much easier than ten that their errors could not be read on one scale.
    "mnist": LearningPictures("MNIST", {"two": "two classes (0 or 1)", "ten": "ten classes"}, panel_per_task=True),
    "mirflickr": LearningPictures(
        "MIRFLICKR", {n: f"{n} labels" for n in ("10", "24", "38")}, (WRONG_LABELS, MACRO_F1), ("dev", "test")
    ),
    "tagging": LearningPictures("multi-label tagging", {}, (WRONG_LABELS, MACRO_F1), ("dev", "test")),
}
FIGURES = ("data", "discriminants", "sizes", "tried", "frontier", "structures", "parameters")  # besides those of models


def draw(out: Path) -> list[Path]:
    """Draw every figure of the study in `out` and return the paths of the PNGs, in reading order.

    Figures of an earlier study with the usual names are removed. Raises ValueError if the files are missing or invalid, or if
    a file that is not a figure has the name of one.
    """
    # Files that were copied or written by an earlier version are used by no process: there is nothing to lock.
    with RunFolder.take(out) if (out / run_record.OWN).is_dir() else nullcontext():
        figures = draw_study(load_study(out))
        foreign = [name for name in figures if (out / name).exists() and not is_picture(out / name)]
        if foreign:
            raise ValueError(f"{str(out / foreign[0])!r} is not a figure drawn by meristem; move it away, then draw again.")
        for name, data in figures.items():
            write_whole(out / name, data)
        usual = [f"{name}.png" for name in (*COLORS, *FIGURES)]
        stale = [name for name in usual if name not in figures and is_picture(out / name)]
        for name in stale:
            (out / name).unlink(missing_ok=True)
        summary = run_record.read_json(out / run_record.SUMMARY)
        if isinstance(summary.get("files"), dict):
            digests = {name: digest for name, digest in summary["files"].items() if name not in stale}
            digests |= {name: hashlib.sha256(data).hexdigest() for name, data in figures.items()}
            if digests != summary["files"]:
                write_whole(out / run_record.SUMMARY, run_record.summary_bytes(summary, str(summary.get("run")), digests))
        return [out / name for name in figures]


def draw_study(results: StudyResults) -> dict[str, bytes]:
    """Return every figure as a PNG by its file name, in reading order."""
    require_matplotlib()
    import matplotlib

    with matplotlib.rc_context(STYLE):
        return {f"{name}.png": png(figure(results)) for name, figure in results.pictures.drawings(results).items()}


class InvalidFileError(ValueError):
    """A file of a study is missing, damaged or incomplete."""


def load_study(out: Path) -> StudyResults:
    """Read summary.json and history.npz and validate them."""
    file, history, experiment = out / "summary.json", out / "history.npz", next(iter(CATALOG))
    try:
        summary = _read(file, "readable JSON", lambda: json.loads(file.read_text(encoding="utf-8")))
        if not isinstance(summary, dict):
            raise InvalidFileError(f"{file} is not a JSON object")
        _check_missing(file, [name for name in ("experiment", "runs") if name not in summary])
        _find_pictures(file, summary)  # an unknown experiment is reported before a missing history
        experiment = summary["experiment"]
        arrays = _read(history, "a readable NumPy archive", lambda: dict(np.load(io.BytesIO(history.read_bytes()))))
        digest = summary["files"].get(history.name) if isinstance(summary.get("files"), dict) else None
        if digest is not None and run_record.sha256(history) != digest:
            raise InvalidFileError(f"{history} is not the one that summary.json was written with")
        return validate_study(summary, arrays, out)
    except InvalidFileError as error:
        raise ValueError(f"{error}; run `meristem reproduce {experiment} --out {out}` first.") from error.__cause__


def validate_study(summary: dict[str, Any], arrays: dict[str, np.ndarray], out: Path) -> StudyResults:
    """Return the results that the files in `out` hold, or will hold, checked against what the study's figures need."""
    file, history = out / "summary.json", out / "history.npz"
    pictures = _find_pictures(file, summary)
    required = pictures.required()
    runs = _records(file, "runs", summary, required.values, required.nullable)
    tried = _records(file, "tried", summary, (), ("model", "task", "sd", "chosen", f"dev_{pictures.selects.name}"))
    path = _records(file, "path", summary, ("model", "task", "penalty", "n_parameters"), ())
    if not runs:
        if summary["runs"]:
            raise ValueError(f"{file} holds no run with a good epoch, all diverged; there is nothing to draw.")
        raise InvalidFileError(f"{file} holds no 'runs'")
    for i, run in enumerate(path):
        if not all(isinstance(run[name], int | float) for name in ("penalty", "n_parameters")):
            raise InvalidFileError(f"{file} path[{i}] has a penalty or a size that is no number")
    ranks = {f"{run_key(run)}/{name}": rank for run in runs for name, rank in required.arrays.items()}
    ranks |= {f"data/{run['task']}/{name}": rank for run in runs for name, rank in required.points.items()}
    for name in [name for name in arrays if name.endswith("/discriminant")]:
        ranks |= {name: 2, f"{name}_limit": 0}
    _check_missing(history, [name for name in ranks if name not in arrays])
    for name, rank in ranks.items():
        shape = arrays[name].shape
        if len(shape) != rank or 0 in shape:
            raise InvalidFileError(f"{history} holds {name!r} of shape {shape}; it must have {rank} non-empty axes")
    return StudyResults(pictures, runs, summary.get("paper") or {}, arrays, tried, path)


def _find_pictures(file: Path, summary: dict[str, Any]) -> StudyPictures:
    """Return what is drawn of the study, by what summary.json says under "pictures", or else by its experiment."""
    experiment, fields = summary["experiment"], summary.get("pictures")
    if fields is None and experiment not in list(CATALOG):  # a list, since the name may be unhashable
        raise ValueError(f"{file} is of the experiment {experiment!r}; figures are drawn for: {', '.join(CATALOG)}.")
    try:
        if fields is None:
            return CATALOG[experiment]
        return KINDS[fields["kind"]].from_json({name: value for name, value in fields.items() if name != "kind"})
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{file} has unknown 'pictures' ({error}); a study writes there what StudyPictures.as_json() returns."
        ) from error


def _read(file: Path, kind: str, read: Callable[[], Any]) -> Any:
    if not file.is_file():
        raise InvalidFileError(f"{file} is missing")
    try:
        return read()
    except Exception as error:  # zip, zlib, header and pickle errors have no common class
        raise InvalidFileError(f"{file} is not {kind}") from error


def _records(file: Path, name: str, summary: Run, values: tuple[str, ...], nullable: tuple[str, ...]) -> list[Run]:
    """Return records with a finite epoch; they must be a list of objects with these values, the nullable ones maybe null."""
    records = summary.get(name) or []
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise InvalidFileError(f"{file} has {name!r} that are not a list of objects")
    finite = [record for record in records if record.get("best_epoch") != 0]
    for i, record in enumerate(finite):
        missing = [key for key in values if record.get(key) is None] + [key for key in nullable if key not in record]
        _check_missing(file, [f"{name}[{i}].{key}" for key in missing])
    return finite


def _check_missing(file: Path, names: list[str]) -> None:
    if names:
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        raise InvalidFileError(f"{file} lacks {names[0]!r}{more}")
