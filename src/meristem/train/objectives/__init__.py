"""The kinds of task; every module of this folder is imported, and its classes register themselves in `OBJECTIVES`."""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from meristem.check import unknown
from meristem.train.objectives.base import OBJECTIVES as OBJECTIVES, Objective as Objective
from meristem.train.objectives.classification import Binary as Binary, Multiclass as Multiclass, Multilabel as Multilabel
from meristem.train.objectives.regression import (
    AbsoluteError as AbsoluteError,
    Huber as Huber,
    Poisson as Poisson,
    Quantile as Quantile,
    SquaredError as SquaredError,
)

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")


def objective(choice: Any) -> Objective:
    """Return the objective of this name, or the objective itself.

    >>> objective("huber"), objective(Huber(delta=2.0))
    (Huber(delta=1.35), Huber(delta=2.0))
    """
    if isinstance(choice, Objective):
        return choice
    name = "squared_error" if choice == "squared" else choice  # its former name
    if not isinstance(name, str) or name not in OBJECTIVES:
        raise unknown("objective", choice, sorted(OBJECTIVES))
    return OBJECTIVES[name]()
