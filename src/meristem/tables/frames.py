"""Tables and columns from memory: frames of pandas, polars and pyarrow, dictionaries of lists and arrays.

What pandas marks as missing (NA, NaN, NaT, None) is missing in any type. Numbers and dates are read by their type: nullable and
PyArrow-backed ones, with or without a time zone, in any unit. Lists and object columns are numbers or booleans where all of
their values are, else texts as in a CSV file; categories are what they hold. Frames with `__arrow_c_stream__` (polars, pyarrow)
are read as a Parquet file is. Any other type, such as lists, intervals, periods or complex numbers, is a ValueError that names
the column and the type. pandas and polars are not imported.
"""

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from meristem.check import short
from meristem.tables.arrow import pyarrow_for
from meristem.tables.scalars import DAY, EXACT
from meristem.tables.table_columns import Column, KnownTexts, Table, check_names, is_unicode
from meristem.tables.text_column import TextColumnBuilder
from meristem.tables.typed_column import ALLOWED, ArrowColumnBuilder, columns_of_batches, typed_column

SOURCE = "the frame"
BLOCK = 8192  # rows whose texts are added at a time
READABLE = (
    *(str, bytes, bool, int, float, Decimal, datetime, date, timedelta, type(None)),
    *(np.bool_, np.integer, np.floating, np.datetime64, np.timedelta64),
)
GAPS = {"NoneType", "NAType", "NaTType"}


def table_of(frame: Any, known_texts: KnownTexts | None = None) -> Table:
    """Return a frame, or a dictionary of lists, as a table; a Table as it is. Texts of `known_texts` keep their codes."""
    if isinstance(frame, Table):
        return frame
    if hasattr(frame, "collect_schema") and hasattr(frame, "collect"):
        raise ValueError(f"A {type(frame).__name__} holds no rows yet; give frame.collect().")
    if _is_arrow(frame) and not isinstance(frame, Mapping):
        columns = _columns_of_arrow(frame, known_texts)
    elif hasattr(frame, "__getitem__") and (isinstance(frame, Mapping) or hasattr(frame, "columns")):
        names = list(frame) if isinstance(frame, Mapping) else list(frame.columns)
        stripped = {name: str(name).strip() for name in names}  # as the header of a file is read
        check_names(SOURCE, [str(name).strip() for name in names])
        columns = {new: column_of(new, frame[name], (known_texts or {}).get(new)) for name, new in stripped.items()}
    else:
        raise _no_table(frame)
    lengths = {column.rows for column in columns.values()}
    if len(lengths) != 1:
        counts = " and ".join(map(str, sorted(lengths)))
        raise ValueError(f"{SOURCE} has columns of {counts} rows; all columns must have the same number.")
    (rows,) = lengths
    if not rows:
        raise ValueError(f"{SOURCE} has no rows; give some.")
    return Table(columns, rows, SOURCE)


def column_of(name: str, values: Any, known_texts: Sequence[str] | None = None) -> Column:
    """Return the column of an array, a list or a series; raise ValueError where its type cannot be learned from.

    >>> column_of("size", np.array([1.5, np.nan])).n_missing, column_of("is_red", [True, False]).texts
    (1, ('False', 'True'))
    """
    dtype = getattr(values, "dtype", None)
    if _is_arrow(values) or hasattr(dtype, "pyarrow_dtype"):
        return _column_of_arrow(name, values, known_texts)
    if dtype is not None and not isinstance(dtype, np.dtype):
        return _column_of_pandas(name, values, dtype, known_texts)
    array = np.array(values, dtype=object) if dtype is None else np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"Column {name!r} has shape {array.shape}; it must be one value a row.")
    if array.dtype.kind in "OUST":
        return _column_of_objects(name, array.tolist(), known_texts)
    missing = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
    return typed_column(name, array, missing)


