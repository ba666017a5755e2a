"""The learning curve of a search: networks of the chosen setting that learn from parts of each fold's training rows.

    measure_curve(search, members, runs, "r2") → LearningCurve, or None where it says nothing        formulas: learning_curve.py

They train together as members of the search, with the same programs: rows that are left out have weight 0. l2 belongs to a
number of rows, so it is higher for fewer. Imported by cv.py.
"""

from dataclasses import replace

import numpy as np

from meristem.estimators.search import Search
from meristem.paths.folds import has_learned
from meristem.paths.learning_curve import SHARES, LearningCurve, can_be_known, part_of
from meristem.paths.members import Member
from meristem.paths.result import Path
from meristem.targets import Classes
from meristem.train.run import Run

PART = "more-rows"  # its name for watchers
COST = 0.5  # of a training on all rows, about: epochs are as many, and shorter


def measure_curve(search: Search, path: Path, chosen: tuple[int, ...], runs: list[Run], scoring: str) -> LearningCurve | None:
    """Train the setting of these members on parts of their training rows; None where that says nothing, or was interrupted."""
    of_setting, n_folds = [runs[m] for m in chosen], len(search.folds)
    learned = has_learned(path.table["loss"][list(chosen)], path.table["constant_loss"][list(chosen)])
    if search.watcher.over() or not learned or not can_be_known(search.folds) or not all(run.best_epoch for run in of_setting):
        return None
    members = [Member(*(path.table[name][m].item() for name in Member._fields)) for m in chosen]
    n, seed, is_class = len(search.table.y), search.table.seed % 2**31, isinstance(search.table.targets, Classes)
    classes = search.table.y if is_class else np.zeros(n, int)
    shares = SHARES[::-1]  # the longest trainings first: their speed is then expected of all
    folds = [(part_of(train, classes, share, seed), test) for share in shares for train, test in search.folds]
    own = replace(search, folds=folds, scoring=scoring, part=PART)
    more = [
        member._replace(l2=member.l2 / share, fold=member.fold + number * n_folds)
        for number, share in enumerate(shares)
        for member in members
    ]
    search.watcher.expect(search.afterwards)
    parts = own.trained(more, None)
    if search.watcher.over() or not all(run.best_epoch for run in parts):
        return None
    every = zip([*members, *more], [*of_setting, *parts], strict=True)
    scores = np.array([own.score_of(run, member.fold) for member, run in every]).reshape(len(SHARES) + 1, len(members))
    n_rows = np.mean([len(train) for train, _ in search.folds])
    return LearningCurve([round(float(share * n_rows)) for share in (*SHARES, 1.0)], scores[::-1])
