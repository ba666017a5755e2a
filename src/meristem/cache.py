"""Compiled programs, kept on disk, so that the next process finds them: seconds per shape become tenths.

    keep_programs()        before something is compiled; estimators and the command line call it, importing meristem does not

The folder is $XDG_CACHE_HOME/meristem/jax, else ~/.cache/meristem/jax, or the one that the environment variable MERISTEM_CACHE
names; MERISTEM_CACHE=off keeps nothing. Who has set JAX's own `jax_compilation_cache_dir` (JAX_COMPILATION_CACHE_DIR) has that,
and nothing is changed. Every kind of processor has a folder of its own in it: where several machines share a home, a program
that was compiled for another may crash. Each holds at most 1 GiB: what was used longest ago goes when a process begins (JAX's
own limit would need another package, and a lock at every read). What cannot be read or written is as good as not there, and
the folder may be deleted at any time.

Imports nothing of meristem.
"""

import hashlib
import os
import platform
import re
import warnings
from functools import lru_cache
from pathlib import Path

import jax

MOST_BYTES = 2**30
LEAST_SECONDS = 0.3  # what compiles faster is not worth a file
JAX_LEAST_SECONDS = 1.0  # JAX's own opinion, where a person has none
VARIABLE = "MERISTEM_CACHE"
OFF = ["off", "0", "no", "false"]
UNREADABLE = r"Error (reading|writing) persistent compilation cache entry"


def keep_programs() -> Path | None:
    """From now on compiled programs are kept; the folder that they are kept in, if it is ours.

    A second call changes nothing. A folder that cannot be written is not used.
    """
    own = folder()
    now = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]  # made when jax is imported
    if own is None or (now and now != str(own)):
        return None
    if not now:
        if not _is_writable(own):
            return None
        drop_oldest(own, MOST_BYTES)
        jax.config.update("jax_compilation_cache_dir", str(own))
        if jax.config.jax_persistent_cache_min_compile_time_secs == JAX_LEAST_SECONDS:  # type: ignore[attr-defined]
            jax.config.update("jax_persistent_cache_min_compile_time_secs", LEAST_SECONDS)
    _ignore_unreadable()
    return own


def folder() -> Path | None:
    """Where programs are kept; None where they are not."""
    wanted = os.environ.get(VARIABLE, "").strip()
    if wanted.lower() in OFF:
        return None
    try:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        top = Path(wanted).expanduser() if wanted else home / "meristem" / "jax"
        return top.absolute() / processor()
    except (RuntimeError, OSError):  # nobody's home, or a folder that is gone
        return None


@lru_cache
def processor() -> str:
    """A short name for the kind of processor: programs of one run on the other only if it is the same."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        said = sorted({line for line in lines if re.match(r"model name|flags|Features|CPU (implementer|part)", line)})
    except OSError:  # not Linux
        said = [platform.processor()]
    return f"{platform.machine()}-{hashlib.sha256(repr(said).encode()).hexdigest()[:8]}"


def drop_oldest(place: Path, most_bytes: int) -> None:
    """Delete the files that were used longest ago, until the others have at most so many bytes together.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     for second, name in enumerate(["old", "new"]):
    ...         _ = (Path(place) / name).write_bytes(bytes(10))
    ...         os.utime(Path(place) / name, (second, second))
    ...     drop_oldest(Path(place), 15)
    ...     [file.name for file in Path(place).iterdir()]
    ['new']
    """
    found = []
    for file in place.iterdir():
        try:
            about = file.stat()
        except OSError:  # another process has just deleted it
            continue
        if file.is_file():
            found.append((max(about.st_atime, about.st_mtime), about.st_size, file))
    total = sum(size for _, size, _ in found)
    for _, size, file in sorted(found, key=lambda one: one[0]):
        if total <= most_bytes:
            break
        total -= size
        try:
            file.unlink()
        except OSError:
            continue


def _is_writable(place: Path) -> bool:
    """Make the folder, for its owner alone: who can write programs there can run them."""
    try:
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        return False
    return os.access(place, os.R_OK | os.W_OK | os.X_OK)


def _ignore_unreadable() -> None:
    """JAX compiles what it cannot read, and warns; there is nothing that a person should do about it."""
    # Adding the filter again would make every warning that was shown once appear once more.
    if not any(getattr(one[1], "pattern", None) == UNREADABLE for one in warnings.filters):
        warnings.filterwarnings("ignore", message=UNREADABLE)
