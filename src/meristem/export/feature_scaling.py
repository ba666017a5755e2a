"""The features of an exported network: how they become its inputs, and the precision that they need."""

from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np

from meristem.compact import CompactNetwork
from meristem.compact.inference import Predictor, as_numpy
from meristem.export.endings import AnyOf, Ending, OneOf, check_vector
from meristem.inputs import Inputs, Preprocessor
from meristem.layers.ops.base import InputOps
from meristem.layers.ops.numpy import NUMPY
from meristem.targets import Classes, Labels

TOLERANCE = 1e-5  # of a probability, or of the scale of numbers: what exports promise
MAX_ROWS, MAX_VALUES = 1024, 2**22  # of the trial for precision; values: rows × features
SPREAD, REACH = 1.5, 4.0  # standard deviations
WORST_CASE = 3.0  # standard deviations of the sum of rounding errors in the worst of the rows drawn
Scaling = tuple[Any, Any] | Inputs
V = TypeVar("V")


@dataclass(frozen=True, eq=False)
class FeatureScaling:
    """(x − mean) / scale, or the preprocessor of an estimator."""

    mean: np.ndarray  # [n_features]
    scale: np.ndarray  # [n_features]
    preprocessor: Preprocessor | None = None

    @classmethod
    def of(cls, scaling: Scaling, n_in: int) -> Self:
        """Return the scaling of an estimator's inputs, or of a mean and a scale for each of a network's inputs."""
        if not isinstance(scaling, Inputs):
            values = zip(("mean", "scale"), scaling, strict=True)
            mean, scale = (check_vector(f"scaling's {name}", vector, n_in) for name, vector in values)
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
        """Return the network's inputs, float32 [N, n_in], from features in double precision."""
        if self.preprocessor is None:
            return ops.single(ops.standardize(self.mean, self.scale, x))
        return self.preprocessor.trace(ops, x)

    def needs_double(self, network: CompactNetwork, ending: Ending) -> bool:
        """Return whether rounding the features to float32 would change an answer by more than exports promise.

        This is tried on rows drawn around the mean. A feature that varies little around a large value, such as seconds since
        1970, loses in rounding what the network reads; a year usually does not.
        """
        n_features = len(self.mean)
        rows = max(8, min(MAX_ROWS, MAX_VALUES // max(1, n_features)))
        noise = np.random.default_rng(0).standard_normal((rows, n_features))
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            x = self.mean + np.clip(SPREAD * noise, -REACH, REACH) * self.scale
            rounded = x.astype(np.float32)
            if not np.isfinite(rounded).all():
                return True
            predictor = Predictor(as_numpy(network))
            outputs = [predictor.outputs(self.trace(NUMPY, features)) for features in (x, rounded.astype(np.float64))]
            exact, moved = outputs  # standardized numbers
            if isinstance(ending, OneOf | AnyOf):
                exact, moved = (_probabilities(ending, z) for z in outputs)
            error = np.abs(exact - moved).max(initial=0)
        # Errors of many features cancel in rows drawn at random; in others they may not.
        return not error * max(1.0, np.sqrt(n_features) / WORST_CASE) <= TOLERANCE / 2


def _probabilities(ending: OneOf | AnyOf, z: np.ndarray) -> np.ndarray:
    targets = Classes(np.arange(max(2, z.shape[1]))) if isinstance(ending, OneOf) else Labels(z.shape[1])
    return targets.probabilities(z)
