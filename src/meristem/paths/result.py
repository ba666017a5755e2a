"""The results of a path: a row for each member, a point for each setting, and the choice of a point.

The score of a member is its negative held-out loss, or that of `scoring` (the column `score`). Settings that stopped early were
measured before their networks had settled: `best`, `within_one_se` and `frontier` compare only points trained to their end,
unless all stopped early.

The standard error is that of the mean difference to the best point over folds and seeds: the difficulty of a fold is the same
for all settings. Plain data, NumPy alone; picture.py draws it.
"""

import warnings
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from meristem.nn.network import Network
from meristem.paths.members import COLUMNS, KNOBS, settings_of


@dataclass(frozen=True)
class Point:
    """A setting, and the means over its members."""

    penalty: float
    l2: float
    dropout: float
    learning_rate: float
    loss: float  # held-out, mean over folds and seeds
    score: float  # mean; more is better
    standard_error: float  # of the difference to the best point's score; 0 for the best itself, or with a single member
    error: float
    n_parameters: float  # mean
    members: tuple[int, ...]  # their rows in the table
    is_finished: bool  # whether all were trained to their end; else the score is not comparable

    knobs = property(lambda self: {name: getattr(self, name) for name in KNOBS})  # the setting by name


@dataclass(frozen=True, eq=False)
class Path:
    """What was trained along a path of penalties.

    table           name → [members]: penalty, l2, dropout, learning_rate, fold, seed, loss, error, n_parameters, …; with a
                    `scoring` also score, and of an estimator constant_loss, that of the best constant prediction
    networks        the members' best networks
    layer_sizes     their soft sizes, [members, layers]
    """

    table: dict[str, np.ndarray]
    networks: tuple[Network, ...] = field(repr=False)
    layer_sizes: np.ndarray = field(repr=False)
    seconds: float = 0.0

    @cached_property
    def points(self) -> list[Point]:
        """A point for each setting, in ascending order of penalties."""
        settings, scores = settings_of(zip(*(self.table[name].tolist() for name in COLUMNS), strict=True)), self.scores
        groups = [np.flatnonzero(settings == number) for number in range(settings.max() + 1)]
        best = max(groups, key=lambda rows: (self._is_finished[rows].all(), np.mean(scores[rows])))
        with np.errstate(invalid="ignore"):  # members that diverged are at −∞
            return [
                Point(
                    **{name: float(self.table[name][rows[0]]) for name in KNOBS},
                    **{name: float(np.mean(self.table[name][rows])) for name in ("loss", "error", "n_parameters")},
                    score=float(np.mean(scores[rows])),
                    standard_error=standard_error(scores[rows] - scores[best]),
                    members=tuple(rows.tolist()),
                    is_finished=bool(self._is_finished[rows].all()),
                )
                for rows in groups
            ]

    scores = property(lambda self: self.table["score"] if "score" in self.table else -self.table["loss"])  # of each member
    _is_finished = property(lambda self: self.table.get("finished", np.ones(len(self.table["loss"]), bool)))  # each member

    def best(self) -> Point:
        """Return the point of the best score among those trained to their end; of equals that of the largest penalty."""
        return max(self.finished, key=lambda point: (point.score, point.penalty))

    @property
    def finished(self) -> list[Point]:
        """The points that did not stop early; all, if all did."""
        return [point for point in self.points if point.is_finished] or self.points

    def within_one_se(self) -> Point:
        """Return the largest penalty within one standard error of the best point, all other knobs being equal."""
        best = self.best()
        alike = [point for point in self.finished if point.knobs | {"penalty": best.penalty} == best.knobs]
        fine = [point for point in alike if best.score - point.score <= point.standard_error]
        return max([best, *fine], key=lambda point: point.penalty)

    def replace_failed_folds(self, point: Point) -> list[int]:
        """Return the members of a point, each one that failed replaced by the best member of its fold and seed.

        A member failed if it has learned less than half of what the best one has, relative to a constant prediction: some
        trainings never leave their initial loss, and would spoil a mean. Where the loss of the constant is not in the table, it
        is taken to be the highest of the fold, and at least twice the least.
        """
        fold, seed, loss = (self.table[name] for name in ("fold", "seed", "loss"))
        constant, members = self.table.get("constant_loss"), list(point.members)
        for place, member in enumerate(members):
            is_same = (fold == fold[member]) & (seed == seed[member])
            done = np.flatnonzero(is_same & self._is_finished)
            best = int(done[np.argmin(loss[done])]) if len(done) else member
            if np.isfinite(least := loss[best]):  # else all diverged
                highest = loss[is_same & np.isfinite(loss)].max() if constant is None else constant[member]
                learned = max(highest - least, 0.0 if constant is not None else abs(least))
                members[place] = best if loss[member] - least > learned / 2 else member
        return members

    def stand_ins(self, point: Point) -> list[int]:
        """Do the same under a former name, which will be removed."""
        warnings.warn("Path.stand_ins is now replace_failed_folds.", DeprecationWarning, stacklevel=2)
        return self.replace_failed_folds(point)

    def at(self, penalty: float) -> Point:
        """Return the best point at the nearest penalty, by its logarithm; one that stopped early only if all there did."""

        def distance(point: Point) -> float:
            return abs(np.log(max(point.penalty, 1e-300)) - np.log(max(penalty, 1e-300)))

        nearest = min(self.points, key=distance).penalty
        alike = [point for point in self.points if point.penalty == nearest]
        return max(alike, key=lambda point: (point.is_finished, point.score))

    def frontier(self) -> list[Point]:
        """Return the points trained to their end that no other beats in both size and score, the smallest first."""
        frontier: list[Point] = []
        for point in sorted(self.finished, key=lambda point: (point.n_parameters, -point.score)):
            if not frontier or point.score > frontier[-1].score:
                frontier.append(point)
        return frontier

    def frame(self) -> Any:
        """Return the table as a pandas DataFrame."""
        from importlib import import_module

        return import_module("pandas").DataFrame(self.table)

    def _repr_html_(self) -> str:
        """Return a table for notebooks: a row for each setting, the best one in bold."""
        from meristem.show.structure_drawing import table

        rows = [
            [f"{value:.3g}" for value in (*point.knobs.values(), point.loss, point.error)]
            + [f"{point.n_parameters:,.0f}", "yes" if point.is_finished else "no, its loss is not comparable"]
            for point in self.points
        ]
        names = [*KNOBS, "loss", "error", "parameters", "trained to its end"]
        return table(names, rows, marked=[self.points.index(self.best())])

    def plot_path(self, ax: Any = None) -> Any:
        """Draw loss and size against the penalty and return the Axes of the loss; `ax` takes two Axes, one above the other.

        At each penalty the best of the other knobs is drawn, with the standard error of its difference to the best point.
        Marked are the least loss of the settings trained to their end, and the largest penalty within one standard error of
        it. Settings that stopped early are rings: their networks were not pruned yet, so their loss is not comparable.
        """
        from meristem.paths.picture import draw_path
        from meristem.pictures.figure_style import canvas

        best, small = self.best(), self.within_one_se()
        marks = {"least loss" if "score" not in self.table else "best score": best}
        if small.penalty != best.penalty:
            marks["within one standard error"] = small
        with canvas("ax", ax, size=(6.4, 5.2), rows=2) as (above, below):
            draw_path(above, below, self, marks)
        return above

    def plot_frontier(self, ax: Any = None) -> Any:
        """Draw the held-out loss, or score, against size: a dot for each setting trained to its end, the frontier as rings."""
        from meristem.pictures.frontier_plot import draw_frontier

        points, drawn = self.finished, "score" if "score" in self.table else "loss"
        sizes, values, prices = ([getattr(point, name) for point in points] for name in ("n_parameters", drawn, "penalty"))
        marked = [points.index(point) for point in self.frontier()]
        return draw_frontier(sizes, values, marked, ylabel=f"held-out {drawn}", colors=prices, label="penalty", ax=ax)


def standard_error(differences: np.ndarray) -> float:
    """Return the standard error of the mean of differences by member; 0 for a single one, or where one is not finite."""
    if len(differences) < 2 or not np.isfinite(differences).all():
        return 0.0
    return float(differences.std(ddof=1) / np.sqrt(len(differences)))
