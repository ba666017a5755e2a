"""What a path found: a row for each member, a point for each setting, and which point to take.

    path.table           name → [members]: penalty, l2, dropout, learning_rate, fold, seed, loss, error, n_parameters, …
    path.best()          the point of the best mean score on rows that were held out
    path.within_one_se() the largest penalty whose score is within one standard error of that, paired fold by fold
    path.frontier()      the points that none beats: none is as small and scores better, or as good and smaller
    path.at(penalty)     the best point at the penalty that is nearest

The score of a member is its held-out loss with the sign turned, or what someone asked for (`score` in the table). That of a
point that left the search early is of fewer epochs, before its networks had settled: `best`, `within_one_se` and `frontier`
compare only points that were trained to their end, unless all left, and `at` takes another only where all of its price left.

The standard error is that of the mean difference to the best point over folds and seeds: what all settings find hard in a fold
says nothing about which of them is better. Plain data, NumPy alone; picture.py draws it.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from meristem.nn.network import Network
from meristem.paths.members import COLUMNS, KNOBS, Members


@dataclass(frozen=True)
class Point:
    """A setting, and what its members came to."""

    penalty: float
    l2: float
    dropout: float
    learning_rate: float
    loss: float  # mean over folds and seeds, on rows held out
    score: float  # the same of what points are chosen by; more is better
    standard_error: float  # of the score's difference to the best point; 0 for the best itself, or with a single member
    error: float
    n_parameters: float  # mean
    members: tuple[int, ...]  # rows of the table
    is_finished: bool  # whether all of them were trained to their end; else it left early, and its score is not comparable

    @property
    def knobs(self) -> dict[str, float]:
        """Its setting by name."""
        return {name: getattr(self, name) for name in KNOBS}


@dataclass(frozen=True, eq=False)
class Path:
    """See the module's header. `networks` are the members' best, `layer_sizes` [members, layers] their soft sizes."""

    table: dict[str, np.ndarray]
    networks: tuple[Network, ...] = field(repr=False)
    layer_sizes: np.ndarray = field(repr=False)
    seconds: float = 0.0

    @property
    def points(self) -> list[Point]:
        """A point for each setting, from the smallest penalty to the largest."""
        members = Members(**{name: self.table[name] for name in COLUMNS})
        groups = [np.flatnonzero(members.settings == number) for number in range(members.settings.max() + 1)]
        scores = [self.scores[rows] for rows in groups]
        done = [bool(self._is_finished[rows].all()) for rows in groups]
        best = max(range(len(groups)), key=lambda number: (done[number], np.mean(scores[number])))
        return [
            Point(
                **{name: float(getattr(members, name)[rows[0]]) for name in KNOBS},
                loss=float(np.mean(self.table["loss"][rows])),
                score=float(np.mean(score)),
                standard_error=_paired_error(score, scores[best]),
                error=float(np.mean(self.table["error"][rows])),
                n_parameters=float(np.mean(self.table["n_parameters"][rows])),
                members=tuple(rows.tolist()),
                is_finished=is_done,
            )
            for rows, score, is_done in zip(groups, scores, done, strict=True)
        ]

    @property
    def scores(self) -> np.ndarray:
        """Of each member; more is better."""
        return self.table["score"] if "score" in self.table else -self.table["loss"]

    @property
    def _is_finished(self) -> np.ndarray:
        """Which members were trained to their end."""
        return self.table.get("finished", np.ones(len(self.table["loss"]), bool))

    def best(self) -> Point:
        """The point of the best score, of those that were trained to their end; of equals the one with the largest penalty."""
        return max(self.finished, key=lambda point: (point.score, point.penalty))

    @property
    def finished(self) -> list[Point]:
        """The points that did not leave early; if all did, all."""
        points = self.points
        return [point for point in points if point.is_finished] or points

    def within_one_se(self) -> Point:
        """Of the points that differ from the best in their penalty alone: the largest that is not clearly worse."""
        best = self.best()
        others = [name for name in KNOBS if name != "penalty"]
        alike = [point for point in self.finished if all(getattr(point, name) == getattr(best, name) for name in others)]
        fine = [point for point in alike if best.score - point.score <= point.standard_error]
        return max([best, *fine], key=lambda point: point.penalty)

    def stand_ins(self, point: Point) -> list[int]:
        """The members of a point; but one that failed where others did not gives its place to the best of its fold and seed.

        It failed if its loss is half again as much as the best one's or more, and farther from it than half of what lies
        between the best and the worst: some trainings stay where they began, and what they say would spoil a mean.
        """
        chosen = []
        for member in point.members:
            rows = np.flatnonzero(
                (self.table["fold"] == self.table["fold"][member]) & (self.table["seed"] == self.table["seed"][member])
            )
            loss = self.table["loss"][rows]
            done = rows[self._is_finished[rows]]
            best = int(done[np.argmin(self.table["loss"][done])]) if len(done) else member
            least = self.table["loss"][best]
            if not np.isfinite(least):  # all diverged
                chosen.append(member)
                continue
            behind, spread = self.table["loss"][member] - least, loss[np.isfinite(loss)].max(initial=least) - least
            chosen.append(best if behind > max(spread, abs(least)) / 2 else member)
        return chosen

    def at(self, penalty: float) -> Point:
        """The best point at the penalty that is nearest, by its logarithm; one that left early only where all there did."""
        points = self.points
        nearest = min({point.penalty for point in points}, key=lambda own: abs(_log(own) - _log(penalty)))
        return max((point for point in points if point.penalty == nearest), key=lambda point: (point.is_finished, point.score))

    def frontier(self) -> list[Point]:
        """Of the points that were trained to their end those that none beats, the smallest first.

        None is as small and has a better score, or has as good a score and is smaller.
        """
        found: list[Point] = []
        for point in sorted(self.finished, key=lambda point: (point.n_parameters, -point.score)):
            if not found or point.score > found[-1].score:
                found.append(point)
        return found

    def frame(self) -> Any:
        """The table as a pandas DataFrame."""
        from importlib import import_module

        return import_module("pandas").DataFrame(self.table)

    def _repr_html_(self) -> str:
        """In a notebook: a row for each setting; that of the best score is bold, those that left early are told."""
        from meristem.show.card import table

        points, best = self.points, self.best().members
        rows = [
            [f"{value:.3g}" for value in (*point.knobs.values(), point.loss, point.error)]
            + [f"{point.n_parameters:,.0f}", "yes" if point.is_finished else "no, its loss is not comparable"]
            for point in points
        ]
        return table(
            [*KNOBS, "loss", "error", "parameters", "trained to its end"],
            rows,
            marked=[place for place, point in enumerate(points) if point.members == best],
        )

    def plot_path(self, ax: Any = None) -> Any:
        """Draw loss and size against the penalty and return the Axes of the loss."""
        from meristem.paths.picture import plot_path

        return plot_path(self, ax=ax)

    def plot_frontier(self, ax: Any = None) -> Any:
        """Held-out loss, or score, against size: a dot for each setting trained to its end; those of `frontier` are rings."""
        from meristem.pictures.frontier_plot import draw_frontier

        points, drawn = self.finished, "score" if "score" in self.table else "loss"
        sizes, values, prices = ([getattr(point, name) for point in points] for name in ("n_parameters", drawn, "penalty"))
        places = {point.members: place for place, point in enumerate(points)}
        marked = [places[point.members] for point in self.frontier()]
        return draw_frontier(sizes, values, marked, ylabel=f"held-out {drawn}", colors=prices, ax=ax)


def _paired_error(scores: np.ndarray, of_best: np.ndarray) -> float:
    """The standard error of the mean difference, member by member."""
    with np.errstate(invalid="ignore"):  # members that diverged are at −∞
        difference = scores - of_best
    if len(difference) < 2 or not np.isfinite(difference).all():
        return 0.0
    return float(difference.std(ddof=1) / np.sqrt(len(difference)))


def _log(value: float) -> float:
    return float(np.log(max(value, 1e-300)))
