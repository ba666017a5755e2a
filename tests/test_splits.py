"""Rows are split as they will be met: by time, by group, without duplicates; and an order that nobody declared is found."""

import json
import time

import numpy as np
import pandas
import pytest
import sklearn
from sklearn.datasets import load_digits, load_iris
from sklearn.model_selection import GroupKFold, TimeSeriesSplit, cross_validate

import meristem
from commanding import meristem_here
from meristem.paths.folds import has_small_fold, shuffled_folds
from meristem.tables.fitting import plan_fit
from meristem.tables.frames import table_of
from meristem.tables.row_order import neighbor_correlation
from meristem.tables.split import TableSplit
from meristem.tables.split_rule import is_latest, times_of

QUICK = {"max_epochs": 20, "max_width": 4, "depth": 1, "penalties": [1e-3], "l2s": [1e-4], "learning_rate": 0.03}
PLAN = {"body": "tunnel", "seconds": None, "random_state": 0, **QUICK}
pytestmark = [
    pytest.mark.filterwarnings("ignore::meristem.GrowthWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def visits(n=400, patients=20, seed=0):
    """Visits of patients, in no order: several a day, a number and a class to predict."""
    rng = np.random.default_rng(seed)
    day, x = np.datetime64("2012-01-01") + rng.integers(0, 80, n), rng.normal(size=n)
    patient = [f"p {number}" for number in rng.integers(0, patients, n)]
    return pandas.DataFrame({"day": day, "patient": patient, "x": x, "y": 2 * x + rng.normal(0, 0.1, n), "ill": x > 0.8})


def split(frame, target="y", **how):
    return TableSplit.of(table_of(frame, keep=[how["group_column"]] if "group_column" in how else ()), target=target, **how)


def energy(n, seed=0):
    """Hourly energy: hour and temperature say something, a level that wanders says more."""
    rng = np.random.default_rng(seed)
    t, level = np.arange(n), np.cumsum(rng.normal(size=n)) * 0.4
    temperature = 10 * np.sin(t / 8760 * 6.28) + rng.normal(size=n)
    y = 10 * np.sin(t % 24 / 24 * 6.28) - temperature / 2 + level + rng.normal(size=n)
    hour = np.datetime64("2012-01-01T00") + t.astype("timedelta64[h]")
    return pandas.DataFrame(
        {"when": hour, "hour": t % 24, "temperature": temperature, "humidity": level + rng.normal(size=n), "y": y}
    )


@pytest.mark.parametrize("kind", ["date", "number", "text", "month"])
def test_the_latest_part_is_the_test_and_folds_go_forward(kind):
    frame = visits()
    days = (frame["day"] - frame["day"].min()).dt.days.to_numpy()
    day = {"date": frame["day"], "number": days, "text": frame["day"].astype(str), "month": frame["day"].dt.strftime("%Y-%m")}
    own = split(frame.assign(day=day[kind]), time_column="day")
    values = days if kind != "month" else frame["day"].dt.month.to_numpy()
    train, test = values[own.train_rows], values[own.test_rows]
    assert train.max() < test.min(), "rows of the same time are on one side"
    assert len(train) + len(test) == 400 and abs(len(test) - 80) < (10 if kind != "month" else 100)
    plan = plan_fit(own, **PLAN, cv=5)
    times = values[plan.rows]
    assert (np.diff(times) >= 0).all() and len(plan.search.folds) == (5 if kind != "month" else 1)
    for learned, held_out in plan.search.folds:
        assert times[learned].max() < times[held_out].min()
    assert any("folds go forward; column 'day' is an input" in line for line in own.words())


def test_boundaries_between_rows_of_the_same_time():
    assert is_latest(np.array([1, 1, 1, 2, 2, 2, 2, 2, 2, 3]), 3).tolist() == [False] * 9 + [True], (
        "nearest to three: one, not seven"
    )
    assert is_latest(np.array([2, 1, 1, 1]), 4).tolist() == [True, False, False, False], "some are left to learn from"
    assert times_of(table_of({"t": ["2012-Q3", "2012-Q1", None]})["t"]).tolist()[:2] == [1, 0]


def test_rows_without_a_time_are_left_out():
    frame = visits()
    frame.loc[:9, "day"] = pandas.NaT
    own = split(frame, time_column="day")
    assert len(own.train_rows) + len(own.test_rows) == 390 and "10 rows without a time: dropped" in own.words()


@pytest.mark.parametrize(("target", "patients"), [("y", 20), ("ill", 20), ("y", 7), ("ill", 390)])
def test_no_group_is_on_both_sides(target, patients):
    frame = visits(2500 if patients == 390 else 400, patients)
    own = split(frame, target, group_column="patient")
    patient = frame["patient"].to_numpy()
    assert not set(patient[own.train_rows]) & set(patient[own.test_rows])
    assert len(own.test_rows) == pytest.approx(0.2 * len(frame), rel=0.3)
    assert "patient" not in own.schema.names and dict(own.schema.dropped)["patient"] == "the column of groups"
    plan = plan_fit(own, **PLAN, cv=5)
    assert len(plan.search.folds) == 5 and len(np.unique(np.concatenate([test for _, test in plan.search.folds]))) > 250
    for learned, held_out in plan.search.folds:
        assert not set(patient[plan.rows[learned]]) & set(patient[plan.rows[held_out]])
    if target == "ill":
        assert frame["ill"][own.test_rows].mean() == pytest.approx(frame["ill"].mean(), abs=0.05), "classes stay balanced"


def test_more_groups_than_a_column_has_texts(tmp_path):
    names = [f"order {place // 2}" for place in range(2400)]
    frame = pandas.DataFrame({"order": names, "x": np.arange(2400) % 7, "y": np.random.default_rng(0).normal(size=2400)})
    frame.to_csv(tmp_path / "orders.csv", index=False)
    assert split(frame, group_column="order").rule.groups.max() == 1199
    model = meristem.fit_table(str(tmp_path / "orders.csv"), target="y", group_column="order", cv=2, **QUICK)
    assert model.facts["split"] == {
        **{"kind": "group", "column": "order", "share": 0.2, "from": None, "duplicates": 0, "without_time": 0},
    }
    model.save(tmp_path / "model.safetensors")
    evaluation, is_original, _ = meristem.load(tmp_path / "model.safetensors").evaluated(str(tmp_path / "orders.csv"))
    assert is_original and np.array_equal(evaluation.sample_outputs, model.evaluation.sample_outputs)


def test_identical_rows_are_used_once_if_asked():
    frame = pandas.concat([visits(), visits()[:100]], ignore_index=True)
    assert len(split(frame).train_rows) + len(split(frame).test_rows) == 500, "unasked, nothing is dropped"
    own = split(frame, drop_duplicates=True)
    assert sorted([*own.train_rows, *own.test_rows]) == list(range(400))
    assert "100 rows identical to others in inputs and target: dropped" in own.words()
    frame.loc[400:, "y"] += 1
    assert len(split(frame, drop_duplicates=True).rule.rows) == 500, "the target differs"


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"time_column": "dya"}, r"time_column='dya' is not known. Did you mean 'day'\?"),
        ({"group_column": "y"}, "group_column='y' is the target"),
        ({"time_column": "day", "group_column": "day"}, "time_column and group_column are both 'day'; give two columns"),
        ({"time_column": "day", "group_column": "once"}, "'day' with group_column='once' leaves 0 rows to learn from and 82"),
        ({"time_column": "patient"}, "time_column='patient' holds something else than times; give a column of dates, numbers"),
        ({"group_column": "same"}, "group_column='same' is the same in all rows"),
        ({"time_column": "written"}, "write dates as 2012-07-25"),
    ],
)
def test_columns_that_do_not_fit_are_named(how, words):
    frame = visits().assign(same=1, once="a")
    frame.loc[0, "once"] = "b"
    frame["written"] = frame["day"].dt.strftime("%d.%m.%Y")
    with pytest.raises(ValueError, match=words):
        TableSplit.of(table_of(frame), target="y", **how)
    with pytest.raises(ValueError, match="group_column='nobody' is not known"):
        meristem.fit_table(frame, target="y", group_column="nobody")


