"""The samples on which networks are compared, and what networks make of them."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from meristem.nn import Network


def check_samples(x: Any, network: Network) -> Float[Array, "n in ..."]:
    """The samples x as the network takes them, or a ValueError of one line."""
    sample, shape = network.input_shape, np.shape(x)
    if shape[1:] != sample or not len(shape) or shape[0] == 0:
        features = ", ".join(map(str, sample))
        raise ValueError(f"x has shape {shape}; it must be [samples, {features}] with at least one sample.")
    return jnp.asarray(x, network.dtype)


def outputs(network: Any, x: Float[Array, "n in ..."]) -> np.ndarray:
    """Those of all samples, in full precision: by default a GPU rounds factors to 10 bits, and that would hide the rest."""
    with jax.default_matmul_precision("highest"):
        return np.asarray(jax.jit(jax.vmap(network))(x))
