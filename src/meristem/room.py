"""Room for more compiled programs: a process that has compiled too many forgets them, before the system ends it.

    make_room()        before something is compiled that may be large; `fit` and the estimators call it

On a CPU each compiled program is hundreds of memory maps, a tree's a thousand, and Linux allows a process 65,530 of them
(vm.max_map_count). One more, and the compiler aborts the whole process: seven tables of different shapes, searched and fitted,
were enough. From half of that on, what was compiled is forgotten; what is needed again is read from the disk (cache.py) in
tenths of a second.

Imports nothing of meristem.
"""

import gc
from functools import lru_cache
from pathlib import Path

import jax

SHARE = 0.5  # of what the system allows


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
