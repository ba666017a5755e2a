"""Compiled programs: cached on disk for the next process, and dropped from memory before the system's limit is reached.

    keep_programs()         before compiling; estimators and the command line call it, importing meristem does not
    clear_full_caches()     before compiling something that may be large; `fit` and the searches call it

The disk cache turns seconds per shape into tenths. Its folder is $MERISTEM_CACHE, else $XDG_CACHE_HOME/meristem/jax, else
~/.cache/meristem/jax; MERISTEM_CACHE=off disables it, and a cache that was set for JAX (JAX_COMPILATION_CACHE_DIR) is left
alone. Each kind of processor has its own subfolder, since machines may share a home folder and a program of another processor
may crash. A subfolder holds at most 1 GiB: the least recently used files are deleted when a process starts (JAX's own limit
needs another package, and a lock for each read). The folder may be deleted at any time.

In memory, a program on a CPU takes hundreds of memory maps, a tree's a thousand, and Linux allows a process 65,530
(vm.max_map_count), beyond which the compiler aborts the process.
"""

import gc
import hashlib
import math
import os
import platform
import re
import time
import warnings
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import jax

MOST_BYTES = 2**30
LEAST_SECONDS = 0.1  # programs that compile faster are not saved
JAX_LEAST_SECONDS = 1.0  # JAX's default for it
DISABLED = ["off", "0", "no", "false"]
UNREADABLE = r"Error (reading|writing) persistent compilation cache entry"
MOST_MAPS_SHARE = 0.5  # of the memory maps that the system allows
MOST_TIME_SHARE = 0.05  # for counting the maps: 2 µs each
_next_count = 0.0  # on the monotonic clock


def keep_programs() -> Path | None:
    """Cache compiled programs on disk from now on; return the folder, None where it is disabled or cannot be written to."""
    own = folder()
    current = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]  # defined when jax is imported
    if own is None or (current and current != str(own)):
        return None
    if not current:
        with suppress(OSError):
            own.mkdir(parents=True, exist_ok=True, mode=0o700)  # for its owner only, since programs from it are executed
        if not os.path.isdir(own) or not os.access(own, os.R_OK | os.W_OK | os.X_OK):
            return None
        drop_oldest(own, MOST_BYTES)
        jax.config.update("jax_compilation_cache_dir", str(own))
        if jax.config.jax_persistent_cache_min_compile_time_secs == JAX_LEAST_SECONDS:  # type: ignore[attr-defined]
            jax.config.update("jax_persistent_cache_min_compile_time_secs", LEAST_SECONDS)
    # JAX recompiles what it cannot read; a second filter would make every warning appear once more.
    if not any(getattr(entry[1], "pattern", None) == UNREADABLE for entry in warnings.filters):
        warnings.filterwarnings("ignore", message=UNREADABLE)
    return own


def folder() -> Path | None:
    """Return the folder of the disk cache; None where it is disabled."""
    setting = os.environ.get("MERISTEM_CACHE", "").strip()
    if setting.lower() in DISABLED:
        return None
    try:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        top = Path(setting).expanduser() if setting else home / "meristem" / "jax"
        return top.absolute() / processor()
    except (RuntimeError, OSError):  # no home folder, or the current folder was deleted
        return None


@lru_cache
def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        features = sorted({line for line in lines if re.match(r"model name|flags|Features|CPU (implementer|part)", line)})
    except OSError:  # not Linux
        features = [platform.processor()]
    return f"{platform.machine()}-{hashlib.sha256(repr(features).encode()).hexdigest()[:8]}"


def drop_oldest(path: Path, most_bytes: int) -> None:
    """Delete the least recently used files of a folder until the others have at most `most_bytes` in total."""
    entries = []
    for file in filter(Path.is_file, path.iterdir()):
        with suppress(OSError):  # another process has just deleted it
            stat = file.stat()
            entries.append((max(stat.st_atime, stat.st_mtime), stat.st_size, file))
    total = 0
    for _, size, file in sorted(entries, reverse=True):
        total += size
        if total > most_bytes:
            with suppress(OSError):
                file.unlink()


def clear_full_caches() -> bool:
    """Clear JAX's in-memory caches if the process has too many memory maps; return whether it did.

    What compiled thousands of programs has tens of thousands of maps, and counting them takes longer than a short training:
    after a count there is none until twenty times as long has passed, in which few programs can be compiled.
    """
    global _next_count
    begun = time.monotonic()
    if begun < _next_count:
        return False
    used, allowed = memory_maps()
    _next_count = time.monotonic() + (time.monotonic() - begun) / MOST_TIME_SHARE
    if used < MOST_MAPS_SHARE * allowed:
        return False
    jax.clear_caches()
    gc.collect()
    return True


def memory_maps() -> tuple[int, float]:
    """Return how many memory maps this process has, and how many it may have: 0 of ∞ where the system does not say."""
    try:
        with open("/proc/self/maps", "rb") as lines:
            return sum(1 for _ in lines), int(Path("/proc/sys/vm/max_map_count").read_text())
    except (OSError, ValueError):  # not Linux
        return 0, math.inf
