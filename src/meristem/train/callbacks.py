"""Watchers of training: one protocol of callbacks for `fit`, studies and estimators.

A plain function will do: `f(info)`, or `f(member, info)` where there are many. Calls may come from several threads.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

from meristem.train.train_state import EpochInfo

Settings = Mapping[int, Mapping[str, float]]  # of members, by their number: penalty, l2, dropout, learning_rate, fold, seed


class LargerNetworks(NamedTuple):
    """Networks that may follow: how many times as large, how many times as long their programs compile, whether it is sure."""

    size: float
    compiling: float
    is_sure: bool = False


class Watcher:
    """A watcher that does nothing; override what you need.

    >>> class Printer(Watcher):
    ...     def epoch(self, member, info):
    ...         print(member, int(info.epoch), float(info.loss))
    """

    def begin(self, settings: Settings) -> None:
        """Called before members are trained, with the settings of each: {3: {"penalty": 0.003, "fold": 2}, …}."""

    def epoch(self, member: int, info: EpochInfo) -> bool | None:
        """Called after each epoch of each member, with its `EpochInfo` on the host; True stops the member."""

    def pulse(self, member: int, share: float) -> None:
        """Called within long epochs, with the completed share of the steps."""

    def leave(self, members: Sequence[int]) -> None:
        """Called when members leave a search for good, since their setting is clearly behind."""

    def expect(self, trainings: float, possible: float = 0.0) -> None:
        """Called with about how many trainings to the end follow the next ones, and how many more may, for the time left."""

    def may_enlarge(self, larger: LargerNetworks | None) -> None:
        """Called with the larger networks that may be trained, too; None: there are none."""

    def say(self, line: str) -> None:
        """Called with a line for people: how members are divided among devices."""

    def part(self, name: str) -> "Watcher":
        """Return the watcher of a part of a fit that trains more than once ("train", "replay"); epochs count from 1."""
        return self

    def over(self) -> bool:
        """Return whether training should end: nothing optional is started any more."""
        return False

    def ends_at(self) -> float:
        """Return the time of `time.monotonic` at which training ends at the latest, for the time left."""
        return inf


class FunctionWatcher(Watcher):
    """A plain function as a watcher."""

    def __init__(self, function: Callable[..., Any]):
        self.function, self.with_member = function, _takes(function, 0, None) and not _takes(function, None)

    def epoch(self, member: int, info: EpochInfo) -> bool:
        return bool(self.function(member, info) if self.with_member else self.function(info))


def _takes(function: Callable[..., Any], *arguments: Any) -> bool:
    try:
        inspect.signature(function).bind(*arguments)
    except (TypeError, ValueError):  # other arguments, or a builtin without a signature
        return False
    return True


class WatcherGroup(Watcher):
    """Several watchers as one, each of which may stop the training; they need no method but `epoch`.

    They know members by their `numbers`, if given. Once `is_abandoned()`, they are not called, and the training stops.
    """

    def __init__(
        self, watchers: Iterable[Watcher], numbers: Sequence[int] = (), is_abandoned: Callable[[], bool] = lambda: False
    ):
        self.watchers, self.is_abandoned = list(watchers), is_abandoned
        self._number = numbers.__getitem__ if numbers else lambda member: member

    def _call(self, name: str, *arguments: Any) -> list[Any]:
        return [getattr(watcher, name)(*arguments) for watcher in self.watchers if hasattr(watcher, name)]

    def begin(self, settings: Settings) -> None:
        self._call("begin", {self._number(member): own for member, own in settings.items()})

    def epoch(self, member: int, info: EpochInfo) -> bool:
        return self.is_abandoned() or any(self._call("epoch", self._number(member), info))

    def pulse(self, member: int, share: float) -> None:
        if not self.is_abandoned():
            self._call("pulse", self._number(member), share)

    def leave(self, members: Sequence[int]) -> None:
        self._call("leave", [self._number(member) for member in members])

    def expect(self, trainings: float, possible: float = 0.0) -> None:
        self._call("expect", trainings, possible)

    def may_enlarge(self, larger: LargerNetworks | None) -> None:
        self._call("may_enlarge", larger)

    def say(self, line: str) -> None:
        self._call("say", line)

    def part(self, name: str) -> "WatcherGroup":
        return WatcherGroup(watcher.part(name) if hasattr(watcher, "part") else watcher for watcher in self.watchers)

    def over(self) -> bool:
        return any(self._call("over"))

    def ends_at(self) -> float:
        return min(self._call("ends_at"), default=inf)


def watcher_of(name: str, watch: Any) -> WatcherGroup:
    """Return a watcher, a function, several of them or None as one watcher; ValueError where it is none of these."""
    each = [] if watch is None else list(watch) if isinstance(watch, list | tuple) else [watch]
    for item in each:
        if not callable(getattr(item, "epoch", item)):
            options = "a function that takes the epoch's info, an object with epoch(member, info), or a list of these"
            raise ValueError(f"{name}={item!r} must be {options}.")
    return WatcherGroup(item if hasattr(item, "epoch") else FunctionWatcher(item) for item in each)
