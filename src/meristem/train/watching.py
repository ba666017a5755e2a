"""Who looks on while networks are trained: one protocol for `fit`, studies and estimators.

    begin(settings)                        before members are trained, where they differ: {3: {"penalty": 0.003, "fold": 2}, …}
    epoch(member, info) → True to stop     after each epoch of each member; `info` is its EpochInfo, on the host
    pulse(member, share)                   within long epochs: the share of the steps that is done
    part(name) → Watcher                   who looks on at a part of a fit that trains more than once: "train", "replay"
    over() → True                          asked before more is begun that can be left out: nothing further should be

A plain function does, too: `f(info)`, or `f(member, info)` where there are many. Calls may come from several threads.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from meristem.train.state import EpochInfo

Settings = Mapping[int, Mapping[str, float]]  # of members, by their number: penalty, l2, dropout, learning_rate, fold, seed


class Watcher:
    """Sees everything and does nothing; override what you need.

    >>> class Printer(Watcher):
    ...     def epoch(self, member, info):
    ...         print(member, int(info.epoch), float(info.loss))
    """

    def begin(self, settings: Settings) -> None:
        """Before some members are trained: what each of them is."""

    def epoch(self, member: int, info: EpochInfo) -> bool | None:
        """After an epoch; True stops the member."""

    def pulse(self, member: int, share: float) -> None:
        """Within an epoch."""

    def part(self, name: str) -> "Watcher":
        """Who looks on at a part of this name; its epochs are counted from 1 again."""
        return self

    def over(self) -> bool:
        """Whether nothing should be begun any more."""
        return False


class Calling(Watcher):
    """A plain function as a watcher."""

    def __init__(self, function: Callable[..., Any]):
        self.function, self.with_member = function, _takes_two(function)

    def epoch(self, member: int, info: EpochInfo) -> bool:
        return bool(self.function(member, info) if self.with_member else self.function(info))


class Named(Watcher):
    """A watcher of members that go by other numbers elsewhere."""

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


class Everyone(Watcher):
    """Several watchers as one; each of them may stop the training."""

    def __init__(self, watchers: Iterable[Watcher]):
        self.watchers = list(watchers)

    def begin(self, settings: Settings) -> None:
        for watcher in self.watchers:
            if hasattr(watcher, "begin"):
                watcher.begin(settings)

    def epoch(self, member: int, info: EpochInfo) -> bool:
        ends = [bool(watcher.epoch(member, info)) for watcher in self.watchers]  # all of them are told
        return any(ends)

    def pulse(self, member: int, share: float) -> None:
        for watcher in self.watchers:
            if hasattr(watcher, "pulse"):
                watcher.pulse(member, share)

    def part(self, name: str) -> "Everyone":
        return Everyone(watcher.part(name) if hasattr(watcher, "part") else watcher for watcher in self.watchers)

    def over(self) -> bool:
        return any(watcher.over() for watcher in self.watchers if hasattr(watcher, "over"))


def watcher_of(name: str, given: Any) -> Everyone:
    """None, a watcher, a function, or several of them, as one watcher; ValueError where it is none of these.

    >>> [type(one).__name__ for one in watcher_of("watch", [print, Watcher()]).watchers]
    ['Calling', 'Watcher']
    """
    each = [] if given is None else list(given) if isinstance(given, list | tuple) else [given]
    wrong = [one for one in each if not callable(getattr(one, "epoch", one))]
    if wrong:
        raise ValueError(
            f"{name}={wrong[0]!r} must be a function that takes the epoch's info, an object with epoch(member, info), "
            "or a list of these."
        )
    return Everyone(one if hasattr(one, "epoch") else Calling(one) for one in each)


def _takes_two(function: Callable[..., Any]) -> bool:
    """Whether it wants (member, info) rather than (info)."""
    try:
        inspect.signature(function).bind(0, None)
    except (TypeError, ValueError):  # other arguments, or a builtin without a signature
        return False
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        return True
    return False
