"""How the rows of a table are divided into those to learn from and those to test on: at random, by time or by group.

    SplitRule.of(table, rows, time_column="day", …).divided(labels, share, seed) → training rows, test rows

By time, the latest rows are the test, rows of the same time stay on one side, and folds of the search go forward. By group, no
group is on both sides, of test and folds. At random, classes are stratified, and the only row of a class is a training row.
Rows without a time are left out; rows without a group are a group. Used by tables/split.py and tables/row_order.py.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Self

import numpy as np

from meristem.check import many, unknown
from meristem.tables.table_columns import DROPPED, EPOCH, IS_TEXT, REMEDIES, STRAYS, Column, Table, kind_of, misread_as

RANDOM, TIME, GROUP = "random", "time", "group"
MOST_NAMED = 300  # characters of names of columns
ISO_TEXT = re.compile(r"\d{4}([-/ .]?[QTW]?\d{1,3})*(T[\d:.]+)?")  # whose alphabetical order is that of time: 2012-07, 2012-Q3
DRAWS = 50  # divisions of groups, of which the most balanced is used


@dataclass(frozen=True, eq=False)
class SplitRule:
    """A kind of division, its column, and the rows that can be used."""

    kind: str  # random, time or group
    column: str | None
    values: np.ndarray | None = field(repr=False)  # [rows of the table]: times, NaN where missing, or numbers of groups
    rows: np.ndarray = field(repr=False)  # with a target, ascending
    n_duplicates: int = 0  # rows that are left out because another one is identical
    n_without_time: int = 0

    @classmethod
    def of(
        cls, table: Table, rows: np.ndarray, *, target: str, time_column: Any, group_column: Any, drop_duplicates: bool
    ) -> Self:
        """Return the rule for some rows; raise ValueError where a column cannot be used for it."""
        if time_column is not None and group_column is not None:
            raise ValueError(f"time_column={time_column!r} and group_column={group_column!r} exclude each other; give one.")
        for option, name in (("time_column", time_column), ("group_column", group_column)):
            if name is not None and name not in table:
                raise unknown(option, name, list(table.columns), most=MOST_NAMED)
            if name is not None and name == target:
                raise ValueError(f"{option}={name!r} is the target; give another column.")
        kind, column = (TIME, time_column) if time_column is not None else (RANDOM, None)
        values = None if time_column is None else times_of(table[time_column])
        if group_column is not None:
            kind, column, values = GROUP, group_column, groups_of(table, group_column)
        n, n_without_time = len(rows), 0
        if drop_duplicates:
            rows = rows[first_of_each(table, rows, always=[target, column or target])]
        n_duplicates = n - len(rows)
        if kind == TIME and values is not None:
            n_without_time = int(np.isnan(values[rows]).sum())
            rows = rows[~np.isnan(values[rows])]
        return cls(kind, column, values, rows, n_duplicates, n_without_time)

    def divided(self, labels: np.ndarray | None, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return training and test rows, ascending; `labels` are the classes of all rows of the table, None for numbers."""
        n_test, values = round(len(self.rows) * share), self.values
        if self.kind == RANDOM or values is None:
            return _random(self.rows, labels, n_test, seed)
        own = values[self.rows]
        if len(np.unique(own)) < 2:
            raise ValueError(f"{self.kind}_column={self.column!r} is the same in all rows with a target; give another column.")
        is_test = is_latest(own, n_test) if self.kind == TIME else _is_drawn(own, _codes(labels, self.rows), n_test, seed)
        return self.rows[~is_test], self.rows[is_test]

    def in_order(self, rows: np.ndarray) -> np.ndarray:
        """Return rows in order of time, if that is the kind."""
        return rows[np.argsort(self.values[rows], kind="stable")] if self.kind == TIME and self.values is not None else rows

    def fold_options(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Return what determines folds of these rows, an option of `EncodedTable.folds`."""
        return {} if self.values is None else {"times" if self.kind == TIME else "groups": self.values[rows]}

    def words(self, table: Table, train_rows: np.ndarray, test_rows: np.ndarray | None, inputs: Collection[str]) -> list[str]:
        """Return lines for the user; `test_rows` are None where they are a table of their own."""
        lines = [f"{many(self.n_duplicates, 'row')} identical to others in inputs and target: dropped"] * bool(
            self.n_duplicates
        )
        lines += [f"{many(self.n_without_time, 'row')} without a time: dropped"] * bool(self.n_without_time)
        if self.values is None:
            return lines
        use = "an input" if self.column in inputs else "no input"
        if self.kind == TIME:
            first = None if test_rows is None else self.first_time(table, test_rows)
            latest = "" if first is None else f"rows from {first} on are held out, and "
            return [*lines, f"split by time: {latest}folds go forward; column {self.column!r} is {use}"]
        n_train = len(np.unique(self.values[train_rows]))
        counts = (
            "" if test_rows is None else f"{n_train:,} to learn from, {len(np.unique(self.values[test_rows])):,} held out; "
        )
        return [*lines, f"split by group: {counts}no group is on both sides, in folds neither; column {self.column!r} is {use}"]

    def first_time(self, table: Table, rows: np.ndarray) -> str | None:
        """Return the earliest time of some rows as text; None where the kind is another."""
        if self.kind != TIME or self.values is None or self.column is None:
            return None
        first, column = rows[np.argmin(self.values[rows])], table[self.column]
        if column.codes is not None:
            return str(column.texts[column.codes[first]])
        if np.isnan(days := column.as_days()[first]):
            return f"{column.as_numbers()[first]:g}"
        return (EPOCH + timedelta(days=round(days * 86400) / 86400)).isoformat(" ").removesuffix(" 00:00:00")


def times_of(column: Column) -> np.ndarray:
    """Return a number for each row that grows with time, NaN where there is none; raise ValueError where it is no time.

    >>> from meristem.tables.frames import table_of
    >>> times_of(table_of({"month": ["2012-11", "2013-02", "2012-12", ""]})["month"]).tolist()
    [0.0, 2.0, 1.0, nan]
    """
    n_values = column.rows - column.n_missing
    for values in (column.as_days(), column.as_numbers()):
        if n_values and (~np.isnan(values)).sum() >= (1 - STRAYS) * n_values:
            return values
    if column.codes is not None and n_values and all(ISO_TEXT.fullmatch(text) for text in column.texts):
        rank = {text: place for place, text in enumerate(sorted(column.texts))}
        return np.array([*(rank[text] for text in column.texts), np.nan, np.nan], float)[column.codes]
    remedy = REMEDIES["date"] if misread_as(column) is not None else "give a column of dates, numbers or ISO texts"
    raise ValueError(f"time_column={column.name!r} holds something else than times; {remedy}.")


def groups_of(table: Table, name: str) -> np.ndarray:
    """Return the number of each row's group; rows without one are a group."""
    column = table[name]
    values = _distinct_values(column)
    if column.codes is None and (column.kinds == IS_TEXT).any():  # more texts than a column holds
        if name not in table.texts:
            raise ValueError(f"group_column={name!r} has too many texts; give the file or frame itself in place of a Table.")
        values = np.array([str(text).strip() for text in table.texts[name]])
    return np.unique(values, return_inverse=True)[1]


def _distinct_values(column: Column) -> np.ndarray:
    """Return values by which rows of a column can be compared."""
    return next(values for values in (column.codes, column.exact, column.values) if values is not None)


def first_of_each(table: Table, rows: np.ndarray, always: Collection[str]) -> np.ndarray:
    """Return which rows are the first of those identical in all columns that can be inputs, and those of `always`."""
    place = np.zeros(len(rows), np.int64)
    for name, column in table.columns.items():
        if name in always or kind_of(column).kind != DROPPED:
            different, own = np.unique(_distinct_values(column)[rows], return_inverse=True)
            place = np.unique(place * len(different) + own, return_inverse=True)[1]
    is_first = np.zeros(len(rows), bool)
    is_first[np.unique(place, return_index=True)[1]] = True
    return is_first


def is_latest(times: np.ndarray, n_test: int) -> np.ndarray:
    """Return which rows are the latest, about `n_test`; those of the same time are on one side.

    >>> is_latest(np.array([3, 1, 2, 2, 2, 0]), 3).astype(int).tolist()
    [1, 0, 1, 1, 1, 0]
    """
    different, counts = np.unique(times, return_counts=True)
    n_later = np.cumsum(counts[::-1])[::-1][1:]  # rows from each time on, but the first
    return times >= different[1 + int(np.argmin(np.abs(n_later - n_test)))]


def _codes(labels: np.ndarray | None, rows: np.ndarray) -> np.ndarray:
    """Return the class of each row as a number; all are alike where there are no classes."""
    return np.zeros(len(rows), int) if labels is None else np.unique(labels[rows], return_inverse=True)[1]


def _is_drawn(groups: np.ndarray, classes: np.ndarray, n_test: int, seed: int) -> np.ndarray:
    """Return which rows are in drawn groups, about `n_test` in all; of several draws the one nearest to that in each class."""
    rng, n_groups = np.random.default_rng(seed), int(groups.max()) + 1
    counts = np.zeros((n_groups, int(classes.max()) + 1))  # rows of each group and class
    np.add.at(counts, (groups, classes), 1)
    used, wanted_counts = np.flatnonzero(counts.sum(1)), counts.sum(0) * n_test / len(groups)
    best: tuple[float, np.ndarray] = (np.inf, used[:1])
    for _ in range(DRAWS):
        order = rng.permutation(used)
        n_rows = counts[order].sum(1).cumsum()[:-1]
        drawn = order[: 1 + int(np.argmin(np.abs(n_rows - n_test)))]
        distance = float(np.abs(counts[drawn].sum(0) - wanted_counts).sum())
        best = min(best, (distance, drawn), key=lambda pair: pair[0])
    return np.isin(groups, best[1])


def _random(rows: np.ndarray, labels: np.ndarray | None, n_test: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.model_selection import train_test_split

    alone, strata = rows[:0], None
    if labels is not None:
        _, place, counts = np.unique(labels[rows], return_inverse=True, return_counts=True)
        is_alone, n_classes = counts[place] == 1, int((counts > 1).sum())
        if n_classes <= min(n_test, len(rows) - int(is_alone.sum()) - n_test):
            alone, rows, strata = rows[is_alone], rows[~is_alone], labels[rows[~is_alone]]
    train, test = train_test_split(rows, test_size=n_test, random_state=seed, stratify=strata)
    return np.sort(np.concatenate([train, alone])), np.sort(test)
