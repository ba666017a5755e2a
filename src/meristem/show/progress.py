"""Progress of training: a live line with a measure, size, learning rate and time left; plain lines elsewhere.

    with Progress() as progress:
        progress.plan({("tunnel", "easy"): 450})
        with progress.group("tunnel", "easy", 450, ERROR) as watcher: fit(…, watch=watcher)

The display is live on a terminal with `rich` installed; otherwise a line is printed every few seconds. Methods may be called
from several threads.
"""

import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, TextIO

import numpy as np

from meristem.check import is_installed
from meristem.show.measures import Measure
from meristem.train.callbacks import Watcher
from meristem.train.train_state import EpochInfo

PLAIN_SECONDS = 5.0  # between plain lines
MOST_SHARE = 0.98  # of the planned epochs that count as done before the end
Key = tuple[str, str]  # model, task


def rich_classes() -> Any:
    """Return the classes of rich that live displays use, `.Console`, `.Table` and so on; rich is imported here alone."""
    from rich import console, live, progress_bar, table, text

    classes = (console.Console, console.Group, live.Live, progress_bar.ProgressBar, table.Table, text.Text)
    return SimpleNamespace(**{kind.__name__: kind for kind in classes})


class GroupWatcher(Watcher):
    """A watcher of the runs of one model on one task that reports finished epochs and the finished share of a long one."""

    def __init__(self, progress: "Progress", key: Key, usual_epochs: float, measure: Measure, before: int):
        self._progress, self._key, self._measure, self._before = progress, key, measure, before
        self._most, self.earlier = MOST_SHARE * usual_epochs, progress.done.get(key, 0.0)
        self._infos: dict[int, EpochInfo] = {}
        self._done: dict[int, float] = {}  # member → its epochs, with the share of the current one

    def epoch(self, member: int, info: EpochInfo) -> bool:
        with self._progress.lock:
            self._infos[member] = info
        self.pulse(member, 0.0)
        return False

    def pulse(self, member: int, share: float) -> None:
        """Report the finished share of the epoch after a member's last reported one."""
        with self._progress.lock:
            is_first, latest = not self._done, self._infos.get(member)
            epoch = self._before if latest is None else int(latest.epoch)
            self._done[member] = epoch - self._before + share
            most_epochs = self._before + int(max(self._done.values()))
            position = f"{share:.0%} of epoch {epoch + 1}" if share else f"epoch {most_epochs}"
            status = f"{', '.join(self._key)}: {position}{describe_members(self._infos, self._measure)}"
            self._progress.done[self._key] = self.earlier + min(sum(self._done.values()), self._most)
            self._progress.show_status(status, at_once=is_first and share > 0)


class Progress:
    """Counts epochs against a plan and displays the status."""

    def __init__(self, stream: TextIO | None = None, live: bool | None = None):
        self.stream = stream or sys.stderr
        self.lock = threading.Lock()
        self.done: dict[Key, float] = {}
        self._plan: dict[Key, float] = {}
        self._is_live = is_installed("rich") and self.stream.isatty() if live is None else live
        self._status = ""
        self._begin = self._last_line = time.monotonic()
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
        self._plan, self.done = dict(epochs), dict.fromkeys(epochs, 0.0)

    @contextmanager
    def group(self, model: str, task: str, usual_epochs: float, measure: Measure, *, before: int = 0) -> Iterator[GroupWatcher]:
        """Yield the watcher of the runs of one model on one task: `usual_epochs` in all, after `before` epochs earlier."""
        yield (watcher := GroupWatcher(self, (model, task), usual_epochs, measure, before))
        with self.lock:
            self.done[model, task] = watcher.earlier + usual_epochs

    def show_status(self, status: str, *, at_once: bool) -> None:
        """Set the status, which a plain line shows every few seconds, or at once."""
        self._status = status
        if not self._is_live and (at_once or time.monotonic() - self._last_line > PLAIN_SECONDS):
            self._write(f"{status}, {self.time_left()}")

    def fraction(self) -> float:
        total = sum(self._plan.values())
        return sum(self.done.values()) / total if total else 0.0

    def time_left(self) -> str:
        """Return an estimate in words, from the finished share of the planned epochs."""
        share = self.fraction()
        if share < 0.01:
            return "time left not known yet"
        if share >= MOST_SHARE:  # the plan is exhausted, so there is nothing to extrapolate from
            return "nearly done"
        return describe_time_left((time.monotonic() - self._begin) * (1 - share) / share)

    def say(self, line: str) -> None:
        with self.lock:
            self._write(line)

    def _write(self, line: str) -> None:
        self._last_line = time.monotonic()
        if self._display is not None:
            self._display.console.print(line, highlight=False)
        else:
            print(line, file=self.stream, flush=True)

    def _render(self) -> Any:
        rich = rich_classes()
        bar, percent = rich.Table.grid(padding=(0, 1)), rich.Text(f"{self.fraction():4.0%}  {self.time_left()}")
        bar.add_row(rich.ProgressBar(total=1.0, completed=self.fraction(), width=40), percent)
        return rich.Group(rich.Text(self._status or "compiling …"), bar)


def describe_time_left(seconds: float) -> str:
    """Return a duration in the unit that suits it.

    >>> describe_time_left(12), describe_time_left(200), describe_time_left(10_000)
    ('about 12 s left', 'about 3 min left', 'about 2.8 h left')
    """
    if seconds > 5400:
        return f"about {seconds / 3600:.1f} h left"
    return f"about {seconds / 60:.0f} min left" if seconds > 90 else f"about {seconds:.0f} s left"


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
