"""Permutation importance: how much the score drops when the values of an input are shuffled among the rows.

A group is the inputs of one column: the indicators of a category are shuffled together. At most 5,000 rows, five repeats; if
that would take longer than `seconds`, fewer repeats, then fewer rows.
"""

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from meristem.report.scoring import as_dense

MOST_ROWS, LEAST_ROWS, REPEATS, MOST_NUMBERS = 5000, 200, 5, 10_000_000
QUIET = 2.0  # seconds before the first line of progress, and between two


class Importance(NamedTuple):
    """The mean drop of the score of each group and its standard deviation over the repeats."""

    mean: np.ndarray
    spread: np.ndarray | None  # None: unknown, after a single repeat
    rows: int
    repeats: int


def permutation_importance(
    losses: Callable[[np.ndarray, np.ndarray], np.ndarray],
    X: Any,
    reference_losses: np.ndarray,
    groups: Sequence[np.ndarray],
    *,
    seconds: float,
    seed: int = 0,
    verbose: bool = False,
) -> Importance | None:
    """Return importances from `losses(X[rows], rows)`; None if there is no time for a single repeat."""
    rng, n = np.random.default_rng(seed), X.shape[0]
    rows = np.sort(rng.permutation(n)[: min(MOST_ROWS, max(LEAST_ROWS, MOST_NUMBERS // X.shape[1]))])
    begin = time.monotonic()
    losses(X[rows], rows)
    each = time.monotonic() - begin
    affordable = seconds / max(1e-9, each * len(groups))
    if affordable < 1:
        few = max(LEAST_ROWS, int(len(rows) * affordable))
        if few * each * len(groups) / len(rows) > 3 * seconds:
            return None
        rows = np.sort(rng.permutation(rows)[:few])
    repeats = int(np.clip(affordable, 1, REPEATS))
    x = as_dense(X[rows])  # a copy
    before, total = losses(x, rows).sum(), max(float(reference_losses[rows].sum()), np.finfo(float).tiny)
    drops: list[np.ndarray] = []
    last_line = begin
    while len(drops) < repeats and (not drops or time.monotonic() - begin < seconds):
        drop = np.zeros(len(groups))
        for number, group in enumerate(groups):
            original = x[:, group].copy()
            x[:, group] = original[rng.permutation(len(rows))]
            drop[number] = (losses(x, rows).sum() - before) / total
            x[:, group] = original
            if verbose and time.monotonic() - last_line > QUIET:
                last_line = time.monotonic()
                print(f"report: shuffled {number + 1} of {len(groups)} inputs", file=sys.stderr, flush=True)
        drops.append(drop)
    spread = np.std(drops, 0, ddof=1) if len(drops) > 1 else None
    return Importance(np.mean(drops, 0), spread, len(rows), len(drops))
