"""The files of a study: one record per run in `summary.json`, and values by epoch in `history.npz`.

Errors are fractions; null means "does not apply".
"""

import io
import shlex
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

import meristem
from meristem.compact import n_parameters
from meristem.files.atomic_write import not_written
from meristem.train.metrics import Measures
from meristem.train.optimizer import trainable
from meristem.train.run import Run

Record = dict[str, Any]
HISTORY_FIELDS = [
    *("error", "loss", "macro_f1", "dev_error", "dev_loss", "dev_macro_f1"),
    *("layer_sizes", "hard_size", "stage", "waited"),
]


def record(run: Run, test: Measures | None, **fields: Any) -> Record:
    """Return a run as it goes into summary.json, with further `fields`; measures are those of the best epoch.

    Epochs with a non-finite loss are ignored; without any other epoch the values are None.
    """
    best, history = int(run.best_epoch), run.history
    finite = np.isfinite(history["loss"]) & np.isfinite(history["dev_loss"])
    zero = np.flatnonzero((history["error"] == 0) & finite)
    sizes, trees = history["layer_sizes"][finite], history["hard_size"][finite]
    is_layered = not run.last.capacity  # a tree has nodes in place of layers of units
    measured = [name for name in ("error", "dev_error", "macro_f1", "dev_macro_f1") if best and name in history]
    at_best = {name: float(history[name][best - 1]) for name in measured}
    tested = {} if test is None else {name: float(value) for name, value in test._asdict().items() if value is not None}
    return {
        "features": None,
        "split": None,
        **fields,
        "epochs": int(run.epochs),
        "zero_error_epoch": int(zero[0]) + 1 if zero.size else None,
        "best_epoch": best,
        "train_error": at_best.get("error"),
        "dev_error": at_best.get("dev_error"),
        "test_error": tested.get("error"),
        "train_macro_f1": at_best.get("macro_f1"),
        "dev_macro_f1": at_best.get("dev_macro_f1"),
        "test_macro_f1": tested.get("macro_f1"),
        "soft_size": float(sizes[-1].sum()) if len(sizes) else None,
        "peak_soft_size": float(sizes.sum(1).max()) if len(sizes) else None,
        "best_soft_size": float(history["layer_sizes"][best - 1].sum()) if best else None,
        "layer_sizes": sizes[-1].tolist() if is_layered and len(sizes) else None,
        "peak_layer_sizes": sizes.max(0).tolist() if is_layered and len(sizes) else None,
        "hard_size": None if is_layered or not len(trees) else int(trees[-1]),
        "peak_hard_size": None if is_layered or not len(trees) else int(trees.max()),
        "parameters": _count_trainable(run.last) if is_layered else int(run.last.live_parameters()),
        "live_parameters": int(run.last.live_parameters()),
        "n_parameters": n_parameters(run.best) if best else None,
        "diverged": bool(run.diverged),
    }


def _count_trainable(model: Any) -> int:
    """Return the number of trainable parameters; a tree's unused capacity would be counted too."""
    return sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(model, trainable(model))))


def device() -> str:
    """Return the name of the device: 'NVIDIA H200', 'cpu'."""
    return jax.devices()[0].device_kind


def command() -> str:
    """Return the command line of this process."""
    return shlex.join(["meristem", *sys.argv[1:]])


def header(
    experiment: str, title: str, paper: Mapping[str, Any], wall_seconds: float, runs: list[Record], command: str
) -> Record:
    """Return the content of summary.json, without what is particular to a study."""
    return {
        "experiment": experiment,
        "title": title,
        "meristem": meristem.__version__,
        "jax": jax.__version__,
        "device": jax.default_backend(),
        "device_name": device(),
        "command": command,
        "wall_seconds": round(wall_seconds, 1),
        "runs": runs,
        "paper": dict(paper),
    }


def check_out(out: Path) -> Path:
    """Return a folder that can be written to, created if needed; raise ValueError for any other."""
    if str(out) in ("", "."):
        raise ValueError("--out names no folder of its own; give one, such as out/two-spirals.")
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out={str(out)!r} is a file, not a folder; choose another folder.")
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            return out
    except OSError as error:
        raise not_written(
            f"--out={str(out)!r} cannot be written to ({error.strerror}); choose another folder.", error
        ) from error


def history_bytes(history: dict[str, np.ndarray]) -> bytes:
    """Return the content of history.npz; the same arrays give the same bytes."""
    packed = io.BytesIO()
    np.savez_compressed(packed, **history)  # type: ignore[arg-type]
    return packed.getvalue()
