"""Tables of texts that something separates: CSV, from a stream of bytes.

    read_separated(stream, name, known, sep, keep) → Table

A header of different names, UTF-8 (a byte-order mark is allowed), and as many fields in each row as in the header, separated by
commas, semicolons or tabs, as the header is, or by what `sep` says; where that is no comma, one may stand for the decimal
point. It is read a block of rows at a time and never held as texts; lines, fields and rows have a longest length. What is wrong
with it is a ValueError of one line that names the file and the line. reading imports it.
"""

import csv
import hashlib
import io
from collections.abc import Iterator, Sequence
from typing import Any

from meristem.check import short
from meristem.tables.column import Gatherer
from meristem.tables.table import Known, Table, check_names, room_for

LONGEST_LINE = 16 * 2**20  # bytes, and characters of a row
BLOCK = 8192  # rows
DELIMITERS = ",;\t"
MARK = b"\xef\xbb\xbf"  # UTF-8's byte-order mark


def read_separated(stream: io.BufferedReader, name: str, known: Known | None, sep: str | None, keep: Sequence[str]) -> Table:
    """All of it; `name` is what errors call it."""
    digest = hashlib.sha256()
    lines = _lines(stream, name, digest)
    first = next(lines)
    delimiter = sep or max(DELIMITERS, key=first.count)  # of equals the first
    row = Row(name)
    reader = csv.reader(row.of(_again(first, lines)), delimiter=delimiter, strict=True)
    try:
        names = [one.strip() for one in next(reader)]
        check_names(name, names)
        kept = room_for(keep, names)
        gatherers = [Gatherer(one, (known or {}).get(one), commas=delimiter != ",") for one in names]
        for block in _blocks(reader, row, names):
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


class Row:
    """What has been read of a row: lines with open quotes are one, and may not be so without end."""

    def __init__(self, name: str):
        self.name, self.length = name, 0

    def of(self, lines: Iterator[str]) -> Iterator[str]:
        for number, line in enumerate(lines, 1):
            self.length += len(line)
            if self.length > LONGEST_LINE:
                most = f"{LONGEST_LINE >> 20} MiB"
                raise ValueError(
                    f"{self.name}, line {number}: a row is longer than {most}; is a quote before here never closed?"
                )
            yield line


def _blocks(reader: Any, begun: Row, names: list[str]) -> Iterator[list[list[str]]]:
    """Rows, as many fields in each as there are names; lines without anything are no rows."""
    block: list[list[str]] = []
    for row in reader:
        begun.length = 0
        if len(row) != len(names):
            if not row:
                continue
            what = f"{len(row)} field{'s' * (len(row) != 1)} where the header has {len(names)} columns"
            which = (
                f"column {short(names[len(row)])} and what follows is not there"
                if len(row) < len(names)
                else "there are too many"
            )
            raise ValueError(
                f"{begun.name}, line {reader.line_num} has {what}: {which}; mend the line, or put quotes around commas."
            )
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
