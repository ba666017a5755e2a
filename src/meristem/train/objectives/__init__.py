"""The kinds of task, one file each: all files of this folder are imported, and register themselves in `OBJECTIVES`."""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from meristem.check import unknown
from meristem.train.objectives.absolute_error import AbsoluteError as AbsoluteError
from meristem.train.objectives.base import OBJECTIVES as OBJECTIVES, Objective as Objective
from meristem.train.objectives.binary import Binary as Binary
from meristem.train.objectives.huber import Huber as Huber
from meristem.train.objectives.multiclass import Multiclass as Multiclass
from meristem.train.objectives.multilabel import Multilabel as Multilabel
from meristem.train.objectives.poisson import Poisson as Poisson
from meristem.train.objectives.quantile import Quantile as Quantile
from meristem.train.objectives.squared_error import SquaredError as SquaredError

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")


def objective(choice: Any) -> Objective:
    """An objective by name, or itself.

    >>> objective("huber"), objective(Huber(delta=2.0))
    (Huber(delta=1.35), Huber(delta=2.0))
    """
    if isinstance(choice, Objective):
        return choice
    name = "squared_error" if choice == "squared" else choice  # its first name
    if not isinstance(name, str) or name not in OBJECTIVES:
        raise unknown("objective", choice, sorted(OBJECTIVES))
    return OBJECTIVES[name]()
