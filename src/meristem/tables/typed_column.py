"""Columns by the type of their values: NumPy arrays with a mask of missing rows, and Arrow's record batches.

Booleans, integers, floats, dates, date-times and time spans (as days) are not converted to text and back; integers are held as
they are, beside a float64 that merges those beyond 2**53. Strings and decimals are read as those of a CSV file, dictionaries as
what they hold, bytes as UTF-8. Any other type is a ValueError that names the column and the type.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from meristem.inputs.schema import MISSING
from meristem.tables.arrow import pyarrow_for
from meristem.tables.scalars import PER_DAY, days_of_counts
from meristem.tables.table_columns import Column, KnownTexts, check_names, texts_to_keep
from meristem.tables.text_column import TextColumnBuilder

ALLOWED = "give numbers, texts, dates or booleans"
BLOCK = 65_536  # rows of a batch that are converted together
TYPED = ("boolean", "integer", "floating", "date", "timestamp", "duration")  # names of Arrow types
TEXTS = ("string", "large_string", "string_view", "decimal", "null")
BINARY = ("binary", "large_binary", "fixed_size_binary", "binary_view")
DAYS_PER = {"W": 7.0, "ps": 1 / 86400e12, "fs": 1 / 86400e15, "as": 1 / 86400e18}  # of a unit that is not in PER_DAY


def typed_column(name: str, values: np.ndarray, missing: np.ndarray | None = None) -> Column:
    """Return the column of an array; raise ValueError where its type is none of the module's."""
    kind, rows = values.dtype.kind, len(values)
    if kind == "b":
        codes = values.astype(np.int16)
        if missing is not None:
            codes[missing] = MISSING
        return Column(name, rows, codes, ("False", "True"), exact=values)
    if kind in "mM":
        numbers = _days(name, values)
    elif kind in "iuf":
        with np.errstate(over="ignore"):
            numbers = values.astype(np.float64)
        numbers[np.isinf(numbers)] = np.nan
    else:
        raise ValueError(f"Column {name!r} has the type {values.dtype}; {ALLOWED}.")
    if missing is not None:
        numbers[missing] = np.nan
    if kind == "M":
        return Column(name, rows, None, days=numbers)
    return Column(name, rows, None, numbers=numbers, exact=values if kind in "iu" else None)


def _days(name: str, values: np.ndarray) -> np.ndarray:
    """Return float64 days, NaN for NaT, of datetime64 or timedelta64 in any unit."""
    is_nat = np.isnat(values)
    unit, step = np.datetime_data(values.dtype)
    counts = np.where(is_nat, 0, values.astype(np.int64))
    if unit == "generic" and is_nat.all():
        days = np.zeros(len(values))
    elif unit in PER_DAY:
        days = days_of_counts(counts, unit) * step
    elif unit in DAYS_PER:
        days = counts * (DAYS_PER[unit] * step)
    elif unit in ("Y", "M") and values.dtype.kind == "M" and (np.abs(counts.astype(float) * step) < 1e9).all():
        days = values.astype("datetime64[D]").astype(np.int64).astype(np.float64)
    else:
        raise ValueError(f"Column {name!r} has the type {values.dtype}; give dates in days or seconds.")
    days[is_nat] = np.nan
    return days


def columns_of_batches(
    schema: Any, batches: Iterable[Any], source: str, known_texts: KnownTexts | None, keep: Sequence[str] = ()
) -> tuple[dict[str, Column], dict[str, list[str]]]:
    """Return all columns of record batches, and as texts those of `keep`; `source` is what errors call the table."""
    names = [str(name).strip() for name in schema.names]  # as the header of a CSV file is read
    check_names(source, names)
    texts = texts_to_keep(keep, names)
    pairs = zip(names, schema.types, strict=True)
    builders = [ArrowColumnBuilder(source, name, kind, (known_texts or {}).get(name)) for name, kind in pairs]
    for batch in batches:
        for begin in range(0, batch.num_rows, BLOCK):
            for builder, array in zip(builders, batch.slice(begin, BLOCK).columns, strict=True):
                builder.add(array)
                if builder.name in texts:
                    texts[builder.name] += _texts_of(array)
    return {builder.name: builder.column() for builder in builders}, texts


