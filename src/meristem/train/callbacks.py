"""Watchers of training: one protocol of callbacks for `fit`, studies and estimators.

A plain function will do: `f(info)`, or `f(member, info)` where there are many. Calls may come from several threads.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from meristem.train.train_state import EpochInfo

Settings = Mapping[int, Mapping[str, float]]  # of members, by their number: penalty, l2, dropout, learning_rate, fold, seed


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

    def part(self, name: str) -> "Watcher":
        """Return the watcher of a part of a fit that trains more than once ("look", "train", "replay"); epochs count from 1."""
        return self

    def over(self) -> bool:
        """Return whether training should end: nothing optional is started any more."""
        return False


class FunctionWatcher(Watcher):
    """A plain function as a watcher."""

    def __init__(self, function: Callable[..., Any]):
        self.function, self.with_member = function, _takes_two(function)

    def epoch(self, member: int, info: EpochInfo) -> bool:
        return bool(self.function(member, info) if self.with_member else self.function(info))


class RenumberedWatcher(Watcher):
    """A watcher that knows members by other numbers."""

    def __init__(self, watcher: Watcher, names: dict[int, int]):
        self.watcher, self.names = watcher, names

    def begin(self, settings: Settings) -> None:
        self.watcher.begin({self.names[member]: own for member, own in settings.items()})

    def epoch(self, member: int, info: EpochInfo) -> bool | None:
        return self.watcher.epoch(self.names[member], info)

    def pulse(self, member: int, share: float) -> None:
        self.watcher.pulse(self.names[member], share)

    def over(self) -> bool:
        return self.watcher.over()


class WatcherGroup(Watcher):
    """Several watchers as one; each of them may stop the training."""

    def __init__(self, watchers: Iterable[Watcher]):
        self.watchers = list(watchers)

    def begin(self, settings: Settings) -> None:
        for watcher in self.watchers:
            if hasattr(watcher, "begin"):
                watcher.begin(settings)

    def epoch(self, member: int, info: EpochInfo) -> bool:
        ends = [bool(watcher.epoch(member, info)) for watcher in self.watchers]  # call all of them
        return any(ends)

    def pulse(self, member: int, share: float) -> None:
        for watcher in self.watchers:
            if hasattr(watcher, "pulse"):
                watcher.pulse(member, share)

    def part(self, name: str) -> "WatcherGroup":
        return WatcherGroup(watcher.part(name) if hasattr(watcher, "part") else watcher for watcher in self.watchers)

    def over(self) -> bool:
        return any(watcher.over() for watcher in self.watchers if hasattr(watcher, "over"))


def watcher_of(name: str, watch: Any) -> WatcherGroup:
    """Return a watcher, a function, several of them or None as one watcher; ValueError where it is none of these.

    >>> [type(watcher).__name__ for watcher in watcher_of("watch", [print, Watcher()]).watchers]
    ['FunctionWatcher', 'Watcher']
    """
    each = [] if watch is None else list(watch) if isinstance(watch, list | tuple) else [watch]
    wrong = [item for item in each if not callable(getattr(item, "epoch", item))]
    if wrong:
        raise ValueError(
            f"{name}={wrong[0]!r} must be a function that takes the epoch's info, an object with epoch(member, info), "
            "or a list of these."
        )
    return WatcherGroup(item if hasattr(item, "epoch") else FunctionWatcher(item) for item in each)


def _takes_two(function: Callable[..., Any]) -> bool:
    """Return whether a function takes (member, info) rather than (info)."""
    try:
        inspect.signature(function).bind(0, None)
    except (TypeError, ValueError):  # other arguments, or a builtin without a signature
        return False
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        return True
    return False
