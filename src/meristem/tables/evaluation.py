"""A model on rows of a table: what its network predicts, computed once for score, exports and report; and its ONNX file.

An ONNX file agrees with the model where probabilities do to 1e-5, numbers to 1e-5 of their standard deviation (further out than
ten of them, of a tenth of the distance), and labels wherever the two likeliest classes differ by more than that, or a
probability from the threshold. onnxruntime is imported here alone.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from meristem.report.task_metrics import Outcome, Predicted
from meristem.tables.encoding import BLOCK, feature_blocks, features, feeds
from meristem.tables.split import CLASS
from meristem.tables.table_columns import Table

MOST_ROWS, MOST_NUMBERS = 20_000, 20_000_000  # rows, and rows × features, in a report
MOST_OUTPUTS = 2**25  # numbers that are held
MOST_PROBABILITIES = 2**23  # of all rows, for metrics
TOLERANCE = 1e-5
FAR = 10.0  # standard deviations, beyond which single precision has fewer digits than the tolerance


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Outputs of all rows, unless they are very many; features and targets of the sample that a report shows."""

    outputs: np.ndarray | None  # [rows, n_out], of all rows; None: too many to hold
    X: np.ndarray  # features of the sample
    y: np.ndarray  # targets of the sample: indices of classes (negative: none of them), or numbers
    sample_outputs: np.ndarray
    baselines: dict[str, Predicted]  # name → predictions of the sample
    outcome: Outcome  # of all rows; of several quantiles the median is the prediction

    @classmethod
    def of(cls, model: Any, table: Table, rows: np.ndarray, values: np.ndarray, baselines: dict[str, Predicted]) -> Self:
        """Evaluate some rows of a table; `values` are the targets of all its rows, `baselines` predictions of `rows`."""
        schema, seed = model.schema, int(model.facts["seed"])
        n, most = len(rows), min(MOST_ROWS, max(100, MOST_NUMBERS // len(schema.features)))
        sample = np.arange(n) if n <= most else np.sort(np.random.default_rng(seed).choice(n, most, replace=False))
        holds_all = n * model.estimator._targets_.n_out <= MOST_OUTPUTS
        is_sampled, outputs, predicted = np.isin(np.arange(n), sample), [], []
        for begin, block in zip(range(0, n, BLOCK), feature_blocks(schema, table, rows), strict=True):
            block_outputs = model.outputs(block)
            outputs.append(block_outputs if holds_all else block_outputs[is_sampled[begin : begin + BLOCK]])
            predicted.append(model.point_predictions(block_outputs))
        held_outputs = np.concatenate(outputs)
        targets, n_classes = model.estimator._targets_, len(model.classes) if model.task == CLASS else 0
        has_probabilities = holds_all and model.task == CLASS and n * n_classes <= MOST_PROBABILITIES
        probabilities = targets.probabilities(held_outputs) if has_probabilities else None
        point = Predicted(np.concatenate(predicted), probabilities)
        return cls(
            held_outputs if holds_all else None,
            features(schema, table, rows[sample]),
            values[rows[sample]],
            held_outputs[sample] if holds_all else held_outputs,
            {name: predictions.rows(sample) for name, predictions in baselines.items()},
            Outcome(model.task, values[rows], point, n_classes, getattr(targets, "positive", 1)),
        )


def onnx_agreement(data: bytes, model: Any, table: Table, rows: np.ndarray, outputs: Any = None) -> dict[str, Any] | None:
    """Return the largest difference between an ONNX file and its model on some rows; None without onnxruntime.

    Raises ValueError where they do not agree. `outputs` are the network's on these rows, if they are known.
    """

    def batches() -> Iterator[tuple[dict[str, Any], np.ndarray]]:
        for some in (slice(begin, begin + BLOCK) for begin in range(0, len(rows), BLOCK)):
            expected = model.outputs(features(model.schema, table, rows[some])) if outputs is None else outputs[some]
            yield feeds(model.schema, table, rows[some]), expected

    return agreement(data, model, batches())


def agreement(data: bytes, model: Any, batches: Iterable[tuple[dict[str, Any], np.ndarray]]) -> dict[str, Any] | None:
    """Do the same for batches of inputs of the graph, each with the network's outputs."""
    try:
        import onnxruntime
    except ImportError:
        return None
    session, version = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]), onnxruntime.__version__
    furthest, n_rows = 0.0, 0
    for own_feeds, expected in batches:
        distance = _distance(model, session.run(None, own_feeds), expected)
        furthest, n_rows = max(furthest, distance if np.isfinite(distance) else np.inf), n_rows + len(expected)
    if furthest > TOLERANCE:
        what = f"the ONNX graph differs from the model by {furthest:.2g} in onnxruntime {version}"
        raise ValueError(f"{what}; try another version of it.")
    return {"onnxruntime": version, "rows": n_rows, "furthest": furthest}


def _distance(model: Any, predictions: list[np.ndarray], outputs: np.ndarray) -> float:
    """Return how far predictions of a graph are from those that the model makes of its outputs; 1 where a label differs."""
    targets = model.estimator._targets_
    if model.task == CLASS:
        expected = targets.probabilities(outputs)
        distance = float(np.abs(predictions[-1] - expected).max(initial=0))
        if expected.shape[1] == 2:
            is_certain = np.abs(expected[:, targets.positive] - targets.threshold) > TOLERANCE
        else:
            top = np.sort(expected, 1)[:, -2:]
            is_certain = np.ones(len(top), bool) if top.shape[1] < 2 else top[:, 1] - top[:, 0] > 2 * TOLERANCE
        labels = np.asarray(predictions[0]).astype(model.classes.dtype)
        return max(distance, float(((labels != targets.decode(outputs)) & is_certain).any()))
    expected = targets.decode(outputs)
    if targets.link == "identity":
        mean, scale = targets.scaling.mean, targets.scaling.scale
        unit = np.maximum(scale, np.abs(expected.reshape(-1, len(mean)) - mean) / FAR).reshape(expected.shape)
    else:
        unit = np.maximum(np.abs(expected), np.finfo(float).tiny)
    return float((np.abs(predictions[0] - expected) / unit).max(initial=0))
