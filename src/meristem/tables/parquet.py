"""Tables of Parquet files: typed columns, a row group at a time; texts as those of a CSV file.

    read_parquet(stream, name, known_texts, keep) → Table

The file is read for its digest, and read again for its columns (batches.py). What is wrong with it is a ValueError
of one line that names it; what it says of its size is compared with the memory that there is. reading imports it.
"""

import hashlib
from collections.abc import Sequence
from typing import BinaryIO

from meristem.check import cut
from meristem.memory import memory
from meristem.tables.arrow import parquet_file, pyarrow_for
from meristem.tables.batches import columns_of_batches
from meristem.tables.table import KnownTexts, Table, check_names

BLOCK = 8192  # rows
UNREADABLE = (ValueError, TypeError, OSError, OverflowError, MemoryError, KeyError)  # what pyarrow raises beside its own errors


def read_parquet(stream: BinaryIO, name: str, known_texts: KnownTexts | None, keep: Sequence[str]) -> Table:
    """Return all of an open file, which is left at its end; `name` is what errors call it."""
    pyarrow, digest, n_bytes = pyarrow_for("Parquet files"), hashlib.sha256(), 0
    while data := stream.read(2**20):
        digest.update(data)
        n_bytes += len(data)
    stream.seek(0)
    try:
        with parquet_file(stream) as file:
            names, rows = [str(field) for field in file.schema_arrow.names], int(file.metadata.num_rows)
            check_names(name, names)
            if not rows:
                raise ValueError(f"{name} has columns and no rows; give some.")
            _check_room(name, rows, len(names))
            columns, texts = columns_of_batches(file.schema_arrow, file.iter_batches(BLOCK), name, known_texts, keep)
            if {column.rows for column in columns.values()} != {rows}:
                raise ValueError("columns of other lengths than it says")
    except (*UNREADABLE, pyarrow.ArrowException) as error:
        if type(error) is ValueError and (name in str(error) or str(error).startswith("keep=")):
            raise
        why = cut((str(error).splitlines() or [type(error).__name__])[0], 100)
        raise ValueError(f"{name} is a Parquet file that cannot be read ({why}); use a copy.") from error
    stream.seek(n_bytes)
    return Table(columns, rows, name, digest.hexdigest(), texts, format="parquet")


def _check_room(name: str, rows: int, columns: int) -> None:
    """Raise ValueError where a table is more than memory holds: a few bytes of Parquet can stand for any number of rows."""
    there, needed = memory(), 8 * rows * columns
    if there is not None and needed > there:
        raise ValueError(
            f"{name} says that it has {rows:,} rows of {columns:,} columns; that is {needed / 1e9:,.0f} GB, and there are "
            f"{there / 1e9:,.0f}; give fewer."
        )
