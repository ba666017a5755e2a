"""An XLA setting that makes small networks on a CPU about 1.6 times as fast: changed by a call, never on import.

XLA's CPU runtime dispatches each operation of a loop separately, which takes longer than the operation itself for layers of ten
units. Loops below a size, tiny by default, are compiled into one kernel instead.
"""

import os

OPTION = "xla_cpu_small_while_loop_byte_threshold"


def fuse_small_loops(limit: int = 1_000_000) -> bool:
    """Compile loops that touch less than `limit` bytes a step into one kernel. Call it before JAX computes anything.

    Returns False, and changes nothing, where XLA_FLAGS already sets such options. Some programs with larger matrix products
    do not compile with a large limit ("Fusion kind not implemented"): then leave it out.

    >>> import os
    >>> before = os.environ.pop("XLA_FLAGS", None)
    >>> fuse_small_loops(), fuse_small_loops()
    (True, False)
    >>> _ = os.environ.pop("XLA_FLAGS") if before is None else os.environ.update(XLA_FLAGS=before)
    """
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_backend_extra_options" in flags:
        return False
    os.environ["XLA_FLAGS"] = f"{flags} --xla_backend_extra_options={OPTION}={limit}".strip()
    return True
