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
    from meristem.files.models import load as load, save as save
    from meristem.pictures import (
        plot_decision_boundary as plot_decision_boundary,
        plot_growth as plot_growth,
        plot_structure as plot_structure,
    )

__version__ = "0.1.0"

# Names that need more than the core's five dependencies are looked up when they are asked for.
LAZY = {
    "BuddingClassifier": "estimators",
    "BuddingRegressor": "estimators",
    "GrowthWarning": "estimators",
    "HighwayClassifier": "estimators",
    "HighwayRegressor": "estimators",
    "TunnelClassifier": "estimators",
    "TunnelRegressor": "estimators",
    "load": "models",
    "save": "models",
    "plot_decision_boundary": "plots",
    "plot_growth": "plots",
    "plot_structure": "plots",
}


__all__ = [
    *("nn", "hard_size", "layer_sizes", "soft_size", "Confined", "project", "grow", "resize", "DivergedError", "Fit", "fit"),
    *("adam", "decay_mask", "trainable", "fit_each", "Data", "Recipe"),
    *LAZY,
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in ("export", "plots"):
        return import_module(f"meristem.{name}")
    if name not in LAZY:
        raise AttributeError(f"module 'meristem' has no attribute {name!r}")
    try:
        return getattr(import_module(f"meristem.{LAZY[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("sklearn"):
            raise
        raise ImportError(f"meristem.{name} needs scikit-learn: pip install 'meristem[sklearn]'") from error


def __dir__() -> list[str]:
    return sorted({*globals(), *LAZY})
