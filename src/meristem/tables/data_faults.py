"""Likely mistakes in the data of a split table, found before anything is trained: one function each, a line for each fault.

    data_faults(split) → lines that name the column, numbers and what to do

Leaks and drift are in leaks_and_drift.py, values that stand apart in odd_values.py. At most 1,500 rows are searched for leaks,
20,000 for other faults of columns (drawn with a fixed seed), all rows for duplicates and means of the target. The table stays
as it is. Imported by fitting.py.
"""

import re
from collections.abc import Mapping, Sequence

import numpy as np

from meristem.check import short
from meristem.inputs.schema import CATEGORY, DATE, MISSING, TOO_MANY_TEXTS
from meristem.report.formatting import tenths_of_percent
from meristem.tables.copies import individuals, is_id, nearly_equal
from meristem.tables.encoding import column_values
from meristem.tables.joint_leaks import leaking_pairs, leaks_where_filled, target_means, telling_values
from meristem.tables.leaks_and_drift import drift_lines, leaking_columns, telling_gaps
from meristem.tables.odd_values import limited_target, lost_signs, sentinel_values, stray_dates
from meristem.tables.row_changes import changes_at_a_row, drift_with_dates, exchanged_classes, mixed_units, shifted_target
from meristem.tables.split import CLASS, TableSplit, target_values
from meristem.tables.split_rule import RANDOM
from meristem.tables.table_columns import Table

Columns = Mapping[str, np.ndarray]
MOST_ROWS, MOST_LEAK_ROWS = 20_000, 1500
LEAST_DUPLICATES, LEAST_FACTOR = 0.01, 2  # of the rows; times those by chance, if a column of names is not used
FEW_TEST_ROWS, MOST_NAMED = 5, 20  # of a class: 5 of 5 right still means 48 to 100 % (exact interval)
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
    lines += (means := _target_means(split, kinds, targets, texts))
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
    numbers = [key for key in train if kinds[key] != CATEGORY and not any(f"column {short(key)} " in line for line in means)]
    measured = {key: np.concatenate([train[key], test[key]]) for key in numbers}
    measured |= {name: np.concatenate([y, y_test])} if labels is None else {}
    lines += limited_target(name, y) if labels is None else []
    dates = [key for key in kinds if kinds[key] == DATE]
    lines += sentinel_values(measured, dates)
    lines += lost_signs({key: values for key, values in measured.items() if key not in dates})
    lines += stray_dates({key: measured[key] for key in dates})
    lines += mixed_units(measured)
    lines += _along_rows(split, kinds, targets[0], texts)
    categories = [column for column, kind in kinds.items() if kind == CATEGORY] + [name] * (task == CLASS)
    sides = train | {name: y.astype(float)}, test | {name: y_test.astype(float)}
    if split.has_test_table or split.rule.kind != RANDOM:  # rows that are drawn at random differ by chance alone
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


def _target_means(
    split: TableSplit, kinds: Mapping[str, str], targets: Sequence[np.ndarray], labels: Sequence[str] | None
) -> list[str]:
    """Return lines about columns that hold means of the target, over all rows of the table, or the training rows."""
    every = split.train_rows if split.has_test_table else np.union1d(split.train_rows, split.test_rows)
    values, y = _values(split, split.table, every), targets[0].astype(float)
    numbers = {name: column for name, column in values.items() if kinds[name] not in (CATEGORY, DATE)}
    lines = target_means(numbers, y[every], labels)
    if lines or split.has_test_table:
        return lines
    is_train = np.isin(every, split.train_rows)
    return target_means({name: column[is_train] for name, column in numbers.items()}, y[every[is_train]], labels)


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
            if (np.floor(values) == earlier)[is_both].mean() >= LEAST_LATER:  # a date, and a time on that day
                continue
            if (values > earlier)[is_both].mean() >= 0.5 and not BEFORE.search(name.lower()):
                lines[name] = f"since it is not before {short(other)} in {tenths_of_percent(is_later.mean())} of the rows"
    what = "if it is not known when a prediction is needed, remove it"
    return [f"column {short(name)} is likely known only afterwards: {why}; {what}" for name, why in lines.items()]


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
