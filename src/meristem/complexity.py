"""How large a network is: equations 6, 7 and 8 and the hard counts.

    tunnel, highway   s_l = Σ_k g_lk per layer (a highway's gates averaged over the inputs), s = Σ_l s_l
    budding           s_m = 1 + (1 − γ_m)(s_left + s_right), s = s_root; hard: the number of nodes
    plain, residual   every unit counts 1

Each body says its own sizes (`nn/body.py`); here they are asked of a network and its inputs [n, features], of a body and the
inputs [n, width] that reach it, or of any model with bodies in it.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from meristem.nn.body import Body, bodies_of
from meristem.nn.network import Network

Inputs = Float[Array | np.ndarray, "n features"]


def layer_sizes(model: Any, inputs: Inputs, weight: Float[Array | np.ndarray, " n"] | None = None) -> Float[Array, " layers"]:
    """The soft size of each layer; for a budding tree one number, the soft size of the tree. Inputs count by their `weight`.

    >>> import jax, jax.numpy as jnp
    >>> from meristem.nn import Tunnel
    >>> layer_sizes(Tunnel(width=3, depth=2, key=jax.random.key(0)), jnp.ones((1, 3))).tolist()
    [0.0, 0.0]
    """
    if isinstance(model, Network):
        return model.body.sizes(jax.vmap(model.embed)(jnp.asarray(inputs)), weight)
    return jnp.concatenate([body.sizes(jnp.asarray(inputs), weight) for body in _bodies(model)])


def soft_size(model: Any, inputs: Inputs) -> Float[Array, ""]:
    """The sum over all layers: s = Σ_l s_l; of a model of one's own, over all bodies in it.

    `inputs` are what the network takes; of a body or a model of one's own, what reaches its bodies, which matters to
    highways alone.

    >>> import jax, jax.numpy as jnp
    >>> from meristem.nn import Budding
    >>> soft_size(Budding(width=3, key=jax.random.key(0)), jnp.ones((1, 3))).item()
    1.0
    """
    return layer_sizes(model, inputs).sum()


def hard_size(model: Any) -> Int[Array, ""]:
    """The nodes of a budding tree, leaves and inner ones; the units of a stack that are not exact copies.

    >>> import jax
    >>> from meristem.nn import Budding
    >>> int(hard_size(Budding(width=3, key=jax.random.key(0))))
    1
    """
    return jnp.stack([body.hard_size() for body in _bodies(model)]).sum(dtype=jnp.int32)


def _bodies(model: Any) -> list[Body]:
    bodies = bodies_of(model)
    if not bodies:
        raise TypeError(f"No measure of complexity is known for a {type(model).__name__}: it has no meristem.nn.Body in it.")
    return bodies
