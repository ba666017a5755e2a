"""One step of training as a pure function: the gradient of the cost J on a minibatch, the optimizer, projection, growth.

    J = mean_x E(x) + penalty · price + l2 · ½ ‖W‖²         (equations 2 and 5)

E is the objective's loss. The price is the paper's ("units": Σ g, Σ 1 − γ, and the gates of trunk and inputs if there are any),
or the stored or computed numbers ("parameters", "multiply-adds", complexity.py): each gate then pays for what closing it would
save. `penalty` is relative to the mean loss, independent of the batch size (the paper's λ is relative to the sum: λ / batch).
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num, PRNGKeyArray, PyTree

from meristem.complexity import soft_cost
from meristem.gate import hold
from meristem.nn.axes import MAP, tree_map
from meristem.nn.body import Body, GrowthInfo
from meristem.nn.model_growth import after_update
from meristem.nn.network import Network
from meristem.train.hyperparameters import Knobs, Recipe
from meristem.train.objectives import Objective
from meristem.train.train_state import TrainState
from meristem.train.training_data import to_float


class Batch(NamedTuple):
    """The minibatch of a step, or stacked, [steps, …], those of an epoch."""

    key: PRNGKeyArray
    x: Array
    y: Array
    weight: Array | None = None  # [batch], sums to 1 (weighted data: on average); None: all alike
    is_real: Array | None = None  # whether the step counts; None: all do


Update = Callable[[Network, PyTree, Batch], tuple[Network, PyTree, GrowthInfo]]
Scalar = Float[Array | np.ndarray, ""] | float


def step(state: TrainState, batch: Batch, knobs: Knobs, recipe: Recipe) -> tuple[TrainState, GrowthInfo]:
    """Return the state after one minibatch, with another network and optimizer state. For one network; `vmap` for many.

    >>> from meristem.train.train_state import start
    >>> recipe = Recipe(batch_size=4)
    >>> network = Network.create("tunnel", 2, 1, width=3, depth=2, key=jax.random.key(0))
    >>> batch = Batch(jax.random.key(2), jnp.ones((4, 2)), jnp.ones(4))
    >>> state, info = eqx.filter_jit(step)(start(network, jax.random.key(1), recipe), batch, Knobs(1e-3, 1e-3), recipe)
    >>> state.network.body.gate.value.shape, int(info.opened)
    ((2, 3), 0)
    """
    network, opt_state, info = updater(state, knobs, recipe)(state.network, state.opt_state, batch)
    return replace(state, network=network, opt_state=opt_state), info


def updater(state: TrainState, knobs: Knobs, recipe: Recipe) -> Update:
    """Return what a step does to a network and its optimizer state; rate and stage are the state's, all epoch long."""
    plateau, rate = state.plateau, knobs.learning_rate * state.plateau.scale(recipe.scales)
    stays_closed = plateau.is_last(len(recipe.scales)) if knobs.budget is None else plateau.has_dropped

    def update(network: Network, opt_state: PyTree, batch: Batch) -> tuple[Network, PyTree, GrowthInfo]:
        x = to_float(batch.x)
        if knobs.dropout is not None:
            keep = 1 - knobs.dropout
            x = jnp.where(jax.random.bernoulli(batch.key, keep, x.shape), x * (1 / keep), 0)
        terms: dict[str, Any] = {"penalty": knobs.penalty, "l2": knobs.l2, "weight": batch.weight, "price": recipe.price}
        grads = eqx.filter_grad(cost)(network, x, batch.y, objective=recipe.task, **terms)
        updates, opt_state = recipe.chain.update(grads, opt_state, network, learning_rate=rate)
        updated = eqx.apply_updates(network, updates)
        if recipe.settle:
            updated = hold(network, updated, stays_closed)
        return after_update(updated, opt_state, batch.key)

    return update


def cost(
    network: Network,
    x: Float[Array, "batch in ..."],
    y: Num[Array, "batch ..."],
    *,
    objective: Objective,
    penalty: Scalar,
    l2: Scalar,
    weight: Float[Array, " batch"] | None = None,
    price: str = "units",
) -> Float[Array, ""]:
    """Return J over a batch; `weight` sums to 1, None is the plain mean."""
    # The price of most bodies does not depend on the sample; where it does (highway), J has its mean.
    outputs, units = over_batch(network, x)
    each = jax.vmap(objective.loss)(outputs, y)
    if price == "units":
        each = each + penalty * units
    mean = each.mean() if weight is None else (weight * each).sum()
    if price != "units":
        mean = mean + penalty * soft_cost(network, price)
    return mean + l2 * network.half_norm()


def over_batch(
    network: Network, x: Float[Array, "batch in ..."], with_copies: bool | None = None
) -> tuple[Float[Array, "batch out"], Float[Array, " batch"]]:
    """Return jax.vmap(network.priced)(x), on a GPU with a copy of the body's vectors for every sample; matrices are shared.

    The gradient of a tunnel's biases and gates is a sum over the batch, layer by layer, and on a GPU each costs a launch. With
    copies they are summed once for all layers: on an H200 a step of the 10 × 100 network takes 125 instead of 136 µs. On a CPU
    the copies cost a tenth; in trees and highway networks they gain nothing.
    """
    declared = network.body.axes()
    if with_copies is None:
        has_gated_layers = any((axis := declared.axis(name)).closable and axis.per is not None for name in declared.sizes)
        with_copies = jax.default_backend() != "cpu" and has_gated_layers
    if not with_copies:
        return jax.vmap(network.priced)(x)
    is_vector = tree_map(lambda entry, leaf: entry.role != MAP and leaf.ndim == 2, declared, network.body)
    vectors, matrices = eqx.partition(network.body, is_vector)
    copies = jax.tree.map(lambda a: jnp.broadcast_to(a, (x.shape[0], *a.shape)), vectors)

    def priced(own: Body, sample: Float[Array, "in ..."]) -> tuple[Float[Array, " out"], Float[Array, ""]]:
        return eqx.tree_at(lambda n: n.body, network, eqx.combine(own, matrices)).priced(sample)

    return jax.vmap(priced)(copies, x)
