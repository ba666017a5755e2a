"""Faults along the rows of a file: a column that changes at a row, one in two units, a target that is one row off.

    changes_at_a_row(columns, categories, y, numbers) → lines;  mixed_units(columns) → lines
    shifted_target(columns, y) → lines

Rows are in the order of the file or of time. A column changes at a row if its values before and after it hardly overlap, while
on each side its halves are alike: a sorted or slowly drifting column does not. Nor is it a fault where the target changes with
it, as in a file that is sorted by class. Imported by data_faults.py.
"""

from collections.abc import Collection, Mapping

import numpy as np

from meristem.check import short
from meristem.tables.row_order import neighbor_correlation

Columns = Mapping[str, np.ndarray]
LEAST_SIDE, LEAST_SIDE_SHARE = 20, 0.03  # rows before and after a change
BINS, MOST_LEVELS, LEAST_LEVELS = 32, 50, 10
LEAST_CHANGE, MOST_WITHIN, MOST_OF_TARGET = 0.95, 0.5, 0.5  # distances of distributions
LEAST_ENDS = 0.75  # between the first rows and the last, without which there is no such change
RUN_SHARE, RUN_LEVEL, MOST_REPEATS = (
    0.05,
    1e-9,
    0.3,
)  # of one value: its share of the rows, its chance; equal neighbors elsewhere
LEAST_GAP, MOST_SHAPE = 5.0, 0.2  # the factor between two units' values; the distance of their shapes
LEAST_CLUSTER, CLUSTER_SHARE = 10, 0.01  # rows in either unit
UNITS = (10.0, 12.0, 16.0, 24.0, 25.4, 28.35, 30.48, 60.0, 100.0, 365.25, 1e3, 1024.0, 3600.0, 1e4, 1e5, 1e6, 86_400.0, 1e9)
UNIT_ERROR = 0.1  # of the factor between two medians
MOST_SHIFTED, MOST_COLUMNS, LEAST_GAIN, DEVIATIONS = (
    5000,
    100,
    0.1,
    5.0,
)  # rows and columns of a shifted target: the gain of R², and in standard errors
REMEDY = "look at what happened there (another unit, device or source), and make the column alike or remove it"


def _distances(codes: np.ndarray, n_codes: int, *, ordered: bool) -> np.ndarray:
    """Return how far the values before each row and from it on are apart: Kolmogorov and Smirnov's, or total variation."""
    counts = np.cumsum(codes[:, None] == np.arange(n_codes), 0, dtype=np.int32)
    n = len(codes)
    before = counts[:-1] / np.arange(1, n)[:, None]
    after = (counts[-1] - counts[:-1]) / np.arange(n - 1, 0, -1)[:, None]
    gaps = before - after
    return np.asarray(np.abs(np.cumsum(gaps, 1)).max(1) if ordered else np.abs(gaps).sum(1) / 2)


