"""The bytes of a table: blocks, quotes, encodings, spaces; a file that changes while it is read; equal to a plain reader's."""

import builtins
import csv
import gzip
import io
import random
import sys
from types import SimpleNamespace

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from meristem.inputs.schema import MISSING, UNSEEN
from meristem.tables import csv_reader, frames
from meristem.tables.reading import as_table, read_table
from meristem.tables.table_columns import IS_TEXT, kind_of, number_of
from one_column import column_of


def refused(call, *words):
    with pytest.raises(ValueError) as caught:
        call()
    text = str(caught.value)
    assert type(caught.value) is ValueError and "\n" not in text and all(word in text for word in words), text


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of a few rows, so that short files have many."""
    monkeypatch.setattr(csv_reader, "LEAST_BYTES", 64)
    monkeypatch.setattr(csv_reader, "BYTES_PER_COLUMN", 1)
    monkeypatch.setattr(csv_reader, "BLOCK", 3)
    monkeypatch.setattr(csv_reader, "READ", 40)


FIELDS = [
    "",
    " ",
    "a",
    "NA",
    " b ",
    "c  ",
    '"',
    'x"y',
    "line\nend",
    "line\r\nend",
    "1",
    " 2.5",
    "3e2 ",
    "é",
    "\ufeff",
    ",",
    ";",
    "'",
]


def test_blocks_hold_what_the_csv_module_finds(tmp_path, small_blocks):
    """Quotes, line ends within them and marks at any place of a block; both ways of reading take turns."""
    for seed in range(60):
        chance = random.Random(seed)
        rows = [[chance.choice(FIELDS) for _ in range(3)] for _ in range(40)]
        out = io.StringIO()
        quoting = chance.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
        csv.writer(out, quoting=quoting, lineterminator=chance.choice(["\n", "\r\n"])).writerows([["p", "q", "r"], *rows])
        text = out.getvalue()
        if chance.random() < 0.5:  # quotes within fields that are none, which are for the csv module
            text += '1,5" pipe,z\n\n7, "8",9\n'
        (tmp_path / "table.csv").write_bytes(text.encode())
        expected = list(csv.reader(io.StringIO(text, newline="")))[1:]
        table = read_table(tmp_path / "table.csv", keep=["p", "q,r"])
        assert [table.texts[name] for name in "pqr"] == [[row[k] for row in expected if row] for k in range(3)]
        again = read_table(tmp_path / "table.csv")
        for place, name in enumerate("pqr"):
            plain = column_of(name, [row[place] for row in expected if row])
            for column in (table[name], again[name]):
                assert column.as_codes(plain.texts).tolist() == plain.as_codes(plain.texts).tolist()


def test_numbers_are_those_of_python(tmp_path):
    chance = np.random.default_rng(0)
    texts = [repr(float(value)) for value in chance.integers(0, 2**64 - 1, 3000, dtype=np.uint64).view(np.float64)]
    texts += [
        "1.",
        ".5",
        "+1",
        "1E5",
        "-0",
        "00012",
        "4.9e-324",
        "1e-400",
        "123456789012345678901234567890.123456789",
        " 7",
        "",
    ]
    texts = [text for text in texts if text not in ("inf", "-inf")]
    for further in ([], ["inf"], ["1e999"], ["nan(x)"], ["1_0"], ["٣"], ["2020-01-02"]):
        (tmp_path / "table.csv").write_text("x,y\n" + "".join(f"{text},1\n" for text in [*texts, *further]))
        column = read_table(tmp_path / "table.csv")["x"]
        expected = [
            float(text) if text not in ("", "nan", "inf", "1e999", "nan(x)", "1_0", "2020-01-02") else np.nan
            for text in [*texts, *further]
        ]
        assert column.codes is None
        np.testing.assert_array_equal(column.as_numbers(), expected)
        assert (column.kinds == IS_TEXT).sum() == len(set(further) & {"inf", "1e999", "nan(x)", "1_0"})


def test_errors_name_their_line_in_any_block(tmp_path, small_blocks, monkeypatch):
    lines = ["a,b", *(f'{n},"x ""y""\nz"' for n in range(50))]
    for wrong, words in (
        ("1", "has 1 field where"),
        ('1,"2"3', "a quote is closed within"),
        ("1,\0", "holds a NUL byte at place 3"),
    ):
        text = "\n".join([*lines, wrong, *lines[1:], ""])
        (tmp_path / "table.csv").write_text(text)
        refused(lambda: read_table(tmp_path / "table.csv"), "line 102", words)
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
        refused(lambda: read_table("-"), "standard input, line 102", words)
    (tmp_path / "table.csv").write_bytes("\n".join([*lines, "1,2"]).encode() + b"\xe9\n")
    refused(lambda: read_table(tmp_path / "table.csv"), "line 102", "byte 0xe9 at place 4")


def test_a_separator_beyond_ascii(tmp_path):
    (tmp_path / "table.csv").write_text("a§b\n1§2,5\n")
    table = read_table(tmp_path / "table.csv", sep="§")
    assert table["b"].as_numbers().tolist() == [2.5] and table.sep == "§"


# ---- encodings


def test_encodings(tmp_path):
    path, text = tmp_path / "table.csv", "größe;stadt\n1,5;Köln\n2,5;Łódź\n"
    for encoding in ("utf-8", "UTF8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "cp1250", "iso8859_2"):
        for content in (text.encode(encoding), gzip.compress(text.encode(encoding))):
            path.write_bytes(content)
            table = as_table(path, encoding=encoding)
            assert table["stadt"].texts == ("Köln", "Łódź") and table["größe"].as_numbers().tolist() == [1.5, 2.5]
            assert (table.sep, table.encoding) == (";", encoding)
    path.write_text(text)
    assert (read_table(path).sep, read_table(path).encoding) == (";", "utf-8")
    for name in ("klingon", "base64", "", "a\0b"):
        refused(lambda name=name: read_table(path, encoding=name), "encoding=", "is not known; give one of Python's")


def test_bytes_of_another_encoding_are_named_with_a_guess(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes("a,b\n1,é\n".encode("cp1252"))
    refused(
        lambda: read_table(path),
        "line 2 holds the byte 0xe9 at place 3, which is not UTF-8; give --encoding cp1252 (a guess), or",
    )
    path.write_bytes(b"a,b\n1,\x81\n")
    refused(lambda: read_table(path), "give --encoding latin-1 (a guess), or save it as UTF-8.")
    refused(
        lambda: read_table(path, encoding="cp1252"),
        "line 2 holds the byte 0x81 at place 3, which is not 'cp1252'; give another",
    )
    refused(lambda: read_table(path, encoding="ascii"), "line 2 holds the byte 0x81 at place 3")
    path.write_bytes("a,b\n1,2\n".encode("utf-16"))
    refused(lambda: read_table(path), "is encoded in UTF-16; give --encoding utf-16, or save it as UTF-8.")
    path.write_bytes("a,b\n1,2\n".encode("utf-16-le")[:-1])
    refused(lambda: read_table(path, encoding="utf-16-le"), "line 2")


# ---- texts


def test_one_space_on_either_side_is_ignored_and_no_more(tmp_path):
    (tmp_path / "table.csv").write_text(
        "x,y\n" + "".join(f"{text},1\n" for text in ("a", " a", "a ", "a  ", "\ta", " NA ", "   "))
    )
    for column in (read_table(tmp_path / "table.csv")["x"], column_of("x", ["a", " a", "a ", "a  ", "\ta", " NA ", "   "])):
        assert column.texts == ("a", "a  ", "\ta") and column.n_missing == 2
        assert column.as_codes(["a"]).tolist() == [0, 0, 0, UNSEEN, UNSEEN, MISSING, MISSING]


def test_whitespace_is_neither_number_nor_text(tmp_path):
    for n in (30, 3000):
        column = column_of("x", [*(f"  {value}\t" for value in range(n)), "\t", " " * 70, ""])
        assert kind_of(column).why == "numbers, 3 missing" and kind_of(column).kind == "number"


def test_texts_among_too_many_are_not_missing():
    column = column_of("x", [*map(str, range(2000)), "what", "", "2020-01-01", "7"])
    assert column.as_codes(["7"])[-4:].tolist() == [UNSEEN, MISSING, UNSEEN, 0]
    assert (column.kinds == IS_TEXT).sum() == 1 and column.n_missing == 1 and column.example == "what"


def test_decimal_commas_of_many_rows_are_those_of_a_few(tmp_path):
    texts = [f"{n // 7 % 900}.{n % 1000:03},{n % 89}" for n in range(7000, 12_000)] + ["-3,5", " 2,25 ", "4.5", "NA", "", "1e3"]
    (tmp_path / "table.csv").write_text("x;y\n" + "".join(f"{text};1\n" for text in texts))
    column = read_table(tmp_path / "table.csv")["x"]
    assert column.codes is None and column.has_commas and (column.kinds == IS_TEXT).sum() == 0 and column.n_missing == 2
    np.testing.assert_array_equal(column.as_numbers(), [number_of(text, commas=True) for text in texts])


# ---- a file that changes


def changing(monkeypatch, path, change):
    """Make `change` happen to a file while it is read: after the first block."""
    original, calls = csv_reader.csv_arrays, []

    def call(*args, **how):
        if not calls:
            change(path)
        calls.append(args)
        return original(*args, **how)

    monkeypatch.setattr(csv_reader, "csv_arrays", call)


def cut_short(path):
    with path.open("r+b") as file:
        file.truncate(2_000_000)


def append(path):
    with path.open("ab") as file:
        file.write(b"1,2\n" * 10)


@pytest.mark.parametrize("change", [cut_short, append, lambda path: path.write_bytes(b"9" * path.stat().st_size)])
@pytest.mark.parametrize("is_packed", [False, True])
def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch, change, is_packed):
    path = tmp_path / "table.csv"
    data = b"a,b\n" + b"".join(b"%d,%d\n" % (n, n % 7) for n in range(600_000))
    path.write_bytes(gzip.compress(data, 0) if is_packed else data)
    changing(monkeypatch, path, change)
    refused(lambda: read_table(path), f"{str(path)!r} changed while it was read; wait until it is written, or give a copy.")
    path.unlink()
    path.write_bytes(gzip.compress(data, 0) if is_packed else data)
    monkeypatch.undo()
    changing(monkeypatch, path, lambda path: path.unlink())  # what was opened is still whole
    assert read_table(path).rows == 600_000


@pytest.mark.parametrize("change", [cut_short, append])
def test_a_parquet_file_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch, change):
    path = tmp_path / "table.parquet"
    parquet.write_table(pyarrow.table({"a": np.random.default_rng(0).random(400_000)}), path)
    original = frames.ColumnBuilder

    def call(*args):
        change(path)
        return original(*args)

    monkeypatch.setattr(frames, "ColumnBuilder", call)
    refused(lambda: read_table(path), f"{str(path)!r} changed while it was read; wait")


def test_without_pyarrow_it_is_said_how_to_install_it(tmp_path, monkeypatch):
    (tmp_path / "table.csv").write_text("a\n1\n")
    original = builtins.__import__

    def call(name, *args, **how):
        if name.partition(".")[0] == "pyarrow":
            raise ImportError(name)
        return original(name, *args, **how)

    monkeypatch.setattr(builtins, "__import__", call)
    for table in (tmp_path / "table.csv", {"a": ["x", "y"], "b": [1, None]}):
        with pytest.raises(ImportError, match=r"^Tables need pyarrow; install it with `pip install 'meristem-nn\[tables\]'`.$"):
            as_table(table)
