"""How the features of an exported network become its inputs, and about which values they vary.

    Scale.of(inputs or (mean, scale), n_in) → Scale;  scale.trace(ops, x);  scale.mean, scale.scale of each feature

Imports inputs; onnx.py and torch.py import it.
"""

from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np

from meristem.export.endings import vector
from meristem.inputs import Inputs, Preprocessor
from meristem.layers.ops.base import InputOps

Scaling = tuple[Any, Any] | Inputs
V = TypeVar("V")


@dataclass(frozen=True, eq=False)
class Scale:
    """See the module's header."""

    mean: np.ndarray  # [n_features]
    scale: np.ndarray  # [n_features]
    preprocessor: Preprocessor | None = None  # None: (x − mean) / scale is all

    @classmethod
    def of(cls, scaling: Scaling, n_in: int) -> Self:
        """Of the inputs of an estimator, or of a mean and a scale for each of a network's inputs."""
        if not isinstance(scaling, Inputs):
            mean, scale = (
                vector(f"scaling's {name}", values, n_in) for name, values in zip(("mean", "scale"), scaling, strict=True)
            )
            if not (scale != 0).all():
                place = np.flatnonzero(scale == 0)[0]
                raise ValueError(f"scaling's scale is 0 for feature {place}; give 1 for a constant feature.")
            return cls(mean, scale)
        if scaling.n_inputs != n_in:
            raise ValueError(f"scaling gives {scaling.n_inputs} inputs, the network takes {n_in}; they must be equal.")
        preprocessor, (mean, scale) = scaling.preprocessor, np.zeros((2, scaling.n_features))
        used = slice(None) if preprocessor.selected is None else preprocessor.selected
        mean[used], scale[used] = preprocessor.fill, preprocessor.scaling.scale[: len(preprocessor.fill)]
        return cls(mean, scale, preprocessor)

    def trace(self, ops: InputOps[V], x: V) -> V:
        """The network's inputs, float32 [N, n_in], of features in double precision."""
        if self.preprocessor is None:
            return ops.single(ops.standardize(self.mean, self.scale, x))
        return self.preprocessor.trace(ops, x)
