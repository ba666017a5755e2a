"""Which setting of a search is tried in a larger room (training_settings.py), and whether it is better there; for search.py."""

import numpy as np

from meristem.estimators.training_settings import FILLING, Room, is_crowded, open_share
from meristem.paths.result import Path, Point, standard_error


def is_filling(path: Path, room: Room) -> bool:
    """Return whether the best setting at the middle penalty has so many units open that a larger room may be better.

    It decides before other penalties are tried whether one is, so that the time it takes is known early. Where lower
    penalties alone are crowded, a larger room was hardly ever better, and took half of the time.
    """
    return float(np.mean([open_share(path.networks[m], room) for m in path.best().members])) >= FILLING


def crowded_point(path: Path, room: Room, *, or_lower: bool) -> Point | None:
    """Return the setting to try in a larger room: the best, if its networks are crowded, or a lower penalty that is as good.

    With a single leaf lower penalties may gain nothing, so that the best one is so high that nothing is crowded.
    """
    best = path.best()
    lower = [p for p in path.points if p.penalty < best.penalty and p.knobs | {"penalty": best.penalty} == best.knobs]
    as_good = [point for point in lower if or_lower and best.score - point.score <= point.standard_error]
    full = (point for point in (best, *as_good) if all(is_crowded(path.networks[m], room) for m in point.members))
    return next(full, None)


def is_clearly_better(trial: Path, path: Path) -> bool:
    """Return whether a setting was trained to its end, and gains more than the standard error over the best, fold by fold."""
    gain = trial.scores - path.scores[list(path.best().members)]
    return bool(trial.best().is_finished and np.isfinite(trial.scores).all() and gain.mean() > standard_error(gain))
