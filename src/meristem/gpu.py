"""An XLA setting that makes results on a GPU reproducible to the bit: changed by a call, never on import.

By default XLA may choose kernels by timing them, and sum in the order in which threads arrive.
"""

import os

OPTION = "--xla_gpu_deterministic_ops"


def be_repeatable() -> bool:
    """Use deterministic kernels only, if called before JAX computes anything; return False if XLA_FLAGS has the option already.

    >>> import os
    >>> before = os.environ.pop("XLA_FLAGS", None)
    >>> be_repeatable(), be_repeatable()
    (True, False)
    >>> _ = os.environ.pop("XLA_FLAGS") if before is None else os.environ.update(XLA_FLAGS=before)
    """
    flags = os.environ.get("XLA_FLAGS", "")
    if OPTION in flags:
        return False
    os.environ["XLA_FLAGS"] = f"{flags} {OPTION}=true".strip()
    return True
