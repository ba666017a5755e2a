"""Build a column from blocks of rows: Arrow's strings, or values that have a type of NumPy.

Texts become codes while few of them are different, numbers and days beyond; a text is parsed once per block, not once per row,
and is a number only where Python's `float` says so, to the bit. Booleans, integers, floats, dates, date-times and time spans
(as days) are not converted to text and back; integers are held as they are, beside a float64 that merges those beyond 2**53.
"""

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from meristem.inputs.schema import MISSING, MISSING_SPELLINGS, MISSING_TEXTS, MOST_TEXTS, UNSEEN, normalized
from meristem.tables.table_columns import DECIMAL_COMMA, EXACT, IS_BLANK, IS_DAY, IS_NUMBER, IS_TEXT, Column, parse

ALLOWED = "give numbers, texts, dates or booleans"
TOO_MANY = 10 * MOST_TEXTS  # raw texts, of which more than MOST_TEXTS differ in any case: a text has four spellings at most
PER_DAY = {"D": 1, "h": 24, "m": 1440} | {unit: 86400 * 10 ** (3 * n) for n, unit in enumerate(["s", "ms", "us", "ns", "ps"])}


def load_pyarrow() -> ModuleType:
    """Return pyarrow with its parts, which every table needs; raise ImportError where it is not installed."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError:
        raise ImportError("Tables need pyarrow; install it with `pip install 'meristem-nn[tables]'`.") from None
    return pyarrow


class ColumnBuilder:
    """Blocks of rows, all of texts or all of one type, that become a column.

    Texts of `known_texts` keep their codes, however many others come. `commas`: whether numbers may have decimal commas.

    >>> builder = ColumnBuilder("size", commas=True)
    >>> builder.add(load_pyarrow().array(["2,5", "3", "1.234,5"]))
    >>> builder.column().as_numbers().tolist()
    [2.5, 3.0, 1234.5]
    """

    def __init__(self, name: str, known_texts: Sequence[str] | None = None, *, commas: bool = False):
        self.name, self.rows, self._is_bounded = name, 0, known_texts is not None
        self._may_have_commas, self._has_commas = commas, False
        self._example: str | None = None
        self._code_of = {text: code for code, text in enumerate(known_texts or ())}
        self._most = len(self._code_of) + MOST_TEXTS + (not self._is_bounded)  # the last of unbounded texts is too many
        self._codes: list[np.ndarray] | None = [np.zeros(0, np.int16)]  # by block; None from the first text that is too many
        self._parsed: list[tuple[np.ndarray, np.ndarray]] = []  # what each row is, and its value, where there are no codes
        self._typed: list[tuple[np.ndarray, np.ndarray]] = []  # values of a type, and whether each is missing

    def add_values(self, values: np.ndarray, missing: np.ndarray) -> None:
        """Add rows of a type; `missing` tells which of them have no value."""
        self.rows += len(values)
        self._typed.append((values, missing))

    def add(self, texts: Any) -> None:
        """Add rows: an Arrow array of strings, null where missing."""
        self.rows += len(texts)
        if self._may_have_commas and not self._has_commas:
            is_comma = load_pyarrow().compute.match_substring_regex(texts, rf"^\s*(?:{DECIMAL_COMMA.pattern})\s*$")
            self._has_commas = is_comma.true_count > 0
        if self._codes is not None:
            raws, places = _distinct(texts, None if self._is_bounded else TOO_MANY)
            if (codes := self._codes_of(raws)) is not None:
                self._codes.append(np.array([*codes, MISSING], np.int16)[places])
                return
            before, self._codes = np.concatenate(self._codes), None
            if len(before):
                self._parse([*self._code_of], before)
        if (numbers := floats_of(texts, commas=self._has_commas)) is None:
            self._parse(*_distinct(texts))
        else:
            self._parsed.append((_kinds(numbers, IS_NUMBER), numbers))

    def _codes_of(self, raws: list[str]) -> list[int] | None:
        """Return the codes of raw texts, or None from the first text that is too many."""
        codes: list[int] = []
        for raw in raws:
            codes.append(self._code(raw))
            if not self._is_bounded and len(self._code_of) == self._most:
                return None
        return codes

    def _code(self, raw: str) -> int:
        """Return the code of a raw text; UNSEEN where it has none and there is no room for more texts."""
        text = normalized(raw)
        if text in MISSING_TEXTS:
            return MISSING
        if len(self._code_of) == self._most:
            return self._code_of.get(text, UNSEEN)
        return self._code_of.setdefault(text, len(self._code_of))

    def _parse(self, raws: list[str], places: np.ndarray) -> None:
        """Add rows as numbers, days or texts; each of the different texts is parsed once."""
        kinds, values = zip(*(parse(raw, commas=self._may_have_commas) for raw in raws), (IS_BLANK, np.nan), strict=True)
        if self._example is None and IS_TEXT in kinds:
            self._example = normalized(raws[kinds.index(IS_TEXT)])
        self._parsed.append((np.array(kinds, np.int8)[places], np.array(values)[places]))

    def column(self) -> Column:
        if self._typed:
            parts, self._typed = zip(*self._typed, strict=True), []  # so that blocks are freed column by column
            return typed_column(self.name, *map(np.concatenate, parts))
        texts = tuple(self._code_of)
        if self._codes is not None:
            return coded_column(self.name, np.concatenate(self._codes), texts, has_commas=self._has_commas)
        kinds, values = map(np.concatenate, zip(*self._parsed, strict=True))
        return Column(self.name, None, texts[:MOST_TEXTS], values, kinds, self._example, has_commas=self._has_commas)


def _distinct(texts: Any, most: int | None = None) -> tuple[list[str], np.ndarray]:
    """Return the different texts of an array, or the first `most`, and the index of each row's text; −1 where null."""
    encoded = texts.dictionary_encode()
    return encoded.dictionary[:most].to_pylist(), encoded.indices.fill_null(-1).to_numpy()


