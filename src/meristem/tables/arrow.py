"""pyarrow, imported by this module alone and only when it is needed: parsing of CSV, and arrays of strings.

An array of strings is read as numbers only where each equals what Python's `float` says of the text, to the bit.
"""

import csv
from types import ModuleType
from typing import Any

import numpy as np

from meristem.inputs.schema import MISSING_SPELLINGS
from meristem.tables.scalars import DECIMAL_COMMA


def pyarrow_for(what: str = "Arrow tables") -> ModuleType:
    """Return pyarrow with its parts; raise ImportError where it is not installed."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError:
        raise ImportError(f"{what} need pyarrow; install it with `pip install 'meristem-nn[tables]'`.") from None
    return pyarrow


def csv_arrays(data: bytes, n_columns: int, delimiter: str, *, is_null_missing: bool) -> list[Any] | None:
    """Return an array of strings for each column of whole CSV rows; None where they are not `n_columns` fields of UTF-8.

    None also where a field is longer than Python's csv allows. With `is_null_missing` texts that mean "missing" are null.

    >>> [array.to_pylist() for array in csv_arrays(b'1,"a,b"\\n\\n2,NA\\n', 2, ",", is_null_missing=True)]
    [['1', '2'], ['a,b', None]]
    """
    pyarrow = pyarrow_for("CSV files")
    names = [str(place) for place in range(n_columns)]
    try:
        table = pyarrow.csv.read_csv(
            pyarrow.py_buffer(data),
            pyarrow.csv.ReadOptions(column_names=names, block_size=len(data) + 1),
            pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=b'"' in data),
            pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(names, pyarrow.string()),
                null_values=MISSING_SPELLINGS,
                strings_can_be_null=is_null_missing,
            ),
        )
    except pyarrow.ArrowInvalid:
        return None
    arrays = [column.combine_chunks() for column in table.columns]
    longest, compute = csv.field_size_limit(), pyarrow.compute
    if len(data) > longest and any((compute.max(compute.binary_length(array)).as_py() or 0) > longest for array in arrays):
        return None
    return arrays


def distinct_texts(texts: Any, most: int | None = None) -> tuple[list[str], np.ndarray]:
    """Return the different texts of a list or an array, and the index of each row's text; −1 where null.

    Of an array only the first `most` texts are returned.
    """
    if isinstance(texts, list):
        places: dict[str, int] = {}
        rows = [places.setdefault(text, len(places)) for text in texts]
        return [*places], np.array(rows, np.int64)
    encoded = texts.dictionary_encode()
    indices = encoded.indices if encoded.indices.null_count == 0 else encoded.indices.fill_null(-1)
    return encoded.dictionary[:most].to_pylist(), indices.to_numpy()


def floats_of(array: Any, *, commas: bool = False) -> np.ndarray | None:
    """Return float64 [rows], NaN where missing or blank; None where a text is not a finite number.

    With `commas` numbers may have decimal commas, and points between thousands.
    """
    if not commas and (numbers := _cast(array)) is not None:
        return numbers
    pyarrow = pyarrow_for()
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
    pyarrow = pyarrow_for()
    try:
        numbers: np.ndarray = array.cast(pyarrow.float64()).to_numpy(zero_copy_only=False)
    except pyarrow.ArrowInvalid:
        return None
    return numbers if np.isfinite(numbers).sum() == len(array) - array.null_count else None
