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
from meristem.nn.body import described
from meristem.nn.linear import Linear
from meristem.nn.network import Network

Count = Int[Array, ""] | int


def described_ends(network: Network) -> dict[str, Any]:
    """Return what files say of embedding and head; nothing of plain linear maps around one trunk, as `Network.create` has."""
    embed, head = network.embed, network.head
    is_plain = {
        "embed": type(embed) is Linear and not embed.positions,
        "head": type(head) is Linear and not head.positions and head.input_shape[0] == network.width,
    }
    return {name: described(getattr(network, name)) for name, plain in is_plain.items() if not plain}


def linear_ends(network: Network) -> tuple[Linear, Linear]:
    """Return embedding and head of a network on vectors; ValueError where they are something else."""
    embed, head = network.embed, network.head
    if described_ends(network) or not isinstance(embed, Linear) or not isinstance(head, Linear):
        raise ValueError(f"its embedding is a {type(embed).__name__}, its head a {type(head).__name__}; both must be Linear.")
    return embed, head


def mask_ends(network: Network, n_in: Count, n_out: Count, unused_output: Float[Array, ""] | float) -> Network:
    """Return a fresh network that uses its first inputs and outputs; other inputs do nothing, other outputs never change.

    Its weights are as large as if there were no others: uniform on ±√(6 / (fan_in + fan_out)).
    """
    (all_in,), all_out, width = network.input_shape, network.n_out, network.width
    embed, head = linear_ends(network)
    assert head.bias is not None
    is_input, is_output = jnp.arange(all_in) < n_in, jnp.arange(all_out) < n_out
    embed_scale, head_scale = (jnp.sqrt((n + width) / (used + width)) for n, used in ((all_in, n_in), (all_out, n_out)))
    if network.features is not None:
        network = eqx.tree_at(lambda n: n.features, network, network.features.at(is_input.astype(head.bias.dtype)))
    embedding = jnp.where(is_input[None, :], embed_scale * embed.weight, 0)
    weight, bias = jnp.where(is_output[:, None], head_scale * head.weight, 0), jnp.where(is_output, head.bias, unused_output)
    return eqx.tree_at(lambda n: (n.embed.weight, n.head.weight, n.head.bias), network, (embedding, weight, bias))


def trim_ends(network: Network, n_in: int, n_out: int) -> Network:
    """Return the network with its first inputs and outputs, and no others. A host function."""
    linear_ends(network)
    network = jax.device_get(network)  # cutting on the device would compile a program for each shape
    return jax.device_put(take(network, network.axes(), {INPUT: np.arange(n_in), OUTPUT: np.arange(n_out)}))


def divide_outputs(network: Network, divisor: float) -> Network:
    """Return the network with its outputs divided by a number. A host function."""
    head = jax.tree.map(lambda leaf: (np.asarray(leaf) / divisor).astype(leaf.dtype), network.head)  # compiles nothing
    return eqx.tree_at(lambda n: n.head, network, jax.device_put(head))
