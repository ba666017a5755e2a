"""Default hyperparameters, given the data: what "auto" means.

The predictability of the targets (predictability.py) is the share of their variance that the inputs predict; the rest is noise
to a model of these rows. Classifiers and regressors have one record of defaults each, and bodies differ in its values.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from meristem.targets import Targets

PENALTY = 1e-3
CLEAR_L2 = 5e-5  # of classes with little noise
NOISY, CLEAR = 0.5, 0.6  # predictability
LEAST_NOISE, LEAST_PENALTY_NOISE = 0.01, 0.1
MANY_NUMBERS, DROPOUT = 16, 0.25


@dataclass(frozen=True)
class ClassifierDefaults:
    """Of classes and labels: l2 grows with the noise, from `noisy_l2`[0] / rows to `noisy_l2`[1] / rows.

    Of many numeric features some are dropped in each step: a tunnel starts linear, and would overfit before it opens. Binary
    features are not counted, because they are less redundant.
    """

    noisy_l2: tuple[float, float] = (1.0, 10.0)

    early_stopping = False
    penalty_needs_predictability = False

    def dropout(self, n_numeric: int) -> float:
        return DROPOUT if n_numeric >= MANY_NUMBERS else 0.0

    def penalty(self, targets: Targets, predictability: float) -> float:
        return PENALTY

    def l2(self, rows: int, targets: Targets, predictability: float, *, equal_weights: bool) -> float:
        """Return l2; rows of unequal weight may be more predictable than estimated, so at most half of them is noise."""
        share = predictability if equal_weights else max(0.5, predictability)
        strength = np.clip((1 - share) / max(share, 1e-6), *self.noisy_l2)
        return interpolated(CLEAR_L2, max(CLEAR_L2, float(strength) / rows), predictability)


@dataclass(frozen=True)
class RegressorDefaults:
    """Of numbers: penalty and l2 are proportional to the noise; l2 as in ridge regression with `ridge` as its alpha.

    No inputs are dropped, which would shrink every slope.
    """

    ridge: float = 5.0

    early_stopping = True
    penalty_needs_predictability = True

    def dropout(self, n_numeric: int) -> float:
        return 0.0

    def penalty(self, targets: Targets, predictability: float) -> float:
        return PENALTY * max(LEAST_PENALTY_NOISE, _noise(targets, predictability))

    def l2(self, rows: int, targets: Any, predictability: float, *, equal_weights: bool) -> float:
        alpha = max(self.ridge, 3 * (targets.relative_variance - 1))  # larger for rare counts, of which few rows say much
        return alpha * max(LEAST_NOISE, _noise(targets, predictability)) / rows


def _noise(targets: Targets, predictability: float) -> float:
    """Return the share of a constant prediction's loss that the inputs cannot reduce."""
    return max(0.0, 1 - predictability) ** targets.objective.noise_power


def interpolated(clear: float, noisy: float, predictability: float) -> float:
    """Return `clear` from a predictability of 0.6 on, `noisy` up to 0.5, and in between a geometric interpolation.

    >>> [round(interpolated(0.001, 0.01, share), 4) for share in (0.2, 0.55, 0.9)]
    [0.01, 0.0032, 0.001]
    """
    noise = float(np.clip((CLEAR - predictability) / (CLEAR - NOISY), 0, 1))
    return clear ** (1 - noise) * noisy**noise
