"""What a column is: numbers, dates, categories, or dropped; decided from its values, in this order.

1. No value, or the same in every row: dropped. 2. Numbers in at least 99 % of the rows that have a value: numbers, the others
count as missing; the same for dates. 3. At most 1,000 different texts: categories. 4. Otherwise, as names and order numbers:
dropped.

`misread_as` finds columns of numbers or dates in a notation that is read as texts: $8,622.04, 19.0 %, 25.07.2012, 7/2/2021.
They are reported and not parsed: whether 1,234 is a thousand and whether 7/2 is in July is ambiguous.
"""

import re
from typing import NamedTuple

import numpy as np

from meristem.check import many, short
from meristem.inputs.schema import CATEGORY, DATE, NUMBER, TOO_MANY_TEXTS, Field
from meristem.tables.table_columns import IS_BLANK, IS_DAY, IS_NUMBER, Column, parse

DROPPED = "dropped"  # beside the kinds of a field
ROW_KINDS = {NUMBER: IS_NUMBER, DATE: IS_DAY}  # what the rows of such a column are
STRAYS = 0.01  # the share of the values that may be something else than the rest
MOST = 0.8  # the share of the rows that must look like numbers or dates
SIGN, UNIT = r"[-+−(]?", r"(?:[$€£¥₹%]|USD|EUR|GBP|CHF|JPY)?"
DIGITS = r"(?:\d{1,3}(?:[,.'’\s]\d{3})+|\d+)(?:[.,]\d+)?"
MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
NUMBER_NOTATION = re.compile(rf"{SIGN}\s?{UNIT}\s?{SIGN}{DIGITS}\s?{UNIT}\)?")
DATE_NOTATION = re.compile(
    r"(?:\d{1,2}([./-])\d{1,2}\1\d{4}|\d\d([./-])\d\d\2\d\d|\d{1,2}/\d{1,2}/\d\d|\d{4}([./-])\d{1,2}\3\d{1,2}"
    rf"|\d{{1,2}}[. -]+{MONTH}[., -]+\d{{2,4}}|{MONTH}[. -]+\d{{1,2}},?[ -]+\d{{4}})(?:,?[ T]+\d.*)?",
    re.IGNORECASE,
)
REMEDIES = {
    NUMBER: "write plain numbers, such as 8622.04, and leave a cell empty where there is none",
    DATE: "write dates as 2012-07-25, and leave a cell empty where there is none",
}


def kind_of(column: Column) -> Field:
    """Return what a column is (see the module's header): number, date, category or dropped, and why in words."""
    n_missing, kinds = column.n_missing, column.row_kinds
    if n_missing == column.rows:
        return Field(column.name, DROPPED, "missing in every row")
    if column.is_constant():
        first = f"{column.values[0]:g}" if column.codes is None else repr(column.texts[int(column.codes[0])])
        return Field(column.name, DROPPED, f"the same in every row: {first}")
    n_values = int((kinds != IS_BLANK).sum())
    for kind, words in ((NUMBER, "numbers"), (DATE, "dates, as days")):
        n = int((kinds == ROW_KINDS[kind]).sum())
        n_strays = n_values - n
        if n and n_strays <= STRAYS * n_values:
            others = (
                text for text in column.texts if parse(text, commas=column.has_commas)[0] not in (IS_BLANK, ROW_KINDS[kind])
            )
            strays = f"{next(others, column.example)!r} and {n_strays - 1} more texts are read as missing" if n_strays else ""
            gaps = f"{column.rows - n_values:,} missing" if n_values < column.rows else ""
            comma = ", " if kind == NUMBER and not strays else "; "
            return Field(column.name, kind, comma.join(part for part in (words, strays, gaps) if part))
    if column.codes is None:
        return Field(column.name, DROPPED, TOO_MANY_TEXTS)
    n = len(np.unique(column.codes[column.codes >= 0]))
    return Field(column.name, CATEGORY, many(n, "category", "categories") + (f", {n_missing:,} missing" if n_missing else ""))


class Misread(NamedTuple):
    """What a column was likely meant to be, number or date; why it is not read as such, and what to do."""

    kind: str
    words: str
    remedy: str


def misread_as(column: Column) -> Misread | None:
    """Return what a column of texts was likely meant to be; of one without codes, its first texts decide.

    >>> from meristem.tables.frames import table_of
    >>> table = table_of({"price": ["$8,622.04", "$12.50", "", "7"], "seat": ["12A", "3C", "7", ""]})
    >>> misread_as(table["price"]).words, misread_as(table["seat"])
    ("looks like numbers, but '$8,622.04' cannot be read as one", None)
    """
    if len(column.texts) < 2 or kind_of(column).kind in (NUMBER, DATE):
        return None
    rows = np.arange(len(column.texts)) if column.codes is None else column.codes[column.codes >= 0]
    for kind, notation in ((NUMBER, NUMBER_NOTATION), (DATE, DATE_NOTATION)):
        is_read = np.array([parse(text)[0] == ROW_KINDS[kind] for text in column.texts])
        is_like = is_read | [notation.fullmatch(text.strip()) is not None for text in column.texts]
        if is_like[rows].mean() >= MOST:
            example = short(column.example or column.texts[int(np.argmin(is_read))])
            return Misread(kind, f"looks like {kind}s, but {example} cannot be read as one", REMEDIES[kind])
    return None
