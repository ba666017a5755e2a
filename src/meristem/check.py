"""Arguments that a person gives: what does not fit is a ValueError of one line that says what to do.

Imports nothing of meristem; everything may import it.
"""

import difflib
import math
import operator
from collections.abc import Callable
from numbers import Real
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

MOST = 2**31 - 1  # of any size: what 32 bits count
ROOM = 80  # characters of a value in a message


def unknown(what: str, got: object, known: list[str], most: int = 10_000) -> ValueError:
    """An error for a name outside a list, with a guess at what was meant; at most so many characters of the list."""
    guess = difflib.get_close_matches(str(got), known, n=1)
    hint = f" Did you mean {guess[0]!r}?" if guess else ""
    return ValueError(f"{what}={short(got)} is not known.{hint} Choose one of: {cut(', '.join(known), most)}.")


def check_size(name: str, value: Any, least: int = 1, most: int = MOST) -> int:
    """A size given by a person: an integer of at least `least` and at most `most`."""
    try:
        size = least - 1 if isinstance(value, bool) else operator.index(value)
    except TypeError:  # an array of several, too
        size = least - 1
    if size < least:
        raise ValueError(f"{name}={short(value)} must be an integer of at least {least}.")
    if size > most:
        raise ValueError(f"{name}={short(value)} must be at most {most:,}.")
    return size


def check_number(name: str, value: Any, wanted: str, fits: Callable[[float], bool]) -> None:
    """A number given by a person, in its range; in single precision, too, in which networks compute.

    >>> check_number("learning_rate", 1e-50, "above 0", lambda v: v > 0)
    Traceback (most recent call last):
    ValueError: learning_rate=1e-50 must be a number above 0; single precision holds 1e-38 to 3e38.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError(f"{name}={short(value)} must be a number {wanted}.")
    try:
        given = float(value)
    except OverflowError:
        given = math.inf
    with np.errstate(over="ignore", under="ignore"):
        rounded = float(np.float32(given))
    if not fits(given):
        raise ValueError(f"{name}={short(value)} must be a number {wanted}.")
    if not fits(rounded) or (math.isinf(rounded) and math.isfinite(given)):
        raise ValueError(f"{name}={short(value)} must be a number {wanted}; single precision holds 1e-38 to 3e38.")


def short(value: Any) -> str:
    """What was given, as Python writes it, but no longer than a line has room for.

    >>> short(10**400)[-13:], short(10**9999)
    ('… (1329 bits)', 'an integer of 33216 bits')
    """
    try:
        text = repr(value).replace("\n", " ")
    except ValueError:  # Python writes no integer of so many digits
        return f"an integer of {value.bit_length()} bits"
    if len(text) <= ROOM:
        return text
    return f"{text[:ROOM]}…{f' ({value.bit_length()} bits)' if isinstance(value, int) else ''}"


def many(n: int, thing: str, things: str | None = None) -> str:
    """So many of a thing.

    >>> many(1, "row"), many(2000, "row"), many(2, "class", "classes")
    ('1 row', '2,000 rows', '2 classes')
    """
    return f"{n:,} {thing if n == 1 else things or thing + 's'}"


def cut(text: str, longest: int) -> str:
    """The beginning of a text that is too long.

    >>> cut("a long story", 8)
    'a long …'
    """
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()[: longest - 2]} …"


def as_key(name: str, key: Any) -> Array:
    """A random key or an array of them; keys of the old style (`jax.random.PRNGKey`) are wrapped."""
    if isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return key
    if isinstance(key, jax.Array) and key.dtype == jnp.uint32 and key.ndim > 0:
        return jax.random.wrap_key_data(key)
    raise ValueError(f"{name}={key!r} is not a random key; use jax.random.key(0), or jax.random.split(key, n) for n of them.")
