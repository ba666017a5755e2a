"""What has been told of a member's epochs: columns that grow by a line of epochs.jsonl (folders/epoch_lines.py) at a time.

    group, member, epoch, values = read_line(b'{"group": "tunnel-easy", "member": 0, "epoch": 1, "loss": 0.5, …}')
    told.add(epoch, values)

A run that was killed tells of some epochs once more: what is told again counts, and what was told after it is forgotten until
it is told again. A layer counts as open from a twentieth of a unit on: gates hover a hair above 0.
Numbers are held as arrays of eight bytes each. Imports folders.record; following.py and state.py import it.
"""

import bisect
import math
from array import array
from typing import Any, NamedTuple

from meristem.folders.run_record import parse

MOST = 2**31  # of a member's number, and of an epoch's
LONGEST_NAME = 200  # characters of a group's
MOST_LAYERS = 4096
MOST_EVENTS = 256  # the last that are remembered of a member
EACH = 24  # numbers that an epoch takes as much memory as, without its layers
OPEN = 0.05  # units of a layer that is open
COLUMNS = ("dev_loss", "dev_error", "soft_size", "hard_size", "rate", "opened", "closed")
FLAGS = ("stopped", "diverged", "improved")


class Line(NamedTuple):
    """A line that makes sense."""

    group: str
    member: int
    epoch: int
    values: dict[str, Any]


class Told:
    """A member: [epochs] of each column, NaN where nothing is known; the sizes of its layers; the flags of its last epoch.

    >>> told = Told()
    >>> for epoch in (1, 2, 3, 2):                                      # killed after the third, and gone on from the first
    ...     told.add(epoch, {"dev_loss": 1 / epoch, "layer_sizes": [0.0, 2.0]})
    >>> told.epochs, list(told.columns["dev_loss"]), list(told.layers[-1]), told.events
    ([1, 2], [1.0, 0.5], [0.0, 2.0], [(1, 2, True)])
    """

    def __init__(self) -> None:
        self.epochs: list[int] = []
        self.columns: dict[str, array[float]] = {name: array("d") for name in COLUMNS}
        self.layers: list[array[float]] = []
        self.is_best: list[bool] = []  # the best epoch up to then
        self.events: list[tuple[int, int, bool]] = []  # (epoch, layer, whether it opened or closed), layers counted from 1
        self.flags: dict[str, bool] = dict.fromkeys(FLAGS, False)
        self.is_tree = False
        self.version = 0  # another one after each line
        self.n_numbers = 0  # that it takes as much memory as

    def add(self, epoch: int, values: dict[str, Any]) -> None:
        """An epoch, after those before it."""
        keep = bisect.bisect_left(self.epochs, epoch)
        if keep < len(self.epochs):
            self.events = [event for event in self.events if event[0] < epoch]
        self.n_numbers -= sum(EACH + len(sizes) for sizes in self.layers[keep:])
        every: list[Any] = [self.epochs, self.layers, self.is_best, *self.columns.values()]
        for column in every:
            del column[keep:]
        self.epochs.append(epoch)
        for name, column in self.columns.items():
            column.append(_number(values.get(name)))
        sizes = values.get("layer_sizes")
        now = array("d", [_number(size) for size in sizes[:MOST_LAYERS]] if isinstance(sizes, list) else [])
        before = self.layers[-1] if self.layers else array("d", [0.0] * len(now)) if epoch == 1 else now
        pairs = enumerate(zip(before, now, strict=False), 1)
        self.events += [(epoch, layer, new >= OPEN) for layer, (old, new) in pairs if (old >= OPEN) != (new >= OPEN)]
        del self.events[:-MOST_EVENTS]
        self.layers.append(now)
        self.is_best.append(values.get("improved") is True)
        self.flags = {name: values.get(name) is True for name in FLAGS}
        self.is_tree = self.is_tree or _number(values.get("most_leaves")) > 0
        self.version += 1
        self.n_numbers += EACH + len(now)

    @property
    def best_epoch(self) -> int | None:
        """The best so far."""
        return next((epoch for epoch, best in zip(reversed(self.epochs), reversed(self.is_best), strict=True) if best), None)


def read_line(line: bytes) -> Line | None:
    """A line of epochs.jsonl; None where it is not one: damaged, or a part.

    >>> read_line(b'{"group": "easy", "member": 1, "epoch": 2}')
    Line(group='easy', member=1, epoch=2, values={'group': 'easy', 'member': 1, 'epoch': 2})
    >>> read_line(b'{"group": "easy", "mem') is read_line(b'{"group": "easy", "member": -1, "epoch": true}') is None
    True
    """
    try:
        values = parse(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, dict):
        return None
    group, member, epoch = (values.get(name) for name in ("group", "member", "epoch"))
    if type(member) is not int or type(epoch) is not int or not 0 <= member < MOST or not 1 <= epoch < MOST:
        return None
    if not isinstance(group, str) or len(group) > LONGEST_NAME:
        return None
    return Line(group, member, epoch, values)


def _number(value: Any) -> float:
    is_one = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
    return float(value) if is_one and math.isfinite(value) else math.nan
