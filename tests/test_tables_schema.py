"""Columns as inputs of a network: what each becomes, of new tables too, and the target as classes or numbers."""

import numpy as np
import pytest

from meristem.inputs import Schema
from meristem.tables.encoding import differences, features, learn_schema
from meristem.tables.reading import read_table, table_of
from meristem.tables.split import Target

TABLE = {
    "size": [1.5, None, 3.0, 4.0, 5.0, 6.0],
    "color": ["red", "blue", "red", "blue", "red", "grey"],
    "born": ["2020-01-01", "2020-01-02", "", "2020-01-04", "2020-01-05", "2020-01-06"],
    "is_old": [True, False, True, True, False, True],
    "shape": ["round", "", "round", "square", "", "square"],
    "paid": ["yes", "", "yes", "", "yes", "yes"],
    "name": ["a", "b", "c", "d", "e", "f"],
    "one": [1, 1, 1, 1, 1, 1],
}
INPUTS = [
    "size",
    *("color=red", "color=blue", "color=(other)"),
    "born (days)",
    "is_old=False",
    *("shape=round", "shape=square", "shape=(missing)"),
    "paid=(missing)",
]


def schema_of(table, rows=None, **how):
    whole = table_of(table)
    return learn_schema(whole, np.arange(whole.rows) if rows is None else rows, **how)


def test_each_kind_of_column_becomes_its_inputs():
    schema = schema_of(TABLE)
    assert schema.features == INPUTS
    assert dict(schema.dropped) == {"name": "every category occurs once", "one": "the same in every row: 1"}
    encoded = dict(zip(INPUTS, features(schema, table_of(TABLE)).T, strict=True))
    np.testing.assert_array_equal(encoded["size"], [1.5, np.nan, 3, 4, 5, 6])
    np.testing.assert_array_equal(encoded["born (days)"] - 18262, [0, 1, np.nan, 3, 4, 5])
    assert encoded["color=(other)"].tolist() == [0, 0, 0, 0, 0, 1]
    assert encoded["is_old=False"].tolist() == [0, 1, 0, 0, 1, 0]
    assert (encoded["color=red"] + encoded["color=blue"] + encoded["color=(other)"] == 1).all()
    assert encoded["shape=(missing)"].tolist() == [0, 1, 0, 0, 1, 0] and encoded["paid=(missing)"].tolist() == [
        0,
        1,
        0,
        1,
        0,
        0,
    ]


def test_rows_that_are_held_out_say_nothing_about_categories():
    schema = schema_of({"x": ["a", "a", "b", "b", "c", "c", "c"]}, rows=np.arange(4))
    assert schema.features == ["x=b"], "as frequent: by their texts"
    assert schema.texts == {"x": ("b", "a")}


def test_a_new_table_may_lack_columns_have_others_and_hold_what_was_never_seen(tmp_path):
    schema = schema_of({"size": [1, 2, 3, 4], "color": list("rrbb"), "shape": ["o", "o", "x", "y"]})
    assert schema.features == ["size", "color=r", "shape=(other)"]
    path = tmp_path / "new.csv"
    path.write_text("more,color,shape\n1,r,o\n2,pink,z\n3,,\n")
    table = read_table(path, schema.texts)
    assert differences(schema, table) == [
        "column 'size' is not there: missing in every row",
        "column 'color': 1 row of unseen categories, such as 'pink'",
        "column 'shape': 1 row of unseen categories, such as 'z'",
    ]
    np.testing.assert_array_equal(features(schema, table), [[np.nan, 1, 0], [np.nan, 0, 1], [np.nan, 0, 0]])
    with pytest.raises(ValueError, match="the frame has none of the model's columns: 'size', 'color', 'shape'"):
        differences(schema, table_of({"other": [1]}))
    texts = table_of({"size": ["1", "big", ""], "color": ["r", "b", "r"], "shape": list("oxy")})
    assert differences(schema, texts) == ["column 'size': 1 row with something else than a number, read as missing"]


def test_numbers_where_texts_were_are_the_same_categories():
    schema = schema_of({"x": ["1", "2", "A", "1", "2", "A"], "y": [1, 2, 3, 4, 5, 6]})
    new = table_of({"x": [2, 1, 7], "y": [1, 2, 3]})
    assert schema.features[:3] == ["x=1", "x=2", "x=A"]
    assert features(schema, new)[:, :3].tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]