def _is_arrow(values: Any) -> bool:
    """Return whether this exports Arrow data; pandas is excluded, which has types that Arrow has not."""
    is_pandas = hasattr(values, "iloc") or type(values).__module__.partition(".")[0] == "pandas"
    return not is_pandas and (hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__"))


def _columns_of_arrow(frame: Any, known_texts: KnownTexts | None) -> dict[str, Column]:
    """Return the columns of a frame that exports Arrow data; a single array is no table."""
    pyarrow = pyarrow_for("frames of Arrow")
    schema = getattr(frame, "schema", None)
    for name, dtype in schema.items() if isinstance(schema, Mapping) else ():  # polars
        if str(dtype).startswith(("Object", "Int128", "UInt128")):
            raise ValueError(f"{SOURCE}: column {name!r} has the type {dtype}; {ALLOWED}")
    try:
        reader = pyarrow.RecordBatchReader.from_stream(frame)
    except (TypeError, pyarrow.ArrowException) as error:
        if not hasattr(frame, "columns"):
            raise _no_table(frame) from None
        why = short(str(error).splitlines()[0] if str(error) else type(error).__name__)
        raise ValueError(f"{SOURCE} has a column that Arrow cannot hold ({why}).") from None
    return columns_of_batches(reader.schema, reader, SOURCE, known_texts)[0]


def _no_table(frame: Any) -> ValueError:
    return ValueError(f"A {type(frame).__name__} is no table; give a frame, a dictionary of lists, or the path of a file.")


def _column_of_arrow(name: str, values: Any, known_texts: Sequence[str] | None) -> Column:
    """Return the column of an Arrow array, a series of polars, or a PyArrow-backed series of pandas."""
    array = getattr(values, "array", values)
    array = pyarrow_for("frames of Arrow").chunked_array(values if _is_arrow(values) else array.__arrow_array__())
    builder = ArrowColumnBuilder(SOURCE, name, array.type, known_texts)
    for chunk in array.chunks:
        builder.add(chunk)
    return builder.column()


def _column_of_pandas(name: str, values: Any, dtype: Any, known_texts: Sequence[str] | None) -> Column:
    """Return the column of a type that pandas has beside those of NumPy."""
    kind = type(dtype).__name__
    if kind == "CategoricalDtype":
        places = np.asarray(getattr(values, "cat", values).codes).astype(np.int64)
        return _column_of_categories(name, dtype.categories, places, known_texts)
    if kind == "DatetimeTZDtype":
        return typed_column(name, np.asarray(getattr(values, "dt", values).tz_convert(None)))
    if kind == "StringDtype":
        return _column_of_objects(name, np.asarray(values, dtype=object).tolist(), known_texts)
    if kind == "SparseDtype":
        return column_of(name, np.asarray(values), known_texts)
    if hasattr(dtype, "numpy_dtype"):
        missing = np.asarray(values.isna())
        full = values.to_numpy(dtype=dtype.numpy_dtype, na_value=0)
        return typed_column(name, full, missing if missing.any() else None)
    raise ValueError(f"Column {name!r} has the type {dtype}; {ALLOWED}.")


def _column_of_categories(name: str, categories: Any, places: np.ndarray, known_texts: Sequence[str] | None) -> Column:
    """Return the column of indices into a list of categories, −1 where missing."""
    dtype = getattr(categories, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind in "biufmM":
        values, missing = np.asarray(categories), places < 0
        return typed_column(name, values[np.maximum(places, 0)] if len(values) else np.full(len(places), np.nan), missing)
    objects = np.asarray(categories, dtype=object).tolist()
    _check_types(name, set(map(type, objects)))
    texts = _texts_of(name, objects)
    _check_texts(name, texts)
    used = np.unique(places[places >= 0])  # categories without a row are left out
    renumbered = np.full(len(texts) + 1, -1)
    renumbered[used] = np.arange(len(used))
    builder = TextColumnBuilder(name, known_texts)
    builder.add_categories([texts[place] for place in used], renumbered[places])
    return builder.column()


def _column_of_objects(name: str, values: list[Any], known_texts: Sequence[str] | None) -> Column:
    """Return the column of Python objects: numbers or booleans where all are, else texts."""
    kinds = set(map(type, values))
    _check_types(name, kinds)
    if not any(issubclass(kind, str | bytes | Decimal) for kind in kinds):
        column = _column_of_numbers(name, values)
        if column is not None:
            return column
    builder, texts = TextColumnBuilder(name, known_texts), values if kinds == {str} else _texts_of(name, values)
    for begin in range(0, len(texts), BLOCK):
        block = texts[begin : begin + BLOCK]
        _check_texts(name, block, begin)
        builder.add(block)
    return builder.column()


def _check_types(name: str, kinds: set[type]) -> None:
    for kind in sorted(kinds, key=lambda kind: kind.__name__):
        if not issubclass(kind, READABLE) and kind.__name__ not in GAPS:
            raise ValueError(f"Column {name!r} holds values of the type {kind.__name__}; {ALLOWED}.")


def _column_of_numbers(name: str, values: list[Any]) -> Column | None:
    """Return the column where all values are booleans, or numbers that an array holds exactly; else None."""
    gaps = np.array([type(value).__name__ in GAPS or (isinstance(value, float) and value != value) for value in values], bool)
    present = [value for value, is_gap in zip(values, gaps.tolist(), strict=True) if not is_gap]
    kinds = set(map(type, present))
    if not kinds:
        return None
    dtype: Any
    if all(issubclass(kind, bool | np.bool_) for kind in kinds):
        dtype = bool
    elif all(issubclass(kind, int | np.integer) and not issubclass(kind, bool) for kind in kinds):
        least, most = int(min(present)), int(max(present))
        if least >= -(2**63) and most < 2**63:
            dtype = np.int64
        elif least >= 0 and most < 2**64:
            dtype = np.uint64
        else:
            return None
    elif all(issubclass(kind, int | float | np.integer | np.floating) and not issubclass(kind, bool) for kind in kinds):
        if any(abs(int(value)) > EXACT for value in present if isinstance(value, int | np.integer)):
            return None
        dtype = np.float64
    else:
        return None
    full = np.zeros(len(values), dtype)
    full[~gaps] = present
    return typed_column(name, full, gaps if gaps.any() else None)


def _texts_of(name: str, values: list[Any]) -> list[str]:
    """Return values as a CSV file would hold them; bytes must be UTF-8."""
    try:
        return [value if type(value) is str else _text_of(value) for value in values]
    except UnicodeDecodeError as error:
        raise ValueError(f"Column {name!r} holds bytes that are not UTF-8; make texts of them.") from error


def _text_of(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, np.timedelta64):
        return "" if np.isnat(value) else repr(float(value / np.timedelta64(1, "D")))
    return repr(value / DAY) if isinstance(value, timedelta) else str(value)


def _check_texts(name: str, texts: list[str], begin: int = 0) -> None:
    """Raise ValueError where a text is not Unicode; `begin` is the row of the first."""
    if not is_unicode("".join(texts)):
        row, text = next((row, text) for row, text in enumerate(texts, begin) if not is_unicode(text))
        raise ValueError(f"Column {name!r} holds {short(text)} in row {row + 1}, which is not Unicode text; correct it.")