BOTH = {"time_column": "day", "group_column": "patient"}


@pytest.mark.parametrize(("target", "patients"), [("y", 20), ("ill", 300)])
def test_by_time_and_group_the_latest_rows_are_of_new_groups_and_folds_too(target, patients):
    frame = visits(1200, patients)
    own = split(frame, target, **BOTH)
    patient, day = frame["patient"].to_numpy(), frame["day"].to_numpy()
    plan = plan_fit(own, **PLAN, cv=4)
    sides = [(plan.rows[learned], plan.rows[held_out]) for learned, held_out in plan.search.folds]
    assert len(sides) == 4
    for learned, held_out in [(own.train_rows, own.test_rows), *sides]:
        assert not set(patient[learned]) & set(patient[held_out])
        assert day[learned].max() < day[held_out].min()
    n_left_out = 1200 - len(own.train_rows) - len(own.test_rows)
    share = len(own.test_rows) / (1200 - n_left_out)
    assert 0.15 < share < 0.25, "as many as asked for, of the rows that are used"
    assert n_left_out < 700 and any(
        line.startswith(f"{n_left_out} rows of groups that are on the other") for line in own.words()
    )


def test_rows_of_a_test_table_that_are_not_new_are_a_warning():
    frame, later = visits(), visits(100, 30, seed=1)
    later["day"] += np.timedelta64(70, "D")
    own = split(frame, test=later, **BOTH)
    n_known, n_early = later["patient"].isin(frame["patient"]).sum(), (later["day"] <= frame["day"].max()).sum()
    by_group, by_time = own.table_warnings()
    assert f"19 of 29 groups in the frame, with {n_known} of 100 rows, are learned from" in by_group
    assert f"column 'day': {n_early} of 100 rows in the frame are not later" in by_time
    assert any(line.startswith("split by group") and "folds hold out whole groups" in line for line in own.words())
    new = later[~later["patient"].isin(frame["patient"])].assign(day=later["day"] + np.timedelta64(10, "D"))
    assert split(frame, test=new, **BOTH).table_warnings() == []
    without = new.drop(columns=["patient"]).assign(day="no time")
    assert split(frame, test=without, **BOTH).table_warnings() == [
        "the frame has no column 'patient': whether its groups are new is not known"
    ]
    months = frame.assign(day=frame["day"].dt.strftime("%Y-%m"))
    (line,) = split(months, test=new.assign(day=["2012-03", *["2012-09"] * (len(new) - 1)]), time_column="day").table_warnings()
    assert "1 of " in line


