"""Faults along the rows of a file: a column that changes at a row, one in two units, a target one row off, classes exchanged.

    changes_at_a_row(columns, categories, y, numbers) → lines;  mixed_units(columns) → lines
    shifted_target(columns, y) → lines;  exchanged_classes(columns, y, labels, numbers) → lines
    drift_with_dates(columns, dates) → lines

Rows are in the order of the file or of time. A column changes at a row if its values before and after it hardly overlap, while
on each side its halves are alike: a sorted or slowly drifting column does not. Nor is it a fault where the target changes with
it, as in a file that is sorted by class. Two classes are exchanged if what tells them apart in the first third of the rows
tells them the other way round from a later row on. Imported by data_faults.py.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from shlex import quote

import numpy as np

from meristem.check import short
from meristem.tables.leaks_and_drift import MOST_NAMED, area_under_curve, filled_ranks, forest_predictions, new_forest
from meristem.tables.row_order import neighbor_correlation

Columns = Mapping[str, np.ndarray]
LEAST_SIDE, LEAST_SIDE_SHARE = 20, 0.03  # rows before and after a change
BINS, MOST_LEVELS, LEAST_LEVELS = 32, 50, 10
LEAST_CHANGE, MOST_WITHIN, MOST_OF_TARGET = 0.95, 0.5, 0.5  # distances of distributions
LEAST_ENDS = 0.75  # between the first rows and the last, without which there is no such change
RUN_SHARE, RUN_LEVEL = 0.05, 1e-9  # of one value in many rows: its share of the rows, its chance
MOST_REPEATS = 0.3  # equal neighbors elsewhere
LEAST_GAP, MOST_SHAPE = 5.0, 0.2  # the factor between two units' values; the distance of their shapes
LEAST_CLUSTER, CLUSTER_SHARE = 10, 0.01  # rows in either unit
UNITS = (10.0, 12.0, 16.0, 24.0, 25.4, 28.35, 30.48, 60.0, 100.0, 365.25, 1e3, 1024.0, 3600.0, 1e4, 1e5, 1e6, 86_400.0, 1e9)
UNIT_ERROR = 0.1  # of the factor between two medians
MOST_SHIFTED, MOST_COLUMNS = 5000, 100  # rows and columns that a shifted target is looked for in
LEAST_GAIN, DEVIATIONS = 0.1, 5.0  # of R², and in standard errors
MOST_PAIRED, MOST_CLASSES = 3000, 6  # rows and classes that are compared in pairs
MOST_RANKED = 500  # columns by which they are told apart
LEAST_REVERSAL, REVERSAL_Z, LEAST_OF_CLASS = 0.15, 3.5, 8  # of an area from a half; in standard errors; rows on each side
LEAST_DATED, LEAST_DRIFT, FIFTH = 100, 0.5, 5  # rows with a date; the rank correlation with it
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
            distances = np.zeros(1)
            if ends > LEAST_ENDS:
                distances = _distances(is_gap.astype(int), 2, ordered=False)[side - 1 : n - side]
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
    ends = np.concatenate([codes[:side], codes[-side:]])  # quick, for most columns
    if _distance_at(ends, side, ordered=ordered) < LEAST_ENDS:
        return None
    distances = _distances(codes, int(codes.max()) + 1, ordered=ordered)[side - 1 : len(values) - side]
    row = int(np.argmax(distances)) + side
    if distances[row - side] < LEAST_CHANGE or _distance_at(target, row, ordered=True) >= MOST_OF_TARGET:
        return None
    parts = values[:row], values[row:]
    for part in parts:
        own = _coded(part) if ordered else codes[: len(part)]
        if len(np.unique(part)) < 2 or _distance_at(own, len(part) // 2, ordered=ordered) > MOST_WITHIN:
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
        is_wide, n_shares = gaps[cut - least] >= np.log(LEAST_GAP), int(np.searchsorted(logs, 0, side="right"))
        is_share = not is_wide and least <= n_shares <= len(logs) - least and logs[-1] <= np.log(100)  # or per cent
        cut = n_shares if is_share else cut
        low, high = logs[:cut], logs[cut:]
        if not (is_wide or is_share) or min(len(np.unique(low)), len(np.unique(high))) < LEAST_CLUSTER:
            continue
        factor = float(np.median(high) - np.median(low))
        if np.abs(factor - np.log([100.0] if is_share else UNITS)).min() > UNIT_ERROR:
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


def exchanged_classes(columns: Columns, y: np.ndarray, labels: Sequence[str], numbers: np.ndarray) -> list[str]:
    """Return a line if two classes look exchanged from a row on, or up to one; `numbers` as in `changes_at_a_row`.

    >>> x, rows = np.random.default_rng(0).normal(size=(400, 2)), np.arange(400)
    >>> y = (x[:, 0] > 0).astype(int)
    >>> line = exchanged_classes({"a": x[:, 0], "b": x[:, 1]}, np.where(rows < 250, y, 1 - y), ["no", "yes"], rows + 1)[0]
    >>> line.partition(":")[0]
    "classes 'no' and 'yes' look exchanged near row 251 of the file"
    """
    rows = np.unique(np.linspace(0, len(y) - 1, min(MOST_PAIRED, len(y))).astype(int))
    y, numbers, third = y[rows].astype(int), numbers[rows], len(rows) // 3
    counts = np.bincount(y, minlength=len(labels))
    classes = [label for label in np.argsort(-counts, kind="stable")[:MOST_CLASSES] if counts[label] >= 4 * LEAST_OF_CLASS]
    if third < LEAST_SIDE or len(classes) < 2 or not columns:
        return []
    some = [*columns.values()][:: -(-len(columns) // MOST_RANKED)]
    inputs = [filled_ranks(values[rows]) for values in some]
    goals = (y[:, None] == classes).astype(float)
    for order in (np.arange(len(y)), np.arange(len(y))[::-1]):
        predicted = _from_first_rows([values[order] for values in inputs], goals[order], third)
        for first, second in combinations(range(len(classes)), 2):
            is_pair = goals[order][:, [first, second]].any(1)
            places, is_first = order[is_pair], goals[order][is_pair, first] > 0
            cut = _reversal((predicted[:, first] - predicted[:, second])[is_pair], is_first)
            if cut is None:
                continue
            row, (before, after) = cut
            pair = " and ".join(sorted(short(str(labels[classes[place]])) for place in (first, second)))
            if order[0] > 0:
                row, before, after = row - 1, after, before
            what = f"classes {pair} look exchanged near row {numbers[places[row]]} of the file"
            how = f"what tells them apart before (AUC {before:.2f}) tells the opposite from there on ({after:.2f})"
            return [f"{what}: {how}; compare with where the labels come from"]
    return []


def _from_first_rows(inputs: list[np.ndarray], goals: np.ndarray, n: int) -> np.ndarray:
    """Return predictions of the first n rows, out of sample, and of the others, from these n."""
    own, z = forest_predictions([values[:n] for values in inputs], goals[:n]), np.column_stack(inputs)
    return np.concatenate([own, new_forest(len(inputs)).fit(z[:n], goals[:n]).predict(z[n:])])


def _reversal(scores: np.ndarray, is_first: np.ndarray) -> tuple[int, tuple[float, float]] | None:
    """Return from where on high scores belong to the second class, and the areas before and after, or None."""
    ranks = np.argsort(np.argsort(scores, kind="stable"), kind="stable") / len(scores) - 0.5
    sums = np.cumsum(np.where(is_first, 1 / is_first.sum(), -1 / (~is_first).sum()) * ranks)
    row = int(np.argmax(sums)) + 1
    areas = []
    for part, sign in ((slice(row), 1), (slice(row, None), -1)):
        n, m = int(is_first[part].sum()), int((~is_first[part]).sum())
        if min(n, m) < LEAST_OF_CLASS:
            return None
        areas.append(area_under_curve(scores[part], is_first[part]))
        error = np.sqrt((n + m + 1) / (12 * n * m))
        if sign * (areas[-1] - 0.5) < max(LEAST_REVERSAL, REVERSAL_Z * error):
            return None
    return row, (areas[0], areas[1])


def drift_with_dates(columns: Columns, dates: Columns) -> list[str]:
    """Return a line for each column of dates with which numbers of other columns drift.

    >>> x, days = np.random.default_rng(0).normal(70, 9, 400), np.arange(400.0)
    >>> drift_with_dates({"weight": x + 30 * days / 400, "age": x[::-1]}, {"visit": days})[0].partition(" (")[0]
    "with the dates of column 'visit' these drift: 'weight'"
    """
    lines = []
    for date, days in dates.items():
        drifting = {}
        for name, values in columns.items():
            both = ~np.isnan(values) & ~np.isnan(days)
            some, times = values[both], days[both]
            if both.sum() < LEAST_DATED or len(np.unique(some)) < LEAST_LEVELS or np.ptp(times) == 0:
                continue
            correlation = float(np.corrcoef(_ranks(some), _ranks(times))[0, 1])
            if abs(correlation) >= LEAST_DRIFT:
                order, n = np.argsort(times, kind="stable"), len(times) // FIFTH
                early, late = (float(np.median(some[part])) for part in (order[:n], order[-n:]))
                drifting[name] = abs(correlation), f"median {early:.4g} in the first fifth, {late:.4g} in the last"
        if drifting:
            names = sorted(drifting, key=lambda name: -drifting[name][0])
            which = ", ".join(f"{short(name)} ({drifting[name][1]})" for name in names[:MOST_NAMED])
            more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
            what = f"with the dates of column {short(date)} these drift: {which}{more}"
            advice = f"if later rows are to be predicted, give --time-column {quote(date)}"
            lines.append(f"{what}; a split at random does not show what that costs; {advice}")
    return lines


def _ranks(values: np.ndarray) -> np.ndarray:
    """Return ranks from −1 to 1, NaN where missing."""
    is_filled = ~np.isnan(values)
    _, place, counts = np.unique(values[is_filled], return_inverse=True, return_counts=True)
    ranks = np.full(len(values), np.nan)
    ranks[is_filled] = 2 * (np.cumsum(counts) - (counts - 1) / 2)[place] / max(is_filled.sum(), 1) - 1
    return ranks
