"""A setting of XLA with which a GPU repeats itself to the bit.

By default XLA may pick kernels by timing them, and sum in whatever order threads arrive. The setting is the process's, so the
library never touches it: the command line does, and a person may.
"""

import os

OPTION = "--xla_gpu_deterministic_ops"


def be_repeatable() -> bool:
    """Only kernels that give the same bits each time. Call it before JAX computes anything.

    Leaves XLA_FLAGS alone, and says False, where it already sets the option.

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