@pytest.mark.parametrize("how", [{"time_column": "day"}, {"group_column": "patient"}, {"drop_duplicates": True}, BOTH])
def test_a_saved_model_finds_its_test_rows(how, tmp_path):
    frame = pandas.concat([visits(), visits()[:50]], ignore_index=True)
    frame.to_csv(tmp_path / "visits.csv", index=False)
    model = meristem.fit_table(
        str(tmp_path / "visits.csv"), target="y", cv=3, refit="auto" if "time_column" in how else "bag", **how, **QUICK
    )
    assert len(model.estimator.estimators_) == (1 if "time_column" in how else 3), "forward folds learn from few rows"
    assert model.facts["rows"]["learned_from"] == model.facts["rows"]["train"]
    model.save(tmp_path / "model.safetensors")
    evaluation, is_original, _ = meristem.load(tmp_path / "model.safetensors").evaluated(str(tmp_path / "visits.csv"))
    assert is_original and np.array_equal(evaluation.sample_outputs, model.evaluation.sample_outputs)


def test_the_command_records_the_split_and_resumes_only_the_same(tmp_path):
    visits().to_csv(tmp_path / "visits.csv", index=False)
    fit = ["fit", tmp_path / "visits.csv", "--target", "y", "--body", "tunnel", "--max-epochs", "2", "--out", tmp_path / "out"]
    done = meristem_here(*fit, "--time-column", "day")
    assert done.returncode == 0 and "split by time: rows from 2012-03-0" in done.stderr, done.stderr
    facts = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert facts["split"]["kind"] == "time" and facts["split"]["from"].startswith("2012-03-0")
    again = meristem_here(*fit, "--time-column", "day", "--resume")
    assert again.returncode == 0 and "nothing is left to do" in again.stderr
    other = meristem_here(*fit, "--group-column", "patient", "--resume")
    assert other.returncode == 2 and "holds another run: settings." in other.stderr and "_column" in other.stderr
    wrong = meristem_here(*fit, "--group-column", "patent")
    assert wrong.returncode == 2 and "--group-column='patent' is not known. Did you mean 'patient'?" in wrong.stderr


def test_a_time_limit_keeps_the_folds(tmp_path):
    own = split(visits(), time_column="day")
    model = meristem.tables.fitting.fit_planned(plan_fit(own, **PLAN | {"seconds": 120.0}, cv=3), begun=time.monotonic())
    assert model.facts["folds"] == 3 and len(model.estimator.estimators_) == 1


