"""Progress of training: a live line with a measure, size, learning rate and time left; plain lines elsewhere.

    with Progress() as progress:
        progress.plan({("tunnel", "easy"): 450})
        with progress.group("tunnel", "easy", 450, ERROR) as watcher: fit(…, watch=watcher)

The display is live on a terminal with `rich` installed; otherwise a line is printed when a stage begins and at intervals that
double, never the same twice in a row. The time left (time_left.py) is a number, a range while it depends on what is not decided
yet, or is not mentioned. Methods may be called from several threads.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, TextIO

import numpy as np

from meristem.check import is_installed, many
from meristem.show.measures import Measure
from meristem.show.time_left import CLOSE, Forecast, middle
from meristem.train.callbacks import LargerNetworks, Settings, Watcher
from meristem.train.train_state import EpochInfo

PLAIN_SECONDS, MOST_SECONDS = 5.0, 600.0  # between the first plain lines; at most
Key = tuple[str, str]  # model, task


def rich_classes() -> Any:
    """Return the classes of rich that live displays use, `.Console`, `.Table` and so on; rich is imported here alone."""
    from rich import console, live, progress_bar, table, text

    classes = (console.Console, console.Group, live.Live, progress_bar.ProgressBar, table.Table, text.Text)
    return SimpleNamespace(**{kind.__name__: kind for kind in classes})


class GroupWatcher(Watcher):
    """A watcher of the runs of one model on one task that reports finished epochs and the finished share of a long one."""

    def __init__(
        self, progress: "Progress", key: Key, usual_epochs: float, measure: Measure, before: int, most_epochs: float = np.inf
    ):
        self._progress, self._key, self._measure, self._before = progress, key, measure, before
        self.forecast, self._part, self._is_new_part = Forecast(usual_epochs, most_epochs), "", False
        self.forecast.begin({}, progress.clock())
        self._infos: dict[int, EpochInfo] = {}

    def part(self, name: str) -> Watcher:
        self._is_new_part, self._part = name != self._part, name
        return self

    def begin(self, settings: Settings) -> None:
        with self._progress.lock:
            self._begin(settings)

    def _begin(self, settings: Settings) -> None:
        """Begin a stage; only a search says so, a part of a plain fit begins with its first epoch."""
        self.forecast.begin(settings, self._progress.clock(), part=self._part if self._is_new_part else None)
        self._infos, self._is_new_part = {}, False
        stage = ", ".join(filter(None, [*self._key, self._part]))
        self._progress.show_status(f"{stage}: {many(len(settings), 'network')}", at_once=True)

    def expect(self, trainings: float, possible: float = 0.0) -> None:
        with self._progress.lock:
            self.forecast.announced = trainings, possible

    def may_enlarge(self, larger: LargerNetworks | None) -> None:
        with self._progress.lock:
            self.forecast.larger = larger

    def say(self, line: str) -> None:
        self._progress.say(line)

    def leave(self, members: Sequence[int]) -> None:
        with self._progress.lock:
            self.forecast.leave(members)

    def epoch(self, member: int, info: EpochInfo) -> bool:
        with self._progress.lock:
            if self._is_new_part:
                self._begin({0: {}})
            self._infos[member] = info
        self._update(member, 0.0, info)
        return False

    def pulse(self, member: int, share: float) -> None:
        """Report the finished share of the epoch after a member's last reported one."""
        with self._progress.lock:
            if self._is_new_part:
                self._begin({0: {}})
        self._update(member, share)

    def _update(self, member: int, share: float, info: EpochInfo | None = None) -> None:
        with self._progress.lock:
            latest, forecast = self._infos.get(member), self.forecast
            is_first = not any(own.epochs for own in forecast.members.values())
            epoch = self._before if latest is None else int(latest.epoch)
            forecast.update(member, epoch - self._before + share, self._progress.clock(), info)
            most_epochs = self._before + int(max(own.epochs for own in forecast.members.values()))
            position = f"{share:.0%} of epoch {epoch + 1}" if share else f"epoch {most_epochs}"
            status = f"{', '.join(self._key)}: {position}{describe_members(self._infos, self._measure)}"
            self._progress.show_status(status, at_once=is_first and share > 0)


