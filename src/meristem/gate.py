"""A parameter confined to [0, 1]: the one constraint of the method.

A tunnel's gate g and a budding node's leafness γ are trained by the same gradient step as the weights
and then clipped, so that they reach 0 and 1 *exactly*; sizes, growth and compaction rest on that.

    p ← clip(p + u, 0, 1)        u: whatever the optimizer proposes

One of the two ends is *closed*: what stands behind it takes no part. 0 is for gates, 1 for leafness. `Confined` marks such a
parameter in any model, `project()` is the last link of any optax chain, `hold` keeps closed what was closed.
Imports nothing of meristem; everything may import it.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, PyTree


class Confined(eqx.Module):
    """A trainable array whose every entry stays in [0, 1]; at `closed` what it gates is not there.

    >>> import jax.numpy as jnp
    >>> Confined(jnp.zeros(3)).is_open.tolist()
    [False, False, False]
    """

    value: Float[Array, "*shape"]
    closed: float = eqx.field(static=True, default=0.0)

    @property
    def is_open(self) -> Bool[Array, "*shape"]:
        return self.value != self.closed

    def at(self, value: Float[Array, "*shape"]) -> "Confined":
        """Other values of the same parameter."""
        return Confined(value, self.closed)


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
            return param.at(jnp.clip(param.value + update.value, 0, 1) - param.value)

        # None stands for "no update"; the parameter beside it may be anything.
        return jax.tree.map(clip, updates, params, is_leaf=lambda node: node is None or is_confined(node)), state

    return optax.GradientTransformation(lambda params: optax.EmptyState(), update)


def hold(before: PyTree, after: PyTree, when: Bool[Array, ""]) -> PyTree:
    """The model after an update; `when`, every gate that was closed before it still is.

    >>> before, after = Confined(jnp.array([0.0, 0.5])), Confined(jnp.array([0.1, 0.6]))
    >>> [round(v, 1) for v in hold(before, after, jnp.array(True)).value.tolist()]
    [0.0, 0.6]
    """

    def one(old: Any, new: Any) -> Any:
        return new.at(jnp.where(when & ~old.is_open, old.value, new.value)) if is_confined(new) else new

    return jax.tree.map(one, before, after, is_leaf=is_confined)


def closed_as(like: PyTree, model: PyTree) -> PyTree:
    """The model with every gate closed that is closed in another.

    >>> closed_as(Confined(jnp.array([0.0, 0.2])), Confined(jnp.array([0.1, 0.6]))).value.tolist()[0]
    0.0
    """

    def one(other: Any, node: Any) -> Any:
        return node.at(jnp.where(other.is_open, node.value, other.value)) if is_confined(node) else node

    return jax.tree.map(one, like, model, is_leaf=is_confined)


def fully_open(model: PyTree) -> PyTree:
    """The model with every gate that is not closed as open as it can be: what counts is what is there at all.

    >>> fully_open(Confined(jnp.array([0.0, 0.2]))).value.tolist()
    [0.0, 1.0]
    """

    def one(node: Any) -> Any:
        if not is_confined(node):
            return node
        return node.at(jnp.where(node.is_open, 1 - node.closed, node.closed).astype(node.value.dtype))

    return jax.tree.map(one, model, is_leaf=is_confined)
