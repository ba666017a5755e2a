"""pyarrow, which only this file imports, and only when a table needs it: CSV, Parquet, and frames of Arrow's own.

    pyarrow_for("CSV files") → the package, or an ImportError that says how to install it
    csv_arrays(data, 3, ";") → arrays of texts, a column each; None: pyarrow refuses these bytes
    ArrowBlock(array)        → texts as gathering.py takes them

Imports gathering's idea of a block; separated, batches, parquet and frames import it.
"""

import csv
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from meristem.tables.gathering import MISSING_RAWS
from meristem.tables.scalars import DECIMAL_COMMA


def pyarrow_for(what: str) -> ModuleType:
    """Return pyarrow with its parts; raise ImportError where it is not installed."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.csv
    except ImportError:
        raise ImportError(f"{what} need pyarrow; install it with `pip install 'meristem-nn[tables]'`.") from None
    return pyarrow


def parquet_file(file: Any) -> Any:
    """Return the Parquet file in an open file."""
    from pyarrow import parquet

    return parquet.ParquetFile(file)


def csv_arrays(data: bytes, n_columns: int, delimiter: str, *, is_null_missing: bool) -> list[Any] | None:
    """Return an array of texts for each column of whole rows of CSV; None where they are not `n_columns` fields of UTF-8.

    Fields have at most as many characters as Python's csv allows. `is_null_missing`: texts that mean "missing" are null then.

    >>> [array.to_pylist() for array in csv_arrays(b'1,"a,b"\\n\\n2,NA\\n', 2, ",", is_null_missing=True)]
    [['1', '2'], ['a,b', None]]
    """
    pyarrow = pyarrow_for("CSV files")
    names, text = [str(place) for place in range(n_columns)], pyarrow.string()
    try:
        table = pyarrow.csv.read_csv(
            pyarrow.py_buffer(data),
            pyarrow.csv.ReadOptions(column_names=names, block_size=len(data) + 1),
            pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=b'"' in data),
            pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(names, text),
                null_values=sorted(MISSING_RAWS),
                strings_can_be_null=is_null_missing,
            ),
        )
    except pyarrow.ArrowInvalid:
        return None
    arrays = [column.combine_chunks() for column in table.columns]
    is_long = len(data) > csv.field_size_limit() and any(_longest(array) > csv.field_size_limit() for array in arrays)
    return None if is_long else arrays


def release_memory() -> None:
    """Give memory back to the system that pyarrow keeps for its next arrays."""
    pyarrow_for("CSV files").default_memory_pool().release_unused()


class ArrowBlock:
    """Texts of an Arrow array of strings; null: missing.

    >>> block = ArrowBlock(pyarrow_for("examples").array([" 1", "2", None, "1e3"]))
    >>> block.distinct()[0], block.floats().tolist()
    ([' 1', '2', '1e3'], [1.0, 2.0, nan, 1000.0])
    """

    def __init__(self, array: Any):
        self._array = array

    def __len__(self) -> int:
        return len(self._array)

    def distinct(self, most: int | None = None) -> tuple[list[str], np.ndarray]:
        """Return different texts, the first `most` of them, and the place of each row's among them."""
        coded = self._array.dictionary_encode()
        places = coded.indices if coded.indices.null_count == 0 else coded.indices.fill_null(-1)
        return coded.dictionary[:most].to_pylist(), places.to_numpy()

    def floats(self) -> np.ndarray | None:
        """Return numbers that equal Python's, or None: whatever else Arrow reads as one (inf, nan(x)) is not taken."""
        numbers = _cast(self._array)
        return numbers if numbers is not None else _cast(self._trimmed())

    def comma_floats(self) -> np.ndarray | None:
        """Return the same where a comma may stand for the point, and points between thousands."""
        compute, texts = pyarrow_for("CSV files").compute, self._trimmed()
        is_comma = compute.match_substring_regex(texts, f"^(?:{DECIMAL_COMMA.pattern})$")
        plain = compute.replace_substring(compute.replace_substring(texts, ".", ""), ",", ".")
        return _cast(compute.if_else(is_comma, plain, texts))

    def texts(self) -> list[str]:
        """Return the text of each row."""
        return ["" if text is None else text for text in self._array.to_pylist()]

    def _trimmed(self) -> Any:
        """Without whitespace around texts, which `float` ignores; null where a text is missing or blank."""
        pyarrow = pyarrow_for("CSV files")
        compute, null = pyarrow.compute, pyarrow.scalar(None, self._array.type)
        trimmed = compute.ascii_trim_whitespace(self._array)
        is_gap = compute.or_(compute.is_in(self._array, _missing_raws()), compute.equal(trimmed, ""))
        return compute.if_else(is_gap, null, trimmed)


@cache
def _missing_raws() -> Any:
    return pyarrow_for("CSV files").array(sorted(MISSING_RAWS))


def _cast(array: Any) -> np.ndarray | None:
    """Float64, NaN where null; None where a text is no finite number."""
    pyarrow = pyarrow_for("CSV files")
    try:
        numbers: np.ndarray = array.cast(pyarrow.float64()).to_numpy(zero_copy_only=False)
    except pyarrow.ArrowInvalid:
        return None
    return numbers if np.isfinite(numbers).sum() == len(array) - array.null_count else None


def _longest(array: Any) -> int:
    """Bytes of the longest text."""
    compute = pyarrow_for("CSV files").compute
    return compute.max(compute.binary_length(array)).as_py() or 0
