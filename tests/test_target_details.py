"""Boundaries of targets that larger tests do not notice: probabilities, margins, forged files, weights of 0, blocks."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from meristem.targets import Classes, Counts, Labels, Numbers, Quantiles, Scaling, unpack
from meristem.targets.categorical import sigmoid
from meristem.targets.scaling import BLOCK_NUMBERS, BLOCK_ROWS, blocks
from meristem.train.objectives import AbsoluteError, Quantile

TWO, THREE = Classes(np.array([3, 5])), Classes(np.array(["a", "b", "c"]))


def test_two_classes_share_the_probability_of_one_logit():
    outputs = np.log([[3.0], [1.0], [0.25]])
    np.testing.assert_allclose(TWO.probabilities(outputs), [[0.25, 0.75], [0.5, 0.5], [0.8, 0.2]])
    assert TWO.decode(outputs).tolist() == [5, 3, 3], "the second class only above 0"
    assert TWO.decision(outputs).shape == (3,) and TWO.n_out == 1
    np.testing.assert_allclose(sigmoid(np.array([np.log(3.0)])), [0.75])


def test_classes_and_labels_by_their_logits():
    outputs = np.log([[1.0, 2.0, 5.0], [4.0, 1.0, 3.0]])
    np.testing.assert_allclose(THREE.probabilities(outputs), [[1 / 8, 2 / 8, 5 / 8], [4 / 8, 1 / 8, 3 / 8]])
    np.testing.assert_allclose(THREE.probabilities(outputs + 5000), THREE.probabilities(outputs))
    assert THREE.decode(outputs).tolist() == ["c", "a"] and THREE.n_out == 3
    np.testing.assert_allclose(Labels(2).probabilities(np.log([[3.0, 1.0]])), [[0.75, 0.5]])
    assert Labels(2).decode(np.array([[0.0, 0.1]])).tolist() == [[0, 1]]


def test_every_row_is_in_the_column_of_its_class():
    np.testing.assert_array_equal(THREE.columns(np.array([2, 0, 2])), [[0, 1], [1, 0], [0, 1]], "of classes that occur")


@pytest.mark.parametrize("y", [np.ones(2), np.ones((3, 3)), np.ones((2, 3)), np.ones((2, 2, 1))])
def test_labels_have_a_column_each_and_classes_none(y):
    assert Labels(2).encode(np.ones((3, 2))).dtype == np.float32
    with pytest.raises(ValueError, match="2"):
        Labels(2).encode(y)
    with pytest.raises(ValueError, match="y"):
        TWO.encode(np.array([[3], [5]]))
    with pytest.raises(ValueError, match="4"):
        TWO.encode(np.array([3, 4]))


@pytest.mark.parametrize(
    "targets", [TWO, Labels(2), Numbers(Scaling.none(1), True), Counts(Scaling.none(1), True), Scaling.none(1)]
)
def test_targets_do_not_change(targets):
    with pytest.raises(FrozenInstanceError):
        setattr(targets, next(iter(vars(targets))), None)


def test_a_single_class_is_certain():
    lonely = Classes(np.array([7]))
    assert lonely.n_out == 1 and lonely.probabilities(np.zeros((2, 1))).tolist() == [[1.0], [1.0]]
    assert lonely.decode(np.ones((2, 1))).tolist() == [7, 7]


def test_a_class_may_change_if_two_outputs_are_within_twice_the_margin():
    outputs = np.array([[0.0, 1.0, 2.0], [0.0, 1.0, 1.5], [0.0, 1.0, 1.25], [0.0, 1.0, 1.75]])
    assert THREE.unsure(outputs, 0.25).tolist() == [False, True, True, False]
    assert TWO.unsure(np.array([[0.25], [-0.25], [0.26]]), 0.25).tolist() == [True, True, False]
    assert Labels(2).unsure(np.array([[3.0, 0.25], [3.0, 0.26]]), 0.25).tolist() == [True, False]


@pytest.mark.parametrize(
    ("header", "arrays"),
    [
        ({"kind": "classes"}, {"classes": np.array([2, 1])}),
        ({"kind": "classes"}, {"classes": np.array([1, 1])}),
        ({"kind": "classes"}, {"classes": np.array([0.0, np.inf])}),
        ({"kind": "classes"}, {"classes": np.array([np.nan])}),
        ({"kind": "classes"}, {"classes": np.array([[0, 1]])}),
        ({"kind": "classes"}, {"classes": np.array([], int)}),
        ({"kind": "classes", "names": ["b", "a"], "is_object": False}, {}),
        ({"kind": "classes", "names": ["a", 1], "is_object": True}, {}),
        ({"kind": "classes", "names": ["a", "b"], "is_object": 1}, {}),
        ({"kind": "classes", "names": "ab", "is_object": True}, {}),
        ({"kind": "classes", "threshold": 0.7}, {"classes": np.array([1, 2, 3])}),
        ({"kind": "classes", "threshold": 0.7}, {"classes": np.array([1])}),
        ({"kind": "classes", "positive": 0}, {"classes": np.array([1, 2, 3])}),
        ({"kind": "classes", "threshold": 1.0}, {"classes": np.array([1, 2])}),
        ({"kind": "classes", "positive": 2}, {"classes": np.array([1, 2])}),
        ({"kind": "labels", "count": 0}, {}),
        ({"kind": "labels", "count": 2**31}, {}),
        ({"kind": "labels", "count": True}, {}),
    ],
)
def test_forged_classes_and_labels_are_refused(header, arrays):
    with pytest.raises(ValueError, match=r"^its? "):
        unpack(header, arrays)


@pytest.mark.parametrize("classes", [np.array([0.5, 1.5]), np.array([False, True]), np.array(["a", "b"]), np.array([4])])
def test_classes_of_any_type_come_back(classes):
    assert unpack(*Classes(classes).pack()).classes.tolist() == classes.tolist()
    assert [unpack(*Labels(n).pack()).n_out for n in (1, 1000)] == [1, 1000]


@pytest.mark.parametrize(("threshold", "positive"), [(0.5, 1), (0.7, 1), (0.5, 0), (0.2, 0)])
def test_a_threshold_comes_back(threshold, positive):
    again = unpack(*Classes(np.array(["no", "yes"]), threshold, positive).pack())
    assert (again.threshold, again.positive, again.classes.tolist()) == (threshold, positive, ["no", "yes"])


SCALING = {"total": np.ones(1), "mean": np.zeros(2), "variance": np.ones(2)}


@pytest.mark.parametrize(
    "header",
    [
        {"kind": "numbers", "is_flat": False, "objective": {"name": "poisson"}},
        {"kind": "numbers", "is_flat": False, "objective": {"name": "none such"}},
        {"kind": "numbers", "is_flat": False, "objective": "huber"},
        {"kind": "numbers", "is_flat": True},
        {"kind": "numbers", "is_flat": 0},
        {"kind": "quantiles", "is_flat": False, "objective": {"name": "quantile", "levels": [0.2, 0.5, 0.9]}},
        {"kind": "counts", "is_flat": False, "objective": {"name": "poisson"}, "relative_variance": -1.0},
        {"kind": "counts", "is_flat": False, "objective": {"name": "poisson"}, "relative_variance": np.inf},
        {"kind": "counts", "is_flat": False, "objective": {"name": "poisson"}, "relative_variance": 1},
    ],
)
def test_forged_numbers_are_refused(header):
    with pytest.raises(ValueError, match="its"):
        unpack(header, SCALING)


def test_what_is_just_possible_is_read():
    assert unpack({"kind": "numbers", "is_flat": False}, SCALING).n_out == 2
    levels = {"name": "quantile", "levels": [0.2, 0.9]}
    assert unpack({"kind": "quantiles", "is_flat": False, "objective": levels}, SCALING).n_out == 2
    counts = {"kind": "counts", "is_flat": False, "objective": {"name": "poisson"}, "relative_variance": 0.0}
    assert unpack(counts, SCALING | {"mean": np.array([700.0, -700.0])}).n_out == 2
    with pytest.raises(ValueError, match="counts"):
        unpack(counts, SCALING | {"mean": np.array([0.0, -701.0])})
    assert unpack({"kind": "numbers", "is_flat": False}, SCALING | {"total": np.zeros(1), "variance": np.zeros(2)}).n_out == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"total": np.ones(2)},
        {"total": np.array([-0.5])},
        {"mean": np.zeros(3)},
        {"mean": np.zeros((1, 2))},
        {"mean": np.zeros(2, np.float32)},
        {"mean": np.array([0.0, np.nan])},
        {"variance": np.array([1.0, -0.5])},
    ],
)
def test_forged_scaling_is_refused(wrong):
    with pytest.raises(ValueError, match="its"):
        Scaling.unpack(SCALING | wrong)


def test_two_sets_of_rows_are_scaled_as_one():
    rows = np.random.default_rng(0).normal([1, 20], [3, 0.1], (30, 2))
    first, weight = Scaling.of(rows[:10]), np.r_[np.ones(10), np.full(20, 2.0)]
    both, together = first.merged(Scaling.of(rows[10:], weight[10:])), Scaling.of(rows, weight)
    for name in ("total", "mean", "variance"):
        np.testing.assert_allclose(getattr(both, name), getattr(together, name))
    none = Scaling.none(2)
    assert none.merged(first) is none and none(rows[:1]).tolist() == rows[:1].astype(np.float32).tolist()


def test_a_robust_scale_is_the_interquartile_range_or_the_standard_deviation():
    columns = np.stack([np.arange(101.0), np.r_[np.zeros(100), 10.0]], 1)
    scaling = Scaling.robust(columns, np.ones(101))
    np.testing.assert_allclose(scaling.mean, [50, 0])
    np.testing.assert_allclose(scaling.scale, [50 / 1.349, columns[:, 1].std()], rtol=0.02)


def test_a_column_within_rounding_of_its_mean_is_constant():
    scaling = Scaling(1.0, np.array([1e14, 1e14, 0.0, 0.0]), np.array([1e4, 1e5, 1e-303, 1e-301]))
    np.testing.assert_allclose(scaling.scale, [1e2, np.sqrt(1e5), 1.0, np.sqrt(1e-301)])
    np.testing.assert_allclose(Scaling(1.0, np.array([1e3]), np.zeros(1)).scale, [1.0])
    assert Scaling(1.0, np.array([np.inf, 0, 0]), np.array([1.0, np.nan, 1])).too_large.tolist() == [0, 1]


@pytest.mark.parametrize(("rows", "columns"), [(BLOCK_ROWS + 3, 2), (BLOCK_ROWS, 1), (7, BLOCK_NUMBERS // 2), (2, 0)])
def test_blocks_are_all_rows_in_their_order(rows, columns):
    x = np.broadcast_to(np.arange(float(rows))[:, None], (rows, columns))
    each = [(part, block.shape) for part, block in blocks(x)]
    assert np.concatenate([np.arange(rows)[part] for part, _ in each]).tolist() == list(range(rows))
    assert all(n <= BLOCK_ROWS and n * width <= BLOCK_NUMBERS for _, (n, width) in each)
    assert len(each) == max(-(-rows // BLOCK_ROWS), -(-rows * columns // BLOCK_NUMBERS))


def test_outliers_are_beyond_three_standard_deviations_where_the_loss_is_robust():
    y = np.array([[0.0, 3.0], [3.5, 0.0], [-3.0, 1.0]])
    robust = Numbers(Scaling.none(2), False, AbsoluteError())
    assert robust.typical(y).tolist() == [True, False, True] and Numbers(Scaling.none(2), False).typical(y).all()
    assert Counts(Scaling.none(2), False).typical(y).all()


def test_counts_know_their_relative_variance_and_a_column_of_zeros():
    y, weight = np.array([[1.0, 0.0], [3.0, 0.0], [9.0, 0.0]]), np.array([2.0, 2.0, 0.0])
    counts = Counts.of(y, weight, standardize=True)
    assert counts.relative_variance == pytest.approx((0.25 + 1) / 2), "a rate of 0 is 1 from its own mean"
    np.testing.assert_allclose(np.exp(counts.scaling.mean), [2, 0.5 / 4])
    more = counts.with_more(np.array([[5.0, 4.0]]), np.array([4.0]))
    np.testing.assert_allclose(np.exp(more.scaling.mean), [(4 * 2 + 4 * 5) / 8, (0.5 + 16) / 8])
    plain = Counts.of(y, weight, standardize=False)
    assert plain.with_more(y, weight) is plain
    assert np.isfinite(counts.decode(np.full((1, 2), 1e6))).all()
    counts.encode(np.zeros((1, 2)))
    with pytest.raises(ValueError, match="-1"):
        counts.encode(np.array([[-1.0, 0.0]]))


def test_quantiles_are_flat_only_for_one_level_of_one_column():
    y, pair = np.arange(4.0), Quantile((0.1, 0.9))
    assert Quantiles.of(y, np.ones(4), standardize=True, objective=Quantile((0.5,))).is_flat
    both = Quantiles.of(y, np.ones(4), standardize=True, objective=pair)
    assert not both.is_flat and both.n_out == 2 and both.columns(both.encode(y)).shape == (4, 1)
    wide = Quantiles.of(np.stack([y, 10 * y], 1), np.ones(4), standardize=False, objective=pair)
    assert wide.encode(np.array([[1.0, 2.0]])).tolist() == [[1, 1, 2, 2]]
    with pytest.raises(ValueError, match="3 columns"):
        wide.encode(np.ones((1, 3)))


@pytest.mark.parametrize(
    ("y", "fine"),
    [
        ([0.0, 1e-140], True),
        ([0.0, 1e-155], False),
        ([1e12, 1e12 + 8], True),
        ([1e15, 1e15 + 8], False),
        ([5.0, 5.0], True),
        ([0.0, 1e160], False),
    ],
)
def test_targets_that_vary_by_less_than_a_float_holds_are_refused(y, fine):
    rows, weight = np.array([*y, 77.0]), np.array([1.0, 1.0, 0.0])  # the last row does not count
    if fine:
        Numbers.of(rows, weight, standardize=True)
        return
    with pytest.raises(ValueError, match=r"^y "):
        Numbers.of(rows, weight, standardize=True)
