"""meristem: neural networks that find their own size.

The gates that decide how many units and layers exist are trained by gradient descent together with the weights.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the core
    from meristem import nn as nn
    from meristem.complexity import hard_size as hard_size, layer_sizes as layer_sizes, soft_size as soft_size
    from meristem.gate import Confined as Confined, project as project
    from meristem.nn import grow as grow, resize as resize
    from meristem.paths import Path as Path, path as path
    from meristem.train.callbacks import Watcher as Watcher
    from meristem.train.closing import (
        close_to_budget as close_to_budget,
        model_cost as model_cost,
        settle as settle,
    )
    from meristem.train.hyperparameters import Knobs as Knobs, Recipe as Recipe
    from meristem.train.loop import DivergedError as DivergedError, fit as fit
    from meristem.train.optimizer import (
        adam as adam,
        decay_mask as decay_mask,
        scale_by_rate as scale_by_rate,
        trainable as trainable,
    )
    from meristem.train.run import Run as Run, advance as advance, begin as begin
    from meristem.train.step import step as step
    from meristem.train.training_data import Data as Data

if TYPE_CHECKING:  # with extras
    from meristem import compact as compact, export as export, pictures as pictures
    from meristem.estimators import (
        BuddingClassifier as BuddingClassifier,
        BuddingClassifierCV as BuddingClassifierCV,
        BuddingRegressor as BuddingRegressor,
        BuddingRegressorCV as BuddingRegressorCV,
        GrowthWarning as GrowthWarning,
        HighwayClassifier as HighwayClassifier,
        HighwayRegressor as HighwayRegressor,
        TunnelClassifier as TunnelClassifier,
        TunnelClassifierCV as TunnelClassifierCV,
        TunnelRegressor as TunnelRegressor,
        TunnelRegressorCV as TunnelRegressorCV,
    )
    from meristem.files import save as save
    from meristem.persistence import load as load
    from meristem.pictures import (
        plot_decision_boundary as plot_decision_boundary,
        plot_frontier as plot_frontier,
        plot_growth as plot_growth,
        plot_structure as plot_structure,
    )
    from meristem.tables import TableModel as TableModel, fit_table as fit_table

__version__ = "0.1.0"

# All names are looked up when they are asked for: the command line must listen to signals before anything large is imported,
# and some need more than the core's five dependencies. name → the module that has it; LAZY: and the extra to install for it.
CORE = {
    **dict.fromkeys(("hard_size", "layer_sizes", "soft_size"), "complexity"),
    **dict.fromkeys(("Confined", "project"), "gate"),
    **dict.fromkeys(("grow", "resize"), "nn"),
    **dict.fromkeys(("fit", "DivergedError"), "train.loop"),
    **dict.fromkeys(("begin", "advance", "Run"), "train.run"),
    "step": "train.step",
    **dict.fromkeys(("settle", "close_to_budget", "model_cost"), "train.closing"),
    **dict.fromkeys(("Recipe", "Knobs"), "train.hyperparameters"),
    "Data": "train.training_data",
    "Watcher": "train.callbacks",
    **dict.fromkeys(("path", "Path"), "paths"),
    **dict.fromkeys(("adam", "decay_mask", "scale_by_rate", "trainable"), "train.optimizer"),
}
LAZY = {
    "BuddingClassifier": ("estimators", "sklearn"),
    "BuddingClassifierCV": ("estimators", "sklearn"),
    "BuddingRegressor": ("estimators", "sklearn"),
    "BuddingRegressorCV": ("estimators", "sklearn"),
    "GrowthWarning": ("estimators", "sklearn"),
    "HighwayClassifier": ("estimators", "sklearn"),
    "HighwayRegressor": ("estimators", "sklearn"),
    "TunnelClassifier": ("estimators", "sklearn"),
    "TunnelClassifierCV": ("estimators", "sklearn"),
    "TunnelRegressor": ("estimators", "sklearn"),
    "TunnelRegressorCV": ("estimators", "sklearn"),
    "TableModel": ("tables", "sklearn"),
    "fit_table": ("tables", "sklearn"),
    "load": ("persistence", "files"),
    "save": ("files", "files"),
    "plot_decision_boundary": ("pictures", "cli"),
    "plot_frontier": ("pictures", "cli"),
    "plot_growth": ("pictures", "cli"),
    "plot_structure": ("pictures", "cli"),
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "__all__":  # only what can be imported here: a star must not fail where an extra is not installed
        return ["nn", *CORE, *(lazy for lazy, (_, extra) in LAZY.items() if extra != "sklearn" or _have("sklearn"))]
    if name in CORE:
        return getattr(import_module(f"meristem.{CORE[name]}"), name)
    module = {"plots": "pictures"}.get(name, name)
    if name not in LAZY and not name.startswith("_") and _have(f"meristem.{module}"):
        return import_module(f"meristem.{module}")
    if name not in LAZY:
        raise AttributeError(f"module 'meristem' has no attribute {name!r}")
    module, extra = LAZY[name]
    try:
        return getattr(import_module(f"meristem.{module}"), name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] in ("meristem", "jax"):
            raise
        raise ImportError(f"meristem.{name} needs {error.name}: pip install 'meristem-nn[{extra}]'") from error


def __dir__() -> list[str]:
    return sorted({*globals(), "nn", "compact", "export", "pictures", *CORE, *LAZY})


def _have(module: str) -> bool:
    from importlib.util import find_spec

    try:
        return find_spec(module) is not None
    except ValueError:  # blocked on purpose, as sys.modules["sklearn"] = None does
        return False
