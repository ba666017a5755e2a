"""What the device carries from one epoch to the next (`TrainState`), and the record of an epoch (`EpochInfo`).

The schedule is a plateau schedule: the learning rate drops (1 → 0.3 → 0.1 → stop) after `patience` epochs without improvement.
In the last stage, where open gates can only close, the mean of the networks is measured, since single steps scatter around the
minimum:

    a ← a + share · (p − a)         share = max(1 / epochs of the stage so far, 0.15), after every epoch

Where the recipe has an `average`, the mean follows all steps, with share = max(10 / (9 + steps so far), 1 − average).
All are values with a leading axis of members in a population.
"""

from dataclasses import fields, replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray, PyTree

from meristem.gate import hold
from meristem.nn.network import Network
from meristem.train.hyperparameters import Knobs, Recipe
from meristem.train.schedules import PLATEAU, rate_factor

Value = Array | np.ndarray
Number = float | Float[Array, ""]
TOLERANCE = 1e-9  # a smaller gain is no improvement
SHARE = 0.15  # the least share of the newest epoch in the average
RAMP = 10  # of the share of the newest step: as if so many were averaged at first, so that the first weights are soon forgotten


class Plateau(NamedTuple):
    """The plateau schedule; `stages` below are the stages of the recipe."""

    best: Float[Array, ""]  # lowest watched measure so far
    since: Int[Array, ""]  # epochs since it improved or the learning rate dropped
    stage: Int[Array, ""]  # how often the learning rate has dropped; len(scales): stopped

    @staticmethod
    def start() -> "Plateau":
        return Plateau(jnp.asarray(jnp.inf, jnp.result_type(float)), jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32))

    def after(self, measure: Float[Array, ""], *, patience: Number, stages: int, tolerance: Number = TOLERANCE) -> "Plateau":
        """Return the schedule after an epoch; lower is better, and NaN or a gain within the tolerance is no improvement."""
        improved = measure < self.best - tolerance
        since = jnp.where(improved, 0, self.since + 1)
        drops = (since >= patience) & (self.stage < stages)
        best = jnp.where(improved, measure, self.best)
        return Plateau(best, jnp.where(drops, 0, since), self.stage + drops.astype(jnp.int32))

    def scale(self, scales: tuple[float, ...]) -> Float[Array, ""]:
        """Return the factor of the learning rate; 0 when stopped."""
        return jnp.asarray((*scales, 0.0), self.best.dtype)[self.stage]

    @property
    def has_dropped(self) -> Bool[Array, ""]:  # a recipe that settles then closes gates
        return self.stage >= 1

    def is_last(self, stages: int) -> Bool[Array, ""]:  # a recipe that settles then keeps closed gates closed
        return self.stage >= stages - 1

    def is_stopped(self, stages: int) -> Bool[Array, ""]:
        return self.stage >= stages


class Average(eqx.Module):
    """The mean network of the last stage, and over how many epochs; before that stage the network itself, and 0.

    Of a recipe with `average` it is that of all steps, and `epochs` counts them.
    """

    network: Network
    epochs: Int[Array, "*members"]

    def after(self, network: Network, is_last: Bool[Array, ""], moved: Bool[Array, ""]) -> "Average":
        """Return the average after an epoch; it restarts where a tree `moved` its rows by opening or closing nodes."""
        epochs = jnp.where(is_last, jnp.where(moved, 0, self.epochs) + 1, 0)
        return self._moved(network, epochs, jnp.maximum(1 / jnp.maximum(epochs, 1), SHARE))

    def after_step(self, network: Network, moved: Bool[Array, ""], decay: float) -> "Average":
        """Return the average after a step, likewise."""
        steps = jnp.where(moved, 0, self.epochs) + 1
        return self._moved(network, steps, jnp.maximum(RAMP / (RAMP - 1 + steps), 1 - decay))

    def _moved(self, network: Network, epochs: Int[Array, ""], share: Float[Array, ""]) -> "Average":
        def mix(old: Any, new: Any) -> Any:
            mixes = eqx.is_inexact_array(new)
            return jnp.where(epochs > 1, old + share.astype(new.dtype) * (new - old), new) if mixes else new

        return Average(hold(network, jax.tree.map(mix, self.network, network)), epochs.astype(jnp.int32))


