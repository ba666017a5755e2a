"""What a person sees while networks are trained: a live line with a measure, size, rate and time left; plain lines elsewhere.

    with Progress() as progress:
        progress.plan({("tunnel", "easy"): 450})
        with progress.group("tunnel", "easy", 450, ERROR) as watcher: fit(…, watch=watcher)

On a terminal with `rich` installed the display is live; anywhere else, or without rich, a line every few seconds and one
for each finished group of runs. Only this file imports rich. Calls may come from several threads.
Studies, estimators and commands import it; it knows the record of an epoch (`train/train_state.py`) and nothing of training.
"""

import importlib.util
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TextIO

import numpy as np

from meristem.show.measure import Measure
from meristem.train.callbacks import Watcher
from meristem.train.train_state import EpochInfo

PLAIN_SECONDS = 5.0  # between plain lines
MOST_SHARE = 0.98  # of a plan, that is done while it is not over
Key = tuple[str, str]


def have_rich() -> bool:
    """Whether rich is installed."""
    try:
        return importlib.util.find_spec("rich") is not None
    except ValueError:  # blocked on purpose, as sys.modules["rich"] = None does
        return False


class GroupWatcher(Watcher):
    """A watcher of one group of runs: it hears of their epochs, and of the share of a long one that is done."""

    def __init__(self, measure: Measure, before: int, tell: Callable[[float, str, bool], None]):
        self._measure = measure
        self._before = before
        self._tell = tell  # (epochs done in all, where things stand, whether these are the first words within an epoch)
        self._lock = threading.Lock()
        self._infos: dict[int, EpochInfo] = {}
        self._done: dict[int, float] = {}  # member → its epochs, with the share of the present one

    def epoch(self, member: int, info: EpochInfo) -> bool:
        """After each epoch of a member; never asks to stop."""
        with self._lock:
            self._infos[member] = info
            self._show(member, int(info.epoch), 0.0)
        return False

    def pulse(self, member: int, share: float) -> None:
        """Within a long epoch of a member: the one after the last that was told."""
        with self._lock:
            latest = self._infos.get(member)
            self._show(member, self._before if latest is None else int(latest.epoch), share)

    def _show(self, member: int, epoch: int, share: float) -> None:
        is_first = not self._done
        self._done[member] = epoch - self._before + share
        latest = self._before + int(max(self._done.values()))
        where = f"{share:.0%} of epoch {epoch + 1}" if share else f"epoch {latest}"
        self._tell(sum(self._done.values()), where + describe_members(self._infos, self._measure), is_first and share > 0)


class Progress:
    """Counts epochs against a plan and shows where things stand; see the module's header."""

    def __init__(self, stream: TextIO | None = None, live: bool | None = None):
        self.stream = stream or sys.stderr
        self._is_live = have_rich() and self.stream.isatty() if live is None else live
        self._lock = threading.Lock()
        self._plan: dict[Key, float] = {}
        self._done: dict[Key, float] = {}
        self._now = ""
        self._begin = self._last_line = time.monotonic()
        self._console: Any = None
        self._display: Any = None

    def __enter__(self) -> "Progress":
        self._begin = self._last_line = time.monotonic()
        if self._is_live:
            from rich.console import Console
            from rich.live import Live

            self._console = Console(file=self.stream)
            self._display = Live(get_renderable=self._render, console=self._console, refresh_per_second=8, transient=True)
            self._display.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Take the live display away."""
        if self._display is not None:
            self._display.stop()
            self._display = None

    def plan(self, epochs: Mapping[Key, float]) -> None:
        """How many epochs each (model, task) will take, roughly."""
        self._plan, self._done = dict(epochs), dict.fromkeys(epochs, 0.0)

    @contextmanager
    def group(self, model: str, task: str, usual_epochs: float, measure: Measure, *, before: int = 0) -> Iterator[GroupWatcher]:
        """The runs of one model on one task, `usual_epochs` in all, shown by a measure of their development part.

        `before`: the epochs that they had been trained for earlier.
        """
        key, earlier = (model, task), self._done.get((model, task), 0.0)

        def tell(epochs: float, words: str, at_once: bool) -> None:
            with self._lock:
                self._done[key] = earlier + min(epochs, MOST_SHARE * usual_epochs)
                self._now = f"{model}, {task}: {words}"
                waited = time.monotonic() - self._last_line
                if not self._is_live and (waited > PLAIN_SECONDS or at_once):
                    self._last_line = time.monotonic()
                    self._write(f"{self._now}, {self.time_left()}")

        yield GroupWatcher(measure, before, tell)
        with self._lock:
            self._done[key] = earlier + usual_epochs

    def fraction(self) -> float:
        total = sum(self._plan.values())
        return sum(self._done.values()) / total if total else 0.0

    def time_left(self) -> str:
        """An estimate in words, from the share of the planned epochs that are done."""
        elapsed, share = time.monotonic() - self._begin, self.fraction()
        if share < 0.01:
            return "time left not known yet"
        if share >= MOST_SHARE:  # more than was planned: nothing is known of the rest
            return "nearly done"
        left = elapsed * (1 - share) / share
        return f"about {left / 60:.0f} min left" if left > 90 else f"about {left:.0f} s left"

    def say(self, line: str) -> None:
        """A line that stays."""
        with self._lock:
            if self._display is not None:
                self._console.print(line, highlight=False)
            else:
                self._write(line)
            self._last_line = time.monotonic()

    def _write(self, line: str) -> None:
        print(line, file=self.stream, flush=True)

    def _render(self) -> Any:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        bar = Table.grid(padding=(0, 1))
        bar.add_row(
            ProgressBar(total=1.0, completed=self.fraction(), width=40), Text(f"{self.fraction():4.0%}  {self.time_left()}")
        )
        return Group(Text(self._now or "compiling …"), bar)


def describe_members(infos: Mapping[int, EpochInfo], measure: Measure) -> str:
    """The members' middle: how good, how large, how fast they learn; nothing before the first epoch is over."""
    if not infos:
        return ""
    known = list(infos.values())
    values = [float(value) for info in known if (value := getattr(info, f"dev_{measure.name}")) is not None]
    good = f", {measure.label} {measure.show(float(np.median(values)))}" if values else ""
    size = np.median([float(info.soft_size) for info in known])
    rates = [f"{rate:.0e}" for rate in sorted(float(info.rate) for info in known)]
    rate = f"rate {rates[0]}" if rates[0] == rates[-1] else f"rates {rates[0]} to {rates[-1]}"
    return f"{good}, soft size {size:.1f}, {rate}"