class ArrowColumnBuilder:
    """Arrow arrays of one type that become a column; ValueError where there is nothing to learn from such a type."""

    def __init__(self, source: str, name: str, kind: Any, known_texts: Sequence[str] | None):
        types = pyarrow_for().types
        while types.is_dictionary(kind):
            kind = kind.value_type
        is_typed, is_text, is_binary = (
            any(getattr(types, f"is_{name}")(kind) for name in names) for names in (TYPED, TEXTS, BINARY)
        )
        self.name, self._source, self._kind, self._is_binary = name, source, kind, is_binary
        self._builder = TextColumnBuilder(name, known_texts) if is_text or is_binary else None
        self._values: list[np.ndarray] = []
        self._missing: list[np.ndarray] = []
        if not is_typed and self._builder is None:
            raise self._refused(kind)

    def add(self, array: Any) -> None:
        """Add rows; raise ValueError where bytes are not UTF-8, or pyarrow cannot convert the type."""
        try:
            array = _without_dictionary(array)
            if self._builder is None:
                self._add_typed(array)
            else:
                self._add_texts(self._builder, array)
        except pyarrow_for().ArrowNotImplementedError as error:
            raise self._refused(array.type) from error

    def _refused(self, kind: Any) -> ValueError:
        return ValueError(f"{self._source}: column {self.name!r} has the type {' '.join(str(kind).split())}; {ALLOWED}.")

    def _add_texts(self, builder: TextColumnBuilder, array: Any) -> None:
        pyarrow = pyarrow_for()
        if pyarrow.types.is_fixed_size_binary(array.type) and self._is_binary:
            array = array.cast(pyarrow.binary())
        try:
            builder.add(array.cast(pyarrow.string()))
        except (pyarrow.ArrowInvalid, UnicodeDecodeError) as error:
            what = "bytes" if self._is_binary else "texts"
            raise ValueError(f"{self._source}: column {self.name!r} holds {what} that are not UTF-8; convert them.") from error

    def _add_typed(self, array: Any) -> None:
        pyarrow, kind, unit = pyarrow_for(), self._kind, None
        types = pyarrow.types
        self._missing.append(array.is_null().to_numpy(zero_copy_only=False))
        if types.is_date32(kind):
            array, unit = array.cast(pyarrow.int32()), "D"
        elif types.is_date64(kind):
            array, unit = array.cast(pyarrow.int64()), "ms"
        elif types.is_timestamp(kind) or types.is_duration(kind):
            array, unit = array.cast(pyarrow.int64()), kind.unit
        if array.null_count and not types.is_floating(kind):  # those have NaN
            array = array.fill_null(pyarrow.scalar(False if types.is_boolean(kind) else 0, array.type))
        values = array.to_numpy(zero_copy_only=False)
        self._values.append(values if unit is None else days_of_counts(values, unit))

    def column(self) -> Column:
        if self._builder is not None:
            return self._builder.column()
        types = pyarrow_for().types
        values = np.concatenate(self._values or [np.zeros(0)])
        missing = np.concatenate(self._missing or [np.zeros(0, bool)])
        self._values, self._missing = [], []
        if types.is_date(self._kind) or types.is_timestamp(self._kind):
            return Column(self.name, len(values), None, days=np.where(missing, np.nan, values))
        return typed_column(self.name, values, missing if missing.any() else None)


def _without_dictionary(array: Any) -> Any:
    pyarrow = pyarrow_for()
    while pyarrow.types.is_dictionary(array.type):
        if pyarrow.types.is_string_view(array.type.value_type):  # Arrow cannot take elements of it
            array = pyarrow.DictionaryArray.from_arrays(array.indices, array.dictionary.cast(pyarrow.string()))
        array = array.dictionary_decode()
    return array


def _texts_of(array: Any) -> list[str]:
    """Return values as Python writes them; times that it does not have, as Arrow does."""
    try:
        values = array.to_pylist()
    except (ValueError, OverflowError):
        values = array.cast(pyarrow_for().string()).to_pylist()
    return ["" if value is None else str(value) for value in values]
