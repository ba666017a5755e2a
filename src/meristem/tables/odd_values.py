"""Values that stand apart in a column: sentinels, a limit of the target, lost signs, dates far from all others.

    sentinel_values(columns, dates) → lines;  limited_target(name, y) → lines
    lost_signs(columns) → lines;  stray_dates(dates) → lines

A few negative values among positive ones are the tail of a distribution where they are small, and likely a mistake where they
are as large as the positive ones. A few dates are likely mistyped where they are further from the others than these are from
each other. Imported by data_faults.py.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from meristem.check import many, short
from meristem.report.formatting import tenths_of_percent
from meristem.tables.leaks_and_drift import MOST_INPUTS, area_under_curve, filled_ranks, forest_predictions
from meristem.tables.table_columns import DAY, EPOCH

Columns = Mapping[str, np.ndarray]
MOST_FORETOLD_ROWS = 1500
LEAST_REPEATS, LEAST_VALUES = 3, 10  # of a sentinel; different values of the others
CODES = (9, 99, 999, 9999, 99999, 999999, 88, 888, 8888, 77, 777)  # usual sentinels, of either sign
CODE_GAP, SPIKE_GAP = 0.1, 1.0  # between a sentinel and the others, relative to their range
LEAST_CODE, FEW_GAP, FEW_VALUES = 99, 10.0, 3  # of a column of few values: the size of a code, its gap, and how many others
LOG_GAP = 0.5  # and to that of the logarithms of positive ones
ZERO_SHARE, ZERO_LEVEL, ZERO_STEPS = 0.4, 0.25, 3  # the most zeros; other values begin at this share of the median, and steps
FORETOLD = 0.8  # the area under the curve from which on other columns tell where the zeros are: they are values
LEAST_SPIKE, MOST_SPIKE, SPIKE_FACTOR = 0.02, 0.5, 10  # a value among others: its share; times the next frequent
LEAST_SCALE = 3  # the highest answer of a scale from 0 on which −1 is none
LEAST_LIMIT, LEAST_LIMITED = 0.01, 10  # of the rows that have the target's highest value
MOST_NEGATIVE, LEAST_NEGATIVE, LEAST_SIZE = 0.02, 3, 0.5  # their share and number; their median, relative to positive ones
MOST_STRAY, LEAST_DATES = 0.01, 20  # the share of dates far from the others, and how many others


def limited_target(name: str, y: np.ndarray) -> list[str]:
    """Return a line if many rows have the target's highest value, which is then likely a limit of what was measured.

    >>> x = np.random.default_rng(0).normal(70, 9, 400)
    >>> limited_target("price", np.minimum(x, 80.0))[0].partition(":")[0]
    "the target 'price' is 80 in 50 rows (12.5 %), its highest value"
    >>> limited_target("price", x)
    []
    """
    levels, counts = np.unique(y[~np.isnan(y)], return_counts=True)
    if len(levels) <= LEAST_VALUES or levels[-1] == 0:
        return []
    most, share = int(counts[-1]), counts[-1] / counts.sum()
    if most < LEAST_LIMITED or share < LEAST_LIMIT or most < SPIKE_FACTOR * counts[:-1].max():
        return []
    what = (
        f"the target {short(name)} is {levels[-1]:.7g} in {many(most, 'row')} ({tenths_of_percent(share)}), its highest value"
    )
    return [f"{what}: if that is a limit, larger values are not known, and no model of these rows predicts them"]


def sentinel_values(columns: Columns, dates: Sequence[str] = ()) -> list[str]:
    """Return a line for each number that repeats and stands apart from the other values of its column, as −999 for a gap.

    >>> x = np.arange(100) % 50 + 20.0
    >>> sentinel_values({"age": np.where(np.arange(100) % 10, x, -999), "size": x})[0].partition(":")[0]
    "column 'age' holds -999 in 10 rows (10.0 %), unlike all others, which are from 21 to 69"
    """
    lines = []
    for name, values in columns.items():
        levels, counts = np.unique(values[~np.isnan(values)], return_counts=True)
        for place in _sentinels(levels, counts):
            value, others = levels[place], np.delete(levels, place)
            others_by_name = [columns[other] for other in columns if other != name][:MOST_INPUTS]
            if value == 0 and _is_foretold(values == 0, others_by_name):
                continue
            first, low, high = (_written(number, name in dates) for number in (value, others[0], others[-1]))
            where = "unlike all others, which are" if not others[0] < value < others[-1] else "far more often than any other"
            share = tenths_of_percent(counts[place] / counts.sum())
            what = f"column {short(name)} holds {first} in {many(int(counts[place]), 'row')} ({share})"
            lines.append(
                f"{what}, {where} from {low} to {high}: if it means that the value is missing, leave those cells empty"
            )
    return lines


def _is_foretold(is_zero: np.ndarray, others: list[np.ndarray]) -> bool:
    """Return whether the other columns tell where a column is 0, out of sample."""
    inputs, goal = [filled_ranks(values[:MOST_FORETOLD_ROWS]) for values in others], is_zero[:MOST_FORETOLD_ROWS]
    if not inputs or not goal.any():
        return False
    return area_under_curve(forest_predictions(inputs, goal[:, None].astype(float))[:, 0], goal) >= FORETOLD


def _written(number: float, is_date: bool) -> str:
    return str((EPOCH + number * DAY).date()) if is_date else f"{number:.7g}"


def _sentinels(levels: np.ndarray, counts: np.ndarray) -> list[int]:
    """Return the places of likely sentinels among the different values of a column."""
    places: list[int] = []
    for _ in range(2):  # at either end, where another may hide behind the first
        rest = np.delete(np.arange(len(levels)), places)
        if len(rest) <= FEW_VALUES:
            break
        for place, nearest, others in ((rest[0], rest[1], rest[1:]), (rest[-1], rest[-2], rest[:-1])):
            value, gap, extent = levels[place], abs(levels[nearest] - levels[place]), np.ptp(levels[others])
            if counts[place] < LEAST_REPEATS:
                continue
            is_code = abs(value) in CODES and gap >= CODE_GAP * extent
            if len(rest) <= LEAST_VALUES:  # answers on a scale and 99 for "no answer"
                is_none = value == -1 and levels[others[0]] == 0 and levels[others[-1]] >= LEAST_SCALE  # a count has none
                is_none |= is_code and abs(value) >= LEAST_CODE and gap >= FEW_GAP * extent
                places += [int(place)] * bool(is_none)
                continue
            is_negative = value < 0 <= levels[others[0]] and value == round(value) and place == rest[0]
            middle = np.median(np.repeat(levels[others], counts[others]))
            step = np.median(np.diff(levels[others]))
            is_zero = value == 0 and levels[others[0]] >= max(ZERO_LEVEL * middle, ZERO_STEPS * step)
            is_zero &= counts[place] <= ZERO_SHARE * counts.sum()
            positive = levels[others][levels[others] > 0]
            is_far = gap >= SPIKE_GAP * extent
            if place == rest[-1] and len(positive) > 1:  # 64,000 is not far from 64, …, 16,000, 32,000
                is_far &= np.log(value / positive[-1]) >= LOG_GAP * np.log(positive[-1] / positive[0])
            if is_code or is_negative or is_zero or is_far:
                places.append(int(place))
    order = np.argsort(counts)
    if len(levels) > LEAST_VALUES and not places and 0 < order[-1] < len(levels) - 1:
        most, following = counts[order[-1]], counts[order[-2]]
        if LEAST_SPIKE <= most / counts.sum() <= MOST_SPIKE and most >= SPIKE_FACTOR * following and most > LEAST_VALUES:
            places.append(int(order[-1]))
    return places


def lost_signs(columns: Columns) -> list[str]:
    """Return a line for each column with a few negative values that are as large as its positive ones.

    >>> x = np.arange(400) % 60 + 20.0
    >>> lost_signs({"age": np.where(np.arange(400) % 80 == 7, -x, x)})[0].partition(":")[0]
    "column 'age' is negative in 5 rows (1.2 %), by as much as it is positive in the others"
    >>> lost_signs({"degrees": np.random.default_rng(0).normal(20, 9, 400)})
    []
    """
    lines = []
    for name, values in columns.items():
        negative, positive = -values[values < 0], values[values > 0]
        n, n_all = len(negative), int((~np.isnan(values)).sum())
        if not LEAST_NEGATIVE <= n <= MOST_NEGATIVE * n_all or len(np.unique(negative)) < LEAST_NEGATIVE:
            continue
        if np.median(negative) >= LEAST_SIZE * np.median(positive):
            what = f"column {short(name)} is negative in {many(n, 'row')} ({tenths_of_percent(n / n_all)})"
            how = "by as much as it is positive in the others"
            lines.append(f"{what}, {how}: if it has no sign, correct these cells or leave them empty")
    return lines


def stray_dates(dates: Columns) -> list[str]:
    """Return a line for each column of dates of which a few are further from the others than these are from each other.

    >>> days = np.arange(400) % 90 + 19_000.0
    >>> stray_dates({"seen": np.where(np.arange(400) == 7, days + 25_000, days)})[0].partition(":")[0]
    "column 'seen' has a date far from all others, which are from 2022-01-08 to 2022-04-07"
    """
    lines = []
    for name, values in dates.items():
        days = np.sort(values[~np.isnan(values)])
        n_stray = int(MOST_STRAY * len(days))
        if len(days) < LEAST_DATES:
            continue
        first, last = 0, len(days)
        for place in range(1, max(1, n_stray) + 1):  # as many at either end
            others = days[place : len(days) - place]
            if days[place] - days[place - 1] > np.ptp(others) > 0:
                first = place
            if days[-place] - days[-place - 1] > np.ptp(others) > 0:
                last = len(days) - place
        stray, others = np.concatenate([days[:first], days[last:]]), days[first:last]
        if len(stray):
            which = ", ".join(_written(day, True) for day in np.unique(stray)[:3])
            low, high = (_written(day, True) for day in (others[0], others[-1]))
            what = f"{len(stray)} dates" if len(stray) > 1 else "a date"
            lines.append(
                f"column {short(name)} has {what} far from all others, which are from {low} to {high}: "
                f"look at {which}; correct such cells or leave them empty"
            )
    return lines
