"""Tables and columns from memory: frames of pandas, polars and pyarrow, dictionaries of lists and arrays.

What pandas marks as missing (NA, NaN, NaT, None) is missing in any type. Numbers and dates are read by their type: nullable and
PyArrow-backed ones, with or without a time zone, in any unit. Lists and object columns are numbers or booleans where all of
their values are, else texts as in a CSV file; categories are what they hold, decimals are texts, bytes are UTF-8. Frames with
`__arrow_c_stream__` (polars, pyarrow) and Parquet files are read as Arrow's record batches. Any other type, such as lists,
intervals, periods or complex numbers, is a ValueError that names the column and the type. pandas and polars are not imported.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from meristem.check import short
from meristem.tables.arrow import pyarrow_for
from meristem.tables.column_builder import ALLOWED, ColumnBuilder, typed_column
from meristem.tables.scalars import DAY, EXACT
from meristem.tables.table_columns import Column, KnownTexts, Table, check_names, is_unicode, texts_to_keep

SOURCE = "the frame"
BLOCK, BATCH = 8192, 65_536  # rows of objects, and of a record batch, that are added at a time
NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)
READABLE = (*NUMBERS, str, bytes, Decimal, datetime, date, timedelta, np.datetime64, np.timedelta64)
GAPS = {"NoneType", "NAType", "NaTType"}
TYPED = ("boolean", "integer", "floating", "date", "timestamp", "duration")  # names of Arrow types
TEXTS = ("string", "large_string", "string_view", "decimal", "null")
BINARY = ("binary", "large_binary", "fixed_size_binary", "binary_view")


def table_of(frame: Any, known_texts: KnownTexts | None = None) -> Table:
    """Return a frame, or a dictionary of lists, as a table; a Table as it is. Texts of `known_texts` keep their codes."""
    if isinstance(frame, Table):
        return frame
    if hasattr(frame, "collect_schema") and hasattr(frame, "collect"):
        raise ValueError(f"A {type(frame).__name__} holds no rows yet; give frame.collect().")
    if _is_arrow(frame) and not isinstance(frame, Mapping):
        columns = _columns_of_arrow(frame, known_texts)
    elif hasattr(frame, "__getitem__") and (isinstance(frame, Mapping) or hasattr(frame, "columns")):
        frame_names = list(frame) if isinstance(frame, Mapping) else list(frame.columns)
        names = [str(name).strip() for name in frame_names]  # as the header of a file is read
        check_names(SOURCE, names)
        pairs = zip(names, frame_names, strict=True)
        columns = {name: column_of(name, frame[frame_name], (known_texts or {}).get(name)) for name, frame_name in pairs}
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


def _no_table(frame: Any) -> ValueError:
    return ValueError(f"A {type(frame).__name__} is no table; give a frame, a dictionary of lists, or the path of a file.")


def column_of(name: str, values: Any, known_texts: Sequence[str] | None = None) -> Column:
    """Return the column of an array, a list or a series; raise ValueError where its type cannot be learned from.

    >>> column_of("size", np.array([1.5, np.nan])).n_missing, column_of("is_red", [True, False]).texts
    (1, ('False', 'True'))
    """
    dtype = getattr(values, "dtype", None)
    if _is_arrow(values) or hasattr(dtype, "pyarrow_dtype"):
        array = values if _is_arrow(values) else getattr(values, "array", values).__arrow_array__()
        builder = ColumnBuilder(name, known_texts)
        for chunk in pyarrow_for("frames of Arrow").chunked_array(array).chunks:
            _add_array(builder, chunk, SOURCE)
        return builder.column()
    missing: Any = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else False
    if dtype is None or isinstance(dtype, np.dtype):
        array = np.array(values, dtype=object) if dtype is None else np.asarray(values)
    elif type(dtype).__name__ == "CategoricalDtype":
        places, categories = np.asarray(getattr(values, "cat", values).codes), np.asarray(dtype.categories)
        if categories.dtype.kind not in "biufmM" or not len(categories) or not isinstance(dtype.categories.dtype, np.dtype):
            categories = np.array([*categories, None], dtype=object)  # −1 is the last
            return _column_of_texts(name, categories[places].tolist(), known_texts)
        array, missing = categories[np.maximum(places, 0)], places < 0
    elif type(dtype).__name__ == "DatetimeTZDtype":
        array = np.asarray(getattr(values, "dt", values).tz_convert(None))
    elif type(dtype).__name__ == "StringDtype":
        array = np.asarray(values, dtype=object)
    elif type(dtype).__name__ == "SparseDtype":
        array = np.asarray(values)
    elif hasattr(dtype, "numpy_dtype"):
        array, missing = values.to_numpy(dtype=dtype.numpy_dtype, na_value=0), np.asarray(values.isna())
    else:
        raise ValueError(f"Column {name!r} has the type {dtype}; {ALLOWED}.")
    if array.ndim != 1:
        raise ValueError(f"Column {name!r} has shape {array.shape}; it must be one value a row.")
    if array.dtype.kind in "OUST":
        return _column_of_objects(name, array.tolist(), known_texts)
    missing = missing | np.isnat(array) if array.dtype.kind in "mM" else missing
    return typed_column(name, array, np.broadcast_to(missing, array.shape))


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
            raise ValueError(f"{SOURCE}: column {name!r} has the type {dtype}; {ALLOWED}.")
    try:
        reader = pyarrow.RecordBatchReader.from_stream(frame)
    except (TypeError, pyarrow.ArrowException) as error:
        if not hasattr(frame, "columns"):
            raise _no_table(frame) from None
        why = short(str(error).splitlines()[0] if str(error) else type(error).__name__)
        raise ValueError(f"{SOURCE} has a column that Arrow cannot hold ({why}).") from None
    return columns_of_batches(reader.schema.names, reader, SOURCE, known_texts)[0]


def columns_of_batches(
    names: Iterable[Any], batches: Iterable[Any], source: str, known_texts: KnownTexts | None, keep: Sequence[str] = ()
) -> tuple[dict[str, Column], dict[str, list[str]]]:
    """Return all columns of record batches, and as texts those of `keep`; `source` is what errors call the table."""
    names = [str(name).strip() for name in names]  # as the header of a CSV file is read
    check_names(source, names)
    texts = texts_to_keep(keep, names)
    builders = [ColumnBuilder(name, (known_texts or {}).get(name)) for name in names]
    for batch in batches:
        for begin in range(0, batch.num_rows, BATCH):
            for builder, array in zip(builders, batch.slice(begin, BATCH).columns, strict=True):
                _add_array(builder, array, source)
                if builder.name in texts:
                    texts[builder.name] += _written(array)
    return {builder.name: builder.column() for builder in builders}, texts


def _add_array(builder: ColumnBuilder, array: Any, source: str) -> None:
    """Add the rows of an Arrow array; raise ValueError where there is nothing to learn from its type."""
    pyarrow, where = pyarrow_for(), f"{source}: column {builder.name!r}"
    types = pyarrow.types
    while types.is_dictionary(array.type):
        if types.is_string_view(array.type.value_type):  # Arrow cannot take elements of it
            array = pyarrow.DictionaryArray.from_arrays(array.indices, array.dictionary.cast(pyarrow.string()))
        array = array.dictionary_decode()
    is_typed, is_text, is_binary = (
        any(getattr(types, f"is_{name}")(array.type) for name in names) for names in (TYPED, TEXTS, BINARY)
    )
    try:
        if is_typed:
            missing = array.is_null().to_numpy(zero_copy_only=False)
            if array.null_count and not types.is_floating(array.type):  # those have NaN
                array = array.fill_null(pyarrow.scalar(False if types.is_boolean(array.type) else 0, array.type))
            builder.add_values(array.to_numpy(zero_copy_only=False), missing)
        elif is_text or is_binary:
            builder.add(array.cast(pyarrow.string()))
        else:
            raise pyarrow.ArrowNotImplementedError
    except pyarrow.ArrowNotImplementedError as error:
        raise ValueError(f"{where} has the type {' '.join(str(array.type).split())}; {ALLOWED}.") from error
    except (pyarrow.ArrowInvalid, UnicodeDecodeError) as error:
        raise ValueError(f"{where} holds {'bytes' if is_binary else 'texts'} that are not UTF-8; convert them.") from error


def _written(array: Any) -> list[str]:
    """Return values as Python writes them; times that it does not have, as Arrow does."""
    try:
        values = array.to_pylist()
    except (ValueError, OverflowError):
        values = array.cast(pyarrow_for().string()).to_pylist()
    return ["" if value is None else str(value) for value in values]


def _column_of_objects(name: str, values: list[Any], known_texts: Sequence[str] | None) -> Column:
    """Return the column of Python objects: booleans or numbers where all are, else texts."""
    if all(issubclass(kind, NUMBERS) or kind.__name__ in GAPS for kind in set(map(type, values))):
        gaps = np.array([type(value).__name__ in GAPS or value != value for value in values], bool)
        present = [value for value, is_gap in zip(values, gaps.tolist(), strict=True) if not is_gap]
        if (dtype := _exact_type(present)) is not None:
            array = np.zeros(len(values), dtype)
            array[~gaps] = present
            return typed_column(name, array, gaps)
    return _column_of_texts(name, values, known_texts)


def _exact_type(values: list[Any]) -> Any:
    """Return the type of an array that holds all of these booleans or numbers exactly; None where there is none."""
    are_booleans = {isinstance(value, bool | np.bool_) for value in values}
    if len(are_booleans) != 1 or True in are_booleans:
        return bool if are_booleans == {True} else None
    wholes = [int(value) for value in values if isinstance(value, int | np.integer)]
    if len(wholes) < len(values):
        return np.float64 if all(abs(whole) <= EXACT for whole in wholes) else None
    limits = [np.iinfo(np.int64), np.iinfo(np.uint64)]
    return next((limit.dtype for limit in limits if limit.min <= min(wholes) and max(wholes) <= limit.max), None)


def _column_of_texts(name: str, values: list[Any], known_texts: Sequence[str] | None) -> Column:
    """Return the column of objects as a CSV file would hold them; bytes must be UTF-8."""
    for kind in sorted(set(map(type, values)), key=lambda kind: kind.__name__):
        if not issubclass(kind, READABLE) and kind.__name__ not in GAPS:
            raise ValueError(f"Column {name!r} holds values of the type {kind.__name__}; {ALLOWED}.")
    builder = ColumnBuilder(name, known_texts)
    for begin in range(0, len(values), BLOCK):
        try:
            texts = [value if type(value) is str else _text_of(value) for value in values[begin : begin + BLOCK]]
        except UnicodeDecodeError as error:
            raise ValueError(f"Column {name!r} holds bytes that are not UTF-8; make texts of them.") from error
        if not is_unicode("".join(texts)):
            row, text = next((row, text) for row, text in enumerate(texts, begin) if not is_unicode(text))
            raise ValueError(f"Column {name!r} holds {short(text)} in row {row + 1}, which is not Unicode text; correct it.")
        builder.add(texts)
    return builder.column()


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
