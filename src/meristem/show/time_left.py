"""The time left of trainings, from the epochs of those that have ended; progress.py and benchmarks/eta.py import it.

    forecast = Forecast(900)                                       a first guess: 900 epochs in all
    forecast.announced = 12; forecast.begin(settings, now)         members begin; about 12 trainings to the end follow
    forecast.update(member, info, epochs, now); forecast.seconds_left(now) → 12.3, or None while unknown

    time left = epochs left · seconds an epoch + compiling left + a larger room, if that is likely

A member goes on as long as those that had ended went on from where it is: from its stage of the schedule, if they were in it
for longer. Of several settings those leave that are behind, where others left before, until one or two remain. Speed is that of
the later half of a part (of the fit), without the gaps in which programs compile; a larger room is expected to compile as long
as the first, and to be slower by its size. It follows if the members of the best setting are crowded; settings are compared at
the epochs that all of them have reached, and one with a lower penalty closes fewer units than the best one before did: the
square root of the share stays open. The constants were chosen by runs on seven tables (results/log/2026-11-18-time-left.md).
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from statistics import fmean
from typing import Any

LEAST_EPOCHS, LEAST_SECONDS = 8.0, 0.5  # of training, from which a speed is measured
BEYOND = 0.1  # of its epochs a member goes on at least, once it has more than any that ended
COMPILES, LEAST_COMPILING = 8.0, 0.4  # a gap is compiling if it is so many times as long as usual, and so many seconds
SETTLES = 0.45  # the time in which later programs compile, relative to the first, until it is known
ROOM = "room-"  # begins the name of a part with larger networks
FIRST_RUNG = 16  # epochs; where one trains for longer before others begin, none leaves
TO_THE_END, SHORT = 1.1, 0.15  # settings of several that are trained to their end; the share of a training of each other one
SLOWER = 0.65  # the power of the size of a room that an epoch's time is proportional to
AGAIN = 1.1  # of a trial in a larger room follows for neighboring penalties
SETTLING = 1.5  # epochs of the first stage of a schedule that take as long as one of a later stage, in which gates close
GUESSED = 2.0  # trainings that the first guess counts as
OWN, LATER = 3, 0.8  # members of a stage, after which only these count; before, those of a later stage take this share
MOST_MARKS = 4096


@dataclass
class _Member:
    """A member of the current stage."""

    setting: tuple[float, ...] = ()
    epochs: float = 0.0
    work: float = 0.0  # the same in epochs of the first stage
    stages: list[float] = field(default_factory=lambda: [0.0])  # the work before each stage of its schedule
    is_running: bool = True
    units: float = 0.0  # that are open
    most_units: float = 0.0
    least_losses: list[float] = field(default_factory=list)  # of held-out rows, after each epoch
    final: float = inf  # the least since gates close

    def final_units(self, stays: float) -> float:
        """Return the units that will be open, if this share of the most units stays open."""
        return min(self.units, stays * self.most_units) if self.is_running else self.units


@dataclass
class _Part:
    """The speed of a part of a fit."""

    expected: float | None  # seconds an epoch, before it is measured
    compiling: float = 0.0  # seconds that are expected before its first epoch
    first: float | None = None  # seconds before its first epoch
    gaps: float = 0.0  # seconds of later gaps
    marks: list[tuple[float, float]] = field(default_factory=lambda: [(0.0, 0.0)])  # epochs and seconds without gaps

    def add(self, epochs: float, gap: float) -> None:
        """Count epochs that ended after a gap."""
        if self.first is None:
            self.first, gap = gap, 0.0
        usual = self.seconds_per_epoch
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


class Forecast:
    """Counts epochs of the members of one stage after another, and the time that they take."""

    def __init__(self, epochs: float):
        self.guess, self.later = epochs, 0.0  # epochs in all; trainings to the end that follow this stage
        self.announced: float | None = None  # that follow the next stage
        self.members: dict[int, _Member] = {}
        self.best: list[list[_Member]] = []  # settings of earlier stages in this room that were trained to the end
        self.ended: list[list[float]] = []  # epochs at which the stages of a member began that stopped, and in all
        self.n_before = 0  # of these, of earlier stages
        self.left_at: list[float] = []  # epochs at which members left
        self.earlier = self.last = 0.0  # epochs of earlier stages; the time of the last one
        self.parts: list[_Part] = []
        self.latest: list[int] = []  # members of the last epochs
        self.usual: float | None = None  # epochs of a training, by the guess
        self.room = inf, 1.0  # open units beyond which larger networks follow, and their relative size

    def begin(self, settings: Mapping[int, Mapping[str, float]], now: float, *, part: str | None = None) -> None:
        """Begin a stage of these members: those of the stage before have ended. `part` is the name of a new part of the fit."""
        self.earlier = self.done
        self.best = [] if part else self.best + [own for own in self._by_setting() if own[0].stages[-1]]
        if part is not None or not self.parts:
            usual, is_larger = self.seconds_per_epoch, str(part).startswith(ROOM)
            if usual is not None:
                at_once = len(set(self.latest))
                usual *= at_once / max(1, min(at_once, len(settings))) * (self.room[1] ** SLOWER if is_larger else 1.0)
            begun = bool(self.parts) and self.parts[-1].first is not None
            self.parts = [*self.parts, _Part(usual, self._compiling() if is_larger else 0.0)] if begun else [_Part(None)]
            self.last, self.room = now, (inf, 1.0) if is_larger else self.room
        values = {m: [value for name, value in own.items() if name not in ("fold", "seed")] for m, own in settings.items()}
        self.members, self.n_before = {m: _Member(tuple(own)) for m, own in values.items()}, len(self.ended)
        self.later = max(0.0, self.later - self._trainings()) if self.announced is None else self.announced
        if settings and self.usual is None:
            self.usual = self.guess / (len(settings) + self.later)
        self.announced, self.latest = None, []

    def update(self, member: int, epochs: float, now: float, info: Any = None) -> None:
        """Set the epochs of a member, with the finished share of the current one; `info` is that of the last whole one."""
        own, part = self.members.setdefault(member, _Member()), self.parts[-1]
        work = (epochs - own.epochs) * (SETTLING if len(own.stages) > 1 else 1.0)
        part.add(work, now - self.last)
        self.last, own.epochs, own.work = now, epochs, own.work + work
        self.latest = [*self.latest[-2 * len(self.members) :], member]
        if info is None:
            return
        own.stages += [own.work] * (int(info.stage) + 1 - len(own.stages))
        own.units, loss = float(info.hard_size), float(info.dev_loss)
        own.most_units = max(own.most_units, own.units)
        own.least_losses.append(min([loss if loss == loss else inf, *own.least_losses[-1:]]))
        own.final = min(own.final, own.least_losses[-1] if loss != loss else loss) if len(own.stages) > 1 else inf
        if bool(info.stopped) and own.is_running:
            own.is_running = False
            self.ended.append([*own.stages, own.work])

    def leave(self, members: Sequence[int]) -> None:
        for member in members:
            self.members[member].is_running = False
            self.left_at.append(self.members[member].work)

    @property
    def done(self) -> float:
        return self.earlier + sum(own.work for own in self.members.values())

    @property
    def seconds_per_epoch(self) -> float | None:
        return self.parts[-1].seconds_per_epoch if self.parts else None

    def epochs_left(self) -> float:
        """Return the epochs of this stage and those that are announced, as if all took as long as now."""
        return self._stage_left() + self.later * self._full()

    def seconds_left(self, now: float, *, enlarges: bool | None = None) -> float | None:
        """Return an estimate with or without larger networks, None: whichever is likely; None while it is unknown."""
        speed = self.seconds_per_epoch
        if speed is None or not self.members:
            return None
        left = self.epochs_left() * speed + self._compiling_left()
        if self.is_room_likely() if enlarges is None else enlarges:
            n, size = len(self.members) / self._n_settings(), self.room[1] ** SLOWER
            more = n * (1 + AGAIN * (n > 1)) * size + min(self.later, 1.0) * (size - 1)  # the replay is larger, too
            left += self._compiling() + more * self._full() * speed
        return max(left - (now - self.last), BEYOND * left)

    def is_room_likely(self) -> bool:
        """Return whether the members of the best setting are crowded: by final losses, or those expected from where all are."""
        if self.room[0] == inf:
            return False
        settings = self._by_setting()
        running = [own for own in settings if any(member.is_running for member in own)]
        ended = self.best + [own for own in settings if all(member.final < inf for member in own)]
        ended.sort(key=lambda own: fmean(member.final for member in own))
        every = [(fmean(member.final for member in own), own) for own in ended[:1]]
        if reached := min((len(member.least_losses) for own in running for member in own), default=0):
            gain = every[0][0] - _loss_at(ended[0], reached) if every else 0.0
            every += [(_loss_at(own, reached) + gain, own) for own in running]
        best = min(every, key=lambda pair: pair[0], default=(0.0, []))[1]
        stays = fmean(member.units / max(1.0, member.most_units) for member in ended[0]) ** 0.5 if ended else 1.0
        return bool(best) and all(member.final_units(stays) > self.room[0] for member in best)

    def _by_setting(self) -> list[list[_Member]]:
        settings: dict[tuple[float, ...], list[_Member]] = {}
        for own in self.members.values():
            settings.setdefault(own.setting, []).append(own)
        return list(settings.values())

    def _n_settings(self) -> int:
        return max(1, len(self._by_setting()))

    def _trainings(self) -> float:
        """Return how many trainings to the end the members of this stage are."""
        settings = self._n_settings()
        return trainings(settings, max(1, len(self.members)) / settings)

    def _full(self) -> float:
        """Return the work of a training to the end: the mean of those that ended, the shortest first, and of a guess."""
        guess = self.guess / max(1, len(self.members)) if self.usual is None else self.usual
        return (sum(own[-1] for own in self.ended) + GUESSED * guess) / (len(self.ended) + GUESSED)

    def _left(self, own: _Member) -> float:
        """Return the work of a member to its end."""
        stage = len(own.stages) - 1
        taken = own.work - own.stages[stage]
        is_later, of_stage = bool(self.best), self.ended[self.n_before :]
        every = of_stage if len(of_stage) >= OWN else self.ended
        samples = [ended[-1] - ended[stage] for ended in every if len(ended) > stage + 1]
        longer = [sample - taken for sample in samples if sample > taken]
        expected = fmean(longer) if longer else 0.0 if samples else self._full() - own.work
        return max(expected * (LATER if is_later and every is not of_stage else 1.0), BEYOND * own.work)

    def _stage_left(self) -> float:
        """Return the work that is left of this stage, of which some members leave."""
        running = [own for own in self.members.values() if own.is_running]
        if not running:
            return 0.0
        n_stay, left = TO_THE_END * len(self.members) / self._n_settings(), [self._left(own) for own in running]
        fewest, most = min(own.work for own in running), max(own.work for own in self.members.values())
        none_leaves = not self.left_at and (most > FIRST_RUNG and not fewest)
        if self._n_settings() == 1 or len(running) <= n_stay or none_leaves or fewest > max(self.left_at, default=inf):
            return sum(left)
        leave_at = fmean(self.left_at) if self.left_at else SHORT * self._full()
        short = fmean(max(0.0, leave_at - own.work) for own in running)
        return n_stay * fmean(left) + (len(running) - n_stay) * short

    def _compiling(self) -> float:
        """Return the seconds in which the programs of a room compile, from those of the first."""
        first = self.parts[0]
        return (first.first or 0.0) + self._gaps()

    def _gaps(self) -> float:
        """Return the seconds of later gaps of a room: those of the first, if members ended in it."""
        first = self.parts[0]
        return first.gaps if len(self.parts) > 1 or self.ended else max(first.gaps, SETTLES * (first.first or 0.0))

    def _compiling_left(self) -> float:
        part = self.parts[-1]
        if part.compiling and part.first is None:
            return part.compiling
        is_known = bool(self.ended) if len(self.parts) == 1 else not part.compiling or self._has_ended()
        return 0.0 if is_known else max(0.0, self._gaps() - part.gaps)

    def _has_ended(self) -> bool:
        return any(not own.is_running for own in self.members.values())


def _loss_at(setting: Sequence[_Member], epochs: int) -> float:
    """Return the mean of the least losses of members after so many epochs."""
    return fmean(own.least_losses[min(epochs, len(own.least_losses)) - 1] for own in setting)


def trainings(settings: int, folds: float) -> float:
    """Return how many trainings to the end settings of a search are, of which most leave early.

    >>> trainings(1, 5), round(trainings(4, 5), 3)
    (5.0, 7.675)
    """
    return folds * float(settings if settings < 2 else TO_THE_END + SHORT * (settings - TO_THE_END))
