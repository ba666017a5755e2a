"""A forked child of a process in which JAX has started: refused at once, for it would wait forever.

    check_fork()        before anything is computed with JAX; a RuntimeError of one line in such a child

JAX has threads, and a fork copies none of them: what they held stays locked. `joblib` with the backend "multiprocessing" and
`multiprocessing` with "fork" make such children; "loky", joblib's own choice, and "spawn" do not. A process that forks before
JAX has started has nothing to fear, and `predict`, which needs NumPy alone, works in any child.

Imports nothing of meristem.
"""

import os
import sys

_is_refused = False  # of this process


def _after_fork() -> None:
    global _is_refused  # what a process is, is global
    _is_refused = _is_refused or has_started()


def has_started() -> bool:
    """Whether JAX has a backend, and with it threads."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    return bool(getattr(bridge, "_backends", None))


def check_fork() -> None:
    """Raise RuntimeError in a child that was forked after JAX had started."""
    if _is_refused:
        raise RuntimeError(
            "This process was forked after JAX had started, and would wait forever: train and load in processes that are "
            'spawned, as joblib\'s "loky" or multiprocessing.get_context("spawn") make them.'
        )


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
