"""Columns from Arrow's record batches, as Parquet files and frames of Arrow (polars, pyarrow) give them.

    columns_of_batches(schema, batches, "the frame", known_texts, keep) → columns by name, and the texts of those to keep

Booleans, whole numbers, floats, dates, times of day with a date and spans go by their type, without a detour over text;
strings and decimals by their text, as those of a CSV file; dictionaries are what they hold; bytes are texts if they are UTF-8.
Anything else is a ValueError that names the column and its type. Imports arrow, gathering and typed; frames and parquet import
it.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from meristem.tables.arrow import ArrowBlock, pyarrow_for
from meristem.tables.column import Column
from meristem.tables.gathering import Gatherer
from meristem.tables.scalars import days_of_counts
from meristem.tables.table import KnownTexts, check_names, room_for
from meristem.tables.typed import WANTED, typed_column

BLOCK = 65_536  # rows of a batch that are looked at together


def columns_of_batches(
    schema: Any, batches: Iterable[Any], source: str, known_texts: KnownTexts | None, keep: Sequence[str] = ()
) -> tuple[dict[str, Column], dict[str, list[str]]]:
    """Return all columns, and as texts those of `keep`; `source` is what errors call the table.

    >>> table = pyarrow_for("examples").table({"size": [1, None, 3], "color": ["red", "blue", None]})
    >>> columns, _ = columns_of_batches(table.schema, table.to_batches(), "the frame", None)
    >>> columns["size"].as_numbers().tolist(), columns["color"].texts
    ([1.0, nan, 3.0], ('red', 'blue'))
    """
    names = [str(name).strip() for name in schema.names]  # as the header of a CSV file is read
    check_names(source, names)
    texts = room_for(keep, names)
    builders = [
        builder_of(source, name, kind, (known_texts or {}).get(name)) for name, kind in zip(names, schema.types, strict=True)
    ]
    for batch in batches:
        for begin in range(0, batch.num_rows, BLOCK):
            for builder, array in zip(builders, batch.slice(begin, BLOCK).columns, strict=True):
                add_array(source, builder, array)
                if builder.name in texts:
                    texts[builder.name] += _texts_of(array)
    return {builder.name: builder.column() for builder in builders}, texts


def builder_of(source: str, name: str, kind: Any, known_texts: Sequence[str] | None) -> "ByText | ByType":
    """Return what gathers arrays of a type; raise ValueError where there is nothing to learn from such a type."""
    types = pyarrow_for("Arrow tables").types
    while types.is_dictionary(kind):
        kind = kind.value_type
    typed = (types.is_boolean, types.is_integer, types.is_floating, types.is_date, types.is_timestamp, types.is_duration)
    if any(is_such(kind) for is_such in typed):
        return ByType(name, kind)
    texts = (types.is_string, types.is_large_string, types.is_string_view, types.is_decimal, types.is_null)
    binary = (types.is_binary, types.is_large_binary, types.is_fixed_size_binary, types.is_binary_view)
    is_binary = any(is_such(kind) for is_such in binary)
    if is_binary or any(is_such(kind) for is_such in texts):
        return ByText(source, name, known_texts, is_binary=is_binary)
    raise ValueError(f"{source}: column {name!r} has the type {_in_a_line(kind)}; {WANTED}.")


def add_array(source: str, builder: "ByText | ByType", array: Any) -> None:
    """Add rows to a column; raise ValueError where pyarrow has no way from their type to ours."""
    try:
        builder.add(array)
    except pyarrow_for("Arrow tables").ArrowNotImplementedError as error:
        raise ValueError(f"{source}: column {builder.name!r} has the type {_in_a_line(array.type)}; {WANTED}.") from error


class ByText:
    """Arrays that are read as texts."""

    def __init__(self, source: str, name: str, known_texts: Sequence[str] | None, *, is_binary: bool = False):
        self.name, self._source, self._is_binary, self._gatherer = name, source, is_binary, Gatherer(name, known_texts)

    def add(self, array: Any) -> None:
        """Add more rows; raise ValueError where bytes are no text."""
        pyarrow = pyarrow_for("Arrow tables")
        array = _decoded(array)
        if self._is_binary and pyarrow.types.is_fixed_size_binary(array.type):
            array = array.cast(pyarrow.binary())
        try:
            self._gatherer.add(ArrowBlock(array.cast(pyarrow.string())))
        except (pyarrow.ArrowInvalid, UnicodeDecodeError) as error:
            holds = "bytes that are not UTF-8" if self._is_binary else "texts that are not UTF-8"
            raise ValueError(f"{self._source}: column {self.name!r} holds {holds}; make texts of them.") from error

    def column(self) -> Column:
        """Return all rows."""
        return self._gatherer.column()


class ByType:
    """Arrays that are read by their type, with a mask of nulls."""

    def __init__(self, name: str, kind: Any):
        self.name, self._kind = name, kind
        self._values: list[np.ndarray] = []
        self._missing: list[np.ndarray] = []

    def add(self, array: Any) -> None:
        """Add more rows."""
        pyarrow, kind = pyarrow_for("Arrow tables"), self._kind
        types, array = pyarrow.types, _decoded(array)
        self._missing.append(array.is_null().to_numpy(zero_copy_only=False))
        unit = None
        if types.is_date32(kind):
            array, unit = array.cast(pyarrow.int32()), "D"
        elif types.is_date64(kind):
            array, unit = array.cast(pyarrow.int64()), "ms"
        elif types.is_timestamp(kind) or types.is_duration(kind):
            array, unit = array.cast(pyarrow.int64()), kind.unit
        if array.null_count and not types.is_floating(kind):  # those have NaN
            array = array.fill_null(False) if types.is_boolean(kind) else array.fill_null(pyarrow.scalar(0, array.type))
        values = array.to_numpy(zero_copy_only=False)
        self._values.append(values if unit is None else days_of_counts(values, unit))

    def column(self) -> Column:
        """Return all rows."""
        types = pyarrow_for("Arrow tables").types
        values = np.concatenate(self._values or [np.zeros(0)])
        missing = np.concatenate(self._missing or [np.zeros(0, bool)])
        self._values, self._missing = [], []
        if types.is_date(self._kind) or types.is_timestamp(self._kind):
            return Column(self.name, len(values), None, days=np.where(missing, np.nan, values))
        return typed_column(self.name, values, missing if missing.any() else None)


def _decoded(array: Any) -> Any:
    """Without dictionaries."""
    pyarrow = pyarrow_for("Arrow tables")
    while pyarrow.types.is_dictionary(array.type):
        if pyarrow.types.is_string_view(array.type.value_type):  # of which Arrow takes no elements
            array = pyarrow.DictionaryArray.from_arrays(array.indices, array.dictionary.cast(pyarrow.string()))
        array = array.dictionary_decode()
    return array


def _in_a_line(kind: Any) -> str:
    return " ".join(str(kind).split())


def _texts_of(array: Any) -> list[str]:
    """Values as Python writes them; times that it has not, as Arrow does."""
    try:
        values = array.to_pylist()
    except (ValueError, OverflowError):
        values = array.cast(pyarrow_for("Arrow tables").string()).to_pylist()
    return ["" if value is None else str(value) for value in values]
