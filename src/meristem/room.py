"""Room for more compiled programs: a process that has compiled too many forgets them, before the system ends it.

    make_room()        before something is compiled that may be large; `fit` and the estimators call it

On a CPU each compiled program is hundreds of memory maps, a tree's a thousand, and Linux allows a process 65,530 of them
(vm.max_map_count). One more, and the compiler aborts the whole process: seven tables of different shapes, searched and fitted,
were enough. From half of that on, what was compiled is forgotten; what is needed again is read from the disk (cache.py) in
tenths of a second.

And room for numbers: what no machine can hold is refused before anything is made of it.

    check_room((10**9, 64, 64))        a ValueError of one line

Imports nothing of meristem.
"""

import gc
import math
import os
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import jax

SHARE = 0.5  # of what the system allows
KEPT = 4  # times the weights, at least, in a training: they, their gradient and the two moments of Adam
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # of a container


def make_room() -> bool:
    """Forget all compiled programs if there is little room for more; whether that was so."""
    most = allowed()
    if most is None or used() < SHARE * most:
        return False
    jax.clear_caches()
    gc.collect()
    return True


def used() -> int:
    """The memory maps of this process."""
    try:
        with Path("/proc/self/maps").open("rb") as lines:
            return sum(1 for _ in lines)
    except OSError:  # not Linux
        return 0


@lru_cache
def allowed() -> int | None:
    """How many there may be; None where no one says."""
    try:
        return int(Path("/proc/sys/vm/max_map_count").read_text())
    except (OSError, ValueError):
        return None


def check_room(shape: Sequence[int], *, bytes_each: int = 4) -> None:
    """Raise ValueError where the weights of such layers, with what training keeps of them, are more than the memory there is.

    >>> check_room((10**9, 64, 64))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: Layers of shape 1,000,000,000 × 64 × 64 need 65,536 GB to train, ... lower width, depth or max_leaves.
    """
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
