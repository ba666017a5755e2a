"""The time left of trainings, from the epochs of those that have ended; progress.py and benchmarks/eta.py import it.

    forecast = Forecast(900)                                            a first guess: 900 epochs in all
    forecast.announced = 20; forecast.begin(15)                         15 members begin, about 20 come later
    forecast.update(member, epochs, now); forecast.seconds_left() → 12.3, or None while unknown

A member is expected to take as many epochs as those before it; in another part of a fit (a larger room, a replay), where no
setting leaves early, as many as those that stopped by themselves. Speed is measured in the current part alone, without the
time before the first epoch of a stage, in which programs compile.
"""

from collections.abc import Sequence
from statistics import fmean

LEAST_EPOCHS, LEAST_SECONDS = 8.0, 0.5  # of training, from which a speed is measured
BEYOND = 0.3  # of its epochs a member goes on at least, once it has more than expected
LEAST_OF_STAGE = 1 / 3  # of what the running members would take if all went on to their end


class Forecast:
    """Counts epochs of the members of one stage after another."""

    def __init__(self, epochs: float):
        self.guess, self.n, self.later = epochs, 1, 0
        self.epochs: dict[int, float] = {}  # of the members of this stage
        self.ended: set[int] = set()
        self.announced: int | None = None  # members after the next stage
        self.past, self.full, self.speeds = list[float](), list[float](), [0.0, 0.0]  # of members; of those that stopped
        self.last, self.earlier = 0.0, 0.0  # the time of the last epoch; epochs of earlier stages

    def begin(self, members: int, *, is_new_part: bool = False) -> None:
        """Begin a stage of so many members: those of the stage before have ended."""
        if self.epochs:
            self.earlier = self.done
            self.past += self.epochs.values()
        if is_new_part:
            self.past, self.speeds = list(self.full) or self.past, [0.0, 0.0]
        self.n, self.epochs, self.ended = members, {}, set()
        self.later = max(0, self.later - members) if self.announced is None else self.announced
        self.announced = None

    def update(self, member: int, epochs: float, now: float, *, stopped: bool = False) -> None:
        """Set the epochs of a member, with the finished share of the current one."""
        if self.epochs:
            self.speeds[0] += epochs - self.epochs.get(member, 0.0)
            self.speeds[1] += now - self.last
        self.epochs[member], self.last = epochs, now
        if stopped and member not in self.ended:
            self.full.append(epochs)
            self.ended.add(member)

    def leave(self, members: Sequence[int]) -> None:
        self.ended.update(members)

    @property
    def done(self) -> float:
        return self.earlier + sum(self.epochs.values())

    def epochs_left(self) -> float:
        n = max(self.n, len(self.epochs))
        mean = fmean(self.past) if self.past else self.guess / (n + self.later)
        full = fmean(self.full) if self.full else mean
        running = [epochs for member, epochs in self.epochs.items() if member not in self.ended]
        most = sum(max(full - epochs, BEYOND * epochs) for epochs in running) + full * (n - len(self.epochs))
        stage = min(max(n * mean - sum(self.epochs.values()), LEAST_OF_STAGE * most), most)
        return stage + self.later * (mean if self.past else (sum(self.epochs.values()) + stage) / n)

    @property
    def seconds_per_epoch(self) -> float:
        return self.speeds[1] / self.speeds[0]

    def seconds_left(self) -> float | None:
        epochs, seconds = self.speeds
        if epochs < LEAST_EPOCHS or seconds < LEAST_SECONDS:
            return None
        return self.epochs_left() * self.seconds_per_epoch
