"""What is minimised (equations 2 and 5), for one sample of the four kinds of task.

    J = mean_x E(x) + penalty · price + l2 · ½ ‖W‖²

E: binary cross-entropy, cross-entropy, the sum of binary cross-entropies, or half the squared error. `penalty` is relative
to the mean loss, so it does not change with the batch size (the paper's λ is relative to the sum over a batch: λ / batch).
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Num

from meristem.check import unknown
from meristem.nn.network import Network
from meristem.train.over_batch import over_batch


class Objective(NamedTuple):
    """A kind of task: outputs [k] (logits, or values for squared error) against one target."""

    loss: Callable[[Array, Array], Array]  # E(x)
    error: Callable[[Array, Array], Array]  # wrong decisions for one instance; the squared error for regression


def _binary_loss(outputs: Array, target: Array) -> Array:
    # log(1 + e^o) − t·o, summed over outputs, without overflow
    return (jax.nn.softplus(outputs) - target.astype(outputs.dtype) * outputs).sum()


def _binary_error(outputs: Array, target: Array) -> Array:
    return ((outputs > 0) != (target > 0)).sum().astype(outputs.dtype)


OBJECTIVES: dict[str, Objective] = {
    # one logit, target 0 or 1
    "binary": Objective(lambda o, t: _binary_loss(o, t[None]), lambda o, t: _binary_error(o, t[None])),
    # k logits, target 0 … k−1
    "multiclass": Objective(
        lambda o, t: jax.nn.logsumexp(o) - jnp.where(jnp.arange(o.shape[0]) == t, o, 0).sum(),
        lambda o, t: (o.argmax() != t).astype(o.dtype),
    ),
    # k logits, target k zeros and ones
    "multilabel": Objective(_binary_loss, _binary_error),
    # k values, target k values
    "squared": Objective(
        lambda o, t: 0.5 * ((o - t.astype(o.dtype)) ** 2).sum(),
        lambda o, t: ((o - t.astype(o.dtype)) ** 2).sum(),
    ),
}


def objective(name: str) -> Objective:
    """An objective by name."""
    if name not in OBJECTIVES:
        raise unknown("objective", name, list(OBJECTIVES))
    return OBJECTIVES[name]


def total(
    network: Network,
    x: Float[Array, "batch in"],
    y: Num[Array, "batch ..."],
    *,
    kind: str,
    penalty: Float[Array, ""] | float,
    l2: Float[Array, ""] | float,
    weight: Float[Array, " batch"] | None = None,
) -> Float[Array, ""]:
    """J over a batch. `weight` sums to 1; None is the plain mean.

    >>> import jax, jax.numpy as jnp
    >>> network = Network.create("tunnel", 2, 1, depth=2, key=jax.random.key(0))
    >>> total(network, jnp.zeros((4, 2)), jnp.zeros(4), kind="binary", penalty=0.0, l2=0.0).item() == jnp.log(2.0).item()
    True
    """
    loss = objective(kind).loss
    # The price of most bodies does not depend on the sample; where it does (highway) its mean is meant.
    outputs, price = over_batch(network, x)
    each = jax.vmap(loss)(outputs, y) + penalty * price
    mean = each.mean() if weight is None else (weight * each).sum()
    return mean + l2 * network.half_norm()
