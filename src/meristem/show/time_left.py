"""The time left of trainings, from those that have ended and the plan of a search; progress.py and benchmarks/eta.py import it.

    forecast = Forecast(900)                                       a first guess: 900 epochs in all
    forecast.announced = 12, 0; forecast.begin(settings, now)      members begin; about 12 trainings to the end follow
    forecast.update(member, info, epochs, now); forecast.range(now) → (11.2, 13.5), or None while unknown

    time left = epochs left · seconds an epoch + compiling left

A member goes on as long as those that ended in its stage of the search, or in the one before, went on from its stage of the
schedule. Of several settings those leave that are behind, where others left before. Speed is that of the later half of a part
(of the fit), without the gaps in which programs compile. Larger networks take longer by their size, and their programs by a
factor that is announced with them. The range is the time left without what is not decided yet, and with it: larger networks
that are only possible, and trainings that may follow. Constants are from 24 searches, seed 11, and how often estimates are
right on others is in results/log/2026-11-20-time-left-planned.md.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from statistics import fmean
from typing import Any

from meristem.show.part_speed import PartSpeed
from meristem.train.callbacks import LargerNetworks

BEYOND = 0.1  # of its epochs a member goes on at least, once it has more than any that ended
SETTLES = 0.35  # the time in which later programs compile, relative to the first, until it is known
ROOM = "room-"  # begins the name of a part with larger networks
FIRST_RUNG = 16  # epochs; where one trains for longer before others begin, none leaves
TO_THE_END, LATER_ENDS = 1.0, 1.7  # settings of several that are trained to their end; in later stages more are promising
LEAST = 0.7  # of the trainings that follow the first stage, if one setting of each is trained to its end
SHORT = 0.15  # the share of a training of each other one
SLOWER = 0.75  # the power of the size of a room that an epoch's time is proportional to
AGAIN = 1.1  # of a trial of larger networks may follow for neighboring penalties
LIKELY = 1 / 3  # the weight of what is not decided: it follows less often than not
CLOSE = 1.5**1.5  # two times of which a weighted middle is within a factor of 1.5 of both
SETTLING = 1.5  # epochs of the first stage of a schedule that take as long as one of a later stage, in which gates close
OWN, LATER = 3, 0.7  # trainings of a stage, after which only these count; those after the first stage take this share
GUESSED = 2.0  # trainings that the first guess counts as


@dataclass
class _Member:
    """A member of the current stage."""

    setting: tuple[float, ...] = ()
    fold: int = 0
    dropout: float = 0.0
    epochs: float = 0.0
    work: float = 0.0  # the same in epochs of the first stage
    stages: list[float] = field(default_factory=lambda: [0.0])  # the work before each stage of its schedule
    is_running: bool = True


class Forecast:
    """Counts epochs of the members of one stage after another, and the time that they take."""

    def __init__(self, epochs: float, most_epochs: float = inf):
        self.guess, self.later, self.possible = epochs, 0.0, 0.0  # epochs in all; trainings that follow this stage, or may
        self.most_epochs = most_epochs  # of a training
        self.announced: tuple[float, float] | None = None  # trainings that follow the next stage, and that may, too
        self.larger: LargerNetworks | None = None  # that may follow
        self.members: dict[int, _Member] = {}
        self.ended: list[list[float]] = []  # the work before each stage of members that stopped, and in all
        self.before: list[list[float]] = []  # the same of the stage before
        self.left_at: list[float] = []  # epochs at which members left
        self.earlier = self.last = 0.0  # epochs of earlier stages; the time of the last one
        self.parts: list[PartSpeed] = []
        self.latest: list[int] = []  # members of the last epochs
        self.usual: float | None = None  # the epochs of a training, by the guess
        self.has_dropout = self.is_program_new = False  # a member with dropout has a program of its own
        self.is_later = self.may_leave = False  # a later stage of the same part; a trial of larger networks that may end early

    def begin(self, settings: Mapping[int, Mapping[str, float]], now: float, *, part: str | None = None) -> None:
        """Begin a stage of these members: those of the stage before have ended. `part` is the name of a new part of the fit."""
        self.earlier, is_larger = self.done, str(part).startswith(ROOM)
        self.is_later = part is None and bool(self.ended or self.before)
        self.may_leave = is_larger and self.larger is not None and self.larger.is_sure
        if len(self.ended) >= OWN:
            share = 1.0 if self.before else LATER
            self.before, self.ended = [[share * work for work in ended] for ended in self.ended], []
        members = {m: _member_of(own) for m, own in settings.items()}
        if part is not None or not self.parts:
            usual, larger = self.seconds_per_epoch, self.larger if is_larger else None
            if usual is not None:
                at_once = len(set(self.latest))
                usual *= at_once / max(1, min(at_once, len(members))) * (larger.size**SLOWER if larger else 1.0)
            begun = bool(self.parts) and self.parts[-1].first is not None
            new = PartSpeed(usual, larger.compiling * self._first_compiling() if larger else 0.0) if begun else PartSpeed(None)
            self.parts, self.last = [*self.parts, new] if begun else [new], now
            self.larger = None if is_larger else self.larger
        self.members = members
        has_dropout = any(own.dropout for own in members.values())
        self.is_program_new = has_dropout and not self.has_dropout and self.parts[-1].first is not None
        self.has_dropout |= has_dropout
        self.later, self.possible = self.announced or (max(0.0, self.later - self._trainings()), 0.0)
        if members and self.usual is None:
            self.usual = self.guess / (len(members) + self.later)
        self.announced, self.latest = None, []

    def update(self, member: int, epochs: float, now: float, info: Any = None) -> None:
        """Set the epochs of a member, with the finished share of the current one; `info` is that of the last whole one."""
        own = self.members.setdefault(member, _Member())
        work = (epochs - own.epochs) * (SETTLING if len(own.stages) > 1 else 1.0)
        self.parts[-1].add(work, now - self.last, is_new=self.is_program_new)
        self.is_program_new = False
        self.last, own.epochs, own.work = now, epochs, own.work + work
        self.latest = [*self.latest[-2 * len(self.members) :], member]
        if info is None:
            return
        own.stages += [own.work] * (int(info.stage) + 1 - len(own.stages))
        if (bool(info.stopped) or epochs >= self.most_epochs) and own.is_running:
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

    def range(self, now: float) -> tuple[float, float] | None:
        """Return the time left without what is not decided yet, and with it; None while it is unknown."""
        speed = self.seconds_per_epoch
        if speed is None or not self.members:
            return None
        is_first = not self.before
        full = self._full() * speed * (LATER if is_first else 1.0)
        compiling, most = self._compiling_left(), self.later + self.possible
        ends = [
            self._least_left() * speed + (LEAST if is_first else 1.0) * self.later * full,
            self._stage_left() * speed + most * full,
        ]
        ends = [compiling + left for left in ends]
        if self.larger is not None:
            n, slower = len(self.members) / self._n_settings(), self.larger.size**SLOWER
            trial = self.larger.compiling * self._first_compiling() + (n * slower + min(self.later, n) * (slower - 1)) * full
            ends[1] += trial + (AGAIN * n * slower * full if n > 1 else 0.0)
            if self.larger.is_sure:
                ends[0] += self.larger.compiling * self._first_compiling() + n * slower * min(self._first_rung() * speed, full)
        low, high = (max(seconds - (now - self.last), BEYOND * seconds) for seconds in ends)
        return low, high

    def _n_settings(self) -> int:
        """Return how many settings compete in a fold."""
        settings = {(own.fold, own.setting) for own in self.members.values()}
        return max(Counter(fold for fold, _ in settings).values(), default=1)

    def _trainings(self) -> float:
        """Return how many trainings to the end the members of this stage are."""
        settings = self._n_settings()
        return trainings(settings, max(1, len(self.members)) / settings)

    def _full(self) -> float:
        """Return the work of a training to the end: the mean of those that ended, with a guess while they are few."""
        ended = self._samples()
        guess = self.guess / max(1, len(self.members)) if self.usual is None else self.usual
        weight = GUESSED if len(ended) < OWN else 0.0
        return (sum(own[-1] for own in ended) + weight * guess) / (len(ended) + weight)

    def _samples(self) -> list[list[float]]:
        """Return the trainings that ended in this stage, in the one before while they are few."""
        return self.ended if len(self.ended) >= OWN or not self.before else self.before

    def _left(self, own: _Member) -> float:
        """Return the work of a member to its end."""
        stage = len(own.stages) - 1
        taken = own.work - own.stages[stage]
        samples = [ended[-1] - ended[stage] for ended in self._samples() if len(ended) > stage + 1]
        longer = [sample - taken for sample in samples if sample > taken]
        expected = fmean(longer) if longer else 0.0 if samples else self._full() - own.work
        return max(expected, BEYOND * own.work)

    def _stage_left(self, later_ends: float = LATER_ENDS) -> float:
        """Return the epochs that are left of this stage, of which some members leave."""
        running = [own for own in self.members.values() if own.is_running]
        if not running:
            return 0.0
        ends = later_ends if self.is_later else TO_THE_END
        n_stay, left = ends * len(self.members) / self._n_settings(), [self._left(own) for own in running]
        fewest, most = min(own.work for own in running), max(own.work for own in self.members.values())
        none_leaves = not self.left_at and (most > FIRST_RUNG and not fewest)
        if self._n_settings() == 1 or len(running) <= n_stay or none_leaves or fewest > max(self.left_at, default=inf):
            return sum(left)
        leave_at = fmean(self.left_at) if self.left_at else SHORT * self._full()
        short = fmean(max(0.0, leave_at - own.work) for own in running)
        return n_stay * fmean(left) + (len(running) - n_stay) * short

    def _first_rung(self) -> float:
        """Return the work at which settings are first compared."""
        return min(self.left_at, default=FIRST_RUNG)

    def _least_left(self) -> float:
        """Return the work that is left of this stage if one setting is trained to its end, and larger networks leave early."""
        left, rung, works = self._stage_left(TO_THE_END), self._first_rung(), [own.work for own in self.members.values()]
        return min(left, sum(max(0.0, rung - work) for work in works)) if self.may_leave and max(works) <= rung else left

    def _first_compiling(self) -> float:
        """Return the seconds in which the programs of the first networks compile."""
        return (self.parts[0].first or 0.0) + self._gaps()

    def _gaps(self) -> float:
        """Return the seconds of later gaps of the first networks: what they were, if members ended."""
        first = self.parts[0]
        return first.gaps if len(self.parts) > 1 or self.ended else max(first.gaps, SETTLES * (first.first or 0.0))

    def _compiling_left(self) -> float:
        part = self.parts[-1]
        if part.compiling and part.first is None:
            return part.compiling
        if self.is_program_new:
            return part.first or 0.0
        if part.compiling:
            expected = part.compiling - (part.first or 0.0)
            is_known = any(not own.is_running for own in self.members.values())
        else:
            expected, is_known = self._gaps(), bool(self.ended) or len(self.parts) > 1
        return 0.0 if is_known else max(0.0, expected - part.gaps)


def _member_of(setting: Mapping[str, float]) -> _Member:
    values = tuple(value for name, value in setting.items() if name not in ("fold", "seed"))
    return _Member(values, int(setting.get("fold", 0)), setting.get("dropout", 0.0))


def middle(low: float, high: float) -> float:
    """Return the one time that stands for a range: nearer to its lower end, which is more frequent.

    >>> round(middle(10, 20), 1)
    12.6
    """
    return low ** (1 - LIKELY) * high**LIKELY


def trainings(settings: int, folds: float) -> float:
    """Return how many trainings to the end the settings of a later stage of a search are, of which some leave early.

    >>> trainings(1, 5), round(trainings(4, 5), 3)
    (5.0, 10.225)
    """
    return folds * float(settings if settings < 2 else LATER_ENDS + SHORT * (settings - LATER_ENDS))
