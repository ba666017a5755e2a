"""meristem: neural networks that find their own size.

The gates that decide how many units and layers exist are trained by gradient descent together with the weights.
"""

from typing import TYPE_CHECKING, Any

from meristem import nn as nn
from meristem.complexity import hard_size as hard_size, layer_sizes as layer_sizes, soft_size as soft_size
from meristem.gate import Confined as Confined, project as project
from meristem.nn import grow as grow, resize as resize
from meristem.train.loop import DivergedError as DivergedError, Fit as Fit, fit as fit
from meristem.train.optimizer import adam as adam, decay_mask as decay_mask, trainable as trainable
from meristem.train.population import fit_each as fit_each
from meristem.train.samples import Data as Data
from meristem.train.step import Recipe as Recipe

if TYPE_CHECKING:
    from meristem.estimators import (
        BuddingClassifier as BuddingClassifier,
        BuddingRegressor as BuddingRegressor,
        GrowthWarning as GrowthWarning,
        HighwayClassifier as HighwayClassifier,
        HighwayRegressor as HighwayRegressor,
        TunnelClassifier as TunnelClassifier,
        TunnelRegressor as TunnelRegressor,
    )

__version__ = "0.1.0"
ESTIMATORS = [
    "BuddingClassifier",
    "BuddingRegressor",
    "GrowthWarning",
    "HighwayClassifier",
    "HighwayRegressor",
    "TunnelClassifier",
    "TunnelRegressor",
]


def __getattr__(name: str) -> Any:
    """The estimators, for which scikit-learn must be installed; everything else does without."""
    if name not in ESTIMATORS:
        raise AttributeError(f"module 'meristem' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("meristem.estimators"), name)
