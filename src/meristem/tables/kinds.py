"""What a column is: numbers, dates, categories, or nothing to learn from; decided from its values, and said in words.

    kind_of(column) → Kind("number", "numbers, 3 missing")

In this order: a column without a value, or with the same in every row, is dropped; one whose values are numbers, all but one in
a hundred at most, is of numbers (the others count as missing); the same of dates; of at most 1,000 different texts it is of
categories; others, such as names and numbers of orders, are dropped. Whitespace alone is neither number nor date nor anything
else. Imports column.py; learning and target import it.
"""

from dataclasses import dataclass

import numpy as np

from meristem.inputs.field import CATEGORY, DATE, NUMBER, TOO_MANY_TEXTS
from meristem.tables.column import Column

DROPPED = "dropped"  # beside the kinds of a field
STRAYS = 0.01  # of the values, that may be something else than the rest


@dataclass(frozen=True)
class Kind:
    """One of number, date, category and dropped; and why."""

    kind: str
    why: str


def kind_of(column: Column) -> Kind:
    """See the module's header.

    >>> from meristem.tables.frames import column_of
    >>> kind_of(column_of("color", ["red", "blue", "red", ""]))
    Kind(kind='category', why='2 categories, 1 missing')
    """
    there, n_blank = column.rows - column.n_missing, column.n_blank
    if not there:
        return Kind(DROPPED, "missing in every row")
    if column.is_constant():
        return Kind(DROPPED, f"the same in every row: {_value(column)}")
    for kind, values, words in (
        (NUMBER, column.as_numbers(), "numbers"),
        (DATE, column.as_days(), "dates, as days"),
    ):
        n = int((~np.isnan(values)).sum())
        n_texts, n_gaps = there - n_blank - n, column.n_missing + n_blank
        if n and n_texts <= STRAYS * (there - n_blank):
            strays = f"{_stray(column, values)!r} and {n_texts - 1} more texts are read as missing" if n_texts else ""
            gaps = f"{n_gaps:,} missing" if n_gaps else ""
            comma = ", " if kind == NUMBER and not strays else "; "
            return Kind(kind, comma.join(part for part in (words, strays, gaps) if part))
    if column.codes is None:
        return Kind(DROPPED, TOO_MANY_TEXTS)
    n = len(np.unique(column.codes[column.codes >= 0]))
    gaps = f", {column.n_missing:,} missing" if column.n_missing else ""
    return Kind(CATEGORY, f"{n:,} {'category' if n == 1 else 'categories'}{gaps}")


def _value(column: Column) -> str:
    if column.codes is not None:
        return repr(column.texts[int(column.codes[0])])
    return f"{(column.as_numbers() if column.numbers is not None else column.as_days())[0]:g}"


def _stray(column: Column, values: np.ndarray) -> str | None:
    """A text among values of another kind."""
    if column.codes is None:
        return column.example
    codes = column.codes[np.isnan(values) & (column.codes >= 0)]
    return next((column.texts[code] for code in dict.fromkeys(codes.tolist()) if column.texts[code].strip()), None)
