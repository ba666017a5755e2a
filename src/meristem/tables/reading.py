"""A table from a file, as named columns: CSV, gzipped CSV, Parquet, or `-` for CSV on standard input.

    read_table("people.csv") → Table;  table["age"] → Column;  table_of(frame) → Table, of a frame or a dictionary of lists

What a file is, its first bytes say, not its name. A CSV file has a header of different names, UTF-8 (a byte-order mark is
allowed), and as many fields in each line as in the header, separated by commas, semicolons or tabs, as the header is, or by
what `sep` says; where that is no comma, one may stand for the decimal point. It is
read a block of rows at a time and never held as texts: a million rows of fifty columns take half a gigabyte. What is wrong with
it is a ValueError of one line that names the file, the line and the column.

pyarrow is needed for Parquet alone, and imported only then. Imports column.py; encoding and fitting import it.
"""

import csv
import gzip
import hashlib
import io
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from meristem.check import cut, short, unknown
from meristem.files.whole import PATHS
from meristem.memory import memory
from meristem.tables.column import Column, Gatherer, column_of, column_of_texts

LONGEST_LINE = 16 * 2**20  # bytes
BLOCK = 8192  # rows
DELIMITERS, FORBIDDEN = ",;\t", '"\r\n\0'
STDIN = "-"
UNREADABLE = (ValueError, TypeError, OSError, OverflowError, MemoryError, KeyError)  # what pyarrow raises beside its own errors
MARK = b"\xef\xbb\xbf"  # UTF-8's byte-order mark
Known = Mapping[str, Sequence[str]]  # of each column of categories those that keep their place


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of as many rows each."""

    columns: dict[str, Column] = field(repr=False)
    rows: int
    source: str  # the file, in quotes, or "the frame"
    digest: str | None = None  # SHA-256 of the file's content, unpacked; None: it came from no file
    texts: dict[str, list[str]] = field(
        default_factory=dict, repr=False
    )  # of columns that were asked for, as the file has them

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]

    def __contains__(self, name: object) -> bool:
        return name in self.columns


def read_table(path: PATHS, known: Known | None = None, sep: str | None = None, keep: Sequence[str] = ()) -> Table:
    """All of a file; the columns of `known` are read as categories, however many others there are of them.

    `sep`: what separates the columns of a CSV file; None: as its header is. `keep`: columns whose texts are held, too.

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
    with ExitStack() as stack:
        try:
            stream = sys.stdin.buffer if str(path) == STDIN else stack.enter_context(_opened(path))
            stream = cast(io.BufferedReader, stream if hasattr(stream, "peek") else io.BufferedReader(cast(Any, stream)))
            head = stream.peek(16)[:16]
            if head[:4] == b"PAR1":
                return _parquet(path, name, known, keep)
            if head[:2] == b"\x1f\x8b":
                stream = io.BufferedReader(cast(Any, stack.enter_context(gzip.GzipFile(fileobj=stream))))
                head = stream.peek(16)[:16]
            _check_head(name, head)
            return _csv(stream, name, known, sep, keep)
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
    _check_names(source, [str(name) for name in names])
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


def _csv(stream: io.BufferedReader, name: str, known: Known | None, sep: str | None, keep: Sequence[str]) -> Table:
    digest = hashlib.sha256()
    lines = _lines(stream, name, digest)
    first = next(lines)
    delimiter = sep or max(DELIMITERS, key=first.count)  # of equals the first
    reader = csv.reader(_again(first, lines), delimiter=delimiter, strict=True)
    try:
        names = [one.strip() for one in next(reader)]
        _check_names(name, names)
        kept = _kept(keep, names)
        gatherers = [Gatherer(one, (known or {}).get(one), commas=delimiter != ",") for one in names]
        for block in _blocks(reader, name, names):
            for gatherer, texts in zip(gatherers, zip(*block, strict=True), strict=True):
                gatherer.add(texts)
                if gatherer.name in kept:
                    kept[gatherer.name] += texts
    except csv.Error as error:
        raise ValueError(f"{name}, line {max(1, reader.line_num)}: {_what_is_wrong(str(error))}") from error
    rows = gatherers[0].rows
    if not rows:
        raise ValueError(f"{name} has a header and no rows; give some.")
    return Table({one.name: one.column() for one in gatherers}, rows, name, digest.hexdigest(), kept)


