"""The interface of an objective: all that is particular to a kind of task.

An objective is a frozen dataclass, so that equal ones share a compiled program; its fields are its parameters. A class with a
`name` registers itself: `Recipe(objective=name)`, `load` and, where its targets are numbers, `TunnelRegressor(loss=name)` find
it. To add one, write a class in a module of this folder, or anywhere else.
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
    """A kind of task."""

    name: ClassVar[str]
    error_name: ClassVar[str]  # what the error is, in words
    error_is_share: ClassVar[bool] = False  # of wrong decisions, from 0 to 1: each sample has one class, y [n]
    targets_are_classes: ClassVar[bool] = False  # whole numbers, not floats
    outputs_are_logits: ClassVar[bool] = False  # of classes or labels: a temperature can calibrate them
    outputs_are_labels: ClassVar[bool] = False  # each present or absent: macro-F1 is measured too
    unused_output: ClassVar[float] = 0.0  # the value of an output that is padding, so that its loss is 0
    target_kind: ClassVar[str] = "numbers"  # the `kind` of the meristem.targets that estimators encode y with
    noise_power: ClassVar[float] = 1.0  # the least loss that noise of a given variance allows grows as variance ** noise_power
    learns: ClassVar[str] = ""  # what a regressor with this loss predicts, in words

    def __init_subclass__(cls, **options: Any) -> None:
        """Register a class that has its own name; it replaces one of the same module, as a notebook cell run twice does."""
        super().__init_subclass__(**options)
        if "name" in vars(cls):
            if (other := OBJECTIVES.get(cls.name, cls)).__module__ != cls.__module__:
                raise ValueError(f"name={cls.name!r} is taken by {other.__module__}.{other.__name__}; choose another name.")
            OBJECTIVES[cls.name] = cls

    @property
    def maximized(self) -> tuple[str, ...]:
        """The measures of which more is better."""
        return ("macro_f1",) if self.outputs_are_labels else ()

    @abc.abstractmethod
    def loss(self, outputs: Array, target: Array) -> Array:
        """Return the loss E of one sample, for its outputs [k] and its target."""

    def error(self, outputs: Array, target: Array) -> Array:
        """Return the error of one sample that people are shown: its wrong decisions, or a distance; by default the loss."""
        return self.loss(outputs, target)

    @abc.abstractmethod
    def best_constant(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the outputs [k] of the constant prediction with the least weighted mean error over y [n, …]."""

    def constant_error(self, y: np.ndarray, weight: np.ndarray) -> float:
        """Return the weighted mean error of that constant; in NumPy where compiling would take longer."""
        best = jnp.asarray(self.best_constant(y, weight), jnp.result_type(float))
        errors = jax.vmap(lambda target: self.error(best, target))(jnp.asarray(y))
        return float(weight @ np.asarray(errors) / weight.sum())

    def valid(self, y: np.ndarray, n_out: int) -> tuple[np.ndarray, str]:
        """Return which of these values may be targets, and in words what may."""
        return np.ones(y.shape, bool), "numbers"

    def check(self, name: str, y: np.ndarray, n_out: int) -> None:
        """Raise ValueError unless these are targets, [n] of classes or [n, n_out], of valid values."""
        if self.error_is_share and y.ndim != 1:
            raise ValueError(f"{name} has shape {y.shape}; objective={self.name!r} needs [samples]. Try {name}.reshape(-1).")
        if not self.error_is_share and (y.ndim != 2 or y.shape[1] != n_out):
            raise ValueError(
                f"{name} has shape {y.shape}; objective={self.name!r} needs [samples, {n_out}], a column per output."
            )
        is_valid, words = self.valid(y, n_out)
        if not is_valid.all():
            raise ValueError(f"{name} holds {y[~is_valid].flat[0]}; objective={self.name!r} needs {words}.")
