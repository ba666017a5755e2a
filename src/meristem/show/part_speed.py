"""The speed of a part of a fit, and the time in which its programs compile; time_left.py imports it.

part.add(epochs, gap)        epochs that ended so many seconds after those before
part.seconds_per_epoch       of the later half, without the gaps in which programs compile
"""

from bisect import bisect_left
from dataclasses import dataclass, field

LEAST_EPOCHS, LEAST_SECONDS = 8.0, 0.5  # of training, from which a speed is measured
COMPILES, LEAST_COMPILING = 8.0, 0.4  # a gap is compiling if it is so many times as long as usual, and so many seconds
MOST_MARKS = 4096


@dataclass
class PartSpeed:
    """The speed of a part of a fit."""

    expected: float | None  # seconds an epoch, before it is measured
    compiling: float = 0.0  # seconds that are expected before its first epoch
    first: float | None = None  # seconds before its first epoch
    gaps: float = 0.0  # seconds of later gaps
    marks: list[tuple[float, float]] = field(default_factory=lambda: [(0.0, 0.0)])  # epochs and seconds without gaps

    def add(self, epochs: float, gap: float, *, is_new: bool = False) -> None:
        """Count epochs that ended after a gap, in which a new program may have been compiled."""
        if self.first is None:
            self.first, gap = gap, 0.0
        (before, seconds), start = self.marks[-1], self.marks[min(1, len(self.marks) - 1)]
        usual = self.seconds_per_epoch
        if usual is None and before > start[0]:  # a network may settle within its first few epochs
            usual = (seconds - start[1]) / (before - start[0])
        if is_new and usual is not None:
            self.first, gap = max(self.first, gap), usual * epochs
        if usual is not None and gap > max(LEAST_COMPILING, COMPILES * usual * epochs):
            self.gaps, gap = self.gaps + gap - usual * epochs, usual * epochs
        self.marks = self.marks[::2] if len(self.marks) > MOST_MARKS else self.marks
        self.marks.append((self.marks[-1][0] + epochs, self.marks[-1][1] + gap))

    @property
    def seconds_per_epoch(self) -> float | None:
        """The speed of the later half, without the first epoch, which has no time of its own."""
        (epochs, seconds), start = self.marks[-1], self.marks[min(1, len(self.marks) - 1)]
        is_short = epochs - start[0] < LEAST_EPOCHS and seconds - start[1] < LEAST_SECONDS
        if is_short or epochs == start[0]:
            return self.expected
        before = self.marks[max(1, bisect_left(self.marks, (start[0] + (epochs - start[0]) / 2,)) - 1)]
        return (seconds - before[1]) / (epochs - before[0])
