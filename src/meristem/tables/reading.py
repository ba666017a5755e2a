"""A table from a file, as named columns: CSV, gzipped CSV, Parquet, or `-` for CSV on standard input.

    read_table("people.csv") → Table;  table["age"] → Column;  table_of(frame) → Table, of a frame or a dictionary of lists

What a file is, its first bytes say, not its name: separated.py reads texts, parquet.py the other. A million rows of fifty
columns take half a gigabyte. What is wrong with it is a ValueError of one line that names the file, the line and the column.
Encoding and fitting import it.
"""

import gzip
import io
import sys
import zlib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, cast

from meristem.check import short
from meristem.files.whole import PATHS
from meristem.tables.column import column_of
from meristem.tables.parquet import read_parquet
from meristem.tables.separated import read_separated
from meristem.tables.table import Known, Table, check_names

STDIN, FORBIDDEN = "-", '"\r\n\0'


def read_table(path: PATHS, known: Known | None = None, sep: str | None = None, keep: Sequence[str] = ()) -> Table:
    """All of a file; the columns of `known` are read as categories, however many others there are of them.

    `sep`: what separates the columns of a CSV file; None: as its header is. `keep`: columns whose texts are held, too, each
    a name or several with commas between them.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(f"{folder}/people.csv").write_text("name,age\\nAda,36\\nGrace,\\n")
    ...     table = read_table(f"{folder}/people.csv")
    >>> table.rows, table["name"].texts, table["age"].as_numbers().tolist()
    (2, ('Ada', 'Grace'), [36.0, nan])
    """
    name = "standard input" if str(path) == STDIN else repr(str(path))
    if sep is not None and (len(sep) != 1 or sep in FORBIDDEN):
        raise ValueError(f"sep={short(sep)} must be one character that separates columns, such as ';' or '|'.")
    if str(path) == STDIN and sys.stdin is None:  # as Python has it where it was closed before it began
        raise ValueError(
            f"{name} is closed; give the path of a table in place of '-', or a table there: meristem … - < table.csv"
        )
    with ExitStack() as stack:
        try:
            stream = sys.stdin.buffer if str(path) == STDIN else stack.enter_context(_opened(path))
            stream = cast(io.BufferedReader, stream if hasattr(stream, "peek") else io.BufferedReader(cast(Any, stream)))
            head = stream.peek(16)[:16]
            if head[:4] == b"PAR1":
                if str(path) == STDIN:
                    raise ValueError(f"{name} is a Parquet file, which cannot be read from there; give its path.")
                return read_parquet(path, name, known, keep)
            if head[:2] == b"\x1f\x8b":
                stream = io.BufferedReader(cast(Any, stack.enter_context(gzip.GzipFile(fileobj=stream))))
                head = stream.peek(16)[:16]
            _check_head(name, head)
            return read_separated(stream, name, known, sep, keep)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{name} is damaged: it cannot be unpacked ({error}); use a copy.") from error
        except OSError as error:
            raise ValueError(f"{name} cannot be read ({error.strerror or error}).") from error


def table_of(frame: Any) -> Table:
    """A frame (anything with `columns` and `frame[name]`, as pandas has it), a dictionary of lists, or a Table as it is.

    >>> table_of({"size": [1.5, 2.5], "color": ["red", None]})["color"].n_missing
    1
    """
    if isinstance(frame, Table):
        return frame
    if not hasattr(frame, "__getitem__") or not (isinstance(frame, Mapping) or hasattr(frame, "columns")):
        raise ValueError(f"A {type(frame).__name__} is no table; give a frame, a dictionary of lists, or the path of a file.")
    names = list(frame) if isinstance(frame, Mapping) else list(frame.columns)
    source = "the frame"
    check_names(source, [str(name) for name in names])
    columns = {str(name): column_of(str(name), frame[name]) for name in names}
    lengths = {column.rows for column in columns.values()}
    if len(lengths) != 1:
        raise ValueError(
            f"{source} has columns of {' and '.join(map(str, sorted(lengths)))} rows; they must be as many in each."
        )
    (rows,) = lengths
    if not rows:
        raise ValueError(f"{source} has no rows; give some.")
    return Table(columns, rows, source)


def tabled(given: Any, known: Known | None = None, sep: str | None = None) -> Table:
    """A table from a path or a frame."""
    return read_table(given, known, sep) if isinstance(given, str | Path) else table_of(given)


def _opened(path: PATHS) -> BinaryIO:
    place = Path(path)
    if not place.exists():
        raise ValueError(f"{str(path)!r} does not exist; check the path.")
    if place.is_dir():
        raise ValueError(f"{str(path)!r} is a folder; give the file itself.")
    return place.open("rb")


def _check_head(name: str, head: bytes) -> None:
    """Raise ValueError where the first bytes are those of something else than a text."""
    if not head:
        raise ValueError(f"{name} is empty; give a table with a header and rows.")
    if head[8:9] == b"{" and b"\0" in head[:8]:
        raise ValueError(f"{name} is a model file, not a table; give the table, such as rows.csv.")
    if head[:4] == b"PK\x03\x04":
        raise ValueError(f"{name} is a zip archive or a workbook; save the table as CSV.")
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise ValueError(f"{name} is encoded in UTF-16; save it as UTF-8.")
