"""Activations by name. A name hashes, prints, saves and compares; a lambda does none of these."""

import difflib
from collections.abc import Callable

import jax
from jaxtyping import Array, Float

ACTIVATIONS: dict[str, Callable[[Float[Array, "..."]], Float[Array, "..."]]] = {
    "relu": jax.nn.relu,
    "tanh": jax.numpy.tanh,
    "sigmoid": jax.nn.sigmoid,
    "softplus": jax.nn.softplus,
    "gelu": jax.nn.gelu,
    "silu": jax.nn.silu,
    "elu": jax.nn.elu,
}


def unknown(what: str, got: object, known: list[str]) -> ValueError:
    """An error for a name outside a list, with a guess at what was meant."""
    guess = difflib.get_close_matches(str(got), known, n=1)
    hint = f" Did you mean {guess[0]!r}?" if guess else ""
    return ValueError(f"{what}={got!r} is not known.{hint} Choose one of: {', '.join(known)}.")


def check_activation(name: str) -> str:
    """The name itself, if it is one of ours."""
    if name not in ACTIVATIONS:
        raise unknown("activation", name, list(ACTIVATIONS))
    return name
