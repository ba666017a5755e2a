"""Tables and columns from memory: frames of pandas, polars and pyarrow, dictionaries of lists and arrays.

What pandas marks as missing (NA, NaN, NaT, None) is missing in any type. Numbers and dates are read by their type: nullable and
PyArrow-backed ones, with or without a time zone, in any unit. Lists and object columns are numbers or booleans where all of
their values are, else texts as in a CSV file; categories are what they hold, decimals are texts, bytes are UTF-8. Frames with
`__arrow_c_stream__` (polars, pyarrow) and Parquet files are read as Arrow's record batches. Any other type, such as lists,
intervals, periods or complex numbers, is a ValueError that names the column and the type. pandas and polars are not imported.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from meristem.check import short, unknown
from meristem.tables.column_builder import ALLOWED, ColumnBuilder, load_pyarrow
from meristem.tables.table_columns import DAY, KnownTexts, Table

SOURCE = "the frame"
NO_TABLE = "A {} is no table; give a frame, a dictionary of lists, or the path of a file."
BLOCK, BATCH = 8192, 65_536  # rows of objects, and of an Arrow array, that are added at a time
NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)
READABLE = (*NUMBERS, str, bytes, Decimal, datetime, date, timedelta, np.datetime64, np.timedelta64)
GAPS = {"NoneType", "NAType", "NaTType"}
NOT_UNICODE = re.compile("[\ud800-\udfff]")  # surrogates, such as bytes that were decoded with `surrogateescape`
ARROW_TYPES = {  # pyarrow.types.is_… → what the values are read as
    **dict.fromkeys(("string", "large_string", "string_view", "decimal", "null"), "texts"),
    **dict.fromkeys(("boolean", "integer", "floating", "date", "timestamp", "duration"), "values"),
    **dict.fromkeys(("binary", "large_binary", "fixed_size_binary", "binary_view"), "bytes"),
}


def table_of(frame: Any, known_texts: KnownTexts | None = None, keep: Sequence[str] = ()) -> Table:
    """Return a frame, or a dictionary of lists, as a table; a Table as it is. Texts of `known_texts` keep their codes.

    For `keep` see `build_table`.
    """
    if isinstance(frame, Table):
        return frame
    if hasattr(frame, "collect_schema") and hasattr(frame, "collect"):
        raise ValueError(f"A {type(frame).__name__} holds no rows yet; give frame.collect().")
    if _is_arrow(frame) and not isinstance(frame, Mapping):
        reader = _arrow_reader(frame)
        return build_table(SOURCE, reader.schema.names, (batch.columns for batch in reader), known_texts, keep)
    if hasattr(frame, "__getitem__") and (isinstance(frame, Mapping) or hasattr(frame, "columns")):
        names = list(frame if isinstance(frame, Mapping) else frame.columns)
        return build_table(SOURCE, names, [[frame[name] for name in names]], known_texts, keep)
    raise ValueError(NO_TABLE.format(type(frame).__name__))


def build_table(
    source: str, names: Iterable[Any], blocks: Any, known_texts: KnownTexts | None, keep: Sequence[str] = (), **how: Any
) -> Table:
    """Return the table of blocks of rows, each with a list, an array or a series for each column; errors call it `source`.

    Entries of `keep` are a name, or several with commas, of columns whose raw texts are held. `how`: see `ColumnBuilder`.
    """
    names = [str(name).strip() for name in names]
    check_names(source, names)
    columns = [part for entry in keep for part in ([entry] if entry in names else map(str.strip, entry.split(",")))]
    for name in columns:
        if name not in names:
            raise unknown("keep", name, names, most=300)
    texts: dict[str, list[str]] = {name: [] for name in columns}
    builders = [ColumnBuilder(name, (known_texts or {}).get(name), **how) for name in names]
    for block in blocks:
        for builder, values in zip(builders, block, strict=True):
            _add(builder, values, source)
            if builder.name in texts:
                texts[builder.name] += values if isinstance(values, list) else _written(values)
    rows, *others = sorted({builder.rows for builder in builders})
    if others:
        counts = " and ".join(map(str, [rows, *others]))
        raise ValueError(f"{source} has columns of {counts} rows; all columns must have the same number.")
    if not rows:
        raise ValueError(f"{source} has columns and no rows; give some.")
    return Table({builder.name: builder.column() for builder in builders}, rows, source, texts=texts)


def _add(builder: ColumnBuilder, values: Any, source: str) -> None:
    dtype: Any = getattr(values, "dtype", None)
    if isinstance(values, list):
        return _add_objects(builder, values)
    if _is_arrow(values):
        return _add_arrow(builder, values, source)
    is_numpy = dtype is None or isinstance(dtype, np.dtype) or type(dtype).__name__ == "SparseDtype"
    value_type = getattr(getattr(dtype, "categories", None), "dtype", dtype)  # of categories: the type of their values
    if not is_numpy and str(value_type) != "object":
        try:
            values = load_pyarrow().array(values, from_pandas=True)
        except (TypeError, ValueError, NotImplementedError):  # of texts that are not Unicode, say: objects are checked below
            pass
        else:
            return _add_arrow(builder, values, source, value_type)
    missing: Any = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else False
    array = np.array(values, object) if dtype is None else np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"Column {builder.name!r} has shape {array.shape}; it must be one value a row.")
    if array.dtype.kind in "OUST":
        return _add_objects(builder, array.tolist())
    missing = missing | np.isnat(array) if array.dtype.kind in "mM" else missing
    return builder.add_values(array, np.broadcast_to(missing, array.shape))


def _is_arrow(values: Any) -> bool:
    """Return whether this exports Arrow data; pandas is excluded, which has types that Arrow has not."""
    is_pandas = hasattr(values, "iloc") or type(values).__module__.partition(".")[0] == "pandas"
    return not is_pandas and (hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__"))


def _arrow_reader(frame: Any) -> Any:
    """Return a reader of the record batches of a frame; a single array is no table."""
    pyarrow, schema = load_pyarrow(), getattr(frame, "schema", None)
    for name, dtype in schema.items() if isinstance(schema, Mapping) else ():  # polars
        if str(dtype).startswith(("Object", "Int128", "UInt128")):
            raise ValueError(f"{SOURCE}: column {name!r} has the type {dtype}; {ALLOWED}.")
    try:
        return pyarrow.RecordBatchReader.from_stream(frame)
    except (TypeError, pyarrow.ArrowException) as error:
        if not hasattr(frame, "columns"):
            raise ValueError(NO_TABLE.format(type(frame).__name__)) from None
        why = short(str(error).splitlines()[0] if str(error) else type(error).__name__)
        raise ValueError(f"{SOURCE} has a column that Arrow cannot hold ({why}).") from None


def _add_arrow(builder: ColumnBuilder, values: Any, source: str, dtype: Any = None) -> None:
    """Add the rows of an Arrow array, or a chunked one; raise ValueError where there is nothing to learn from its type."""
    pyarrow, where = load_pyarrow(), f"{source}: column {builder.name!r}"
    types, chunks = pyarrow.types, [values] if isinstance(values, pyarrow.Array) else pyarrow.chunked_array(values).chunks
    for array in (chunk.slice(begin, BATCH) for chunk in chunks for begin in range(0, len(chunk), BATCH)):
        while types.is_dictionary(array.type):
            if types.is_string_view(array.type.value_type):  # Arrow cannot take elements of it
                array = pyarrow.DictionaryArray.from_arrays(array.indices, array.dictionary.cast(pyarrow.string()))
            array = array.dictionary_decode()
        what = next((what for name, what in ARROW_TYPES.items() if getattr(types, f"is_{name}")(array.type)), None)
        try:
            if what in ("texts", "bytes"):
                builder.add(array if types.is_string(array.type) else array.cast(pyarrow.string()))
            elif what == "values":
                missing = array.is_null().to_numpy(zero_copy_only=False)
                if array.null_count and not types.is_floating(array.type):  # those have NaN
                    array = array.fill_null(pyarrow.scalar(False if types.is_boolean(array.type) else 0, array.type))
                builder.add_values(array.to_numpy(zero_copy_only=False), missing)
            else:
                raise pyarrow.ArrowNotImplementedError
        except pyarrow.ArrowNotImplementedError as error:
            raise ValueError(f"{where} has the type {' '.join(str(dtype or array.type).split())}; {ALLOWED}.") from error
        except (pyarrow.ArrowInvalid, UnicodeDecodeError) as error:
            raise ValueError(f"{where} holds {what} that are not UTF-8; convert them.") from error


def _written(array: Any) -> list[str]:
    """Return values as Python writes them; times that it does not have, as Arrow does."""
    try:
        values = array.to_pylist() if hasattr(array, "to_pylist") else list(array)  # of Arrow, or any other column of a frame
    except (ValueError, OverflowError):
        values = array.cast(load_pyarrow().string()).to_pylist()
    return ["" if value is None else str(value) for value in values]


def _add_objects(builder: ColumnBuilder, values: list[Any]) -> None:
    """Add Python objects: as booleans or numbers where all are and an Arrow array holds them exactly, else as texts."""
    pyarrow = load_pyarrow()
    if all(issubclass(kind, NUMBERS) or kind.__name__ in GAPS for kind in set(map(type, values))):
        gaps = (type(value).__name__ in GAPS or value != value for value in values)
        plain = [value.item() if isinstance(value, np.generic) else value for value in values]
        plain = [None if is_gap else value for is_gap, value in zip(gaps, plain, strict=True)]
        kinds = set(map(type, plain)) - {type(None)}
        if kinds == {bool} or bool not in kinds:
            for dtype in [None, pyarrow.uint64()] if kinds == {int} else [None]:
                with suppress(OverflowError, pyarrow.ArrowException):
                    return _add_arrow(builder, pyarrow.array(plain, dtype), SOURCE)
    for begin in range(0, len(values), BLOCK):
        builder.add(pyarrow.array(_texts_of(builder.name, values[begin : begin + BLOCK], begin), pyarrow.string()))
    return None


def _texts_of(name: str, values: list[Any], begin: int) -> list[str]:
    """Return objects as a CSV file would hold them; bytes must be UTF-8. `begin` is the row of the first."""
    for kind in sorted(set(map(type, values)), key=lambda kind: kind.__name__):
        if not issubclass(kind, READABLE) and kind.__name__ not in GAPS:
            raise ValueError(f"Column {name!r} holds values of the type {kind.__name__}; {ALLOWED}.")
    try:
        texts = [value if type(value) is str else _text_of(value) for value in values]
    except UnicodeDecodeError as error:
        raise ValueError(f"Column {name!r} holds bytes that are not UTF-8; make texts of them.") from error
    if NOT_UNICODE.search("".join(texts)):
        row, text = next((row, text) for row, text in enumerate(texts, begin + 1) if NOT_UNICODE.search(text))
        raise ValueError(f"Column {name!r} holds {short(text)} in row {row}, which is not Unicode text; correct it.")
    return texts


def _text_of(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, np.timedelta64):
        return repr(float(value / np.timedelta64(1, "D")))
    return repr(value / DAY) if isinstance(value, timedelta) else str(value)  # None and NaN mean "missing" as texts, too


def check_names(source: str, names: list[str]) -> None:
    """Raise ValueError where a column has no name, the name of another, or one that is not Unicode."""
    if not names:
        raise ValueError(f"{source} has no columns; its first line must name them.")
    places: dict[str, int] = {}
    for place, name in enumerate(names):
        column = f"{source}: column {place + 1}"
        if not name:
            hint = " (an index that pandas wrote? to_csv(…, index=False))" if place == 0 else ""
            raise ValueError(f"{column} of {len(names)} has no name{hint}; give it one in the header.")
        if "\0" in name or NOT_UNICODE.search(name):
            raise ValueError(f"{column} is called {short(name)}, which is not Unicode text without NUL; rename it.")
        if (first := places.setdefault(name, place)) != place:
            both = f"columns {first + 1} and {place + 1} are both called {short(name)}"
            raise ValueError(f"{source}: {both}; rename one in the header.")
