"""Read a table from a file: CSV, gzipped CSV, Parquet, or `-` for CSV on standard input.

    read_table("people.csv") → Table;  table["age"] → Column;  as_table(path or frame) → Table

The format is recognized by the first bytes, not by the name. A million rows of fifty columns take half a gigabyte. Whatever is
wrong is a ValueError of one line that names the file, the line and the column; so is a file that changes while it is read.
"""

import gzip
import hashlib
import io
import os
import stat
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from meristem.check import cut, short
from meristem.files.atomic_write import PATHS
from meristem.memory import memory
from meristem.tables.column_builder import load_pyarrow
from meristem.tables.csv_reader import read_csv
from meristem.tables.frames import build_table, table_of as table_of
from meristem.tables.table_columns import KnownTexts, Table

STDIN, FORBIDDEN = "-", '"\r\n\0'
PARQUET_ROWS = 8192  # that are read at a time
UNREADABLE = (ValueError, TypeError, OSError, OverflowError, MemoryError, KeyError)  # what pyarrow raises beside its own errors


def read_table(
    path: PATHS, known_texts: KnownTexts | None = None, sep: str | None = None, keep: Any = (), encoding: str | None = None
) -> Table:
    """Return the table of a file.

    known_texts    column → categories that keep their codes, however many other texts the column has
    sep            what separates the columns of a CSV file; None: as its header is
    keep           columns whose raw texts are held, too; each entry a name, or several with commas
    encoding       of a CSV file, any that Python has; None: UTF-8

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(f"{folder}/people.csv").write_text("name,age\\nAda,36\\nGrace,\\n")
    ...     table = read_table(f"{folder}/people.csv")
    >>> table.rows, table["name"].texts, table["age"].as_numbers().tolist()
    (2, ('Ada', 'Grace'), [36.0, nan])
    """
    is_stdin, place = str(path) == STDIN, Path(path)
    name = "standard input" if is_stdin else repr(str(path))
    if sep is not None and (len(sep) != 1 or sep in FORBIDDEN):
        raise ValueError(f"sep={short(sep)} must be one character that separates columns, such as ';' or '|'.")
    try:
        "a".encode("utf-8" if encoding is None else encoding)
    except (LookupError, ValueError, TypeError):
        what = f"encoding={short(encoding)} is not known"
        raise ValueError(f"{what}; give one of Python's, such as utf-8, utf-16, cp1252 or shift_jis.") from None
    if is_stdin and sys.stdin is None:  # as Python has it where it was closed before it began
        raise ValueError(f"{name} is closed; give the path of a table in place of '-', or: meristem … - < table.csv")
    with ExitStack() as stack:
        try:
            if is_stdin:
                file: Any = sys.stdin.buffer
            elif not place.exists():
                raise ValueError(f"{name} does not exist; check the path.")
            elif place.is_dir():
                raise ValueError(f"{name} is a folder; give the file itself.")
            else:
                file = stack.enter_context(place.open("rb"))
                stack.enter_context(refuse_changes(file, name))
            stream = file if hasattr(file, "peek") else io.BufferedReader(file)
            if stream.peek(4)[:4] == b"PAR1":
                if is_stdin:
                    raise ValueError(f"{name} is a Parquet file, which cannot be read from there; give its path.")
                return _read_parquet(stream, name, known_texts, keep)
            is_packed = stream.peek(2)[:2] == b"\x1f\x8b"
            if is_packed:
                packed: Any = stack.enter_context(gzip.GzipFile(fileobj=stream))
                stream = io.BufferedReader(packed)
            _check_head(name, stream.peek(16)[:16], encoding)
            table = read_csv(stream, name, known_texts, sep, keep, encoding)
            return replace(table, format="csv.gz") if is_packed else table
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{name} is damaged: it cannot be unpacked ({error}); use a copy.") from error
        except UnicodeError as error:  # of a codec that cannot read a file in parts
            raise ValueError(f"{name} cannot be read with encoding={short(encoding)} ({error}); give another.") from error
        except OSError as error:
            raise ValueError(f"{name} cannot be read ({error.strerror or error}).") from error


def as_table(
    source: Any, known_texts: KnownTexts | None = None, sep: str | None = None, keep: Any = (), encoding: str | None = None
) -> Table:
    """Return the table of a path or a frame; for the options see `read_table`."""
    if isinstance(source, str | Path):
        return read_table(source, known_texts, sep, keep, encoding=encoding)
    return table_of(source, known_texts, keep)


def _check_head(name: str, head: bytes, encoding: str | None) -> None:
    """Raise ValueError where the first bytes are not those of a text."""
    if not head:
        raise ValueError(f"{name} is empty; give a table with a header and rows.")
    if head[8:9] == b"{" and b"\0" in head[:8]:
        raise ValueError(f"{name} is a model file, not a table; give the table, such as rows.csv.")
    if head[:4] == b"PK\x03\x04":
        raise ValueError(f"{name} is a zip archive or a workbook; save the table as CSV.")
    if head[:2] in (b"\xff\xfe", b"\xfe\xff") and encoding is None:
        raise ValueError(f"{name} is encoded in UTF-16; give --encoding utf-16, or save it as UTF-8.")


@contextmanager
def refuse_changes(file: BinaryIO, name: str) -> Iterator[None]:
    """Raise ValueError where a file has changed at the end of the block, or was not read to its end.

    Pipes and devices are not checked: they have no size.
    """
    before, failure = os.fstat(file.fileno()), None
    try:
        yield
    except Exception as error:
        failure = error
    now = os.fstat(file.fileno())
    is_same = (before.st_size, before.st_mtime_ns) == (now.st_size, now.st_mtime_ns)
    if stat.S_ISREG(before.st_mode) and not (is_same and (failure or file.tell() == now.st_size)):
        raise ValueError(f"{name} changed while it was read; wait until it is written, or give a copy.") from failure
    if failure is not None:
        raise failure


def _read_parquet(stream: io.BufferedReader, name: str, known_texts: KnownTexts | None, keep: Sequence[str]) -> Table:
    """Return the table of an open Parquet file, which is left at its end; it is read once for the digest and once for rows."""
    pyarrow, digest, n_bytes = load_pyarrow(), hashlib.file_digest(stream, "sha256"), stream.tell()
    stream.seek(0)
    try:
        with pyarrow.parquet.ParquetFile(stream) as file:
            names, rows = file.schema_arrow.names, int(file.metadata.num_rows)
            _check_memory(name, rows, len(names))
            blocks = (batch.columns for batch in file.iter_batches(PARQUET_ROWS))
            table = build_table(name, names, blocks, known_texts, keep)
            if table.rows != rows:
                raise ValueError("columns of other lengths than it says")
    except (*UNREADABLE, pyarrow.ArrowException) as error:
        if type(error) is ValueError and (name in str(error) or str(error).startswith("keep=")):
            raise
        why = cut((str(error).splitlines() or [type(error).__name__])[0], 100)
        raise ValueError(f"{name} is a Parquet file that cannot be read ({why}); use a copy.") from error
    stream.seek(n_bytes)
    return replace(table, digest=digest.hexdigest(), format="parquet")


def _check_memory(name: str, rows: int, columns: int) -> None:
    """Raise ValueError where a table is larger than memory: a few bytes of Parquet can stand for any number of rows."""
    available, needed = memory(), 8 * rows * columns
    if available is not None and needed > available:
        what = f"{rows:,} rows of {columns:,} columns need {needed / 1e9:,.0f} GB of memory, of {available / 1e9:,.0f} GB"
        raise ValueError(f"{name}: {what}; give fewer.")
