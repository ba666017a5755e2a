"""Faults that no single whole column shows are named: pairs, parts of the rows, near copies, changes along the file."""

import numpy as np
import pytest

from meristem.tables.copies import individuals, nearly_equal
from meristem.tables.data_faults import data_faults, later_dates
from meristem.tables.frames import table_of
from meristem.tables.joint_leaks import leaking_pairs, leaks_where_filled, target_means, telling_values
from meristem.tables.odd_values import lost_signs, sentinel_values, stray_dates
from meristem.tables.row_changes import changes_at_a_row, exchanged_classes, mixed_units, shifted_target
from meristem.tables.split import TableSplit

rng = np.random.default_rng(1)
N = 400
X = {f"x{number}": rng.normal(size=N) for number in range(4)}
CODES = (X["x0"] + rng.normal(size=N) > 0).astype(int)
Y, LABELS, ROWS = X["x0"] + rng.normal(size=N), ["no", "yes"], np.arange(N) + 1
LATE = np.arange(N) >= 250
WEIGHTS = rng.normal(70, 9, N)


def test_a_leak_in_the_rows_that_have_a_value():
    some = np.where(rng.random(N) < 0.4, np.nan, Y)
    (line,) = leaks_where_filled(X | {"z": some}, Y)
    assert line.startswith("column 'z' alone gives the target away in the ")
    assert leaks_where_filled(X | {"z": np.where(rng.random(N) < 0.4, np.nan, Y + rng.normal(size=N))}, Y) == []


def test_two_columns_that_give_the_target_away():
    shift = 5 * rng.normal(size=N)
    for y, labels in ((Y, None), (CODES, LABELS)):
        (line,) = leaking_pairs(X | {"after": y + shift, "before": shift}, y, labels)
        assert line.startswith("columns 'after' and 'before' together give the target away")
        assert leaking_pairs(X | {"after": y + shift + rng.normal(size=N), "before": shift}, y, labels) == []
    price, amount = rng.lognormal(size=N), rng.lognormal(size=N)
    assert "'amount' and 'price'" in leaking_pairs(X | {"amount": amount, "price": price}, price * amount)[0]
    key = rng.integers(0, 2, N).astype(float)
    assert leaking_pairs(X | {"sum": (key + CODES) % 2, "key": key}, CODES, LABELS) != []


def test_a_category_that_one_class_alone_has():
    status = np.where((CODES == 1) & (rng.random(N) < 0.6), 0, rng.integers(1, 4, N)).astype(float)
    texts = {"status": ["cancelled", "open", "paid", "sent"]}
    (line,) = telling_values(X | {"status": status}, texts, CODES, LABELS)
    assert line.startswith("column 'status' is 'cancelled' in ") and "class 'yes'" in line
    assert telling_values(X | {"status": rng.integers(0, 4, N).astype(float)}, texts, CODES, LABELS) == []


def test_rows_that_are_nearly_copies():
    near = {name: np.tile(values[:200], 2) + 0.001 * rng.normal(size=N) for name, values in X.items()}
    halves = [[{name: values[part] for name, values in x.items()} for part in (slice(300), slice(300, N))] for x in (near, X)]
    assert nearly_equal(*halves[0])[0].startswith("near duplicates") and nearly_equal(*halves[1]) == []
    twice = {name: np.tile(values[:200], 2) for name, values in X.items()} | {"answer": np.tile(CODES[:200], 2)}
    lines = data_faults(TableSplit.of(table_of(twice | {"id": rng.permutation(N)}), target="answer"))
    assert any("200 of 400 rows are duplicates of others in all columns but 'id'" in line for line in lines), lines


def test_rows_of_the_same_individual():
    patient = np.repeat(rng.permutation(100), 4)
    people = {name: values[patient] + 0.3 * rng.normal(size=N) for name, values in X.items()}
    (line,) = individuals(people | {"patient_id": patient.astype(float)}, [], CODES[patient], is_class=True)
    assert line.startswith("column 'patient_id' likely tells") and "--group-column" in line
    honest = X | {"code": rng.integers(0, 100, N).astype(float), "age": np.sort(rng.integers(20, 80, N)).astype(float)}
    assert individuals(honest, [], CODES, is_class=True) == []


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.where(LATE, WEIGHTS * 2.2046, WEIGHTS), "changes near row 25"),
        (np.where(LATE, 70.0, WEIGHTS), "is 70 in each of 150 rows, from row 251 on"),
        (np.where(LATE, np.nan, WEIGHTS), "is missing from row 251 on"),
        (np.where(LATE, np.arange(N) % 3 + 3, np.arange(N) % 3), "has other categories from about row 251 on"),
    ],
    ids=["unit", "constant", "gaps", "categories"],
)
def test_a_column_that_changes_at_a_row(values, words):
    names = ["z"] if "categories" in words else []
    (line,) = changes_at_a_row(X | {"z": values}, names, Y, ROWS)
    assert line.startswith(f"column 'z' {words}")


