"""How the rows of a table are divided into those to learn from and those to test on: at random, by time or by group.

    SplitRule.of(table, rows, time_column="day", …).divided(labels, share, seed) → training rows, test rows

By time, the latest rows are the test, rows of the same time stay on one side, and folds of the search go forward. By group, no
group is on both sides, of test and folds. With both, a group that has rows on both sides of a time is drawn to one of them, and
its rows on the other side are left out. At random, classes are stratified, and the only row of a class is a training row.
Rows without a time are left out; rows without a group are a group. A test table is as it is: `test_warnings` names what of it
is learned from. Used by tables/split.py and tables/row_order.py.
"""

import re
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Self

import numpy as np

from meristem.check import many, unknown
from meristem.paths.folds import draw_groups, separate_groups
from meristem.tables.reading import STDIN, as_table
from meristem.tables.table_columns import (
    DROPPED,
    EPOCH,
    IS_TEXT,
    REMEDIES,
    STRAYS,
    Column,
    KnownTexts,
    Table,
    kind_of,
    misread_as,
)

RANDOM, TIME, GROUP = "random", "time", "group"
MOST_NAMED = 300  # characters of names of columns
ISO_TEXT = re.compile(r"\d{4}([-/ .]?[QTW]?\d{1,3})*(T[\d:.]+)?")  # whose alphabetical order is that of time: 2012-07, 2012-Q3


