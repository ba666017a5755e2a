"""The samples on which networks are compared, and what networks make of them."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from meristem.nn import Network


def check_samples(x: Any, network: Network) -> Float[Array, "n in"]:
    """The samples x as the network takes them, or a ValueError of one line."""
    (n_in,), shape = network.input_shape, np.shape(x)
    if len(shape) != 2 or shape[0] == 0 or shape[1] != n_in:
        raise ValueError(f"x has shape {shape}; it must be [samples, {n_in}] with at least one sample.")
    return jnp.asarray(x, network.dtype)


def outputs(network: Any, x: Float[Array, "n in"]) -> np.ndarray:
    """Those of all samples, in full precision: by default a GPU rounds factors to 10 bits, and that would hide the rest."""
    with jax.default_matmul_precision("highest"):
        return np.asarray(jax.jit(jax.vmap(network))(x))
