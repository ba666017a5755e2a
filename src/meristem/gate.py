"""A parameter confined to [0, 1], the only constraint of the method: a tunnel's gate g, a budding node's leafness γ.

    p ← clip(p + u, 0, 1)        u: the optimizer's update

So it reaches 0 and 1 *exactly*; sizes, growth and compaction rely on it. At one end, *closed* (0 for gates, 1 for leafness),
what it gates takes no part.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, PyTree


class Confined(eqx.Module):
    """A trainable array in [0, 1]; an entry equal to `closed` switches off what it gates.

    >>> Confined(jnp.zeros(3)).is_open.tolist()
    [False, False, False]
    """

    value: Float[Array, "*shape"]
    closed: float = eqx.field(static=True, default=0.0)

    @property
    def is_open(self) -> Bool[Array | np.ndarray, "*shape"]:
        return self.value != self.closed

    def at(self, value: Float[Array, "*shape"]) -> "Confined":
        """Return the same parameter with other values."""
        return Confined(value, self.closed)


def is_confined(node: Any) -> bool:
    return isinstance(node, Confined)


def project() -> optax.GradientTransformation:
    """Return the last link of an optax chain, which keeps every `Confined` parameter in [0, 1]; others pass through.

    The update becomes clip(p + u) − p; adding it to p gives 0 and 1 to the bit.

    >>> params = {"gate": Confined(jnp.array([0.0, 0.9])), "weight": jnp.array([5.0])}
    >>> grads = {"gate": Confined(jnp.array([1.0, -1.0])), "weight": jnp.array([1.0])}
    >>> optimizer = optax.chain(optax.sgd(0.5), project())
    >>> updates, _ = optimizer.update(grads, optimizer.init(params), params)
    >>> [float(v) for v in optax.apply_updates(params, updates)["gate"].value]
    [0.0, 1.0]
    """

    def update(updates: PyTree, params: PyTree | None) -> PyTree:
        if params is None:
            raise ValueError("project() needs the parameters: call optimizer.update(grads, state, params).")

        def clip(update: Any, param: Any) -> Any:
            if not is_confined(update) or update.value is None:
                return update
            return param.at(jnp.clip(param.value + update.value, 0, 1) - param.value)

        # None means "no update"; the parameter may then be anything.
        return jax.tree.map(clip, updates, params, is_leaf=lambda node: node is None or is_confined(node))

    return optax.stateless(update)


def map_gates(change: Callable[..., Any], model: PyTree, *others: PyTree) -> PyTree:
    """Return the model with change(gate, the same gate of the others, …) in place of each of its gates."""
    return jax.tree.map(
        lambda node, *rest: change(node, *rest) if is_confined(node) else node, model, *others, is_leaf=is_confined
    )


def hold(before: PyTree, after: PyTree, when: Bool[Array, ""] | bool = True) -> PyTree:
    """Return the model `after`; where `when` is true, with every gate closed that is closed in `before`.

    >>> before, after = Confined(jnp.array([0.0, 0.5])), Confined(jnp.array([0.1, 0.6]))
    >>> [round(v, 1) for v in hold(before, after).value.tolist()]
    [0.0, 0.6]
    """
    return map_gates(lambda new, old: new.at(jnp.where(when & ~old.is_open, old.value, new.value)), after, before)


def fully_open(model: PyTree) -> PyTree:
    """Return the model with every open gate fully open, whose soft size is the hard size.

    >>> fully_open(Confined(jnp.array([0.0, 0.2]))).value.tolist()
    [0.0, 1.0]
    """
    return map_gates(
        lambda gate: gate.at(jnp.where(gate.is_open, 1 - gate.closed, gate.closed).astype(gate.value.dtype)), model
    )
