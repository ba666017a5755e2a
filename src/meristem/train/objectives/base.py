"""What an objective is: all that is particular to a kind of task, in one record.

    loss(outputs, target)       E(x) of one sample: outputs [k] of the network against its target
    error(outputs, target)      what a person is told: wrong decisions of one sample, or a distance
    check(name, y, n_out)       a ValueError of one line where targets do not fit
    best_constant(y, weight)    the outputs [k] of the best constant prediction, for comparison; NumPy

An objective is a frozen dataclass: equal ones are one compiled program. Its fields are its parameters. To add one, write a file
like its neighbors and name it in `OBJECTIVES` (objectives/__init__.py). Imports nothing of meristem.
"""

import abc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

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


def weighted_quantile(y: np.ndarray, weight: np.ndarray, level: Any) -> np.ndarray:
    """The value of each column [n, k] below which lies `level` of the weight, [n] or [n, k]. NaN must have none.

    >>> weighted_quantile(np.array([[1.0], [2.0], [9.0]]), np.ones(3), 0.5).tolist()
    [2.0]
    """
    (found,) = weighted_quantiles(y, weight, [level])
    return found


def weighted_quantiles(y: np.ndarray, weight: np.ndarray, levels: Sequence[Any]) -> list[np.ndarray]:
    """The same of several levels, which takes hardly longer than of one.

    >>> [found.tolist() for found in weighted_quantiles(np.array([[1.0], [2.0], [9.0]]), np.ones(3), [0.5, 0.9])]
    [[2.0], [9.0]]
    """
    order = np.argsort(y, axis=0, kind="stable")
    sorted_weight = weight[order] if weight.ndim == 1 else np.take_along_axis(weight, order, 0)
    share = np.cumsum(sorted_weight, axis=0) / np.maximum(weight.sum(0), 1e-300)
    places = [np.minimum((share < level - 1e-12).sum(0), len(y) - 1) for level in levels]
    return [np.take_along_axis(y, np.take_along_axis(order, place[None], 0), 0)[0] for place in places]
