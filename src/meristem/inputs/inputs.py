"""What a model reads, defined once: from a table's columns to the numbers that its network is given.

    columns ──schema──▶ features ──preprocessor──▶ inputs
    a value each        numbers, 0 and 1           float32, gaps filled, standardized, limited

An estimator has no schema: its columns are the numbers of X. A table's model has a schema and the same preprocessor. Both steps
are formulas over shared operations (layers/ops), so that predictions, files, exports and reports cannot disagree.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np

from meristem.inputs.preprocessor import Preprocessor
from meristem.inputs.schema import Schema
from meristem.layers.ops.base import InputOps

V = TypeVar("V")


@dataclass(frozen=True, eq=False)
class Inputs:
    """Schema and preprocessor together.

    >>> inputs = Inputs(Preprocessor.of(np.array([[1.0], [3.0], [np.nan]])), names=("size",))
    >>> inputs.column_names, inputs.n_inputs, inputs(np.array([[2.0]])).tolist()[0][0]
    (['size'], 2, 0.0)
    """

    preprocessor: Preprocessor
    schema: Schema | None = None  # None: the columns are numbers, each a feature
    names: tuple[str, ...] | None = None  # of the features, where X had names

    @property
    def n_inputs(self) -> int:
        """How many inputs the network has."""
        return self.preprocessor.n_inputs

    @property
    def n_features(self) -> int:
        """How many columns X has, as estimators take it."""
        return self.preprocessor.n_features

    @property
    def gaps(self) -> np.ndarray:
        """The features that have an indicator of gaps."""
        return self.preprocessor.feature_of_input[len(self.preprocessor.fill) :]

    @property
    def column_names(self) -> list[str]:
        """Names of the columns."""
        if self.schema is not None:
            return self.schema.names
        return [f"column {place}" for place in range(self.n_features)] if self.names is None else [*self.names]

    @property
    def groups(self) -> list[np.ndarray]:
        """The indices of each column's features."""
        return [*np.arange(self.n_features)[:, None]] if self.schema is None else self.schema.groups

    def __call__(self, x: Any) -> np.ndarray:
        """Return the inputs [n, n_inputs], float32, of features, dense or sparse."""
        return self.preprocessor(x)

    def with_more(self, x: Any, weight: np.ndarray | None = None) -> Self:
        """Return the inputs after more rows of a stream."""
        return replace(self, preprocessor=self.preprocessor.with_more(x, weight))

    def trace(self, ops: InputOps[V], values: Sequence[V]) -> V:
        """Return inputs [N, n_inputs], float32, from a value [N, 1] for each column."""
        x = ops.concat(values) if self.schema is None else self.schema.trace(ops, values)
        return self.preprocessor.trace(ops, x)

    def read_features(self, gates: np.ndarray | None) -> np.ndarray:
        """Return which features [n_features] a network with these input gates [n_inputs] reads; None: all are open."""
        is_read = np.zeros(self.n_features, bool)
        is_open = np.ones(self.n_inputs, bool) if gates is None else np.asarray(gates) > 0
        is_read[self.preprocessor.feature_of_input[is_open]] = True
        return is_read
