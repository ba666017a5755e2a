"""The files of a study: one record per run in `summary.json`, and values by epoch in `history.npz`.

Errors are fractions; null means "does not apply".
"""

import io
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

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
    is_tree, live = bool(run.last.capacity), int(run.last.live_parameters())  # a tree has nodes in place of layers of units
    trained = sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(run.last, trainable(run.last))))
    layers, nodes = sizes[: 0 if is_tree else None], trees[: None if is_tree else 0]

    def at_best(name: str) -> float | None:
        return float(history[name][best - 1]) if best and name in history else None

    def tested(name: str) -> float | None:
        value = getattr(test, name, None)
        return None if value is None else float(value)

    return {
        "features": None,
        "split": None,
        **fields,
        "epochs": int(run.epochs),
        "zero_error_epoch": int(zero[0]) + 1 if zero.size else None,
        "best_epoch": best,
        "train_error": at_best("error"),
        "dev_error": at_best("dev_error"),
        "test_error": tested("error"),
        "train_macro_f1": at_best("macro_f1"),
        "dev_macro_f1": at_best("dev_macro_f1"),
        "test_macro_f1": tested("macro_f1"),
        "soft_size": float(sizes[-1].sum()) if len(sizes) else None,
        "peak_soft_size": float(sizes.sum(1).max()) if len(sizes) else None,
        "best_soft_size": float(history["layer_sizes"][best - 1].sum()) if best else None,
        "layer_sizes": layers[-1].tolist() if len(layers) else None,
        "peak_layer_sizes": layers.max(0).tolist() if len(layers) else None,
        "hard_size": int(nodes[-1]) if len(nodes) else None,
        "peak_hard_size": int(nodes.max()) if len(nodes) else None,
        "parameters": live if is_tree else trained,
        "live_parameters": live,
        "n_parameters": n_parameters(run.best) if best else None,
        "diverged": bool(run.diverged),
    }


def device() -> str:
    """Return the name of the device: 'NVIDIA H200', 'cpu'."""
    return jax.devices()[0].device_kind


def command() -> str:
    """Return the command line of this process."""
    return shlex.join(["meristem", *sys.argv[1:]])


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