def test_columns_that_do_not_change_at_a_row():
    flag = np.sort(CODES).astype(float)
    columns = {
        "sorted": np.sort(WEIGHTS),
        "walk": np.cumsum(rng.normal(size=N)),
        "flag": flag,
        "of class": WEIGHTS + 900 * flag,
    }
    assert changes_at_a_row(X | columns, [], flag, ROWS) == []


def test_two_units_in_a_column_and_a_target_that_is_a_row_off():
    (line,) = mixed_units({"z": np.where(rng.random(N) < 0.1, 1000 * WEIGHTS, WEIGHTS), "tail": rng.lognormal(0, 3, N)})
    assert line.startswith("column 'z' has two sizes of values")
    shares = rng.beta(2, 5, N)
    (line,) = mixed_units({"share": np.where(rng.random(N) < 0.2, 100 * shares, shares), "tail": rng.lognormal(0, 1, N)})
    assert line.startswith("column 'share' has two sizes of values"), "fractions and per cent, though they overlap"
    assert "one row too low" in shifted_target(X, np.roll(Y, 1), is_class=False)[0]
    assert "one row too high" in shifted_target(X, np.roll(CODES, -1), is_class=True)[0]
    assert (
        shifted_target(X, Y, is_class=False)
        == shifted_target({"lag": np.roll(np.sort(Y), 1)}, np.sort(Y), is_class=False)
        == []
    )


def test_spans_until_an_event_and_categories_in_capitals():
    names = ["days_until_churn", "TimeToEvent", "hours_till_failure", "distance_to_station", "weekday", "days_since_visit"]
    lines = later_dates({}, names)
    assert [line.split("'")[1] for line in lines] == names[:3]
    answers = np.where(rng.random(N) < 0.1, "YES", np.where(rng.random(N) < 0.5, "yes", "no"))
    lines = TableSplit.of(table_of(X | {"smoker": answers, "answer": CODES}), target="answer").table_warnings()
    assert any("'smoker' holds" in line and "case or spaces" in line for line in lines), lines


def test_duplicates_with_an_honest_column_are_not_near_duplicates_and_jittered_ones_are():
    rng = np.random.default_rng(0)
    half = {name: rng.normal(size=150) for name in "abcd"}
    twice = {name: np.tile(values, 2) for name, values in half.items()} | {"tail": rng.standard_cauchy(300)}
    jittered = {name: values + 1e-3 * rng.normal(size=300) for name, values in twice.items() if name != "tail"}
    for columns, n_lines in ((twice, 0), (jittered, 1)):
        sides = ({name: values[rows] for name, values in columns.items()} for rows in (slice(200), slice(200, 300)))
        assert len(nearly_equal(*sides)) == n_lines


def test_two_indicators_of_one_category_are_no_leak_by_a_pair():
    level, other = np.random.default_rng(0).integers(0, 3, 600), np.random.default_rng(1).normal(size=600)
    columns = {"is low": (level == 0) * 1.0, "is high": (level == 2) * 1.0, "other": other}
    y = np.where(level == 1, 0, 1 + (other + np.random.default_rng(2).normal(size=600) > 0))
    assert leaking_pairs(columns, y, ["neither", "no", "yes"]) == []


