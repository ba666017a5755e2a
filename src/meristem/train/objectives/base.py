"""What an objective is: all that is particular to a kind of task, in one record.

    loss(outputs, target)       E(x) of one sample: outputs [k] of the network against its target
    error(outputs, target)      what a person is told: wrong decisions of one sample, or a distance
    check(name, y, n_out)       a ValueError of one line where targets do not fit
    best_constant(y, weight)    the outputs [k] of the best constant prediction, for comparison; NumPy

An objective is a frozen dataclass: equal ones are one compiled program. Its fields are its parameters. To add one, write a file
like its neighbors and name it in `OBJECTIVES` (objectives/__init__.py). Imports nothing of meristem.
"""

import abc
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Array

NEVER = -1e9  # a logit whose probability, or a log-rate whose rate, is 0


@dataclass(frozen=True)
class Objective(abc.ABC):
    """A kind of task; see the module's header."""

    name: ClassVar[str]
    error_name: ClassVar[str]  # what the error is, in words
    error_is_share: ClassVar[bool] = False  # of wrong decisions, from 0 to 1
    targets_are_classes: ClassVar[bool] = False  # whole numbers, not floats
    outputs_are_logits: ClassVar[bool] = False  # of classes or labels: how sure they are can be set by one number
    outputs_are_labels: ClassVar[bool] = False  # each there or not: macro-F1 is measured too
    unused_output: ClassVar[float] = 0.0  # what an output says that is there to fill a shape, so that it costs nothing

    @property
    def maximized(self) -> tuple[str, ...]:
        """The measures of which more is better; of all others less is."""
        return ("macro_f1",) if self.outputs_are_labels else ()

    @abc.abstractmethod
    def loss(self, outputs: Array, target: Array) -> Array:
        """E of one sample."""

    @abc.abstractmethod
    def error(self, outputs: Array, target: Array) -> Array:
        """What a person is told of one sample."""

    @abc.abstractmethod
    def best_constant(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """The outputs of the constant prediction with the least mean error over y [n, …], weighted."""

    def check(self, name: str, y: np.ndarray, n_out: int) -> None:
        """Targets [n, n_out] of numbers: a column per output."""
        check_columns(self, name, y, n_out)


def check_columns(objective: Objective, name: str, y: np.ndarray, n_out: int) -> None:
    """Raise ValueError unless y is [n, n_out]."""
    if y.ndim != 2 or y.shape[1] != n_out:
        raise ValueError(
            f"{name} has shape {y.shape}; objective={objective.name!r} needs [samples, {n_out}], a column per output."
        )


def check_row(objective: Objective, name: str, y: np.ndarray) -> None:
    """Raise ValueError unless y is [n]."""
    if y.ndim != 1:
        raise ValueError(f"{name} has shape {y.shape}; objective={objective.name!r} needs [samples]. Try {name}.reshape(-1).")


def check_values(objective: Objective, name: str, y: np.ndarray, fits: np.ndarray, wanted: str) -> None:
    """Raise ValueError with the first value that does not fit."""
    if not fits.all():
        raise ValueError(f"{name} holds {y[~fits].flat[0]}; {wanted}.")
