"""Rows that are nearly copies of others: with another id or date, with small differences, of the same individual.

    nearly_equal(train, test) → lines;  individuals(columns, categories, y, is_class=…) → lines

Nearest neighbors: of rows that are independent, the nearest is d₁ away and the twentieth d₂₀, and P(d₁ < r d₂₀) is about
20 rᴰ, where D is the number of dimensions that the rows fill: known from d₁₀/d₂₀, and at most that of the columns of many
values, for rows that differ in another column are far apart. Copies are far nearer than that, and differ in two columns or
more: rows that are equal but for a column are what duplicates become where there is a column that has nothing to do with them.

Rows of an individual: pairs within a level of a column of ids are much more alike than pairs of adjacent levels.
Used by data_faults.
"""

import re
from collections.abc import Collection, Mapping

import numpy as np

from meristem.check import short
from meristem.report.formatting import tenths_of_percent
from meristem.tables.leaks_and_drift import filled_ranks, ranks

Columns = Mapping[str, np.ndarray]
MOST_COLUMNS, MOST_QUERIES, MOST_BASE, BLOCK = 300, 500, 10_000, 100
NEAR, NEIGHBORS, LEAST_ROWS = 0.05, 20, 60  # d₁ / d₂₀
LEAST_NEAR, LEAST_NEAR_ROWS, CHANCE_FACTOR = 0.02, 10, 5
MANY_VALUES = 0.1  # different ones, relative to the rows
CLIP = 3.0  # standard deviations
MOST_OTHERS = 50  # columns that are compared
LEAST_LEVELS, MOST_LEVELS_SHARE = 20, 0.7  # of a column of individuals, and of the rows
LEAST_PAIRS = 30  # within a level
# Of their distance to that of adjacent levels: in a column named for individuals, or another.
NAMED_RATIO, OTHER_RATIO = 0.5, 0.25
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
ID_WORDS = re.compile(
    r"ids?|[ug]uid|pid|key|no|nr|number|code|patient|subject|person|people|participant|customer|client|user|member|household"
    r"|family|company|firm|employee|student|pupil|school|teacher|group|cluster|batch|lot|site|plot|animal|machine|device|sensor"
    r"|session|account|card|phone|author|owner|driver|vehicle|well|station|store|shop|building|house|hospital|doctor"
)


def is_id(values: np.ndarray) -> bool:
    """Return whether a column numbers the rows: whole numbers that are nearly all different."""
    some = values[~np.isnan(values)]
    return len(some) > 0.9 * len(values) and len(np.unique(some)) > 0.95 * len(some) and bool((some == np.round(some)).all())