def test_classes_that_are_exchanged_from_a_row_on_or_up_to_one():
    y = (X["x0"] + 0.5 * rng.normal(size=N) > 0).astype(int)
    for row, is_exchanged in ((250, LATE), (60, np.arange(N) < 60)):
        (line,) = exchanged_classes(X, np.where(is_exchanged, 1 - y, y), LABELS, ROWS)
        words, _, rest = line.partition("near row ")
        assert words == "classes 'no' and 'yes' look exchanged " and abs(int(rest.split()[0]) - row) < 25
    several = np.where(y == 1, 2, np.where(X["x1"] > 0, 1, 0))
    swapped = np.where(LATE & (several != 1), 2 - several, several)
    (line,) = exchanged_classes(X, swapped, ["a", "b", "c"], ROWS)
    assert line.startswith("classes 'a' and 'c' look exchanged")
    assert exchanged_classes(X, several, ["a", "b", "c"], ROWS) == [] == exchanged_classes(X, np.sort(y), LABELS, ROWS)
    assert exchanged_classes(X, rng.integers(0, 2, N), LABELS, ROWS) == [], "nothing tells them apart"
    assert exchanged_classes(X, np.where(LATE, rng.integers(0, 2, N), y), LABELS, ROWS) == [], "noise is no exchange"


def test_numbers_that_drift_with_a_date():
    days = np.sort(rng.integers(0, 700, N)).astype(float)
    when = [str(np.datetime64("2021-01-01") + int(day)) for day in days]
    frame = {"when": when, "kg": WEIGHTS + 30 * days / 700, **X, "answer": Y}
    lines = data_faults(TableSplit.of(table_of(frame), target="answer"))
    drifts = [line for line in lines if "drift" in line]
    assert len(drifts) == 1 and drifts[0].startswith("with the dates of column 'when' these drift: 'kg' (median ")
    assert "--time-column when" in drifts[0] and "'x0'" not in drifts[0]
    by_time = data_faults(TableSplit.of(table_of(frame), target="answer", time_column="when"))
    assert not any(line.startswith("with the dates") for line in by_time), "the split by time shows it"
    shuffled = table_of(frame | {"when": list(rng.permutation(when))})
    assert not any("drift" in line for line in data_faults(TableSplit.of(shuffled, target="answer")))


def test_a_code_among_few_values():
    for values, code in ((rng.integers(1, 6, N), 99), (rng.integers(0, 3, N), -999), (rng.integers(0, 7, N), -1)):
        scores = np.where(rng.random(N) < 0.05, code, values)
        (line,) = sentinel_values({"score": scores.astype(float)})
        assert line.startswith(f"column 'score' holds {code} in ")
    assert sentinel_values({"opinion": rng.integers(-1, 2, N).astype(float)}) == [], "−1 is an answer"
    assert sentinel_values({"dose": rng.choice([1.0, 10.0, 99.0, 999.0], N)}) == [], "doses are not a scale"


def test_means_of_the_target_that_include_the_own_row():
    group = rng.integers(0, 60, N)
    for y, labels, words in ((Y, None, "the mean of the target"), (CODES.astype(float), LABELS, "the share of class 'no'")):
        goal = y if labels is None else 1 - y
        sums, counts = np.bincount(group, goal), np.bincount(group)
        (line,) = target_means(X | {"z": np.round((sums / counts)[group], 5)}, y, labels)
        assert line.startswith(f"column 'z' is {words} over the rows that share its value, in ")
        without_own = (sums[group] - goal) / np.maximum(counts[group] - 1, 1)
        assert target_means(X | {"z": without_own, "kind": (group % 7).astype(float)}, y, labels) == []
    frame = X | {"z": (np.bincount(group, Y) / np.bincount(group))[group], "answer": Y}
    assert any("mean of the target" in line for line in data_faults(TableSplit.of(table_of(frame), target="answer")))


def test_negative_values_that_are_as_large_as_positive_ones():
    ages = np.where(ROWS % 90 == 3, -1.0, 1.0) * rng.integers(18, 90, N)
    (line,) = lost_signs(X | {"age": ages, "degrees": rng.normal(19, 9, N), "code": np.where(ROWS % 90 == 3, -1.0, ages)})
    assert line.startswith("column 'age' is negative in 5 rows (1.2 %)")


def test_dates_that_are_far_from_all_others():
    days = 19_000.0 + rng.integers(0, 900, N)
    (line,) = stray_dates({"seen": np.where(ROWS == 8, days + 26_000, days), "when": days})
    assert line.startswith("column 'seen' has a date far from all others, which are from 2022-01-")
    (line,) = stray_dates({"seen": np.where(ROWS % 200 == 8, [-20_000.0], days), "tail": 19_000.0 + rng.exponential(900, N)})
    assert line.startswith("column 'seen' has 2 dates far from all others") and "look at 1915-" in line
