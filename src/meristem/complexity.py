"""How large a network is: equations 6, 7 and 8 and the hard counts.

    tunnel, highway   s_l = Σ_k g_lk per layer (a highway's gates averaged over the inputs), s = Σ_l s_l
    budding           s_m = 1 + (1 − γ_m)(s_left + s_right), s = s_root; hard: the number of nodes
                      written without recursion: s = Σ_m Π (1 − γ_a) over the ancestors a of m
    plain, residual   every unit counts 1
Pure functions of a network and its inputs [n, features], or of a body and the inputs [n, width] that reach it.
"""

from functools import singledispatch

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from meristem.nn.body import Body
from meristem.nn.budding import Budding
from meristem.nn.highway import Highway
from meristem.nn.network import Network
from meristem.nn.stack import Plain
from meristem.nn.tree import inner_of, living, n_leaves, spans
from meristem.nn.tunnel import Tunnel


@singledispatch
def layer_sizes(
    body: Body | Network, inputs: Float[Array, "n features"], weight: Float[Array | np.ndarray, " n"] | None = None
) -> Float[Array, " layers"]:
    """The soft size of each layer; for a budding tree one number, the soft size of the tree. Inputs count by their `weight`.

    >>> import jax, jax.numpy as jnp
    >>> layer_sizes(Tunnel(width=3, depth=2, key=jax.random.key(0)), jnp.ones((1, 3))).tolist()
    [0.0, 0.0]
    """
    raise TypeError(f"No measure of complexity is known for a {type(body).__name__}.")


@layer_sizes.register
def _(body: Network, inputs: Array, weight: Array | np.ndarray | None = None) -> Array:
    return layer_sizes(body.body, jax.vmap(body.embed)(inputs), weight)


@layer_sizes.register
def _(body: Tunnel, inputs: Array, weight: Array | np.ndarray | None = None) -> Array:
    return body.gate.value.sum(1)


@layer_sizes.register
def _(body: Highway, inputs: Array, weight: Array | np.ndarray | None = None) -> Array:
    sizes = jax.vmap(lambda x: body.gates(x).sum(1))(inputs)
    return sizes.mean(0) if weight is None else (weight[:, None] * sizes).sum(0) / weight.sum()


@layer_sizes.register
def _(body: Plain, inputs: Array, weight: Array | np.ndarray | None = None) -> Array:
    return jnp.full(body.bias.shape[0], float(body.bias.shape[1]))


@layer_sizes.register
def _(body: Budding, inputs: Array, weight: Array | np.ndarray | None = None) -> Array:
    alive, inner = living(body.depth), body.depth >= 0
    index = jnp.arange(body.capacity, dtype=body.depth.dtype)
    first, last = spans(body.depth)
    factor = (1 - inner_of(body.leafness.value, 0.0))[:, None]  # [ancestor, node]
    above_leaf = (first[:, None] <= index[None, :]) & (index[None, :] <= last[:, None])
    above_inner = above_leaf & (first[:, None] < index[None, :]) & (index[:, None] != index[None, :])
    leaves = jnp.where(above_leaf, factor, 1).prod(0)
    inners = jnp.where(above_inner, factor, 1).prod(0)
    return (jnp.where(alive, leaves, 0) + jnp.where(inner, inners, 0)).sum()[None]


def soft_size(body: Body | Network, inputs: Float[Array, "n features"]) -> Float[Array, ""]:
    """The sum over all layers: s = Σ_l s_l.

    >>> import jax, jax.numpy as jnp
    >>> soft_size(Budding(width=3, key=jax.random.key(0)), jnp.ones((1, 3))).item()
    1.0
    """
    return layer_sizes(body, inputs).sum()


@singledispatch
def hard_size(body: Body | Network) -> Int[Array, ""]:
    """The nodes of a budding tree, leaves and inner ones; the units of a stack that are not exact copies.

    >>> import jax
    >>> int(hard_size(Budding(width=3, key=jax.random.key(0))))
    1
    """
    raise TypeError(f"No measure of complexity is known for a {type(body).__name__}.")


@hard_size.register
def _(body: Highway | Plain) -> Array:
    return jnp.asarray(body.bias.size, jnp.int32)


@hard_size.register
def _(body: Network) -> Array:
    return hard_size(body.body)


@hard_size.register
def _(body: Tunnel) -> Array:
    return (body.gate.value > 0).sum(dtype=jnp.int32)


@hard_size.register
def _(body: Budding) -> Array:
    return 2 * n_leaves(body.depth) - 1


@singledispatch
def live_parameters(body: Body) -> Int[Array, ""]:
    """The numbers that the body's output depends on; the rest could be cut away.

    >>> import jax
    >>> int(live_parameters(Tunnel(width=3, depth=2, key=jax.random.key(0))))
    0
    """
    return jnp.asarray(sum(leaf.size for leaf in jax.tree.leaves(body)), jnp.int32)


@live_parameters.register
def _(body: Tunnel) -> Array:
    return hard_size(body) * (body.weight.shape[-1] + 2)  # an open unit's weights, bias and gate


@live_parameters.register
def _(body: Budding) -> Array:
    width = body.weight.shape[-1]
    return n_leaves(body.depth) * (width * width + width) + hard_size(body)  # the layers, and a γ for every node
