"""Rooms and batches of estimators: training begins in small arrays, and takes larger ones only where these are crowded."""

import warnings
from itertools import pairwise

import numpy as np
import pytest

import meristem
from estimating import iris
from meristem.estimators.training_settings import Room, rooms

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
ROOMY = {"max_width": 33, "depth": 3, "max_epochs": 12, "learning_rate": 0.01, "random_state": 0}  # rooms of 32 × 2 and 33 × 3


class Parts(meristem.Watcher):
    """The names of the parts of a fit in which epochs were trained."""

    def __init__(self, names=None, name=""):
        self.names, self.name = [] if names is None else names, name

    def part(self, name):
        return Parts(self.names, name)

    def epoch(self, member, info):
        if self.name not in self.names:
            self.names.append(self.name)
        return False


@pytest.mark.parametrize("most", [Room(64, 5), Room(64, 2), Room(1000, 1), Room(32, 40), Room(8, 1)])
def test_rooms_grow_to_the_largest_and_no_further(most):
    sizes = rooms(most)
    assert sizes[-1] == most and sizes[0] == (min(32, most.width), min(2, most.depth))
    assert len(set(sizes)) == len(sizes)
    for small, large in pairwise(sizes):
        assert small.width <= large.width < 4 * small.width and small.depth <= large.depth < 4 * small.depth


def test_a_crowded_network_is_trained_again_in_a_larger_room():
    X, y = iris()
    parts = Parts()
    model = meristem.TunnelClassifier(penalty=0.0, l2=0.0, input_dropout=0.0, callbacks=parts, **ROOMY).fit(X, y)
    assert parts.names == ["train", "room-1"]
    small = meristem.TunnelClassifier(penalty=0.0, l2=0.0, input_dropout=0.0, **ROOMY | {"depth": 2, "max_width": 32}).fit(X, y)
    if model.network_.body.depth == 2:
        assert (model.predict_proba(X) == small.predict_proba(X)).all()
    else:
        assert model.network_.body.depth == 3 and model._state_.best[0] < small._state_.best[0], "the better one is kept"


def test_a_network_with_room_to_spare_is_trained_once():
    X, y = iris()
    parts = Parts()
    model = meristem.TunnelClassifier(penalty=0.1, l2=1e-3, input_dropout=0.0, callbacks=parts, **ROOMY).fit(X, y)
    assert parts.names == ["train"] and model.network_.body.depth == 2
    again = model.set_params(warm_start=True, callbacks=None).fit(X, y)
    assert again.network_.body.depth == 2, "it continues in its room"
    with pytest.raises(ValueError, match="depth=1, but the network to continue with was made with 2"):
        model.set_params(depth=1).fit(X, y)


def test_a_search_continues_in_a_larger_room():
    X, y = iris()
    parts = Parts()
    lists = {"penalties": [0.0], "l2s": [1e-6], "input_dropouts": [0.0]}
    model = meristem.TunnelClassifierCV(cv=2, callbacks=parts, **lists, **ROOMY).fit(X, y)
    assert parts.names == ["search", "room-1"]
    depths = {member.network_.body.depth for member in model.estimators_}
    assert len(depths) == 1 and model.path_.layer_sizes.shape == (2, depths.pop())
    assert model.score(X, y) > 0.8
    parts = Parts()  # the middle one of two penalties is the higher one, at which nothing is open
    model = meristem.TunnelClassifierCV(cv=2, callbacks=parts, **lists | {"penalties": [0.0, 0.3]}, **ROOMY).fit(X, y)
    assert parts.names == ["search"] and model.penalty_ == 0, "a lower penalty alone is crowded"


@pytest.mark.filterwarnings("ignore::meristem.GrowthWarning")  # at such a penalty nothing opens, at 0 all of the units
def test_a_tree_begins_with_a_single_leaf():
    assert meristem.BuddingClassifier(max_leaves=3)._rooms == [(64, 1), (64, 3)]
    assert meristem.BuddingClassifier(max_leaves=1)._rooms == [(64, 1)]
    assert meristem.BuddingClassifier(width=8)._rooms == [(8, 4)], "a fixed width would always be crowded"
    assert meristem.BuddingClassifier(settle=False)._rooms == [(64, 4)], "nothing is dropped that grew in vain"
    X, y = iris()
    plain = {"input_dropout": 0.0, "max_leaves": 2, **ROOMY, "max_width": 8}
    del plain["depth"]
    parts = Parts()
    model = meristem.BuddingClassifier(penalty=10.0, l2=1e-6, warm_start=True, callbacks=parts, **plain).fit(X, y)
    assert parts.names == ["train"] and model.network_.capacity == 1
    assert model.fit(X, y).network_.capacity == 1, "it continues in its room"
    parts = Parts()
    model = meristem.BuddingClassifier(penalty=0.0, l2=0.0, callbacks=parts, **plain).fit(X, y)
    assert parts.names == ["train", "room-1"] and model.score(X, y) > 0.8
    same = {"l2s": [1e-6], "input_dropouts": [0.0], "cv": 2, **plain}
    del same["input_dropout"]
    parts = Parts()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "The tree has all of its")  # it has one, where two are allowed
        small = meristem.BuddingClassifierCV(penalties=[10.0], callbacks=parts, **same).fit(X, y)
    assert parts.names == ["search"] and {tree.network_.body.capacity for tree in small.estimators_} == {1}
    parts = Parts()
    crowded = meristem.BuddingClassifierCV(penalties=[0.0], callbacks=parts, **same).fit(X, y)
    assert parts.names == ["search", "room-1"]
    assert len({tree.network_.body.capacity for tree in crowded.estimators_}) == 1 and crowded.score(X, y) > 0.8


def test_the_defaults_of_many_rows_are_those_that_are_documented():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    y = X @ [1.0, -1.0, 0.5]
    quick = {"max_epochs": 2, "max_width": 8, "depth": 1, "early_stopping": False, "random_state": 0}
    auto = meristem.TunnelRegressor(**quick).fit(X, y)
    same = meristem.TunnelRegressor(batch_size=64, learning_rate=float(3e-3 * np.sqrt(2)), **quick).fit(X, y)
    other = meristem.TunnelRegressor(batch_size=32, learning_rate=3e-3, **quick).fit(X, y)
    assert (auto.predict(X) == same.predict(X)).all() and not (auto.predict(X) == other.predict(X)).all()
    assert auto.history_["rate"][0] == pytest.approx(3e-3 * np.sqrt(2), rel=1e-6)
