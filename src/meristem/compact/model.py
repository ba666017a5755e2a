"""compact(): the same function with nothing in it that does not live; of a network, of a body, or of a model with bodies in it.

    a Network     a `CompactNetwork`: the body's layers (lower.py), joined with embedding and head (join.py)
    a body        a `CompactNetwork` [width] → [width] of its layers alone; a body that copies its input has none
    a model       of one's own: the same model, each body or Network in it replaced by its compact form

Exact by construction: sums are taken in another order, so outputs agree to rounding, not to the bit.
"""

from typing import Any, TypeVar, overload

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meristem.compact.join import join, plainer
from meristem.compact.layers import Affine, Layer, Pick
from meristem.compact.lower import check_concrete, check_values, lower
from meristem.compact.network import CompactNetwork, n_floats
from meristem.nn import Body, Network
from meristem.nn.ends import end_weights, without_features
from meristem.nn.linear import Linear
from meristem.nn.narrow import without_trunk
from meristem.nn.trunk import trunk_of

M = TypeVar("M", bound=eqx.Module)


@overload
def compact(model: Network | Body | CompactNetwork) -> CompactNetwork: ...
@overload
def compact(model: M) -> M: ...
def compact(model: Any) -> Any:
    """The same function with nothing in it that does not live. A host function: it looks at the values of the gates.

    Outputs agree to rounding: within 1e-5 of the largest output in float32, 1e-12 in float64; on a GPU under
    `jax.default_matmul_precision("highest")`, without which it rounds more than that in either network. In a model of one's own
    the compact bodies are called as the bodies were; `priced` gives them a price of 0.

    >>> import jax, jax.numpy as jnp
    >>> from meristem.nn import Network
    >>> network = Network.create("tunnel", n_in=2, n_out=1, width=10, depth=10, key=jax.random.key(0))
    >>> small = compact(network)                                                  # all gates are 0: an affine map
    >>> small.layers[0].weight.shape
    (1, 2)
    >>> bool(jnp.allclose(small(jnp.ones(2)), network(jnp.ones(2)), rtol=1e-5))
    True
    >>> compact(network.body).layers
    ()
    """
    if isinstance(model, CompactNetwork):
        return model
    if not any(map(_is_compactable, jax.tree.leaves(model, is_leaf=_is_compactable))):
        raise ValueError(
            f"compact() takes a Network, a body or a model that holds some, got a {type(model).__name__} without any; "
            "make one with Network.create(…)."
        )
    return jax.tree.map(_compacted, model, is_leaf=_is_compactable)


def n_parameters(model: Any) -> int:
    """How many numbers the compact form of a network, a body or a model stores: weights, biases, gates and shares.

    >>> network = Network.create("tunnel", n_in=2, n_out=1, depth=10, key=jax.random.key(0))
    >>> n_parameters(network), n_parameters(network.body)
    (3, 0)
    """
    return n_floats(compact(model))


def _is_compactable(node: Any) -> bool:
    return isinstance(node, (Network, Body))


def _compacted(node: Any) -> Any:
    if isinstance(node, Network):
        return _network(node)
    return _body(node) if isinstance(node, Body) else node


def _network(network: Network) -> CompactNetwork:
    check_concrete("compact()", network)
    dtype, picked = network.dtype, []
    if trunk_of(network.body) is not None:
        network, _ = without_trunk(network)
    if network.features is not None:
        (n_in,) = network.input_shape
        network, rows = without_features(network)
        picked = [Pick(tuple(rows.tolist()), n_in)]
    return _stored([*picked, *join(lower(network.body), end_weights(network))], dtype)


def _body(body: Body) -> CompactNetwork:
    check_values("compact()", body)
    if trunk_of(body) is not None:
        return _of_trunk(body)
    dtypes = [leaf.dtype for leaf in jax.tree.leaves(body) if eqx.is_inexact_array(leaf)]
    return _stored([plainer(layer) for layer in lower(body)], dtypes[0] if dtypes else jnp.result_type(float))


def _of_trunk(body: Any) -> CompactNetwork:
    """Of a body whose width was learned: what enters is cut to the open dimensions, what comes out is put in its places."""
    gates = np.asarray(body.trunk.value, np.float64)
    dtype = body.trunk.value.dtype
    around = Network(Linear(1, len(gates), key=jax.random.key(0)), body, Linear(len(gates), 1, key=jax.random.key(0)))
    small, dims = without_trunk(around)
    back = np.zeros((len(gates), len(dims)))
    back[dims, np.arange(len(dims))] = gates[dims]
    layers = [plainer(layer) for layer in lower(small.body)]
    return _stored([Pick(tuple(dims.tolist()), len(gates)), *layers, Affine(back, None)], dtype)


def _stored(layers: list[Layer], dtype: Any) -> CompactNetwork:
    """On the device, in the precision that the model has."""
    return CompactNetwork(jax.device_put(jax.tree.map(lambda a: a.astype(dtype), tuple(layers))))
