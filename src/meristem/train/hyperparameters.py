"""The hyperparameters of a training: a `Recipe` and `Knobs`.

A `Recipe` shapes the compiled program: equal recipes and shapes share one. `Knobs` are arrays, so they may differ between the
members of a population without compiling anything again. Row weights in the knobs make folds and bootstraps members of one
population over data that are on the device once: a fold has weight 0 where its `dev_weight` is 1.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from meristem.check import check_number, check_size, short, unknown
from meristem.complexity import PRICES
from meristem.train.augmentation import AUGMENTATIONS, check_images
from meristem.train.objectives import Objective, objective
from meristem.train.optimizer import adam, for_models
from meristem.train.precision import PRECISIONS
from meristem.train.schedules import PLATEAU, SCHEDULES
from meristem.train.training_data import Data

MEASURES = ["loss", "error", "macro_f1"]
CHOICES = {
    "watch": MEASURES,
    "select": [*MEASURES, "cost"],
    "price": PRICES,
    "schedule": SCHEDULES,
    "precision": PRECISIONS,
}
BOUNDS: dict[str, tuple[str, Any]] = {  # of the recipe's numbers: in words, and as a predicate
    "depth_decay": ("above 0 and at most 1", lambda v: 0 < v <= 1),
    "linger": ("above 0", lambda v: 0 < v < math.inf),
    "b2": ("above 0 and below 1", lambda v: 0 < v < 1),
    "weight_decay": ("of at least 0", lambda v: 0 <= v < math.inf),
    "smoothing": ("of at least 0 and below 1", lambda v: 0 <= v < 1),
    "mixup": ("of at least 0", lambda v: 0 <= v < math.inf),
    "average": ("above 0 and below 1", lambda v: 0 < v < 1),
}
L2 = 1e-5
Number = Float[Array | np.ndarray, "*members"] | float
RowWeights = Float[Array | np.ndarray, "*members rows"] | None


@dataclass(frozen=True)
class Recipe:
    """How networks are trained; the defaults are the paper's for two spirals.

    objective       "binary" (y of 0 and 1), "multiclass" (y of 0 … n_out − 1), "multilabel" (y [n, n_out] of 0 and 1), or for
                    y [n, n_out] of numbers "squared_error", "absolute_error", "huber", "poisson", "quantile"; or an object
                    such as `meristem.train.objectives.Quantile((0.1, 0.9))`
    batch_size      samples per step; 1 is online
    depth_decay     a layer's learning rate relative to the layer before it
    b2              Adam's decay of squared gradients; 0.999 averages over about a thousand steps
    watch           the development measure of the plateau schedule: "loss", "error" or, for "multilabel", "macro_f1"
    select          the measure of the best model, also "cost" (the loss plus the penalty, J); ties go to the lower loss
    price           what the penalty multiplies: "units" (the paper's), "parameters", "bytes" (of tables in eight bits) or
                    "multiply-adds"
    settle          whether gates that are not worth their price are closed (train/settle.py), from the first learning-rate drop
                    on; in the last stage they stay closed, and the best model is one of that stage: the best by the
                    development set, or the last where there is none
    follow          whether steps leave out what is closed, from the first learning-rate drop on, so that their cost follows the
                    size (train/live_size.py); every fifth epoch trains the full network until the last stage
    calibrate       whether the development loss is measured at the best temperature of the logits (train/metrics.py)
    patience        epochs without improvement before the learning rate drops, and before training ends in the last stage
    linger          a factor of the patience while gates close, where closing takes longer than learning
    compile_fast    whether a CPU's programs are compiled without the compiler's last optimizations: in four fifths of the time,
                    to steps that are as fast, with sums that differ in the last bits
    scales          the factors of the learning rate, one for each stage
    schedule        "plateau", "cosine" or "one-cycle" (train/schedules.py): the last two end after the knobs' `epochs`, let the
                    network grow for two fifths of them and settle it in the last fifth, without `patience` and `linger`
    weight_decay    the share that each step takes from all weights but gates, times the learning rate (AdamW)
    smoothing       the share of a target that goes to all classes alike (train/smoothing.py), in the steps, not in measures
    mixup           0, or the α of the shares in which the samples of a step are mixed (train/mixup.py)
    augment         names of changes to the images of each step (train/augmentation.py), in their order, as ("flip", "crop")
    average         None, or the decay per step, such as 0.999, of an average of the weights, which is measured and kept
    precision       what a step computes in: "float32", or "bfloat16" where the device is faster with it (train/precision.py)
    optimizer       None: Adam with an age and a rate per layer (`meristem.adam(depth_decay)`); or any optax chain. The rate of
                    the knobs times the stage's factor reaches a chain that ends in `meristem.scale_by_rate()`; one with its
                    own rate or optax schedule follows that, and the plateau only ends the training

    >>> Recipe(objective="multiclass", batch_size=32, watch="error").patience
    20
    >>> import optax
    >>> own = Recipe(optimizer=optax.adam(optax.cosine_decay_schedule(1e-3, 1000)))
    """

    objective: str | Objective = "binary"
    batch_size: int = 1
    depth_decay: float = 0.75
    b2: float = 0.999
    watch: str = "loss"
    select: str = "error"
    patience: int = 20
    scales: tuple[float, ...] = (1.0, 0.3, 0.1)
    optimizer: Any = None
    price: str = "units"
    settle: bool = False
    follow: bool = False
    calibrate: bool = False
    linger: float = 1.0
    compile_fast: bool = False
    schedule: str = PLATEAU
    weight_decay: float = 0.0
    smoothing: float = 0.0
    mixup: float = 0.0
    augment: Any = ()
    average: float | None = None
    precision: str = "float32"

    def __post_init__(self) -> None:
        task = objective(self.objective)
        object.__setattr__(self, "objective", task)
        for name, choices in CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                raise unknown(name, value, choices)
            if value == "macro_f1" and not task.outputs_are_labels:
                raise ValueError(f"{name}='macro_f1' needs objective='multilabel'; for {task.name!r} choose loss or error.")
        check_size("batch_size", self.batch_size)
        check_size("patience", self.patience)
        for name, (words, fits) in BOUNDS.items():
            if name != "average" or self.average is not None:
                check_number(name, getattr(self, name), words, fits)
        for name in ("scales", "augment"):
            value = getattr(self, name)
            object.__setattr__(self, name, tuple(value) if isinstance(value, tuple | list) else (value,))
        for name in self.augment:
            if name not in AUGMENTATIONS:
                raise unknown("augment", name, list(AUGMENTATIONS))
        if not self.scales:
            raise ValueError("scales=() must hold at least one number: the factor of the learning rate in each stage.")
        for value in self.scales:
            check_number("scales", value, "above 0", lambda v: 0 < v < math.inf)
        if self.calibrate and not task.outputs_are_logits:
            raise ValueError(f"calibrate=True needs an objective whose outputs are logits, unlike {task.name!r}.")
        if self.smoothing and not task.outputs_are_logits:
            raise ValueError(f"smoothing={self.smoothing} is for classes and labels, not objective={task.name!r}.")
        if self.weight_decay and self.optimizer is not None:
            raise ValueError(
                "weight_decay is of meristem's Adam; give your own optimizer its own: optax.adamw(…, mask=decay_mask)."
            )
        for name in ("settle", "follow", "calibrate", "compile_fast"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name}={getattr(self, name)!r} must be True or False.")
        if self.settle and len(self.scales) == 1:
            raise ValueError(f"settle=True needs at least two stages, to grow in and to settle in; scales={self.scales}.")
        if self.optimizer is not None and not (hasattr(self.optimizer, "init") and hasattr(self.optimizer, "update")):
            raise ValueError(f"optimizer={self.optimizer!r} must be an optax optimizer, such as optax.adam(1e-3), or None.")

    @property
    def task(self) -> Objective:
        """The objective as an object."""
        assert isinstance(self.objective, Objective)
        return self.objective

    @property
    def averages(self) -> bool:
        """Whether a mean of networks is measured in place of the network."""
        return self.settle or self.average is not None

    @property
    def chain(self) -> Any:
        """The optimizer as an optax chain over whole models that keeps gates in [0, 1]."""
        own = {"weight_decay": self.weight_decay} if self.weight_decay else {}
        return adam(self.depth_decay, b2=self.b2, **own) if self.optimizer is None else for_models(self.optimizer)


class Knobs(NamedTuple):
    """Numbers, or arrays with a leading axis of members; rows are those of the data, whose own weights multiply these.

    Without a development set `dev_weight` counts training rows; all rows are then measured after each epoch, unless `measured`
    names some: row 0 to learn from, row 1 held out.

    >>> Knobs(learning_rate=1e-3, penalty=1e-4).l2
    1e-05
    """

    learning_rate: Number
    penalty: Number
    l2: Number = L2
    dropout: Number | None = None  # the share of inputs set to 0 in each step; None compiles no dropout
    weight: RowWeights = None  # None: all rows count alike
    dev_weight: RowWeights = None
    budget: Number | None = None  # the most parameters, or what the price counts; the run then adapts the penalty
    patience: Number | None = None  # epochs, in place of the recipe's: a number that compiles nothing again
    measured: Int[Array | np.ndarray, "*members 2 m"] | None = None
    passes: Int[Array | np.ndarray, "*members"] | int | None = None  # over the rows in an epoch, where rows are few; None: 1
    epochs: Number | None = None  # of the whole training; only of a recipe with a schedule of known length, which needs it


RANGES: dict[str, tuple[str, Any]] = {  # of the knobs that are numbers: in words, and as a predicate
    "learning_rate": ("above 0", lambda v: v > 0),
    "penalty": ("of at least 0", lambda v: v >= 0),
    "l2": ("of at least 0", lambda v: v >= 0),
    "dropout": ("of at least 0 and below 1", lambda v: (v >= 0) & (v < 1)),
    "budget": ("of at least 1", lambda v: v >= 1),
    "patience": ("of at least 1", lambda v: v >= 1),
    "passes": ("of at least 1", lambda v: v >= 1),
    "epochs": ("of at least 1", lambda v: v >= 1),
}
OPTIONAL = {name for name, default in Knobs._field_defaults.items() if default is None}


def check_knobs(knobs: Knobs, members: tuple[int, ...]) -> Knobs:
    """Return the knobs as arrays on the device with the axis of members; ValueError where one does not fit."""
    values = {name: value for name, value in knobs._asdict().items() if value is not None or name not in OPTIONAL}
    for name, value in values.items():
        check = _numbers if name in RANGES else _row_weights
        values[name] = jnp.asarray(value) if name == "measured" else check(name, value, members)
    return Knobs(**values)


def check_samples(knobs: Knobs, recipe: Recipe, network: Any) -> None:
    """Raise ValueError where the length of a schedule is missing, or where the samples are no images and should be."""
    if (knobs.epochs is None) != (recipe.schedule == PLATEAU):
        advice = (
            "needs its length: Knobs(…, epochs=60)" if knobs.epochs is None else "ends by itself; leave out the knob epochs"
        )
        raise ValueError(f"schedule={recipe.schedule!r} {advice}.")
    check_images(recipe.augment, network.input_shape)


def check_rows(knobs: Knobs, data: Data) -> None:
    """Raise ValueError unless the weights are those of the data's rows."""
    dev = data.x if data.dev_x is None else data.dev_x
    for name, weight, rows in (("weight", knobs.weight, len(data.x)), ("dev_weight", knobs.dev_weight, len(dev))):
        if weight is not None and jnp.shape(weight)[-1] != rows:
            raise ValueError(f"{name} is for {jnp.shape(weight)[-1]} rows; the data have {rows}.")


def _numbers(name: str, value: Any, members: tuple[int, ...]) -> jax.Array:
    array, (words, fits) = np.asarray(value), RANGES[name]
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{name}={short(value)} must be a number that fits into a float.")
    with np.errstate(over="ignore", under="ignore"):
        rounded = array.astype(np.int32 if name == "passes" else jnp.result_type(float))
    if not (np.isfinite(array) & fits(array) & np.isfinite(rounded) & fits(rounded)).all():
        raise ValueError(f"{name}={short(value)} must be a finite number {words} that fits into {rounded.dtype}.")
    if array.shape not in ((), members):
        many = f", or one for each of the {members[0]} members" if members else ""
        raise ValueError(f"{name} has shape {array.shape}; give one number{many}.")
    return jax.device_put(np.broadcast_to(rounded, members))


def _row_weights(name: str, value: Any, members: tuple[int, ...]) -> jax.Array:
    array = np.asarray(value)
    if array.dtype.kind not in "fiub" or array.ndim not in (1, 1 + len(members)):
        raise ValueError(f"{name} has shape {array.shape}; give a number for each row{', of each member' * bool(members)}.")
    array = np.broadcast_to(array, (*members, array.shape[-1])) if array.ndim == 1 else array
    if array.shape[:-1] != members:
        raise ValueError(f"{name} has shape {array.shape}; give [rows], or [{members[0]}, rows] for the {members[0]} members.")
    if not np.isfinite(array).all() or (array < 0).any() or not (array > 0).any(-1).all():
        raise ValueError(f"{name} must hold finite numbers, none below 0, and at least one above 0 for each member.")
    return jax.device_put(array.astype(jnp.result_type(float)))
