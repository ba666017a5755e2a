"""A column of a table, and what its values can be read as: numbers, days, or one of a few texts.

    gatherer = Gatherer("age");  gatherer.add(["31", "", "47"]);  gatherer.column() → Column
    column_of("age", array) → Column                                       of a typed array, as frames have them

Nothing is decided here (kinds.py does). As long as a column has at most 1,000 different texts, each row is the number of its
text, two bytes, and numbers and days are read from the texts when someone asks; beyond that a row is a float64, and texts that
are neither number nor date are only counted. So a column takes at most eight bytes a row (sixteen, if it has dates as well).

Missing are the empty text and those that programs write for it (`MISSING_TEXTS`), None, NaN and NaT. A date is ISO's, with or
without a time, and becomes days since 1970-01-01 (UTC, if it names an offset). Where commas do not separate columns, they may
be those of decimals: 2,3 and 1.234,5 are numbers, too. Imports NumPy; the rest of the package imports it.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

MOST_TEXTS = 1000
MISSING, OTHER = -1, -2  # codes of a row without a value, and with one that is not among the texts
MISSING_TEXTS = frozenset(
    ["", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "-nan", "NAN", "NaT", "null", "NULL", "Null", "None", "?"]
)
DECIMAL_COMMA = re.compile(r"-?(\d{1,3}(\.\d{3})+|\d+),\d+")
DATE = re.compile(r"\d{4}-\d\d-\d\d")
EPOCH, DAY = datetime(1970, 1, 1), timedelta(days=1)
BLOCK = 8192  # rows of a typed array that are made texts at a time


@dataclass(frozen=True, eq=False)
class Column:
    """A row is `texts[codes[row]]`, or what `numbers` and `days` say where there are too many different texts for codes."""

    name: str
    rows: int
    codes: np.ndarray | None = field(repr=False)  # int16 [rows], MISSING or OTHER where negative
    texts: tuple[str, ...] = ()  # the first of them where there are no codes
    numbers: np.ndarray | None = field(default=None, repr=False)  # float64 [rows], NaN where there is none
    days: np.ndarray | None = field(default=None, repr=False)
    n_texts: int = 0  # rows whose text is neither a number nor a date, where there are no codes
    example: str | None = None  # one of them
    own: np.ndarray | None = field(default=None, repr=False)  # the array of booleans or whole numbers that it came from
    has_commas: bool = False  # whether some of its numbers are written with decimal commas

    def as_numbers(self) -> np.ndarray:
        """NaN where a row has none.

        >>> column_of("age", ["31", "NA", "old"]).as_numbers().tolist()
        [31.0, nan, nan]
        """
        return self._read(self.numbers, comma_number_of if self.has_commas else number_of)

    def as_days(self) -> np.ndarray:
        """NaN where a row has none.

        >>> column_of("born", ["1970-01-03", "", "1970-01-01T12:00"]).as_days().tolist()
        [2.0, nan, 0.5]
        """
        return self._read(self.days, days_of)

    def as_codes(self, known: Sequence[str]) -> np.ndarray:
        """The place of each row's text among `known`; MISSING, or OTHER where it is none of them.

        >>> column_of("color", ["red", "", "blue", "grey"]).as_codes(["blue", "red"]).tolist()
        [1, -1, 0, -2]
        """
        places = {text: place for place, text in enumerate(known)}
        if self.codes is not None:
            table = np.array([*(places.get(text, OTHER) for text in self.texts), OTHER, MISSING], np.int16)
            return table[self.codes]  # −1 and −2 are the last two
        numbers = self.as_numbers()
        found = np.where(np.isnan(numbers) & np.isnan(self.as_days()), MISSING, OTHER).astype(np.int16)
        for text, place in places.items():  # a typed column may hold as numbers what were texts elsewhere
            if not np.isnan(value := number_of(text)):
                found[numbers == value] = place
        return found

    @property
    def n_missing(self) -> int:
        if self.codes is not None:
            return int((self.codes == MISSING).sum())
        there = np.zeros(self.rows, bool)
        for values in (self.numbers, self.days):
            if values is not None:
                there |= ~np.isnan(values)
        return self.rows - int(there.sum()) - self.n_texts

    def is_constant(self) -> bool:
        """Whether all rows are alike, and none is missing."""
        if self.codes is not None:
            return bool((self.codes == self.codes[0]).all() and self.codes[0] != MISSING)
        values = self.numbers if self.numbers is not None else self.days
        return values is not None and not self.n_texts and bool((values == values[0]).all())

    def _read(self, values: np.ndarray | None, read: Any) -> np.ndarray:
        if self.codes is not None:
            return np.array([*map(read, self.texts), np.nan, np.nan])[self.codes]
        return np.full(self.rows, np.nan) if values is None else values


class Gatherer:
    """Blocks of texts that become a column; `known` texts keep their codes, however many others come.

    `commas`: whether numbers may be written with decimal commas.

    >>> gatherer = Gatherer("size", commas=True)
    >>> gatherer.add(["2,5", "3", "1.234,5"])
    >>> gatherer.column().as_numbers().tolist()
    [2.5, 3.0, 1234.5]
    """

    def __init__(self, name: str, known: Sequence[str] | None = None, *, commas: bool = False):
        self.name, self.rows, self._may_have_commas, self._has_commas = name, 0, commas, False
        self._is_bounded = known is not None
        self._places = {text: place for place, text in enumerate(known or ())}  # text → code
        self._room = len(self._places) + MOST_TEXTS
        self._codes_of: dict[str, int] = {}  # the same with spaces around it → code
        self._codes: list[np.ndarray] | None = []
        self._numbers: list[np.ndarray] = []
        self._days: list[np.ndarray | None] = []
        self._n_texts = 0
        self._example: str | None = None
        self._first: tuple[str, ...] = ()  # texts, once there are too many

    def add(self, block: Sequence[str]) -> None:
        """More rows."""
        self.rows += len(block)
        if self._codes is not None:
            for text in dict.fromkeys(block):
                if text not in self._codes_of:
                    self._note(text)
            if len(self._places) > self._room:
                self._widen(self._codes)
        if self._codes is not None:
            self._codes.append(np.array([self._codes_of.get(text, OTHER) for text in block], np.int16))
        else:
            self._add_values(block)

    def column(self) -> Column:
        """All rows so far."""
        if self._codes is not None:
            codes = np.concatenate([*self._codes, np.zeros(0, np.int16)])
            has_commas = self._may_have_commas and any(map(DECIMAL_COMMA.fullmatch, self._places))
            return Column(self.name, self.rows, codes, tuple(self._places), has_commas=has_commas)
        days = None
        if any(block is not None for block in self._days):
            parts = zip(self._days, self._numbers, strict=True)
            days = np.concatenate([np.full(len(other), np.nan) if block is None else block for block, other in parts])
        return Column(
            self.name,
            self.rows,
            None,
            self._first,
            numbers=np.concatenate(self._numbers),
            days=days,
            n_texts=self._n_texts,
            example=self._example,
            has_commas=self._has_commas,
        )

    def _note(self, given: str) -> None:
        text = given.strip()
        if text in MISSING_TEXTS:
            self._codes_of[given] = MISSING
        elif text in self._places or not self._is_bounded or len(self._places) < self._room:
            self._codes_of[given] = self._places.setdefault(text, len(self._places))

    def _widen(self, codes: list[np.ndarray]) -> None:
        """From codes to numbers and days: there are too many texts."""
        texts = [*self._places]
        self._first = tuple(texts[:MOST_TEXTS])
        self._codes, self._codes_of, self._places = None, {}, {}
        for block in codes:
            self._add_values(["" if code == MISSING else texts[code] for code in block.tolist()])

    def _add_values(self, block: Sequence[str]) -> None:
        try:
            values = np.array([np.nan if text in MISSING_TEXTS else float(text) for text in block])
            is_plain = not np.isinf(values).any() and "_" not in "".join(block)
        except ValueError:
            is_plain = False
        if is_plain:
            self._numbers.append(values)
            self._days.append(None)
            return
        texts = dict.fromkeys(block)
        numbers = {text: number_of(text) for text in texts}
        if self._may_have_commas and (with_commas := {text for text in texts if DECIMAL_COMMA.fullmatch(text.strip())}):
            numbers |= {text: comma_number_of(text) for text in with_commas}
            self._has_commas = True
        days = {text: days_of(text) for text in texts if numbers[text] != numbers[text]}
        strays = {text for text, day in days.items() if day != day and text.strip() not in MISSING_TEXTS}
        self._numbers.append(np.array([numbers[text] for text in block]))
        has_days = any(day == day for day in days.values())
        self._days.append(np.array([days.get(text, np.nan) for text in block]) if has_days else None)
        if strays:
            self._n_texts += sum(text in strays for text in block)
            self._example = self._example or next(text.strip() for text in block if text in strays)


def column_of(name: str, values: Any) -> Column:
    """A column from an array or a list: of numbers, booleans, dates, or of anything whose text says what it is.

    >>> column_of("size", np.array([1.5, np.nan])).n_missing, column_of("is_red", np.array([True, False])).texts
    (1, ('False', 'True'))
    """
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"Column {name!r} has shape {array.shape}; it must be one value a row.")
    kind, rows = array.dtype.kind, len(array)
    if kind == "b":
        return Column(name, rows, array.astype(np.int16), ("False", "True"), own=array)
    if kind in "iuf":
        numbers = array.astype(np.float64)
        numbers[np.isinf(numbers)] = np.nan
        return Column(name, rows, None, numbers=numbers, own=None if kind == "f" else array)
    if kind in "mM":
        unit = np.timedelta64(1, "D")
        since = array - np.datetime64(EPOCH) if kind == "M" else array
        days = np.where(np.isnat(array), np.nan, since / unit)
        return Column(name, rows, None, days=days) if kind == "M" else Column(name, rows, None, numbers=days)
    if kind not in "OUST":
        raise ValueError(f"Column {name!r} has the type {array.dtype}; give numbers, texts, dates or booleans.")
    return column_of_texts(name, array.tolist())


def column_of_texts(name: str, values: Iterable[Any]) -> Column:
    """A column from values of any type, by their texts."""
    gatherer, texts = Gatherer(name), [text_of(value) for value in values]
    for begin in range(0, len(texts), BLOCK):
        gatherer.add(texts[begin : begin + BLOCK])
    return gatherer.column()


def text_of(value: Any) -> str:
    """As a CSV file would hold it; a whole number in a column of objects without a point."""
    if value is None:
        return ""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def number_of(text: str) -> float:
    """A finite number, or NaN.

    >>> [number_of(text) for text in (" 1e3", "1_000", "inf", "")]
    [1000.0, nan, nan, nan]
    """
    try:
        value = float(text)
    except ValueError:
        return np.nan
    return value if "_" not in text and abs(value) < np.inf else np.nan


def comma_number_of(text: str) -> float:
    """The same where a comma may stand for the point, and points between thousands.

    >>> [comma_number_of(text) for text in ("2,3", "-1.234,5", "2.3", "1,2,3")]
    [2.3, -1234.5, 2.3, nan]
    """
    return number_of(text.replace(".", "").replace(",", ".") if DECIMAL_COMMA.fullmatch(text.strip()) else text)


def days_of(text: str) -> float:
    """Days since 1970-01-01 of an ISO date or date-time, or NaN.

    >>> [days_of(text) for text in ("1970-01-02", "1970-01-01 06:00:00", "1970-01-01T01:00+01:00", "1970", "1970-13-01")]
    [1.0, 0.25, 0.0, nan, nan]
    """
    text = text.strip()
    if not DATE.match(text):
        return np.nan
    try:
        when = datetime.fromisoformat(text)
        when = when if when.tzinfo is None else when.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return np.nan
    return (when - EPOCH) / DAY
