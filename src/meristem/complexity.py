"""How large a network is: equations 6, 7 and 8 and the hard counts.

    tunnel, highway   s_l = Σ_k g_lk per layer (a highway's gates averaged over the inputs), s = Σ_l s_l
    budding           s_m = 1 + (1 − γ_m)(s_left + s_right), s = s_root; hard: the number of nodes
    plain, residual   every unit counts 1

    parameters, multiply_adds             of the compact network, as it is shipped
    soft_parameters, soft_multiply_adds   of its matrices one after the other, each gate by how open it is; differentiable
    soft_bytes                            likewise, of its tables in eight bits

All but the compact counts follow from the axes that a body declares (nn/axes.py). Sizes are those of a network and its inputs
[n, features], of a body and the inputs [n, width] that reach it, or of any model with bodies in it.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from meristem.compact import compact, n_parameters
from meristem.compact.report import multiply_adds as program_multiply_adds
from meristem.nn import axis_counts
from meristem.nn.axis_counts import STORED_BYTES, soft_bytes, soft_multiply_adds, soft_parameters
from meristem.nn.body import Body, bodies_of
from meristem.nn.network import Network, UsedEnds

PRICES = ["units", "parameters", "bytes", "multiply-adds"]
UNIT = 50  # parameters, bytes or multiply-adds that cost as much as a unit
INPUT = 3  # units that an input costs besides its weights
Inputs = Float[Array | np.ndarray, "n features ..."]


def layer_sizes(model: Any, inputs: Inputs, weight: Float[Array | np.ndarray, " n"] | None = None) -> Float[Array, " layers"]:
    """The soft size of each layer; for a budding tree one number, the soft size of the tree. Inputs count by their `weight`.

    >>> from meristem.nn import Tunnel
    >>> layer_sizes(Tunnel(width=3, depth=2, key=jax.random.key(0)), jnp.ones((1, 3))).tolist()
    [0.0, 0.0]
    """
    if isinstance(model, Network):
        return body_sizes(model.body, jax.vmap(model.embedded)(jnp.asarray(inputs)), weight)
    return jnp.concatenate([body_sizes(body, jnp.asarray(inputs), weight) for body in _bodies(model)])


def body_sizes(body: Body, inputs: Inputs | None = None, weight: Any = None) -> Float[Array, " layers"]:
    """The soft size of each layer of a body, over the inputs that reach it where it depends on them."""
    return axis_counts.layer_sizes(body.axes(inputs, weight))


def soft_size(model: Any, inputs: Inputs) -> Float[Array, ""]:
    """The sum over all layers and bodies: s = Σ_l s_l.

    `inputs` are what the network takes; of a body or a model of one's own, what reaches its bodies, for highways alone.

    >>> from meristem.nn import Budding
    >>> soft_size(Budding(width=3, key=jax.random.key(0)), jnp.ones((1, 3))).item()
    1.0
    """
    return layer_sizes(model, inputs).sum()


def hard_size(model: Any) -> Int[Array, ""]:
    """The nodes of a budding tree, leaves and inner ones; the units of a stack that are not exact copies.

    >>> from meristem.nn import Budding
    >>> int(hard_size(Budding(width=3, key=jax.random.key(0))))
    1
    """
    return jnp.stack([axis_counts.hard_size(body.axes()) for body in _bodies(model)]).sum(dtype=jnp.int32)


def soft_cost(network: Network, price: str, used_ends: UsedEnds | None = None) -> Float[Array, ""]:
    """What the penalty multiplies where the price is not "units": in units of fifty; `used_ends`: see `Network.axes`.

    Where inputs may close, each costs three units besides: among many that say nothing the best seem to say something (with 200
    such and 1,000 rows, one unit let 1 to 3 % of them through, three none).
    """
    cost = SOFT[price](network, network.axes(used_ends=used_ends)) / UNIT
    return cost if network.features is None else cost + INPUT * network.features.value.sum()


def multiply_adds(network: Network) -> int:
    """Those of the compact network's matrix products, for one sample. A host function.

    >>> network = Network.create("tunnel", n_in=2, n_out=1, width=3, depth=2, key=jax.random.key(0))
    >>> parameters(network), multiply_adds(network), float(soft_parameters(network))    # one affine map, or embedding and head
    (3, 2, 10.0)
    """
    return program_multiply_adds(compact(network), jnp.zeros(network.input_shape, network.dtype))


parameters = n_parameters  # of the compact form, exactly
SOFT = {"parameters": soft_parameters, "bytes": soft_bytes, "multiply-adds": soft_multiply_adds}
OTHERS = {"parameters": (1, 1), "bytes": (STORED_BYTES, 1), "multiply-adds": (0, 1)}  # of numbers without axes: vectors, maps


def _bodies(model: Any) -> list[Body]:
    bodies = bodies_of(model)
    if not bodies:
        raise TypeError(f"No measure of complexity is known for a {type(model).__name__}: it has no meristem.nn.Body in it.")
    return bodies
