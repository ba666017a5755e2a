"""Activations by name. A name hashes, prints, saves and compares; a lambda does none of these."""

from collections.abc import Callable

import jax
from jaxtyping import Array, Float

from meristem.check import unknown

ACTIVATIONS: dict[str, Callable[[Float[Array, "..."]], Float[Array, "..."]]] = {
    "relu": jax.nn.relu,
    "tanh": jax.numpy.tanh,
    "sigmoid": jax.nn.sigmoid,
    "softplus": jax.nn.softplus,
    "gelu": jax.nn.gelu,
    "silu": jax.nn.silu,
    "elu": jax.nn.elu,
}


def check_activation(name: str) -> str:
    """The name itself, if it is one of ours."""
    if name not in ACTIVATIONS:
        raise unknown("activation", name, list(ACTIVATIONS))
    return name
