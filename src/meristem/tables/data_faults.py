"""Likely mistakes in the data of a split table, found before anything is trained: one function each, a line for each fault.

    data_faults(split) → lines that name the column, numbers and what to do

Leaks and drift are in leaks_and_drift.py. At most 1,500 rows are searched for leaks, 20,000 for other faults of columns
(drawn with a fixed seed), all rows for duplicates. The table stays as it is. Imported by fitting.py.
"""

import re
from collections.abc import Mapping, Sequence

import numpy as np

from meristem.check import many, short
from meristem.inputs.schema import CATEGORY, DATE, MISSING, TOO_MANY_TEXTS
from meristem.report.formatting import tenths_of_percent
from meristem.tables.copies import individuals, is_id, nearly_equal
from meristem.tables.encoding import column_values
from meristem.tables.joint_leaks import leaking_pairs, leaks_where_filled, telling_values
from meristem.tables.leaks_and_drift import (
    MOST_INPUTS,
    area_under_curve,
    drift_lines,
    filled_ranks,
    forest_predictions,
    leaking_columns,
    telling_gaps,
)
from meristem.tables.row_changes import changes_at_a_row, drift_with_dates, exchanged_classes, mixed_units, shifted_target
from meristem.tables.split import CLASS, TableSplit, target_values
from meristem.tables.split_rule import RANDOM
from meristem.tables.table_columns import DAY, EPOCH, Table

Columns = Mapping[str, np.ndarray]
MOST_ROWS, MOST_LEAK_ROWS = 20_000, 1500
LEAST_DUPLICATES, LEAST_FACTOR = 0.01, 2  # of the rows; times those by chance, if a column of names is not used
FEW_TEST_ROWS, MOST_NAMED = 5, 20  # of a class: 5 of 5 right still means 48 to 100 % (exact interval)
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
LEAST_LATER, LEAST_DATES = 0.99, 20  # the share of rows in which a date is not before another, and rows with both
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
AFTER = re.compile(
    r"clos|end(ed|s|ing)?$|finish|resol|complet|discharg|deliver|(re)?paid|repay|settl|churn|cancel|terminat|death|died|deceas"
    r"|default|return|refund|outcome|ship(ped|ment)|expir|exit|left|leav|releas|approv|reject|decid|decision|fail|fulfil|convert"
)
BEFORE = re.compile(
    r"open|creat|sign|regist|start|begin|began|order|issu|admi|hire|join|receiv|appl|submit|birth|born|found|built|dob"
)
TIMES = {"at", "on", "date", "day", "days", "time", "timestamp", "duration", "when"}
TIMES |= {"minutes", "hours", "weeks", "months", "years", "dt", "ts"}
UNTIL = re.compile(r"(days?|hours?|minutes?|weeks?|months?|years?|time) (to|until|till) \w+")  # an event ahead


