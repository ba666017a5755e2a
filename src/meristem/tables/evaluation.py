"""The rows that a model is judged by, and what its network says of them: computed once, for score, exports and report.

    Evaluation.of(model, table, rows, values, baselines) → Evaluation

The outputs are those of all rows, unless they are very many; features and answers those of the rows a report looks at.
Imports coding; fitting and the model import it.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from meristem.tables.coding import feature_blocks
from meristem.tables.table import Table

MOST_ROWS, MOST_NUMBERS = 20_000, 20_000_000  # rows, and rows × features, that a report looks at
MOST_OUTPUTS = 2**25  # numbers that are held


@dataclass(frozen=True, eq=False)
class Evaluation:
    """See the module's header."""

    outputs: np.ndarray | None  # [rows, n_out], of all rows; None: they are too many to hold
    sample: np.ndarray  # places among the rows of those that a report looks at, ascending
    X: np.ndarray  # their features
    y: np.ndarray  # their answers: places of classes (negative: none of them), or numbers
    sample_outputs: np.ndarray  # what the network says of them
    baselines: dict[str, np.ndarray]  # what baselines say of them, by name
    predicted: np.ndarray  # [rows]: places of classes, or numbers (of several quantiles the median), of all rows

    @classmethod
    def of(
        cls, model: Any, table: Table, rows: np.ndarray, values: np.ndarray, baselines: dict[str, np.ndarray] | None = None
    ) -> Self:
        """Of some rows of a table; `values` are the answers of the whole table, `baselines` speak of these rows."""
        schema, seed = model.inputs.schema, int(model.facts["seed"])
        n, most = len(rows), min(MOST_ROWS, max(100, MOST_NUMBERS // len(schema.features)))
        sample = np.arange(n) if n <= most else np.sort(np.random.default_rng(seed).choice(n, most, replace=False))
        holds_all = n * model.estimator._targets_.n_out <= MOST_OUTPUTS
        outputs, predicted, X, sampled, begin = [], [], [], [], 0
        for block in feature_blocks(schema, table, rows):
            block_outputs = model.outputs(block)
            chosen = sample[(sample >= begin) & (sample < begin + len(block))] - begin
            outputs.append(block_outputs if holds_all else block_outputs[:0])
            predicted.append(model.point_predictions(block_outputs))
            X.append(block[chosen])
            sampled.append(block_outputs[chosen])
            begin += len(block)
        return cls(
            np.concatenate(outputs) if holds_all else None,
            sample,
            np.concatenate(X),
            values[rows[sample]],
            np.concatenate(sampled),
            {name: predictions[sample] for name, predictions in (baselines or {}).items()},
            np.concatenate(predicted),
        )
