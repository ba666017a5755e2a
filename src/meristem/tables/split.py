"""Split a table: the column to be predicted, its training and test rows, and the schema of the other columns.

    TableSplit.of(table, target="price", task=None, test=0.2, seed=0) → TableSplit;  .words() → lines for the user
    Target.of(table, "species", None) → task "class", values ['setosa', …], the rows that have one, and why

Texts are classes. Numbers are classes where there are two different ones, or few whole ones (at most 20, with ten rows each on
average); else numbers. `task` overrides it. Labels stay as the table has them: integers, booleans and texts of frames; of files
texts, or integers where each is written as Python writes it (7, not 07). Rows without a target are left out, and counted.
`test` is the share of the rest that is held out, or a table of its own; which rows these are is decided by split_rule.py: at
random, by time or by group. Errors in a table are raised here, before anything is computed.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from meristem.check import cut, many, short, unknown
from meristem.inputs.schema import CATEGORY, DATE, MISSING, MOST_TEXTS, NUMBER, Schema, inputs_in_words
from meristem.tables.encoding import column_values, differences, learn_schema
from meristem.tables.row_order import order_warning
from meristem.tables.split_rule import GROUP, RANDOM, TIME, SplitRule, read_test_table
from meristem.tables.table_columns import (
    IS_BLANK,
    IS_DAY,
    Column,
    Table,
    alike_texts,
    is_canonical,
    kind_of,
    misread_as,
    number_of,
)

CLASS = "class"
TASKS = [CLASS, NUMBER]
LARGEST = 1e150
MOST_WHOLE, ROWS_EACH = 20, 10  # different whole numbers that are classes, and rows of each on average
MOST_SHARE = 0.5  # classes per row: with more, nearly every row is a class of its own
SEPARATORS = "|, ;\t:"
MOST_NAMED = 300  # characters of names of columns
LEAST_ROWS, LEAST_TEST_ROWS = 10, 2  # with a target
AS_REQUESTED = "as requested"
DAYS = "make numbers of them first, such as days from a day"


@dataclass(frozen=True, eq=False)
class Target:
    """A value for each row of the table; only those of `rows` count."""

    name: str
    task: str  # class or number
    why: str
    values: np.ndarray = field(repr=False)  # labels or float64, [rows of the table]
    rows: np.ndarray = field(repr=False)  # those that have a target, ascending

    @property
    def n_dropped(self) -> int:
        return len(self.values) - len(self.rows)

    @classmethod
    def of(cls, table: Table, name: str, task: str | None) -> Self:
        """Return the target in a column; raise ValueError where there is nothing to predict."""
        if task not in (None, *TASKS):
            raise unknown("task", task, TASKS)
        if name not in table:
            first, *others = table.columns
            sep = max(SEPARATORS, key=first.count)
            if sep in first and not others:  # it may be several
                what = f"target={short(name)} is not known: {table.source} has one column, {short(first)}"
                raise ValueError(f"{what}; if {sep!r} separates its columns, give --sep {sep!r}.")
            raise unknown("target", name, list(table.columns), most=MOST_NAMED)
        column, where = table[name], f"{table.source}: column {name!r}"
        kind, numbers = kind_of(column).kind, column.as_numbers()
        if column.n_missing == column.rows:
            raise ValueError(f"{where} is missing in every row; choose another target.")
        if kind == DATE or np.isin(column.kinds, (IS_BLANK, IS_DAY)).all():  # constant ones, too
            raise ValueError(f"{where} holds dates; {DAYS}.")
        is_numeric = kind == NUMBER or int((~np.isnan(numbers)).sum()) == column.rows - column.n_missing  # of constants, too
        if not is_numeric:
            if task == NUMBER and misread_as(column) is None:
                texts = f"holds texts, such as {short(column.example or column.texts[0])}; leave task out for classes"
                raise ValueError(f"task={task!r}, but column {name!r} {texts}.")
            if task == NUMBER:
                raise ValueError(f"task={task!r}: column {name!r} {_remedy(column, '')}.")
            if column.codes is None:
                raise ValueError(f"{where} {_remedy(column, f'holds more than {MOST_TEXTS:,} different texts')}.")
        exact = next(values for values in (column.exact, column.codes, numbers) if values is not None)  # beyond 2**53, too
        values = numbers if is_numeric and column.codes is not None else exact
        rows = np.flatnonzero(~np.isnan(numbers) if is_numeric else column.codes != MISSING)
        different, n_different = np.unique(values[rows]), len(np.unique(exact[rows]))
        if n_different < 2:
            value = repr(different[0].item()) if is_numeric else repr(column.texts[int(different[0])])
            raise ValueError(f"{where} is {value} in every row that has one; there is nothing to predict.")
        is_whole, n = bool(is_numeric and (different == np.round(different)).all()), len(different)
        why = AS_REQUESTED
        if task is None and not is_numeric:
            task, why = CLASS, "it holds texts"
        elif task is None and n_different == 2:
            task, why = CLASS, "it holds 2 different numbers"
        elif task is None and is_whole and n <= min(MOST_WHOLE, len(rows) // ROWS_EACH):
            task, why = CLASS, f"it holds {n} different whole numbers"
        if task in (None, NUMBER):
            if abs(largest := max(different[[0, -1]].astype(float), key=abs)) > LARGEST:
                raise ValueError(f"{where} holds {largest:.3g}, whose square no float holds; divide it by 1e150.")
            return cls(name, NUMBER, "numbers" if task is None else f"numbers, {why}", numbers, rows)
        if is_numeric and n > MOST_TEXTS:
            raise ValueError(f"{where} holds {n:,} different numbers; task='number' predicts them.")
        labels = _labels(column)
        n = len(np.unique(labels[rows]))
        if n > max(MOST_WHOLE, MOST_SHARE * len(rows)):
            what = f"has {n:,} different values in {len(rows):,} rows: no classes to learn"
            instead = f"{what}; --task number, or task='number', if it is a quantity" if is_numeric else _remedy(column, what)
            raise ValueError(f"target {name!r} {instead}.")
        return cls(name, task, f"{n} classes{', ' if why == AS_REQUESTED else ': '}{why}", labels, rows)


def _remedy(column: Column, why: str) -> str:
    """Return why a column of texts cannot be predicted, and what to do: it may hold numbers in another notation."""
    if (misread := misread_as(column)) is None:
        return f"{why}; choose another target"
    kind, words, remedy = misread
    return f"{words}; {remedy if kind == NUMBER else DAYS}"


def _labels(column: Column) -> np.ndarray:
    """Return the label of each row, anything where it is missing; numbers that no integer holds are texts."""
    if column.exact is not None:
        return column.exact
    if column.codes is None:
        numbers = np.nan_to_num(column.as_numbers())
        if (numbers == np.round(numbers)).all() and (np.abs(numbers) < 2**63).all():
            return numbers.astype(np.int64)
        return np.array([repr(number) for number in numbers.tolist()])
    if any("\0" in text for text in column.texts):
        raise ValueError(f"target {column.name!r} has a class with a NUL character, which labels cannot hold; rename it.")
    labels = np.array(column.texts)
    if all(len(text) <= 18 and is_canonical(text, int) for text in column.texts):
        labels = np.array([int(text) for text in column.texts])
    return labels[np.maximum(column.codes, 0)]


def target_values(table: Table, name: str, task: str, classes: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the target of each row of a table, and the rows that have one; raise ValueError where none does.

    A class is its index among `classes`, UNSEEN or MISSING; a number is NaN where it is missing.
    """
    if name not in table:
        raise ValueError(f"{table.source} has no column {name!r}, which was to be predicted; give a table that has.")
    if task == CLASS:
        values = table[name].as_codes([str(label) for label in ([] if classes is None else classes.tolist())])
        rows = np.flatnonzero(values != MISSING)
    else:
        values = table[name].as_numbers()
        rows = np.flatnonzero(~np.isnan(values))
    if not len(rows):
        raise ValueError(f"{table.source}: column {name!r} is missing in every row; there is nothing to compare with.")
    return values, rows


