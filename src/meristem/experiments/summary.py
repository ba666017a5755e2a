"""What a study leaves behind: one record per run, `summary.json` and `history.npz`, and a table beside the paper's.

Files are written whole or not at all. The schema is that of DESIGN.md; errors are fractions, a null is "does not apply".
"""

import io
import json
import shlex
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

import meristem
from meristem.nn import Budding, Network
from meristem.train.loop import Fit
from meristem.train.measure import Measures
from meristem.train.optimizer import trainable
from meristem.files.whole import write_whole

Record = dict[str, Any]
HISTORY_FIELDS = [
    "error",
    "loss",
    "macro_f1",
    "dev_error",
    "dev_loss",
    "dev_macro_f1",
    "layer_sizes",
    "hard_size",
    "stage",
    "waited",
]


def record(fit: Fit, test: Measures | None, **known: Any) -> Record:
    """One run as it goes into summary.json. `known`: model, task, seed, penalty, … Measures are those of the best model."""
    best, history = int(fit.best_epoch), fit.history
    zero = np.flatnonzero(history["error"] == 0)
    sizes = history["layer_sizes"]
    is_tree = isinstance(fit.last.body, Budding)
    measured = [name for name in ("error", "dev_error", "macro_f1", "dev_macro_f1") if best and name in history]
    at_best = {name: float(history[name][best - 1]) for name in measured}
    tested = {} if test is None else {name: float(value) for name, value in test._asdict().items() if value is not None}
    return {
        "features": None,
        "split": None,
        **known,
        "epochs": int(fit.epochs),
        "zero_error_epoch": int(zero[0]) + 1 if zero.size else None,
        "best_epoch": best,
        "train_error": at_best.get("error"),
        "dev_error": at_best.get("dev_error"),
        "test_error": tested.get("error"),
        "train_macro_f1": at_best.get("macro_f1"),
        "dev_macro_f1": at_best.get("dev_macro_f1"),
        "test_macro_f1": tested.get("macro_f1"),
        "soft_size": float(sizes[-1].sum()),
        "peak_soft_size": float(sizes.sum(1).max()),
        "best_soft_size": float(sizes[max(best, 1) - 1].sum()),
        "layer_sizes": None if is_tree else sizes[-1].tolist(),
        "peak_layer_sizes": None if is_tree else sizes.max(0).tolist(),
        "hard_size": int(history["hard_size"][-1]) if is_tree else None,
        "peak_hard_size": int(history["hard_size"].max()) if is_tree else None,
        "parameters": _parameters(fit.last),
        "live_parameters": int(fit.last.body.live_parameters()) + _parameters((fit.last.embed, fit.last.head)),
        "diverged": bool(fit.diverged),
    }


def _parameters(model: Any) -> int:
    """Trainable numbers; of a tree only its layers and nodes, not the free places."""
    if isinstance(model, Network) and isinstance(model.body, Budding):
        return int(model.body.live_parameters()) + _parameters((model.embed, model.head))
    return sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(model, trainable(model))))


def header(experiment: str, paper: dict[str, Any], wall_seconds: float, runs: list[Record]) -> Record:
    """summary.json: what ran, with what, on what, and the paper's values beside ours."""
    return {
        "experiment": experiment,
        "meristem": meristem.__version__,
        "jax": jax.__version__,
        "device": jax.default_backend(),
        "device_name": jax.devices()[0].device_kind,
        "command": shlex.join(["meristem", *sys.argv[1:]]),
        "wall_seconds": round(wall_seconds, 1),
        "runs": runs,
        "paper": paper,
    }


def check_out(out: Path) -> Path:
    """A folder that can be written to, made if need be; raises ValueError with advice."""
    if str(out) in ("", "."):
        raise ValueError("--out names no folder of its own; give one, such as out/two-spirals.")
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out={str(out)!r} is a file, not a folder; choose another folder.")
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            return out
    except OSError as error:
        raise ValueError(f"--out={str(out)!r} cannot be written to ({error.strerror}); choose another folder.") from error


def write(out: Path, summary: Record, history: dict[str, np.ndarray]) -> list[Path]:
    """Both files, each whole."""
    packed = io.BytesIO()
    np.savez_compressed(packed, **history)  # type: ignore[arg-type]
    files = {out / "history.npz": packed.getvalue(), out / "summary.json": json.dumps(summary, indent=1).encode() + b"\n"}
    for path, data in files.items():
        write_whole(path, data)
    return list(files)


def spread(values: Sequence[float | None], digits: int = 0) -> str:
    """Median and range; a run that never got there counts as ∞.

    >>> spread([20, 25, None])
    '25 (20–∞)'
    """
    numbers = sorted(float("inf") if value is None else value for value in values)

    def show(number: float) -> str:
        if number == float("inf"):
            return "∞"
        # A median of whole numbers may lie half-way: then it is shown so.
        return f"{number:.{digits if digits or number == int(number) else 1}f}"

    middle, least, most = show(statistics.median(numbers)), show(numbers[0]), show(numbers[-1])
    return middle if least == most else f"{middle} ({least}–{most})"


def mean_and_sd(values: Sequence[float | None], digits: int, factor: float = 1.0) -> str:
    """Mean ± standard deviation of the values that there are.

    >>> mean_and_sd([0.0150, 0.0160, None], 2, factor=100)
    '1.55 ± 0.07'
    """
    numbers = [factor * value for value in values if value is not None]
    if not numbers:
        return "–"
    mean = f"{statistics.mean(numbers):.{digits}f}"
    return mean if len(numbers) == 1 else f"{mean} ± {statistics.stdev(numbers):.{digits}f}"


def number(value: float | None, digits: int | None = None, factor: float = 1.0) -> str:
    """One of the paper's values, or a dash.

    >>> number(0.0167, 2, factor=100), number(None), number(23)
    ('1.67', '–', '23')
    """
    if value is None:
        return "–"
    return f"{factor * value:g}" if digits is None else f"{factor * value:.{digits}f}"


def groups(runs: list[Record]) -> list[tuple[str, str, list[Record]]]:
    """The runs of each model on each task, in the order in which they were trained."""
    cells = dict.fromkeys((one["model"], one["task"]) for one in runs)
    return [(model, task, [one for one in runs if (one["model"], one["task"]) == (model, task)]) for model, task in cells]
