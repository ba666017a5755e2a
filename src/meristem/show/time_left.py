"""The time left of trainings, from the epochs of those that have ended; progress.py and benchmarks/eta.py import it.

    forecast = Forecast(900)                                       a first guess: 900 epochs in all
    forecast.announced = 12; forecast.begin(settings, now)         members begin; about 12 trainings to the end follow
    forecast.update(member, info, epochs, now); forecast.seconds_left(now) → 12.3, or None while unknown

    time left = work left · seconds an epoch + compiling left

A member goes on as long as those that had ended went on from where it is: from its stage of the schedule, if they were in it
for longer. Of several settings those leave that are behind, where others left before, until one or two remain. Speed is that of
the later half of a part (of the fit), without the gaps in which programs compile; a larger room is expected to compile longer
than the first, and to be slower by its size. Whether one follows is decided by the last stage of a search, and takes more than
half of it, so that before its first third nobody knows: the estimate is that without it, and the alternative the other one.
Neighboring penalties follow in a larger room if its networks are clearly better than those of the same folds before, which is
foreseen from the folds that have ended. The constants were chosen by runs on 17 tables
(results/log/2026-11-18-time-left.md, 2026-11-19-time-left-again.md, 2026-11-19-time-left-simpler.md).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from statistics import NormalDist, fmean, stdev
from typing import Any

from meristem.show.part_speed import PartSpeed

BEYOND = 0.1  # of its epochs a member goes on at least, once it has more than any that ended
SETTLES = 0.45  # the time in which later programs compile, relative to the first, until it is known
ROOM = "room-"  # begins the name of a part with larger networks
FIRST_RUNG = 16  # epochs; where one trains for longer before others begin, none leaves
TO_THE_END, LATER_ENDS = 1.0, 1.7  # settings of several that are trained to their end; in later stages more are promising
SHORT = 0.15  # the share of a training of each other one
LARGER = 1.6  # times as long programs of a larger room compile
LONGER = 1.1  # times as much work is a training of the same setting there
SLOWER = 0.65  # the power of the size of a room that an epoch's time is proportional to
AGAIN = 1.1  # of a trial in a larger room follows for neighboring penalties, if it is better
EVEN, SURE = 0.5, 0.05  # the chance of that, while nothing is known, and from which on it does not matter
CLOSE = 1.5**2  # two times whose middle is within a factor of 1.5 of both
SETTLING = 1.5  # epochs of the first stage of a schedule that take as long as one of a later stage, in which gates close
GUESSED = 2.0  # trainings that the first guess counts as
OWN, LATER = 3, 0.7  # members of a stage, after which only these count; before, those of a later stage take this share


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
    loss: float = inf  # the least of held-out rows since gates close


class Forecast:
    """Counts epochs of the members of one stage after another, and the time that they take."""

    def __init__(self, epochs: float, most_epochs: float = inf):
        self.guess, self.later = epochs, 0.0  # epochs in all; trainings to the end that follow this stage
        self.most_epochs = most_epochs  # of a training
        self.announced: float | None = None  # that follow the next stage
        self.members: dict[int, _Member] = {}
        self.ended: list[list[float]] = []  # the work at which the stages of a member began that stopped, and in all
        self.n_before = 0  # of these, of earlier stages
        self.left_at: list[float] = []  # work at which members left
        self.earlier = self.last = 0.0  # work of earlier stages; the time of the last one
        self.parts: list[PartSpeed] = []
        self.latest: list[int] = []  # members of the last epochs
        self.usual: float | None = None  # the work of a training, by the guess
        self.growth = 1.0  # the size of the next room relative to this one; 1: no larger one follows
        self.has_dropout = self.is_program_new = False  # a member with dropout has a program of its own
        self.is_larger = self.is_later = False  # than the first room; a later stage of it
        self.of_room: dict[tuple[Any, ...], _Member] = {}  # by setting and fold: members of this room
        self.smaller: list[tuple[_Member, _Member]] = []  # each of a trial in a larger room, and the same in the one before

    def begin(self, settings: Mapping[int, Mapping[str, float]], now: float, *, part: str | None = None) -> None:
        """Begin a stage of these members: those of the stage before have ended. `part` is the name of a new part of the fit."""
        self.earlier, is_larger = self.done, str(part).startswith(ROOM)
        self.is_larger = is_larger or (part is None and self.is_larger)
        self.is_later = part is None and any(own.work for own in self.of_room.values())
        members = {m: _member_of(own) for m, own in settings.items()}
        pairs = [(self.of_room.get((own.setting, own.fold)), own) for own in members.values()]
        self.smaller = [(before, own) for before, own in pairs if before is not None] if is_larger and len(members) > 1 else []
        if part is not None or not self.parts:
            usual = self.seconds_per_epoch
            if usual is not None:
                at_once = len(set(self.latest))
                usual *= at_once / max(1, min(at_once, len(members))) * (self.growth**SLOWER if is_larger else 1.0)
            begun = bool(self.parts) and self.parts[-1].first is not None
            new = PartSpeed(usual, self._compiling() if is_larger else 0.0) if begun else PartSpeed(None)
            self.parts, self.last = [*self.parts, new] if begun else [new], now
            self.of_room, self.growth = {}, 1.0 if is_larger else self.growth
        self.members, self.n_before = members, len(self.ended)
        self.of_room |= {(own.setting, own.fold): own for own in members.values()}
        has_dropout = any(own.dropout for own in members.values())
        self.is_program_new = has_dropout and not self.has_dropout and self.parts[-1].first is not None
        self.has_dropout |= has_dropout
        self.later = max(0.0, self.later - self._trainings()) if self.announced is None else self.announced
        if members and self.usual is None:
            self.usual = self.guess / (len(members) + self.later)
        self.announced, self.latest = None, []

    def update(self, member: int, epochs: float, now: float, info: Any = None) -> None:
        """Set the epochs of a member, with the finished share of the current one; `info` is that of the last whole one."""
        own, part = self.members.setdefault(member, _Member()), self.parts[-1]
        work = (epochs - own.epochs) * (SETTLING if len(own.stages) > 1 else 1.0)
        part.add(work, now - self.last, is_new=self.is_program_new)
        self.is_program_new = False
        self.last, own.epochs, own.work = now, epochs, own.work + work
        self.latest = [*self.latest[-2 * len(self.members) :], member]
        if info is None:
            return
        own.stages += [own.work] * (int(info.stage) + 1 - len(own.stages))
        if len(own.stages) > 1 and (loss := float(info.dev_loss)) == loss:
            own.loss = min(own.loss, loss)
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
        return self._stage_left() + self._later(EVEN) * self._full()

    def seconds_left(self, now: float) -> float | None:
        """Return an estimate: of two outcomes the middle if they are close, else the likelier; None while it is unknown."""
        both = self._outcomes(now)
        return None if both is None else (both[0] * both[1]) ** 0.5 if _are_close(*both) else both[0]

    def alternative(self, now: float) -> tuple[float, str] | None:
        """Return the estimate of the less likely outcome, and what it is, or None if it hardly differs."""
        both = self._outcomes(now)
        if both is None or _are_close(*both):
            return None
        what = "more penalties" if self.smaller else "larger networks"
        return both[1], f"{'with' if both[1] > both[0] else 'without'} {what}"

    def _outcomes(self, now: float) -> tuple[float, float] | None:
        """Return the time left if the likelier outcome of what is open comes true, and if the other one does."""
        if self.seconds_per_epoch is None or not self.members:
            return None
        if self.smaller:
            chance = self.chance_of_neighbors()
            likelier = float(chance >= 0.5)
            each = [(False, likelier), (False, 1 - likelier if SURE < chance < 1 - SURE else likelier)]
        else:
            each = [(False, EVEN), (self.growth > 1, EVEN)]
        left = [self._seconds(enlarges, neighbors) for enlarges, neighbors in each]
        first, other = (max(seconds - (now - self.last), BEYOND * seconds) for seconds in left)
        return first, other

    def _seconds(self, enlarges: bool, neighbors: float) -> float:
        """Return the time left with or without a larger room, and with a share of its neighboring penalties."""
        speed = self.seconds_per_epoch or 0.0
        left = (self._stage_left() + self._later(neighbors) * self._full()) * speed + self._compiling_left()
        if enlarges:
            n, slower = len(self.members) / self._n_settings(), self.growth**SLOWER
            more = n * (1 + neighbors * AGAIN * (n > 1)) * slower + min(self.later, n) * (slower - 1)  # what follows is larger
            left += self._compiling() + more * self._full() * speed
        return left

    def chance_of_neighbors(self) -> float:
        """Return how likely neighboring penalties follow in a larger room: by the gains of the folds that have ended."""
        gains = [before.loss - own.loss for before, own in self.smaller if not own.is_running]
        gains = [gain for gain in gains if abs(gain) < inf]
        if len(gains) < 2 or not (error := stdev(gains) / len(gains) ** 0.5):
            return EVEN
        return NormalDist().cdf(fmean(gains) / error - 1)  # they follow from one standard error on

    def _later(self, neighbors: float) -> float:
        """Return the trainings that follow this stage, with a share of neighboring penalties in a larger room."""
        return max(0.0, self.later - (1 - neighbors) * AGAIN * len(self.members)) if self.smaller else self.later

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
        if self.smaller:
            return LONGER * fmean(before.work for before, _ in self.smaller)
        guess = self.guess / max(1, len(self.members)) if self.usual is None else self.usual
        weight = GUESSED if len(self.ended) < OWN else 0.0
        return (sum(own[-1] for own in self.ended) + weight * guess) / (len(self.ended) + weight)

    def _left(self, own: _Member) -> float:
        """Return the work of a member to its end."""
        stage = len(own.stages) - 1
        taken, of_stage = own.work - own.stages[stage], self.ended[self.n_before :]
        every = of_stage if len(of_stage) >= OWN else self.ended
        if self.smaller and every is not of_stage:  # the same setting, in networks of another size
            of_before = [[*before.stages, before.work] for before, _ in self.smaller if before.stages[-1]]
            every = [[LONGER * work for work in before] for before in of_before]
        samples = [ended[-1] - ended[stage] for ended in every if len(ended) > stage + 1]
        longer = [sample - taken for sample in samples if sample > taken]
        expected = fmean(longer) if longer else 0.0 if samples else self._full() - own.work
        is_shorter = self.is_later and not self.is_larger and every is not of_stage
        return max(expected * (LATER if is_shorter else 1.0), BEYOND * own.work)

    def _stage_left(self) -> float:
        """Return the work that is left of this stage, of which some members leave."""
        running = [own for own in self.members.values() if own.is_running]
        if not running:
            return 0.0
        ends = LATER_ENDS if self.is_later else TO_THE_END
        n_stay, left = ends * len(self.members) / self._n_settings(), [self._left(own) for own in running]
        fewest, most = min(own.work for own in running), max(own.work for own in self.members.values())
        none_leaves = not self.left_at and (most > FIRST_RUNG and not fewest)
        if self._n_settings() == 1 or len(running) <= n_stay or none_leaves or fewest > max(self.left_at, default=inf):
            return sum(left)
        leave_at = fmean(self.left_at) if self.left_at else SHORT * self._full()
        short = fmean(max(0.0, leave_at - own.work) for own in running)
        return n_stay * fmean(left) + (len(running) - n_stay) * short

    def _compiling(self) -> float:
        """Return the seconds in which the programs of a larger room compile, from those of the first."""
        return LARGER * ((self.parts[0].first or 0.0) + self._gaps())

    def _gaps(self) -> float:
        """Return the seconds of later gaps of the first room: what they were, if members ended in it."""
        first = self.parts[0]
        return first.gaps if len(self.parts) > 1 or self.ended else max(first.gaps, SETTLES * (first.first or 0.0))

    def _compiling_left(self) -> float:
        part = self.parts[-1]
        if part.compiling and part.first is None:
            return part.compiling
        if self.is_program_new:
            return part.first or 0.0
        is_known = bool(self.ended) if len(self.parts) == 1 else not part.compiling or self._has_ended()
        return 0.0 if is_known else max(0.0, (LARGER if part.compiling else 1.0) * self._gaps() - part.gaps)

    def _has_ended(self) -> bool:
        return any(not own.is_running for own in self.members.values())


def _member_of(setting: Mapping[str, float]) -> _Member:
    values = tuple(value for name, value in setting.items() if name not in ("fold", "seed"))
    return _Member(values, int(setting.get("fold", 0)), setting.get("dropout", 0.0))


def _are_close(first: float, other: float) -> bool:
    return max(first, other) <= CLOSE * min(first, other)


def trainings(settings: int, folds: float) -> float:
    """Return how many trainings to the end the settings of a later stage of a search are, of which some leave early.

    >>> trainings(1, 5), round(trainings(4, 5), 3)
    (5.0, 10.225)
    """
    return folds * float(settings if settings < 2 else LATER_ENDS + SHORT * (settings - LATER_ENDS))
