"""Close the gates of a model that do least for what they cost, for any Equinox model with gates in it.

    saliency   mean_x |(g − closed) · ∂E(x)/∂g| / (cost saved by closing the gate)
    J_hard   = mean_x E(x) + penalty · (cost of everything that is not closed)

    settle(model, loss, x, y, penalty=1e-3)         closes the k least salient gates; k of 0, 1, 2, 4, … has the least J_hard
    close_to_budget(model, loss, x, y, budget=500)  closes the least salient gates until the rest is within the budget
    model_cost(model, price)                        the cost of a model, as far as it is open; differentiable

`loss(model, x, y)` is that of one sample. Call these every few epochs towards the end of a training loop of your own, under
`eqx.filter_jit` if you like, and keep closed gates closed with `gate.hold`. Arrays whose axes no module declares count in full.
Gates are all `Confined` parameters, anywhere in the model. train/settle.py does the same for networks that `fit` trains.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int

from meristem.check import check_number, unknown
from meristem.complexity import PRICES, UNIT
from meristem.gate import fully_open, is_confined, map_gates
from meristem.nn import axis_counts

TRIED, TRIED_ROWS = 64, 256  # how many of the least salient gates close_until closes one by one, and the rows that measure it
Model = Any
Loss = Callable[[Model, Array, Array], Float[Array, ""]]  # of one sample


def settle(model: Model, loss: Loss, x: Array, y: Array, *, penalty: float, price: str = "parameters") -> Model:
    """Return the model with the gates closed that are not worth their price.

    `penalty` is relative to the mean loss: the price of a unit, or of fifty parameters or multiply-adds.

    >>> from meristem.nn import Tunnel
    >>> tunnel = Tunnel(width=3, depth=1, key=jax.random.key(0))
    >>> tunnel = eqx.tree_at(lambda t: t.gate.value, tunnel, jnp.full((1, 3), 0.5))
    >>> x = jax.random.normal(jax.random.key(1), (20, 3))
    >>> closed = settle(tunnel, lambda model, x, y: ((model(x) - y) ** 2).sum(), x, x, penalty=1.0)
    >>> closed.gate.value.tolist()
    [[0.0, 0.0, 0.0]]
    """
    check_number("penalty", penalty, "of at least 0", lambda value: value >= 0)
    return close_worthless(_gates(model, loss, x, y, price), jnp.asarray(penalty))


def close_to_budget(model: Model, loss: Loss, x: Array, y: Array, *, budget: float, price: str = "parameters") -> Model:
    """Return the model with so many gates closed that it costs no more than the budget; ValueError where none can.

    Under `jit`, which cannot raise, a budget that cannot be met closes all gates.

    >>> from meristem.nn import Tunnel
    >>> tunnel = Tunnel(width=3, depth=1, key=jax.random.key(0))
    >>> tunnel = eqx.tree_at(lambda t: t.gate.value, tunnel, jnp.full((1, 3), 0.5))
    >>> x = jax.random.normal(jax.random.key(1), (20, 3))
    >>> small = close_to_budget(tunnel, lambda model, x, y: ((model(x) - y) ** 2).sum(), x, x, budget=10)
    >>> int((small.gate.value > 0).sum()), float(model_cost(fully_open(small)))
    (2, 10.0)
    """
    gates = _gates(model, loss, x, y, price)
    least = model_cost(fully_open(with_all_closed(model)), price)
    if not isinstance(least, jax.core.Tracer) and float(least) > budget:
        raise ValueError(f"budget={budget:g} is below the least possible, {float(least):,.0f} {price}; raise it.")
    return close_until(gates, lambda candidate: model_cost(fully_open(candidate), price) <= budget)


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

    count = axis_counts.soft_parameters if price == "parameters" else axis_counts.soft_multiply_adds
    total = jnp.zeros(())
    for node in jax.tree.leaves(model, is_leaf=has_axes):
        if has_axes(node):
            total = total + count(node)
        elif eqx.is_inexact_array(node) and (price == "parameters" or node.ndim > 1):
            total = total + float(node.size)
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

    def error_and_price(k: Int[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        values = gates.closing(rank, k)
        return gates.error(values), penalty * gates.hard_price(values)

    def may_improve(search: tuple[Any, ...]) -> Any:  # not where the error is too large even at the least price
        place, _, least, error = search
        return (place < counts.size) & (error + least_price < least)

    def try_next(search: tuple[Any, ...]) -> tuple[Any, ...]:
        place, best, least, _ = search
        error, price = error_and_price(counts[place])
        is_less = error + price < least
        return place + 1, jnp.where(is_less, counts[place], best), jnp.where(is_less, error + price, least), error

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
    x, y = jnp.asarray(x), jnp.asarray(y)
    if not len(x) or len(x) != len(y):
        raise ValueError(f"x has {len(x)} samples and y {len(y)}; they must be equal, and at least one.")
    unit = 1.0 if price == "units" else float(UNIT)
    return Gates(model, loss, x, y, jnp.full(len(x), 1 / len(x)), lambda candidate: model_cost(candidate, price) / unit)
