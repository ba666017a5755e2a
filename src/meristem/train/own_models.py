"""Settling and budgets for models of one's own, in a training loop of one's own.

    settle(model, loss, x, y, penalty=1e-3) → model             without the gates that are not worth their price
    close_to_budget(model, loss, x, y, budget=500) → model      without those that do least, until the rest is within the budget
    model_cost(model, price) → what a model costs, as far as it is open; differentiable

`model` is any Equinox model with `Tunnel`, `Budding`, `Network` or bodies of one's own in it; `loss(model, x, y)` is that of
one sample. Call them every few epochs towards the end of a training, under `eqx.filter_jit` if you like, and keep what is
closed closed with `gate.hold`. Arrays that no module declares the axes of count whole. Imports closing and the axes.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from meristem.check import check_number, unknown
from meristem.complexity import PRICES, UNIT
from meristem.gate import fully_open, is_confined
from meristem.nn import axis_counts
from meristem.train.closing import Question, close_until, close_worthless, with_all_closed

Loss = Callable[[Any, Array, Array], Float[Array, ""]]


def settle(model: Any, loss: Loss, x: Array, y: Array, *, penalty: float, price: str = "parameters") -> Any:
    """Return the model with the gates closed that are not worth their price.

    `penalty` is relative to the mean loss: what a unit, or fifty parameters or multiply-adds, may cost of it.

    >>> import jax
    >>> from meristem.gate import Confined
    >>> from meristem.nn import Tunnel
    >>> tunnel = Tunnel(width=3, depth=1, key=jax.random.key(0))
    >>> tunnel = eqx.tree_at(lambda t: t.gate.value, tunnel, jnp.full((1, 3), 0.5))
    >>> x = jax.random.normal(jax.random.key(1), (20, 3))
    >>> closed = settle(tunnel, lambda model, x, y: ((model(x) - y) ** 2).sum(), x, x, penalty=1.0)
    >>> closed.gate.value.tolist()
    [[0.0, 0.0, 0.0]]
    """
    check_number("penalty", penalty, "of at least 0", lambda value: value >= 0)
    return close_worthless(_question(model, loss, x, y, price), jnp.asarray(penalty))


def close_to_budget(model: Any, loss: Loss, x: Array, y: Array, *, budget: float, price: str = "parameters") -> Any:
    """Return the model with so many gates closed that what is open costs no more than the budget; ValueError where none can.

    Under `jit`, where nothing can be said, a budget that cannot be met closes all gates.

    >>> import jax
    >>> from meristem.nn import Tunnel
    >>> tunnel = Tunnel(width=3, depth=1, key=jax.random.key(0))
    >>> tunnel = eqx.tree_at(lambda t: t.gate.value, tunnel, jnp.full((1, 3), 0.5))
    >>> x = jax.random.normal(jax.random.key(1), (20, 3))
    >>> small = close_to_budget(tunnel, lambda model, x, y: ((model(x) - y) ** 2).sum(), x, x, budget=10)
    >>> int((small.gate.value > 0).sum()), float(model_cost(fully_open(small)))
    (2, 10.0)
    """
    question = _question(model, loss, x, y, price)
    least = model_cost(fully_open(with_all_closed(model)), price)
    if not isinstance(least, jax.core.Tracer) and float(least) > budget:
        raise ValueError(f"budget={budget:g} is below the least, {float(least):,.0f} {price}; raise it, or let more close.")
    return close_until(question, lambda candidate: model_cost(fully_open(candidate), price) <= budget)


def model_cost(model: Any, price: str = "parameters") -> Float[Array, ""]:
    """Return what a model costs, as far as it is open: units, or the numbers it stores or multiplies by.

    >>> import jax
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
    count = axis_counts.soft_parameters if price == "parameters" else axis_counts.soft_multiply_adds
    total = jnp.zeros(())
    for node in jax.tree.leaves(model, is_leaf=_has_axes):
        if _has_axes(node):
            total = total + count(node, node.axes())
        elif eqx.is_inexact_array(node) and (price == "parameters" or node.ndim > 1):
            total = total + float(node.size)
    return total


def _question(model: Any, loss: Loss, x: Array, y: Array, price: str) -> Question:
    x, y = jnp.asarray(x), jnp.asarray(y)
    if not len(x) or len(x) != len(y):
        raise ValueError(f"x has {len(x)} samples and y {len(y)}; they must be equal, and at least one.")
    unit = 1.0 if price == "units" else float(UNIT)
    return Question(model, loss, x, y, jnp.full(len(x), 1 / len(x)), lambda candidate: model_cost(candidate, price) / unit)


def _has_axes(node: Any) -> bool:
    return isinstance(node, eqx.Module) and hasattr(node, "axes")
