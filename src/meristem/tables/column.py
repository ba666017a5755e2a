"""A column of a table, and what its values can be read as: numbers, days, or one of a few texts.

    column.as_numbers()  column.as_days() → float64 [rows], NaN where a row has none
    column.as_codes(["blue", "red"]) → int16 [rows], the place of each row's text among these; MISSING, UNSEEN

Nothing is decided here (kinds.py does). As long as a column has at most 1,000 different texts, each row is the number of its
text, two bytes, and numbers and days are read from the texts when someone asks; beyond that a row is a float64, and of texts
that are neither number nor date only their rows are kept. So a column of texts takes at most nine bytes a row (seventeen, if it
has dates as well). Typed columns hold numbers or days; whole numbers and booleans hold the array that they came from, too.

How texts are compared and which are missing, inputs/texts.py says. A date is ISO's, with or without a time, and becomes days
since 1970-01-01 (UTC, if it names an offset). Where commas do not separate columns, they may be those of decimals: 2,3 and
1.234,5 are numbers, too. gathering.py and typed.py make columns; the rest of the package imports them.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from meristem.inputs.field import MISSING, UNSEEN
from meristem.tables.scalars import EXACT, comma_number_of, days_of, is_written_plainly, number_of, whole_of

ISO_DAY = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True, eq=False)
class Column:
    """A row is `texts[codes[row]]`, or what `numbers` and `days` say where there are too many different texts for codes."""

    name: str
    rows: int
    codes: np.ndarray | None = field(repr=False)  # int16 [rows], MISSING or UNSEEN where negative
    texts: tuple[str, ...] = ()  # the first of them where there are no codes
    numbers: np.ndarray | None = field(default=None, repr=False)  # float64 [rows], NaN where there is none
    days: np.ndarray | None = field(default=None, repr=False)
    is_text: np.ndarray | None = field(default=None, repr=False)  # bool [rows]: neither number nor date, without codes
    example: str | None = None  # one of them
    own: np.ndarray | None = field(default=None, repr=False)  # booleans or whole numbers that it came from; 0 where missing
    has_commas: bool = False  # whether some of its numbers are written with decimal commas

    def as_numbers(self) -> np.ndarray:
        """Return float64 [rows], NaN where a row has none.

        >>> from meristem.tables.frames import column_of
        >>> column_of("age", ["31", "NA", "old"]).as_numbers().tolist()
        [31.0, nan, nan]
        """
        return self._read(self.numbers, comma_number_of if self.has_commas else number_of)

    def as_days(self) -> np.ndarray:
        """Return float64 [rows], NaN where a row has none.

        >>> from meristem.tables.frames import column_of
        >>> column_of("born", ["1970-01-03", "", "1970-01-01T12:00"]).as_days().tolist()
        [2.0, nan, 0.5]
        """
        return self._read(self.days, days_of)

    def as_codes(self, known_texts: Sequence[str]) -> np.ndarray:
        """Return the place of each row's text among `known_texts`; MISSING, or UNSEEN where it is none of them.

        A number or a day of a typed column is the text that it is written as: 1 is "1", not "01"; 1.0 is "1.0", or else "1".

        >>> from meristem.tables.frames import column_of
        >>> column_of("color", ["red", "", "blue", "grey"]).as_codes(["blue", "red"]).tolist()
        [1, -1, 0, -2]
        >>> column_of("label", np.array([2**53, 2**53 + 1])).as_codes(["9007199254740993"]).tolist()
        [-2, 0]
        """
        if self.codes is not None:
            places = {text: place for place, text in enumerate(known_texts)}
            table = np.array([*(places.get(text, UNSEEN) for text in self.texts), UNSEEN, MISSING], np.int16)
            return table[self.codes]  # −1 and −2 are the last two
        numbers = self.as_numbers()
        is_missing = np.isnan(numbers) & np.isnan(self.as_days())
        if self.is_text is not None:
            is_missing &= ~self.is_text
        codes = np.where(is_missing, MISSING, UNSEEN).astype(np.int16)
        if self.own is not None:
            limits = np.iinfo(self.own.dtype)
            wholes = {whole_of(text): place for place, text in enumerate(known_texts) if text == str(whole_of(text))}
            targets: dict[Any, int] = {
                value: place for value, place in wholes.items() if value is not None and limits.min <= value <= limits.max
            }
            values = self.own
        elif self.numbers is None and self.days is not None:
            targets = {days_of(text): place for place, text in enumerate(known_texts) if ISO_DAY.fullmatch(text)}
            values = self.days
        else:
            # numbers that were texts are exact up to 2**53 only: beyond it two of them may be one float
            limit = EXACT if self.texts else np.inf
            plain = sorted(
                (text for text in known_texts if is_written_plainly(text)), key=lambda text: "." in text
            )  # 1.0 before 1
            places = {text: place for place, text in enumerate(known_texts)}
            targets = {number_of(text): places[text] for text in plain if abs(number_of(text)) <= limit}
            values = numbers
        targets = {value: place for value, place in targets.items() if value == value}
        if targets:
            keys = np.array(sorted(targets), values.dtype)
            places_of_keys = np.array([targets[key] for key in sorted(targets)], np.int16)
            nearest = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
            is_equal = (keys[nearest] == values) & ~is_missing
            codes[is_equal] = places_of_keys[nearest[is_equal]]
        return codes

    @property
    def n_texts(self) -> int:
        """Rows whose text is neither a number nor a date, where there are no codes."""
        return 0 if self.is_text is None else int(self.is_text.sum())

    @property
    def n_missing(self) -> int:
        if self.codes is not None:
            return int((self.codes == MISSING).sum())
        is_there = np.zeros(self.rows, bool)
        for values in (self.numbers, self.days):
            if values is not None:
                is_there |= ~np.isnan(values)
        return self.rows - int(is_there.sum()) - self.n_texts

    @property
    def n_blank(self) -> int:
        """Rows of nothing but whitespace, where that is a text of its own: no number and no date is lost with them."""
        if self.codes is None:
            return 0
        blank = [code for code, text in enumerate(self.texts) if not text.strip()]
        return int(np.isin(self.codes, blank).sum()) if blank else 0

    def is_constant(self) -> bool:
        """Return whether all rows are alike, and none is missing."""
        if self.codes is not None:
            return bool((self.codes == self.codes[0]).all() and self.codes[0] != MISSING)
        if self.own is not None:
            return bool((self.own == self.own[0]).all()) and not self.n_missing
        values = self.numbers if self.numbers is not None else self.days
        return values is not None and not self.n_texts and bool((values == values[0]).all())

    def _read(self, values: np.ndarray | None, read: Callable[[str], float]) -> np.ndarray:
        if self.codes is not None:
            return np.array([*map(read, self.texts), np.nan, np.nan])[self.codes]
        return np.full(self.rows, np.nan) if values is None else values
