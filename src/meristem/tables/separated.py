"""Tables of texts that something separates: CSV, from a stream of bytes, a block of rows at a time, by pyarrow.

    read_separated(stream, name, known_texts, sep, keep, encoding) → Table

A header of different names, UTF-8 (a byte-order mark is allowed) or another encoding, and as many fields in each row as in the
header, separated by commas, semicolons or tabs, as the header is, or by what `sep` says; where that is no comma, one may stand
for the decimal point. It is never held as texts; lines, fields and rows have a longest length. What is wrong with it is a
ValueError of one line that names the file and the line.

By hand, because pyarrow cannot do it:

    the header, and what separates it    its names are needed, and checked, before columns have types
    where rows end (bytestream.py)       a block is whole rows, so that memory is bounded and lines are counted: pyarrow's own
                                         stream fails on a row that is longer than its block, and names no line
    rows that pyarrow refuses, or takes  by Python's csv module, strictly: it says what is wrong, and in which line. pyarrow
    without a word though they are       takes an open quote at the end, a quote that is closed within a field, a carriage
    wrong                                return as a line's end, a field of any length
    a separator beyond ASCII             by the csv module, too: pyarrow's is one byte

reading imports it.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Self

from meristem.check import short
from meristem.tables.arrow import ArrowBlock, csv_arrays, pyarrow_for, release_memory
from meristem.tables.bytestream import LONGEST_LINE as LONGEST_LINE, ByteStream
from meristem.tables.gathering import Block, Gatherer, TextBlock
from meristem.tables.table import KnownTexts, Table, check_names, room_for

BLOCK = 8192  # rows that the csv module reads at a time
LEAST_BYTES, MOST_BYTES, BYTES_PER_COLUMN = 2**20, 128 * 2**20, 2**14  # of a block: of wide tables some 2,000 rows, too
DELIMITERS = ",;\t"
GUESSES = "cp1252", "latin-1"  # encodings of files that are not UTF-8


def read_separated(
    file: io.BufferedReader,
    name: str,
    known_texts: KnownTexts | None,
    sep: str | None,
    keep: Sequence[str],
    encoding: str | None = None,
) -> Table:
    """Return all of a file; `name` is what errors call it."""
    pyarrow_for("CSV files")
    stream = ByteStream(file, name, encoding)
    first = _line(stream)
    delimiter = sep or max(DELIMITERS, key=first.count)  # of equals the first
    rows = Rows(stream, delimiter, first)
    names = [field.strip() for field in rows.next() or []]
    check_names(name, names)
    texts = room_for(keep, names)
    gatherers = [Gatherer(column, (known_texts or {}).get(column), commas=delimiter != ",") for column in names]
    for block in _blocks(stream, names, delimiter, is_raw=bool(texts)):
        for gatherer, part in zip(gatherers, block, strict=True):
            gatherer.add(part)
            if gatherer.name in texts:
                texts[gatherer.name] += part.texts()
    release_memory()
    n_rows = gatherers[0].rows
    if not n_rows:
        raise ValueError(f"{name} has a header and no rows; give some.")
    columns = {gatherer.name: gatherer.column() for gatherer in gatherers}
    return Table(columns, n_rows, name, stream.digest.hexdigest(), texts, delimiter, encoding or "utf-8", "csv")


def _blocks(stream: ByteStream, names: list[str], delimiter: str, *, is_raw: bool) -> Iterator[Sequence[Block]]:
    """Columns of some rows: by pyarrow where they are regular, else by the csv module, which says what is wrong."""
    size = min(MOST_BYTES, max(LEAST_BYTES, BYTES_PER_COLUMN * len(names)))
    while True:
        data = stream.rows(size, delimiter.encode()) if delimiter.isascii() else None
        if data == b"":
            return
        if data is not None:
            arrays = csv_arrays(data, len(names), delimiter, is_null_missing=not is_raw)
            if arrays is not None:
                data = b""  # it may be large, and is not needed while its columns are gathered
                yield [ArrowBlock(array) for array in arrays]
                continue
            stream.put_back(data)
        block = _checked_rows(stream, names, delimiter)
        if not block:
            return
        yield [TextBlock(texts) for texts in zip(*block, strict=True)]


def _checked_rows(stream: ByteStream, names: list[str], delimiter: str) -> list[list[str]]:
    """Rows by the csv module, as many fields in each as there are names; lines without anything are no rows."""
    rows = Rows(stream, delimiter)
    block: list[list[str]] = []
    while len(block) < BLOCK and (row := rows.next()) is not None:
        if not row:
            continue
        if len(row) != len(names):
            what = f"{len(row)} field{'s' * (len(row) != 1)} where the header has {len(names)} columns"
            which = (
                f"column {short(names[len(row)])} and what follows is not there"
                if len(row) < len(names)
                else "there are too many"
            )
            raise ValueError(
                f"{stream.name}, line {stream.line} has {what}: {which}; mend the line, or put quotes around commas."
            )
        block.append(row)
    return block


class Rows:
    """Rows of a stream by the csv module, which takes no line more than it needs; `first` is one that was read before."""

    def __init__(self, stream: ByteStream, delimiter: str, first: str = ""):
        self._stream, self._lines = stream, Lines(stream, first)
        self._reader = csv.reader(self._lines, delimiter=delimiter, strict=True)

    def next(self) -> list[str] | None:
        """Return the fields of a row, [] of an empty line, None at the end; raise ValueError with the line."""
        self._lines.length = 0
        try:
            return next(self._reader, None)
        except csv.Error as error:
            raise ValueError(f"{self._stream.name}, line {max(1, self._stream.line)}: {_what_is_wrong(error)}") from error


class Lines:
    """Lines of text; those with open quotes are one row, `length` characters so far, and may not be so without end."""

    def __init__(self, stream: ByteStream, first: str):
        self.length, self._stream, self._first = 0, stream, first

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> str:
        line, self._first = self._first or _line(self._stream), ""
        self.length += len(line)
        if self.length > LONGEST_LINE:
            raise ValueError(
                f"{self._stream.name}, line {self._stream.line}: a row is longer than {LONGEST_LINE >> 20} MiB; "
                "is a quote before here never closed?"
            )
        if not line:
            raise StopIteration
        return line


def _line(stream: ByteStream) -> str:
    """The next line as text; ValueError where it is not UTF-8, with a guess at what it is."""
    line = stream.readline()
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        byte, place = line[error.start], error.start + 1
        raise ValueError(
            f"{stream.name}, line {stream.line} holds the byte 0x{byte:02x} at place {place}, which is not UTF-8; "
            f"give --encoding {_guess(line)} (a guess), or save it as UTF-8."
        ) from error


def _guess(line: bytes) -> str:
    """The first of the usual encodings in which a line is text."""
    for encoding in GUESSES[:-1]:
        try:
            line.decode(encoding)
        except UnicodeDecodeError:
            continue
        return encoding
    return GUESSES[-1]


def _what_is_wrong(error: csv.Error) -> str:
    """What the csv module says, with what to do."""
    text = str(error)
    if "unexpected end of data" in text:
        return "a quote is opened before here and never closed; close it."
    if "field larger than" in text:
        return f"a field is longer than {csv.field_size_limit():,} characters; is a quote before here never closed?"
    if "expected after" in text:
        return "a quote is closed within a field; write a quote inside of quotes twice."
    if "new-line character" in text:
        return "a carriage return stands inside the line; save the file with usual ends of lines."
    return f"{text}."