def data_faults(split: TableSplit) -> list[str]:
    """Return a line for each likely fault, the most serious kinds first.

    >>> from meristem.tables.frames import table_of
    >>> rng = np.random.default_rng(0)
    >>> table = table_of({"x": rng.normal(size=200), "y": np.arange(200) % 7, "z": np.arange(200) % 7 * 2.5})
    >>> [line.partition(":")[0] for line in data_faults(TableSplit.of(table, target="y", task="number"))]
    ["column 'z' alone gives the target away"]
    """
    task, name, rng = split.target.task, split.target.name, np.random.default_rng(0)
    labels = np.unique(split.target.values[split.train_rows]) if task == CLASS else None
    targets = [target_values(table, name, task, labels)[0] for table in (split.table, split.test_table)]
    train_rows, test_rows = (_sample(rows, MOST_ROWS, rng) for rows in (split.train_rows, split.test_rows))
    train, test = _values(split, split.table, train_rows), _values(split, split.test_table, test_rows)
    kinds = {field.name: field.kind for field in split.schema.fields}
    y, y_test = targets[0][train_rows], targets[1][test_rows]
    part = _sample(np.arange(len(train_rows)), MOST_LEAK_ROWS, rng)
    texts = None if labels is None else [str(label) for label in labels.tolist()]
    some = {column: values[part] for column, values in train.items()}
    lines = leaking_columns(some, y[part], texts)
    lines += leaks_where_filled(some, y[part], texts)
    lines += leaking_pairs(some, y[part], texts)
    lines += telling_gaps(train, y, texts)
    if texts is not None:
        texts_of = {field.name: field.texts for field in split.schema.fields if field.kind == CATEGORY}
        texts_of = {
            key: values for key, values in texts_of.items() if not any(f"column {short(key)} " in line for line in lines)
        }
        lines += telling_values(some, texts_of, y[part], texts)
    lines += later_dates({column: values for column, values in train.items() if kinds[column] == DATE}, list(train))
    by_chance = 0
    if any(why == TOO_MANY_TEXTS for _, why in split.schema.dropped):  # names may tell equal rows apart: compare with chance
        by_chance = _n_equal(*row_keys(split, rng))
    lines += duplicate_rows(*row_keys(split), by_chance) or _copies(split, train, test, kinds)
    lines += individuals(train, [name for name in kinds if kinds[name] == CATEGORY], y, is_class=labels is not None)
    measured = {key: np.concatenate([train[key], test[key]]) for key in train if kinds[key] != CATEGORY}
    measured |= {name: np.concatenate([y, y_test])} if labels is None else {}
    lines += limited_target(name, y) if labels is None else []
    lines += sentinel_values(measured, [key for key in kinds if kinds[key] == DATE])
    lines += mixed_units(measured)
    lines += _along_rows(split, kinds, targets[0], texts)
    categories = [column for column, kind in kinds.items() if kind == CATEGORY] + [name] * (task == CLASS)
    sides = train | {name: y.astype(float)}, test | {name: y_test.astype(float)}
    if split.has_test_table or split.rule.kind != RANDOM:  # rows that are drawn at random differ by chance alone
        dates = [key for key in kinds if kinds[key] == DATE]
        lines += drift_lines(*sides, categories, dates, by_time=split.rule.times is not None)
    if texts is not None:
        n_train, n_test = (
            np.bincount(values[rows][values[rows] >= 0], minlength=len(texts))
            for values, rows in zip(targets, (split.train_rows, split.test_rows), strict=True)
        )
        lines += rare_test_classes(texts, n_train, n_test)
    return lines


def _sample(rows: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))