def _coded(values: np.ndarray) -> np.ndarray:
    """Return a bin of each value; equal ones share one."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray(((np.cumsum(counts) - counts) * BINS // len(values))[place])


def _distance_at(codes: np.ndarray, row: int, *, ordered: bool) -> float:
    if not 0 < row < len(codes):
        return 0.0
    shares = [np.bincount(part, minlength=codes.max() + 1) / len(part) for part in (codes[:row], codes[row:])]
    gaps = shares[0] - shares[1]
    return float(np.abs(np.cumsum(gaps)).max() if ordered else np.abs(gaps).sum() / 2)


def changes_at_a_row(columns: Columns, categories: Collection[str], y: np.ndarray | None, numbers: np.ndarray) -> list[str]:
    """Return a line for each column that changes at a row; `numbers` are those of the rows in the table, from 1.

    Without `y` the columns are targets, by which a file may be sorted: one value in many rows is no fault.

    >>> x = np.random.default_rng(0).normal(70, 9, 400)
    >>> late = np.arange(400) >= 300
    >>> changes_at_a_row({"kg": np.where(late, 3 * x, x)}, [], x[::-1], np.arange(400) + 1)[0].partition(" (")[0]
    "column 'kg' changes near row 301"
    """
    lines, n = [], len(numbers)
    side = max(LEAST_SIDE, round(LEAST_SIDE_SHARE * n))
    if n < 2 * side:
        return []
    target = np.zeros(n, int) if y is None else _coded(y)
    for name, values in columns.items():
        is_gap = np.isnan(values)
        ordered = name not in categories
        what = None
        if is_gap.any() and not is_gap.all():
            ends = abs(is_gap[:side].mean() - is_gap[-side:].mean())
            distances = (
                _distances(is_gap.astype(int), 2, ordered=False)[side - 1 : n - side] if ends > LEAST_ENDS else np.zeros(1)
            )
            row = int(np.argmax(distances)) + side
            if distances[row - side] >= LEAST_CHANGE and _distance_at(target, row, ordered=True) < MOST_OF_TARGET:
                last = numbers[row - 1]
                what = f"is missing up to row {last}" if is_gap[0] else f"is missing from row {numbers[row]} on"
        filled = np.flatnonzero(~is_gap)
        if what is None and len(filled) >= 2 * side:
            what = _run(values[filled], target[filled], numbers[filled], side) if ordered and y is not None else None
            what = what or _change(values[filled], target[filled], numbers[filled], side, ordered=ordered)
        if what is not None:
            lines.append(f"column {short(name)} {what}: {REMEDY}")
    return lines


def _change(values: np.ndarray, target: np.ndarray, numbers: np.ndarray, side: int, *, ordered: bool) -> str | None:
    levels, codes = np.unique(values, return_inverse=True)
    if len(levels) < (LEAST_LEVELS if ordered else 4) or (not ordered and len(levels) > MOST_LEVELS):
        return None
    codes = _coded(values) if ordered else codes
    if (
        _distance_at(np.concatenate([codes[:side], codes[-side:]]), side, ordered=ordered) < LEAST_ENDS
    ):  # quick, for most columns
        return None
    distances = _distances(codes, int(codes.max()) + 1, ordered=ordered)[side - 1 : len(values) - side]
    row = int(np.argmax(distances)) + side
    if distances[row - side] < LEAST_CHANGE or _distance_at(target, row, ordered=True) >= MOST_OF_TARGET:
        return None
    parts = values[:row], values[row:]
    for part in parts:
        if (
            len(np.unique(part)) < 2
            or _distance_at(_coded(part) if ordered else codes[: len(part)], len(part) // 2, ordered=ordered) > MOST_WITHIN
        ):
            return None
    if not ordered:
        return f"has other categories from about row {numbers[row]} on than earlier"
    first, second = (float(np.median(part)) for part in parts)
    return f"changes near row {numbers[row]} (median {first:.4g} before, {second:.4g} from there on)"


def _run(values: np.ndarray, target: np.ndarray, numbers: np.ndarray, side: int) -> str | None:
    """Return that a column has one value for many rows, while it varies elsewhere."""
    starts = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
    lengths = np.diff(np.append(starts, len(values)))
    place = int(np.argmax(lengths))
    start, length = int(starts[place]), int(lengths[place])
    rest = np.concatenate([values[:start], values[start + length :]])
    if length < max(side, RUN_SHARE * len(values)) or len(rest) < side or len(np.unique(rest)) < LEAST_LEVELS:
        return None
    share = ((rest == values[start]).sum() + 1) / (len(rest) + 2)
    is_rest = np.ones(len(values), bool)
    is_rest[start : start + length] = False
    goals = [np.bincount(part, minlength=target.max() + 1) / len(part) for part in (target[is_rest], target[~is_rest])]
    is_target = np.abs(np.cumsum(goals[0] - goals[1])).max() >= MOST_OF_TARGET
    if share**length > RUN_LEVEL or (rest[1:] == rest[:-1]).mean() > MOST_REPEATS or is_target:
        return None
    last = "on" if start + length == len(values) else f"to {numbers[start + length - 1]}"
    return f"is {values[start]:.7g} in each of {length:,} rows, from row {numbers[start]} {last}, and varies elsewhere"


def mixed_units(columns: Columns) -> list[str]:
    """Return a line for each column whose values are of two sizes, a factor apart and of the same shape.

    >>> x = np.random.default_rng(0).normal(70, 9, 400)
    >>> mixed_units({"weight": np.where(np.arange(400) % 5, x, 1000 * x), "x": x})[0].partition(":")[0]
    "column 'weight' has two sizes of values"
    """
    lines = []
    for name, values in columns.items():
        some = values[~np.isnan(values) & (values != 0)]
        least = max(LEAST_CLUSTER, round(CLUSTER_SHARE * len(some)))
        if len(some) < 4 * least or ((some > 0).any() and (some < 0).any()):
            continue
        logs = np.sort(np.log(np.abs(some)))
        gaps = np.diff(logs)[least - 1 : len(logs) - least]
        cut = int(np.argmax(gaps)) + least
        low, high = logs[:cut], logs[cut:]
        if gaps[cut - least] < np.log(LEAST_GAP) or min(len(np.unique(low)), len(np.unique(high))) < LEAST_CLUSTER:
            continue
        factor = float(np.median(high) - np.median(low))
        if np.abs(factor - np.log(UNITS)).min() > UNIT_ERROR:
            continue
        both = np.concatenate([low + factor, high])
        shares = [np.searchsorted(part, both, side="right") / len(part) for part in (low + factor, high)]
        if np.abs(shares[0] - shares[1]).max() > MOST_SHAPE + 1 / np.sqrt(min(len(low), len(high))):
            continue
        n, times = min(len(low), len(high)), float(f"{np.exp(factor):.2g}")
        which = f"{times:,.0f} times the others" if len(high) <= len(low) else f"a {times:,.0f}th of the others"
        what = f"column {short(name)} has two sizes of values: {n:,} of {len(some):,} are about {which}"
        lines.append(f"{what}: if they are in another unit, convert them")
    return lines


def shifted_target(columns: Columns, y: np.ndarray, *, is_class: bool) -> list[str]:
    """Return a line if the inputs predict the target of the next row, or of the one before, and hardly their own.

    Where neighboring targets are alike, as in a series, an input may be of another time, and nothing is said.

    >>> x = np.random.default_rng(0).normal(size=(300, 2))
    >>> shifted_target({"a": x[:, 0], "b": x[:, 1]}, np.roll(x.sum(1), 1), is_class=False)[0].partition(":")[0]
    'the target may be one row too low'
    """
    columns, y = {name: values[:MOST_SHIFTED] for name, values in list(columns.items())[:MOST_COLUMNS]}, y[:MOST_SHIFTED]
    codes = np.unique(y, return_inverse=True)[1] if is_class else y
    n = len(y)
    if n < 4 * LEAST_SIDE or len(columns) == 0 or abs(neighbor_correlation(codes, is_class=is_class)) > DEVIATIONS / np.sqrt(n):
        return []
    z = np.column_stack([np.nan_to_num(_ranks(values)) for values in columns.values()] + [np.ones(n)])
    goals = np.eye(int(codes.max()) + 1)[codes] if is_class else _ranks(y)[:, None]
    goals = goals - goals.mean(0)
    is_train = np.random.default_rng(0).random(n) < 0.5
    scores = []
    for shift in (0, 1, -1):  # the target of this row, the next, the one before
        moved = np.roll(goals, -shift, 0)
        gram = z[is_train].T @ z[is_train] + 1e-3 * np.eye(z.shape[1])
        predicted = z[~is_train] @ np.linalg.solve(gram, z[is_train].T @ moved[is_train])
        scores.append(1 - float(((moved[~is_train] - predicted) ** 2).sum() / (moved[~is_train] ** 2).sum()))
    best = int(np.argmax(scores))
    own, other = max(scores[0], 0.0), scores[best]
    if other - own < max(LEAST_GAIN, DEVIATIONS / np.sqrt(n)) or other < 2 * own:
        return []
    low, which = ("low", "next row") if best == 1 else ("high", "row before")
    what = f"the target may be one row too {low}: a linear model predicts that of the {which} with R² {other:.2f}"
    return [f"{what}, the row's own with {scores[0]:.2f}; compare with where the table comes from"]


def _ranks(values: np.ndarray) -> np.ndarray:
    """Return ranks from −1 to 1, NaN where missing."""
    is_filled = ~np.isnan(values)
    _, place, counts = np.unique(values[is_filled], return_inverse=True, return_counts=True)
    ranks = np.full(len(values), np.nan)
    ranks[is_filled] = 2 * (np.cumsum(counts) - (counts - 1) / 2)[place] / max(is_filled.sum(), 1) - 1
    return ranks
