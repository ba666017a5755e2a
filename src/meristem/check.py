"""Arguments that a person gives: what does not fit is a ValueError of one line that says what to do.

Imports nothing of meristem; everything may import it.
"""

import difflib
from collections.abc import Callable
from numbers import Real
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array


def unknown(what: str, got: object, known: list[str]) -> ValueError:
    """An error for a name outside a list, with a guess at what was meant."""
    guess = difflib.get_close_matches(str(got), known, n=1)
    hint = f" Did you mean {guess[0]!r}?" if guess else ""
    return ValueError(f"{what}={got!r} is not known.{hint} Choose one of: {', '.join(known)}.")


def check_size(name: str, value: Any, least: int = 1) -> int:
    """A size given by a person: an integer of at least `least`."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or value.__index__() < least:
        raise ValueError(f"{name}={value!r} must be an integer of at least {least}.")
    return value.__index__()


def check_number(name: str, value: Any, wanted: str, fits: Callable[[float], bool]) -> None:
    """A number given by a person, in its range."""
    if isinstance(value, bool) or not isinstance(value, Real) or not fits(float(value)):
        raise ValueError(f"{name}={value!r} must be a number {wanted}.")


def as_key(name: str, key: Any) -> Array:
    """A random key or an array of them; keys of the old style (`jax.random.PRNGKey`) are wrapped."""
    if isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return key
    if isinstance(key, jax.Array) and key.dtype == jnp.uint32 and key.ndim > 0:
        return jax.random.wrap_key_data(key)
    raise ValueError(f"{name}={key!r} is not a random key; use jax.random.key(0), or jax.random.split(key, n) for n of them.")