def check_test_target(table: Table, name: str, classes: np.ndarray | None) -> np.ndarray:
    """Return the rows of a test table that have a target; raise ValueError where some cannot be compared."""
    source = f"test: {table.source}"
    values, rows = target_values(replace(table, source=source), name, CLASS, classes)
    column, where = table[name], f"{source}: column {name!r}"
    if len(rows) < LEAST_TEST_ROWS:
        raise ValueError(f"{source} has {many(len(rows), 'row')} with a target; give at least {LEAST_TEST_ROWS}.")
    if classes is not None and not (values[rows] >= 0).any():
        such = ", ".join(repr(str(label)) for label in classes[:3].tolist())
        raise ValueError(f"{source}: no row of column {name!r} is of a class that is learned, such as {such}.")
    if classes is not None:
        return rows
    numbers = column.as_numbers()
    if (largest := np.nanmax(np.abs(numbers), initial=0)) > LARGEST:
        raise ValueError(f"{where} holds {largest:.3g}, whose square no float holds; divide it by 1e150.")
    if len(stray := rows[np.isnan(numbers[rows])]):
        text = column.texts[column.codes[stray[0]]] if column.codes is not None else column.example
        others = f" (and {many(len(stray) - 1, 'more row')})" if len(stray) > 1 else ""
        what = f"holds {short(text)} in row {stray[0] + 1}{others}, which is no number"
        raise ValueError(f"{where} {what}; correct it, or leave the cell empty.")
    return rows