def _kinds(values: np.ndarray, kind: int) -> np.ndarray:
    """Return what rows of numbers or days are; NaN is blank."""
    return np.where(np.isnan(values), IS_BLANK, kind).astype(np.int8)


def floats_of(array: Any, *, commas: bool) -> np.ndarray | None:
    """Return float64 [rows], NaN where missing or blank; None where a text is not a finite number."""
    if not commas and (numbers := _cast(array)) is not None:
        return numbers
    pyarrow = load_pyarrow()
    compute = pyarrow.compute
    trimmed = compute.ascii_trim_whitespace(array)
    is_gap = compute.or_(compute.is_in(array, pyarrow.array(MISSING_SPELLINGS)), compute.equal(trimmed, ""))
    texts = compute.if_else(is_gap, pyarrow.scalar(None, array.type), trimmed)
    if commas:
        is_comma = compute.match_substring_regex(texts, f"^(?:{DECIMAL_COMMA.pattern})$")
        plain = compute.replace_substring(compute.replace_substring(texts, ".", ""), ",", ".")
        texts = compute.if_else(is_comma, plain, texts)
    return _cast(texts)


def _cast(array: Any) -> np.ndarray | None:
    """Return float64, NaN where null; None where a text is not a finite number (Arrow reads inf and nan(x), too)."""
    pyarrow = load_pyarrow()
    try:
        numbers: np.ndarray = array.cast(pyarrow.float64()).to_numpy(zero_copy_only=False)
    except pyarrow.ArrowInvalid:
        return None
    return numbers if np.isfinite(numbers).sum() == len(array) - array.null_count else None


def coded_column(name: str, codes: np.ndarray, texts: Sequence[str], **more: Any) -> Column:
    """Return the column of int16 codes of texts; each text is parsed once."""
    parsed = (parse(text, commas=more.get("has_commas", False)) for text in texts)
    kinds, values = zip(*parsed, (IS_TEXT, np.nan), (IS_BLANK, np.nan), strict=True)  # the last are UNSEEN and MISSING
    return Column(name, codes, tuple(texts), np.array(values), np.array(kinds, np.int8), **more)


def typed_column(name: str, values: np.ndarray, missing: np.ndarray) -> Column:
    """Return the column of an array; raise ValueError where its type is none of the module's."""
    kind = values.dtype.kind
    if kind == "b":
        return coded_column(name, np.where(missing, MISSING, values).astype(np.int16), ("False", "True"), exact=values)
    if kind in "mM":
        numbers = _days(name, values, missing)
    elif kind in "iuf":
        with np.errstate(over="ignore"):
            numbers = values.astype(np.float64)
        numbers[np.isinf(numbers)] = np.nan
    else:
        raise ValueError(f"Column {name!r} has the type {values.dtype}; {ALLOWED}.")
    numbers[missing] = np.nan
    kinds = _kinds(numbers, IS_DAY if kind == "M" else IS_NUMBER)
    return Column(name, None, (), numbers, kinds, exact=values if kind in "iu" else None)


def _days(name: str, values: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Return float64 days of datetime64 or timedelta64, anything where missing; no count overflows."""
    (unit, step), kind = np.datetime_data(values.dtype), values.dtype.kind
    if missing.all():
        return np.zeros(len(values))
    counts = np.where(missing, 0, values.astype(np.int64))
    if (unit == "W" or (unit in ("Y", "M") and kind == "M")) and (np.abs(counts.astype(float) * step) < 1e9).all():
        counts, unit, step = np.where(missing, 0, values.astype(f"{kind}8[D]").astype(np.int64)), "D", 1
    if unit not in PER_DAY:
        raise ValueError(f"Column {name!r} has the type {values.dtype}; give dates in days or seconds.")
    days, rest = np.divmod(counts, PER_DAY[unit])
    is_exact = np.abs(counts.astype(float)) <= EXACT  # then a quotient is rounded once
    return np.where(is_exact, counts / PER_DAY[unit], days + rest / PER_DAY[unit]) * step
