"""Build a column from blocks of texts: codes while there are few different texts, numbers and days beyond.

A text is parsed once per block, not once per row.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from meristem.inputs.schema import MISSING, MISSING_TEXTS, MOST_TEXTS, UNSEEN, is_missing, normalized
from meristem.tables.arrow import distinct_texts, floats_of
from meristem.tables.scalars import DECIMAL_COMMA, comma_number_of, days_of, number_of
from meristem.tables.table_columns import Column

TOO_MANY = 10 * MOST_TEXTS  # raw texts, of which more than MOST_TEXTS differ in any case: a text has four spellings at most


class TextColumnBuilder:
    """Blocks of texts that become a column; texts of `known_texts` keep their codes, however many others come.

    `commas`: whether numbers may have decimal commas. Buffers are bytearrays, so that a long column is never held twice.

    >>> builder = TextColumnBuilder("size", commas=True)
    >>> builder.add(["2,5", "3", "1.234,5"])
    >>> builder.column().as_numbers().tolist()
    [2.5, 3.0, 1234.5]
    """

    def __init__(self, name: str, known_texts: Sequence[str] | None = None, *, commas: bool = False):
        self.name, self.rows, self._may_have_commas, self._has_commas = name, 0, commas, False
        self._is_bounded = known_texts is not None
        self._code_of_text = {text: code for code, text in enumerate(known_texts or ())}
        self._most = len(self._code_of_text) + MOST_TEXTS
        self._code_of_raw: dict[str, int] = {}  # of texts that are written with spaces, or are missing
        self._codes: bytearray | None = bytearray()  # int16; None from the first text on that is too many
        self._numbers = bytearray()  # float64
        self._days: bytearray | None = None  # float64, from the first date on
        self._is_text: bytearray | None = None  # bool, from the first text on that is neither number nor date
        self._example: str | None = None
        self._first_texts: tuple[str, ...] = ()  # once there are too many

    def add(self, texts: Any) -> None:
        """Add rows: a list of texts, or an Arrow array of strings, null where missing."""
        if isinstance(texts, list):
            places: dict[str, int] = {}
            rows = [places.setdefault(text, len(places)) for text in texts]
            self.add_categories([*places], np.array(rows, np.int64))
        else:
            self._add_array(texts)

    def add_categories(self, texts: list[str], places: np.ndarray) -> None:
        """Add rows as indices into a list of different texts; −1 is missing."""
        self.rows += len(places)
        if not self._add_codes(texts, places):
            self._add_parsed(texts, places)

    def _add_array(self, array: Any) -> None:
        self.rows += len(array)
        if self._codes is not None and self._add_codes(*distinct_texts(array, None if self._is_bounded else TOO_MANY)):
            return
        numbers = floats_of(array)
        if numbers is None and self._may_have_commas:
            numbers = floats_of(array, commas=True)
            self._has_commas |= numbers is not None
        if numbers is None:
            self._add_parsed(*distinct_texts(array))
        else:
            self._add_values(numbers)

    def column(self) -> Column:
        if self._codes is not None:
            has_commas = self._may_have_commas and any(map(DECIMAL_COMMA.fullmatch, map(str.strip, self._code_of_text)))
            codes = np.frombuffer(self._codes, np.int16)
            return Column(self.name, self.rows, codes, tuple(self._code_of_text), has_commas=has_commas)
        return Column(
            self.name,
            self.rows,
            None,
            self._first_texts,
            numbers=np.frombuffer(self._numbers, np.float64),
            days=None if self._days is None else np.frombuffer(self._days, np.float64),
            is_text=None if self._is_text is None else np.frombuffer(self._is_text, np.bool_),
            example=self._example,
            has_commas=self._has_commas,
        )

    def _add_codes(self, raws: list[str], places: np.ndarray) -> bool:
        """Add rows as codes, and return whether that was possible; where there are too many texts, codes are given up."""
        if self._codes is None:
            return False
        codes = []
        for raw in raws:
            code = self._code_of_text.get(raw)
            codes.append(self._code_of(raw) if code is None else code)
            if len(self._code_of_text) > self._most:
                texts, own = [*self._code_of_text], np.frombuffer(self._codes, np.int16)
                self._first_texts = tuple(texts[:MOST_TEXTS])
                self._codes, self._code_of_raw, self._code_of_text = None, {}, {}
                self._add_parsed(texts, own)
                return False
        self._codes += np.array([*codes, MISSING], np.int16)[places].tobytes()
        return True

    def _code_of(self, raw: str) -> int:
        """Return the code of a text that is new, missing, or written with spaces; UNSEEN where there is no room for more."""
        code = self._code_of_raw.get(raw)
        if code is not None:
            return code
        text, n = normalized(raw), len(self._code_of_text)
        if text in MISSING_TEXTS:
            code = MISSING
        elif self._is_bounded and n >= self._most:
            return self._code_of_text.get(text, UNSEEN)
        else:
            code = self._code_of_text.setdefault(text, n)
        if text != raw or code == MISSING:
            self._code_of_raw[raw] = code
        return code

    def _add_parsed(self, raws: list[str], places: np.ndarray) -> None:
        """Add rows as numbers, days or texts; each of the different texts is parsed once."""
        numbers = np.array([*map(number_of, raws), np.nan])
        days = np.full(len(raws) + 1, np.nan)
        is_text = np.zeros(len(raws) + 1, bool)
        for place in np.flatnonzero(np.isnan(numbers[:-1])).tolist():
            raw = raws[place]
            if self._may_have_commas and DECIMAL_COMMA.fullmatch(raw.strip()):
                numbers[place], self._has_commas = comma_number_of(raw), True
            elif raw.strip() and not is_missing(raw):
                days[place] = days_of(raw)
                is_text[place] = np.isnan(days[place])
        rows_of_text = np.flatnonzero(is_text[places])
        if len(rows_of_text) and self._example is None:
            self._example = normalized(raws[places[rows_of_text[0]]])
        has_days = not np.isnan(days).all()
        self._add_values(numbers[places], days[places] if has_days else None, is_text[places] if len(rows_of_text) else None)

    def _add_values(self, numbers: np.ndarray, days: np.ndarray | None = None, is_text: np.ndarray | None = None) -> None:
        before, n = len(self._numbers) // numbers.itemsize, len(numbers)
        self._days = _extended(self._days, days, before, n, np.float64(np.nan))
        self._is_text = _extended(self._is_text, is_text, before, n, np.bool_(False))
        self._numbers += numbers.tobytes()


def _extended(buffer: bytearray | None, values: np.ndarray | None, before: int, n: int, fill: np.generic) -> bytearray | None:
    """Return a buffer with `n` more values after `before`; it begins with the first block that has values."""
    if buffer is None and values is not None:
        buffer = bytearray(fill.tobytes() * before)
    if buffer is not None:
        buffer += fill.tobytes() * n if values is None else values.tobytes()
    return buffer
