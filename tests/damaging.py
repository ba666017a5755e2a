"""Damaged and forged data files, and what the loaders make of them: the data that they hold, or one line that refuses them.

    damage = Damage(folder, seed=0)
    for outcome in damage.outcomes(tries):      Outcome("images", "train-labels-idx1-ubyte.gz", "refused", "…", b"…")
        …

Sources are all that meristem reads as data: images in IDX files, packed and plain; MIRFLICKR's archive and its tags; an .npz
file of one's own; tables as CSV, gzipped CSV and Parquet. One of the files gets up to three changes: bytes flipped, cut,
doubled, mixed with another file's; or, below its packing and with right checksums, a header that says another size, type or
shape, a pickle, NUL bytes, quotes, a long field. Each outcome is one of

    reads       what a plain reader (struct, numpy.load, csv, pyarrow) finds in the same bytes, and nothing else
    refused     a ValueError of one line, of at most 300 characters, that names the file
    failed      anything else: a bug. `smallest` leaves out the changes that it does not need; `keep` writes it to tests/cases,
                which the suite replays

Of pytest it uses nothing: a soak may call it.
"""

import ast
import csv
import gzip
import io
import os
import pickle
import random
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import miniature
from forging import CASES, LONGEST, damaged
from meristem.data.mirflickr import mirflickr
from meristem.data.mnist import read_images
from meristem.data.parts import multilabel
from meristem.tables.reading import read_table

CANARY = "unpickled"  # a file of this name in the working folder: a pickle was opened
SIZES = [0, 1, 2, 5, 6, 59, 61, 255, 2**16, 2**31 - 1, 2**31, 2**32 - 1]
SHAPES = [(), (0,), (-1,), (2**31, 2**31), (2**63,), (2**62, 4), (10**30,), (250, 1), (1, 250), (3,), (2**33,), (0, 2**60)]
TYPES = ["|O", "<U1000000000", "<f8", ">f4", "<f2", "|V8", "<i8", "|b1", "<M8[D]", "<c8", "|S0", "nonsense", "<f4,<f4"]
CSV_PIECES = [
    b"\0",
    b'"',
    b"\n",
    b"\r",
    b",",
    b";",
    b"\xff",
    b"\xef\xbb\xbf",
    b"x" * 200_000,
    b"y" * 100_000,
    b"," * 5000,
    b"nan",
    b"1e999",
]


# What is changed already may hold no header to change, and no content to unpack.
NOTHING_THERE = (
    ValueError,
    TypeError,
    LookupError,
    SyntaxError,
    OSError,
    EOFError,
    RuntimeError,
    struct.error,
    zlib.error,
    zipfile.BadZipFile,
)


class Evil:
    """What a pickle could do."""

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (CANARY, "w")


class Outcome(NamedTuple):
    """Of one file."""

    source: str
    victim: str  # the file that was changed
    result: str  # reads, refused or failed
    words: str
    data: bytes  # the file as it was changed


class Change(NamedTuple):
    """One thing that is done to a file; the same chance does the same again."""

    apply: Callable[[random.Random, bytes, bytes], bytes]  # of the file and of another
    seed: int


class Source(NamedTuple):
    """Files that belong together: what meristem reads of their folder, and the same files written anew by a plain reader."""

    files: dict[str, bytes]
    read: Callable[[Path], Any]
    plain: Callable[[str, bytes], bytes]
    changes: list[Callable[[random.Random, bytes, bytes], bytes]]  # besides damage


# Real files -----------------------------------------------------------------------------------------------------------------


