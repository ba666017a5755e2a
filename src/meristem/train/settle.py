"""Settling and budgets: close gates whose contribution does not justify their cost.

Training penalizes soft gate values, and a rectifier network can evade that by scaling: g · σ(W x + b) = σ(g W x + g b). So
gates are closed that do least for what they cost:

    saliency   mean_x |(g − closed) · ∂E(x)/∂g| / (cost saved by closing the gate)
    J_hard   = mean_x E(x) + penalty · (cost of everything that is not closed)

`settle` closes the k least salient gates, with the k of 0, 1, 2, 4, … that has the least J_hard; `close_to_budget` as many as
the budget asks for. Both take any Equinox model: its gates are all `Confined` parameters in it, and arrays whose axes no module
declares count in full; `loss(model, x, y)` is that of one sample. Call them every few epochs towards the end of a training loop
of your own, also under `eqx.filter_jit`, and keep closed gates closed with `gate.hold`.

For networks that `fit` trains, `close_least` does the same from the first learning-rate drop on, before every second epoch (at
least 40 steps apart). Gates may reopen until the last stage. With a budget the run adapts the penalty after each epoch, as a
dual variable that restarts when the budget is met:

    penalty ← penalty · exp(0.1 · (cost / budget − 1)), at most 1e-3        or 1e-5 once cost ≤ budget

and closes gates until the rest is within the budget: from the first learning-rate drop on at least 100 steps apart, a fifth of
the cost at most; in the last stage before each epoch, all at once.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from meristem.check import check_number, unknown
from meristem.complexity import OTHERS, PRICES, SOFT, UNIT, soft_cost
from meristem.gate import fully_open, is_confined, map_gates
from meristem.nn.axes import is_entry
from meristem.nn.axis_counts import reach
from meristem.nn.compaction import INPUT
from meristem.nn.network import Network
from meristem.train.hyperparameters import Knobs, Recipe
from meristem.train.metrics import piece_of
from meristem.train.training_data import Data, product, to_float

TRIED, TRIED_ROWS = 64, 256  # how many of the least salient gates close_until closes one by one, and the rows that measure it
ROWS = 256, 1024  # rows that measure J_hard of a network in training: half of all, within these bounds
PIECES = 4  # the most pieces they are measured in, above the lower bound: fewer rows for thousands of outputs
EVERY = 2, 40  # epochs and steps between two closings, whichever is longer, so that the network can adapt
BUDGET_STEPS = 100  # between two closings for a budget, before the last stage
SHRINK = 0.8  # the cost after a closing for a budget, at least, relative to that before
FIRST_PRICE, HIGHEST_PRICE, PRICE_RATE = 1e-5, 1e-3, 0.1  # of a budget; at higher prices networks do not learn
Model = Any
Loss = Callable[[Model, Array, Array], Float[Array, ""]]  # of one sample


def settle(model: Model, loss: Loss, x: Array, y: Array, *, penalty: float, price: str = "parameters") -> Model:
    """Return the model with the gates closed that are not worth their price.

    `penalty` is relative to the mean loss: the price of a unit, or of fifty parameters, bytes or multiply-adds. The program is
    compiled once for each `loss`: a function that is defined anew at each call is compiled again.

    >>> from meristem.nn import Tunnel
    >>> tunnel = Tunnel(width=3, depth=1, key=jax.random.key(0))
    >>> tunnel = eqx.tree_at(lambda t: t.gate.value, tunnel, jnp.full((1, 3), 0.5))
    >>> x = jax.random.normal(jax.random.key(1), (20, 3))
    >>> closed = settle(tunnel, lambda model, x, y: ((model(x) - y) ** 2).sum(), x, x, penalty=1.0)
    >>> closed.gate.value.tolist()
    [[0.0, 0.0, 0.0]]
    """
    check_number("penalty", penalty, "of at least 0", lambda value: value >= 0)
    return _settled(model, loss, jnp.asarray(x), jnp.asarray(y), jnp.asarray(penalty), price)


@eqx.filter_jit  # as one program: each operation would be compiled
def _settled(model: Model, loss: Loss, x: Array, y: Array, penalty: Float[Array, ""], price: str) -> Model:
    return close_worthless(_gates(model, loss, x, y, price), penalty)


def close_to_budget(model: Model, loss: Loss, x: Array, y: Array, *, budget: float, price: str = "parameters") -> Model:
    """Return the model with so many gates closed that it costs no more than the budget; ValueError where none can.

    Under `jit`, which cannot raise, such a budget closes all gates.

    >>> from meristem.nn import Tunnel
    >>> tunnel = Tunnel(width=3, depth=1, key=jax.random.key(0))
    >>> tunnel = eqx.tree_at(lambda t: t.gate.value, tunnel, jnp.full((1, 3), 0.5))
    >>> x = jax.random.normal(jax.random.key(1), (20, 3))
    >>> small = close_to_budget(tunnel, lambda model, x, y: ((model(x) - y) ** 2).sum(), x, x, budget=10)
    >>> int((small.gate.value > 0).sum()), float(model_cost(fully_open(small)))
    (2, 10.0)
    """
    most = jnp.asarray(budget, jnp.result_type(float))
    closed, least = _closed_to_budget(model, loss, jnp.asarray(x), jnp.asarray(y), most, price)
    if not isinstance(least, jax.core.Tracer) and float(least) > budget:
        raise ValueError(f"budget={budget:g} is below the least possible, {float(least):,.0f} {price}; raise it.")
    return closed


@eqx.filter_jit
def _closed_to_budget(
    model: Model, loss: Loss, x: Array, y: Array, budget: Float[Array, ""], price: str
) -> tuple[Model, Float[Array, ""]]:
    """Return the model with gates closed for a budget, and what it costs with all of them closed."""
    least = model_cost(fully_open(with_all_closed(model)), price)
    return close_until(_gates(model, loss, x, y, price), lambda own: model_cost(fully_open(own), price) <= budget), least


def model_cost(model: Model, price: str = "parameters") -> Float[Array, ""]:
    """Return the cost of a model, as far as it is open: its units, or the numbers it stores or multiplies by.

    >>> from meristem.nn import Tunnel
    >>> tunnel = Tunnel(width=3, depth=2, key=jax.random.key(0))
    >>> float(model_cost(tunnel)), float(model_cost(fully_open(eqx.tree_at(lambda t: t.gate.value, tunnel, jnp.ones((2, 3))))))
    (0.0, 30.0)
    """
    if price not in PRICES:
        raise unknown("price", price, PRICES)
    if price == "units":
        gates = [node for node in jax.tree.leaves(model, is_leaf=is_confined) if is_confined(node)]
        return sum((jnp.abs(gate.value - gate.closed).sum() for gate in gates), start=jnp.zeros(()))

    def has_axes(node: Any) -> bool:
        return isinstance(node, eqx.Module) and hasattr(node, "axes")

    total = jnp.zeros(())
    for node in jax.tree.leaves(model, is_leaf=has_axes):
        if has_axes(node):
            total = total + SOFT[price](node)
        elif eqx.is_inexact_array(node):
            total = total + float(node.size) * OTHERS[price][node.ndim > 1]
    return total


class Gates:
    """The gates of a model as one vector, `values`; its loss on samples, whose weights sum to 1; and its price.

    `price` returns what the model costs as far as it is open; `model` returns it with other values of the gates.
    """

    def __init__(self, model: Model, loss: Loss, x: Array, y: Array, weight: Array, price: Callable[[Model], Array]):
        self.samples, self.price, self.hard = (x, y, weight), price, _values(fully_open(model))[0]
        self.values, self.model = _values(model)
        self.closed = _values(with_all_closed(model))[0]
        self.is_open = self.values != self.closed
        self.loss = lambda values, x, y: loss(self.model(values), x, y)

    def error(self, values: Float[Array, " gates"], rows: int | None = None) -> Float[Array, ""]:
        """Return the loss of all samples, or of the first `rows`."""
        x, y, weight = (part[:rows] for part in self.samples)
        return (weight * jax.vmap(self.loss, (None, 0, 0))(values, x, y)).sum()

    def hard_price(self, values: Float[Array, " gates"]) -> Float[Array, ""]:
        """Return the price if every gate that is not closed pays in full."""
        return self.price(fully_open(self.model(values)))

    def order(self) -> tuple[Int[Array, " gates"], Float[Array, " gates"]]:
        """Return the gates from the least salient on, closed ones last; and the cost that closing each would save."""
        x, y, weight = self.samples
        slopes = jax.vmap(jax.grad(self.loss), (None, 0, 0))(self.values, x, y)
        saliency = (weight[:, None] * jnp.abs((self.values - self.closed)[None, :] * slopes)).sum(0)
        saved = jnp.maximum(jnp.abs(jax.grad(lambda values: self.price(self.model(values)))(self.hard)), 1e-6)
        return jnp.argsort(jnp.where(self.is_open, saliency / saved, jnp.inf)), saved

    def closing(self, rank: Int[Array, " gates"], k: Int[Array, ""]) -> Float[Array, " gates"]:
        return jnp.where(rank < k, self.closed, self.values)


def close_worthless(gates: Gates, penalty: Float[Array, ""]) -> Model:
    """Return the model with the k least salient gates closed, for the k with the least J_hard."""
    n = gates.values.size
    if not n:
        return gates.model(gates.values)
    rank = jnp.argsort(gates.order()[0])
    counts = jnp.asarray([0, *(2**power for power in range(n.bit_length()) if 2**power < n), n])
    counts = jnp.minimum(counts, gates.is_open.sum())
    least_price = penalty * gates.hard_price(gates.closed)

    def may_improve(search: tuple[Any, ...]) -> Any:  # not where the error is too large even at the least price
        place, _, least, error = search
        return (place < counts.size) & (error + least_price < least)

    def try_next(search: tuple[Any, ...]) -> tuple[Any, ...]:
        place, best, least, _ = search
        values = gates.closing(rank, counts[place])
        error = gates.error(values)
        total = error + penalty * gates.hard_price(values)
        is_less = total < least
        return place + 1, jnp.where(is_less, counts[place], best), jnp.where(is_less, total, least), error

    first = (0, counts[0], jnp.asarray(jnp.inf, gates.values.dtype), jnp.zeros((), gates.values.dtype))
    k = jax.lax.while_loop(may_improve, try_next, first)[1]
    return gates.model(gates.closing(rank, k))


def close_until(gates: Gates, fits: Callable[[Model], Any]) -> Model:
    """Return the model with the fewest gates closed with which it fits; it must also fit with more gates closed.

    Some of the least salient gates are closed one by one and ordered by the measured loss: where few gates are left, one with a
    small gradient may still be essential.
    """
    n = gates.values.size
    if not n:
        return gates.model(gates.values)
    order, saved = gates.order()
    first = order[:TRIED]
    without = jax.lax.map(lambda gate: gates.error(gates.values.at[gate].set(gates.closed[gate]), TRIED_ROWS), first)
    harm = jnp.where(gates.is_open[first], (without - gates.error(gates.values, TRIED_ROWS)) / saved[first], jnp.inf)
    rank = jnp.argsort(order.at[: first.size].set(first[jnp.argsort(harm)]))

    def bisect(_: Any, bounds: tuple[Any, Any]) -> tuple[Any, Any]:
        low, high = bounds
        middle = (low + high) // 2
        good = fits(gates.model(gates.closing(rank, middle)))
        return jnp.where(good, low, middle + 1), jnp.where(good, middle, high)

    k = jax.lax.fori_loop(0, n.bit_length() + 1, bisect, (jnp.asarray(0), jnp.asarray(n)))[1]
    return gates.model(gates.closing(rank, k))


def with_all_closed(model: Model) -> Model:
    """Return the model with every gate closed."""
    return map_gates(lambda gate: gate.at(jnp.full_like(gate.value, gate.closed)), model)


def _values(model: Model) -> tuple[Float[Array, " gates"], Callable[[Float[Array, " gates"]], Model]]:
    """Return all gates of a model as one vector, and a function from such a vector to the model."""
    mask = jax.tree.map(lambda node: jax.tree.map(lambda _: is_confined(node), node), model, is_leaf=is_confined)
    gates, rest = eqx.partition(model, mask)
    values, unravel = ravel_pytree(gates)
    return values, lambda values: eqx.combine(unravel(values), rest)


def _gates(model: Model, loss: Loss, x: Array, y: Array, price: str) -> Gates:
    if not len(x) or len(x) != len(y):
        raise ValueError(f"x has {len(x)} samples and y {len(y)}; they must be equal, and at least one.")
    unit = 1.0 if price == "units" else float(UNIT)
    return Gates(model, loss, x, y, jnp.full(len(x), 1 / len(x)), lambda candidate: model_cost(candidate, price) / unit)


def close_least(
    network: Network, data: Data, knobs: Knobs, recipe: Recipe, key: PRNGKeyArray, is_last: Bool[Array, ""]
) -> Network:
    """Return the network with the gates closed that are not worth their price, or exceed the budget; `is_last`: the stage."""
    x, y = jnp.asarray(data.x), jnp.asarray(data.y)
    weight = product(jnp.ones(x.shape[0]), product(data.weight, knobs.weight))
    most = max(ROWS[0], PIECES * piece_of(network, data.x))
    order = jnp.argsort(jnp.where(weight > 0, jax.random.uniform(key, weight.shape), 2.0))
    rows = order[: min(n_rows(x.shape[0]), most)]

    def loss(model: Network, x: Array, y: Array) -> Float[Array, ""]:
        return recipe.task.loss(model(to_float(x)), y)

    share = weight[rows] / weight[rows].sum()
    gates = Gates(network, loss, x[rows], y[rows], share, partial(total_price, recipe=recipe))
    if knobs.budget is None:
        return close_worthless(gates, jnp.asarray(knobs.penalty))
    allowed = jnp.maximum(knobs.budget, SHRINK * hard_cost(network, recipe))
    allowed = jnp.where(is_last, knobs.budget, allowed)

    def fits(model: Network) -> Bool[Array, ""]:
        return hard_cost(model, recipe) <= allowed

    closed: Network = jax.lax.cond(fits(network), lambda: network, lambda: close_until(gates, fits))
    return closed


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


def hard_cost(network: Network, recipe: Recipe) -> Float[Array, ""]:
    """Return the parameters or multiply-adds of the compact network; for a tree with the shares that mix its leaves."""
    hard = fully_open(network)
    cost, declared = SOFT[recipe.price](hard), hard.axes()
    if declared.is_fused:
        dimensions = reach(declared, declared.trunks[0])
        cost = cost - (hard.width if dimensions is None else dimensions.sum()) ** 2
    return cost + declared.n_shares() if declared.n_shares is not None and recipe.price == "parameters" else cost


def next_penalty(knobs: Knobs, cost: Any) -> jax.Array:
    """Return the penalty of the next epoch, given the cost, for one network or each in a population; on the host."""
    price, budget = np.asarray(knobs.penalty), np.asarray(knobs.budget)
    excess = np.clip(np.asarray(cost) / budget - 1, -1, 1)
    higher = np.minimum(price * np.exp(PRICE_RATE * excess), HIGHEST_PRICE)
    return jax.device_put(np.where(excess > 0, higher, FIRST_PRICE).astype(jnp.result_type(float)))


def check_budget(network: Network, budget: Any, recipe: Recipe) -> None:
    """Raise ValueError where no network of this kind can be within the budget."""
    if recipe.price == "units" or not recipe.settle:
        raise ValueError('A budget needs Recipe(price="parameters", "bytes" or "multiply-adds", settle=True).')
    least = smallest(jax.tree.map(lambda leaf: leaf[0], network) if np.ndim(budget) else network, recipe)
    if float(np.min(budget)) < least:
        raise ValueError(
            f"budget={float(np.min(budget)):,.0f} is below the smallest network, which has {least:,} {recipe.price}; "
            'raise it, or let more close: width="auto", feature_gates=True.'
        )


def smallest(network: Network, recipe: Recipe) -> int:
    """Return the cost of the smallest network of this shape; on the host."""
    return int(np.ceil(_least_cost(network, recipe)))


@partial(jax.jit, static_argnums=1)  # as one program: each operation would be compiled
def _least_cost(network: Network, recipe: Recipe) -> Float[Array, ""]:
    return hard_cost(least_open(network), recipe)


def least_open(network: Network) -> Network:
    """Return the network with all gates closed but for a dimension of each trunk and an input."""
    declared = network.axes()
    needed = [(name,) for name in (*declared.trunks, INPUT)]

    def open_first(entry: Any, node: Any) -> Any:
        if not is_confined(node) or entry.value.names not in needed:
            return node
        return node.at(node.value.at[..., 0].set(1 - node.closed))

    closed = with_all_closed(network)
    return jax.tree.map(open_first, declared.arrays, closed, is_leaf=lambda node: is_confined(node) or is_entry(node))


def total_price(network: Network, recipe: Recipe) -> Float[Array, ""]:
    """Return what the penalty multiplies; of a network that is `fully_open`, every gate that is not closed pays in full."""
    if recipe.price != "units":
        return soft_cost(network, recipe.price)
    return network.priced(jnp.zeros(network.input_shape, network.dtype))[1]


def n_rows(n: int) -> int:
    """Return how many of n rows measure J_hard."""
    return min(n, max(ROWS[0], min(n // 2, ROWS[1])))
