"""Leaks that a whole column does not show: in the rows that have a value, in one of its values, in two columns together.

    leaks_where_filled(columns, y, labels) → lines;  telling_values(columns, texts, y, labels) → lines
    leaking_pairs(columns, y, labels) → lines;  target_means(columns, y, labels) → lines

Columns and targets are those of leaks_and_drift.py, as is the measure: the share of a constant's error that is removed. Two
numbers give the target away if a linear combination of them, or of their logarithms, leaves next to nothing; two columns of few
values if each pair of values has one target. Either must do it nearly exactly, since that is what arithmetic does and
measurements do not; and all other columns must leave several times as much. A column holds means of the target where equal
values are the mean of the target in their rows. Imported by data_faults.py.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations, islice

import numpy as np

from meristem.check import short
from meristem.report.formatting import tenths_of_percent
from meristem.tables.leaks_and_drift import (
    LEAST_LOCAL_SHARE,
    LEAST_SHARE,
    REMEDY,
    Columns,
    error_units,
    filled_ranks,
    forest_predictions,
    goals_of,
    leaking_columns,
    leaves_more,
    local_means,
    predictions,
    removed_shares,
)

LEAST_GAPS, LEAST_FILLED = 0.05, 40  # the share of missing values; rows that have one
LEAST_VALUE_ROWS, LEAST_CLASS_PART, MOST_OTHERS = 10, 0.3, 0.01  # of a value; of the rows of its class; of other classes
LEAST_UNKNOWN, MOST_FORESTS = 0.3, 10  # what the other columns leave open of the class in such rows
LEAST_EXACT = 0.99  # of the error, which two columns remove
LEAST_GROUPS, LEAST_GROUPED, MEAN_DIGITS, MEAN_ERROR = 3, 0.8, 9, 1e-3  # groups; rows in groups; of means, in deviations
MOST_COLUMNS, MOST_PAIRS, MOST_LEVELS, ROWS_A_CELL = 60, 300, 60, 8


def leaks_where_filled(columns: Columns, y: np.ndarray, labels: Sequence[str] | None = None) -> list[str]:
    """Return a line for each column with gaps that gives the target away in the rows where it has a value."""
    lines = []
    for name, values in columns.items():
        is_filled = ~np.isnan(values)
        if not LEAST_FILLED <= is_filled.sum() <= (1 - LEAST_GAPS) * len(y) or len(np.unique(y[is_filled])) < 2:
            continue
        goals = goals_of(y[is_filled], labels)[0]
        if removed_shares(goals, local_means(filled_ranks(values[is_filled]), goals), labels).max() < LEAST_LOCAL_SHARE:
            continue
        some = {other: column[is_filled] for other, column in columns.items()}
        leaks = leaking_columns(some, y[is_filled], labels)
        where = f" in the {tenths_of_percent(is_filled.mean())} of the rows that have it:"
        lines += [line.replace(":", where, 1) for line in leaks if line.startswith(f"column {short(name)} alone")]
    return lines


def telling_values(columns: Columns, texts: Mapping[str, Sequence[str]], y: np.ndarray, labels: Sequence[str]) -> list[str]:
    """Return a line for each category that only rows of one class have, and many, if other columns do not tell these rows."""
    lines: list[str] = []
    n_forests = 0
    goals = (y[:, None] == np.arange(len(labels))).astype(float)
    for name, names in texts.items():
        values = columns[name]
        for code, text in enumerate(names):
            is_value = values == code
            n = int(is_value.sum())
            if n < LEAST_VALUE_ROWS or n > len(y) / 2:
                continue
            shares = goals[is_value].mean(0)
            label = int(np.argmax(shares))
            part = n * shares[label] / goals[:, label].sum()
            if shares[label] < 1 - MOST_OTHERS or part < LEAST_CLASS_PART or goals[:, label].mean() > 0.5 * shares[label]:
                continue
            n_forests += 1
            if n_forests > MOST_FORESTS:
                return lines
            others = [filled_ranks(other) for key, other in columns.items() if key != name]
            expected = forest_predictions(others, goals[:, [label]])[is_value].mean()
            if 1 - expected >= LEAST_UNKNOWN:
                which = f"the rows of class {short(str(labels[label]))}"
                what = f"column {short(name)} is {short(text)} in {tenths_of_percent(part)} of {which}"
                lines.append(f"{what} and in hardly any other: this value gives the class away; {REMEDY}")
    return lines


def target_means(columns: Columns, y: np.ndarray, labels: Sequence[str] | None = None) -> list[str]:
    """Return a line for each number that is, in groups of rows, the mean of the target, or the share of a class.

    >>> rng = np.random.default_rng(0)
    >>> y, group = rng.normal(size=300), rng.integers(0, 40, 300)
    >>> target_means({"by_group": (np.bincount(group, y) / np.bincount(group))[group], "x": y[::-1]}, y)[0].partition(":")[0]
    "column 'by_group' is the mean of the target over the rows that share its value, in 40 groups"
    """
    lines = []
    goals = {"the mean of the target": y}
    if labels is not None:
        goals = {f"the share of class {short(str(label))}": (y == code).astype(float) for code, label in enumerate(labels)}
    for name, values in columns.items():
        rows = np.flatnonzero(~np.isnan(values))
        if (
            len(rows) < 2 * LEAST_GROUPS or (np.diff(np.sort(values[rows])) < 0.1**MEAN_DIGITS).mean() < LEAST_GROUPED / 2
        ):  # quick
            continue
        levels, group = np.unique(np.round(values[rows], MEAN_DIGITS), return_inverse=True)
        counts = np.bincount(group, minlength=len(levels))
        is_group = counts[group] > 1
        if not LEAST_GROUPS <= len(levels) <= len(rows) / 2 or is_group.mean() < LEAST_GROUPED:
            continue
        for what, goal in goals.items():
            means = np.bincount(group, goal[rows]) / counts
            spread = np.abs(goal[rows] - means[group]).max()
            is_mean = np.abs(values[rows] - means[group]) <= MEAN_ERROR * max(float(np.std(goal[rows])), 1e-300)
            if spread > 0 and is_mean[is_group].mean() >= LEAST_EXACT:
                which = f"column {short(name)} is {what} over the rows that share its value, in {len(levels):,} groups"
                how = "from other rows, those of the training part alone"
                lines.append(f"{which}: it gives the target of its own rows away in part; compute it {how}, or remove it")
                break
    return lines


def leaking_pairs(columns: Columns, y: np.ndarray, labels: Sequence[str] | None = None) -> list[str]:
    """Return at most one line: two columns that together give the target away, and neither alone.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(400, 3))
    >>> leaking_pairs({"a": x[:, 0] + 5 * x[:, 1], "b": x[:, 1], "c": x[:, 2]}, x[:, 0])[0].partition(":")[0]
    "columns 'a' and 'b' together give the target away"
    """
    goals, names = goals_of(y, labels)
    units = error_units(goals, labels)
    for pair, how, shares in (*_linear_pairs(columns, y, goals, labels), *_crossed_pairs(columns, goals, labels)):
        if shares.max() < LEAST_EXACT:
            continue
        alone = [removed_shares(goals, local_means(filled_ranks(columns[name]), goals), labels) for name in pair]
        rest = forest_predictions([filled_ranks(values) for name, values in columns.items() if name not in pair], goals)
        left = removed_shares(goals, rest, labels)
        is_leak = leaves_more(left, shares, units) & (shares >= LEAST_EXACT) & (np.max(alone, 0) < LEAST_SHARE)
        if is_leak.any():
            goal = int(np.argmax(is_leak))
            what = f"columns {short(pair[0])} and {short(pair[1])} together give {names[goal]} away"
            much = f"{how} removes {tenths_of_percent(shares[goal])} of a constant prediction's error"
            return [f"{what}: {much}, all other columns {tenths_of_percent(max(0, left[goal]))}; {REMEDY}"]
    return []


Pair = tuple[tuple[str, str], str, np.ndarray]


def _linear_pairs(columns: Columns, y: np.ndarray, goals: np.ndarray, labels: Sequence[str] | None) -> list[Pair]:
    """Return the pair that matters most in a linear fit of numbers, and of logarithms, and what it removes."""
    names = [name for name, values in columns.items() if not np.isnan(values).any() and np.ptp(values) > 0][:MOST_COLUMNS]
    names = [name for name in names if len(np.unique(columns[name])) > 2]  # two of two values are one category of three
    pairs: list[Pair] = []
    positive = [name for name in names if columns[name].min() > 0]
    with_logs = [(positive, np.log(y))] if labels is None and len(y) and y.min() > 0 else []
    for chosen, numbers in ((names, y), *with_logs):
        is_log = numbers is not y
        if len(chosen) < 2 or len(y) < 2 * len(chosen):
            continue
        z = np.column_stack([np.log(columns[name]) if is_log else columns[name] for name in chosen])
        z = (z - z.mean(0)) / np.maximum(z.std(0), 1e-300)
        outputs = np.column_stack([numbers, *goals.T]) if labels is not None else numbers[:, None]
        outputs = (outputs - outputs.mean(0)) / np.maximum(outputs.std(0), 1e-300)
        weights = np.linalg.lstsq(z, outputs, rcond=1e-10)[0]
        for column in range(weights.shape[1]):
            first, second = np.sort(np.argsort(-np.abs(weights[:, column]), kind="stable")[:2])
            both = np.linalg.lstsq(z[:, [first, second]], outputs[:, column], rcond=1e-10)[0]
            sums = z[:, [first, second]] @ both
            if labels is None and 1 - ((sums - outputs[:, column]) ** 2).mean() < LEAST_EXACT:
                continue
            ranks = filled_ranks(np.round(sums, 9))
            if removed_shares(goals, local_means(ranks, goals), labels).max() < LEAST_EXACT:
                continue
            shares = removed_shares(goals, predictions(ranks[:, None], goals), labels)
            if labels is None:
                shares = np.full_like(shares, 1 - ((sums - outputs[:, column]) ** 2).mean())
            kind = "product or ratio of powers" if is_log else "sum or difference"
            pairs.append(((chosen[first], chosen[second]), f"a {kind} of them", shares))
            break
    return pairs


def _crossed_pairs(columns: Columns, goals: np.ndarray, labels: Sequence[str] | None) -> list[Pair]:
    """Return the pair of columns of few values whose combinations remove most of the error, without the row itself."""
    n, codes = len(goals), {}
    for name, values in columns.items():
        levels, code = np.unique(values, return_inverse=True)
        if 2 <= len(levels) <= MOST_LEVELS:
            codes[name] = (len(levels), code)
    best: list[Pair] = []
    for first, second in islice(combinations(codes, 2), MOST_PAIRS):
        size = codes[first][0] * codes[second][0]
        if size * ROWS_A_CELL > n:
            continue
        cells = codes[first][1] * codes[second][0] + codes[second][1]
        counts = np.bincount(cells, minlength=size)[cells]
        top = np.bincount(cells * goals.shape[1] + goals.argmax(1), minlength=size * goals.shape[1]).reshape(size, -1)
        if labels is not None and top.max(1).sum() < 0.9 * n:  # quick, before all sums
            continue
        sums = np.stack([np.bincount(cells, goal, size)[cells] for goal in goals.T], 1) - goals
        is_alone = counts < 2
        means = np.where(is_alone[:, None], goals.mean(0), sums / np.maximum(counts - 1, 1)[:, None])
        shares = removed_shares(goals, means, labels)
        if not best or shares.max() > best[0][2].max():
            best = [((first, second), "each combination of their values", shares)]
    return best