def test_a_schema_is_plain_data_and_forged_ones_are_refused():
    schema = schema_of(TABLE)
    assert Schema.of_json(schema.as_json()) == schema
    first = schema.as_json()["columns"][0]
    for wrong in (
        {"columns": [], "dropped": []},
        {"columns": [first, first], "dropped": []},
        {"columns": [first | {"kind": "picture"}], "dropped": []},
        {"columns": [first | {"name": 3}], "dropped": []},
        {"columns": [first | {"kind": "category"}], "dropped": []},
        {"columns": [first], "dropped": [["a", 3]]},
        {"columns": [first | {"kind": "category", "rare": [str(n) for n in range(40_000)]}], "dropped": []},
    ):
        with pytest.raises(ValueError, match=r"^its (schema|column) "):
            Schema.of_json(wrong)


def test_nothing_to_learn_from_is_said():
    with pytest.raises(ValueError, match="the frame has no column to learn from; 'one': the same in every row: 1"):
        schema_of({"one": [1, 1], "y": [1, 2]}, without=["y"])


# ---- the target


@pytest.mark.parametrize(
    ("values", "task", "classes", "why"),
    [
        (["a", "b", "a", ""], "class", ["a", "b"], "2 classes: it holds texts"),
        (["1", "0", "1", "0"], "class", [0, 1], "2 classes: it holds 2 different numbers"),
        ([0.5, 1.5, 0.5, 1.5], "class", ["0.5", "1.5"], "2 classes: it holds 2 different numbers"),
        ([True, False, True, True], "class", [False, True], "2 classes: it holds texts"),
        (["01", "02", "01", "02"], "class", ["01", "02"], "2 classes: it holds 2 different numbers"),
        ([1, 2, 3] * 20, "class", [1, 2, 3], "3 classes: it holds 3 different whole numbers"),
        ([1.0, 2.0, 3.5] * 20, "number", None, "numbers"),
        (list(range(60)), "number", None, "numbers"),
        (["1.5", "2.5", "x", *(str(n / 7) for n in range(300))], "number", None, "numbers"),
    ],
)
def test_class_or_number_comes_from_the_data(values, task, classes, why):
    target = Target.of(table_of({"y": values}), "y", None)
    assert (target.task, target.why) == (task, why)
    assert target.task == "number" or np.unique(target.values[target.rows]).tolist() == classes


def test_rows_without_a_target_are_dropped_and_a_task_may_be_asked_for():
    target = Target.of(table_of({"y": [1.0, None, 2.0, 3.0, 1.0]}), "y", "class")
    assert target.rows.tolist() == [0, 2, 3, 4] and target.values[target.rows].tolist() == [1, 2, 3, 1]
    assert target.n_dropped == 1 and target.why == "3 classes, as requested"
    assert Target.of(table_of({"y": ["1", "0", "1"]}), "y", "number").values.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("values", "task", "said"),
    [
        (["", "NA"], None, "column 'y' is missing in every row"),
        (["a", "a"], None, "column 'y' is 'a' in every row"),
        ([2.0, 2.0, None], None, "column 'y' is 2.0 in every row"),
        (["a", "b"], "number", "task='number', but column 'y' holds texts, such as 'a'"),
        (["2020-01-01", "2020-01-02"], None, "column 'y' holds dates"),
        ([f"id {n}" for n in range(1001)], None, "column 'y' holds more than 1,000 different texts"),
        (list(range(1001)), "class", "column 'y' holds 1,001 different numbers"),
        (["a", "b"], "sort", "task='sort' is not known"),
    ],
)
def test_targets_that_say_nothing_are_one_line(values, task, said):
    with pytest.raises(ValueError, match=said):
        Target.of(table_of({"y": values, "x": range(len(values))}), "y", task)


def test_a_column_that_is_not_there_is_guessed():
    with pytest.raises(ValueError, match=r"target='pric' is not known\. Did you mean 'price'"):
        Target.of(table_of({"price": [1, 2], "size": [1, 2]}), "pric", None)
