"""How much each input matters: what the score loses when its values are shuffled among the rows, several times.

    shuffled(cost, X, base, groups, seconds=3) → Importance;  cost(X) → off [rows] (judge.py)

A group is the inputs of a column: the indicators of a category are shuffled together. At most 5,000 rows and five times; where
that would take longer than `seconds`, fewer times, then fewer rows. Imports NumPy; evidence imports it.
"""

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

MOST_ROWS, LEAST_ROWS, REPEATS, MOST_NUMBERS = 5000, 200, 5, 10_000_000
QUIET = 2.0  # seconds before anything is said, and between two lines


class Importance(NamedTuple):
    """Of each group the mean loss of score and its standard deviation over the repeats."""

    mean: np.ndarray
    spread: np.ndarray | None  # None: of a single one it is unknown
    rows: int
    repeats: int


def shuffled(
    cost: Callable[[np.ndarray, np.ndarray], np.ndarray],
    X: Any,
    base: np.ndarray,
    groups: Sequence[np.ndarray],
    *,
    seconds: float,
    seed: int = 0,
    verbose: bool = False,
) -> Importance | None:
    """`cost(X[rows], rows)` is what each of some rows costs; None where not even a single round is to be had in time.

    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> groups = [np.array([0]), np.array([1])]
    >>> found = shuffled(lambda x, rows: (x[:, 0] - X[rows, 0]) ** 2, X, np.ones(500), groups, seconds=1)
    >>> bool(found.mean[0] > 1), found.mean[1].item()
    (True, 0.0)
    """
    rng, n = np.random.default_rng(seed), X.shape[0]
    rows = np.sort(rng.permutation(n)[: min(MOST_ROWS, max(LEAST_ROWS, MOST_NUMBERS // X.shape[1]))])
    begun = time.monotonic()
    cost(X[rows], rows)
    each = time.monotonic() - begun
    affordable = seconds / max(1e-9, each * len(groups))
    if affordable < 1:
        few = max(LEAST_ROWS, int(len(rows) * affordable))
        if few * each * len(groups) / len(rows) > 3 * seconds:
            return None
        rows = np.sort(rng.permutation(rows)[:few])
    repeats = int(np.clip(affordable, 1, REPEATS))
    x = X[rows]
    x = np.array(x.toarray() if hasattr(x, "toarray") else x, float)
    before, total = cost(x, rows).sum(), max(float(base[rows].sum()), np.finfo(float).tiny)
    rounds: list[np.ndarray] = []
    spoken = begun
    while len(rounds) < repeats and (not rounds or time.monotonic() - begun < seconds):
        lost = np.zeros(len(groups))
        for place, group in enumerate(groups):
            kept = x[:, group].copy()
            x[:, group] = kept[rng.permutation(len(rows))]
            lost[place] = (cost(x, rows).sum() - before) / total
            x[:, group] = kept
            if verbose and time.monotonic() - spoken > QUIET:
                spoken = time.monotonic()
                print(f"report: shuffled {place + 1} of {len(groups)} inputs", file=sys.stderr, flush=True)
        rounds.append(lost)
    spread = np.std(rounds, 0, ddof=1) if len(rounds) > 1 else None
    return Importance(np.mean(rounds, 0), spread, len(rows), len(rounds))
