"""Batch normalization of the units of a layer, which compaction multiplies into the map before it.

    z ← s ⊙ (z − m) / √(v + ε) + b        z [units, *positions] of one sample; s, b, m, v [units]

In a step of training, a `jax.vmap(…, axis_name=BATCH)` over samples, m and v are mean and variance over the samples and
positions of the batch; elsewhere they are the running ones, `Statistics`. These are no parameters, but move with them: their
gradient is defined as their distance from m and v, of which the optimizer takes a fixed share (train/optimizer.py), so that

    running ← running + share · (m − running)        share = 1/10
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

BATCH = "batch"  # the name of the axis of samples in a step of training
EPSILON = 1e-5
SHARE = 0.1


class Statistics(eqx.Module):
    """Running statistics. Adam and weight decay leave them alone; `followed` gives them their gradient."""

    mean: Float[Array, "*layers units"]
    variance: Float[Array, "*layers units"]


class BatchNorm(eqx.Module):
    """The normalization of one layer, or of several that are stacked.

    >>> norm = BatchNorm.start((2,))
    >>> z = jnp.array([[1.0, 3.0], [5.0, 5.0]])
    >>> norm(jnp.zeros(2), z).round(2).tolist()  # by the running mean 0 and variance 1
    [[1.0, 3.0], [5.0, 5.0]]
    >>> jax.vmap(lambda z: norm(jnp.zeros(2), z), axis_name=BATCH)(z[None])[0].round(2).tolist()
    [[-1.0, 1.0], [0.0, 0.0]]
    """

    scale: Float[Array, "*layers units"]
    statistics: Statistics

    @classmethod
    def start(cls, shape: tuple[int, ...]) -> "BatchNorm":
        return cls(jnp.ones(shape), Statistics(jnp.zeros(shape), jnp.ones(shape)))

    def __call__(self, bias: Float[Array, " units"], z: Float[Array, "units ..."]) -> Float[Array, "units ..."]:
        mean, variance = self._moments(z)
        factor = self.scale.astype(mean.dtype) * jax.lax.rsqrt(jnp.maximum(variance, 0) + EPSILON)
        shape = (-1, *[1] * (z.ndim - 1))
        shift = bias.astype(mean.dtype) - mean * factor
        return factor.reshape(shape).astype(z.dtype) * z + shift.reshape(shape).astype(z.dtype)

    def _moments(self, z: Array) -> tuple[Array, Array]:
        """Return mean and variance [units], in single precision at least."""
        running = jax.tree.map(lambda a: a.astype(jnp.promote_types(a.dtype, jnp.float32)), self.statistics)
        if not is_in_batch():
            return jax.lax.stop_gradient((running.mean, running.variance))
        wide, positions = z.astype(running.mean.dtype), tuple(range(1, z.ndim))
        mean = jax.lax.pmean(wide.mean(positions), BATCH)
        variance = jax.lax.pmean((wide**2).mean(positions), BATCH) - mean**2
        return followed(running.mean, mean), followed(running.variance, variance)

    def layers(self) -> "list[BatchNorm]":
        """Return one for each layer of a stack."""
        stacks = self.scale, self.statistics.mean, self.statistics.variance
        return [BatchNorm(scale, Statistics(*own)) for scale, *own in zip(*map(jnp.unstack, stacks), strict=True)]

    def folded(self, weight: Any, bias: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return a map [*layers, units, …] and its bias with the running normalization in them, in double precision."""
        running = self.statistics
        scale, mean, variance = (np.asarray(a, np.float64) for a in (self.scale, running.mean, running.variance))
        factor, weight = scale / np.sqrt(np.maximum(variance, 0) + EPSILON), np.asarray(weight, np.float64)
        return weight * factor.reshape(*factor.shape, *[1] * (weight.ndim - factor.ndim)), bias - mean * factor


def is_in_batch() -> bool:
    """Return whether this is traced in a step of training."""
    try:
        jax.lax.axis_size(BATCH)
    except NameError:
        return False
    return True


@jax.custom_vjp
def followed(running: Float[Array, " units"], current: Float[Array, " units"]) -> Float[Array, " units"]:
    """Return the statistics of the batch; the gradient of `running` is its distance from that.

    >>> jax.grad(lambda running: followed(running, jnp.array([3.0])).sum())(jnp.array([1.0])).tolist()
    [-2.0]
    """
    return current


followed.defvjp(
    lambda running, current: (current, (running, current)),
    lambda arrays, slope: (arrays[0] - arrays[1], slope),
)
