"""The predictability of the targets: the share of their variance that a quick model predicts in rows it has not seen.

    predictability(x, y) → R² in [0, 1]          x [n, features], y [n, columns]: numbers, or 0 and 1

The quick model is kernel ridge regression, because its errors need no second fit: with Q = (K + αI)⁻¹, row i predicted from
all others is off by (Q y)ᵢ / Qᵢᵢ. The best of a linear and two Gaussian kernels and of many α counts. What is left is noise, or
too intricate for so few rows: either way a network could only memorize it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from meristem.inputs import Preprocessor
from meristem.sparse import is_sparse, occurring

SAMPLE = 512  # rows are enough: about a fifth of a second
AT_ONCE = 10_000  # features
FEWEST = 8  # rows
CONSTANT = 10.0  # a kernel of the mean, so large that it costs nothing
ALPHAS = 10.0 ** np.arange(-3, 3.5, 0.5)


def predictability(
    x: Any, y: np.ndarray, weight: np.ndarray | None = None, columns: Callable[[np.ndarray], np.ndarray] = np.asarray
) -> float:
    """Return R² of dense or sparse rows; those of weight 0 do not count, all others count alike. 1 if rows are too few.

    `columns` makes numbers [n, columns] of y, and only of the rows in the sample: ten thousand classes need much memory.

    >>> x = np.random.default_rng(0).normal(size=(200, 3))
    >>> round(predictability(x, x[:, :1]), 2), round(predictability(x[:, 1:], x[:, :1]), 2)
    (1.0, 0.0)
    """
    counted = np.arange(x.shape[0]) if weight is None else np.flatnonzero(weight > 0)
    if len(counted) > SAMPLE:
        counted = np.random.default_rng(0).choice(counted, SAMPLE, replace=False)
    y = np.asarray(columns(y[counted]), float)
    y = y[:, y.std(0) > 0] - y[:, y.std(0) > 0].mean(0)
    if len(counted) < FEWEST or not y.size:
        return 1.0
    with threadpool_limits(1, "blas"):  # matrices so small take fifty times as long where threads wait for a busy core
        return max(0.0, *(_left_out(kernel + CONSTANT, y) for kernel in _kernels(_products(x[counted]))))


def _products(x: Any) -> np.ndarray:
    """Return for all pairs of rows the mean product over the features that are not constant, `AT_ONCE` at a time."""
    x = x[:, occurring(x, np.ones(x.shape[0], bool))] if is_sparse(x) else x
    total, n = np.zeros((x.shape[0], x.shape[0])), 0
    for start in range(0, x.shape[1], AT_ONCE):
        part = x[:, start : start + AT_ONCE]
        z = Preprocessor.of(part)(part).astype(float)
        z = z[:, z.any(0)]  # a constant feature is 0
        total, n = total + z @ z.T, n + z.shape[1]
    return total / max(1, n)


def _kernels(products: np.ndarray) -> list[np.ndarray]:
    norms = np.diag(products)
    distances = np.maximum(norms[:, None] + norms - 2 * products, 0)
    return [products, np.exp(-distances / 2), np.exp(-2 * distances)]


def _left_out(kernel: np.ndarray, y: np.ndarray) -> float:
    """Return R² of rows that are predicted from all others, at the best α."""
    values, vectors = np.linalg.eigh(kernel)
    inside, squares = vectors.T @ y, vectors**2
    shares = []
    for inverse in 1 / (np.maximum(values, 0) + ALPHAS[:, None]):
        errors = vectors @ (inverse[:, None] * inside) / (squares @ inverse)[:, None]
        shares.append(1 - ((errors**2).mean(0) / y.var(0)).mean())
    return float(max(shares))
