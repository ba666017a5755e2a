"""Tables of Parquet files: typed columns, a row group at a time; texts as those of a CSV file.

    read_parquet(path, name, known, keep) → Table

pyarrow is imported only here and only then. What is wrong with a file is a ValueError of one line that names it; what it says
of its size is compared with the memory that there is. reading imports it.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from meristem.check import cut
from meristem.files.whole import PATHS
from meristem.memory import memory
from meristem.tables.column import Column, Gatherer, column_of, column_of_texts
from meristem.tables.table import Known, Table, check_names, room_for

BLOCK = 8192  # rows
UNREADABLE = (ValueError, TypeError, OSError, OverflowError, MemoryError, KeyError)  # what pyarrow raises beside its own errors


def read_parquet(path: PATHS, name: str, known: Known | None, keep: Sequence[str]) -> Table:
    """All of it; `name` is what errors call it."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise ImportError("Parquet files need pyarrow; install it with `pip install 'meristem-nn[tables]'`.") from None
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while data := file.read(2**20):
            digest.update(data)
    try:
        with parquet.ParquetFile(path) as file:
            names, rows = [str(one) for one in file.schema_arrow.names], int(file.metadata.num_rows)
            check_names(name, names)
            if not rows:
                raise ValueError(f"{name} has columns and no rows; give some.")
            _check_room(name, rows, len(names))
            kept = room_for(keep, names)
            parts: dict[str, list[np.ndarray]] = {one: [] for one in names}
            gatherers = {
                one.name: Gatherer(one.name, (known or {}).get(one.name))
                for one in file.schema_arrow
                if not _is_typed(one.type)
            }
            for batch in file.iter_batches(BLOCK):
                for one, array in zip(names, batch.columns, strict=True):
                    if one in kept:
                        kept[one] += ["" if value is None else str(value) for value in array.to_pylist()]
                    if one in gatherers:
                        gatherers[one].add(["" if value is None else str(value) for value in array.to_pylist()])
                    else:
                        parts[one].append(array.to_numpy(zero_copy_only=False))
            columns = {one: gatherers[one].column() if one in gatherers else _joined(one, parts.pop(one)) for one in names}
            if {column.rows for column in columns.values()} != {rows}:
                raise ValueError("columns of other lengths than it says")
    except (*UNREADABLE, ArrowException) as error:
        if type(error) is ValueError and (name in str(error) or str(error).startswith("keep=")):
            raise
        why = cut((str(error).splitlines() or [type(error).__name__])[0], 100)
        raise ValueError(f"{name} is a Parquet file that cannot be read ({why}); use a copy.") from error
    return Table(columns, rows, name, digest.hexdigest(), kept)


def _check_room(name: str, rows: int, columns: int) -> None:
    """Raise ValueError where a table is more than memory holds: a few bytes of Parquet can stand for any number of rows."""
    there, needed = memory(), 8 * rows * columns
    if there is not None and needed > there:
        raise ValueError(
            f"{name} says that it has {rows:,} rows of {columns:,} columns; that is {needed / 1e9:,.0f} GB, and there are "
            f"{there / 1e9:,.0f}; give fewer."
        )


def _is_typed(kind: Any) -> bool:
    """Whether NumPy has such a type."""
    from pyarrow import types

    return any(is_one(kind) for is_one in (types.is_integer, types.is_floating, types.is_boolean, types.is_timestamp))


def _joined(name: str, parts: list[np.ndarray]) -> Column:
    """Blocks of one column; one with gaps among booleans holds objects."""
    whole = np.concatenate(parts)
    return column_of_texts(name, whole.tolist()) if whole.dtype.kind == "O" else column_of(name, whole)