@dataclass(frozen=True, eq=False)
class TableSplit:
    """A table with its target, its training and test rows, and its schema."""

    table: Table
    target: Target
    train_rows: np.ndarray = field(repr=False)
    test_table: Table  # often the same
    test_rows: np.ndarray = field(repr=False)
    schema: Schema
    rule: SplitRule
    share: float | None  # of the rows that was to be held out; None: there is a test table

    @classmethod
    def of(
        cls,
        table: Table,
        *,
        target: str,
        task: str | None = None,
        test: Any = 0.2,
        seed: int = 0,
        reading: Any = None,
        time_column: str | None = None,
        group_column: str | None = None,
        drop_duplicates: bool = False,
    ) -> Self:
        """Return the split of a table; `reading` are options of `read_table` for a test file. Raises ValueError of one line.

        >>> from meristem.tables.frames import table_of
        >>> table = table_of({"x": np.arange(20), "side": ["left"] * 10 + ["right"] * 10})
        >>> TableSplit.of(table, target="side").words()[0]
        'the frame: 20 rows; 16 to learn from, 4 held out'
        """
        column = Target.of(table, target, task)
        columns: dict[str, Any] = {"time_column": time_column, "group_column": group_column}
        rule = SplitRule.of(table, column.rows, target=target, **columns, drop_duplicates=drop_duplicates)
        if isinstance(test, bool) or not isinstance(test, int | float | np.number):
            schema = cls._schema(table, rule.rows, target, group_column)
            labels = np.unique(column.values[column.rows]) if column.task == CLASS else None
            classes = {} if labels is None else {target: [str(label) for label in labels.tolist()]}
            test_table = read_test_table(test, schema.texts | classes, group_column, reading or {})
            test_rows = check_test_target(test_table, target, labels)
            return cls(table, column, rule.rows, test_table, test_rows, schema, rule, None)
        train_rows, test_rows = split_rows(table, column, rule, float(test), seed)
        schema = cls._schema(table, train_rows, target, group_column)
        return cls(table, column, train_rows, table, test_rows, schema, rule, float(test))

    @staticmethod
    def _schema(table: Table, rows: np.ndarray, target: str, group: str | None) -> Schema:
        """Return the schema of the inputs; a column of groups is none, because new rows are of other groups."""
        schema = learn_schema(table, rows, without=[target, *([] if group is None else [group])])
        return schema if group is None else replace(schema, dropped=(*schema.dropped, (group, "the column of groups")))

    @property
    def has_test_table(self) -> bool:
        return self.test_table is not self.table

    @cached_property
    def _order_warning(self) -> str | None:
        if self.has_test_table or self.rule.kind != RANDOM:
            return None
        is_class = self.target.task == CLASS
        return order_warning(self.table, self.schema, self.rule.rows, self.target.values, is_class=is_class)

    def words(self) -> list[str]:
        """Return lines for the user: rows, target, columns, what was dropped, and warnings."""
        target, table = self.target, self.table
        without = f", {target.n_dropped:,} without a target are dropped" if target.n_dropped else ""
        values = column_values(self.schema, table, self.train_rows)
        n_gaps = sum(bool(np.isnan(value).any()) for value in values)  # numbers and dates with an indicator of gaps
        kinds = [column.kind for column in self.schema.fields]
        columns = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
        offer = " (--task number, or task='number', to predict it as a number)" * target.why.endswith("different whole numbers")
        numbers = {target.name, *(column.name for column in self.schema.fields if column.kind == NUMBER)}
        commas = ", ".join(repr(name) for name in table.columns if name in numbers and table[name].has_commas)
        test_differences = differences(self.schema, self.test_table) if self.has_test_table else []
        n_test = f"{len(self.test_rows):,}"
        tested = f"{n_test} of {self.test_table.source} to test on" if self.has_test_table else f"{n_test} held out"
        return [
            f"{table.source}: {table.rows:,} rows{without}; {len(self.train_rows):,} to learn from, {tested}",
            f"target {target.name!r}: {target.why}{offer}",
            *self.rule.words(table, self.train_rows, None if self.has_test_table else self.test_rows, self.schema.names),
            f"columns: {columns}; {inputs_in_words(len(self.schema.features), n_gaps)}",
            *(f"dropped column {name!r}: {why}" for name, why in self.schema.dropped),
            *([f"decimal commas are read as points in {cut(commas, MOST_NAMED)}"] if commas else []),
            *(f"{self.test_table.source}: {line}" for line in test_differences),
            *(f"warning: {line}" for line in self.table_warnings()),
        ]

    def table_warnings(self) -> list[str]:
        """Return what is likely a mistake in the table, though it can be learned from; a line each."""
        names, kinds = list(self.table.columns), {column.name: column.kind for column in self.schema.fields}
        numbers = [name for name in names if not np.isnan(number_of(name))]
        lines = [] if self._order_warning is None else [self._order_warning]
        lines += self.rule.test_warnings(self.table, self.test_table, self.test_rows) if self.has_test_table else []
        if 2 * len(numbers) > len(names):
            lines.append(f"names of columns are numbers, such as {numbers[0]!r}: if the table has no header, give it one")
        read_as = {name: "dropped" for name, _ in self.schema.dropped}
        read_as |= {name: "read as categories" for name, kind in kinds.items() if kind == CATEGORY}
        read_as |= {self.target.name: "read as classes"} if self.target.task == CLASS else {}
        for name in [name for name in names if name in read_as]:
            if (misread := misread_as(self.table[name])) is not None:
                _, words, remedy = misread
                lines.append(f"column {short(name)} {words}: it is {read_as[name]}; {remedy}")
        for name in [name for name, kind in kinds.items() if kind == NUMBER]:
            values = self.table[name].as_numbers()
            if (np.diff(values) == 1).all() and values[0] == np.round(values[0]):
                what = f"column {short(name)} counts the rows, from {values[0]:.0f} on"
                lines.append(f"{what}: if it is only an index, remove it from the table")
        for column in [column for column in self.schema.fields if column.kind == CATEGORY]:
            for first, second in alike_texts(column.texts)[:1]:
                what = f"column {short(column.name)} holds {short(first)} and {short(second)}"
                lines.append(f"{what}, which differ in case or spaces alone: they are taken as two; write them alike")
        if self.target.task != CLASS:
            return lines
        labels, counts = np.unique(self.target.values[self.target.rows], return_counts=True)
        pairs = alike_texts(list(map(str, labels.tolist())))
        lines += [f"classes {a!r} and {b!r} differ in case or spaces alone: they are taken as two" for a, b in pairs[:1]]
        once = labels[counts == 1].tolist()
        if len(once) == 1:
            lines.append(f"class {once[0]!r} has one row: nothing can be learned of it")
        elif once:
            lines.append(f"{len(once):,} classes have one row each, such as {once[0]!r}: nothing can be learned of them")
        return lines


