"""What the device carries from one epoch to the next, and what an epoch says of itself.

`TrainState` must be carried; `EpochInfo` may be dropped. A population's have a leading axis of members.
"""

from dataclasses import fields
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from meristem.nn.network import Network
from meristem.train import schedule
from meristem.train.average import Average, started
from meristem.train.recipe import Recipe

Value = Array | np.ndarray


class TrainState(eqx.Module):
    """All that an epoch needs from the one before it."""

    network: Network
    opt_state: PyTree
    average: Average | None  # where the recipe settles
    key: PRNGKeyArray
    plateau: schedule.Plateau
    best: tuple[Float[Array, ""], Float[Array, ""]]  # the selection measure of the best epoch, and its loss
    epoch: Int[Array, ""]
    diverged: Bool[Array, ""]

    @property
    def measured(self) -> Network:
        """The network that is measured, and kept if it is the best: the average where there is one."""
        return self.network if self.average is None else self.average.network


class Growth(NamedTuple):
    """What happened to the structure in the steps of an epoch so far; all 0 where nothing grows."""

    opened: Int[Array, ""]
    closed: Int[Array, ""]
    waited: Int[Array, ""]  # openings that found no free place
    most_leaves: Int[Array, ""]  # at any step of the epoch


class EpochInfo(eqx.Module):
    """What happened in an epoch; measured after it, dropout off. The macro-F1 is None where there are no labels.

    By attribute or by name: `info.loss`, `info["loss"]`.
    """

    epoch: Int[Value, "*members"]  # counted from 1; of a member that had stopped, its last
    rate: Float[Value, "*members"]  # that this epoch was trained with
    loss: Float[Value, "*members"]
    error: Float[Value, "*members"]
    macro_f1: Float[Value, "*members"] | None
    dev_loss: Float[Value, "*members"]
    dev_error: Float[Value, "*members"]
    dev_macro_f1: Float[Value, "*members"] | None
    layer_sizes: Float[Value, "*members layers"]
    hard_size: Int[Value, "*members"]
    stage: Int[Value, "*members"]  # how often the rate had shrunk before this epoch
    improved: Bool[Value, "*members"]  # the best model so far
    stopped: Bool[Value, "*members"]  # nothing will change any more
    diverged: Bool[Value, "*members"]  # the loss turned non-finite; the state is the one before this epoch
    opened: Int[Value, "*members"]
    closed: Int[Value, "*members"]
    waited: Int[Value, "*members"]  # openings that found no free place
    most_leaves: Int[Value, "*members"]  # at any step of the epoch
    hard_cost: Float[Value, "*members"] | None = None  # the parameters or multiply-adds of what is open, where they are priced
    temperature: Float[Value, "*members"] | None = None  # of the development loss, where it is that of the best one

    @property
    def soft_size(self) -> Any:
        """The sum over all layers."""
        return self.layer_sizes.sum(-1)

    def keys(self) -> list[str]:
        """What there is to ask for by name: `dict(info)` has it all."""
        return [name for name in (*FIELDS, "soft_size") if getattr(self, name) is not None]

    def __getitem__(self, name: str) -> Any:
        if name not in self.keys():
            raise KeyError(name)
        value = np.asarray(getattr(self, name))
        return value.item() if value.ndim == 0 else value  # plain numbers, for whoever writes them down

    def member(self, member: int) -> "EpochInfo":
        """One member of a population."""
        return jax.tree.map(lambda values: values[member], self)


FIELDS = [field.name for field in fields(EpochInfo)]


def start(network: Network, recipe: Recipe, *, key: PRNGKeyArray) -> TrainState:
    """The state before the first epoch."""
    inf = jnp.asarray(jnp.inf, jnp.result_type(float))
    return TrainState(
        network=network,
        opt_state=recipe.chain.init(network),
        average=started(network) if recipe.settle else None,
        key=key,
        plateau=schedule.start(),
        best=(inf, inf),
        epoch=jnp.zeros((), jnp.int32),
        diverged=jnp.zeros((), bool),
    )


def fitting(state: TrainState, recipe: Recipe) -> TrainState:
    """The state of another recipe as this one has it: with an average, or without. A host function."""
    if (state.average is not None) == recipe.settle:
        return state
    average = Average(state.network, jnp.zeros_like(state.epoch)) if recipe.settle else None
    return eqx.tree_at(lambda s: s.average, state, average, is_leaf=lambda node: node is None)


def no_growth() -> Growth:
    """Before the first step of an epoch."""
    return Growth(*(jnp.zeros((), jnp.int32) for _ in Growth._fields))


def select(first: Bool[Array, "*members"], one: PyTree, other: PyTree) -> PyTree:
    """`one` where `first`, else `other`; keys included. A [population] of flags chooses member by member."""

    def pick(a: Array, b: Array) -> Array:
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            return jax.random.wrap_key_data(pick(jax.random.key_data(a), jax.random.key_data(b)), impl=jax.random.key_impl(a))
        return jnp.where(first.reshape(first.shape + (1,) * (a.ndim - first.ndim)), a, b)

    return jax.tree.map(pick, one, other)
