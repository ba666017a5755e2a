"""Mixup: each sample of a step is mixed with another one of it, and its loss is the same mixture of both targets' losses.

    x ← q x + (1 − q) x'        E ← q E(o, t) + (1 − q) E(o, t')        q ~ Beta(α, α), one for each step

A sample of weight 0, which is padding or held out, is nobody's partner.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Num, PRNGKeyArray


class Mixed(NamedTuple):
    """The targets of the other samples, and the share of each sample's own."""

    y: Num[Array, "batch ..."]
    share: Float[Array, ""]


def mix(
    key: PRNGKeyArray,
    x: Float[Array, "batch ..."],
    y: Num[Array, "batch ..."],
    weight: Float[Array, " batch"] | None,
    alpha: float,
) -> tuple[Float[Array, "batch ..."], Mixed]:
    """Return the mixed samples, and what the loss needs to know of it.

    >>> x, mixed = mix(jax.random.key(0), jnp.eye(2), jnp.array([0, 1]), None, 1.0)
    >>> x.sum(1).tolist(), mixed.y.shape
    ([1.0, 1.0], (2,))
    """
    share_key, order_key = jax.random.split(key)
    share = jax.random.beta(share_key, alpha, alpha, dtype=x.dtype)
    other = jax.random.permutation(order_key, x.shape[0])
    if weight is not None:
        other = jnp.where(weight[other] > 0, other, jnp.arange(x.shape[0], dtype=other.dtype))
    return share * x + (1 - share) * x[other], Mixed(y[other], share)
