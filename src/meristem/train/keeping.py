"""Who keeps what a training has come to: a keeper that is set around it, as a logger is, and that `go_on` asks and tells.

    with kept_by(keeper): fit(…)               everything that is trained inside, in threads too

A keeper knows a training by what it starts from, its data and its goal: with the same three it gives back the run that it kept,
and the training goes on from there, to the same bits. Nothing is passed through the functions in between: they need not know.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ParamSpec, Protocol, TypeVar, runtime_checkable

from meristem.train.run import Run
from meristem.train.samples import Prepared

P = ParamSpec("P")
R = TypeVar("R")
Keep = Callable[[Run], None]  # called after each epoch


@runtime_checkable
class Keeper(Protocol):
    """What `go_on` asks of one."""

    def found(self, run: Run, prepared: Prepared, goal: tuple[Any, ...]) -> tuple[Run, Keep]:
        """Where the training from this run to this goal stands, and whom to tell of its epochs."""


_KEEPER: ContextVar[Keeper | None] = ContextVar("keeper", default=None)


@contextmanager
def kept_by(keeper: Keeper | None) -> Iterator[None]:
    """Inside, this keeper is asked and told; None: nobody is."""
    before = _KEEPER.set(keeper)
    try:
        yield
    finally:
        _KEEPER.reset(before)


def kept(run: Run, prepared: Prepared, goal: tuple[Any, ...]) -> tuple[Run, Keep]:
    """What the present keeper has of a training; without one, the run as it is."""
    keeper = _KEEPER.get()
    return (run, lambda run: None) if keeper is None else keeper.found(run, prepared, goal)


def carried(function: Callable[P, R]) -> Callable[P, R]:
    """A function that another thread calls with the keeper of this one."""
    keeper = _KEEPER.get()

    def call(*args: P.args, **options: P.kwargs) -> R:
        with kept_by(keeper):
            return function(*args, **options)

    return call