def sources(folder: Path) -> dict[str, Source]:
    """A small one of each kind."""
    packed = _files(miniature.images(folder / "images", (60, 12), (4, 3), 3))
    own = _files(miniature.multilabel(folder / "own.npz", 40, 3, 2).parent, "own.npz")
    table = _table(np.random.default_rng(0))
    found = {
        "images": Source(packed, _images, _plain_packed_idx, [_below_gzip(idx_is_forged)]),
        "plain-images": Source(
            {name.removesuffix(".gz"): gzip.decompress(data) for name, data in packed.items()},
            _images,
            _plain_idx,
            [idx_is_forged],
        ),
        "archive": Source(_archive_files(miniature.archive(folder / "archive", 50, 3)), _archive, _plain_npy, [npy_is_forged]),
        "tags": Source(_files(miniature.tags(folder / "tags", 30, 6)), _tags, _plain_npz, [npz_is_forged]),
        "own": Source(own, lambda place: multilabel(place / "own.npz"), _plain_npz, [npz_is_forged]),
        "csv": Source({"table.csv": table}, _read_csv, _plain_table, [text_is_forged]),
        "csv.gz": Source(
            {"table.csv": gzip.compress(table, mtime=0)},
            _read_csv,
            _plain_table,
            [_below_gzip(text_is_forged)],
        ),
    }
    found["parquet"] = Source({"table.csv": _parquet(table)}, _read_csv, _plain_table, [])
    return found


