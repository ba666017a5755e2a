"""A parameter confined to [0, 1]: the one constraint of the method.

A tunnel's gate g and a budding node's leafness γ are trained by the same gradient step as the weights
and then clipped, so that they reach 0 and 1 *exactly*; sizes, growth and compaction rest on that.

    p ← clip(p + u, 0, 1)        u: whatever the optimizer proposes

`Confined` marks such a parameter in any model, `project()` is the last link of any optax chain.
Imports nothing of meristem; everything may import it.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PyTree


class Confined(eqx.Module):
    """A trainable array whose every entry stays in [0, 1].

    >>> import jax.numpy as jnp
    >>> Confined(jnp.zeros(3)).value.shape
    (3,)
    """

    value: Float[Array, "*shape"]


def is_confined(node: Any) -> bool:
    return isinstance(node, Confined)


def project() -> optax.GradientTransformation:
    """The last link of a chain: no update leaves [0, 1]. Parameters that are not `Confined` pass through.

    The update is written as clip(p + u) − p; adding it to p gives 0 and 1 to the bit.

    >>> import jax.numpy as jnp, optax
    >>> params = {"gate": Confined(jnp.array([0.0, 0.9])), "weight": jnp.array([5.0])}
    >>> grads = {"gate": Confined(jnp.array([1.0, -1.0])), "weight": jnp.array([1.0])}
    >>> optimizer = optax.chain(optax.sgd(0.5), project())
    >>> updates, _ = optimizer.update(grads, optimizer.init(params), params)
    >>> [float(v) for v in optax.apply_updates(params, updates)["gate"].value]
    [0.0, 1.0]
    """

    def update(updates: PyTree, state: optax.EmptyState, params: PyTree | None = None) -> tuple[PyTree, optax.EmptyState]:
        if params is None:
            raise ValueError("project() needs the parameters: call optimizer.update(grads, state, params).")

        def clip(update: Any, param: Any) -> Any:
            if not is_confined(update) or update.value is None:
                return update
            return Confined(jnp.clip(param.value + update.value, 0, 1) - param.value)

        # None stands for "no update"; the parameter beside it may be anything.
        return jax.tree.map(clip, updates, params, is_leaf=lambda node: node is None or is_confined(node)), state

    return optax.GradientTransformation(lambda params: optax.EmptyState(), update)
