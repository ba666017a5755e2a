"""Settling and budgets: close gates whose contribution does not justify their cost.

Training penalizes soft gate values, and a rectifier network can evade that by scaling: g · σ(W x + b) = σ(g W x + g b). From
the first learning-rate drop on, before every second epoch (at least 40 steps apart), the least salient gates are closed, as
many as lower J_hard = E + penalty · (cost of everything that is not closed) the most (closing.py). They may reopen until the
last stage; then they stay closed (`gate.hold`).

With a budget the run adapts the penalty after each epoch, as a dual variable that restarts when the budget is met:

    penalty ← penalty · exp(0.1 · (cost / budget − 1)), at most 1e-3        or 1e-5 once cost ≤ budget

and closes gates until the rest is within the budget: from the first learning-rate drop on at least 100 steps apart, a fifth of
the cost at most; in the last stage before each epoch, all at once.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from meristem.complexity import SOFT, soft_cost
from meristem.gate import fully_open, is_confined
from meristem.nn.axes import is_entry
from meristem.nn.axis_counts import reach
from meristem.nn.compaction import INPUT
from meristem.nn.network import Network
from meristem.train.closing import Gates, close_until, close_worthless, with_all_closed
from meristem.train.hyperparameters import Knobs, Recipe
from meristem.train.metrics import piece_of
from meristem.train.training_data import Data, to_float

ROWS = 256, 1024  # rows that measure J_hard: half of all, within these bounds
PIECES = 4  # the most pieces they are measured in, above the lower bound: fewer rows for thousands of outputs
EVERY = 2, 40  # epochs and steps between two closings, whichever is longer, so that the network can adapt
BUDGET_STEPS = 100  # between two closings for a budget, before the last stage
SHRINK = 0.8  # the cost after a closing for a budget, at least, relative to that before
FIRST_PRICE, HIGHEST_PRICE, PRICE_RATE = 1e-5, 1e-3, 0.1  # of a budget; at higher prices networks do not learn


def close_least(
    network: Network, data: Data, knobs: Knobs, recipe: Recipe, key: PRNGKeyArray, is_last: Bool[Array, ""]
) -> Network:
    """Return the network with the gates closed that are not worth their price, or exceed the budget; `is_last`: the stage."""
    x, y = jnp.asarray(data.x), jnp.asarray(data.y)
    weight = jnp.ones(x.shape[0])
    for own in (data.weight, knobs.weight):
        weight = weight if own is None else weight * own
    most = max(ROWS[0], PIECES * piece_of(network, data.x))
    order = jnp.argsort(jnp.where(weight > 0, jax.random.uniform(key, weight.shape), 2.0))
    rows = order[: min(n_rows(x.shape[0]), most)]

    def loss(model: Network, x: Array, y: Array) -> Float[Array, ""]:
        return recipe.task.loss(model(to_float(x)), y)

    share = weight[rows] / weight[rows].sum()
    gates = Gates(network, loss, x[rows], y[rows], share, lambda model: _price(model, recipe))
    if knobs.budget is None:
        return close_worthless(gates, jnp.asarray(knobs.penalty))
    allowed = jnp.maximum(knobs.budget, SHRINK * hard_cost(network, recipe))
    allowed = jnp.where(is_last, knobs.budget, allowed)
    return close_until(gates, lambda model: hard_cost(model, recipe) <= allowed)


def is_due(epoch: int, steps: int, is_last: bool, knobs: Knobs) -> bool:
    """Return whether gates may close before the next epoch, after `epoch` epochs of so many steps; `is_last`: the stage.

    >>> free, bound = Knobs(1e-3, 1e-3), Knobs(1e-3, 0.0, budget=100.0)
    >>> [epoch for epoch in range(60) if is_due(epoch, 5, False, bound)], is_due(7, 5, True, bound), is_due(7, 5, True, free)
    ([0, 20, 40], True, False)
    >>> [epoch for epoch in range(20) if is_due(epoch, 5, True, free)]
    [0, 8, 16]
    """
    every = max(EVERY[0], -(-EVERY[1] // steps)) if knobs.budget is None else 1 if is_last else -(-BUDGET_STEPS // steps)
    return epoch % every == 0


def hard_price(network: Network, recipe: Recipe) -> Float[Array, ""]:
    """Return what the penalty multiplies if every gate that is not closed pays in full."""
    return _price(fully_open(network), recipe)


def hard_cost(network: Network, recipe: Recipe) -> Float[Array, ""]:
    """Return the parameters or multiply-adds of the compact network; for a tree with the shares that mix its leaves."""
    hard = fully_open(network)
    cost, declared = SOFT[recipe.price](hard), hard.axes()
    if declared.is_fused:
        dimensions = reach(declared, declared.trunks[0])
        cost = cost - (hard.width**2 if dimensions is None else dimensions.sum() ** 2)
    if declared.n_shares is None or recipe.price != "parameters":
        return cost
    return cost + declared.n_shares()


def host_cost(network: Network, recipe: Recipe) -> np.ndarray:
    """Return the hard cost of one network, or of each in a population, on the host."""
    cost = partial(hard_cost, recipe=recipe)
    return np.asarray(jax.jit(jax.vmap(cost) if network.members else cost)(network))


def next_penalty(knobs: Knobs, cost: Any) -> jax.Array:
    """Return the penalty of the next epoch, given the cost, for one network or each in a population; on the host.

    >>> knobs = Knobs(learning_rate=1e-3, penalty=np.array([1e-4, 1e-4]), budget=np.array([100.0, 100.0]))
    >>> price = next_penalty(knobs, np.array([200.0, 50.0]))          # above the budget, within it
    >>> bool(price[0] > 1e-4), bool(price[1] == np.float32(FIRST_PRICE))
    (True, True)
    """
    price, budget = np.asarray(knobs.penalty), np.asarray(knobs.budget)
    excess = np.clip(np.asarray(cost) / budget - 1, -1, 1)
    higher = np.minimum(price * np.exp(PRICE_RATE * excess), HIGHEST_PRICE)
    return jax.device_put(np.where(excess > 0, higher, FIRST_PRICE).astype(jnp.result_type(float)))


def check_budget(network: Network, budget: Any, recipe: Recipe) -> None:
    """Raise ValueError where no network of this kind can be within the budget."""
    if recipe.price == "units" or not recipe.settle:
        raise ValueError('A budget needs Recipe(price="parameters" or "multiply-adds", settle=True).')
    least = smallest(jax.tree.map(lambda leaf: leaf[0], network) if np.ndim(budget) else network, recipe)
    if float(np.min(budget)) < least:
        raise ValueError(
            f"budget={float(np.min(budget)):,.0f} is below the smallest network, which has {least:,} {recipe.price}; "
            'raise it, or let more close: width="auto", feature_gates=True.'
        )


def smallest(network: Network, recipe: Recipe) -> int:
    """Return the cost with all gates closed but for a dimension of each trunk and an input; on the host."""
    declared = network.axes()
    needed = [(name,) for name in (*declared.trunks, INPUT)]

    def open_first(entry: Any, node: Any) -> Any:
        if not is_confined(node) or entry.value.names not in needed:
            return node
        return node.at(node.value.at[..., 0].set(1 - node.closed))

    closed = with_all_closed(network)
    least = jax.tree.map(open_first, declared.arrays, closed, is_leaf=lambda node: is_confined(node) or is_entry(node))
    return int(jnp.ceil(hard_cost(least, recipe)))


def _price(network: Network, recipe: Recipe) -> Float[Array, ""]:
    if recipe.price != "units":
        return soft_cost(network, recipe.price)
    return network.priced(jnp.zeros(network.input_shape, network.dtype))[1]


def n_rows(n: int) -> int:
    """Return how many of n rows measure J_hard.

    >>> [n_rows(n) for n in (100, 300, 1024, 60000)]
    [100, 256, 512, 1024]
    """
    least, most = ROWS
    return min(n, max(least, min(n // 2, most)))
