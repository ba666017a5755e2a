"""The bytes of a CSV file as UTF-8, in whole rows, each byte counted and digested.

    stream = ByteStream(file, "'people.csv'", encoding=None)
    stream.readline() → the next line, of bytes                 stream.rows(size, b",") → the next rows; None: not regular
    stream.line → lines read so far                             stream.digest → SHA-256 of what the file holds, unpacked

Rows end at a line end outside of quotes. Quotes are regular where each opens at the begin of a field or closes at its end:
then those before a line end are an even number exactly where it ends a row, and NumPy finds it without a parser. Rows that are
not regular, or hold a carriage return inside, are for a slower reader (separated.py), which takes lines. Here is refused: a NUL
byte, a byte that the encoding has not, a line that is longer than memory should hold.
"""

import codecs
import hashlib
import io

import numpy as np

from meristem.check import short

LONGEST_LINE = 16 * 2**20  # bytes, and characters of a row
READ = 2**20  # bytes at a time
MARK = b"\xef\xbb\xbf"  # UTF-8's byte-order mark
QUOTE, NEWLINE, RETURN = b'"\n\r'


class ByteStream:
    """What is still to be read of a file, from `_begin` of `_pending` on.

    >>> stream = ByteStream(io.BufferedReader(io.BytesIO(b'a,b\\n1,"x\\ny"\\n2')), "'x.csv'")
    >>> stream.readline(), stream.rows(100, b","), stream.line, stream.n_bytes
    (b'a,b\\n', b'1,"x\\ny"\\n2', 4, 13)
    """

    def __init__(self, file: io.BufferedReader, name: str, encoding: str | None = None):
        self.name, self.line, self.n_bytes, self.digest = name, 0, 0, hashlib.sha256()
        self._file, self._pending, self._begin, self._is_over = file, b"", 0, False
        self._encoding = encoding
        self._decoder = None if encoding is None or is_utf8(encoding) else codecs.getincrementaldecoder(encoding)()

    def readline(self) -> bytes:
        """Return a line with its end, b"" at the end of the file; raise ValueError where it is too long."""
        searched = self._begin
        while (end := self._pending.find(b"\n", searched) + 1) == 0:
            if self._is_over:
                end = len(self._pending)
                break
            if len(self._pending) - self._begin > LONGEST_LINE:
                break
            searched = len(self._pending) - self._begin
            self._more()
        end = end or len(self._pending)
        if end - self._begin > LONGEST_LINE:
            raise ValueError(
                f"{self.name}, line {self.line + 1} is longer than {LONGEST_LINE >> 20} MiB; that is no line of a table."
            )
        line, self._begin = self._pending[self._begin : end], end
        self.line += bool(line)
        return line

    def rows(self, size: int, delimiter: bytes) -> bytes | None:
        """Return whole rows of about `size` bytes, b"" at the end of the file; None where they are not regular."""
        while not self._is_over and (n := len(self._pending) - self._begin) < size:
            self._more(size - n)
        while True:
            data = self._pending[self._begin :]
            end = _end_of_rows(data, delimiter, is_over=self._is_over)
            if end is None or (not end and len(data) > LONGEST_LINE):
                return None
            if end or not data:
                break
            self._more(size)
        rest, data = data[end:], data[:end]
        if data.startswith(MARK) or (b"\r" in data and data.count(b"\r") != data.count(b"\r\n")):
            return None
        self._pending, self._begin = rest, 0
        self.line += data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
        return data

    def put_back(self, data: bytes) -> None:
        """Read these bytes, the last that `rows` gave, once more."""
        self._pending, self._begin = data + self._pending[self._begin :], 0
        self.line -= data.count(b"\n") + (not data.endswith(b"\n"))

    def _more(self, size: int = READ) -> None:
        """Read on; `_pending` then begins with what was not taken."""
        raw = self._file.read(size)
        is_first, self._is_over = not self.n_bytes, not raw
        self.n_bytes += len(raw)
        self.digest.update(raw)
        pending = self._pending[self._begin :]
        data = raw if self._decoder is None else self._decoded(raw, pending)
        data = data.removeprefix(MARK) if is_first else data
        self._pending, self._begin = pending + data, 0
        if (index := self._pending.find(b"\0", len(pending))) >= 0:
            line, place = self._place(self._pending[:index])
            raise ValueError(f"{self.name}, line {line} holds a NUL byte at place {place}; is it a CSV file?")

    def _decoded(self, raw: bytes, pending: bytes) -> bytes:
        """UTF-8 of bytes in another encoding, which come after what is pending."""
        assert self._decoder is not None
        try:
            return self._decoder.decode(raw, final=not raw).encode()
        except UnicodeDecodeError as error:
            byte = error.object[error.start] if error.start < len(error.object) else 0
            before = error.object[: error.start].decode(self._encoding or "", "ignore").encode(errors="ignore")
            line, place = self._place(pending + before)
            wrong = f"{self.name}, line {line} holds the byte 0x{byte:02x} at place {place}"
            raise ValueError(f"{wrong}, which is not {short(self._encoding)}; give another --encoding.") from error
        except UnicodeError as error:
            raise ValueError(f"{self.name} cannot be read as {short(self._encoding)}; give another --encoding.") from error

    def _place(self, before: bytes) -> tuple[int, int]:
        """Line, and place in it, of what follows these bytes that are not taken yet; both count from 1."""
        return self.line + before.count(b"\n") + 1, len(before) - (before.rfind(b"\n") + 1) + 1


def is_utf8(encoding: str) -> bool:
    """Return whether an encoding is UTF-8 by another name; raise ValueError where there is none of this name.

    >>> is_utf8("UTF8"), is_utf8("latin-1")
    (True, False)
    >>> is_utf8("klingon")
    Traceback (most recent call last):
    ValueError: encoding='klingon' is not known; give one of Python's, such as utf-8, utf-16, cp1252 or shift_jis.
    """
    try:
        name = codecs.lookup(encoding).name
        "a".encode(encoding)
    except (LookupError, ValueError, TypeError):
        raise ValueError(
            f"encoding={short(encoding)} is not known; give one of Python's, such as utf-8, utf-16, cp1252 or shift_jis."
        ) from None
    return name in ("utf-8", "utf-8-sig")


def _end_of_rows(data: bytes, delimiter: bytes, *, is_over: bool) -> int | None:
    """How many bytes are whole rows; None where a quote is not at the begin or the end of a field.

    >>> _end_of_rows(b'1,"a""b"\\n2,"c\\n', b",", is_over=False), _end_of_rows(b'1,5" pipe\\n', b",", is_over=False)
    (9, None)
    """
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
