"""The ambient checkpoint store: set around trainings, as a logger is; `train_until` restores from it and records to it.

    with checkpoint_store(store): fit(…)        all that is trained inside, also in the threads of `train_alone`

A store identifies a training by its start, its data and its goal. Where it holds a checkpoint of the same three, the training
continues from there, to the same bits. It is a context variable, so that no function in between has to pass it on.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, runtime_checkable

from meristem.train.run import Run
from meristem.train.samples import Prepared

Record = Callable[[Run], None]  # called after each epoch


@runtime_checkable
class CheckpointStore(Protocol):
    """What `train_until` asks of a store."""

    def restore(self, run: Run, prepared: Prepared, goal: tuple[Any, ...]) -> tuple[Run, Record]:
        """Return the newest checkpoint of the training from this run to this goal, or the run; and what records its epochs."""


_STORE: ContextVar[CheckpointStore | None] = ContextVar("checkpoint_store", default=None)


@contextmanager
def checkpoint_store(store: CheckpointStore | None) -> Iterator[None]:
    """Use this store inside; None: no store."""
    token = _STORE.set(store)
    try:
        yield
    finally:
        _STORE.reset(token)


def restore(run: Run, prepared: Prepared, goal: tuple[Any, ...]) -> tuple[Run, Record]:
    """Ask the present store; without one, return the run as it is and a function that does nothing."""
    store = _STORE.get()
    return (run, lambda run: None) if store is None else store.restore(run, prepared, goal)
