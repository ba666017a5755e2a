"""Tables from files: what is read, in how much memory, and one clear line for everything that is no table."""

import gzip
import io
import sys
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pandas
import pyarrow
import pytest

from meristem.inputs.schema import MISSING, MOST_TEXTS, UNSEEN
from meristem.tables.column_builder import ColumnBuilder
from meristem.tables.csv_reader import LONGEST_LINE
from meristem.tables.reading import read_table, table_of
from meristem.tables.table_columns import IS_TEXT, kind_of
from one_column import column_of

PEOPLE = 'name,age,joined,height\nAda,36,2020-01-02,1.7\nGrace, NA,2021-03-04T12:00,\n\n"Hopper, G.",47,,1.6\n'


@pytest.fixture
def written(tmp_path):
    def write(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def check_people(table):
    assert table.rows == 3 and list(table.columns) == ["name", "age", "joined", "height"]
    assert table["name"].texts == ("Ada", "Grace", "Hopper, G.")
    np.testing.assert_array_equal(table["age"].as_numbers(), [36, np.nan, 47])
    np.testing.assert_array_equal(table["height"].as_numbers(), [1.7, np.nan, 1.6])
    np.testing.assert_array_equal(table["joined"].as_days(), [18263, 18690.5, np.nan])
    assert [table[name].n_missing for name in table.columns] == [0, 1, 1, 1]


def test_csv_plain_packed_marked_and_by_standard_input(written, monkeypatch):
    plain = read_table(written(PEOPLE))
    check_people(plain)
    packed = read_table(written(gzip.compress(PEOPLE.encode()), "table.csv.gz"))
    check_people(packed)
    assert packed.digest == plain.digest and len(plain.digest) == 64
    check_people(read_table(written(b"\xef\xbb\xbf" + PEOPLE.encode())))
    check_people(read_table(written(PEOPLE.replace("\n", "\r\n"))))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(PEOPLE.encode())))
    check_people(read_table("-"))


def test_semicolons_and_tabs_separate_where_the_header_has_them(written):
    for mark in ";\t":
        table = read_table(written(f"a{mark}b\n1{mark}2,5\n"))
        assert list(table.columns) == ["a", "b"] and table["b"].texts == ("2,5",)


