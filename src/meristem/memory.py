"""Memory limits: a network that cannot fit into memory is refused before it is allocated.

check_memory((10**9, 64, 64))      ValueError of one line
with shapes_alone(): …             inside, networks are only described, and nothing is refused
"""

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path

import jax

COPIES = 4  # of the weights in training, at least: weights, gradient and Adam's two moments
CONTAINER_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_IS_CHECKING: ContextVar[bool] = ContextVar("is checking", default=True)


@contextmanager
def shapes_alone() -> Iterator[None]:
    """Inside, nothing is refused: a network too large to train here can still be loaded and used."""
    before = _IS_CHECKING.set(False)
    try:
        yield
    finally:
        _IS_CHECKING.reset(before)


def check_memory(shape: Sequence[int], *, bytes_each: int = 4) -> None:
    """Raise ValueError where training weights of this shape needs more memory than there is.

    >>> check_memory((10**9, 64, 64))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: Layers of shape 1,000,000,000 × 64 × 64 need 65,536 GB to train, ... lower width, depth or max_leaves.
    """
    if not _IS_CHECKING.get():
        return
    available, needed = memory(), COPIES * bytes_each * math.prod(shape)
    if available is not None and needed > available:
        sizes = " × ".join(f"{size:,}" for size in shape)
        raise ValueError(
            f"Layers of shape {sizes} need {needed / 1e9:,.0f} GB to train, and there are {available / 1e9:,.0f}; lower width, "
            "depth or max_leaves."
        )


@lru_cache
def memory() -> int | None:
    """Return the bytes of memory of the device, else of this machine or container; None where unknown."""
    on_device = (jax.local_devices()[0].memory_stats() or {}).get("bytes_limit")
    if on_device is not None:
        return int(on_device)
    limits = []
    with suppress(AttributeError, ValueError, OSError):  # not Unix
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for path in CONTAINER_LIMITS:
        with suppress(OSError, ValueError):  # missing, or "max"
            limits.append(int(Path(path).read_text()))
    return min(limits, default=None)
