"""Settling: what is not worth its price closes, for good.

Training penalizes soft gate values, and a rectifier network can evade that by scaling: g · σ(W x + b) = σ(g W x + g b).
From the first learning-rate drop on, before every other epoch (where an epoch has few steps, after every forty), the gates that
do least for what they cost are closed, as many as lower J_hard = E + penalty · (what is open at all) the most (closing.py);
then the others make up for it. Closed gates may open again until the last stage; then they stay closed (`gate.hold`). So a gate
is open in the end only if what it does is worth its price.

With a budget, so many are closed before each epoch (where an epoch has few steps, after every hundred) that the rest costs no
more than the budget; before the last stage no more than that or four fifths of what it cost, whichever is more. `smallest` is
the least that a budget can be.

    close_least(network, data, knobs, recipe, key, holds) → network          pure; on the device
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from meristem.complexity import SOFT, soft_cost
from meristem.gate import fully_open, is_confined
from meristem.nn.axes import is_entry
from meristem.nn.axis_counts import reach
from meristem.nn.compaction import INPUT
from meristem.nn.network import Network
from meristem.train import schedule
from meristem.train.closing import Question, close_until, close_worthless, with_all_closed
from meristem.train.knobs import Knobs
from meristem.train.measure import piece_of
from meristem.train.recipe import Recipe
from meristem.train.samples import Data, to_float

ROWS = 256, 1024  # that J is measured on: half of all, but at least and at most so many
PIECES = 4  # and, from the least on, no more than what is measured in so many pieces: of thousands of outputs, fewer rows
EVERY = 2, 40  # epochs and steps between two closings, whichever are longer: what follows takes its time to be seen
SLOWLY = 0.8  # of what it cost, on the way to a budget, an epoch later
LEAST = 100  # steps between two closings for a budget, or an epoch


def close_least(
    network: Network, data: Data, knobs: Knobs, recipe: Recipe, key: PRNGKeyArray, holds: Bool[Array, ""]
) -> Network:
    """The network with the gates closed that are not worth their price; `holds`: in the last stage."""
    x, y, weight = _some_rows(data, knobs, key, max(ROWS[0], PIECES * piece_of(network, data.x)))

    def loss(model: Network, x: Array, y: Array) -> Float[Array, ""]:
        return recipe.task.loss(model(to_float(x)), y)

    question = Question(network, loss, x, y, weight, lambda model: _price(model, recipe))
    if knobs.budget is None:
        return close_worthless(question, jnp.asarray(knobs.penalty))
    allowed = jnp.maximum(knobs.budget, SLOWLY * hard_cost(network, recipe))
    allowed = jnp.where(holds, knobs.budget, allowed)
    return close_until(question, lambda model: hard_cost(model, recipe) <= allowed)


def is_due(epoch: int, steps: int, is_last: bool, knobs: Knobs) -> bool:
    """Whether something may close before the epoch after so many, each of so many steps; `is_last`: in the last stage.

    A host function.

    >>> free, bound = Knobs(1e-3, 1e-3), Knobs(1e-3, 0.0, budget=100.0)
    >>> [epoch for epoch in range(60) if is_due(epoch, 5, False, bound)], is_due(7, 5, True, bound), is_due(7, 5, True, free)
    ([0, 20, 40], True, False)
    >>> [epoch for epoch in range(20) if is_due(epoch, 5, True, free)]
    [0, 8, 16]
    """
    every = max(EVERY[0], -(-EVERY[1] // steps)) if knobs.budget is None else 1 if is_last else -(-LEAST // steps)
    return epoch % every == 0


def stays_closed(plateau: schedule.Plateau, knobs: Knobs, recipe: Recipe) -> Bool[Array, ""]:
    """Whether what is closed stays closed: in the last stage; on the way to a budget, as soon as anything is closed for it."""
    if knobs.budget is not None:
        return schedule.closes(plateau)
    return schedule.holds(plateau, len(recipe.scales))


def hard_price(network: Network, recipe: Recipe) -> Float[Array, ""]:
    """What the penalty multiplies if every gate that is open at all pays in full."""
    return _price(fully_open(network), recipe)


def hard_cost(network: Network, recipe: Recipe) -> Float[Array, ""]:
    """The parameters or multiply-adds of all that is open, as it is shipped; of a tree with the shares that mix its leaves."""
    hard = fully_open(network)
    cost, declared = SOFT[recipe.price](hard), hard.axes()
    if declared.is_fused:
        dimensions = reach(declared, declared.trunks[0])
        square = hard.width**2 if dimensions is None else dimensions.sum() ** 2
        cost = cost - square
    if declared.n_shares is None or recipe.price != "parameters":
        return cost
    return cost + declared.n_shares()


def smallest(network: Network, recipe: Recipe) -> int:
    """What the network costs with all closed that can be, but for a dimension of each trunk and an input. A host function."""
    declared = network.axes()
    needed = [(name,) for name in (*declared.trunks, INPUT)]

    def opened(entry: Any, node: Any) -> Any:
        if not is_confined(node) or entry.value.names not in needed:
            return node
        return node.at(node.value.at[..., 0].set(1 - node.closed))

    closed = with_all_closed(network)
    least = jax.tree.map(opened, declared.arrays, closed, is_leaf=lambda node: is_confined(node) or is_entry(node))
    return int(jnp.ceil(hard_cost(least, recipe)))


def _price(network: Network, recipe: Recipe) -> Float[Array, ""]:
    if recipe.price != "units":
        return soft_cost(network, recipe.price)
    return network.priced(jnp.zeros(network.input_shape, network.dtype))[1]


def _some_rows(data: Data, knobs: Knobs, key: PRNGKeyArray, most: int) -> tuple[Array, Array, Float[Array, " rows"]]:
    """Some rows that count, at random, and how much each does; they sum to 1."""
    x, y = jnp.asarray(data.x), jnp.asarray(data.y)
    weight = jnp.ones(x.shape[0])
    for own in (data.weight, knobs.weight):
        weight = weight if own is None else weight * own
    rows = jnp.argsort(jnp.where(weight > 0, jax.random.uniform(key, weight.shape), 2.0))[: min(n_rows(x.shape[0]), most)]
    return x[rows], y[rows], weight[rows] / weight[rows].sum()


def n_rows(n: int) -> int:
    """How many of n rows decide what closes. Where rows are few, others come each time.

    >>> [n_rows(n) for n in (100, 300, 1024, 60000)]
    [100, 256, 512, 1024]
    """
    least, most = ROWS
    return min(n, max(least, min(n // 2, most)))
