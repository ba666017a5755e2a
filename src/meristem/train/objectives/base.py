"""What an objective is: all that is particular to a kind of task, in one record.

    loss(outputs, target)       E(x) of one sample: outputs [k] of the network against its target
    error(outputs, target)      what a person is told: wrong decisions of one sample, or a distance
    check(name, y, n_out)       a ValueError of one line where targets do not fit
    best_constant(y, weight)    the outputs [k] of the best constant prediction, for comparison; NumPy
    constant_error(y, weight)   the mean error of that constant, for comparison; NumPy where compiling would take longer

An objective is a frozen dataclass: equal ones are one compiled program. Its fields are its parameters. A class with a `name`
registers itself: `Recipe(objective=name)`, `load` and, where its targets are numbers, `TunnelRegressor(loss=name)` find it. To
add one, write a file like its neighbors here, or a class anywhere else. Imports nothing of meristem.
"""

import abc
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

NEVER = -1e9  # a logit whose probability, or a log-rate whose rate, is 0
OBJECTIVES: "dict[str, type[Objective]]" = {}  # by name


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
    target_kind: ClassVar[str] = "numbers"  # the `kind` of the meristem.targets that estimators encode y with
    noise_power: ClassVar[float] = 1.0  # the least loss that noise of a given variance allows grows as variance ** noise_power
    learns: ClassVar[str] = ""  # what a regressor with this loss predicts, in words

    def __init_subclass__(cls, **options: Any) -> None:
        """Register a class that has a name of its own; one of the same module replaces it, as a cell that is run again does."""
        super().__init_subclass__(**options)
        if "name" in vars(cls):
            if (other := OBJECTIVES.get(cls.name, cls)).__module__ != cls.__module__:
                raise ValueError(f"name={cls.name!r} is that of {other.__module__}.{other.__name__}; choose another name.")
            OBJECTIVES[cls.name] = cls

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

    def constant_error(self, y: np.ndarray, weight: np.ndarray) -> float:
        """The mean error of the best constant prediction over y [n, …], weighted."""
        best = jnp.asarray(self.best_constant(y, weight), jnp.result_type(float))
        errors = jax.vmap(lambda target: self.error(best, target))(jnp.asarray(y))
        return float(weight @ np.asarray(errors) / weight.sum())

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
