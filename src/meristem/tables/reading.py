"""A table from a file, as named columns: CSV, gzipped CSV, Parquet, or `-` for CSV on standard input.

    read_table("people.csv") → Table;  table["age"] → Column
    tabled(path or frame) → Table;  table_of(frame) → Table, of a frame or a dictionary of lists (frames.py)

What a file is, its first bytes say, not its name: separated.py reads texts, parquet.py the other. A million rows of fifty
columns take half a gigabyte. What is wrong with it is a ValueError of one line that names the file, the line and the column; so
is a file that changes while it is read. Encoding and fitting import it.
"""

import gzip
import io
import sys
import zlib
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, cast

from meristem.check import short
from meristem.files.atomic_write import PATHS
from meristem.tables.bytestream import is_utf8
from meristem.tables.frames import table_of as table_of
from meristem.tables.parquet import read_parquet
from meristem.tables.separated import read_separated
from meristem.tables.table import KnownTexts, Table
from meristem.tables.unchanged import unchanged

STDIN, FORBIDDEN = "-", '"\r\n\0'


def read_table(
    path: PATHS,
    known_texts: KnownTexts | None = None,
    sep: str | None = None,
    keep: Sequence[str] = (),
    encoding: str | None = None,
) -> Table:
    """Return all of a file; the columns of `known_texts` are read as categories, however many others there are of them.

    `sep`: what separates the columns of a CSV file; None: as its header is. `keep`: columns whose texts are held, too, each
    a name or several with commas between them. `encoding`: of a CSV file, any that Python has a codec for; None: UTF-8.

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
    if encoding is not None:
        is_utf8(encoding)  # raises where there is no such encoding
    if str(path) == STDIN and sys.stdin is None:  # as Python has it where it was closed before it began
        raise ValueError(
            f"{name} is closed; give the path of a table in place of '-', or a table there: meristem … - < table.csv"
        )
    with ExitStack() as stack:
        try:
            if str(path) == STDIN:
                stream = sys.stdin.buffer
            else:
                stream = stack.enter_context(_opened(path))
                stack.enter_context(unchanged(stream, name))
            stream = cast(io.BufferedReader, stream if hasattr(stream, "peek") else io.BufferedReader(cast(Any, stream)))
            head = stream.peek(16)[:16]
            if head[:4] == b"PAR1":
                if str(path) == STDIN:
                    raise ValueError(f"{name} is a Parquet file, which cannot be read from there; give its path.")
                return read_parquet(stream, name, known_texts, keep)
            is_packed = head[:2] == b"\x1f\x8b"
            if is_packed:
                stream = io.BufferedReader(cast(Any, stack.enter_context(gzip.GzipFile(fileobj=stream))))
                head = stream.peek(16)[:16]
            _check_head(name, head, encoding)
            table = read_separated(stream, name, known_texts, sep, keep, encoding)
            return replace(table, format="csv.gz") if is_packed else table
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{name} is damaged: it cannot be unpacked ({error}); use a copy.") from error
        except UnicodeError as error:  # of a codec that cannot read a file in parts
            raise ValueError(f"{name} cannot be read with encoding={short(encoding)} ({error}); give another.") from error
        except OSError as error:
            raise ValueError(f"{name} cannot be read ({error.strerror or error}).") from error


def tabled(source: Any, known_texts: KnownTexts | None = None, sep: str | None = None, encoding: str | None = None) -> Table:
    """Return the table of a path or a frame; texts of `known_texts` keep their codes."""
    if isinstance(source, str | Path):
        return read_table(source, known_texts, sep, encoding=encoding)
    return table_of(source, known_texts)


def _opened(path: PATHS) -> BinaryIO:
    place = Path(path)
    if not place.exists():
        raise ValueError(f"{str(path)!r} does not exist; check the path.")
    if place.is_dir():
        raise ValueError(f"{str(path)!r} is a folder; give the file itself.")
    return place.open("rb")


def _check_head(name: str, head: bytes, encoding: str | None) -> None:
    """Raise ValueError where the first bytes are those of something else than a text."""
    if not head:
        raise ValueError(f"{name} is empty; give a table with a header and rows.")
    if head[8:9] == b"{" and b"\0" in head[:8]:
        raise ValueError(f"{name} is a model file, not a table; give the table, such as rows.csv.")
    if head[:4] == b"PK\x03\x04":
        raise ValueError(f"{name} is a zip archive or a workbook; save the table as CSV.")
    if head[:2] in (b"\xff\xfe", b"\xfe\xff") and encoding is None:
        raise ValueError(f"{name} is encoded in UTF-16; give --encoding utf-16, or save it as UTF-8.")
