"""The column to be predicted: a class or a number for each row, in the table's own labels.

    Target.of(table, "species", None) → task "class", values ['setosa', …], the rows that have one, and why

Texts are classes. Numbers are classes where there are two different ones, or few whole ones (at most 20, with ten rows each on
average); else numbers. `task` overrides it. Labels stay as the table has them: integers, booleans and texts of frames; of files
texts, or integers where each is written as Python writes it (7, not 07). Rows without a target are left out, and counted.
"""

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from meristem.check import many, short, unknown
from meristem.inputs.schema import DATE, MISSING, MOST_TEXTS, NUMBER
from meristem.tables.table_columns import IS_BLANK, IS_DAY, Column, Table, is_canonical, kind_of, misread_as

CLASS = "class"
TASKS = [CLASS, NUMBER]
LARGEST = 1e150
MOST_WHOLE, ROWS_EACH = 20, 10  # different whole numbers that are classes, and rows of each on average
MOST_SHARE = 0.5  # classes per row: with more, nearly every row is a class of its own
SEPARATORS = "|, ;\t:"
MOST_NAMED = 300  # characters of names of columns
LEAST_TEST_ROWS = 2
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

    @property
    def classes(self) -> np.ndarray | None:
        """The different labels, ascending; None of numbers."""
        return np.unique(self.values[self.rows]) if self.task == CLASS else None

    @classmethod
    def of(cls, table: Table, name: str, task: str | None) -> Self:
        """Return the target in a column; raise ValueError where there is nothing to predict."""
        if task not in (None, *TASKS):
            raise unknown("task", task, TASKS)
        if name not in table:
            raise _no_such_column(table, name)
        column, where = table[name], f"{table.source}: column {name!r}"
        kind, numbers = kind_of(column).kind, column.as_numbers()
        if column.n_missing == column.rows:
            raise ValueError(f"{where} is missing in every row; choose another target.")
        if kind == DATE or np.isin(column.kinds, (IS_BLANK, IS_DAY)).all():  # constant ones, too
            raise ValueError(f"{where} holds dates; {DAYS}.")
        is_numeric = kind == NUMBER or int((~np.isnan(numbers)).sum()) == column.rows - column.n_missing  # of constants, too
        if not is_numeric:
            _check_texts(column, where, task)
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


def _check_texts(column: Column, where: str, task: str | None) -> None:
    """Raise ValueError where a column of texts is no target: a number is requested, or there are too many texts."""
    if task == NUMBER and misread_as(column) is None:
        texts = f"holds texts, such as {short(column.example or column.texts[0])}; leave task out for classes"
        raise ValueError(f"task={task!r}, but column {column.name!r} {texts}.")
    if task == NUMBER:
        raise ValueError(f"task={task!r}: column {column.name!r} {_remedy(column, '')}.")
    if column.codes is None:
        raise ValueError(f"{where} {_remedy(column, f'holds more than {MOST_TEXTS:,} different texts')}.")


def _remedy(column: Column, why: str) -> str:
    """Return why a column of texts cannot be predicted, and what to do: it may hold numbers in another notation."""
    if (misread := misread_as(column)) is None:
        return f"{why}; choose another target"
    return f"{misread.words}; {misread.remedy if misread.kind == NUMBER else DAYS}"


def _no_such_column(table: Table, name: str) -> ValueError:
    """Return the error of a target that is no column; a single column with a separator in its name may be several."""
    if len(table.columns) == 1:
        (only,) = table.columns
        sep = max(SEPARATORS, key=only.count)
        if sep in only:
            what = f"target={short(name)} is not known: {table.source} has one column, {short(only)}"
            return ValueError(f"{what}; if {sep!r} separates its columns, give --sep {sep!r}.")
    return unknown("target", name, list(table.columns), most=MOST_NAMED)


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


def check_test_target(table: Table, name: str, task: str, classes: np.ndarray | None = None) -> np.ndarray:
    """Return the rows of a test table that have a target; raise ValueError where some cannot be compared."""
    source = f"test: {table.source}"
    values, rows = target_values(replace(table, source=source), name, CLASS, classes)
    column, where = table[name], f"{source}: column {name!r}"
    if len(rows) < LEAST_TEST_ROWS:
        raise ValueError(f"{source} has {many(len(rows), 'row')} with a target; give at least {LEAST_TEST_ROWS}.")
    if task == CLASS:
        if classes is not None and not (values[rows] >= 0).any():
            such = ", ".join(repr(str(label)) for label in classes[:3].tolist())
            raise ValueError(f"{source}: no row of column {name!r} is of a class that is learned, such as {such}.")
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
