"""What a person sees while a study runs: a live line with error, size, rate and time left; plain lines elsewhere.

On a terminal with `rich` installed the display is live; anywhere else, or without rich, a line every few seconds and one
for each finished group of runs. Only this file imports rich. Calls may come from several threads.
"""

import importlib.util
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, TextIO

import numpy as np

from meristem.train.step import EpochInfo

PLAIN_SECONDS = 5.0  # between plain lines
Key = tuple[str, str]


def have_rich() -> bool:
    """Whether rich is installed."""
    try:
        return importlib.util.find_spec("rich") is not None
    except ValueError:  # blocked on purpose, as sys.modules["rich"] = None does
        return False


class Shown(NamedTuple):
    """What `fit_each` calls: after each epoch of each member, and within long ones."""

    watch: Callable[[int, int, EpochInfo], None]
    pulse: Callable[[int, int, float], None]


class Progress:
    """Counts epochs against a plan and shows where things stand.

    with Progress() as progress:
        progress.plan({("tunnel", "easy"): 450})
        with progress.group("tunnel", "easy", (0.003,), (1.0, 0.3, 0.1), 450) as shown: ...   # fit_each(…, *shown)
    """

    def __init__(self, stream: TextIO | None = None, live: bool | None = None):
        self.stream = stream or sys.stderr
        self._is_live = have_rich() and self.stream.isatty() if live is None else live
        self._lock = threading.Lock()
        self._plan: dict[Key, float] = {}
        self._done: dict[Key, float] = {}
        self._now = ""
        self._begin = self._told = time.monotonic()
        self._console: Any = None
        self._display: Any = None

    def __enter__(self) -> "Progress":
        self._begin = self._told = time.monotonic()
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
    def group(
        self, model: str, task: str, rates: tuple[float, ...], scales: tuple[float, ...], usual: float
    ) -> Iterator[Shown]:
        """The runs of one model on one task at one or more rates, `usual` epochs in all."""
        key, before = (model, task), self._done.get((model, task), 0.0)
        infos: dict[int, EpochInfo] = {}
        epochs: dict[int, float] = {}  # member → those that are done, with the share of the present one

        def watch(member: int, epoch: int, info: EpochInfo) -> None:
            infos[member] = info
            show(member, epoch, 0.0)

        def pulse(member: int, epoch: int, share: float) -> None:
            show(member, epoch - 1, share)

        def show(member: int, epoch: int, share: float) -> None:
            with self._lock:
                is_first = not epochs
                epochs[member] = epoch + share
                self._done[key] = before + min(sum(epochs.values()), 0.98 * usual)
                where = f"{share:.0%} of epoch {epoch + 1}" if share else f"epoch {max(map(int, epochs.values()))}"
                self._now = f"{model}, {task}: {where}{_describe(infos, rates, scales)}"
                waited = time.monotonic() - self._told
                if not self._is_live and (waited > PLAIN_SECONDS or (is_first and share)):
                    self._told = time.monotonic()
                    self._write(f"{self._now}, {self.time_left()}")

        yield Shown(watch, pulse)
        with self._lock:
            self._done[key] = before + usual

    def fraction(self) -> float:
        total = sum(self._plan.values())
        return sum(self._done.values()) / total if total else 0.0

    def time_left(self) -> str:
        """An estimate in words, from the share of the planned epochs that are done."""
        elapsed, share = time.monotonic() - self._begin, self.fraction()
        if share < 0.01:
            return "time left not known yet"
        left = elapsed * (1 - share) / share
        return f"about {left / 60:.0f} min left" if left > 90 else f"about {left:.0f} s left"

    def say(self, line: str) -> None:
        """A line that stays."""
        with self._lock:
            if self._display is not None:
                self._console.print(line, highlight=False)
            else:
                self._write(line)
            self._told = time.monotonic()

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


def _describe(infos: Mapping[int, EpochInfo], rates: tuple[float, ...], scales: tuple[float, ...]) -> str:
    """The members' middle: how good, how large, how fast they learn; nothing before the first epoch is over."""
    if not infos:
        return ""
    known = list(infos.values())
    f1 = [float(info.dev_macro_f1) for info in known if info.dev_macro_f1 is not None]
    good = f"macro-F1 {np.median(f1):.1%}" if f1 else f"error {np.median([float(info.dev_error) for info in known]):.1%}"
    size = np.median([float(info.layer_sizes.sum()) for info in known])
    stage = int(np.median([int(info.stage) for info in known]))
    scale = scales[min(stage, len(scales) - 1)]
    rate = f"rate {rates[0] * scale:.0e}" if len(rates) == 1 else f"{len(rates)} rates, now times {scale:g}"
    return f", {good}, soft size {size:.1f}, {rate}"
