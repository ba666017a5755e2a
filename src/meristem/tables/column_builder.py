"""Build a column from blocks of rows: of texts, or of values that have a type of NumPy.

Texts become codes while few of them are different, numbers and days beyond; a text is parsed once per block, not once per row.
Booleans, integers, floats, dates, date-times and time spans (as days) are not converted to text and back; integers are held as
they are, beside a float64 that merges those beyond 2**53.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from meristem.inputs.schema import MISSING, MISSING_TEXTS, MOST_TEXTS, UNSEEN, is_missing, normalized
from meristem.tables.arrow import distinct_texts, floats_of
from meristem.tables.scalars import DECIMAL_COMMA, EXACT, days_of, number_of
from meristem.tables.table_columns import Column

ALLOWED = "give numbers, texts, dates or booleans"
TOO_MANY = 10 * MOST_TEXTS  # raw texts, of which more than MOST_TEXTS differ in any case: a text has four spellings at most
PER_DAY = {"D": 1, "h": 24, "m": 1440, "s": 86400, "ms": 86400 * 10**3, "us": 86400 * 10**6, "ns": 86400 * 10**9}
DAYS_PER = {"W": 7.0, "ps": 1 / 86400e12, "fs": 1 / 86400e15, "as": 1 / 86400e18}


class ColumnBuilder:
    """Blocks of rows, all of texts or all of one type, that become a column.

    Texts of `known_texts` keep their codes, however many others come. `commas`: whether numbers may have decimal commas.
    Buffers are bytearrays, so that a long column is never held twice.

    >>> builder = ColumnBuilder("size", commas=True)
    >>> builder.add(["2,5", "3", "1.234,5"])
    >>> builder.column().as_numbers().tolist()
    [2.5, 3.0, 1234.5]
    """

    def __init__(self, name: str, known_texts: Sequence[str] | None = None, *, commas: bool = False):
        self.name, self.rows, self._may_have_commas, self._has_commas = name, 0, commas, False
        self._is_bounded, self._texts = known_texts is not None, [*(known_texts or ())]
        self._most = len(self._texts) + MOST_TEXTS
        self._code_of = {text: code for code, text in enumerate(self._texts)}  # of raw texts, too
        self._codes: bytearray | None = bytearray()  # int16; None from the first text on that is too many
        self._numbers, self._days, self._is_text = bytearray(), bytearray(), bytearray()  # float64, float64, bool
        self._values: list[tuple[np.ndarray, np.ndarray]] = []  # values of a type, and whether each is missing
        self._example: str | None = None

    def add_values(self, values: np.ndarray, missing: np.ndarray) -> None:
        """Add rows of a type; `missing` tells which of them have no value."""
        self.rows += len(values)
        self._values.append((values, missing))

    def add(self, texts: Any) -> None:
        """Add rows: a list of texts, or an Arrow array of strings, null where missing."""
        self.rows += len(texts)
        if self._codes is not None and self._add_codes(*distinct_texts(texts, None if self._is_bounded else TOO_MANY)):
            return
        for commas in [False, True] if self._may_have_commas else [False]:
            if not isinstance(texts, list) and (numbers := floats_of(texts, commas=commas)) is not None:
                self._has_commas |= commas
                self._numbers += numbers.tobytes()
                return
        self._add_parsed(*distinct_texts(texts))

    def add_categories(self, texts: list[str], places: np.ndarray) -> None:
        """Add rows as indices into a list of texts."""
        self.rows += len(places)
        if self._codes is None or not self._add_codes(texts, places):
            self._add_parsed(texts, places)

    def column(self) -> Column:
        if self._values:
            parts, self._values = zip(*self._values, strict=True), []  # so that blocks are freed column by column
            return typed_column(self.name, *(part[0] if len(part) == 1 else np.concatenate(part) for part in parts))
        texts = tuple(self._texts)
        if self._codes is not None:
            has_commas = self._may_have_commas and any(DECIMAL_COMMA.fullmatch(text.strip()) for text in texts)
            return Column(self.name, self.rows, np.frombuffer(self._codes, np.int16), texts, has_commas=has_commas)
        return Column(
            self.name,
            self.rows,
            None,
            texts[:MOST_TEXTS],
            np.frombuffer(self._numbers),
            np.frombuffer(_padded(self._days, np.nan, self.rows)) if self._days else None,
            np.frombuffer(_padded(self._is_text, False, self.rows), bool) if self._is_text else None,
            self._example,
            has_commas=self._has_commas,
        )

    def _add_codes(self, raws: list[str], places: np.ndarray) -> bool:
        """Add rows as codes, and return whether that was possible; where there are too many texts, codes are given up."""
        assert self._codes is not None
        codes = []
        for raw in raws:
            code = self._code_of.get(raw)
            codes.append(self._new_code(raw) if code is None else code)
            if len(self._texts) > self._most:
                before, self._codes, self._code_of = self._codes, None, {}
                self._add_parsed(self._texts, np.frombuffer(before, np.int16))
                return False
        self._codes += np.array([*codes, MISSING], np.int16)[places].tobytes()
        return True

    def _new_code(self, raw: str) -> int:
        """Return the code of a raw text that has none yet; UNSEEN where there is no room for more texts."""
        text = normalized(raw)
        code = MISSING if text in MISSING_TEXTS else self._code_of.get(text)
        if code is None:
            if self._is_bounded and len(self._texts) >= self._most:
                return UNSEEN
            code = self._code_of[text] = len(self._texts)
            self._texts.append(text)
        self._code_of[raw] = code
        return code

    def _add_parsed(self, raws: list[str], places: np.ndarray) -> None:
        """Add rows as numbers, days or texts; each of the different texts is parsed once."""
        numbers = np.array([*map(number_of, raws), np.nan])
        days, is_text = np.full(len(numbers), np.nan), np.zeros(len(numbers), bool)
        for place in np.flatnonzero(np.isnan(numbers[:-1])).tolist():
            raw = raws[place]
            if self._may_have_commas and DECIMAL_COMMA.fullmatch(raw.strip()):
                numbers[place], self._has_commas = number_of(raw, commas=True), True
            elif raw.strip() and not is_missing(raw):
                days[place] = days_of(raw)
                is_text[place] = np.isnan(days[place])
        rows_of_text = np.flatnonzero(is_text[places])
        if len(rows_of_text) and self._example is None:
            self._example = normalized(raws[places[rows_of_text[0]]])
        before = len(self._numbers) // 8
        if not np.isnan(days).all():
            _padded(self._days, np.nan, before).extend(days[places].tobytes())
        if len(rows_of_text):
            _padded(self._is_text, False, before).extend(is_text[places].tobytes())
        self._numbers += numbers[places].tobytes()


def _padded(buffer: bytearray, value: float, rows: int) -> bytearray:
    """Lengthen a buffer to so many rows, and return it: blocks without a value of its kind were not added to it."""
    filler = np.array(value).tobytes()
    buffer += filler * (rows - len(buffer) // len(filler))
    return buffer


def typed_column(name: str, values: np.ndarray, missing: np.ndarray) -> Column:
    """Return the column of an array; raise ValueError where its type is none of the module's."""
    kind, rows = values.dtype.kind, len(values)
    if kind == "b":
        return Column(name, rows, np.where(missing, MISSING, values).astype(np.int16), ("False", "True"), exact=values)
    if kind in "mM":
        numbers = _days(name, values, missing)
    elif kind in "iuf":
        with np.errstate(over="ignore"):
            numbers = values.astype(np.float64)
        numbers[np.isinf(numbers)] = np.nan
    else:
        raise ValueError(f"Column {name!r} has the type {values.dtype}; {ALLOWED}.")
    numbers[missing] = np.nan
    if kind == "M":
        return Column(name, rows, None, days=numbers)
    return Column(name, rows, None, numbers=numbers, exact=values if kind in "iu" else None)


def _days(name: str, values: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Return float64 days of datetime64 or timedelta64 in any unit, anything where missing; no count overflows."""
    unit, step = np.datetime_data(values.dtype)
    counts = np.where(missing, 0, values.astype(np.int64))
    if unit in PER_DAY:
        days = counts / PER_DAY[unit]  # rounded once, as long as counts are exact
        is_large = np.abs(counts.astype(np.float64)) > EXACT
        days[is_large] = counts[is_large] // PER_DAY[unit] + (counts[is_large] % PER_DAY[unit]) / PER_DAY[unit]
        return days * step
    if unit in DAYS_PER:
        return counts * (DAYS_PER[unit] * step)
    if unit in ("Y", "M") and values.dtype.kind == "M" and (np.abs(counts.astype(float) * step) < 1e9).all():
        return values.astype("datetime64[D]").astype(np.int64).astype(np.float64)
    if unit == "generic" and missing.all():
        return np.zeros(len(values))
    raise ValueError(f"Column {name!r} has the type {values.dtype}; give dates in days or seconds.")