def _values(split: TableSplit, table: Table, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Return the values of some rows by column, NaN where missing."""
    columns = {}
    for field, values in zip(split.schema.fields, column_values(split.schema, table, rows), strict=True):
        is_gap = values[:, 0] == MISSING if field.kind == CATEGORY else False
        columns[field.name] = np.where(is_gap, np.nan, values[:, 0])
    return columns


def _copies(split: TableSplit, train: Columns, test: Columns, kinds: Mapping[str, str]) -> list[str]:
    """Return a line about rows that are equal but for dates and numbers of rows, or nearly equal."""
    names = [name for name, kind in kinds.items() if kind == DATE or (kind != CATEGORY and is_id(train[name]))]
    if names and len(names) < len(kinds):
        by_chance = _n_equal(*row_keys(split, np.random.default_rng(0), without=names))
        if lines := duplicate_rows(*row_keys(split, without=names), by_chance, without=names):
            return lines
    numbers = [name for name, kind in kinds.items() if kind not in (CATEGORY, DATE)]
    return nearly_equal({name: train[name] for name in numbers}, {name: test[name] for name in numbers})


def _along_rows(split: TableSplit, kinds: Mapping[str, str], targets: np.ndarray, labels: Sequence[str] | None) -> list[str]:
    """Return lines about what changes along the rows of the table; by those of a training table alone, if there are two."""
    rows = split.train_rows if split.has_test_table else np.union1d(split.train_rows, split.test_rows)
    rows = rows[:MOST_ROWS]
    every, y = _values(split, split.table, rows), targets[rows].astype(float)
    columns = {name: values for name, values in every.items() if kinds[name] != DATE}
    categories = [name for name in columns if kinds[name] == CATEGORY]
    lines = changes_at_a_row(columns, categories, y, rows + 1)
    if labels is None:
        lines += changes_at_a_row({split.target.name: y}, [], None, rows + 1)
    else:
        lines += exchanged_classes(columns, y, labels, rows + 1)
    if split.rule.times is None:
        numbers = {name: values for name, values in columns.items() if name not in categories}
        lines += drift_with_dates(numbers, {name: values for name, values in every.items() if kinds[name] == DATE})
    return lines + shifted_target(columns, y, is_class=labels is not None)


def row_keys(
    split: TableSplit, shuffle: np.random.Generator | None = None, without: Sequence[str] = ()
) -> tuple[np.ndarray, np.ndarray]:
    """Return a hash of each training row and of each test row, uint64, of columns and the target; or of shuffled ones."""
    keys = []
    is_class = split.target.task == CLASS
    labels = np.unique(split.target.values[split.target.rows]) if is_class else None
    for table, rows in ((split.table, split.train_rows), (split.test_table, split.test_rows)):
        key = target_values(table, split.target.name, split.target.task, labels)[0][rows].astype(float).view(np.uint64).copy()
        for field, values in zip(split.schema.fields, column_values(split.schema, table, rows), strict=True):
            if field.name in without:
                continue
            bits = (np.where(np.isnan(values), np.nan, values)[:, 0] + 0.0).view(np.uint64)
            bits = bits if shuffle is None else shuffle.permutation(bits)
            key = (key ^ (key >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9) + bits
        keys.append((key ^ (key >> np.uint64(32))) * np.uint64(0x94D049BB133111EB))
    return keys[0], keys[1]


def _n_equal(train: np.ndarray, test: np.ndarray) -> int:
    return len(train) + len(test) - len(np.unique(np.concatenate([train, test])))


def duplicate_rows(train: np.ndarray, test: np.ndarray, by_chance: int = 0, without: Sequence[str] = ()) -> list[str]:
    """Return a line if a hundredth of the rows are duplicates of others, or of the test rows those of training rows.

    >>> duplicate_rows(np.array([1, 2, 3, 3]), np.array([2, 5]))[0].partition(" in ")[0]
    '2 of 6 rows are duplicates of others'
    """
    n = len(train) + len(test)
    n_equal, n_across = _n_equal(train, test), int(np.isin(test, train).sum())
    is_few = n_equal < LEAST_DUPLICATES * n and n_across < LEAST_DUPLICATES * len(test)
    if is_few or n_equal < LEAST_FACTOR * by_chance:
        return []
    across = f"{n_across:,} of {len(test):,} test rows are duplicates of training rows"
    which = f"columns but {', '.join(short(name) for name in without[:5])}" if without else "columns that are used"
    what = f"{n_equal:,} of {n:,} rows are duplicates of others in all {which}, and {across}"
    how = "" if without else " (--drop-duplicates)"
    return [f"{what}: the score is too good where they are copies; remove them before the split{how}"]


def later_dates(dates: Columns, names: Sequence[str]) -> list[str]:
    """Return a line for each column that is known only afterwards, by its name or since its dates follow those of another.

    >>> opened = np.arange(30.0)
    >>> later_dates({"opened_at": opened, "closed_at": opened + 3}, [])[0].partition(":")[0]
    "column 'closed_at' is likely known only afterwards"
    """
    lines = {}
    for name in names:
        words = [word.lower() for word in WORD.findall(name)]
        is_after = any(AFTER.match(word) for word in words) and (name in dates or TIMES & set(words))
        if is_after or (name not in dates and UNTIL.search(" ".join(words))):
            lines[name] = "by its name"
    for name, values in dates.items():
        for other, earlier in dates.items():
            is_both = ~np.isnan(values) & ~np.isnan(earlier)
            is_later = (values >= earlier)[is_both]
            if name in lines or name == other or is_both.sum() < LEAST_DATES or is_later.mean() < LEAST_LATER:
                continue
            if (values > earlier)[is_both].mean() >= 0.5 and not BEFORE.search(name.lower()):
                lines[name] = f"since it is not before {short(other)} in {tenths_of_percent(is_later.mean())} of the rows"
    what = "if it is not known when a prediction is needed, remove it"
    return [f"column {short(name)} is likely known only afterwards: {why}; {what}" for name, why in lines.items()]


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
    inputs, goal = [filled_ranks(values[:MOST_LEAK_ROWS]) for values in others], is_zero[:MOST_LEAK_ROWS]
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


def rare_test_classes(labels: Sequence[str], n_train: np.ndarray, n_test: np.ndarray) -> list[str]:
    """Return a line that names the classes with few test rows; not those with one row in all.

    >>> rare_test_classes(["a", "b"], np.array([40, 8]), np.array([10, 2]))[0].partition(":")[0]
    "class 'b' has fewer than 5 test rows (2)"
    """
    is_rare = (n_test < FEW_TEST_ROWS) & (n_train + n_test > 1)
    order = [place for place in np.argsort(n_test, kind="stable").tolist() if is_rare[place]]
    names = [f"{short(labels[place])} ({n_test[place]})" for place in order[:MOST_NAMED]]
    more = f" and {len(order) - MOST_NAMED} more" if len(order) > MOST_NAMED else ""
    few, advice = (
        f"fewer than {FEW_TEST_ROWS} test rows",
        "how well they are predicted is hardly measured; give more rows, or a larger test",
    )
    if len(order) == 1:
        return [f"class {short(labels[order[0]])} has {few} ({n_test[order[0]]}): {advice}"]
    return [f"{len(order):,} classes have {few}: {', '.join(names)}{more}: {advice}"] if order else []
