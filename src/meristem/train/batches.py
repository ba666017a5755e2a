"""The shuffled minibatches of an epoch, or of one of its equal parts, and the loop over them.

    through(step, carry, data, batch_size, key, part, parts) → the carry after step(carry, batch) for each batch

Without weights every sample is there once: the number of steps is known when the program is made, and the loop is a `scan`.
With weights it is the number of samples of weight above 0 that counts, which only the data know: the loop runs as often as
they say, so that data sets of many lengths, filled up to the same shape, share a program and none pays for the filling.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray, PyTree

from meristem.train.samples import Data


class Batch(NamedTuple):
    """What a step sees. Stacked, [steps, …], it is what an epoch or a part of it sees."""

    key: PRNGKeyArray
    x: Array
    y: Array
    weight: Array | None = None  # [batch], sums to 1 (by weight: on average); None: all alike
    is_real: Array | None = None  # whether the step counts; None: all do


def steps_of(n: int, batch_size: int) -> int:
    """The steps of an epoch."""
    return -(-n // min(batch_size, n))


def through(
    step: Callable[[PyTree, Batch], PyTree],
    carry: PyTree,
    data: Data,
    batch_size: int,
    key: PRNGKeyArray,
    part: Int[Array, ""],
    parts: int,
) -> PyTree:
    """The carry after all steps of the part."""
    if data.weight is not None:
        return _through_weighted(step, carry, data, batch_size, key, part, parts)
    batches = _batches(data, batch_size, key, part, parts)
    return jax.lax.scan(lambda carry, batch: (step(carry, batch), None), carry, batches)[0]


def _batches(data: Data, batch_size: int, key: PRNGKeyArray, part: Int[Array, ""], parts: int) -> Batch:
    """A last batch that is not full is filled up with samples of weight 0, a last part with steps that do not count."""
    n = data.x.shape[0]
    size, steps = min(batch_size, n), steps_of(n, batch_size)
    length = -(-steps // parts)
    keys = jax.random.split(key, parts * length + 1)
    order = jax.random.permutation(keys[0], n)
    weight = is_real = None
    room = parts * length * size
    if room != n:
        order = jnp.concatenate([order, jnp.zeros(room - n, order.dtype)])
        real = (jnp.arange(room) < n).reshape(-1, size).astype(jnp.result_type(float))
        weight = real / jnp.maximum(real.sum(1, keepdims=True), 1)
        is_real = real.any(1) if parts * length != steps else None
    keys, order, weight, is_real = jax.tree.map(
        lambda a: a if parts == 1 else jax.lax.dynamic_slice_in_dim(a, part * length, length),
        (keys[1:], order.reshape(-1, size), weight, is_real),
    )
    return Batch(keys, data.x[order], data.y[order], weight, is_real)


def _through_weighted(
    step: Callable[[PyTree, Batch], PyTree],
    carry: PyTree,
    data: Data,
    batch_size: int,
    key: PRNGKeyArray,
    part: Int[Array, ""],
    parts: int,
) -> PyTree:
    """Samples of weight above 0 in random order, the others after them and out of reach."""
    x, y, weight = (jnp.asarray(a) for a in (data.x, data.y, data.weight))
    n = x.shape[0]
    size, steps = min(batch_size, n), steps_of(n, batch_size)
    length = -(-steps // parts)
    keys = jax.random.split(key, steps + 1)
    order = jnp.argsort(jnp.where(weight > 0, jax.random.uniform(keys[0], (n,)), 2.0))
    order = jnp.concatenate([order, jnp.zeros(steps * size - n, order.dtype)])
    there = (weight > 0).sum(dtype=jnp.int32)
    share = weight / (weight.sum() / there)  # 1 on average

    def one(i: Any, carry: PyTree) -> PyTree:
        rows = jax.lax.dynamic_slice_in_dim(order, i * size, size)
        is_there = i * size + jnp.arange(size) < there
        count = jnp.maximum(is_there.sum(), 1).astype(share.dtype)
        return step(carry, Batch(keys[1:][i], x[rows], y[rows], jnp.where(is_there, share[rows], 0) / count, None))

    first = part * length
    return jax.lax.fori_loop(first, jnp.minimum(first + length, -(-there // size)), one, carry)