BAD = {
    "empty": (b"", "is empty"),
    "only a header": (b"a,b\n", "has columns and no rows"),
    "ragged": (b"a,b\n1,2\n3\n", "line 3 has 1 field where the header has 2 columns: column 'b' and what follows is not there"),
    "ragged after quotes": (b'a,b\n"x\ny",2\n3,4,5\n', "line 4 has 3 fields where the header has 2 columns"),
    "a NUL byte": (b"a,b\n1,2\n3,\x004\n", "line 3 holds a NUL byte at place 3"),
    "another encoding": ("a,b\n1,é\n".encode() + "2,é\n".encode("latin-1"), "line 3 holds the byte 0xe9 at place 3"),
    "UTF-16": ("a,b\n1,2\n".encode("utf-16"), "is encoded in UTF-16"),
    "two of a name": (b"a,b,a\n1,2,3\n", "columns 1 and 3 are both called 'a'"),
    "no name": (b",a\n0,1\n", "column 1 of 2 has no name (an index that pandas wrote?"),
    "an open quote": (b'a,b\n1,"2\n3,4\n', "line 3: a quote is opened before here and never closed"),
    "a long field": (b'a,b\n1,"' + b"x" * 200_000 + b"\n", "line 2: a field is longer than 131,072 characters"),
    "a quote within": (b'a,b\n1,"2"3\n', "line 2: a quote is closed within a field"),
    "a long line": (b"a,b\n" + b"x" * (LONGEST_LINE + 5), "line 2 is longer than 16 MiB"),
    "a row without end": (b"a,b\n1," + b'"%060d\n",' % 0 * (LONGEST_LINE // 60), "a row is longer than 16 MiB; is a quote"),
    "a model file": ((70).to_bytes(8, "little") + b'{"__metadata__":{}}', "is a model file, not a table"),
    "a workbook": (b"PK\x03\x04....", "is a zip archive or a workbook"),
    "half of a packed file": (gzip.compress(PEOPLE.encode())[:-9], "is damaged: it cannot be unpacked"),
    "a carriage return": (b"a,b\r1,2\r", "a carriage return stands inside the line"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_table_is_one_line_that_names_the_place(name, written):
    content, said = BAD[name]
    path = written(content)
    with pytest.raises(ValueError) as caught:
        read_table(path)
    assert said in str(caught.value) and str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_a_file_that_is_not_there_and_a_folder(tmp_path):
    with pytest.raises(ValueError, match="does not exist; check the path"):
        read_table(tmp_path / "nowhere.csv")
    with pytest.raises(ValueError, match="is a folder; give the file itself"):
        read_table(tmp_path)


def test_a_line_of_gigabytes_is_not_read_to_its_end(tmp_path):
    path = tmp_path / "long.csv"
    with path.open("wb") as file:
        file.write(b"a,b\n")
        file.truncate(2 * 2**30)  # a hole of NUL bytes, which takes no room on the disk
    with pytest.raises(ValueError, match="line 2 holds a NUL byte at place 1"):
        read_table(path)


def test_a_column_of_many_numbers_holds_no_texts(written):
    rows = 6 * 8192
    numbers = np.random.default_rng(0).standard_normal(rows).astype(np.float32)
    path = written("x,y\n" + "".join(f"{value},{place % 3}\n" for place, value in enumerate(numbers)))
    tracemalloc.start()
    table = read_table(path)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    np.testing.assert_array_equal(table["x"].as_numbers().astype(np.float32), numbers)
    assert table["x"].codes is None and table["y"].codes.dtype == np.int16
    assert held < 15 * rows and peak < 400 * 8192  # texts of a block, not of the table


def test_texts_come_late_dates_are_many_and_nothing_is_lost():
    builder = ColumnBuilder("x")
    builder.add(pyarrow.array([str(number) for number in range(MOST_TEXTS)]))
    builder.add(pyarrow.array(["NA", "1000", "2020-01-01", "what", " 7 ", "1_0", "inf"]))
    column = builder.column()
    assert column.codes is None and (column.kinds == IS_TEXT).sum() == 3 and column.example == "what" and column.n_missing == 1
    np.testing.assert_array_equal(column.as_numbers()[-8:], [999, np.nan, 1000, np.nan, np.nan, 7, np.nan, np.nan])
    assert column.as_days()[1002] == 18262 and np.isnan(column.as_days()).sum() == column.rows - 1


def test_known_categories_keep_their_place_however_many_others_come():
    builder = ColumnBuilder("x", ["b", "a"])
    builder.add(pyarrow.array([f"new {number}" for number in range(3 * MOST_TEXTS)]))
    builder.add(pyarrow.array(["a", "b", "", "new 2999"]))
    column = builder.column()
    assert column.as_codes(["b", "a"])[-4:].tolist() == [1, 0, MISSING, UNSEEN] and len(column.texts) == 2 + MOST_TEXTS


def test_frames_are_read_by_their_types():
    frame = pandas.DataFrame(
        {
            "number": [1, 2, 3],
            "real": [0.5, np.nan, np.inf],
            "flag": [True, False, True],
            "day": pandas.to_datetime(["2020-01-02", None, "2021-03-04 12:00"], format="ISO8601"),
            "text": ["a", None, "b"],
            "group": pandas.Categorical(["u", "v", "u"]),
            "whole": pandas.array([1, None, 3], dtype="Int64"),
        }
    )
    table = table_of(frame)
    assert table["number"].exact.tolist() == [1, 2, 3] and table["flag"].texts == ("False", "True")
    np.testing.assert_array_equal(table["real"].as_numbers(), [0.5, np.nan, np.nan])
    np.testing.assert_array_equal(table["day"].as_days(), [18263, np.nan, 18690.5])
    assert table["text"].n_missing == 1 and table["group"].as_codes(["v", "u"]).tolist() == [1, 0, 1]
    np.testing.assert_array_equal(table["whole"].as_numbers(), [1, np.nan, 3])
    for wrong, said in (
        ([1, 2], "A list is no table"),
        ({"a": [1], "b": [1, 2]}, "columns of 1 and 2 rows"),
        ({"a": []}, "has columns and no rows"),
        ({"a": np.zeros((2, 2))}, "Column 'a' has shape"),
        ({"a": [1j]}, "Column 'a' holds values of the type complex"),
    ):
        with pytest.raises(ValueError, match=said):
            table_of(wrong)


def test_parquet_gives_what_csv_gives(tmp_path):
    from pyarrow import parquet

    days = pandas.to_datetime(["2020-01-02", "2021-03-04 12:00", None], format="ISO8601")
    frame = {"name": ["Ada", "Grace", "Hopper, G."], "age": [36, None, 47], "joined": days, "height": [1.7, None, 1.6]}
    parquet.write_table(pyarrow.table(frame), tmp_path / "table.parquet")
    check_people(read_table(tmp_path / "table.parquet"))
    (tmp_path / "table.parquet").write_bytes((tmp_path / "table.parquet").read_bytes()[:50])
    with pytest.raises(ValueError, match="is a Parquet file that cannot be read"):
        read_table(tmp_path / "table.parquet")


# ---- what a column is


@pytest.mark.parametrize(
    ("values", "kind", "why"),
    [
        (["1", "2.5", "", "-3"], "number", "numbers, 1 missing"),
        ([*map(str, range(199)), "unknown"], "number", "numbers; 'unknown' and 0 more texts are read as missing"),
        (["1", "2", "x"], "category", "3 categories"),
        (["2020-01-01", "2020-01-02 10:00", ""], "date", "dates, as days; 1 missing"),
        (["a", "b", "a"], "category", "2 categories"),
        ([True, False, True], "category", "2 categories"),
        (["a", "a"], "dropped", "the same in every row: 'a'"),
        ([3.0, 3.0], "dropped", "the same in every row: 3"),
        (["a", ""], "category", "1 category, 1 missing"),
        (["", "NA"], "dropped", "missing in every row"),
        ([f"id {number}" for number in range(1001)], "dropped", "more than 1,000 categories"),
        (list(range(2000)), "number", "numbers"),
        (pandas.to_datetime(["2020-01-01", "2020-01-02"]), "date", "dates, as days"),
    ],
)
def test_what_a_column_is_comes_from_its_data_and_is_said(values, kind, why):
    found = kind_of(column_of("x", values))
    assert (found.kind, found.why) == (kind, why)
