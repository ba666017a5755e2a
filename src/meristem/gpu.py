"""An XLA setting that makes results on a GPU reproducible to the bit.

By default XLA may choose kernels by timing them, and sum in the order in which threads arrive. The setting is the process's, so
the library never changes it on import: the command line does, and users may.
"""

import os

OPTION = "--xla_gpu_deterministic_ops"


def be_repeatable() -> bool:
    """Use deterministic kernels only. Call it before JAX computes anything.

    Returns False, and changes nothing, where XLA_FLAGS already sets the option.

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
