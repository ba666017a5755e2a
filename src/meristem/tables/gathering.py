"""Blocks of texts become a column: codes while there are few different texts, numbers and days beyond.

    gatherer = Gatherer("age");  gatherer.add(TextBlock(["31", "", "47"]));  gatherer.column() → Column

A block gives its different texts with the place of each row among them, so that a text is looked at once and not in each row,
and its rows as floats where all are plain numbers: what `float` says of each, to the bit. TextBlock is one of Python's strings,
CodedBlock one of categories; arrow.py has one of pyarrow's. Imports column.py; frames, batches and separated import it.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import DTypeLike

from meristem.inputs.field import MISSING, MOST_TEXTS, UNSEEN
from meristem.inputs.texts import MISSING_TEXTS, normalized, spellings
from meristem.tables.column import Column
from meristem.tables.scalars import DECIMAL_COMMA, comma_number_of, days_of, number_of

GROWTH = 1.25
MISSING_RAWS = frozenset(raw for text in MISSING_TEXTS for raw in spellings(text))
TOO_MANY = 10 * MOST_TEXTS  # raw texts, of which more than MOST_TEXTS differ in any case: a text has four spellings at most


@runtime_checkable
class Block(Protocol):
    """Texts of some rows."""

    def __len__(self) -> int: ...

    def distinct(self, most: int | None = None) -> tuple[list[str], np.ndarray]:
        """Return different texts, and the place of each row's among them; −1 where a row is missing.

        Beyond `most` a block may leave texts out, though not their places.
        """

    def floats(self) -> np.ndarray | None:
        """Return float64 [rows], NaN where missing; None where some text is anything else than a plain finite number."""

    def comma_floats(self) -> np.ndarray | None:
        """Return the same where some are written with decimal commas, or None: not all are numbers, or they are not known."""

    def texts(self) -> list[str]:
        """Return the text of each row."""


class TextBlock:
    """Rows as Python's strings.

    >>> texts, places = TextBlock(["b", "a", "b"]).distinct()
    >>> texts, places.tolist(), TextBlock(["1", "NA"]).floats().tolist()
    (['b', 'a'], [0, 1, 0], [1.0, nan])
    """

    def __init__(self, texts: Sequence[str]):
        self._texts = texts

    def __len__(self) -> int:
        return len(self._texts)

    def distinct(self, most: int | None = None) -> tuple[list[str], np.ndarray]:
        places: dict[str, int] = {}
        rows = [places.setdefault(text, len(places)) for text in self._texts]
        return [*places], np.array(rows, np.int64)

    def texts(self) -> list[str]:
        return [*self._texts]

    def floats(self) -> np.ndarray | None:
        try:
            values = np.array([np.nan if text in MISSING_TEXTS else float(text) for text in self._texts])
        except ValueError:
            return None
        return None if np.isinf(values).any() or "_" in "".join(self._texts) else values

    def comma_floats(self) -> np.ndarray | None:
        return None


class CodedBlock:
    """Rows as places in a list of texts, −1: missing; texts without a row are left out.

    >>> CodedBlock(["red", "unused", "blue"], np.array([2, -1, 0])).distinct()[0]
    ['red', 'blue']
    """

    def __init__(self, texts: Sequence[str], places: np.ndarray):
        used = np.unique(places[places >= 0])
        table = np.full(len(texts) + 1, -1)
        table[used] = np.arange(len(used))
        self._texts, self._places = [texts[place] for place in used], table[places]

    def __len__(self) -> int:
        return len(self._places)

    def distinct(self, most: int | None = None) -> tuple[list[str], np.ndarray]:
        return self._texts, self._places

    def texts(self) -> list[str]:
        return ["" if place < 0 else self._texts[place] for place in self._places.tolist()]

    def floats(self) -> np.ndarray | None:
        return None

    def comma_floats(self) -> np.ndarray | None:
        return None


class Vector:
    """An array that grows at its end: a column of many blocks is never in memory twice.

    >>> vector = Vector(np.int16)
    >>> vector.extend(np.array([1, 2]))
    >>> vector.extend(np.array([3]))
    >>> vector.array().tolist()
    [1, 2, 3]
    """

    def __init__(self, dtype: DTypeLike):
        self._room, self._n = np.empty(0, dtype), 0

    def __len__(self) -> int:
        return self._n

    def extend(self, values: np.ndarray) -> None:
        """Add values at the end."""
        end = self._n + len(values)
        if end > len(self._room):
            self._room.resize(max(end, int(GROWTH * len(self._room))), refcheck=False)
        self._room[self._n : end] = values
        self._n = end

    def array(self) -> np.ndarray:
        """Return all values; the vector is empty then."""
        values, n = self._room, self._n
        self._room, self._n = np.empty(0, values.dtype), 0
        values.resize(n, refcheck=False)
        return values


class Gatherer:
    """Blocks of texts that become a column; texts of `known_texts` keep their codes, however many others come.

    `commas`: whether numbers may be written with decimal commas.

    >>> gatherer = Gatherer("size", commas=True)
    >>> gatherer.add(TextBlock(["2,5", "3", "1.234,5"]))
    >>> gatherer.column().as_numbers().tolist()
    [2.5, 3.0, 1234.5]
    """

    def __init__(self, name: str, known_texts: Sequence[str] | None = None, *, commas: bool = False):
        self.name, self.rows, self._may_have_commas, self._has_commas = name, 0, commas, False
        self._is_bounded = known_texts is not None
        self._code_of_text = {text: code for code, text in enumerate(known_texts or ())}
        self._most = len(self._code_of_text) + MOST_TEXTS
        self._code_of_raw: dict[str, int] = {}  # of texts that are written with spaces, or are missing
        self._codes: Vector | None = Vector(np.int16)
        self._numbers = Vector(np.float64)
        self._days: Vector | None = None  # from the first date on
        self._is_text: Vector | None = None  # from the first text on that is neither number nor date
        self._example: str | None = None
        self._first_texts: tuple[str, ...] = ()  # once there are too many

    def add(self, block: Block) -> None:
        """Add more rows."""
        self.rows += len(block)
        if self._codes is not None:
            raws, places = block.distinct(None if self._is_bounded else TOO_MANY)
            codes = self._codes_of(raws)
            if codes is not None:
                self._codes.extend(codes[places])
                return
            self._widen(self._codes.array())
        numbers = block.floats()
        if numbers is None and self._may_have_commas:
            numbers = block.comma_floats()
            self._has_commas |= numbers is not None
        if numbers is None:
            self._add_one_by_one(*block.distinct())
        else:
            self._add_values(numbers)

    def column(self) -> Column:
        """Return all rows; the gatherer is empty then."""
        if self._codes is not None:
            has_commas = self._may_have_commas and any(map(DECIMAL_COMMA.fullmatch, map(str.strip, self._code_of_text)))
            return Column(self.name, self.rows, self._codes.array(), tuple(self._code_of_text), has_commas=has_commas)
        return Column(
            self.name,
            self.rows,
            None,
            self._first_texts,
            numbers=self._numbers.array(),
            days=None if self._days is None else self._days.array(),
            is_text=None if self._is_text is None else self._is_text.array(),
            example=self._example,
            has_commas=self._has_commas,
        )

    def _codes_of(self, raws: list[str]) -> np.ndarray | None:
        """Codes of different texts, and of a missing one behind them; None where there are too many to have codes."""
        codes = []
        for raw in raws:
            code = self._code_of_text.get(raw)
            codes.append(self._code_of(raw) if code is None else code)
            if len(self._code_of_text) > self._most:
                return None
        return np.array([*codes, MISSING], np.int16)

    def _code_of(self, raw: str) -> int:
        """The code of a text that is new, missing, or written with spaces; UNSEEN where there is no room for more."""
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

    def _widen(self, codes: np.ndarray) -> None:
        """Go from codes to numbers and days: there are too many texts."""
        texts = [*self._code_of_text]
        self._first_texts = tuple(texts[:MOST_TEXTS])
        self._codes, self._code_of_raw, self._code_of_text = None, {}, {}
        self._add_one_by_one(texts, codes)

    def _add_one_by_one(self, raws: list[str], places: np.ndarray) -> None:
        """Read each of some different texts; `places` of the rows are −1 where missing."""
        numbers = np.array([*map(number_of, raws), np.nan])
        days = np.full(len(raws) + 1, np.nan)
        is_text = np.zeros(len(raws) + 1, bool)
        for place in np.flatnonzero(np.isnan(numbers[:-1])).tolist():
            raw = raws[place]
            if self._may_have_commas and DECIMAL_COMMA.fullmatch(raw.strip()):
                numbers[place], self._has_commas = comma_number_of(raw), True
            elif raw not in MISSING_RAWS and raw.strip():
                days[place] = days_of(raw)
                is_text[place] = np.isnan(days[place])
        rows_of_text = np.flatnonzero(is_text[places])
        self._add_values(
            numbers[places],
            None if np.isnan(days).all() else days[places],
            is_text[places] if len(rows_of_text) else None,
        )
        if len(rows_of_text) and self._example is None:
            self._example = normalized(raws[places[rows_of_text[0]]])

    def _add_values(self, numbers: np.ndarray, days: np.ndarray | None = None, is_text: np.ndarray | None = None) -> None:
        self._days = _extended(self._days, days, len(self._numbers), len(numbers), np.float64(np.nan))
        self._is_text = _extended(self._is_text, is_text, len(self._numbers), len(numbers), np.bool_(False))
        self._numbers.extend(numbers)


def _extended(vector: Vector | None, values: np.ndarray | None, before: int, n: int, fill: np.generic) -> Vector | None:
    """A vector with `n` more values behind `before`; it begins with the first block that has some."""
    if vector is None and values is not None:
        vector = Vector(fill.dtype)
        vector.extend(np.full(before, fill))
    if vector is not None:
        vector.extend(np.full(n, fill) if values is None else values)
    return vector
