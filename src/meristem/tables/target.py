"""What of a table is to be predicted: a class or a number, in the table's own labels.

    Target.of(table, "species", None) → task "class", values ['setosa', …], the rows that have one, and why

Texts are classes. Numbers are classes where there are two of them, or few whole ones (at most 20, ten rows each on average);
else numbers. `task` says otherwise. Labels stay as the table has them: whole numbers, booleans and texts of frames; of files
texts, or numbers where every text is written as Python writes it (7, not 07). Rows without a target are left out, and counted.
Imports column, kinds and written.
"""

from dataclasses import dataclass, field
from typing import Self

import numpy as np

from meristem.check import short, unknown
from meristem.inputs.field import DATE, MISSING, MOST_TEXTS, NUMBER
from meristem.tables.column import Column
from meristem.tables.kinds import kind_of
from meristem.tables.table import Table
from meristem.tables.written import Mistaken, mistaken_of

CLASS = "class"
TASKS = [CLASS, NUMBER]
LARGEST = 1e150
MOST_WHOLE, ROWS_EACH = 20, 10  # different whole numbers that are classes, and rows of each on average
MOST_SHARE = 0.5  # classes beside rows: with more, nearly every row is a class of its own
MARKS = "|, ;\t:"  # what may separate columns
MOST_NAMED = 300  # characters of names of columns
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
        """See the module's header; raises ValueError where there is nothing to predict.

        >>> from meristem.tables.reading import table_of
        >>> Target.of(table_of({"size": [1, 2, 3], "color": ["red", "blue", None]}), "color", None).why
        '2 classes: it holds texts'
        """
        if task not in (None, *TASKS):
            raise unknown("task", task, TASKS)
        if name not in table:
            raise _not_there(table, name)
        column = table[name]
        if column.n_missing == column.rows:
            raise ValueError(f"{table.source}: column {name!r} is missing in every row; choose another target.")
        if kind_of(column).kind == DATE:
            raise ValueError(f"{table.source}: column {name!r} holds dates; {DAYS}.")
        return cls(name, *_read(table.source, column, task))


def _read(source: str, column: Column, task: str | None) -> tuple[str, str, np.ndarray, np.ndarray]:
    """The task, why, the values, and the rows that have one."""
    numbers, is_numeric, name = column.as_numbers(), kind_of(column).kind == NUMBER or _all_numbers(column), column.name
    if task == NUMBER and not is_numeric:
        if (mistaken := mistaken_of(column)) is not None:
            raise ValueError(f"task={task!r}: column {name!r} {mistaken.words()}; {_remedy(mistaken)}.")
        such = short(column.example or column.texts[0])
        raise ValueError(f"task={task!r}, but column {name!r} holds texts, such as {such}; leave task out for classes.")
    if not is_numeric and column.codes is None:
        raise ValueError(f"{source}: column {name!r} {_no_classes(column, f'holds more than {MOST_TEXTS:,} different texts')}.")
    rows = np.flatnonzero(~np.isnan(numbers)) if is_numeric else np.flatnonzero(_codes(column) != MISSING)
    whole = column.own if is_numeric and column.codes is None and column.own is not None else numbers  # exact beyond 2**53, too
    different = np.unique(whole[rows]) if is_numeric else np.unique(_codes(column)[rows])
    n_different = max(len(different), _n_exact(column, rows))
    if n_different < 2:
        value = repr(different[0].item()) if is_numeric else repr(column.texts[different[0]])
        raise ValueError(f"{source}: column {name!r} is {value} in every row that has one; there is nothing to predict.")
    if task is None and is_numeric:
        task, why = _task_of(different, n_different, len(rows))
    elif task is None:
        task, why = CLASS, "it holds texts"
    else:
        why = "as was asked for"
    if task == NUMBER:
        if abs(largest := max(different[[0, -1]].astype(float), key=abs)) > LARGEST:
            raise ValueError(f"{source}: column {name!r} holds {largest:.3g}, whose square no float holds; divide it by 1e150.")
        return task, "numbers" if why == NUMBER else f"numbers, {why}", numbers, rows
    if is_numeric and len(different) > MOST_TEXTS:
        raise ValueError(f"{source}: column {name!r} holds {len(different):,} different numbers; task='number' predicts them.")
    mark = ", " if why == "as was asked for" else ": "
    labels = _labels(column)
    n = len(np.unique(labels[rows]))
    if n > max(MOST_WHOLE, MOST_SHARE * len(rows)):
        much = f"has {n:,} different values in {len(rows):,} rows: no classes to learn"
        instead = f"{much}; --task number, or task='number', if it is a quantity" if is_numeric else _no_classes(column, much)
        raise ValueError(f"target {name!r} {instead}.")
    return task, f"{n} classes{mark}{why}", labels, rows


