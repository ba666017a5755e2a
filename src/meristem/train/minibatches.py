"""The shuffled minibatches of an epoch, or of one of its equal parts, and the loop over them.

Without weights the number of steps is static, and the loop is a `scan`. With weights only samples of weight above 0 count, and
their number is data: the loop takes as many steps as they need, so that data sets padded to one length share a program, and
padding costs nothing.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray, PyTree

from meristem.train.training_data import Data


class Batch(NamedTuple):
    """The minibatch of a step, or stacked, [steps, …], those of an epoch."""

    key: PRNGKeyArray
    x: Array
    y: Array
    weight: Array | None = None  # [batch], sums to 1 (weighted data: on average); None: all alike
    is_real: Array | None = None  # whether the step counts; None: all do


def steps_per_epoch(n: int, batch_size: int) -> int:
    return -(-n // min(batch_size, n))


def scan_batches(
    step: Callable[[PyTree, Batch], PyTree],
    carry: PyTree,
    data: Data,
    batch_size: int,
    key: PRNGKeyArray,
    part: Int[Array, ""],
    parts: int,
) -> PyTree:
    """Return the carry after step(carry, batch) for each batch of the part."""
    if data.weight is None:
        batches = _batches(data, batch_size, key, part, parts)
        return jax.lax.scan(lambda carry, batch: (step(carry, batch), None), carry, batches)[0]
    # Samples of weight above 0 in random order, the others after them and out of reach.
    x, y, weight = (jnp.asarray(a) for a in (data.x, data.y, data.weight))
    n = x.shape[0]
    size, steps = min(batch_size, n), steps_per_epoch(n, batch_size)
    length = -(-steps // parts)
    keys = jax.random.split(key, steps + 1)
    order = jnp.argsort(jnp.where(weight > 0, jax.random.uniform(keys[0], (n,)), 2.0))
    order = jnp.concatenate([order, jnp.zeros(steps * size - n, order.dtype)])
    n_real = (weight > 0).sum(dtype=jnp.int32)
    share = weight / (weight.sum() / n_real)  # 1 on average

    def weighted_step(i: Any, carry: PyTree) -> PyTree:
        rows = jax.lax.dynamic_slice_in_dim(order, i * size, size)
        is_real = i * size + jnp.arange(size) < n_real
        count = jnp.maximum(is_real.sum(), 1).astype(share.dtype)
        return step(carry, Batch(keys[1:][i], x[rows], y[rows], jnp.where(is_real, share[rows], 0) / count, None))

    first = part * length
    return jax.lax.fori_loop(first, jnp.minimum(first + length, -(-n_real // size)), weighted_step, carry)


def _batches(data: Data, batch_size: int, key: PRNGKeyArray, part: Int[Array, ""], parts: int) -> Batch:
    """Return the batches of a part; the last batch is padded with samples of weight 0, the last part with unreal steps."""
    n = data.x.shape[0]
    size, steps = min(batch_size, n), steps_per_epoch(n, batch_size)
    length = -(-steps // parts)
    keys = jax.random.split(key, parts * length + 1)
    order = jax.random.permutation(keys[0], n)
    weight = is_real = None
    padded = parts * length * size
    if padded != n:
        order = jnp.concatenate([order, jnp.zeros(padded - n, order.dtype)])
        real = (jnp.arange(padded) < n).reshape(-1, size).astype(jnp.result_type(float))
        weight = real / jnp.maximum(real.sum(1, keepdims=True), 1)
        is_real = real.any(1) if parts * length != steps else None
    keys, order, weight, is_real = jax.tree.map(
        lambda a: a if parts == 1 else jax.lax.dynamic_slice_in_dim(a, part * length, length),
        (keys[1:], order.reshape(-1, size), weight, is_real),
    )
    return Batch(keys, data.x[order], data.y[order], weight, is_real)
