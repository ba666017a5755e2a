"""Settling: what is not worth its price closes, for good.

    J_hard = mean_x E(x) + penalty · (what is open at all)

While it learns, a network pays for how open its gates are, and a small gate with large weights behind it pays little: with a
rectifier g · σ(W x + b) = σ(g W x + g b). From the first time that the rate shrinks it pays for what is there: before every
other epoch (where an epoch has few steps, after every forty) all open gates (units, layers, trunk, inputs) are put in the order
of how little they do for what they cost,

    mean_x |(g − closed) · ∂E(x)/∂g| / (what closing it would save)

and the first k of them are closed, for the k of 0, 1, 2, 4, … at which J_hard is least; then the others make up for it.
Until the last stage what was closed may open again; then it stays closed (`gate.hold`). So a gate is open in the end only if
what it does is worth its price.

With a budget, so many are closed before each epoch (where an epoch has few steps, after every hundred) that the rest costs no
more than the budget; before the last stage no more than that or four fifths of what it cost, whichever is more.
Those that would be first are closed one by one, and put in the order of what that really does to the loss: where few are left,
a gate that does little by its slope may be one that all rests on. `smallest` is the least that a budget can be.

    close_least(network, data, knobs, recipe, key, holds) → network          pure; on the device
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from meristem.complexity import SOFT, soft_cost
from meristem.gate import fully_open, is_confined
from meristem.nn.axes import TRUNK, reach
from meristem.nn.network import Network
from meristem.nn.trunk import trunk_of
from meristem.train import schedule
from meristem.train.knobs import Knobs
from meristem.train.measure import piece_of
from meristem.train.recipe import Recipe
from meristem.train.samples import Data, to_float

ROWS = 256, 1024  # that J is measured on: half of all, but at least and at most so many
PIECES = 4  # and, from the least on, no more than what is measured in so many pieces: of thousands of outputs, fewer rows
EVERY = 2, 40  # epochs and steps between two closings, whichever are longer: what follows takes its time to be seen
SLOWLY = 0.8  # of what it cost, on the way to a budget, an epoch later
TRIED, TRIED_ROWS = 64, 256  # of the gates that do least, how many are closed one by one to see what it does, and to which rows
LEAST = 100  # steps between two closings for a budget, or an epoch


def close_least(
    network: Network, data: Data, knobs: Knobs, recipe: Recipe, key: PRNGKeyArray, holds: Bool[Array, ""]
) -> Network:
    """The network with the gates closed that are not worth their price; `holds`: in the last stage."""
    gates, with_gates = _gates_of(network)
    if not gates.size:
        return network
    closed = _gates_of(_closed(network))[0]
    x, y, weight = _some_rows(data, knobs, key, max(ROWS[0], PIECES * piece_of(network, data.x)))

    def loss(values: Float[Array, " gates"], x: Array, y: Array) -> Float[Array, ""]:
        return recipe.task.loss(with_gates(values)(to_float(x)), y)

    slopes = jax.vmap(jax.grad(loss), (None, 0, 0))(gates, x, y)
    worth = (weight[:, None] * jnp.abs((gates - closed)[None, :] * slopes)).sum(0)
    is_open = gates != closed
    per_gate = jnp.abs(jax.grad(lambda values: _price(with_gates(values), recipe))(_gates_of(fully_open(network))[0]))
    saved = jnp.maximum(per_gate, 1e-6)
    order = jnp.argsort(jnp.where(is_open, worth / saved, jnp.inf))
    if knobs.budget is not None:
        first, some = order[:TRIED], slice(TRIED_ROWS)

        def total(values: Float[Array, " gates"]) -> Float[Array, ""]:
            return (weight[some] * jax.vmap(loss, (None, 0, 0))(values, x[some], y[some])).sum()

        without = jax.lax.map(lambda gate: total(gates.at[gate].set(closed[gate])), first)
        harm = jnp.where(is_open[first], (without - total(gates)) / saved[first], jnp.inf)
        order = order.at[: first.size].set(first[jnp.argsort(harm)])
    rank = jnp.zeros_like(order).at[order].set(jnp.arange(order.size))

    def closing(k: Int[Array, ""]) -> Float[Array, " gates"]:
        return jnp.where(rank < k, closed, gates)

    penalty = jnp.asarray(knobs.penalty)

    def error_and_price(k: Int[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        values = closing(k)
        error = (weight * jax.vmap(loss, (None, 0, 0))(values, x, y)).sum()
        return error, penalty * hard_price(with_gates(values), recipe)

    if knobs.budget is None:
        counts = jnp.minimum(_counts(gates.size), is_open.sum())
        return with_gates(closing(_least_cost(error_and_price, counts, penalty * hard_price(with_gates(closed), recipe))))
    allowed = jnp.maximum(knobs.budget, SLOWLY * hard_cost(network, recipe))
    allowed = jnp.where(holds, knobs.budget, allowed)
    return with_gates(closing(_least_that(lambda k: hard_cost(with_gates(closing(k)), recipe) <= allowed, gates.size)))


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
    cost = SOFT[recipe.price](hard)
    if network.body.takes_embedding:
        dimensions = reach(hard.axes(), TRUNK)
        square = hard.width**2 if dimensions is None else dimensions.sum() ** 2
        cost = cost - square
    if not network.body.capacity or recipe.price != "parameters":
        return cost
    leaves = jnp.asarray(network.body.in_use(), cost.dtype)
    return cost + jnp.where(leaves > 1, leaves * (leaves + 1) / 2, 0)


def smallest(network: Network, recipe: Recipe) -> int:
    """What the network costs with all closed that can be, but for a dimension of its trunk and an input. A host function."""
    closed = _closed(network)
    if (trunk := trunk_of(closed.body)) is not None:
        closed = eqx.tree_at(lambda n: n.body.trunk, closed, trunk.at(jnp.zeros_like(trunk.value).at[..., 0].set(1)))
    if closed.features is not None:
        closed = eqx.tree_at(lambda n: n.features, closed, closed.features.at(closed.features.value.at[..., 0].set(1)))
    return int(jnp.ceil(hard_cost(closed, recipe)))


def _least_cost(
    error_and_price: Callable[[Any], tuple[Any, Any]], counts: Int[Array, " tried"], least_price: Float[Array, ""]
) -> Int[Array, ""]:
    """The count at which error and price are least; none is tried after one whose error is too much at the least price."""

    def goes_on(found: tuple[Any, ...]) -> Any:
        place, _, least, error = found
        return (place < counts.size) & (error + least_price < least)

    def try_next(found: tuple[Any, ...]) -> tuple[Any, ...]:
        place, best, least, _ = found
        error, price = error_and_price(counts[place])
        is_less = error + price < least
        return place + 1, jnp.where(is_less, counts[place], best), jnp.where(is_less, error + price, least), error

    error, price = error_and_price(counts[0])
    return jax.lax.while_loop(goes_on, try_next, (1, counts[0], error + price, error))[1]


def _least_that(fits: Callable[[Any], Any], most: int) -> Int[Array, ""]:
    """The least k that fits, where all above it do, too."""

    def halve(_: Any, bounds: tuple[Any, Any]) -> tuple[Any, Any]:
        low, high = bounds
        middle = (low + high) // 2
        good = fits(middle)
        return jnp.where(good, low, middle + 1), jnp.where(good, middle, high)

    steps = most.bit_length() + 1
    return jax.lax.fori_loop(0, steps, halve, (jnp.asarray(0), jnp.asarray(most)))[1]


def _price(network: Network, recipe: Recipe) -> Float[Array, ""]:
    if recipe.price != "units":
        return soft_cost(network, recipe.price)
    return network.priced(jnp.zeros(network.input_shape, network.dtype))[1]


def _gates_of(network: Network) -> tuple[Float[Array, " gates"], Any]:
    """All gates of a network as one vector, and the network that other values make."""
    mask = jax.tree.map(lambda node: jax.tree.map(lambda _: is_confined(node), node), network, is_leaf=is_confined)
    gates, rest = eqx.partition(network, mask)
    values, unravel = ravel_pytree(gates)
    return values, lambda values: eqx.combine(unravel(values), rest)


def _closed(network: Network) -> Network:
    return jax.tree.map(
        lambda node: node.at(jnp.full_like(node.value, node.closed)) if is_confined(node) else node,
        network,
        is_leaf=is_confined,
    )


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


def _counts(gates: int) -> Int[Array, " tried"]:
    """How many are closed: none, one, two, four, … all."""
    return jnp.asarray([0, *(2**power for power in range(gates.bit_length()) if 2**power < gates), gates])
