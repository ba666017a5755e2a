"""The results of a study: one record per run in `summary.json`, and values by epoch in `history.npz`.

Errors are fractions; null means "does not apply".
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax
import numpy as np

import meristem
from meristem.compact import n_parameters
from meristem.experiments.study import Arrays, Plan, Record, Study
from meristem.nn import Network
from meristem.train.metrics import Measures
from meristem.train.optimizer import trainable
from meristem.train.run import Run

HISTORY_FIELDS = [
    *("error", "loss", "macro_f1", "dev_error", "dev_loss", "dev_macro_f1"),
    *("layer_sizes", "hard_size", "stage", "waited"),
]


@dataclass
class Result:
    """Records and further lists of records for summary.json, and arrays for history.npz."""

    runs: list[Record] = field(default_factory=list)
    history: dict[str, np.ndarray] = field(default_factory=dict)
    extra: dict[str, list[Record]] = field(default_factory=dict)

    def add(self, trained: Sequence[tuple[Record, Run]], arrays: Callable[[Network], Arrays] | None = None) -> None:
        """Add runs with their histories; `arrays` returns further arrays of a run's best network."""
        for row, run in trained:
            self.runs.append(row)
            values = {part: run.history[part] for part in HISTORY_FIELDS if part in run.history}
            values |= {} if arrays is None else arrays(run.best)
            self.history |= {f"{row['model']}/{row['task']}/{row['seed']}/{part}": array for part, array in values.items()}

    def join(self, other: "Result") -> None:
        """Append another result."""
        self.runs += other.runs
        self.history |= other.history
        for name, records in other.extra.items():
            self.extra.setdefault(name, []).extend(records)

    def summary(self, study: Study, plan: Plan, wall_seconds: float, command: str) -> Record:
        """Return the content of summary.json."""
        return {
            "experiment": study.name,
            "title": plan.title,
            "meristem": meristem.__version__,
            "jax": jax.__version__,
            "device": jax.default_backend(),
            "device_name": jax.devices()[0].device_kind,
            "command": command,
            "wall_seconds": round(wall_seconds, 1),
            "runs": self.runs,
            "paper": dict(study.paper if plan.is_papers_data else {}),
            **plan.summary_fields,
            "pictures": (plan.pictures or study.pictures).as_json(),
            **self.extra,
        }


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
    measures: dict[str, Any] = {}
    for name in ("error", "macro_f1"):
        for part, values in (("train", history.get(name)), ("dev", history.get(f"dev_{name}"))):
            measures[f"{part}_{name}"] = values[best - 1] if best and values is not None else None
        measures[f"test_{name}"] = getattr(test, name, None)
    return {
        "features": None,
        "split": None,
        **fields,
        "epochs": int(run.epochs),
        "zero_error_epoch": int(zero[0]) + 1 if zero.size else None,
        "best_epoch": best,
        **{name: None if value is None else float(value) for name, value in measures.items()},
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
