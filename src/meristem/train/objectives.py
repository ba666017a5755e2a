"""The kinds of task: the loss E and the error of outputs o [k], for targets t.

Multilabel      E = Σ log(1 + e^o) − t · o                                  k logits; t [n, k] of 0 and 1
Binary          E = log(1 + e^o) − t · o                                    one logit; t [n] of 0 and 1
Multiclass      E = log Σ_j e^o_j − o_t                                     k logits; t [n] of 0 … k − 1

Losses of numbers t [n, k], with d = o − t:

SquaredError    E = ½ Σ d²                                                  learns the mean; the error is Σ d²
AbsoluteError   E = Σ |d|                                                   learns the median; the error is E
Huber           E = Σ ½ d² where |d| ≤ delta, else delta · (|d| − ½ delta)  between both; the error is Σ |d|
Quantile        E = Σ q max(−d, 0) + (1 − q) max(d, 0)                      learns quantiles q; the error is E
Poisson         E = Σ e^o − t · o                                           learns log-rates o; the error is the deviance

An objective is a frozen dataclass, so that equal ones share a compiled program; its fields are its parameters. A class with a
`name`, wherever it is written, registers itself: `Recipe(objective=name)`, `load` and, where its targets are numbers,
`TunnelRegressor(loss=name)` find it.
"""

import abc
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from meristem.check import check_number, unknown
from meristem.weighted_quantiles import weighted_quantiles

NEVER = -1e9  # a logit whose probability, or a log-rate whose rate, is 0
OBJECTIVES: "dict[str, type[Objective]]" = {}  # by name


@dataclass(frozen=True)
class Objective(abc.ABC):
    """All that is particular to a kind of task."""

    name: ClassVar[str]
    error_name: ClassVar[str] = "error"  # what it is, in words
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

    @abc.abstractmethod
    def loss(self, outputs: Array, target: Array) -> Array:
        """Return the loss E of one sample, for its outputs [k] and its target."""

    def error(self, outputs: Array, target: Array) -> Array:
        """Return the error of one sample that people are shown: its wrong decisions, or a distance; by default the loss."""
        return self.loss(outputs, target)

    def answer(self, outputs: Array) -> Array:
        """Return outputs [k] as a target [k], from which a network can learn what another one answers."""
        return outputs

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


