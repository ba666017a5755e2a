"""Closing the gates of any model: those first that do least for what they cost.

    order    mean_x |(g − closed) · ∂E(x)/∂g| / (what closing it would save), ascending
    J_hard = mean_x E(x) + penalty · (what is open at all)

    close_worthless(question, penalty) → model     the first k are closed, for the k of 0, 1, 2, 4, … at which J_hard is least
    close_until(question, fits) → model            the fewest of the first with which `fits(model)` holds

A `Question` is a model, the loss of one sample, some samples with weights that sum to 1, and the price of a model. Pure; on the
device. Gates are all `Confined` parameters, wherever in the model they are. settle.py asks it of networks that `fit` trains,
own_models.py of anyone's. Imports gate.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int

from meristem.gate import fully_open, is_confined

TRIED, TRIED_ROWS = 64, 256  # of the gates that do least, how many are closed one by one to see what it does, and to which rows
Model = Any


class Question(NamedTuple):
    """What is asked: which gates of a model are worth what they cost."""

    model: Model
    loss: Callable[[Model, Array, Array], Float[Array, ""]]  # of one sample
    x: Array  # [n, …]
    y: Array  # [n, …]
    weight: Float[Array, " n"]  # sums to 1
    price: Callable[[Model], Float[Array, ""]]  # of how open a model is

    def hard_price(self, model: Model) -> Float[Array, ""]:
        """What a model costs if every gate that is open at all pays in full."""
        return self.price(fully_open(model))


def close_worthless(question: Question, penalty: Float[Array, ""]) -> Model:
    """Return the model with the gates closed that are not worth their price."""
    gates = _Gates(question)
    if not gates.values.size:
        return question.model

    def error_and_price(k: Int[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        values = gates.closing(rank, k)
        return gates.error(values), penalty * question.hard_price(gates.model(values))

    order, _ = gates.order()
    rank = _inverse(order)
    counts = jnp.minimum(_counts(gates.values.size), gates.is_open.sum())
    least_price = penalty * question.hard_price(gates.model(gates.closed))
    return gates.model(gates.closing(rank, _least_cost(error_and_price, counts, least_price)))


def close_until(question: Question, fits: Callable[[Model], Any]) -> Model:
    """Return the model with the fewest gates closed with which it fits; all above that number must fit, too.

    Of the gates that would be first, some are closed one by one, and put in the order of what that really does to the loss:
    where few are left, a gate that does little by its slope may be one that all rests on.
    """
    gates = _Gates(question)
    if not gates.values.size:
        return question.model
    order, saved = gates.order()
    first = order[:TRIED]
    without = jax.lax.map(lambda gate: gates.error(gates.values.at[gate].set(gates.closed[gate]), TRIED_ROWS), first)
    harm = jnp.where(gates.is_open[first], (without - gates.error(gates.values, TRIED_ROWS)) / saved[first], jnp.inf)
    rank = _inverse(order.at[: first.size].set(first[jnp.argsort(harm)]))
    k = _least_that(lambda k: fits(gates.model(gates.closing(rank, k))), gates.values.size)
    return gates.model(gates.closing(rank, k))


def with_all_closed(model: Model) -> Model:
    """Return the model with every gate closed."""
    return jax.tree.map(
        lambda node: node.at(jnp.full_like(node.value, node.closed)) if is_confined(node) else node,
        model,
        is_leaf=is_confined,
    )


class _Gates:
    """The gates of a question's model as one vector."""

    def __init__(self, question: Question):
        self.question = question
        self.values, self.model = gates_of(question.model)
        self.closed = gates_of(with_all_closed(question.model))[0]
        self.is_open = self.values != self.closed

    def loss(self, values: Float[Array, " gates"], x: Array, y: Array) -> Float[Array, ""]:
        return self.question.loss(self.model(values), x, y)

    def error(self, values: Float[Array, " gates"], rows: int | None = None) -> Float[Array, ""]:
        """The loss of all samples, or of the first."""
        x, y, weight = (part[:rows] for part in (self.question.x, self.question.y, self.question.weight))
        return (weight * jax.vmap(self.loss, (None, 0, 0))(values, x, y)).sum()

    def order(self) -> tuple[Int[Array, " gates"], Float[Array, " gates"]]:
        """The gates from the one that does least for its cost, closed ones last; and what closing each would save."""
        question = self.question
        slopes = jax.vmap(jax.grad(self.loss), (None, 0, 0))(self.values, question.x, question.y)
        worth = (question.weight[:, None] * jnp.abs((self.values - self.closed)[None, :] * slopes)).sum(0)
        whole = gates_of(fully_open(question.model))[0]
        saved = jnp.maximum(jnp.abs(jax.grad(lambda values: question.price(self.model(values)))(whole)), 1e-6)
        return jnp.argsort(jnp.where(self.is_open, worth / saved, jnp.inf)), saved

    def closing(self, rank: Int[Array, " gates"], k: Int[Array, ""]) -> Float[Array, " gates"]:
        return jnp.where(rank < k, self.closed, self.values)


def gates_of(model: Model) -> tuple[Float[Array, " gates"], Callable[[Float[Array, " gates"]], Model]]:
    """Return all gates of a model as one vector, and the model that other values make."""
    mask = jax.tree.map(lambda node: jax.tree.map(lambda _: is_confined(node), node), model, is_leaf=is_confined)
    gates, rest = eqx.partition(model, mask)
    values, unravel = ravel_pytree(gates)
    return values, lambda values: eqx.combine(unravel(values), rest)


def _inverse(order: Int[Array, " gates"]) -> Int[Array, " gates"]:
    """The rank of each gate."""
    return jnp.zeros_like(order).at[order].set(jnp.arange(order.size))


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


def _counts(gates: int) -> Int[Array, " tried"]:
    """How many are closed: none, one, two, four, … all."""
    return jnp.asarray([0, *(2**power for power in range(gates.bit_length()) if 2**power < gates), gates])
