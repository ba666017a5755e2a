"""One step of training as a pure function: the gradient of J on a minibatch, the optimizer, projection, growth."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from meristem.gate import hold
from meristem.nn.body import GrowthInfo
from meristem.nn.grow import after_update
from meristem.nn.network import Network
from meristem.train.cost import cost
from meristem.train.hyperparameters import Knobs, Recipe
from meristem.train.minibatches import Batch
from meristem.train.settle import stays_closed
from meristem.train.train_state import TrainState
from meristem.train.training_data import to_float

Update = Callable[[Network, PyTree, Batch], tuple[Network, PyTree, GrowthInfo]]


def step(state: TrainState, batch: Batch, knobs: Knobs, recipe: Recipe) -> tuple[TrainState, GrowthInfo]:
    """Return the state after one minibatch, with another network and optimizer state. For one network; `vmap` for many.

    >>> from meristem.train.train_state import start
    >>> recipe = Recipe(batch_size=4)
    >>> network = Network.create("tunnel", 2, 1, width=3, depth=2, key=jax.random.key(0))
    >>> batch = Batch(jax.random.key(2), jnp.ones((4, 2)), jnp.ones(4))
    >>> state, info = eqx.filter_jit(step)(start(network, recipe, key=jax.random.key(1)), batch, Knobs(1e-3, 1e-3), recipe)
    >>> state.network.body.gate.value.shape, int(info.opened)
    ((2, 3), 0)
    """
    network, opt_state, info = updater(state, knobs, recipe)(state.network, state.opt_state, batch)
    return eqx.tree_at(lambda s: (s.network, s.opt_state), state, (network, opt_state)), info


def learning_rate(state: TrainState, knobs: Knobs, recipe: Recipe) -> Float[Array | np.ndarray, ""]:
    """Return the learning rate of the state's stage."""
    return knobs.learning_rate * state.plateau.scale(recipe.scales)


def updater(state: TrainState, knobs: Knobs, recipe: Recipe) -> Update:
    """Return what a step does to a network and its optimizer state; rate and stage are the state's, all epoch long."""
    rate, holds = learning_rate(state, knobs, recipe), stays_closed(state.plateau, knobs, recipe)

    def update(network: Network, opt_state: PyTree, batch: Batch) -> tuple[Network, PyTree, GrowthInfo]:
        x = to_float(batch.x)
        if knobs.dropout is not None:
            keep = 1 - knobs.dropout
            x = jnp.where(jax.random.bernoulli(batch.key, keep, x.shape), x * (1 / keep), 0)
        grads = eqx.filter_grad(cost)(
            network,
            x,
            batch.y,
            objective=recipe.task,
            penalty=knobs.penalty,
            l2=knobs.l2,
            weight=batch.weight,
            price=recipe.price,
        )
        updates, opt_state = recipe.chain.update(grads, opt_state, network, learning_rate=rate)
        updated = eqx.apply_updates(network, updates)
        if recipe.settle:
            updated = hold(network, updated, holds)
        return after_update(updated, opt_state, batch.key)

    return update
