"""Columns of every type that frames and Parquet files have: what they are read as, or one line that names column and type."""

import datetime
from decimal import Decimal

import numpy as np
import pandas
import pyarrow
import pytest
from pyarrow import parquet

from meristem.inputs.schema import MISSING, MOST_TEXTS, UNSEEN
from meristem.tables.reading import read_table, table_of
from meristem.tables.split import Target
from meristem.tables.table_columns import kind_of
from one_column import column_of

NAN = np.nan


def written(tmp_path, columns):
    path = tmp_path / "table.parquet"
    parquet.write_table(columns if isinstance(columns, pyarrow.Table) else pyarrow.table(columns), path)
    return path


def refused(call, *words):
    with pytest.raises(ValueError) as caught:
        call()
    text = str(caught.value)
    assert type(caught.value) is ValueError and "\n" not in text and all(word in text for word in words), text


NUMBERS = {
    "Int64": pandas.array([1, None, 3], dtype="Int64"),
    "UInt8": pandas.array([1, None, 3], dtype="UInt8"),
    "Float64": pandas.array([1, None, 3], dtype="Float64"),
    "int64[pyarrow]": pandas.array([1, None, 3], dtype="int64[pyarrow]"),
    "decimal[pyarrow]": pandas.array([Decimal(1), None, Decimal(3)], dtype=pandas.ArrowDtype(pyarrow.decimal128(5, 2))),
    "category": pandas.Categorical([1, None, 3]),
    "object": np.array([1, None, 3], object),
    "decimals": [Decimal(1), None, Decimal("3.0")],
    "timedelta": pandas.to_timedelta([1, None, 3], unit="D"),
    "timedeltas": [datetime.timedelta(1), None, datetime.timedelta(3)],
    "masked": np.ma.array([1, 2, 3], mask=[0, 1, 0]),
    "text": ["1", None, " 3 "],
    "bytes": [b"1", None, b"3"],
    "float16": np.array([1, NAN, 3], np.float16),
    "arrow": pyarrow.array([1, None, 3], pyarrow.uint16()),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_of_every_type(name):
    values = NUMBERS[name]
    column = column_of("x", values)
    np.testing.assert_array_equal(column.as_numbers(), [1, NAN, 3])
    assert column.n_missing == 1 and kind_of(column).kind == "number"
    if not isinstance(values, list | np.ndarray | pyarrow.Array):
        np.testing.assert_array_equal(table_of(pandas.DataFrame({"x": values}))["x"].as_numbers(), [1, NAN, 3])


DAYS = ["2020-01-02", None, "2021-03-04 12:00"]
DATES = {
    **{unit: pandas.to_datetime(DAYS, format="ISO8601").as_unit(unit) for unit in ("s", "ms", "us", "ns")},
    "zone": pandas.to_datetime(DAYS, format="ISO8601").tz_localize("UTC").tz_convert("Asia/Kolkata"),
    "arrow zone": pandas.Series(pandas.to_datetime(DAYS, format="ISO8601").tz_localize("UTC")).astype(
        pandas.ArrowDtype(pyarrow.timestamp("ms", "America/New_York"))
    ),
    "objects": [datetime.date(2020, 1, 2), None, datetime.datetime(2021, 3, 4, 12)],
    "stamps": [pandas.Timestamp("2020-01-02"), pandas.NaT, pandas.Timestamp("2021-03-04 12:00")],
    "big end": np.array(DAYS, "M8[ns]").astype(">M8[us]"),
    "category": pandas.Categorical(pandas.to_datetime(DAYS, format="ISO8601")),
}


@pytest.mark.parametrize("name", DATES)
def test_dates_of_every_type(name):
    column = column_of("day", DATES[name])
    np.testing.assert_array_equal(column.as_days(), [18263, NAN, 18690.5])
    assert kind_of(column).kind == "date" and column.n_missing == 1


def test_booleans_and_texts_of_every_type():
    for values in (pandas.array([True, None, False], dtype="boolean"), [True, None, False], pyarrow.array([True, None, False])):
        assert column_of("x", values).as_codes(["False", "True"]).tolist() == [1, MISSING, 0]
    texts = ["a", None, "b"]
    for values in (
        texts,
        pandas.array(texts, dtype="string"),
        pandas.array(texts, dtype="str"),
        pandas.array(texts, dtype="string[pyarrow]"),
        pandas.Categorical(texts, categories=["unused", "b", "a"]),
        pandas.Series(texts, dtype=pandas.ArrowDtype(pyarrow.dictionary(pyarrow.int8(), pyarrow.string()))),
        np.array(["a", "", "b"], "S3"),
        pyarrow.array(texts, pyarrow.large_binary()),
    ):
        column = column_of("x", values)
        assert column.as_codes(["b", "a"]).tolist() == [1, MISSING, 0] and set(column.texts) == {"a", "b"}


WRONG = {
    "complex128": np.array([1j]),
    "complex": [1, 2j],
    "list": [[1], [1, 2]],
    "dict": [{"a": 1}],
    "time": [datetime.time(1)],
    "Period": [pandas.Period("2020")],
    "period[D]": pandas.period_range("2020", periods=2),
    "interval[int64, right]": pandas.interval_range(0, 2),
    "list<": pyarrow.array([[1], [2]]),
    "struct<a: int64>": pyarrow.array([{"a": 1}]),
    "time64[us]": pyarrow.array([datetime.time(1)]),
    "object": [object()],
    "bytes that are not UTF-8": [b"\xff"],
    "'\\udc80' in row 2": ["a", "\udc80"],
}


@pytest.mark.parametrize("name", WRONG)
def test_other_types_are_one_line_that_names_column_and_type(name):
    refused(lambda: column_of("age", WRONG[name]), "olumn 'age'", name)


def test_names_of_columns():
    assert list(table_of({1: [1, 2], ("a", 2): [1, 2]}).columns) == ["1", "('a', 2)"]
    refused(lambda: table_of({"a": [1], " ": [1]}), "the frame: column 2 of 2 has no name")
    refused(lambda: table_of({"a\0b": [1]}), "column 1 is called 'a\\x00b'")
    refused(lambda: table_of({"a": [1], "\udc80": [1]}), "column 2 is called '\\udc80'")
    refused(lambda: table_of(pyarrow.table([[1], [2]], names=["a", ""])), "column 2 of 2 has no name")


def test_whole_numbers_stay_different_beyond_what_floats_hold(tmp_path):
    for first in (2**53, 2**63 - 2, 2**64 - 2, 2**80, -(2**63)):
        values = [first, first + 1, None, first]
        for column in (column_of("x", values), column_of("x", [*values, *range(2 * MOST_TEXTS)], known_texts=[str(first + 1)])):
            assert column.as_codes([str(first + 1), "17"])[:4].tolist() == [UNSEEN, 0, MISSING, UNSEEN]
    kinds = {"int64": 2**53, "uint64": 2**64 - 2}
    frame = {name: pyarrow.array([first, first + 1, None], name) for name, first in kinds.items()}
    for table in (table_of(pyarrow.table(frame)), read_table(written(tmp_path, frame))):
        for name, first in kinds.items():
            assert table[name].as_codes([str(first), str(first + 1), "0"]).tolist() == [0, 1, MISSING]
            assert table[name].exact.dtype == name and not table[name].is_constant()
    labels = Target.of(table_of({"y": [2**53, 2**53 + 1] * 20}), "y", None)
    assert labels.task == "class" and np.unique(labels.values).tolist() == [2**53, 2**53 + 1]
    both = column_of("x", [2**53, 2**53 + 0.5, 2**53 + 1])
    assert both.as_codes(["9007199254740993"]).tolist() == [UNSEEN, UNSEEN, 0]


def test_known_texts_keep_their_codes_in_frames_and_parquet(tmp_path):
    texts, known = [*(f"new {n}" for n in range(3 * MOST_TEXTS)), "a", None, " b "], ["b", "a"]
    frame = {"x": texts, "y": texts}
    categories = pandas.DataFrame({"x": pandas.Categorical(texts), "y": texts})
    for table in (
        table_of(frame, {"x": known}),
        table_of(categories, {"x": known}),
        table_of(pyarrow.table(frame), {"x": known}),
        read_table(written(tmp_path, frame), {"x": known}),
    ):
        assert table["x"].as_codes(known)[-3:].tolist() == [1, MISSING, 0] and table["y"].codes is None
        assert (table["x"].as_codes(known)[:-3] == UNSEEN).all()
        assert any(text.startswith("new ") for text in table["x"].texts)


def test_days_of_times_that_are_far_away(tmp_path):
    counts = [2**62, -(2**62), 2**63 - 1, -(2**63), 0, -1, None]
    per_day = {"s": 86400, "ms": 86400 * 10**3, "us": 86400 * 10**6, "ns": 86400 * 10**9}
    for unit, per in per_day.items():
        array = pyarrow.array(counts, pyarrow.int64())
        column = read_table(written(tmp_path, {"t": array.cast(pyarrow.timestamp("ms" if unit == "s" else unit))}))["t"]
        expected = [NAN if count is None else count / per_day["ms" if unit == "s" else unit] for count in counts]
        np.testing.assert_allclose(column.as_days(), expected, rtol=1e-15)
        typed = column_of("t", array.cast(pyarrow.timestamp(unit)))
        np.testing.assert_allclose(typed.as_days(), [NAN if count is None else count / per for count in counts], rtol=1e-15)
        spans = column_of("t", np.array(counts[:3], f"m8[{unit}]"))
        np.testing.assert_allclose(spans.as_numbers(), [count / per for count in counts[:3]], rtol=1e-15)
        stamps = column_of("t", np.array([2**62, -(2**62)], f"M8[{unit}]"))
        np.testing.assert_allclose(stamps.as_days(), [2**62 / per, -(2**62) / per], rtol=1e-15)
    assert column_of("t", np.array(["1970-03", "NaT"], "M8[M]")).as_days()[0] == 59
    assert column_of("t", np.array([3], "M8[2W]")).as_days()[0] == 42
    refused(lambda: column_of("t", np.array([2**40], "M8[Y]")), "Column 't'", "datetime64[Y]")


def test_parquet_columns_of_every_type(tmp_path):
    day = datetime.date(2020, 1, 2)
    table = read_table(
        written(
            tmp_path,
            {
                "dictionary": pyarrow.array(["a", None, "b"]).dictionary_encode(),
                "numbers": pyarrow.array([7, None, 8]).dictionary_encode(),
                "decimal": pyarrow.array([Decimal("1.50"), None, Decimal("2.25")]),
                "large": pyarrow.array(["a", None, "b"], pyarrow.large_string()),
                "view": pyarrow.array(["a", None, "b"], pyarrow.string_view()),
                "date32": pyarrow.array([day, None, day], pyarrow.date32()),
                "date64": pyarrow.array([day, None, day], pyarrow.date64()),
                "half": pyarrow.array(np.array([1, 2, 3], np.float16)),
                "nothing": pyarrow.nulls(3),
            },
        ),
        keep=["decimal"],
    )
    for name in ("dictionary", "large", "view"):
        assert table[name].as_codes(["a", "b"]).tolist() == [0, MISSING, 1]
    np.testing.assert_array_equal(table["numbers"].as_numbers(), [7, NAN, 8])
    np.testing.assert_array_equal(table["decimal"].as_numbers(), [1.5, NAN, 2.25])
    for name in ("date32", "date64"):
        np.testing.assert_array_equal(table[name].as_days(), [18263, NAN, 18263])
    assert table["half"].as_numbers().tolist() == [1, 2, 3] and table["nothing"].n_missing == 3
    assert table.texts == {"decimal": ["1.50", "", "2.25"]} and table.sep is None and table.encoding is None
    for array, kind in ((pyarrow.array([[1]]), "list<"), (pyarrow.array([datetime.time(1)]), "time64[us]")):
        path = written(tmp_path, {"ok": [1], "x": array})
        refused(lambda path=path: read_table(path), str(path), "column 'x' has the type", kind)


def test_polars_frames():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(
        {
            "text": ["a", None],
            "category": polars.Series(["u", "v"], dtype=polars.Categorical),
            "enum": polars.Series(["u", "v"], dtype=polars.Enum(["v", "u"])),
            "decimal": [Decimal("1.5"), None],
            "time": [datetime.datetime(2020, 1, 2, 12), None],
            "day": [datetime.date(2020, 1, 2), None],
            "flag": [True, None],
            "whole": [2**53 + 1, None],
        }
    )
    table = table_of(frame, {"text": ["a"]})
    assert table.rows == 2 and list(table.columns) == frame.columns
    assert table["text"].as_codes(["a"]).tolist() == [0, MISSING] and table["enum"].as_codes(["v", "u"]).tolist() == [1, 0]
    assert table["category"].as_codes(["v", "u"]).tolist() == [1, 0] and table["flag"].as_codes(["True"]).tolist() == [
        0,
        MISSING,
    ]
    np.testing.assert_array_equal(table["decimal"].as_numbers(), [1.5, NAN])
    np.testing.assert_array_equal(table["time"].as_days(), [18263.5, NAN])
    np.testing.assert_array_equal(table["day"].as_days(), [18263, NAN])
    assert table["whole"].as_codes([str(2**53 + 1)]).tolist() == [0, MISSING]
    assert column_of("x", frame["time"]).as_days()[0] == 18263.5
    refused(lambda: table_of(polars.DataFrame({"x": [[1]]})), "column 'x' has the type large_list<")
    refused(lambda: table_of(frame["text"]), "A Series is no table")
