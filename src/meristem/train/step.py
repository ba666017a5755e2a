"""One step of training as a pure function: the gradient of J on a minibatch, the optimizer, projection, growth.

step(state, batch, knobs, recipe) → (state, info)
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from meristem.gate import hold
from meristem.nn.body import GrowthInfo
from meristem.nn.grow import after_update
from meristem.nn.network import Network
from meristem.train import schedule
from meristem.train.batches import Batch
from meristem.train.cost import cost
from meristem.train.knobs import Knobs
from meristem.train.recipe import Recipe
from meristem.train.samples import to_float
from meristem.train.settle import stays_closed
from meristem.train.state import TrainState


def step(state: TrainState, batch: Batch, knobs: Knobs, recipe: Recipe) -> tuple[TrainState, GrowthInfo]:
    """The state after one minibatch; only its network and what the optimizer keeps change. For one network; `vmap` for many.

    >>> from meristem.train.state import start
    >>> recipe = Recipe(batch_size=4)
    >>> network = Network.create("tunnel", 2, 1, width=3, depth=2, key=jax.random.key(0))
    >>> batch = Batch(jax.random.key(2), jnp.ones((4, 2)), jnp.ones(4))
    >>> state, info = eqx.filter_jit(step)(start(network, recipe, key=jax.random.key(1)), batch, Knobs(1e-3, 1e-3), recipe)
    >>> state.network.body.gate.value.shape, int(info.opened)
    ((2, 3), 0)
    """
    rate = knobs.learning_rate * schedule.scale(state.plateau, recipe.scales)
    holds = stays_closed(state.plateau, knobs, recipe)
    network, opt_state, info = update(state.network, state.opt_state, batch, rate, holds, knobs, recipe)
    return eqx.tree_at(lambda s: (s.network, s.opt_state), state, (network, opt_state)), info


def update(
    network: Network,
    opt_state: PyTree,
    batch: Batch,
    rate: Float[Array | np.ndarray, ""],
    holds: Bool[Array, ""],
    knobs: Knobs,
    recipe: Recipe,
) -> tuple[Network, PyTree, GrowthInfo]:
    """What a step does to a network and to what the optimizer keeps for it, at a rate that stays the same all epoch long.

    Where the recipe settles and `holds` is true, what is closed stays closed.
    """
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