def grouped(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X, groups = rng.normal(size=(n, 3)), rng.integers(0, 12, n)
    return X, X[:, 0] + X[:, 1] > 0, np.array([f"g{number}" for number in groups])


def test_groups_in_fit_stay_together_in_every_fold():
    X, y, groups = grouped()
    X[3, 0] = 1e6  # an outlier is held out nowhere, and does not join the other side
    model = meristem.TunnelClassifierCV(cv=4, random_state=0, **QUICK)
    folds = model._planned(X, y, groups=groups.astype(object)).folds
    assert len(folds) == 4 and not any(set(groups[train]) & set(groups[test]) for train, test in folds)
    assert not any(3 in test for _, test in folds)
    with pytest.raises(ValueError, match=r"groups has shape \(3,\); it must have a label for each row, here \(150,\)"):
        model.fit(X, y, groups=groups[:3])
    with pytest.raises(ValueError, match="cv=4 folds need as many groups, and there are 2"):
        model.fit(X, y, groups=groups == "g1")
    with pytest.raises(ValueError, match="'groups' parameter should not be None"):
        model.set_params(cv=GroupKFold(3)).fit(X, y)


def test_metadata_routing_brings_groups_to_inner_folds():
    X, y, groups = grouped()
    seen = []

    class Recording(GroupKFold):
        def split(self, X, y=None, groups=None):
            seen.append(set(groups))
            return super().split(X, y, groups)

    with sklearn.config_context(enable_metadata_routing=True):
        model = meristem.TunnelClassifierCV(cv=Recording(2), random_state=0, **QUICK).set_fit_request(groups=True)
        numbers = np.unique(groups, return_inverse=True)[1]
        done = cross_validate(model, X, y, cv=GroupKFold(2), params={"groups": numbers}, error_score="raise")
    assert len(seen) == 2 and all(len(own) == 6 for own in seen) and done["test_score"].min() > 0.6


def test_folds_that_hold_some_rows_out_nowhere():
    X, y, _ = grouped()
    one = meristem.TunnelClassifierCV(cv=TimeSeriesSplit(3), random_state=0, **QUICK).fit(X, y)
    assert len(one.estimators_) == 1 and one.estimators_[0].n_samples_seen_ == 150 and one.score(X, y) > 0.8
    bag = meristem.TunnelClassifierCV(cv=TimeSeriesSplit(3), refit="bag", random_state=0, **QUICK).fit(X, y)
    assert len(bag.estimators_) == 3 and bag.score(X, y) > 0.7
    pairs = list(TimeSeriesSplit(3).split(X))
    listed = meristem.TunnelClassifierCV(cv=pairs, random_state=0, **QUICK).fit(X, y)
    np.testing.assert_array_equal(listed.predict_proba(X), one.predict_proba(X))
    assert has_small_fold(pairs) and not has_small_fold(shuffled_folds(31, 2, 0))


def test_an_order_that_nobody_declared_is_a_warning_with_both_scores():
    begun = time.process_time()
    (line,) = split(energy(20_000)).table_warnings()
    assert time.process_time() - begun < 5, "well under a second of an idle core"
    assert line.startswith("column 'when' holds dates; quick models predict random rows with R² 0.")
    assert "the latest fifth with " in line and line.endswith("give --time-column when, or time_column='when'")
    (line,) = split(energy(3000).drop(columns="when")).table_warnings()
    assert line.startswith("neighboring rows have similar targets (correlation 0.9") and "--group-column" in line
    counted = energy(3000).drop(columns="when").assign(hours=2.0 * np.arange(3000))
    assert "rows are in order of column 'hours'" in split(counted).table_warnings()[0]
    high = energy(3000).assign(high=np.arange(3000) // 100 % 2).drop(columns="y")  # it changes every hundred hours
    assert "random rows with accuracy 0." in split(high, "high").table_warnings()[0]
    assert split(energy(3000), time_column="when").table_warnings() == [], "declared"


def test_no_order_no_warning():
    shuffled = energy(3000).drop(columns="when").sample(frac=1, random_state=0)
    iris = load_iris(as_frame=True).frame  # sorted by its target
    long = pandas.concat([iris] * 3).sort_values("target")
    rng = np.random.default_rng(0)
    by_input = visits(2000).sort_values("x").drop(columns=["patient", "ill", "day"])  # sorted by an input, predicted as well
    dated = visits(2000).assign(noise=rng.normal(size=2000))  # dates that do not matter
    digits = load_digits(as_frame=True).frame
    for frame, target in (
        (shuffled, "y"),
        (iris, "target"),
        (long, "target"),
        (by_input, "y"),
        (dated, "y"),
        (digits, "target"),
    ):
        assert [line for line in split(frame, target).table_warnings() if "quick models" in line] == []
    assert abs(neighbor_correlation(rng.normal(size=5000), is_class=False)) < 0.05
