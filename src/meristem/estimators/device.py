"""Where training runs: `None` is JAX's own choice, else "cpu", "gpu", "gpu:1", …"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax

from meristem.check import unknown


@contextmanager
def on(name: Any) -> Iterator[None]:
    """Inside, what is computed is computed there.

    >>> with on("cpu"):
    ...     jax.numpy.ones(2).devices() == {jax.devices("cpu")[0]}
    True
    """
    if name is None:
        yield
        return
    with jax.default_device(found(name)):
        yield


def found(name: Any) -> jax.Device:
    """The device of that name, or a ValueError of one line."""
    platform, _, place = name.partition(":") if isinstance(name, str) else ("", "", "")
    try:
        if platform:
            return jax.devices(platform)[int(place or 0)]
    except (RuntimeError, ValueError, IndexError):
        pass
    if platform in ("gpu", "cuda", "rocm", "tpu") and not place:
        raise ValueError(f"device={name!r}: JAX sees none here, only {', '.join(known())}; install JAX for it, or device=None.")
    raise unknown("device", name, known())


def known() -> list[str]:
    """The names of the devices there are: the default platform's, and the CPU's."""
    every = {f"{d.platform}:{i}": None for devices in (jax.devices(), jax.devices("cpu")) for i, d in enumerate(devices)}
    return [*dict.fromkeys(name.partition(":")[0] for name in every), *every]
