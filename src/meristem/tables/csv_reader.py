"""CSV files: a header of different names, and as many fields in each row; parsed by pyarrow, a block of rows at a time.

The file is UTF-8 (a byte-order mark is allowed) or in the encoding that is given; fields are separated by commas, semicolons or
tabs, whichever the header has, or by `sep`. Errors are a ValueError of one line that names the file and the line. By hand is
where rows end (`ByteStream.rows`), so that memory is bounded and lines are counted: pyarrow's own stream fails on a row that is
longer than its block, and names no line. The header, separators beyond ASCII, and rows that pyarrow refuses, or accepts though
they are wrong (open quotes, carriage returns, fields of any length), are for Python's csv module, which says what is wrong.
"""

import codecs
import csv
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import BufferedReader, BytesIO
from itertools import islice
from typing import Any

import numpy as np

from meristem.check import many, short
from meristem.inputs.schema import MISSING_SPELLINGS
from meristem.tables.column_builder import load_pyarrow
from meristem.tables.frames import build_table
from meristem.tables.table_columns import KnownTexts, Table

BLOCK = 8192  # rows that the csv module reads at a time
LEAST_BYTES, MOST_BYTES, BYTES_PER_COLUMN = 2**20, 128 * 2**20, 2**14  # of a block: of wide tables some 2,000 rows, too
DELIMITERS = ",;\t"
UNDEFINED_IN_CP1252 = set(b"\x81\x8d\x8f\x90\x9d")
LONGEST_LINE = 16 * 2**20  # bytes, and characters of a row
READ = 2**20  # bytes at a time
BYTE_ORDER_MARK = codecs.BOM_UTF8
QUOTE, NEWLINE = b'"\n'
ADVICE = {  # what the csv module says → what is wrong, and what to do
    "unexpected end of data": "a quote is opened before here and never closed; close it.",
    "field larger than": "a field is longer than {limit:,} characters; is a quote before here never closed?",
    "expected after": "a quote is closed within a field; write a quote inside of quotes twice.",
    "new-line character": "a carriage return stands inside the line; save the file with usual ends of lines.",
}


def read_csv(
    file: BufferedReader, name: str, known_texts: KnownTexts | None, sep: str | None, keep: Sequence[str], encoding: str | None
) -> Table:
    """Return the table of an open file, which errors call `name`; for the rest see `read_table`."""
    stream = ByteStream(file, name, encoding)
    header = stream.text_line()
    stream.put_back(header.encode())
    delimiter = sep or max(DELIMITERS, key=header.count)  # of equals the first
    names = [field.strip() for field in next(_rows(stream, delimiter), [])]
    table = build_table(name, names, _blocks(stream, names, delimiter, not keep), known_texts, keep, commas=delimiter != ",")
    load_pyarrow().default_memory_pool().release_unused()
    digest = stream.digest.hexdigest()
    return replace(table, digest=digest, sep=delimiter, encoding=encoding or "utf-8", format="csv")


def _blocks(stream: "ByteStream", names: list[str], delimiter: str, is_null_missing: bool) -> Iterator[list[Any]]:
    """Yield blocks of rows, for each column a list of texts or an Arrow array of strings."""
    size = min(MOST_BYTES, max(LEAST_BYTES, BYTES_PER_COLUMN * len(names)))
    while (data := stream.rows(size, delimiter.encode()) if delimiter.isascii() else None) != b"":
        arrays = None if data is None else csv_arrays(data, len(names), delimiter, is_null_missing=is_null_missing)
        if arrays is None:
            stream.put_back(data or b"")
            rows = list(islice(_rows(stream, delimiter, names), BLOCK))
            if not rows:
                return
            arrays = [*map(list, zip(*rows, strict=True))]
        data = None  # it may be large, and is not needed any more
        yield arrays