@dataclass(frozen=True, eq=False)
class SplitRule:
    """The columns of a division, if there are any, and the rows that can be used."""

    time_column: str | None
    group_column: str | None
    times: np.ndarray | None = field(repr=False)  # [rows of the table], NaN where missing
    groups: np.ndarray | None = field(repr=False)  # [rows of the table], their numbers
    rows: np.ndarray = field(repr=False)  # with a target, ascending
    n_duplicates: int = 0  # rows that are left out because another one is identical
    n_without_time: int = 0

    @classmethod
    def of(
        cls, table: Table, rows: np.ndarray, *, target: str, time_column: Any, group_column: Any, drop_duplicates: bool
    ) -> Self:
        """Return the rule for some rows; raise ValueError where a column cannot be used for it."""
        for option, name in (("time_column", time_column), ("group_column", group_column)):
            if name is not None and name not in table:
                raise unknown(option, name, list(table.columns), most=MOST_NAMED)
            if name is not None and name == target:
                raise ValueError(f"{option}={name!r} is the target; give another column.")
        if time_column is not None and time_column == group_column:
            raise ValueError(f"time_column and group_column are both {time_column!r}; give two columns, or one of the options.")
        times = None if time_column is None else times_of(table[time_column])
        groups = None if group_column is None else groups_of(table, group_column)
        n, n_without_time = len(rows), 0
        if drop_duplicates:
            always = [target, *(name for name in (time_column, group_column) if name is not None)]
            rows = rows[first_of_each(table, rows, always=always)]
        n_duplicates = n - len(rows)
        if times is not None:
            n_without_time = int(np.isnan(times[rows]).sum())
            rows = rows[~np.isnan(times[rows])]
        return cls(time_column, group_column, times, groups, rows, n_duplicates, n_without_time)

    @property
    def kind(self) -> str:
        return RANDOM if self.column is None else GROUP if self.times is None else TIME

    @property
    def column(self) -> str | None:
        """The column of times, or else of groups."""
        return self.time_column or self.group_column

    def divided(self, labels: np.ndarray | None, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return training and test rows, ascending; `labels` are the classes of all rows of the table, None for numbers."""
        n_test = round(len(self.rows) * share)
        if self.column is None:
            return _random(self.rows, labels, n_test, seed)
        for option, values in (("time_column", self.times), ("group_column", self.groups)):
            if values is not None and len(np.unique(values[self.rows])) < 2:
                name = getattr(self, option)
                raise ValueError(f"{option}={name!r} is the same in all rows with a target; give another column.")
        classes = _codes(labels, self.rows)
        if self.times is None:
            is_test = draw_groups(self._of_rows(self.groups), classes, n_test, seed)
            return self.rows[~is_test], self.rows[is_test]
        is_test = is_latest(self._of_rows(self.times), n_test)
        parts = np.flatnonzero(~is_test), np.flatnonzero(is_test)
        if self.groups is not None:
            parts = separate_groups(parts, self._of_rows(self.groups), classes, seed)
        return self.rows[parts[0]], self.rows[parts[1]]

    def _of_rows(self, values: Any) -> np.ndarray:
        return np.asarray(values)[self.rows]

    def in_order(self, rows: np.ndarray) -> np.ndarray:
        """Return rows in order of time, if there is one."""
        return rows if self.times is None else rows[np.argsort(self.times[rows], kind="stable")]

    def fold_options(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Return what determines folds of these rows, options of `EncodedTable.folds`."""
        each = {"times": self.times, "groups": self.groups}
        return {name: values[rows] for name, values in each.items() if values is not None}

    def words(self, table: Table, train_rows: np.ndarray, test_rows: np.ndarray | None, inputs: Collection[str]) -> list[str]:
        """Return lines for the user; `test_rows` are None where they are a table of their own."""
        lines = [f"{many(self.n_duplicates, 'row')} identical to others in inputs and target: dropped"] * bool(
            self.n_duplicates
        )
        lines += [f"{many(self.n_without_time, 'row')} without a time: dropped"] * bool(self.n_without_time)
        n_left_out = 0 if test_rows is None else len(self.rows) - len(train_rows) - len(test_rows)
        used_as = {name: "an input" if name in inputs else "no input" for name in (self.time_column, self.group_column)}
        if self.times is not None:
            first = None if test_rows is None else self.first_time(table, test_rows)
            latest = "" if first is None else f"rows from {first} on are held out, and "
            column = f"column {self.time_column!r} is {used_as[self.time_column]}"
            lines.append(f"split by time: {latest}folds go forward; {column}")
        if self.groups is not None:
            counts = [f"{len(np.unique(self.groups[train_rows])):,} to learn from"]
            counts += [] if test_rows is None else [f"{len(np.unique(self.groups[test_rows])):,} held out"]
            column = f"column {self.group_column!r} is {used_as[self.group_column]}"
            sides = "folds hold out whole groups" if test_rows is None else "no group is on both sides, in folds neither"
            lines.append(f"split by group: {', '.join(counts)}; {sides}; {column}")
        if n_left_out:
            lines.append(f"{many(n_left_out, 'row')} of groups that are on the other side at that time: left out")
        return lines

    def test_warnings(self, table: Table, test_table: Table, test_rows: np.ndarray) -> list[str]:
        """Return lines about rows of a test table that are not new: of groups, or of times, that are learned from."""
        lines, source = [], test_table.source
        if self.group_column is not None and self.group_column in test_table:
            own = group_labels(test_table, self.group_column)[test_rows]
            is_known = np.isin(own, group_labels(table, self.group_column)[self.rows])
            if is_known.any():
                groups = f"{len(np.unique(own[is_known])):,} of {many(len(np.unique(own)), 'group')} in {source}"
                rows = f"{int(is_known.sum()):,} of {many(len(own), 'row')}"
                what = f"column {self.group_column!r}: {groups}, with {rows}, are learned from, too"
                lines.append(f"{what}: the score is not that of new groups")
        elif self.group_column is not None:
            lines.append(f"{source} has no column {self.group_column!r}: whether its groups are new is not known")
        if self.time_column is not None and self.time_column in test_table:
            n = _n_not_later(table[self.time_column], test_table[self.time_column], self.rows, test_rows)
            what = f"column {self.time_column!r}: {n:,} of {many(len(test_rows), 'row')} in {source}"
            lines += [f"{what} are not later than the last row to learn from: the score is not that of a forecast"] * bool(n)
        return lines

    def facts(self, table: Table, train_rows: np.ndarray, test_rows: np.ndarray | None, share: float | None) -> dict[str, Any]:
        """Return what is recorded of a division, made of JSON values; `test_rows` as in `words`."""
        facts: dict[str, Any] = {"kind": self.kind, "column": self.column, "share": share}
        facts["from"] = None if test_rows is None else self.first_time(table, test_rows)
        facts |= {"duplicates": self.n_duplicates, "without_time": self.n_without_time}
        if self.times is None or self.groups is None:
            return facts
        n_left_out = 0 if test_rows is None else len(self.rows) - len(train_rows) - len(test_rows)
        return facts | {"group_column": self.group_column, "left_out": n_left_out}

    def first_time(self, table: Table, rows: np.ndarray) -> str | None:
        """Return the earliest time of some rows as text; None where the kind is another."""
        if self.times is None or self.time_column is None:
            return None
        first, column = rows[np.argmin(self.times[rows])], table[self.time_column]
        if column.codes is not None:
            return str(column.texts[column.codes[first]])
        if np.isnan(days := column.as_days()[first]):
            return f"{column.as_numbers()[first]:g}"
        return (EPOCH + timedelta(days=round(days * 86400) / 86400)).isoformat(" ").removesuffix(" 00:00:00")


def read_test_table(test: Any, known_texts: KnownTexts, group_column: str | None, reading: dict[str, Any]) -> Table:
    """Return a test table, with all texts of the column of groups if it has one."""
    if group_column is None or str(test) == STDIN:  # which can be read once
        return as_table(test, known_texts, **reading)
    try:
        return as_table(test, known_texts, keep=[group_column], **reading)
    except ValueError as error:
        if not str(error).startswith("keep="):
            raise
        return as_table(test, known_texts, **reading)


def times_of(column: Column) -> np.ndarray:
    """Return a number for each row that grows with time, NaN where there is none; raise ValueError where it is no time.

    >>> from meristem.tables.frames import table_of
    >>> times_of(table_of({"month": ["2012-11", "2013-02", "2012-12", ""]})["month"]).tolist()
    [0.0, 2.0, 1.0, nan]
    """
    return _unit_and_times(column, column.texts)[1]


def _unit_and_times(column: Column, texts: Collection[str]) -> tuple[str, np.ndarray]:
    """Return the unit of a column's times (days, numbers, or places among the ISO texts), and the time of each row."""
    n_values = column.rows - column.n_missing
    for unit, values in (("days", column.as_days()), ("numbers", column.as_numbers())):
        if n_values and (~np.isnan(values)).sum() >= (1 - STRAYS) * n_values:
            return unit, values
    if column.codes is not None and n_values and all(ISO_TEXT.fullmatch(text) for text in column.texts):
        rank = {text: place for place, text in enumerate(sorted({*texts}))}
        return "texts", np.array([*(rank[text] for text in column.texts), np.nan, np.nan], float)[column.codes]
    remedy = REMEDIES["date"] if misread_as(column) is not None else "give a column of dates, numbers or ISO texts"
    raise ValueError(f"time_column={column.name!r} holds something else than times; {remedy}.")


def _n_not_later(column: Column, test_column: Column, rows: np.ndarray, test_rows: np.ndarray) -> int:
    """Return how many test rows are not later than the last training row; 0 where times cannot be compared."""
    texts = {*column.texts, *test_column.texts}
    with suppress(ValueError):  # the test column holds no times
        (unit, times), (test_unit, test_times) = _unit_and_times(column, texts), _unit_and_times(test_column, texts)
        return int((test_times[test_rows] <= times[rows].max()).sum()) if unit == test_unit else 0
    return 0


def groups_of(table: Table, name: str) -> np.ndarray:
    """Return the number of each row's group; rows without one are a group."""
    column = table[name]
    is_cut = column.codes is None and (column.kinds == IS_TEXT).any()  # more texts than a column holds
    values = group_labels(table, name) if is_cut else _distinct_values(column)
    return np.unique(values, return_inverse=True)[1]


def group_labels(table: Table, name: str) -> np.ndarray:
    """Return the label of each row's group as text, by which groups of two tables can be compared."""
    column = table[name]
    if column.codes is not None:
        return np.array([*(text.strip() for text in column.texts), "", ""])[column.codes]
    if (column.kinds == IS_TEXT).any():
        if name not in table.texts:
            raise ValueError(f"group_column={name!r} has too many texts; give the file or frame itself in place of a Table.")
        return np.array([str(text).strip() for text in table.texts[name]])
    different, places = np.unique(_distinct_values(column), return_inverse=True)
    return np.array([f"{value:.17g}" for value in different.tolist()])[places]


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
