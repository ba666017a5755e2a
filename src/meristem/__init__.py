"""meristem: neural networks that find their own size.

The gates that decide how many units and layers exist are trained by gradient descent together with the weights.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from meristem import compact as compact, export as export, nn as nn, pictures as pictures
    from meristem.complexity import hard_size as hard_size, layer_sizes as layer_sizes, soft_size as soft_size
    from meristem.estimators import *  # noqa: F403  (those that it imports by their names)
    from meristem.files import save as save
    from meristem.gate import Confined as Confined, project as project
    from meristem.images import ImageModel as ImageModel, fit_images as fit_images
    from meristem.nn import grow as grow, resize as resize
    from meristem.paths import Path as Path, path as path
    from meristem.persistence import load as load
    from meristem.pictures import *  # noqa: F403
    from meristem.tables import TableModel as TableModel, fit_table as fit_table
    from meristem.train.callbacks import Watcher as Watcher
    from meristem.train.epoch import step as step
    from meristem.train.hyperparameters import Knobs as Knobs, Recipe as Recipe
    from meristem.train.loop import DivergedError as DivergedError, fit as fit
    from meristem.train.optimizer import (
        adam as adam,
        decay_mask as decay_mask,
        scale_by_rate as scale_by_rate,
        trainable as trainable,
    )
    from meristem.train.run import Run as Run, advance as advance, begin as begin
    from meristem.train.settle import close_to_budget as close_to_budget, model_cost as model_cost, settle as settle
    from meristem.train.training_data import Data as Data

__version__ = "0.1.0"

# All names are looked up when they are asked for: the command line must listen to signals before anything large is imported,
# and some need more than the core's five dependencies.
NAMES = {  # by module
    "complexity": "hard_size layer_sizes soft_size",
    "gate": "Confined project",
    "nn": "grow resize",
    "train.loop": "fit DivergedError",
    "train.run": "begin advance Run",
    "train.epoch": "step",
    "train.settle": "settle close_to_budget model_cost",
    "train.hyperparameters": "Recipe Knobs",
    "train.training_data": "Data",
    "train.callbacks": "Watcher",
    "paths": "path Path",
    "train.optimizer": "adam decay_mask scale_by_rate trainable",
    "estimators": "BuddingClassifier BuddingClassifierCV BuddingRegressor BuddingRegressorCV GrowthWarning HighwayClassifier "
    "HighwayRegressor TunnelClassifier TunnelClassifierCV TunnelImageClassifier TunnelImageClassifierCV "
    "TunnelRegressor TunnelRegressorCV",
    "tables": "TableModel fit_table",
    "images": "ImageModel fit_images",
    "persistence": "load",
    "files": "save",
    "pictures": "plot_decision_boundary plot_frontier plot_growth plot_structure",
}
# The extra that pip installs for a module.
EXTRAS = {
    "estimators": "sklearn",
    "tables": "sklearn",
    "images": "sklearn",
    "persistence": "files",
    "files": "files",
    "pictures": "cli",
}
FORMER_MODULES = {"plots": "pictures", "cpu": "xla_flags", "gpu": "xla_flags"}
MODULES = {name: module for module, names in NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "__all__":  # only what can be imported here: a star must not fail where an extra is not installed
        return ["nn", *(name for name, module in MODULES.items() if EXTRAS.get(module) != "sklearn" or _have("sklearn"))]
    if name not in MODULES:
        module = FORMER_MODULES.get(name, name)
        if name.startswith("_") or not _have(f"meristem.{module}"):
            raise AttributeError(f"module 'meristem' has no attribute {name!r}")
        return import_module(f"meristem.{module}")
    try:
        return getattr(import_module(f"meristem.{MODULES[name]}"), name)
    except ModuleNotFoundError as error:
        extra = EXTRAS.get(MODULES[name])
        if extra is None or error.name is None or error.name.partition(".")[0] in ("meristem", "jax"):
            raise
        raise ImportError(f"meristem.{name} needs {error.name}: pip install 'meristem-nn[{extra}]'") from error


def __dir__() -> list[str]:
    return sorted({*globals(), "nn", "compact", "export", "pictures", *MODULES})


def _have(module: str) -> bool:
    from importlib.util import find_spec

    try:
        return find_spec(module) is not None
    except ValueError:  # blocked on purpose, as sys.modules["sklearn"] = None does
        return False
