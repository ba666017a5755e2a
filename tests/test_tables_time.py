"""A limit on the time of a fit: it holds, what is searched within it is less, and who is late is left behind."""

import threading
import time
import warnings

import numpy as np
import pytest

import meristem
from meristem.tables.time_limit import FILES, Deadline, Timing, fit_into, options_of, plan_search, reserve
from meristem.train.callbacks import Watcher

QUICK = {"cv": 2, "max_epochs": 30, "depth": 2, "max_width": 8, "penalties": [1e-4], "l2s": [1e-4], "learning_rate": 0.03}
pytestmark = [
    pytest.mark.filterwarnings("ignore::meristem.GrowthWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def prices(n=1200):
    """Rows whose price follows from size, color and age."""
    rng = np.random.default_rng(0)
    size, color, age = rng.uniform(0, 10, n), rng.choice(["red", "green", "blue"], n), rng.uniform(0, 20, n)
    price = 3 * size + 10 * (color == "red") + age + rng.normal(0, 0.5, n)
    return {"size": size, "color": color.tolist(), "age": age, "price": price}


ENDLESS = {"max_epochs": 100_000, "patience": 100_000}  # nothing but the limit ends it


def test_a_limit_ends_the_search_with_a_model():
    quick = {name: value for name, value in QUICK.items() if name not in ("max_epochs", "penalties", "l2s")}
    refusals = []
    for seconds in (6, 20, 60):  # what compiling takes depends on the machine, and on what else it does
        begun = time.monotonic()
        try:
            model = meristem.fit_table(prices(), target="price", seconds=seconds, **quick | ENDLESS)
            break
        except ValueError as error:
            refusals.append(str(error))
    assert all("is too short: to compile a network" in said for said in refusals)
    limits = model.facts["seconds"]
    assert limits["limit"] == seconds and limits["ended_the_search"] and model.facts["score"]["value"] > 0.5
    assert limits["all"] < time.monotonic() - begun + 0.001 < 60


def test_a_limit_that_is_too_short_for_a_network_is_refused():
    """In one line that says what to give; and warnings are what they were, though two threads changed them."""
    before = list(warnings.filters)
    with pytest.raises(ValueError, match=r"^seconds=0\.05 is too short: .*; give at least 20\.$"):
        meristem.fit_table(prices(), target="price", seconds=0.05, **QUICK)
    assert warnings.filters == before


def test_what_comes_after_a_search_has_its_time():
    predicting, epoch = 16.0, 1.5
    assert reserve(300.0, predicting, epoch) - reserve(300.0, 0.0) == predicting + epoch, "what was measured is kept"
    assert reserve(300.0, 0.0) - FILES == pytest.approx(0.03 * 300), "and a little more"
    assert reserve(300.0, 0.0, slowdown=3.0) - reserve(300.0, 0.0) == pytest.approx(2 * FILES), "more where the machine is busy"
    assert reserve(10.0, 100.0) == 5.0, "half is the search's in any case"
    early, late = Deadline(time.monotonic() + 1000), Deadline(time.monotonic() - 1)
    assert not early.over() and not early.has_ended and late.over() and late.has_ended


class Ends(Watcher):
    """Says that it is over after so many epochs, and counts those that came."""

    def __init__(self, after):
        self.after, self.members = after, []

    def epoch(self, member, info):
        self.members.append(member)
        return self.over()

    def over(self):
        return len(self.members) >= self.after


@pytest.mark.parametrize(("after", "epochs", "points"), [(4, [4, 1], 1), (31, [15, 15, 1], 1), (46, [15, 15, 15, 1], 2)])
def test_a_search_that_is_over_begins_nothing_more(after, epochs, points, monkeypatch):
    monkeypatch.setattr("meristem.train.loop.cores", lambda: 1)
    X, y = np.random.default_rng(0).normal(size=(200, 3)), np.arange(200) % 2
    ends, how = Ends(after), {"l2s": [1e-4], "input_dropouts": [0.0], "penalties": [1e-4, 1e-3, 1e-2], "cv": 2}
    shape = {"depth": 2, "max_width": 8, "max_epochs": 15, "patience": 45, "random_state": 0}
    model = meristem.TunnelClassifierCV(**how, **shape, callbacks=ends).fit(X, y)
    assert [ends.members.count(member) for member in sorted(set(ends.members))] == epochs
    assert len(model.path_.points) == points and len(model.estimators_) == 2


@pytest.mark.parametrize(("after", "epochs"), [(25, [15, 10]), (40, [15, 15, 10])])
def test_one_network_for_which_there_is_no_time_is_the_best_of_the_folds(after, epochs, monkeypatch):
    monkeypatch.setattr("meristem.train.loop.cores", lambda: 1)
    X, y = np.random.default_rng(0).normal(size=(200, 3)), np.arange(200) % 2
    how = {"l2s": [1e-4], "input_dropouts": [0.0], "penalties": [1e-4], "cv": 2, "refit": "one", "random_state": 0}
    ends = Ends(after)
    shape = {"depth": 2, "max_width": 8, "max_epochs": 15, "patience": 45}
    model = meristem.TunnelClassifierCV(**how, **shape, callbacks=ends).fit(X, y)
    members, of_folds = [*ends.members], model.path_.table
    assert sum(epochs) == len(members) == after, "in the search, and then of the one network"
    best = int(of_folds["loss"].argmin())
    assert len(model.estimators_) == 1 and model.n_parameters_ == of_folds["n_parameters"][best]


class Stuck(Watcher):
    """The second member does not come out of its second epoch, as one that compiles; when it is there it is over."""

    def __init__(self):
        self.is_there, self.free, self.late = threading.Event(), threading.Event(), []

    def epoch(self, member, info):
        if self.free.is_set():
            self.late.append(member)
        if member == 1 and int(info.epoch) == 2:
            self.is_there.set()
            self.free.wait(60)

    def over(self):
        return self.is_there.is_set()


def test_who_is_late_is_left_behind(monkeypatch):
    monkeypatch.setattr("meristem.train.loop.cores", lambda: 2)
    X, y = np.random.default_rng(0).normal(size=(200, 3)), np.arange(200) % 2
    how = {"l2s": [1e-4], "input_dropouts": [0.0], "penalties": [1e-4], "cv": 2, "random_state": 0}
    stuck, threads = Stuck(), threading.active_count()
    model = meristem.TunnelClassifierCV(**how, depth=2, max_width=8, max_epochs=15, callbacks=stuck).fit(X, y)
    assert not stuck.free.is_set() and model.path_.table["epochs"].tolist()[1] == 1, "its network is that of the epoch before"
    said = model.predict_proba(X)
    stuck.free.set()
    while threading.active_count() > threads:
        time.sleep(0.01)
    assert not stuck.late and (model.predict_proba(X) == said).all(), "what comes late changes nothing"


def test_less_is_searched_where_time_is_short():
    X, y = np.random.default_rng(0).normal(size=(2000, 3)), np.arange(2000) % 2
    model = meristem.TunnelClassifierCV(random_state=0)

    def tried(training, is_open=True):
        plan = plan_search(500.0, training, is_open=is_open)
        options = options_of(plan, model, X, y, is_open=is_open)
        return {name: value if name == "cv" else len(value) for name, value in options.items()}, plan.rows

    assert tried(30.0) == ({"cv": 5}, 1)
    assert tried(57.0) == ({"l2s": 1, "input_dropouts": 1, "cv": 5}, 1)
    assert tried(96.0) == ({"l2s": 1, "input_dropouts": 1, "cv": 3}, 1)
    assert tried(240.0) == ({"l2s": 1, "input_dropouts": 1, "penalties": 3, "cv": 2}, 1)
    assert tried(720.0) == ({"l2s": 1, "input_dropouts": 1, "penalties": 1, "cv": 2}, 1)
    assert tried(1500.0) == ({"l2s": 1, "input_dropouts": 1, "penalties": 1, "cv": 2}, 0.5)
    model.set_params(penalties=[1e-3, 1e-2], l2s=[0.0], cv=2)
    assert tried(250.0, is_open=False) == ({"input_dropouts": 1, "cv": 2}, 1)


def test_what_was_measured_is_used_where_there_is_no_time_to_compile_more():
    X, y, end = np.random.default_rng(0).normal(size=(2000, 3)), np.arange(2000) % 2, time.monotonic() + 100
    for epoch, penalties in ((1e-6, 5), (1.0, 1)):
        model = meristem.TunnelClassifierCV(random_state=0)
        rows, deadline, _ = fit_into(model, X, y, Timing(epoch, 1e6, 0.0, 500), 100.0, end, n_test=100, seed=0)
        assert len(rows) == 500 and model.cv == 5 and model.callbacks == [deadline] and end - 60 < deadline.at < end
        assert model.penalties == "auto" if penalties == 5 else len(model.penalties) == 1
