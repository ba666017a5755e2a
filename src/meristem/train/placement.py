"""Where the members of a population train: in this process, or on the workers of an executor.

    with on_workers(executor): fit(…)       all populations inside are trained by its workers; None: here

A *trainer* has the signature of `train_alone` (loop.py), and an argument `together`. It is a context variable, as the
checkpoint store is (saving.py), so that no function in between has to pass it on. Whoever owns a loop over members (`fit`,
paths/halving.py) asks `trainer_of(together)`. The package that makes a trainer of an executor, `workers`, stands above this
one, needs an extra (files), and is looked up by its name where an executor is given.
"""

import pkgutil
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Any

from meristem.check import short, unknown
from meristem.train.run import Run

Trainer = Callable[..., dict[int, Run]]
TRAINER: ContextVar[Trainer | None] = ContextVar("trainer", default=None)
NAMES = ["processes", "ray"]
WORKERS = "meristem.workers.executors:connected"


def check_executor(executor: Any, address: str | None = None) -> None:
    """Raise ValueError for what is no executor."""
    if address is not None and executor != "ray":
        raise ValueError(f"address={address!r} is for executor='ray' alone; leave it out, or give that.")
    if isinstance(executor, str) and executor not in NAMES:
        raise unknown("executor", executor, NAMES)
    if executor is not None and not isinstance(executor, str) and not callable(getattr(executor, "submit", None)):
        raise ValueError(f"executor={short(executor)} must be 'processes', 'ray', or an object with submit.")


def on_workers(executor: Any = None, address: str | None = None) -> AbstractContextManager[Any]:
    """Return a context in which populations train on the workers of an executor; where that is None, as outside of it.

    executor    an object with `submit`, such as a ProcessPoolExecutor, Dask's `client.get_executor()` or a `RayExecutor`;
                "processes": as many new processes as there are cores; or "ray": the cluster at `address`, else at $RAY_ADDRESS,
                else one on this machine

    ValueError for anything else, and for a cluster that cannot be reached.
    """
    check_executor(executor, address)
    if executor is None:
        return nullcontext()
    context: AbstractContextManager[Any] = pkgutil.resolve_name(WORKERS)(executor, address)
    return context
