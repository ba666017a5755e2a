"""How much features repeat one another: 0 where each says its own, near 1 where all say the same.

    r = 1 − d / Σᵢⱼ ρᵢⱼ²        ρ: the correlations of the d features that are not constant

In n rows chance alone makes the ρ² of two independent features 1 / (n − 1) in the mean; so much is taken off every pair, so
that many features in few rows are not mistaken for redundant ones.
"""

from typing import Any

import numpy as np

from meristem.estimators.scaling import Scaling

SAMPLE = 4096  # rows that say enough


def redundancy(x: Any, weight: np.ndarray | None = None) -> float:
    """Of dense or sparse rows; those of weight 0 do not count, all others count alike.

    >>> one, other = np.random.default_rng(0).normal(size=(2, 100, 1))
    >>> round(redundancy(np.hstack([one, other])), 2), round(redundancy(np.hstack([one] * 9 + [other])), 2)
    (0.0, 0.88)
    """
    counted = np.arange(x.shape[0]) if weight is None else np.flatnonzero(weight > 0)
    if len(counted) > SAMPLE:
        counted = np.random.default_rng(0).choice(counted, SAMPLE, replace=False)
    rows = x[counted]
    z = Scaling.of(rows)(rows)
    z = z[:, z.std(0) > 0.5]  # it is 1, or 0 of a constant feature
    n, d = z.shape
    if d == 0:
        return 0.0
    correlation = (z.T @ z if d <= n else z @ z.T) / n  # of the larger one the sum of squares is the same
    squares = (correlation**2).sum(dtype=float) - d * (d - 1) / (n - 1)
    return float(1 - d / max(squares, d))
