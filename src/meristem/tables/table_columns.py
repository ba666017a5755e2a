"""A table as named columns of as many rows each, and what the values of a column can be read as.

    table["age"] → Column;  column.as_numbers(), column.as_days() → float64 [rows], NaN where a row has none
    column.as_codes(["blue", "red"]) → int16 [rows], the index of each row's text; MISSING, UNSEEN

Memory: a column of at most 1,000 different texts holds a two-byte code per row, and numbers and days are parsed from the texts
on demand. Beyond that a row is a float64 (and another one where the column has dates), and other texts are only counted.
Decimal commas are accepted where commas do not separate columns: 2,3 and 1.234,5 are numbers, too.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from meristem.check import short, unknown
from meristem.inputs.schema import MISSING, UNSEEN
from meristem.tables.scalars import EXACT, ISO_DAY, days_of, is_canonical, number_of

KnownTexts = Mapping[str, Sequence[str]]  # column → texts whose codes are fixed


@dataclass(frozen=True, eq=False)
class Column:
    """Rows as `texts[codes[row]]`, or as `numbers` and `days` where there are no codes."""

    name: str
    rows: int
    codes: np.ndarray | None = field(repr=False)  # int16 [rows]; MISSING or UNSEEN where negative
    texts: tuple[str, ...] = ()  # without codes: the first of them
    numbers: np.ndarray | None = field(default=None, repr=False)  # float64 [rows], NaN where there is none
    days: np.ndarray | None = field(default=None, repr=False)
    is_text: np.ndarray | None = field(default=None, repr=False)  # bool [rows]: neither number nor date, without codes
    example: str | None = None  # one of those texts
    exact: np.ndarray | None = field(default=None, repr=False)  # the booleans or integers it was made from; 0 where missing
    has_commas: bool = False  # whether some numbers have decimal commas

    def as_numbers(self) -> np.ndarray:
        """Return float64 [rows], NaN where a row has no number."""
        return self._parsed(self.numbers, partial(number_of, commas=self.has_commas))

    def as_days(self) -> np.ndarray:
        """Return days since 1970-01-01, float64 [rows], NaN where a row has no date."""
        return self._parsed(self.days, days_of)

    def as_codes(self, known_texts: Sequence[str]) -> np.ndarray:
        """Return the index of each row's text among `known_texts`; MISSING, or UNSEEN where it is none of them.

        A value of a typed column is the text that Python writes: 1 is "1", not "01"; 1.0 is "1.0", or else "1".
        """
        if self.codes is not None:
            code_of = {text: code for code, text in enumerate(known_texts)}
            recoded = np.array([*(code_of.get(text, UNSEEN) for text in self.texts), UNSEEN, MISSING], np.int16)
            return recoded[self.codes]  # −1 and −2 are the last two
        is_missing = self._is_missing()
        codes = np.where(is_missing, MISSING, UNSEEN).astype(np.int16)
        values, code_of = self._codes_of_values(known_texts)
        if code_of:
            keys = np.array(sorted(code_of), values.dtype)
            nearest = np.searchsorted(keys[:-1], values)  # the only key that can be equal
            is_equal = (keys[nearest] == values) & ~is_missing
            codes[is_equal] = np.array([code_of[key] for key in sorted(code_of)], np.int16)[nearest[is_equal]]
        return codes

    def _codes_of_values(self, known_texts: Sequence[str]) -> tuple[np.ndarray, dict[Any, int]]:
        """Return the values of a column without codes, and the code of each value that one of the texts stands for."""
        pairs = [(text, code) for code, text in enumerate(known_texts)]
        wholes = {int(text): code for text, code in pairs if is_canonical(text, int)}
        if self.exact is not None:
            limits = np.iinfo(self.exact.dtype)
            return self.exact, {value: code for value, code in wholes.items() if limits.min <= value <= limits.max}
        if self.numbers is None and self.days is not None:
            dates = {days_of(text): code for text, code in pairs if ISO_DAY.fullmatch(text)}
            return self.days, {value: code for value, code in dates.items() if value == value}
        numbers = {float(value): code for value, code in wholes.items()}
        numbers |= {float(text): code for text, code in pairs if is_canonical(text, float)}
        largest = EXACT if self.texts else np.inf  # beyond it two different texts may be one float
        return self.as_numbers(), {value: code for value, code in numbers.items() if abs(value) <= largest}

    def _is_missing(self) -> np.ndarray:
        if self.codes is not None:
            return self.codes == MISSING
        is_missing = np.isnan(self.as_numbers()) & np.isnan(self.as_days())
        return is_missing if self.is_text is None else is_missing & ~self.is_text

    @property
    def n_texts(self) -> int:
        """Rows whose text is neither a number nor a date, where there are no codes."""
        return 0 if self.is_text is None else int(self.is_text.sum())

    @property
    def n_missing(self) -> int:
        return int(self._is_missing().sum())

    @property
    def n_values(self) -> int:
        """Rows that are neither missing nor of whitespace alone (a text, where there are more spaces than a gap has)."""
        n, blank = self.rows - self.n_missing, [code for code, text in enumerate(self.texts) if not text.strip()]
        return n - int(np.isin(self.codes, blank).sum()) if blank and self.codes is not None else n

    def is_constant(self) -> bool:
        """Return whether all rows are equal, and none is missing."""
        values = next(values for values in (self.codes, self.exact, self.numbers, self.days) if values is not None)
        return not self.n_missing and not self.n_texts and bool((values == values[0]).all())

    def _parsed(self, values: np.ndarray | None, parse: Callable[[str], float]) -> np.ndarray:
        if self.codes is not None:
            return np.array([*map(parse, self.texts), np.nan, np.nan])[self.codes]
        return np.full(self.rows, np.nan) if values is None else values


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


def check_names(source: str, names: list[str]) -> None:
    """Raise ValueError where a column has no name, the name of another, or one that is not Unicode."""
    if not names:
        raise ValueError(f"{source} has no columns; its first line must name them.")
    places: dict[str, int] = {}
    for place, name in enumerate(names):
        column = f"{source}: column {place + 1}"
        if not name.strip():
            hint = " (an index that pandas wrote? to_csv(…, index=False))" if place == 0 else ""
            raise ValueError(f"{column} of {len(names)} has no name{hint}; give it one in the header.")
        if "\0" in name or not is_unicode(name):
            raise ValueError(f"{column} is called {short(name)}, which is not Unicode text without NUL; rename it.")
        if (first := places.setdefault(name, place)) != place:
            both = f"columns {first + 1} and {place + 1} are both called {short(name)}"
            raise ValueError(f"{source}: {both}; rename one in the header.")


def is_unicode(text: str) -> bool:
    """Return whether a text has no surrogates, such as bytes that were decoded with `surrogateescape`."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def texts_to_keep(keep: Sequence[str], names: list[str]) -> dict[str, list[str]]:
    """Return an empty list for each column of `keep`, whose entries are a name or several with commas."""
    columns = [part for entry in keep for part in ([entry] if entry in names else map(str.strip, entry.split(",")))]
    for name in columns:
        if name not in names:
            raise unknown("keep", name, names, most=300)
    return {name: [] for name in columns}
