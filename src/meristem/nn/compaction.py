"""What compaction keeps: the open places of every axis, and of a body the layers that it says it is.

    compact_network(network) → CompactNetwork          compact_body(body) → CompactNetwork

Closed dimensions of the trunk and closed inputs are left out, their gates multiplied into what reads them; the body says its
layers (`Body.compact_layers`); embedding and head are joined with them in as few products as possible (layers/join.py).
Imports layers and nn; compact imports it.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meristem.layers.join import join, plainer
from meristem.layers.layer import Affine, Layer, Pick
from meristem.layers.network import CompactNetwork
from meristem.nn.body import Body
from meristem.nn.concrete import check_concrete, check_values
from meristem.nn.ends import end_weights, without_features
from meristem.nn.linear import Linear
from meristem.nn.narrow import without_trunk
from meristem.nn.network import Network
from meristem.nn.trunk import trunk_of


def compact_network(network: Network) -> CompactNetwork:
    """The live network: its body's layers joined with embedding and head. A host function."""
    check_concrete("compact()", network)
    dtype, picked = network.dtype, []
    if trunk_of(network.body) is not None:
        network, _ = without_trunk(network)
    if network.features is not None:
        (n_in,) = network.input_shape
        network, rows = without_features(network)
        picked = [Pick(tuple(rows.tolist()), n_in)]
    return _stored([*picked, *join(network.body.compact_layers(), end_weights(network))], dtype)


def compact_body(body: Body) -> CompactNetwork:
    """The live body, [width] → [width]; one that copies its input has no layers. A host function."""
    check_values("compact()", body)
    if trunk_of(body) is not None:
        return _of_trunk(body)
    dtypes = [leaf.dtype for leaf in jax.tree.leaves(body) if eqx.is_inexact_array(leaf)]
    return _stored([plainer(layer) for layer in body.compact_layers()], dtypes[0] if dtypes else jnp.result_type(float))


def _of_trunk(body: Any) -> CompactNetwork:
    """Of a body whose width was learned: what enters is cut to the open dimensions, what comes out is put in its places."""
    gates = np.asarray(body.trunk.value, np.float64)
    dtype = body.trunk.value.dtype
    around = Network(Linear(1, len(gates), key=jax.random.key(0)), body, Linear(len(gates), 1, key=jax.random.key(0)))
    small, dims = without_trunk(around)
    back = np.zeros((len(gates), len(dims)))
    back[dims, np.arange(len(dims))] = gates[dims]
    layers = [plainer(layer) for layer in small.body.compact_layers()]
    return _stored([Pick(tuple(dims.tolist()), len(gates)), *layers, Affine(back, None)], dtype)


def _stored(layers: list[Layer], dtype: Any) -> CompactNetwork:
    """On the device, in the precision that the model has."""
    return CompactNetwork(jax.device_put(jax.tree.map(lambda a: a.astype(dtype), tuple(layers))))