class Progress:
    """Counts epochs against a plan and displays the status."""

    def __init__(self, stream: TextIO | None = None, live: bool | None = None, clock: Callable[[], float] = time.monotonic):
        self.stream = stream or sys.stderr
        self.lock, self.clock, self.ends_at = threading.Lock(), clock, np.inf  # a time by which all ends in any case
        self._plan: dict[Key, float] = {}  # epochs of groups that have not begun
        self._group: GroupWatcher | None = None
        self._done = 0.0  # epochs of groups that have ended
        self._planned = 0.0  # of these
        self._is_live = is_installed("rich") and self.stream.isatty() if live is None else live
        self._status = self._line = ""
        self._last_line, self._interval = clock(), PLAIN_SECONDS
        self._display: Any = None  # of rich, while it is live

    def __enter__(self) -> "Progress":
        if self._is_live:
            rich = rich_classes()
            console = rich.Console(file=self.stream)
            self._display = rich.Live(get_renderable=self._render, console=console, refresh_per_second=8, transient=True)
            self._display.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._display is not None:
            self._display.stop()
            self._display = None

    def plan(self, epochs: Mapping[Key, float]) -> None:
        """Set the approximate number of epochs of each (model, task)."""
        self._plan, self._done, self._planned = dict(epochs), 0.0, 0.0

    @contextmanager
    def group(
        self, model: str, task: str, usual_epochs: float, measure: Measure, *, before: int = 0, most_epochs: float = np.inf
    ) -> Iterator[GroupWatcher]:
        """Yield the watcher of the runs of one model on one task.

        They have `usual_epochs` in all, after `before` epochs earlier, and each at most `most_epochs`.
        """
        self._group = watcher = GroupWatcher(self, (model, task), usual_epochs, measure, before, most_epochs)
        self._plan[model, task] = max(0.0, self._plan.get((model, task), 0.0) - usual_epochs)  # others of this model and task
        yield watcher
        with self.lock:
            self._done, self._planned, self._group = self._done + watcher.forecast.done, self._planned + usual_epochs, None

    def show_status(self, status: str, *, at_once: bool) -> None:
        """Set the status, which a plain line shows at intervals that double, or at once; never the same twice in a row."""
        self._status = status
        is_due = self.clock() - self._last_line > self._interval
        if self._is_live or not (at_once or is_due):
            return
        line = ", ".join(filter(None, [status, self.time_left()]))
        if line != self._line:
            self._interval = min(2 * self._interval, MOST_SECONDS) if is_due else self._interval
            self._write(line)
            self._line = line

    def _later_epochs(self) -> float:
        """Return the epochs of groups that have not begun: planned ones, in proportion to those that have ended."""
        return sum(self._plan.values()) * (self._done / self._planned if self._done else 1.0)

    def fraction(self) -> float:
        group = self._group
        done, left = (group.forecast.done, group.forecast.epochs_left()) if group else (0.0, 0.0)
        total = self._done + done + left + self._later_epochs()
        return (self._done + done) / total if total else 0.0

    def range_left(self) -> tuple[float, float] | None:
        """Return the seconds left without what is not decided yet, and with it; None while they are unknown."""
        if self._group is None or (own := self._group.forecast.range(self.clock())) is None:
            return None
        later = self._later_epochs() * (self._group.forecast.seconds_per_epoch or 0.0)
        most = max(0.0, self.ends_at - self.clock())
        return min(own[0] + later, most), min(own[1] + later, most)

    def time_left(self) -> str:
        """Return the estimate in words, "" while it is unknown or less than a second."""
        ends = self.range_left()
        return "" if ends is None or ends[1] < 0.5 else describe_time_left(*ends)

    def say(self, line: str) -> None:
        with self.lock:
            self._write(line)

    def _write(self, line: str) -> None:
        self._last_line = self.clock()
        if self._display is not None:
            self._display.console.print(line, highlight=False)
        else:
            print(line, file=self.stream, flush=True)

    def _render(self) -> Any:
        rich = rich_classes()
        bar, percent = rich.Table.grid(padding=(0, 1)), rich.Text(f"{self.fraction():4.0%}  {self.time_left()}")
        bar.add_row(rich.ProgressBar(total=1.0, completed=self.fraction(), width=40), percent)
        return rich.Group(rich.Text(self._status or "compiling …"), bar)


def describe_time_left(low: float, high: float | None = None) -> str:
    """Return a duration, or a range whose ends are far apart, in the unit that suits it.

    >>> describe_time_left(12), describe_time_left(200), describe_time_left(10_000)
    ('about 12 s left', 'about 3 min left', 'about 2.8 h left')
    >>> describe_time_left(12, 14), describe_time_left(12, 50), describe_time_left(50, 200)
    ('about 13 s left', '12 to 50 s left', '50 s to 3 min left')
    """
    if high is None or high <= CLOSE * low:
        return f"about {_in_words(low if high is None else middle(low, high))} left"
    first, last = _in_words(low), _in_words(high)
    is_same_unit = first.split()[1] == last.split()[1]
    return f"{first.split()[0] if is_same_unit else first} to {last} left"


def _in_words(seconds: float) -> str:
    if seconds > 5400:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.0f} min" if seconds > 90 else f"{seconds:.0f} s"


def describe_members(infos: Mapping[int, EpochInfo], measure: Measure) -> str:
    """Return the members' medians of measure and size, and their learning rates; empty before the first epoch ends."""
    if not infos:
        return ""
    values = [float(value) for info in infos.values() if (value := getattr(info, f"dev_{measure.name}")) is not None]
    quality = f", {measure.label} {measure.show(float(np.median(values)))}" if values else ""
    size = np.median([float(info.soft_size) for info in infos.values()])
    rates = [f"{rate:.0e}" for rate in sorted(float(info.rate) for info in infos.values())]
    rate = f"rate {rates[0]}" if rates[0] == rates[-1] else f"rates {rates[0]} to {rates[-1]}"
    return f"{quality}, soft size {size:.1f}, {rate}"