def csv_arrays(data: bytes, n_columns: int, delimiter: str, *, is_null_missing: bool) -> list[Any] | None:
    """Return an array of strings for each column of whole CSV rows; None where they are not `n_columns` fields of legal length.

    With `is_null_missing` texts that mean "missing" are null.

    >>> [array.to_pylist() for array in csv_arrays(b'1,"a,b"\\n\\n2,NA\\n', 2, ",", is_null_missing=True)]
    [['1', '2'], ['a,b', None]]
    """
    pyarrow = load_pyarrow()
    names = [str(place) for place in range(n_columns)]
    try:
        nulls = {"null_values": MISSING_SPELLINGS, "strings_can_be_null": is_null_missing}
        table = pyarrow.csv.read_csv(
            pyarrow.py_buffer(data),
            pyarrow.csv.ReadOptions(column_names=names, block_size=len(data) + 1),
            pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=b'"' in data),
            pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(names, pyarrow.string()), **nulls),
        )
    except pyarrow.ArrowInvalid:
        return None
    arrays = [column.combine_chunks() for column in table.columns]
    longest, compute = csv.field_size_limit(), pyarrow.compute
    if len(data) > longest and any((compute.max(compute.binary_length(array)).as_py() or 0) > longest for array in arrays):
        return None
    return arrays


def _rows(stream: "ByteStream", delimiter: str, names: list[str] | None = None) -> Iterator[list[str]]:
    """Yield rows by the csv module, no line more than it needs; of as many fields as there are names, if they are given."""
    try:
        for row in csv.reader(iter(stream.text_line, ""), delimiter=delimiter, strict=True):
            stream.row_length = 0
            if names is None or len(row) == len(names):
                yield row
            elif row:  # empty lines are no rows
                is_short = len(row) < len(names)
                which = f"column {short(names[len(row)])} and what follows is not there" if is_short else "there are too many"
                what = f"{many(len(row), 'field')} where the header has {len(names)} columns: {which}"
                remedy = "correct the line, or put quotes around commas"
                raise ValueError(f"{stream.name}, line {stream.line} has {what}; {remedy}.")
    except csv.Error as error:
        limit = csv.field_size_limit()
        advice = next((advice.format(limit=limit) for part, advice in ADVICE.items() if part in str(error)), f"{error}.")
        raise ValueError(f"{stream.name}, line {max(1, stream.line)}: {advice}") from error


