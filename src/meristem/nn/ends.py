"""The ends of a network: what is done to its embedding and its head alone.

Other packages call these functions (files, train, estimators) and do not read the arrays of embedding and head themselves.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from meristem.nn.axes import INPUT, OUTPUT, take
from meristem.nn.body import Part, described
from meristem.nn.linear import Linear
from meristem.nn.network import Network


def described_ends(network: Network) -> dict[str, Any]:
    """Return what files say of embedding and head; nothing of plain linear maps around one trunk, as `Network.create` has."""
    embed, head = network.embed, network.head
    ends: dict[str, Part] = {}
    if type(embed) is not Linear or embed.positions:
        ends["embed"] = embed
    if type(head) is not Linear or head.positions or head.input_shape[0] != network.width:
        ends["head"] = head
    return {name: described(part) for name, part in ends.items()}


def linear_ends(network: Network) -> tuple[Linear, Linear]:
    """Return embedding and head of a network on vectors; ValueError where they are something else."""
    embed, head = network.embed, network.head
    if described_ends(network) or not isinstance(embed, Linear) or not isinstance(head, Linear):
        raise ValueError(f"its embedding is a {type(embed).__name__}, its head a {type(head).__name__}; both must be Linear.")
    return embed, head


def mask_ends(
    network: Network, n_in: Int[Array, ""] | int, n_out: Int[Array, ""] | int, unused_output: Float[Array, ""] | float
) -> Network:
    """Return a fresh network that uses its first inputs and outputs; other inputs do nothing, other outputs never change.

    Its weights are as large as if there were no others: uniform on ±√(6 / (fan_in + fan_out)).

    >>> network = mask_ends(Network.create("tunnel", 4, 3, depth=2, key=jax.random.key(0)), 2, 1, -9.0)
    >>> network(jnp.array([0.0, 0.0, 5.0, 5.0])).tolist()
    [0.0, -9.0, -9.0]
    """
    (all_in,), all_out, width = network.input_shape, network.n_out, network.width
    embed, head = linear_ends(network)
    bias = head.bias
    assert bias is not None
    is_input, is_output = jnp.arange(all_in) < n_in, jnp.arange(all_out) < n_out
    embed_scale, head_scale = (jnp.sqrt((n + width) / (used + width)) for n, used in ((all_in, n_in), (all_out, n_out)))
    if network.features is not None:
        network = eqx.tree_at(lambda n: n.features, network, network.features.at(is_input.astype(bias.dtype)))
    return eqx.tree_at(
        lambda n: (n.embed.weight, n.head.weight, n.head.bias),
        network,
        (
            jnp.where(is_input[None, :], embed_scale * embed.weight, 0),
            jnp.where(is_output[:, None], head_scale * head.weight, 0),
            jnp.where(is_output, bias, unused_output),
        ),
    )


def trim_ends(network: Network, n_in: int, n_out: int) -> Network:
    """Return the network with its first inputs and outputs, and no others. A host function.

    >>> network = trim_ends(Network.create("tunnel", 4, 3, depth=2, key=jax.random.key(0)), 2, 1)
    >>> network.input_shape, network.n_out
    ((2,), 1)
    """
    linear_ends(network)
    network = jax.device_get(network)  # cutting on the device would compile a program for each shape
    return jax.device_put(take(network, network.axes(), {INPUT: np.arange(n_in), OUTPUT: np.arange(n_out)}))


def divide_outputs(network: Network, divisor: float) -> Network:
    """Return the network with its outputs divided by a number. A host function.

    >>> network = Network.create("tunnel", 2, 1, width=3, depth=2, key=jax.random.key(0))
    >>> x = jnp.ones(2)
    >>> bool(jnp.allclose(divide_outputs(network, 2.0)(x), network(x) / 2))
    True
    """
    head = jax.tree.map(lambda leaf: (np.asarray(leaf) / divisor).astype(leaf.dtype), network.head)  # compiles nothing
    return eqx.tree_at(lambda n: n.head, network, jax.device_put(head))