def _kept(keep: Sequence[str], names: list[str]) -> dict[str, list[str]]:
    """Room for the texts of columns that are asked for; ValueError where there is no such column."""
    for one in keep:
        if one not in names:
            raise unknown("keep", one, names, most=300)
    return {one: [] for one in keep}


def _blocks(reader: Any, name: str, names: list[str]) -> Iterator[list[list[str]]]:
    """Rows, as many fields in each as there are names; lines without anything are no rows."""
    block: list[list[str]] = []
    for row in reader:
        if len(row) != len(names):
            if not row:
                continue
            what = f"{len(row)} field{'s' * (len(row) != 1)} where the header has {len(names)} columns"
            which = (
                f"column {short(names[len(row)])} and what follows is not there"
                if len(row) < len(names)
                else "there are too many"
            )
            raise ValueError(f"{name}, line {reader.line_num} has {what}: {which}; mend the line, or put quotes around commas.")
        block.append(row)
        if len(block) == BLOCK:
            yield block
            block = []
    if block:
        yield block


def _lines(stream: io.BufferedReader, name: str, digest: Any) -> Iterator[str]:
    """Lines of text, of a length that memory holds."""
    number = 0
    while line := stream.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            raise ValueError(f"{name}, line {number} is longer than {LONGEST_LINE >> 20} MiB; that is no line of a table.")
        if b"\0" in line:
            raise ValueError(f"{name}, line {number} holds a NUL byte at place {line.index(0) + 1}; is it a CSV file?")
        digest.update(line)
        if number == 1:
            line = line.removeprefix(MARK)
        try:
            yield line.decode()
        except UnicodeDecodeError as error:
            byte, place = line[error.start], error.start + 1
            raise ValueError(
                f"{name}, line {number} holds the byte 0x{byte:02x} at place {place}, which is not UTF-8; save it as UTF-8."
            ) from error


def _again(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


def _what_is_wrong(said: str) -> str:
    """What the csv module says, with what to do."""
    if "unexpected end of data" in said:
        return "a quote is opened before here and never closed; close it."
    if "field larger than" in said:
        return f"a field is longer than {csv.field_size_limit():,} characters; is a quote before here never closed?"
    if "expected after" in said:
        return "a quote is closed within a field; write a quote inside of quotes twice."
    if "new-line character" in said:
        return "a carriage return stands inside the line; save the file with usual ends of lines."
    return f"{said}."


def _check_names(name: str, names: list[str]) -> None:
    if not names:
        raise ValueError(f"{name} has no columns; its first line must name them.")
    places: dict[str, int] = {}
    for place, one in enumerate(names):
        if not one:
            hint = " (an index that pandas wrote? to_csv(…, index=False))" if place == 0 else ""
            raise ValueError(f"{name}: column {place + 1} of {len(names)} has no name{hint}; give it one in the header.")
        if (first := places.setdefault(one, place)) != place:
            raise ValueError(
                f"{name}: columns {first + 1} and {place + 1} are both called {short(one)}; rename one in the header."
            )


def _parquet(path: PATHS, name: str, known: Known | None, keep: Sequence[str]) -> Table:
    """Typed columns, a row group at a time; texts as those of a CSV file."""
    if str(path) == STDIN:
        raise ValueError(f"{name} is a Parquet file, which cannot be read from there; give its path.")
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
            _check_names(name, names)
            if not rows:
                raise ValueError(f"{name} has columns and no rows; give some.")
            _check_room(name, rows, len(names))
            kept = _kept(keep, names)
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