class TrainState(eqx.Module):
    """All that an epoch needs from the one before it."""

    network: Network
    opt_state: PyTree
    average: Average | None  # where the recipe settles, or has an `average`
    key: PRNGKeyArray | Key[Array, "*members"]
    plateau: Plateau
    best: tuple[Float[Array, "*members"], Float[Array, "*members"]]  # the selection measure of the best epoch, and its loss
    epoch: Int[Array, "*members"]
    diverged: Bool[Array, "*members"]

    @property
    def members(self) -> tuple[int, ...]:
        """() for one network, else (members,)."""
        return self.epoch.shape

    def rate(self, knobs: Knobs, recipe: Recipe) -> Float[Array, ""]:
        """The learning rate of the next epoch; 0 when stopped."""
        highest: Any = knobs.learning_rate
        if recipe.schedule == PLATEAU:
            return highest * self.plateau.scale(recipe.scales)
        factor = rate_factor(recipe.schedule, (self.epoch + 0.5) / jnp.asarray(knobs.epochs))
        return highest * jnp.where(self.plateau.is_stopped(len(recipe.scales)), 0.0, factor)

    @property
    def measured(self) -> Network:
        """The network that is measured, and saved if it is the best: the average if there is one."""
        return self.network if self.average is None else self.average.network


class Growth(NamedTuple):
    """What happened to the structure in the steps of an epoch so far; all 0 where nothing grows."""

    opened: Int[Array, ""]
    closed: Int[Array, ""]
    waited: Int[Array, ""]  # openings without a free place
    most_leaves: Int[Array, ""]  # at any step of the epoch


class EpochInfo(eqx.Module):
    """What happened in an epoch, by attribute or by name (`info["loss"]`); measured after it, without dropout."""

    epoch: Int[Value, "*members"]  # counted from 1; the last one of a member that had stopped
    rate: Float[Value, "*members"]  # the learning rate of this epoch
    loss: Float[Value, "*members"]
    error: Float[Value, "*members"]
    macro_f1: Float[Value, "*members"] | None  # None unless outputs are labels
    dev_loss: Float[Value, "*members"]
    dev_error: Float[Value, "*members"]
    dev_macro_f1: Float[Value, "*members"] | None
    layer_sizes: Float[Value, "*members layers"]
    hard_size: Int[Value, "*members"]
    stage: Int[Value, "*members"]  # learning-rate drops before this epoch
    improved: Bool[Value, "*members"]  # whether this is the best model so far
    stopped: Bool[Value, "*members"]  # whether the member has stopped
    diverged: Bool[Value, "*members"]  # the loss turned non-finite; the state is the one before this epoch
    opened: Int[Value, "*members"]
    closed: Int[Value, "*members"]
    waited: Int[Value, "*members"]  # openings without a free place
    most_leaves: Int[Value, "*members"]  # at any step of the epoch
    hard_cost: Float[Value, "*members"] | None = None  # the parameters or multiply-adds of what is open
    temperature: Float[Value, "*members"] | None = None  # of the development loss, if calibrated

    @property
    def soft_size(self) -> Any:
        """The sum over layers."""
        return self.layer_sizes.sum(-1)

    def keys(self) -> list[str]:
        """Return the names that `dict(info)` has."""
        return [name for name in (*FIELDS, "soft_size") if getattr(self, name) is not None]

    def __getitem__(self, name: str) -> Any:
        if name not in self.keys():
            raise KeyError(name)
        value = np.asarray(getattr(self, name))
        return value.item() if value.ndim == 0 else value  # plain numbers can be written as JSON

    def member(self, member: int) -> "EpochInfo":
        """Return the info of one member of a population."""
        return jax.tree.map(lambda values: values[member], self)


FIELDS = [field.name for field in fields(EpochInfo)]


def start(network: Network, key: PRNGKeyArray, recipe: Recipe) -> TrainState:
    """Return the state before the first epoch."""
    inf = jnp.asarray(jnp.inf, jnp.result_type(float))
    return TrainState(
        network=network,
        opt_state=recipe.chain.init(network),
        average=Average(network, jnp.zeros((), jnp.int32)) if recipe.averages else None,
        key=key,
        plateau=Plateau.start(),
        best=(inf, inf),
        epoch=jnp.zeros((), jnp.int32),
        diverged=jnp.zeros((), bool),
    )


def fit_to_recipe(state: TrainState, recipe: Recipe) -> TrainState:
    """Return the state of another recipe with an average, or without, as this recipe needs it."""
    if (state.average is not None) == recipe.averages:
        return state
    none_yet = jax.device_put(np.zeros(state.epoch.shape, np.int32))  # compiles nothing
    return replace(state, average=Average(state.network, none_yet) if recipe.averages else None)


def no_growth(members: tuple[int, ...] = ()) -> Growth:
    """Return the growth before the first step of an epoch."""
    return Growth(*(jnp.zeros(members, jnp.int32) for _ in Growth._fields))


def select(condition: Bool[Array, "*members"], if_true: PyTree, if_false: PyTree) -> PyTree:
    """Return one of two trees, random keys included; a [members] condition selects member by member."""

    def pick(a: Array, b: Array) -> Array:
        return jnp.where(condition.reshape(condition.shape + (1,) * (a.ndim - condition.ndim)), a, b)

    return jax.tree.map(pick, if_true, if_false)
