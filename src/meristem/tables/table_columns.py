"""A table as named columns of as many rows each, and what the values of a column can be read as.

    table["age"] → Column;  column.as_numbers(), column.as_days() → float64 [rows], NaN where a row has none
    column.as_codes(["blue", "red"]) → int16 [rows], the index of each row's text; MISSING, UNSEEN

`kind_of` decides from the values what a column is, in this order: 1. No value, or the same in every row: dropped. 2. Numbers in
at least 99 % of the rows that have a value: numbers, the others count as missing; the same for dates. 3. At most 1,000
different texts: categories. 4. Otherwise, as names and order numbers: dropped. `misread_as` finds columns of numbers or dates
in a notation that is read as texts: $8,622.04, 19.0 %, 25.07.2012, 7/2/2021. They are reported and not parsed: whether 1,234 is
a thousand and whether 7/2 is in July is ambiguous.

Memory: a column of at most 1,000 different texts holds a two-byte code per row, and each text is parsed once. Beyond that a row
is a float64 and a byte that says what it is, and other texts are only counted. Decimal commas are accepted where commas do not
separate columns: 2,3 and 1.234,5 are numbers, too.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from meristem.check import many, short
from meristem.inputs.schema import CATEGORY, DATE, MISSING, MISSING_TEXTS, NUMBER, TOO_MANY_TEXTS, UNSEEN, Field, normalized

KnownTexts = Mapping[str, Sequence[str]]  # column → texts whose codes are fixed
IS_BLANK, IS_NUMBER, IS_DAY, IS_TEXT = range(4)  # what a text or a row is
DECIMAL_COMMA = re.compile(r"-?(\d{1,3}(\.\d{3})+|\d+),\d+")
ISO_DAY = re.compile(r"\d{4}-\d\d-\d\d")
EPOCH, DAY = datetime(1970, 1, 1), timedelta(days=1)
EXACT = 2**53  # up to which every whole number is a float64
DROPPED = "dropped"  # beside the kinds of a field
ROW_KINDS = {NUMBER: IS_NUMBER, DATE: IS_DAY}  # what the rows of such a column are
STRAYS = 0.01  # the share of the values that may be something else than the rest
MOST = 0.8  # the share of the rows that must look like numbers or dates
MOST_MARKS, LEAST_READ = 2, 20  # or a half of them, of so many values, if so few texts stand between, as "-" for a gap
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


def number_of(text: str, *, commas: bool = False) -> float:
    """Return a finite number, or NaN; with `commas` it may have a decimal comma, and points between thousands.

    >>> [number_of(text) for text in (" 1e3", "1_000", "inf", "")]
    [1000.0, nan, nan, nan]
    >>> [number_of(text, commas=True) for text in ("2,3", "-1.234,5", "2.3", "1,2,3")]
    [2.3, -1234.5, 2.3, nan]
    """
    if commas and DECIMAL_COMMA.fullmatch(text.strip()):
        text = text.replace(".", "").replace(",", ".")
    try:
        value = float(text)
    except ValueError:
        return np.nan
    return value if "_" not in text and abs(value) < np.inf else np.nan


def days_of(text: str) -> float:
    """Return days since 1970-01-01 (UTC, if it names an offset) of an ISO date or date-time, or NaN.

    >>> [days_of(text) for text in ("1970-01-02", "1970-01-01 06:00:00", "1970-01-01T01:00+01:00", "1970", "1970-13-01")]
    [1.0, 0.25, 0.0, nan, nan]
    """
    text = text.strip()
    if not ISO_DAY.match(text):
        return np.nan
    try:
        when = datetime.fromisoformat(text)
        when = when if when.tzinfo is None else when.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return np.nan
    return (when - EPOCH) / DAY


def parse(text: str, *, commas: bool = False) -> tuple[int, float]:
    """Return what a text is, IS_NUMBER or one of the others, and its number or days."""
    for kind, value in ((IS_NUMBER, number_of(text, commas=commas)), (IS_DAY, days_of(text))):
        if value == value:
            return kind, value
    return IS_BLANK if not text.strip() or normalized(text) in MISSING_TEXTS else IS_TEXT, np.nan


def is_canonical(text: str, kind: type) -> bool:
    """Return whether Python writes a finite number of this type so.

    >>> [is_canonical(text, float) for text in ("7.0", "7", "7.00", "1e+20", "inf", "seven")]
    [True, False, False, True, False, False]
    """
    try:
        return str(kind(text)) == text and abs(float(text)) < np.inf
    except (ValueError, OverflowError):
        return False


@dataclass(frozen=True, eq=False)
class Column:
    """Rows as `texts[codes[row]]`, or without codes; `values` and `kinds` are those of the texts, or of the rows."""

    name: str
    codes: np.ndarray | None = field(repr=False)  # int16 [rows]; MISSING or UNSEEN where negative
    texts: tuple[str, ...]  # without codes: the first of them
    values: np.ndarray = field(repr=False)  # float64 [texts + 2], the last of UNSEEN and MISSING; or [rows]
    kinds: np.ndarray = field(repr=False)  # int8, as many: IS_BLANK, …
    example: str | None = None  # a text that is neither number nor date, without codes
    exact: np.ndarray | None = field(default=None, repr=False)  # the booleans or integers it was made from; 0 where missing
    has_commas: bool = False  # whether some numbers have decimal commas

    @property
    def rows(self) -> int:
        return len(self.values if self.codes is None else self.codes)

    @property
    def row_kinds(self) -> np.ndarray:
        return self.kinds if self.codes is None else self.kinds[self.codes]

    def as_numbers(self) -> np.ndarray:
        """Return float64 [rows], NaN where a row has no number."""
        return self._of_kind(IS_NUMBER)

    def as_days(self) -> np.ndarray:
        """Return days since 1970-01-01, float64 [rows], NaN where a row has no date."""
        return self._of_kind(IS_DAY)

    def _of_kind(self, kind: int) -> np.ndarray:
        values = np.where(self.kinds == kind, self.values, np.nan)
        return values if self.codes is None else values[self.codes]

    def as_codes(self, known_texts: Sequence[str]) -> np.ndarray:
        """Return the index of each row's text among `known_texts`; MISSING, or UNSEEN where it is none of them.

        A value of a typed column is the text that Python writes: 1 is "1", not "01"; 1.0 is "1.0", or else "1".
        """
        pairs = [(text, code) for code, text in enumerate(known_texts)]
        if self.codes is not None:
            code_of = dict(pairs)
            return np.array([*(code_of.get(text, UNSEEN) for text in self.texts), UNSEEN, MISSING], np.int16)[self.codes]
        code_of_value: dict[Any, int] = {int(text): code for text, code in pairs if is_canonical(text, int)}
        if self.exact is not None:
            values = self.exact
        elif not self.texts and not (self.kinds == IS_NUMBER).any():
            values, code_of_value = self.as_days(), {days_of(text): code for text, code in pairs if ISO_DAY.fullmatch(text)}
        else:
            numbers = {float(value): code for value, code in code_of_value.items()}
            numbers |= {float(text): code for text, code in pairs if is_canonical(text, float)}
            largest = EXACT if self.texts else np.inf  # beyond it two different texts may be one float
            values, code_of_value = self.as_numbers(), {x: code for x, code in numbers.items() if abs(x) <= largest}
        different, places = np.unique(values, return_inverse=True)
        codes = np.array([code_of_value.get(value, UNSEEN) for value in different.tolist()], np.int16)[places]
        codes[self.kinds == IS_BLANK] = MISSING
        return codes

    @property
    def n_missing(self) -> int:
        return int((self.kinds == IS_BLANK if self.codes is None else self.codes == MISSING).sum())

    def is_constant(self) -> bool:
        """Return whether all rows are equal, and none is missing."""
        values = next(values for values in (self.codes, self.exact, self.values) if values is not None)
        return not self.n_missing and bool((values == values[0]).all())


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
            usual = (IS_BLANK, ROW_KINDS[kind])
            others = (text for text in column.texts if parse(text, commas=column.has_commas)[0] not in usual)
            strays = f"{next(others, column.example)!r} and {n_strays - 1} more texts are read as missing" if n_strays else ""
            gaps = f"{column.rows - n_values:,} missing" if n_values < column.rows else ""
            comma = ", " if kind == NUMBER and not strays else "; "
            return Field(column.name, kind, comma.join(part for part in (words, strays, gaps) if part))
    if column.codes is None:
        return Field(column.name, DROPPED, TOO_MANY_TEXTS)
    n = len(np.unique(column.codes[column.codes >= 0]))
    return Field(column.name, CATEGORY, many(n, "category", "categories") + (f", {n_missing:,} missing" if n_missing else ""))


def misread_as(column: Column) -> tuple[str, str, str] | None:
    """Return what a column of texts was likely meant to be, number or date; why it is not read as such, and what to do.

    Of a column without codes, its first texts decide.

    >>> from meristem.tables.frames import table_of
    >>> table = table_of({"price": ["$8,622.04", "$12.50", "", "7"], "seat": ["12A", "3C", "7", ""]})
    >>> misread_as(table["price"])[:2], misread_as(table["seat"])
    (('number', "looks like numbers, but '$8,622.04' cannot be read as one"), None)
    """
    if len(column.texts) < 2 or kind_of(column).kind in (NUMBER, DATE):
        return None
    rows = np.arange(len(column.texts)) if column.codes is None else column.codes[column.codes >= 0]
    for kind, notation in ((NUMBER, NUMBER_NOTATION), (DATE, DATE_NOTATION)):
        is_read = np.array([parse(text)[0] == ROW_KINDS[kind] for text in column.texts])
        is_like = is_read | [notation.fullmatch(text.strip()) is not None for text in column.texts]
        is_marked = (
            len(column.texts) - is_read.sum() <= MOST_MARKS and is_read.sum() >= LEAST_READ and is_read[rows].mean() >= 0.5
        )
        if is_like[rows].mean() >= MOST or is_marked:
            example = short(column.example or column.texts[int(np.argmin(is_read))])
            return kind, f"looks like {kind}s, but {example} cannot be read as one", REMEDIES[kind]
    return None


def alike_texts(texts: Sequence[str]) -> list[tuple[str, str]]:
    """Return pairs of texts that differ in case or spaces alone.

    >>> alike_texts(["yes", "no", "Yes", "YES "])
    [('yes', 'Yes')]
    """
    same: dict[str, list[str]] = {}
    for text in texts:
        same.setdefault("".join(text.casefold().split()), []).append(text)
    return [(first, second) for first, second, *_ in (texts for texts in same.values() if len(texts) > 1)]


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns, and where they come from."""

    columns: dict[str, Column] = field(repr=False)
    rows: int
    source: str  # the file, in quotes, or "the frame"
    digest: str | None = None  # SHA-256 of the file's content, unpacked; None: it came from no file
    texts: dict[str, list[str]] = field(default_factory=dict, repr=False)  # raw texts of the columns of `keep`
    sep: str | None = None  # what separates the columns of a CSV file
    encoding: str | None = None  # of a CSV file
    format: str | None = None  # "csv", "csv.gz" or "parquet"; None: it came from no file

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]

    def __contains__(self, name: object) -> bool:
        return name in self.columns
