"""Numbers and dates as people write them, which are read as texts: $8,622.04, 19.0 %, "1,682,485", 25.07.2012, 7/2/2021.

    mistaken_of(column) → Mistaken("number", "$8,622.04"), or None

Nothing is read from such texts: whether 1,234 is a thousand and whether 7/2 is in July, only who wrote them knows. A column is
mistaken where most of its rows look like numbers, or like dates, and too many are written so that none can be read; of one with
more texts than are kept, its first texts say so. Imports column and kinds; target and split import it.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from meristem.check import short
from meristem.inputs.field import DATE, NUMBER
from meristem.tables.column import Column
from meristem.tables.kinds import kind_of
from meristem.tables.scalars import days_of, number_of

MOST = 0.8  # of the rows
SIGN, UNIT = r"[-+−(]?", r"(?:[$€£¥₹%]|USD|EUR|GBP|CHF|JPY)?"
DIGITS = r"(?:\d{1,3}(?:[,.'’\s]\d{3})+|\d+)(?:[.,]\d+)?"
MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
WRITTEN_NUMBER = re.compile(rf"{SIGN}\s?{UNIT}\s?{SIGN}{DIGITS}\s?{UNIT}\)?")
WRITTEN_DATE = re.compile(
    r"(?:\d{1,2}([./-])\d{1,2}\1\d{4}|\d\d([./-])\d\d\2\d\d|\d{1,2}/\d{1,2}/\d\d|\d{4}([./-])\d{1,2}\3\d{1,2}"
    rf"|\d{{1,2}}[. -]+{MONTH}[., -]+\d{{2,4}}|{MONTH}[. -]+\d{{1,2}},?[ -]+\d{{4}})(?:,?[ T]+\d.*)?",
    re.IGNORECASE,
)
REMEDIES = {
    NUMBER: "write plain numbers, such as 8622.04, and leave a cell empty where there is none",
    DATE: "write dates as 2012-07-25, and leave a cell empty where there is none",
}


class Mistaken(NamedTuple):
    """What a column was meant to be, number or date, and one of its texts that is none."""

    kind: str
    example: str

    def words(self) -> str:
        """What it looks like, and why it is not."""
        return f"looks like {self.kind}s, but {short(self.example)} cannot be read as one"

    @property
    def remedy(self) -> str:
        """What to do."""
        return REMEDIES[self.kind]


def mistaken_of(column: Column) -> Mistaken | None:
    """See the module's header.

    >>> from meristem.tables.frames import column_of
    >>> mistaken_of(column_of("price", ["$8,622.04", "$12.50", "", "7"])).words()
    "looks like numbers, but '$8,622.04' cannot be read as one"
    >>> mistaken_of(column_of("day", ["7/2/2021", "7/13/2021"])).remedy
    'write dates as 2012-07-25, and leave a cell empty where there is none'
    >>> mistaken_of(column_of("seat", ["12A", "3C", "7"])) is None
    True
    """
    if len(column.texts) < 2 or kind_of(column).kind in (NUMBER, DATE):
        return None
    rows = np.arange(len(column.texts)) if column.codes is None else column.codes[column.codes >= 0]
    readers: list[tuple[str, Callable[[str], float], re.Pattern[str]]] = [
        (NUMBER, number_of, WRITTEN_NUMBER),
        (DATE, days_of, WRITTEN_DATE),
    ]
    for kind, read, written in readers:
        is_read = np.array([not np.isnan(read(text)) for text in column.texts])
        is_like = is_read | [written.fullmatch(text.strip()) is not None for text in column.texts]
        if is_like[rows].mean() >= MOST:
            return Mistaken(kind, column.example or column.texts[int(np.argmin(is_read))])
    return None
