"""compact(): the same function with nothing in it that does not live; of a network, of a body, or of a model with bodies in it.

    a Network     a `CompactNetwork`: the body's layers, joined with embedding and head (nn/compaction.py)
    a body        a `CompactNetwork` [width] → [width] of its layers alone; a body that copies its input has none
    a model       of one's own: the same model, each body or Network in it replaced by its compact form

Exact by construction: sums are taken in another order, so outputs agree to rounding, not to the bit.
"""

from typing import Any, TypeVar, overload

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from meristem.layers.compact_network import CompactNetwork, n_floats
from meristem.nn import Body, Network
from meristem.nn.compaction import compact_body, compact_network

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
        return compact_network(node)
    return compact_body(node) if isinstance(node, Body) else node


def check_samples(x: Any, network: Network) -> Float[Array, "n in ..."]:
    """Return the samples x as the network takes them; ValueError where their shape is another."""
    sample, shape = network.input_shape, np.shape(x)
    if shape[1:] != sample or not len(shape) or shape[0] == 0:
        features = ", ".join(map(str, sample))
        raise ValueError(f"x has shape {shape}; it must be [samples, {features}] with at least one sample.")
    return jnp.asarray(x, network.dtype)


def outputs(network: Any, x: Float[Array, "n in ..."]) -> np.ndarray:
    """Return the outputs of all samples in full precision: by default a GPU rounds factors to 10 bits."""
    with jax.default_matmul_precision("highest"):
        return np.asarray(jax.jit(jax.vmap(network))(x))