def _files(folder: Path, *names: str) -> dict[str, bytes]:
    paths = [folder / name for name in names] or [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def _archive_files(folder: Path) -> dict[str, bytes]:
    """Of the splits the one that is read."""
    return {name: data for name, data in _files(folder).items() if "splits" not in name or name.endswith("_1.npy")}


def _table(chance: np.random.Generator) -> bytes:
    rows = [
        f"{k % 4},{value:.3f},{['elm', 'oak', 'ash'][k % 3]},2020-01-{1 + k % 28:02}"
        for k, value in enumerate(chance.random(60))
    ]
    return "\n".join(["size,share,tree,day", *rows, ""]).encode()


def _parquet(table: bytes) -> bytes:
    import pyarrow
    from pyarrow import parquet

    header, *rows = csv.reader(table.decode().splitlines())
    out, columns = io.BytesIO(), dict(zip(header, zip(*rows, strict=True), strict=True))
    typed = columns | {"size": [int(one) for one in columns["size"]], "share": [float(one) for one in columns["share"]]}
    parquet.write_table(pyarrow.table(typed), out)
    return out.getvalue()


def _images(place: Path) -> Any:
    found = read_images(place)
    return [*found.train, *found.test]


def _archive(place: Path) -> Any:
    return mirflickr("38", folder=place)


def _tags(place: Path) -> Any:
    return mirflickr("24", "tags", place)


def _read_csv(place: Path) -> Any:
    table = read_table(place / "table.csv")
    return [(one.name, one.rows, one.texts, one.codes, one.as_numbers(), one.as_days()) for one in table.columns.values()]


# Plain readers --------------------------------------------------------------------------------------------------------------


def _plain_idx(name: str, data: bytes) -> bytes:
    shape = struct.unpack_from(f">{data[3]}i", data, 4)
    values = np.frombuffer(data, np.uint8, int(np.prod(shape)), 4 + 4 * data[3])
    return miniature.idx(values.reshape(shape))


def _plain_packed_idx(name: str, data: bytes) -> bytes:
    return gzip.compress(_plain_idx(name, gzip.decompress(data)))


def _plain_npy(name: str, data: bytes) -> bytes:
    out = io.BytesIO()
    np.save(out, np.load(io.BytesIO(data), allow_pickle=False))
    return out.getvalue()


def _plain_npz(name: str, data: bytes) -> bytes:
    out = io.BytesIO()
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        np.savez(
            out, **{key: file[key] for key in ("X", "Y", "X_train", "Y_train", "X_test", "Y_test", "labels") if key in file}
        )
    return out.getvalue()


def _plain_csv(data: bytes) -> bytes:
    text = data.decode("utf-8-sig")
    mark = max(",;\t", key=text.partition("\n")[0].count)
    out = io.StringIO()
    csv.writer(out).writerows(row for row in csv.reader(io.StringIO(text, newline=""), delimiter=mark) if row)
    return out.getvalue().encode()


def _plain_table(name: str, data: bytes) -> bytes:
    """Whatever its first bytes say that it is."""
    if data[:4] == b"PAR1":
        return _plain_parquet(data)
    return _plain_csv(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)


def _plain_parquet(data: bytes) -> bytes:
    import pyarrow
    from pyarrow import parquet

    out = io.BytesIO()
    parquet.write_table(parquet.read_table(pyarrow.BufferReader(data)), out)
    return out.getvalue()


# What is done to them -------------------------------------------------------------------------------------------------------


def idx_is_forged(chance: random.Random, data: bytes, other: bytes) -> bytes:
    """Another size, rank or type in the header; now and then a bomb of zeros."""
    forged = bytearray(data)
    if chance.random() < 0.2 or len(data) < 8:
        forged[2:4] = bytes([chance.choice([8, 9, 13, 0]), chance.choice([0, 1, 2, 3, 4, 255])])
        return bytes(forged)
    for _ in range(chance.choice([1, 1, 3])):
        place = 4 + 4 * chance.randrange(max(1, min(data[3], 3)))
        forged[place : place + 4] = struct.pack(">I", chance.choice(SIZES))
    return bytes(forged) + bytes(2 * 10**6 if chance.random() < 0.1 else 0)


def npy_is_forged(chance: random.Random, data: bytes, other: bytes) -> bytes:
    """A header that says another shape, type or order, or text that is none; or a pickle."""
    if data[:6] != b"\x93NUMPY" or chance.random() < 0.1:
        return pickle.dumps(Evil())
    length = int.from_bytes(data[8:10], "little")
    about, values = ast.literal_eval(data[10 : 10 + length].decode("latin-1")), data[10 + length :]
    way = chance.randrange(5)
    if way == 0:
        about["shape"] = chance.choice(SHAPES)
    elif way == 1:
        about["descr"] = chance.choice(TYPES)
        values = pickle.dumps([Evil()]) if about["descr"] == "|O" else values
    elif way == 2:
        about["fortran_order"] = chance.choice([True, 2, "no"])
    elif way == 3:
        about["shape"] = tuple(chance.choice([size, size - 1, 2 * size, 0]) for size in about["shape"])
    text = (
        repr(about) if way < 4 else chance.choice(["{}", "{" * 300, "__import__('os')", "[" * 5000, "'a'", "{'descr': '|O'}"])
    )
    header = text.encode("latin-1") + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + values


def npz_is_forged(chance: random.Random, data: bytes, other: bytes) -> bytes:
    """One of its arrays is, with a right checksum, packed or not; or it has another name, or none."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        members = {name: file.read(name) for name in file.namelist()}
    victim = chance.choice([*members])
    way = chance.randrange(6)
    if way == 0:
        members[chance.choice(["X", "labels.npy", "../../evil.npy", "x" * 500])] = members.pop(victim)
    else:
        members[victim] = npy_is_forged(chance, members[victim], other) + bytes(2 * 10**6 if way == 1 else 0)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", chance.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return out.getvalue()


def text_is_forged(chance: random.Random, data: bytes, other: bytes) -> bytes:
    """A piece somewhere that a table may not or may hold; at a field's place as often as anywhere."""
    places = [0, *(place + 1 for place, byte in enumerate(data) if byte in b",\n"), len(data)]
    place = chance.choice(places) if chance.random() < 0.5 else chance.randrange(len(data) + 1)
    return data[:place] + chance.choice(CSV_PIECES) + data[place:]


def _below_gzip(change: Callable[[random.Random, bytes, bytes], bytes]) -> Callable[[random.Random, bytes, bytes], bytes]:
    """The same with what is packed, and packed again."""

    def apply(chance: random.Random, data: bytes, other: bytes) -> bytes:
        return gzip.compress(change(chance, gzip.decompress(data), other), 1, mtime=0)

    return apply


# What becomes of them -------------------------------------------------------------------------------------------------------


class Damage:
    """Makes files in a folder and tells what became of each."""

    def __init__(self, folder: Path, *, seed: int = 0):
        self.chance, self.sources = random.Random(seed), sources(folder / "whole")
        self.place, self.again = folder / "damaged", folder / "again"
        for name, source in self.sources.items():
            for victim, data in source.files.items():
                for top in (self.place, self.again):
                    _write(top / name / victim, data)

    def outcomes(self, tries: int) -> Iterator[Outcome]:
        """So many files, of all sources in turn."""
        names = [*self.sources]
        for number in range(tries):
            source = self.sources[name := names[number % len(names)]]
            victim = self.chance.choice([*source.files])
            other = self.chance.choice([*source.files.values(), *self.sources[self.chance.choice(names)].files.values()])
            ways = [damaged, *source.changes * 2]
            changes = [
                Change(self.chance.choice(ways), self.chance.randrange(2**32))
                for _ in range(self.chance.choice([1, 1, 1, 2, 3]))
            ]
            outcome = self.changed(name, victim, changes, other)
            yield outcome if outcome.result != "failed" else self.smallest(name, victim, changes, other, outcome)

    def changed(self, name: str, victim: str, changes: Iterable[Change], other: bytes) -> Outcome:
        """What becomes of a file after these changes."""
        data = self.sources[name].files[victim]
        for change in changes:
            with suppress(*NOTHING_THERE):
                data = change.apply(random.Random(change.seed), data, other)
        return self.outcome(name, victim, data)

    def outcome(self, name: str, victim: str, data: bytes) -> Outcome:
        """What becomes of this file among the others, which are whole."""
        source, place = self.sources[name], self.place / name
        _write(place / victim, data)
        try:
            return Outcome(name, victim, *self._result(source, name, victim, data), data)
        finally:
            _write(place / victim, source.files[victim])

    def _result(self, source: Source, name: str, victim: str, data: bytes) -> tuple[str, str]:
        place = self.place / name
        try:
            with np.errstate(all="ignore"):
                found = source.read(place)
        except ValueError as error:
            text = str(error)
            is_fine = type(error) is ValueError and "\n" not in text and len(text) <= LONGEST and str(place) in text
            return ("refused", text) if is_fine else ("failed", f"{type(error).__name__}: {text}")
        except Exception as error:
            return "failed", f"{type(error).__name__}: {error}"
        finally:
            if os.path.exists(CANARY):
                os.unlink(CANARY)
                raise AssertionError(f"{name}: {victim} was unpickled")
        try:
            _write(self.again / name / victim, source.plain(victim, data))
            with np.errstate(all="ignore"):
                wanted = source.read(self.again / name)
        except Exception as error:
            return "failed", f"no plain reader reads it: {type(error).__name__}: {error}"
        finally:
            _write(self.again / name / victim, source.files[victim])
        return ("reads", "") if alike(found, wanted) else ("failed", "it is not what a plain reader finds")

    def smallest(self, name: str, victim: str, changes: list[Change], other: bytes, found: Outcome) -> Outcome:
        """The same failure with as few changes as can be."""
        for change in list(changes):
            fewer = [one for one in changes if one is not change]
            outcome = self.changed(name, victim, fewer, other) if fewer else found
            if fewer and outcome.result == "failed":
                changes, found = fewer, outcome
        return found


def alike(one: Any, other: Any) -> bool:
    """The same values and types, NaN for NaN."""
    if isinstance(one, np.ndarray):
        is_number = one.dtype.kind in "fc"
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=is_number)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(alike, one, other))
    return bool(one == other)


def _write(path: Path, data: bytes) -> None:
    """A new file: the old one may still lie in memory."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_bytes(data)


def report(outcomes: Iterable[Outcome]) -> dict[str, Any]:
    """Counts by source and result, and what failed.

    >>> report([Outcome("csv", "table.csv", "refused", "…", b"")])["counts"]
    {'csv refused': 1}
    """
    found = list(outcomes)
    counts = Counter(f"{outcome.source} {outcome.result}" for outcome in found)
    failures = sorted({(outcome.source, outcome.words[:200]) for outcome in found if outcome.result == "failed"})
    return {"files": len(found), "counts": dict(sorted(counts.items())), "failures": [list(one) for one in failures]}


def keep(outcome: Outcome) -> Path:
    """A failing file among the cases that the suite replays: its name says whose place it takes."""
    place = CASES / "data" / outcome.source / sha256(outcome.data).hexdigest()[:8] / outcome.victim
    _write(place, outcome.data)
    return place


def kept() -> list[tuple[str, str, Path]]:
    """Source, victim and file of every case."""
    top = CASES / "data"
    found = [(path.relative_to(top).parts, path) for path in sorted(top.rglob("*")) if path.is_file()]
    return [(parts[0], "/".join(parts[2:]), path) for parts, path in found]
