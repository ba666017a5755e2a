"""Data files that are damaged, forged or bombs: what they hold, or one line that names the file; no pickle, little memory.

Cases that once failed are in tests/cases/data and are replayed; damaging.py makes new ones.
"""

import gzip
import io
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

import damaging
import miniature
from meristem.data.dataset_files import read_npz
from meristem.data.mnist import read_idx
from meristem.tables.reading import _check_memory, read_table
from soak import many, parts, tell

MEMORY = 40e6  # bytes: far less than what is asked for


PARTS = parts(4)


@pytest.fixture(scope="module")
def damage(tmp_path_factory) -> damaging.Damage:
    return damaging.Damage(tmp_path_factory.mktemp("data"))


@pytest.mark.parametrize("part", PARTS)
def test_damaged_data_files_are_read_as_they_are_or_refused(part, tmp_path, monkeypatch):
    """10,000 of them in a soak; the smallest of those that fail are kept in tests/cases/data."""
    monkeypatch.chdir(tmp_path)
    damage, outcomes, tries = damaging.Damage(tmp_path, seed=part), [], many(125) // len(PARTS)
    for outcome in damage.outcomes(tries):
        outcomes.append(outcome._replace(data=b""))
        if outcome.result == "failed":
            damaging.keep(outcome)
    found = damaging.report(outcomes)
    tell(f"data files {part}", **found)
    assert found["failures"] == []
    assert sum(count for name, count in found["counts"].items() if name.endswith("reads")) > tries // 25
    assert all(found["counts"].get(f"{name} refused", 0) > tries // 40 for name in damage.sources)


@pytest.mark.parametrize(("source", "victim", "case"), damaging.kept(), ids=lambda part: getattr(part, "name", None))
def test_cases_that_once_failed(source, victim, case, damage):
    outcome = damage.outcome(source, victim, case.read_bytes())
    assert outcome.result != "failed", outcome.words


def refused(call, path, *said: str) -> None:
    """One line that names the file, in little memory."""
    tracemalloc.start()
    try:
        with pytest.raises(ValueError) as caught:
            call(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    text = str(caught.value)
    assert type(caught.value) is ValueError and "\n" not in text and len(text) <= 300, text
    assert str(path) in text and all(word in text for word in said), text
    assert peak < MEMORY


def packed_zeros(head: bytes, megabytes: int) -> bytes:
    """A gzip file of these bytes and zeros: a thousandth of what it holds."""
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as file:
        file.write(head)
        for _ in range(megabytes):
            file.write(bytes(2**20))
    return out.getvalue()


@pytest.mark.parametrize("sizes", [(2**31, 2**31, 2**31), (2**32 - 1,) * 3, (2**31 - 1, 1, 1), (10, 28, 28), (1, 1, 1)])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_an_idx_header_that_overflows_and_a_bomb_take_little_memory(sizes, suffix, tmp_path):
    head = b"\x00\x00\x08\x03" + struct.pack(">3I", *sizes)
    path = tmp_path / f"images{suffix}"
    path.write_bytes(packed_zeros(head, 100) if suffix else head + bytes(100))
    refused(read_idx, path, "but its header says")


def test_a_packed_table_of_zeros_takes_little_memory(tmp_path):
    path = tmp_path / "table.csv.gz"
    path.write_bytes(packed_zeros(b"a,b\n1,2\n", 100))
    refused(read_table, path, "line 3")


def test_a_table_of_a_million_columns_is_looked_at_once(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(",".join(f"{number:x}" for number in range(200_000)).encode() + b",0\n")
    refused(read_table, path, "columns 1 and 200001 are both called '0'")


@pytest.mark.parametrize("shape", [(2**31, 2**31), (2**33,), (10**9, 3)])
@pytest.mark.parametrize("bomb", [False, True])
def test_an_array_that_says_more_than_it_holds_takes_little_memory(shape, bomb, tmp_path):
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": "<f8", "fortran_order": False, "shape": shape})
    path = tmp_path / "own.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("X.npy", out.getvalue() + bytes(30_000_000 if bomb else 10))
    refused(lambda place: read_npz(place, ["X"]), path, "X cannot be read (its header says")


def test_a_zip_that_says_more_than_it_can_unpack_to(tmp_path):
    """The sizes in the archive are forged, and agree with the array's header."""
    path = miniature.multilabel(tmp_path / "own.npz")
    out, header = io.BytesIO(), io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**8,)})
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("X.npy", header.getvalue())
    size = struct.pack("<I", len(header.getvalue()))
    path.write_bytes(out.getvalue().replace(size, struct.pack("<I", len(header.getvalue()) + 8 * 10**8)))
    refused(lambda place: read_npz(place, ["X"]), path, "X cannot be read (its header says")


def test_a_parquet_file_of_more_rows_than_memory_is_refused():
    """A few bytes of it can stand for any number of rows."""
    refused(
        lambda name: _check_memory(name, 10**12, 50), "'rows.parquet'", "1,000,000,000,000 rows of 50 columns", "give fewer"
    )