class ByteStream:
    """The bytes of a CSV file as UTF-8, in lines or in whole rows; `line` counts lines, `digest` is the SHA-256 of the file.

    Quotes are regular where each opens at the start of a field or closes at its end: then a line end ends a row exactly where
    the number of quotes before it is even. Raises ValueError for a NUL byte, a byte that the encoding does not have, and a
    line that is too long to hold.

    >>> stream = ByteStream(BufferedReader(BytesIO(b'a,b\\n1,"x\\ny"\\n2')), "'x.csv'")
    >>> stream.text_line(), stream.rows(100, b","), stream.line
    ('a,b\\n', b'1,"x\\ny"\\n2', 4)
    """

    def __init__(self, file: BufferedReader, name: str, encoding: str | None = None):
        self.name, self.line, self.digest = name, 0, hashlib.sha256()
        self.row_length = 0  # characters of the lines since the reader of rows set it to 0
        self._file, self._is_first, self._is_over, self._encoding = file, True, False, encoding
        self._pending = BytesIO()  # what was read and not returned yet
        self._decoder = codecs.getincrementaldecoder(encoding or "utf-8")()

    def text_line(self) -> str:
        """Return a line with its end, "" at the end of the file."""
        while True:
            begin = self._pending.tell()
            line = self._pending.readline(LONGEST_LINE + 1)
            if line.endswith(b"\n") or self._is_over or len(line) > LONGEST_LINE:
                break
            self._pending.seek(begin)
            self._read(READ)
        self.line += bool(line)
        where, size = f"{self.name}, line {self.line}", f"is longer than {LONGEST_LINE >> 20} MiB"
        if len(line) > LONGEST_LINE:
            raise ValueError(f"{where} {size}; that is no line of a table.")
        text = line.decode()
        self.row_length += len(text)
        if self.row_length > LONGEST_LINE:
            raise ValueError(f"{where}: a row {size}; is a quote before here never closed?")
        return text

    def rows(self, size: int, delimiter: bytes) -> bytes | None:
        """Return whole rows of about `size` bytes, b"" at the end of the file; None where quotes or line ends are irregular."""
        self._pending = BytesIO(self._pending.read())
        while not self._is_over and (n := len(self._pending.getbuffer())) < size:
            self._read(size - n)
        while True:
            data = self._pending.getvalue()
            end = _end_of_rows(data, delimiter, is_over=self._is_over)
            if end or end is None or not data or len(data) > LONGEST_LINE:
                break
            self._read(size)
        rows = data[:end]
        is_bare = b"\r" in rows and rows.count(b"\r") != rows.count(b"\r\n")
        if end is None or (data and not end) or is_bare or rows.startswith(BYTE_ORDER_MARK):
            return None
        self._pending = BytesIO(data[end:])
        self.line += _n_lines(rows)
        return rows

    def put_back(self, data: bytes) -> None:
        """Undo the last call, which returned these bytes."""
        self._pending, self.row_length = BytesIO(data + self._pending.read()), 0
        self.line -= _n_lines(data)

    def _read(self, size: int) -> None:
        """Read more of the file behind what is pending."""
        raw, pending = self._file.read(size), self._pending.read()
        self.digest.update(raw)
        try:
            data = self._decoder.decode(raw, final=not raw).encode()
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode(self._encoding or "utf-8", "ignore").encode(errors="ignore")
            byte = error.object[error.start] if error.start < len(error.object) else 0
            guess = "latin-1" if set(error.object) & UNDEFINED_IN_CP1252 else "cp1252"
            remedy = f"give --encoding {guess} (a guess), or save it as UTF-8"
            what, remedy = ("UTF-8", remedy) if self._encoding is None else (short(self._encoding), "give another --encoding")
            raise self._error(f"the byte 0x{byte:02x}", pending + before, f", which is not {what}; {remedy}.") from error
        except UnicodeError as error:
            raise ValueError(f"{self.name} cannot be read as {short(self._encoding)}; give another --encoding.") from error
        data = pending + (data.removeprefix(BYTE_ORDER_MARK) if self._is_first else data)
        self._pending, self._is_first, self._is_over = BytesIO(data), False, not raw
        if (index := data.find(b"\0", len(pending))) >= 0:
            raise self._error("a NUL byte", data[:index], "; is it a CSV file?")

    def _error(self, what: str, before: bytes, remedy: str) -> ValueError:
        """Return the error of a byte that follows these pending ones; its line, and its place there, count from 1."""
        line, place = self.line + before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
        return ValueError(f"{self.name}, line {line} holds {what} at place {place}{remedy}")


def _n_lines(data: bytes) -> int:
    return data.count(b"\n") + (not data.endswith(b"\n") and bool(data))


def _end_of_rows(data: bytes, delimiter: bytes, *, is_over: bool) -> int | None:
    """Return how many bytes are whole rows; None where a quote is not at the start or the end of a field."""
    if b'"' not in data:
        return len(data) if is_over else data.rfind(b"\n") + 1
    array = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(array == QUOTE)
    opening, closing = quotes[::2], quotes[1::2]
    opening, closing = opening[opening > 0], closing[closing + 1 < len(array)]
    neighbors = np.frombuffer(delimiter + b'"\n\r', np.uint8)
    if not (np.isin(array[opening - 1], neighbors).all() and np.isin(array[closing + 1], neighbors).all()):
        return None
    if is_over:
        return len(data) if len(quotes) % 2 == 0 else None
    newlines = np.flatnonzero(array == NEWLINE)
    ends = newlines[np.searchsorted(quotes, newlines) % 2 == 0]
    return int(ends[-1]) + 1 if len(ends) else 0
