"""Memory: what no machine can hold is refused before anything is made of it.

    check_room((10**9, 64, 64))        a ValueError of one line
    with shapes_alone(): …             inside, networks are only described, and nothing is refused

Imports nothing of meristem; nn and files import it.
"""

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path

import jax

KEPT = 4  # times the weights, at least, in a training: they, their gradient and the two moments of Adam
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # of a container
_IS_MADE: ContextVar[bool] = ContextVar("is made", default=True)


@contextmanager
def shapes_alone() -> Iterator[None]:
    """Inside, networks are only described: one that this machine could not train may still be read, and computed with."""
    before = _IS_MADE.set(False)
    try:
        yield
    finally:
        _IS_MADE.reset(before)


def check_room(shape: Sequence[int], *, bytes_each: int = 4) -> None:
    """Raise ValueError where the weights of such layers, with what training keeps of them, are more than the memory there is.

    >>> check_room((10**9, 64, 64))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: Layers of shape 1,000,000,000 × 64 × 64 need 65,536 GB to train, ... lower width, depth or max_leaves.
    """
    if not _IS_MADE.get():
        return
    there, needed = memory(), KEPT * bytes_each * math.prod(shape)
    if there is not None and needed > there:
        sizes = " × ".join(f"{size:,}" for size in shape)
        raise ValueError(
            f"Layers of shape {sizes} need {needed / 1e9:,.0f} GB to train, and there are {there / 1e9:,.0f}; lower width, "
            "depth or max_leaves."
        )


@lru_cache
def memory() -> int | None:
    """The bytes of memory that computing can have: the device's, else this machine's or this container's; None: nobody says."""
    on_device = (jax.local_devices()[0].memory_stats() or {}).get("bytes_limit")
    if on_device is not None:
        return int(on_device)
    found = []
    with suppress(AttributeError, ValueError, OSError):  # not Unix
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for place in LIMITS:
        with suppress(OSError, ValueError):  # not there, or "max"
            found.append(int(Path(place).read_text()))
    return min(found, default=None)
