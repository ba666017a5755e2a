"""Whether an exported graph may take its features in single precision, or rounding them would change what it says.

    needs_double(mean, scale, apply, network, ending) → bool

Decided by trying: rows drawn around each feature's mean are rounded to float32, and what the network says of both is compared.
A feature that varies little about a large value, such as seconds since 1970, loses in rounding what the network reads; a year
most often does not. Imports inference and endings; onnx.py imports it.
"""

from collections.abc import Callable

import numpy as np

from meristem.compact import CompactNetwork
from meristem.compact.inference import Predictor, as_numpy
from meristem.export.endings import AnyOf, Ending, OneOf

TOLERANCE = 1e-5  # of a probability, and of what numbers vary by: what exports promise
ROWS, NUMBERS = 1024, 2**22  # that are tried; rows × features
SPREAD, REACH = 1.5, 4.0  # standard deviations
UNLUCKY = 3.0  # standard deviations that the sum of rounding errors is from 0 in the worst of the rows drawn


def needs_double(
    mean: np.ndarray,
    scale: np.ndarray,
    apply: Callable[[np.ndarray], np.ndarray],
    network: CompactNetwork,
    ending: Ending,
) -> bool:
    """Return whether features with this mean [n_features] and scale must be double for the promise to hold.

    >>> from meristem.layers.layer import Affine
    >>> network, one = CompactNetwork((Affine(np.ones((1, 1)), None),)), np.ones(1)
    >>> [needs_double(mean * one, one, lambda x: x - mean, network, OneOf([0, 1])) for mean in (5, 1e6)]
    [False, True]
    """
    rows = max(8, min(ROWS, NUMBERS // max(1, len(mean))))
    drawn = np.random.default_rng(0).standard_normal((rows, len(mean)))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        x = mean + np.clip(SPREAD * drawn, -REACH, REACH) * scale
        rounded = x.astype(np.float32)
        if not np.isfinite(rounded).all():
            return True
        predictor = Predictor(as_numpy(network))
        exact, moved = (predictor.outputs(apply(some)) for some in (x, rounded.astype(np.float64)))
        off = np.abs(_answers(ending, exact) - _answers(ending, moved)).max(initial=0)
    # Errors of many features cancel in rows drawn at random; in others they may not.
    return not off * max(1.0, np.sqrt(len(mean)) / UNLUCKY) <= TOLERANCE / 2


def _answers(ending: Ending, z: np.ndarray) -> np.ndarray:
    """What is compared: probabilities, or numbers in the units that the network learned."""
    if isinstance(ending, OneOf) and z.shape[1] > 1:
        shares = np.exp(z - z.max(1, keepdims=True))
        return np.asarray(shares / shares.sum(1, keepdims=True))
    return 0.5 * (1 + np.tanh(0.5 * z)) if isinstance(ending, OneOf | AnyOf) else z
