"""Faults of the data are named, with the column and numbers; honest columns are not."""

import json

import numpy as np
import pytest

from commanding import meristem_here
from meristem.tables.data_faults import data_faults, later_dates, rare_test_classes
from meristem.tables.frames import table_of
from meristem.tables.leaks_and_drift import drift_lines, leaking_columns, telling_gaps
from meristem.tables.odd_values import sentinel_values
from meristem.tables.split import TableSplit
from test_tables_commands import FEW, people

rng = np.random.default_rng(0)
X = {f"x{number}": rng.normal(size=600) for number in range(4)}
CODES = (X["x0"] + X["x1"] + rng.normal(size=600) > 0).astype(int)
LABELS = ["no", "yes"]


def faults(columns, **how):
    return data_faults(TableSplit.of(table_of(columns), target="answer", **how))


def test_an_honest_table_has_none():
    zeros = np.where(rng.random(600) < 0.5, 0, np.exp(rng.normal(size=600)))
    assert faults(X | {"amount": zeros, "answer": CODES}) == []
    assert faults(X | {"count": rng.poisson(3, 600), "answer": X["x0"] + rng.normal(size=600)}) == []


@pytest.mark.parametrize(
    "values",
    [CODES, 17 - 3 * CODES, CODES * 10 + rng.uniform(0, 9, 600), np.where(rng.random(600) < 0.02, 1 - CODES, CODES)],
    ids=["copy", "transformed", "ranges", "with noise"],
)
def test_a_column_that_is_the_class(values):
    (line,) = leaking_columns(X | {"z": np.asarray(values, float)}, CODES, LABELS)
    assert line.startswith("column 'z' alone gives ") and "all other columns" in line and "remove it" in line


def test_a_flag_that_follows_from_the_target():
    y = X["x0"] + rng.normal(size=600)
    (line,) = leaking_columns(X | {"high": (y > np.quantile(y, 0.8)).astype(float)}, y)
    assert line.startswith("column 'high' follows from the target")


def test_gaps_that_tell_the_class_and_gaps_that_do_not():
    gaps = np.where(CODES == 1, np.nan, 1.0)
    (line,) = telling_gaps(X | {"a": gaps, "b": gaps * 2, "c": np.where(rng.random(600) < 0.3, np.nan, 1)}, CODES, LABELS)
    assert line.startswith("column 'a' (as 'b') is missing in ")


@pytest.mark.parametrize("value", [-999, -1, 0, 99, 9999])
def test_sentinels(value):
    ages = rng.integers(20, 60, 600).astype(float)
    ages[::25] = value
    (line,) = sentinel_values({"age": ages, "x0": X["x0"]})
    assert line.startswith(f"column 'age' holds {value} in 24 rows (4.0 %), unlike all others")


def test_a_large_value_of_a_column_that_grows_by_factors_is_a_value():
    sizes = 2.0 ** rng.integers(6, 17, 600)
    sizes[sizes == 2.0**16] = 64_000 * 1.1
    ratios = rng.choice([*(1 / np.arange(1, 40)), 2.0], 600)
    assert sentinel_values({"memory": sizes, "level": ratios}) == []


def test_a_sentinel_among_dates_is_a_date():
    days = rng.integers(18_000, 19_000, 600).astype(float)
    days[:30] = -25_567  # 1900-01-01
    assert "holds 1900-01-01 in 30 rows" in sentinel_values({"seen": days}, ["seen"])[0]


def test_zeros_that_other_columns_tell_are_values():
    kind = (np.arange(600) % 5 == 0).astype(float)
    assert sentinel_values({"part": np.where(kind, 0, rng.uniform(20, 60, 600)), "kind": kind}) == []


def test_dates_that_are_known_afterwards():
    days = rng.integers(0, 700, 100).astype(float)
    (line,) = later_dates({"opened_at": days, "closed_at": days + 3}, ["opened_at", "closed_at"])
    assert "'closed_at'" in line and "by its name" in line
    (line,) = later_dates({"opened_at": days, "second_visit": days + 3}, ["opened_at", "second_visit"])
    assert "'second_visit'" in line and "not before 'opened_at' in 100.0 % of the rows" in line
    assert later_dates({"birth_date": days, "signup_date": days + 3}, ["birth_date", "signup_date", "weekend"]) == []
    assert later_dates({"day": days, "hour": days + rng.random(100)}, ["day", "hour"]) == [], "a time on the same day"


def test_duplicates_in_the_table_and_in_a_test_table():
    rows = X | {"answer": CODES}
    four = {name: np.repeat(values, 4) for name, values in rows.items()}
    (line,) = faults(four)
    assert line.startswith("1,800 of 2,400 rows are duplicates of others") and "480 test rows are duplicates" in line
    parts = [{name: values[part] for name, values in rows.items()} for part in (slice(500), slice(400, 600))]
    assert "100 of 200 test rows are duplicates of training rows" in faults(parts[0], test=table_of(parts[1]))[0]


def test_rows_that_a_column_of_names_tells_apart_are_no_duplicates():
    n = np.arange(1200)
    rows = {"name": [f"person {number}" for number in n], "age": rng.integers(20, 60, 1200), "answer": n % 2}
    assert faults(rows) == []
    twice = {name: values[n % 300] for name, values in X.items()}
    assert "900 of 1,200 rows are duplicates" in faults(rows | twice | {"age": n % 300})[0]


def test_drift_of_values_of_gaps_and_of_all_columns_together():
    train, test = ({name: values[part] for name, values in X.items()} for part in (slice(300), slice(300, 600)))
    assert drift_lines(train, test) == []
    assert "in column 'x1' (median " in drift_lines(train, test | {"x1": test["x1"] + 1})[0]
    assert "then 30 % missing" in drift_lines(train, test | {"x1": np.where(np.arange(300) % 10 < 3, np.nan, test["x1"])})[0]
    assert "all columns together" in drift_lines(train | {"x1": train["x0"]}, test)[0]


def test_classes_with_few_test_rows():
    assert rare_test_classes(["a", "b", "c"], np.array([40, 30, 1]), np.array([10, 5, 0])) == []
    (line,) = rare_test_classes(["a", "b", "c"], np.array([40, 4, 8]), np.array([10, 1, 2]))
    assert line.startswith("2 classes have fewer than 5 test rows: 'b' (1), 'c' (2)")


def test_a_leak_is_on_the_console_in_the_summary_and_in_the_report(tmp_path):
    header, *rows = people(200).splitlines()
    lines = [f"{header},verdict", *(f"{row},v{row.rpartition(',')[2]}" for row in rows)]
    (tmp_path / "table.csv").write_text("\n".join(lines))
    done = meristem_here("fit", tmp_path / "table.csv", "--target", "rich", "--out", tmp_path / "out", *FEW)
    assert done.returncode == 0, done.stderr
    warnings = json.loads((tmp_path / "out" / "summary.json").read_text())["warnings"]
    assert any(line.startswith("column 'verdict' alone gives ") for line in warnings), warnings
    assert all(f"warning: {line}" in done.stderr for line in warnings)
    assert "alone gives " in (tmp_path / "out" / "report.html").read_text()
