"""Refuse to compute in a process that was forked after JAX had started, where it would wait forever.

    check_fork()        before anything is computed with JAX; RuntimeError of one line in such a process

A fork copies none of JAX's threads, and their locks stay locked. joblib's backend "multiprocessing" and multiprocessing's
"fork" make such processes; "loky", joblib's default, and "spawn" do not. Forking before JAX starts is safe; `predict` needs
only NumPy and works anywhere.
"""

import os
import sys

_is_refused = False  # of this process


def _after_fork() -> None:
    global _is_refused
    bridge = sys.modules.get("jax._src.xla_bridge")
    _is_refused = _is_refused or bool(getattr(bridge, "_backends", None))  # with a backend, JAX has threads


def check_fork() -> None:
    """Raise RuntimeError in a process that was forked after JAX had started."""
    if _is_refused:
        raise RuntimeError(
            "This process was forked after JAX had started, and would wait forever: train and load in spawned processes, as "
            'joblib\'s "loky" or multiprocessing.get_context("spawn") make them.'
        )


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