def nearly_equal(train: Columns, test: Columns) -> list[str]:
    """Return a line if rows are much nearer to another than independent ones would be; the columns are numbers.

    >>> rng = np.random.default_rng(0)
    >>> x = {name: np.tile(rng.normal(size=100), 2) + 0.001 * rng.normal(size=200) for name in "abcd"}
    >>> sides = ({name: values[rows] for name, values in x.items()} for rows in (slice(150), slice(150, 200)))
    >>> nearly_equal(*sides)[0].partition(" of ")[0]
    'near duplicates: about 100.0 %'
    """
    n_train, n_test = (len(next(iter(columns.values()), ())) for columns in (train, test))
    n, rng = n_train + n_test, np.random.default_rng(0)
    n_continuous, z = 0, []
    for name in list(train)[:MOST_COLUMNS]:
        values = np.concatenate([train[name], test[name]])
        if np.isnan(values).all() or is_id(values):
            continue
        values = np.where(np.isnan(values), np.nanmedian(values), values)
        spread = np.std(np.clip(values, *np.quantile(values, [0.01, 0.99])))
        if spread > 0:
            n_continuous += len(np.unique(values)) > MANY_VALUES * n
            z.append(np.clip((values - np.median(values)) / spread, -CLIP, CLIP))
    if len(z) < 2 or n < LEAST_ROWS or not n_continuous:
        return []
    rows = rng.permutation(n)[:MOST_BASE]
    points, is_test = np.stack(z, 1)[rows], rows >= n_train
    squares = (points**2).sum(1)
    firsts, tenths, twentieths, crossing, differences = [], [], [], [], []
    for begin in range(0, min(MOST_QUERIES, len(rows)), BLOCK):
        some = np.arange(begin, min(begin + BLOCK, MOST_QUERIES, len(rows)))
        distances = squares[some, None] + squares - 2 * points[some] @ points.T
        distances[np.arange(len(some)), some] = np.inf
        nearest = np.argmin(distances, 1)
        distances = np.partition(distances, [0, NEIGHBORS // 2 - 1, NEIGHBORS - 1], 1)
        firsts.append(np.sqrt(((points[some] - points[nearest]) ** 2).sum(1)))
        tenths.append(np.sqrt(np.maximum(distances[:, NEIGHBORS // 2 - 1], 0)))
        twentieths.append(np.sqrt(np.maximum(distances[:, NEIGHBORS - 1], 0)))
        crossing.append(is_test[some] != is_test[nearest])
        differences.append((points[some] != points[nearest]).sum(1))
    lists = firsts, tenths, twentieths, crossing, differences
    first, tenth, twentieth, is_across, n_different = map(np.concatenate, lists)
    is_used = (tenth > 1e-6) & (twentieth > tenth)
    if is_used.sum() < LEAST_NEAR_ROWS:
        return []
    dimensions = np.log(2) / np.median(np.log(twentieth[is_used] / tenth[is_used]))
    by_chance = 1 - (1 - NEAR ** min(float(dimensions), n_continuous)) ** NEIGHBORS
    is_near = (n_different > 1) & (first < NEAR * twentieth)
    share = float(is_near.mean())
    if is_near.sum() < LEAST_NEAR_ROWS or share < max(LEAST_NEAR, CHANCE_FACTOR * by_chance):
        return []
    what = f"about {tenths_of_percent(share)} of the rows are nearly equal to another"
    what += f" ({tenths_of_percent(by_chance)} by chance)"
    across = f", {tenths_of_percent(is_across[is_near].mean())} of these to one on the other side of the split"
    advice = "the score is too good where they are copies or of one individual; remove them, or give --group-column"
    return [f"near duplicates: {what}{across}; {advice}"]


def individuals(columns: Columns, categories: Collection[str], y: np.ndarray, *, is_class: bool) -> list[str]:
    """Return a line for each column that tells which rows are of the same individual.

    >>> rng = np.random.default_rng(0)
    >>> patient = np.repeat(rng.permutation(100), 3).astype(float)
    >>> age = rng.normal(50, 9, 100)[patient.astype(int)]
    >>> individuals({"patient": patient, "age": age, "x": rng.normal(size=300)}, [], age, is_class=False)[0].partition(":")[0]
    "column 'patient' likely tells which rows are of the same individual"
    """
    lines: list[str] = []
    n, order = len(y), np.random.default_rng(0).permutation(len(y))  # so that no order of the file matters
    target = (y if is_class else ranks(y))[order]
    names = [name for name in columns if name not in categories][:MOST_OTHERS]
    others = np.stack([np.zeros(n), *(filled_ranks(columns[name])[order] for name in names)], 1)[:, 1:]
    for name, values in columns.items():
        rows = np.argsort(values[order], kind="stable")[: int((~np.isnan(values)).sum())]
        codes = values[order][rows]
        levels, counts = np.unique(codes, return_counts=True)
        is_pair = codes[1:] == codes[:-1]
        has_levels = LEAST_LEVELS <= len(levels) <= MOST_LEVELS_SHARE * n and (levels == np.round(levels)).all()
        if not has_levels or counts[counts > 1].sum() < n / 2 or min(is_pair.sum(), (~is_pair).sum()) < LEAST_PAIRS:
            continue
        is_named = any(ID_WORDS.fullmatch(word.lower()) for word in WORD.findall(name))
        of_target = float(_ratios(target[rows, None], is_pair, is_class=is_class)[0])
        is_other = np.array([other != name for other in names], bool)
        of_inputs = float(np.median(_ratios(others[rows][:, is_other], is_pair))) if is_other.any() else 1.0
        limit = NAMED_RATIO if is_named else OTHER_RATIO
        if of_inputs > limit and not (is_named and of_target <= limit):
            continue
        what = f"column {short(name)} likely tells which rows are of the same individual"
        differ = f"targets differ {tenths_of_percent(of_target)} and inputs {tenths_of_percent(of_inputs)} as much"
        advice = f"if new rows are of other individuals, keep each on one side: --group-column, or group_column={name!r}"
        lines.append(f"{what}: within one of its {len(levels):,} values {differ} as between neighboring values; {advice}")
    return lines


def _ratios(values: np.ndarray, is_pair: np.ndarray, *, is_class: bool = False) -> np.ndarray:
    """Return how much neighbors of a pair differ in each column, relative to other neighbors; 1 where none differs."""
    gaps = (values[1:] != values[:-1]).astype(float) if is_class else np.diff(values, axis=0) ** 2
    own, others = gaps[is_pair].mean(0), gaps[~is_pair].mean(0)
    return np.where(others > 0, own / np.maximum(others, 1e-300), 1.0)