class Multilabel(Objective):
    """k logits, targets of k zeros and ones; the error is the number of wrong decisions at a probability of 1/2."""

    name = "multilabel"
    error_name = "wrong labels per instance"
    outputs_are_logits = True
    outputs_are_labels = True
    unused_output = NEVER
    target_kind = "labels"

    def loss(self, outputs: Array, target: Array) -> Array:
        return (jax.nn.softplus(outputs) - target.reshape(outputs.shape).astype(outputs.dtype) * outputs).sum()

    def error(self, outputs: Array, target: Array) -> Array:
        return ((outputs > 0) != (target.reshape(outputs.shape) > 0)).sum().astype(outputs.dtype)

    def answer(self, outputs: Array) -> Array:
        return jax.nn.sigmoid(outputs)

    def best_constant(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return np.atleast_1d(np.where(2 * weight @ y > weight.sum(), 1.0, -1.0))

    def constant_error(self, y: np.ndarray, weight: np.ndarray) -> float:
        positive = weight @ y / weight.sum()
        return float(np.minimum(positive, 1 - positive).sum())

    def valid(self, y: np.ndarray, n_out: int) -> tuple[np.ndarray, str]:
        return np.isin(y, (0, 1)), "0 and 1 alone"


class Multiclass(Objective):
    """k logits, target 0 … k − 1, or k shares t_j of the classes, with Σ t_j o_j in place of o_t."""

    name = "multiclass"
    error_is_share = True
    targets_are_classes = True
    outputs_are_logits = True
    unused_output = NEVER
    target_kind = "classes"

    def loss(self, outputs: Array, target: Array) -> Array:
        own = target * outputs if target.ndim else jnp.where(jnp.arange(outputs.shape[0]) == target, outputs, 0)
        return jax.nn.logsumexp(outputs) - own.sum()

    def error(self, outputs: Array, target: Array) -> Array:
        return (outputs.argmax() != (target.argmax() if target.ndim else target)).astype(outputs.dtype)

    def answer(self, outputs: Array) -> Array:
        return jax.nn.softmax(outputs)

    def best_constant(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return np.bincount(y, weight)

    def constant_error(self, y: np.ndarray, weight: np.ndarray) -> float:
        return float(1 - np.bincount(y, weight).max() / weight.sum())

    def valid(self, y: np.ndarray, n_out: int) -> tuple[np.ndarray, str]:
        return (y == np.floor(y)) & (y >= 0) & (y < n_out), f"whole numbers from 0 to {n_out - 1}, with n_out={n_out}"


class Binary(Multilabel):
    """One logit, target 0 or 1: a single label, which is one of two classes."""

    name = "binary"
    error_name = "error"
    error_is_share = True
    outputs_are_labels = False
    target_kind = "classes"
    constant_error = Multiclass.constant_error

    def check(self, name: str, y: np.ndarray, n_out: int) -> None:
        if n_out != 1:
            raise ValueError(f"objective='binary' needs a network with n_out=1, not {n_out}; for more classes: 'multiclass'.")
        super().check(name, y, n_out)


class SquaredError(Objective):
    """k values, targets of k values; the best constant is the mean."""

    name = "squared_error"
    error_name = "squared error"
    learns = "the mean"

    def loss(self, outputs: Array, target: Array) -> Array:
        return 0.5 * self.error(outputs, target)

    def error(self, outputs: Array, target: Array) -> Array:
        return ((outputs - target.astype(outputs.dtype)) ** 2).sum()

    def best_constant(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return weight @ y / weight.sum()

    def constant_error(self, y: np.ndarray, weight: np.ndarray) -> float:
        return float((weight @ (y - self.best_constant(y, weight)) ** 2 / weight.sum()).sum())


class AbsoluteError(Objective):
    """k values, targets of k values with outliers; the best constant is the median."""

    name = "absolute_error"
    error_name = "absolute error"
    noise_power = 0.5
    learns = "the median, wherever outliers are"

    def loss(self, outputs: Array, target: Array) -> Array:
        distance = outputs - target.astype(outputs.dtype)
        # Not |d|, whose derivative is 1 at 0: an output that is padding must not move.
        return (jax.nn.relu(distance) + jax.nn.relu(-distance)).sum()

    def error(self, outputs: Array, target: Array) -> Array:
        return jnp.abs(outputs - target.astype(outputs.dtype)).sum()

    def best_constant(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return weighted_quantiles(y, weight, [0.5])[0]

    def constant_error(self, y: np.ndarray, weight: np.ndarray) -> float:
        return float((weight @ np.abs(y - self.best_constant(y, weight)) / weight.sum()).sum())


@dataclass(frozen=True)
class Huber(AbsoluteError):
    """`delta` is in the units of the targets; 1.35 of their standard deviations keeps 95 % of the mean's efficiency."""

    delta: float = 1.35

    name = "huber"
    noise_power = 1.0
    learns = "the mean of all but outliers (squared up to 1.35 standard deviations, absolute beyond)"

    def __post_init__(self) -> None:
        check_number("delta", self.delta, "above 0", lambda value: 0 < value < math.inf)

    def loss(self, outputs: Array, target: Array) -> Array:
        distance = jnp.abs(outputs - target.astype(outputs.dtype))
        near = jnp.minimum(distance, self.delta)  # ½ near² + delta · (distance − near): both branches in one formula
        return (0.5 * near**2 + self.delta * (distance - near)).sum()


@dataclass(frozen=True)
class Quantile(Objective):
    """`levels` q: one for every output, or a few that repeat; repeat a target's column to learn several quantiles of it."""

    levels: tuple[float, ...] | list[float] = (0.5,)

    name = "quantile"
    error_name = "quantile loss"
    target_kind = "quantiles"
    noise_power = 0.5
    learns = "the `quantiles`"

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", tuple(self.levels))
        if not self.levels:
            raise ValueError("levels=() must hold at least one number between 0 and 1.")
        for level in self.levels:
            check_number("levels", level, "above 0 and below 1", lambda value: 0 < value < 1)

    def loss(self, outputs: Array, target: Array) -> Array:
        level, target = jnp.asarray(self._levels(len(outputs)), outputs.dtype), target.astype(outputs.dtype)
        # relu has the derivative 0 at 0: an output that is padding must not move.
        return (level * jax.nn.relu(target - outputs) + (1 - level) * jax.nn.relu(outputs - target)).sum()

    def best_constant(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return weighted_quantiles(y, weight, [self._levels(y.shape[1])])[0]

    def constant_error(self, y: np.ndarray, weight: np.ndarray) -> float:
        residual, level = y - self.best_constant(y, weight), self._levels(y.shape[1])
        return float((weight @ np.maximum(level * residual, (level - 1) * residual) / weight.sum()).sum())

    def _levels(self, outputs: int) -> np.ndarray:
        return np.resize(np.asarray(self.levels, float), outputs)


class Poisson(Objective):
    """k log-rates, targets of k counts or rates; the error is 2 Σ (t log(t / μ) − t + μ) with the rate μ = e^o."""

    name = "poisson"
    error_name = "deviance"
    unused_output = NEVER
    target_kind = "counts"
    noise_power = 0.0  # the deviance has the unit of a likelihood, as that of classes
    learns = "the rate of counts, which are at least 0, by its logarithm"

    def loss(self, outputs: Array, target: Array) -> Array:
        return (jnp.exp(outputs) - target.astype(outputs.dtype) * outputs).sum()

    def answer(self, outputs: Array) -> Array:
        return jnp.exp(outputs)

    def error(self, outputs: Array, target: Array) -> Array:
        target = target.astype(outputs.dtype)
        return 2 * (jax.scipy.special.xlogy(target, target) - target * outputs - target + jnp.exp(outputs)).sum()

    def best_constant(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        mean = weight @ y / weight.sum()
        return np.where(mean > 0, np.log(np.maximum(mean, np.finfo(float).tiny)), NEVER)

    def constant_error(self, y: np.ndarray, weight: np.ndarray) -> float:
        ratio = np.divide(y, np.exp(self.best_constant(y, weight)), out=np.ones(y.shape), where=y > 0)
        return float((weight @ (2 * y * np.log(ratio)) / weight.sum()).sum())  # the rate is the mean: Σ (μ − t) is 0

    def valid(self, y: np.ndarray, n_out: int) -> tuple[np.ndarray, str]:
        return y >= 0, "counts or rates, none below 0"


def objective(choice: Any) -> Objective:
    """Return the objective of this name, or the objective itself."""
    if isinstance(choice, Objective):
        return choice
    name = "squared_error" if choice == "squared" else choice  # its former name
    if not isinstance(name, str) or name not in OBJECTIVES:
        raise unknown("objective", choice, sorted(OBJECTIVES))
    return OBJECTIVES[name]()
