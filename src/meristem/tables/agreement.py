"""Whether an ONNX file says the same as the model it was made from, in onnxruntime, on rows of a table.

    agreement(data, model, table, rows) → {"onnxruntime": version, "rows": n, "furthest": 3e-7}, or ValueError

Probabilities must agree to 1e-5, numbers to 1e-5 of what they vary by (further out than ten times that, to as much of the
distance), and labels wherever the two likeliest classes are further apart than that. Only this file imports onnxruntime, and
only when it is used. Imports coding; commands import it.
"""

from typing import Any

import numpy as np

from meristem.tables.coding import BLOCK, feature_blocks, feeds
from meristem.tables.table import Table
from meristem.tables.target import CLASS

TOLERANCE = 1e-5
FAR = 10.0  # standard deviations, beyond which single precision has fewer digits than the promise


def agreement(
    data: bytes, model: Any, table: Table, rows: np.ndarray, outputs: np.ndarray | None = None
) -> dict[str, Any] | None:
    """Compare on some rows, whose outputs may be given; None where onnxruntime is not installed."""
    try:
        import onnxruntime
    except ImportError:
        return None
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    if outputs is None:
        outputs = np.concatenate([model.outputs(block) for block in feature_blocks(model.schema, table, rows)])
    furthest = 0.0
    for begin in range(0, len(rows), BLOCK):
        some = slice(begin, begin + BLOCK)
        off = distance(model, session.run(None, feeds(model.schema, table, rows[some])), outputs[some])
        furthest = max(furthest, off if np.isfinite(off) else np.inf)
    if furthest > TOLERANCE:
        raise ValueError(
            f"the ONNX graph differs from the model by {furthest:.2g} in onnxruntime {onnxruntime.__version__}; try another "
            "version of it."
        )
    return {"onnxruntime": onnxruntime.__version__, "rows": len(rows), "furthest": furthest}


def distance(model: Any, answers: list[np.ndarray], outputs: np.ndarray) -> float:
    """How far a graph's answers are from what the model makes of its network's outputs; 1 where a label differs."""
    targets = model.estimator._targets_
    if model.task == CLASS:
        expected = targets.probabilities(outputs)
        off = float(np.abs(answers[-1] - expected).max(initial=0))
        top = np.sort(expected, 1)[:, -2:]
        is_certain = np.ones(len(top), bool) if top.shape[1] < 2 else top[:, 1] - top[:, 0] > 2 * TOLERANCE
        labels = np.asarray(answers[0]).astype(model.classes.dtype)
        return max(off, float(((labels != model.classes[expected.argmax(1)]) & is_certain).any()))
    expected = targets.decode(outputs)
    if targets.link == "identity":
        mean, scale = targets.scaling.mean, targets.scaling.scale
        unit = np.maximum(scale, np.abs(expected.reshape(-1, len(mean)) - mean) / FAR).reshape(expected.shape)
    else:
        unit = np.maximum(np.abs(expected), np.finfo(float).tiny)
    return float((np.abs(answers[0] - expected) / unit).max(initial=0))
