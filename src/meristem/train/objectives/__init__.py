"""The kinds of task: one file each; `objective(name)` finds one, `OBJECTIVES` lists them."""

from typing import Any

from meristem.check import unknown
from meristem.train.objectives.absolute_error import AbsoluteError as AbsoluteError
from meristem.train.objectives.base import Objective as Objective
from meristem.train.objectives.binary import Binary as Binary
from meristem.train.objectives.huber import Huber as Huber
from meristem.train.objectives.multiclass import Multiclass as Multiclass
from meristem.train.objectives.multilabel import Multilabel as Multilabel
from meristem.train.objectives.poisson import Poisson as Poisson
from meristem.train.objectives.quantile import Quantile as Quantile
from meristem.train.objectives.squared_error import SquaredError as SquaredError

OBJECTIVES: dict[str, type[Objective]] = {
    kind.name: kind for kind in (Binary, Multiclass, Multilabel, SquaredError, AbsoluteError, Huber, Poisson, Quantile)
}


def objective(given: Any) -> Objective:
    """An objective by name, or itself.

    >>> objective("huber"), objective(Huber(delta=2.0))
    (Huber(delta=1.35), Huber(delta=2.0))
    """
    if isinstance(given, Objective):
        return given
    name = "squared_error" if given == "squared" else given  # its first name
    if not isinstance(name, str) or name not in OBJECTIVES:
        raise unknown("objective", given, list(OBJECTIVES))
    return OBJECTIVES[name]()