def split_rows(table: Table, target: Target, rule: SplitRule, test: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return training and test rows, `test` being a share; raise ValueError where there are too few."""
    n, labels = len(rule.rows), target.values if target.task == CLASS else None
    if round(n * test) < LEAST_TEST_ROWS or n < LEAST_ROWS:
        raise ValueError(f"{table.source} has {n} rows with a target, of which test={test} holds out too few; give more rows.")
    train, rest = rule.divided(labels, test, seed)
    if min(len(train), len(rest)) < LEAST_TEST_ROWS:
        names = {"time_column": rule.time_column, "group_column": rule.group_column}
        options = " with ".join(f"{option}={name!r}" for option, name in names.items() if name is not None)
        what = f"{options} leaves {many(len(train), 'row')} to learn from and {len(rest):,} to test on"
        raise ValueError(f"{what}; give another column, or a test table.")
    if labels is not None and len(np.unique(labels[train])) < 2:
        raise ValueError(f"{table.source}: the rows to learn from hold one class; give more rows of the others.")
    return train, rest


def original_test_rows(facts: dict[str, Any], target: str, task: str, table: Table) -> np.ndarray | None:
    """Return the rows that were held out when a model with these facts was made from this file; None for any other table."""
    counts, split = facts["rows"], facts.get("split", {})
    is_same = table.digest is not None and table.digest == facts.get("table_sha256") and table.rows == counts["all"]
    n_used = counts["train"] + counts["test"] + counts["without_target"]
    n_used += sum(split.get(name, 0) for name in ("duplicates", "without_time", "left_out"))
    if not is_same or n_used != counts["all"]:  # it had a test table
        return None
    column = Target.of(table, target, task)
    names = {f"{kind}_column": split.get("column") if split.get("kind") == kind else None for kind in (TIME, GROUP)}
    names["group_column"] = split.get("group_column", names["group_column"])
    rule = SplitRule.of(table, column.rows, target=target, **names, drop_duplicates=split.get("duplicates", 0) > 0)
    share = split.get("share") or counts["test"] / len(rule.rows)
    rows = split_rows(table, column, rule, share, int(facts["seed"]))[1]
    return rows if len(rows) == counts["test"] else None