def _no_classes(column: Column, why: str) -> str:
    """Why a column of texts has no classes, and what to do: it may be one of numbers that are written in another way."""
    mistaken = mistaken_of(column)
    return f"{why}; choose another target" if mistaken is None else f"{mistaken.words()}; {_remedy(mistaken)}"


def _remedy(mistaken: Mistaken) -> str:
    return mistaken.remedy if mistaken.kind == NUMBER else DAYS


def _not_there(table: Table, name: str) -> ValueError:
    """What is wrong where a table has no such column: a single one that holds a mark may be many, with another separator."""
    if len(table.columns) == 1:
        (only,) = table.columns
        mark = max(MARKS, key=only.count)
        if mark in only:
            return ValueError(
                f"target={short(name)} is not known: {table.source} has one column, {short(only)}; if {mark!r} separates its "
                f"columns, give --sep {mark!r}."
            )
    return unknown("target", name, list(table.columns), most=MOST_NAMED)


def _n_exact(column: Column, rows: np.ndarray) -> int:
    """How many different whole numbers there are; a float cannot tell 2**53 and the next one apart."""
    exact = column.own if column.own is not None else column.codes
    return 0 if exact is None else len(np.unique(exact[rows]))


def _task_of(different: np.ndarray, n_different: int, rows: int) -> tuple[str, str]:
    """Of numbers, of which floats tell `different` apart."""
    if n_different == 2:
        return CLASS, "it holds 2 different numbers"
    is_few = len(different) <= min(MOST_WHOLE, rows // ROWS_EACH)
    if is_few and (different == np.round(different)).all():
        return CLASS, f"it holds {len(different)} different whole numbers"
    return NUMBER, NUMBER


def _all_numbers(column: Column) -> bool:
    """Also where all rows are alike, of which kinds say nothing."""
    return int((~np.isnan(column.as_numbers())).sum()) == column.rows - column.n_missing


def _codes(column: Column) -> np.ndarray:
    assert column.codes is not None
    return column.codes


def _labels(column: Column) -> np.ndarray:
    """As the table has them; what stands where there is none does not matter. Numbers that no integer holds are texts."""
    if column.own is not None:
        return column.own
    if column.codes is None:
        numbers = np.nan_to_num(column.as_numbers())
        if (numbers == np.round(numbers)).all() and (np.abs(numbers) < 2**63).all():
            return numbers.astype(np.int64)
        return np.array([repr(number) for number in numbers.tolist()])
    if any("\0" in text for text in column.texts):
        raise ValueError(f"target {column.name!r} has a class with a NUL character, which labels cannot hold; rename it.")
    labels = np.array(column.texts)
    if all(len(text) <= 18 and _is_written_as(int, text) for text in column.texts):
        labels = np.array([int(text) for text in column.texts])
    return labels[np.maximum(column.codes, 0)]


def _is_written_as(kind: type, text: str) -> bool:
    """Whether this is how Python writes such a number: then it can be written again as it was.

    >>> [_is_written_as(int, text) for text in ("7", "07", "7.0", "seven")]
    [True, False, False, False]
    """
    try:
        return repr(kind(text)) == text
    except ValueError:
        return False
