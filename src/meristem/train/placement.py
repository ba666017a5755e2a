"""Where the members of a population train: in this process, or on the workers of an executor.

    with on_workers(executor): fit(…)       all populations inside are trained by its workers; None: here

A *trainer* has the signature of `train_alone` (loop.py), and an argument `together`. It is a context variable, as the checkpoint
store is (saving.py), so that no function in between has to pass it on. Whoever owns a loop over members (`fit`, paths/halving.py)
asks `trainer_of(together)`. The package that makes a trainer of an executor, `workers`, stands above this one, needs an extra
(files), and is looked up by its name where an executor is given.
"""

import pkgutil
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Any

from meristem.train.run import Run

Trainer = Callable[..., dict[int, Run]]
TRAINER: ContextVar[Trainer | None] = ContextVar("trainer", default=None)
WORKERS = "meristem.workers.executors:connected"


def on_workers(executor: Any = None, address: str | None = None) -> AbstractContextManager[Any]:
    """Return a context in which populations train on the workers of an executor; where that is None, as outside of it.

    executor    an object with `submit`, such as a ProcessPoolExecutor, Dask's `client.get_executor()` or a `RayExecutor`;
                "processes": as many new processes as there are cores; or "ray": the cluster at `address`, else at $RAY_ADDRESS,
                else one on this machine

    ValueError for anything else, and for a cluster that cannot be reached.
    """
    if executor is None and address is None:
        return nullcontext()
    context: AbstractContextManager[Any] = pkgutil.resolve_name(WORKERS)(executor, address)
    return context
