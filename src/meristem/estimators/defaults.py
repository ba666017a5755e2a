"""Default hyperparameters, given the data: what "auto" means.

    predictability(x, y) → R² in [0, 1]          x [n, features], y [n, columns]: numbers, or 0 and 1

The predictability of the targets is the share of their variance that a quick model predicts in rows it has not seen; the rest
is noise, or too intricate for so few rows: either way a network could only memorize it. The quick model is kernel ridge
regression, because its errors need no second fit: with Q = (K + αI)⁻¹, row i predicted from all others is off by
(Q y)ᵢ / Qᵢᵢ. The best of a linear and two Gaussian kernels and of many α counts.

Classifiers and regressors have one record of defaults each, and bodies differ in its values.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from meristem.inputs import Preprocessor
from meristem.sparse import is_sparse, occurring
from meristem.targets import Targets

PENALTY = 1e-3
CLEAR_L2 = 5e-5  # of classes with little noise
MOST_L2 = 10.0  # / rows, of noisy classes
NOISY, CLEAR = 0.5, 0.6  # predictability: l2 is that of noisy classes up to the first, of clear ones from the second on
LEAST_NOISE, LEAST_PENALTY_NOISE = 0.01, 0.1
MANY_NUMBERS, DROPOUT = 16, 0.25
SAMPLE = 512  # rows are enough: about a fifth of a second
AT_ONCE = 10_000  # features
FEWEST = 8  # rows
CONSTANT = 10.0  # a kernel of the mean, so large that it costs nothing
ALPHAS = 10.0 ** np.arange(-3, 3.5, 0.5)


@dataclass(frozen=True)
class ClassifierDefaults:
    """Of classes and labels: l2 grows with the noise, from `noisy_l2`[0] / rows to `noisy_l2`[1] / rows.

    The upper bound counts for each class but one, up to `MOST_L2` / rows: a network that has more outputs memorizes more.
    Of many numeric features some are dropped in each step: a tunnel starts linear, and would overfit before it opens. Binary
    features are not counted, because they are less redundant.
    """

    noisy_l2: tuple[float, float] = (1.0, MOST_L2)

    early_stopping = False
    penalty_needs_predictability = False

    def dropout(self, n_numeric: int) -> float:
        return DROPOUT if n_numeric >= MANY_NUMBERS else 0.0

    def penalty(self, targets: Targets, predictability: float) -> float:
        return PENALTY

    def l2(self, rows: int, targets: Targets, predictability: float, *, equal_weights: bool) -> float:
        """Return l2; rows of unequal weight may be more predictable than estimated, so at most half of them is noise."""
        share = predictability if equal_weights else max(0.5, predictability)
        low, high = self.noisy_l2
        high = min(MOST_L2, high * (targets.n_out - 1)) if targets.objective.targets_are_classes else high  # of three or more
        strength = np.clip((1 - share) / max(share, 1e-6), low, high)
        noise = float(np.clip((CLEAR - predictability) / (CLEAR - NOISY), 0, 1))  # in between a geometric interpolation
        return CLEAR_L2 ** (1 - noise) * max(CLEAR_L2, float(strength) / rows) ** noise


@dataclass(frozen=True)
class RegressorDefaults:
    """Of numbers: penalty and l2 are proportional to the noise, l2 as in ridge regression with `ridge` as its alpha."""

    ridge: float = 5.0

    early_stopping = True
    penalty_needs_predictability = True

    def dropout(self, n_numeric: int) -> float:
        return 0.0  # which would shrink every slope

    def penalty(self, targets: Targets, predictability: float) -> float:
        return PENALTY * max(LEAST_PENALTY_NOISE, _noise(targets, predictability))

    def l2(self, rows: int, targets: Any, predictability: float, *, equal_weights: bool) -> float:
        alpha = max(self.ridge, 3 * (targets.relative_variance - 1))  # larger for rare counts, of which few rows say much
        return alpha * max(LEAST_NOISE, _noise(targets, predictability)) / rows


def _noise(targets: Targets, predictability: float) -> float:
    """Return the share of a constant prediction's loss that the inputs cannot reduce."""
    return max(0.0, 1 - predictability) ** targets.objective.noise_power


def predictability(
    x: Any, y: np.ndarray, weight: np.ndarray | None = None, columns: Callable[[np.ndarray], np.ndarray] = np.asarray
) -> float:
    """Return R² of dense or sparse rows; those of weight 0 do not count, all others count alike. 1 if rows are too few.

    `columns` makes numbers [n, columns] of y, and only of the rows in the sample: ten thousand classes need much memory.
    """
    counted = np.arange(x.shape[0]) if weight is None else np.flatnonzero(weight > 0)
    if len(counted) > SAMPLE:
        counted = np.random.default_rng(0).choice(counted, SAMPLE, replace=False)
    y = np.asarray(columns(y[counted]), float)
    y = y[:, y.std(0) > 0] - y[:, y.std(0) > 0].mean(0)
    if len(counted) < FEWEST or not y.size:
        return 1.0
    with threadpool_limits(1, "blas"):  # matrices so small take fifty times as long where threads wait for a busy core
        products = _products(x[counted])
        norms = np.diag(products)
        distances = np.maximum(norms[:, None] + norms - 2 * products, 0)
        kernels = [products, np.exp(-distances / 2), np.exp(-2 * distances)]
        return max(0.0, *(_left_out(kernel + CONSTANT, y) for kernel in kernels))


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


def _left_out(kernel: np.ndarray, y: np.ndarray) -> float:
    """Return R² of rows that are predicted from all others, at the best α."""
    values, vectors = np.linalg.eigh(kernel)
    inside, squares = vectors.T @ y, vectors**2
    shares = []
    for inverse in 1 / (np.maximum(values, 0) + ALPHAS[:, None]):
        errors = vectors @ (inverse[:, None] * inside) / (squares @ inverse)[:, None]
        shares.append(1 - ((errors**2).mean(0) / y.var(0)).mean())
    return float(max(shares))
