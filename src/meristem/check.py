"""Checks of users' arguments, and the texts of their messages.

`check_…` returns the valid value or raises a ValueError of one line that names the argument, its value and what to do.
"""

import difflib
import importlib.util
import math
import operator
from collections.abc import Callable
from numbers import Real
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

MOST = 2**31 - 1  # of any size: sizes are 32-bit integers
LONGEST_VALUE = 80  # characters of a value in a message


def unknown(name: str, value: object, choices: list[str], most: int = 10_000) -> ValueError:
    """Return the error for a value that is not among the choices, with the closest one and `most` characters of the list."""
    guess = difflib.get_close_matches(str(value), choices, n=1)
    hint = f" Did you mean {guess[0]!r}?" if guess else ""
    return ValueError(f"{name}={short(value)} is not known.{hint} Choose one of: {cut(', '.join(choices), most)}.")


def check_size(name: str, value: Any, least: int = 1, most: int = MOST) -> int:
    """Return an integer from `least` to `most`."""
    try:
        size = least - 1 if isinstance(value, bool) else operator.index(value)
    except TypeError:  # for arrays with several entries, too
        size = least - 1
    if size < least:
        raise ValueError(f"{name}={short(value)} must be an integer of at least {least}.")
    if size > most:
        raise ValueError(f"{name}={short(value)} must be at most {most:,}.")
    return size


def check_number(name: str, value: Any, range_text: str, is_valid: Callable[[float], bool]) -> None:
    """Raise ValueError unless the number is valid, also after rounding to single precision, in which networks compute.

    >>> check_number("learning_rate", 1e-50, "above 0", lambda v: v > 0)
    Traceback (most recent call last):
    ValueError: learning_rate=1e-50 must be a number above 0; single precision holds 1e-38 to 3e38.
    """
    try:
        number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else None
    except OverflowError:
        number = math.inf
    if number is None or not is_valid(number):
        raise ValueError(f"{name}={short(value)} must be a number {range_text}.")
    with np.errstate(over="ignore", under="ignore"):
        rounded = float(np.float32(number))
    if not is_valid(rounded) or (math.isinf(rounded) and math.isfinite(number)):
        raise ValueError(f"{name}={short(value)} must be a number {range_text}; single precision holds 1e-38 to 3e38.")


def short(value: Any) -> str:
    """Return the repr of a value, shortened to fit into a line.

    >>> short(10**400)[-13:], short(10**9999)
    ('… (1329 bits)', 'an integer of 33216 bits')
    """
    try:
        text = repr(value).replace("\n", " ")
    except ValueError:  # Python refuses to convert integers of so many digits
        return f"an integer of {value.bit_length()} bits"
    if len(text) <= LONGEST_VALUE:
        return text
    return f"{text[:LONGEST_VALUE]}…{f' ({value.bit_length()} bits)' if isinstance(value, int) else ''}"


def many(n: int, singular: str, plural: str | None = None) -> str:
    """Return a count with its noun, as in "2,000 rows"."""
    return f"{n:,} {singular if n == 1 else plural or singular + 's'}"


def cut(text: str, longest: int) -> str:
    """Return a text of at most `longest` characters, as in "a long …"."""
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()[: longest - 2]} …"


def as_key(name: str, key: Any) -> Array:
    """Return a random key or an array of them; keys of the old style (`jax.random.PRNGKey`) are wrapped."""
    if isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return key
    if isinstance(key, jax.Array) and key.dtype == jnp.uint32 and key.ndim > 0:
        return jax.random.wrap_key_data(key)
    raise ValueError(f"{name}={key!r} is not a random key; use jax.random.key(0), or jax.random.split(key, n) for n of them.")


def is_installed(package: str) -> bool:
    """Return whether a package can be imported; not where it is blocked, as by sys.modules["rich"] = None."""
    return importlib.util.find_spec(package) is not None
