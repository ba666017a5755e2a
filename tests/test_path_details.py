"""Boundaries of paths that larger tests do not notice: ties, standard errors, rungs, constants, padding; nothing is trained."""

from dataclasses import replace

import jax
import numpy as np
import pytest

import meristem
from drawing import subplots
from meristem import Data, Recipe
from meristem.complexity import UNIT
from meristem.estimators.larger_room import crowded_point, is_clearly_better
from meristem.estimators.training_settings import Room
from meristem.gate import map_gates
from meristem.nn import Network
from meristem.paths.folds import check_weights, constant_losses, fold_weights, has_learned, measured_rows, shuffled_folds
from meristem.paths.halving import _rungs, ahead, better_half, least_loss, promising, trained
from meristem.paths.members import by_number, default_penalties, grid, settings_of
from meristem.paths.penalty_path import knobs_of
from meristem.paths.picture import MOST_NAMES, draw_path
from meristem.paths.result import Path
from meristem.train.hyperparameters import Knobs
from meristem.train.objectives import Binary, Multiclass, Multilabel, SquaredError
from meristem.train.run import begin
from meristem.train.training_data import prepare


def table(losses: list[list[float]], penalties: list[float], **more: np.ndarray) -> Path:
    """A path of one l2, dropout and rate; losses [penalties, folds], fewer parameters at each larger penalty."""
    values = np.array(losses)
    n, folds = values.shape
    zeros = np.zeros(values.size)
    columns = {"penalty": np.repeat(penalties, folds), "l2": zeros, "dropout": zeros, "learning_rate": zeros, "seed": zeros}
    columns |= {"fold": np.tile(np.arange(folds), n), "loss": values.ravel(), "error": values.ravel()}
    columns |= {"n_parameters": np.repeat(100 - np.arange(float(n)), folds)}
    return Path(columns | more, (), np.ones((values.size, 2)))


# ---- which settings stay


def test_once_a_network_settles_earlier_losses_do_not_count():
    network = Network.create("tunnel", 3, 1, width=6, depth=2, key=jax.random.key(0))
    begun = begin(network, Recipe(), Knobs(1e-2, 1e-3), jax.random.key(1))

    def least(losses: list[float], stages: list[int], settle: bool = True) -> float:
        past = {"dev_loss": np.array(losses), "stage": np.array(stages)}
        return least_loss(replace(begun, recipe=Recipe(settle=settle), past=past))

    losses = [0.1, 0.5, 0.4, 0.6]
    assert least(losses, [0, 1, 1, 1]) == 0.4
    assert least(losses, [0, 0, 1, 2]) == 0.1, "two epochs of settling are too few to compare by"
    assert least(losses, [0, 1, 1, 1], settle=False) == 0.1
    assert least([np.nan, 0.5], [0, 0]) == 0.5
    assert least_loss(begun) == np.inf
    assert "0.5" not in repr(replace(begun, past={"dev_loss": np.array([0.5])})), "a history is not printed"


def test_members_stay_while_they_are_ahead_of_what_others_were_at_that_epoch():
    network = Network.create("tunnel", 3, 1, width=6, depth=2, key=jax.random.key(0))
    begun = begin(network, Recipe(), Knobs(1e-2, 1e-3), jax.random.key(1))
    rivals = [
        replace(begun, past={"dev_loss": np.array(losses), "stage": np.zeros(3, int)})
        for losses in ([0.9, 0.8, 0.2], [0.9, 0.6, 0.5])
    ]
    settings = np.zeros(2, int)
    assert ahead([0.7, 0.6], settings, 2, rivals=rivals).tolist() == [True, True], "0.65 for 0.7, though one is behind"
    assert ahead([0.7, 0.6], settings, 3, rivals=rivals).tolist() == [False, False], "0.65 for 0.35"
    assert not ahead([np.inf, 0.1], settings, 1, rivals=rivals).any(), "a member that diverged"


def test_the_setting_for_a_larger_room_is_the_best_or_a_lower_penalty_as_good_that_fills_the_room():
    """Networks whose units fill the room at the two lowest of three penalties."""
    key, room = jax.random.key(0), Room(4, 1)
    network = Network.create("tunnel", 2, 1, width=4, depth=1, key=key)
    full = map_gates(lambda gate: gate.at(jax.numpy.ones_like(gate.value)), network)
    empty = map_gates(lambda gate: gate.at(jax.numpy.zeros_like(gate.value)), network)

    def tried(losses, networks, or_lower=True):
        penalties = [1e-3, 1e-2, 1e-1]
        path = replace(table(losses, penalties), networks=tuple(own for own in networks for _ in losses[0]))
        point = crowded_point(path, room, or_lower=or_lower)
        return None if point is None else point.penalty

    flat = [[1.0, 1.3, 1.1], [1.2, 1.1, 1.05], [1.1, 1.2, 1.0]]
    assert tried(flat, [full, full, empty]) == 1e-3, "as good as the best, within its standard error"
    assert tried(flat, [empty, full, empty]) == 1e-2
    assert tried(flat, [full, full, empty], or_lower=False) is None
    assert tried(flat, [full, full, full]) == 1e-1, "the best itself"
    assert tried(flat, [empty, empty, empty]) is None
    worse = [[2.0, 2.3, 2.1], [2.2, 2.3, 2.0], [1.1, 1.2, 1.0]]
    assert tried(worse, [full, full, empty]) is None


@pytest.mark.parametrize(
    ("losses", "ends", "is_better"),
    [([0.8, 1.1, 0.9], True, True), ([0.8, 1.1, 0.9], False, False), ([0.5, 1.4, 1.4], True, False)],
)
def test_a_larger_room_is_better_if_its_trial_ended_and_gains_more_than_the_standard_error(losses, ends, is_better):
    """One that left early is not comparable: before gates close losses may be lower than at the end."""
    path, trial = table([[1.0, 1.3, 1.1], [1.2, 1.4, 1.3]], [1e-3, 1e-2]), table([losses], [1e-3])
    trial = replace(trial, table=trial.table | {"finished": np.array([True, True, ends])})
    assert is_clearly_better(trial, path) == is_better


def test_a_setting_as_good_as_the_limit_is_not_better():
    losses, settings = [1.0, 1.0, 2.0, 2.0, 3.0, 4.0, 3.5, 4.5], np.repeat(np.arange(4), 2)
    assert promising(losses, settings, limit=3.5).tolist() == [True] * 4 + [False] * 4
    assert promising(losses, settings, limit=3.6).tolist() == [True] * 6 + [False] * 2


def test_half_of_the_settings_is_rounded_up_and_one_always_stays():
    assert better_half([3.0, 1.0, 2.0, 5.0, 4.0], np.arange(5)).tolist() == [True, True, True, False, False]
    assert better_half([2.0, 1.0], np.arange(2)).tolist() == [False, True]
    assert better_half([np.inf, np.inf], np.arange(2)).sum() == 1
    ended = better_half([1.0, 1.0, 2.0, np.inf, 3.0, 3.0], np.repeat(np.arange(3), 2))
    assert ended.tolist() == [True, True, False, False, False, False], "a setting with a member at infinity has left"


def test_a_setting_stays_within_one_standard_error_of_the_best():
    """Behind the best by 1 in the mean: with a standard error of 1.1 it stays, with one of 0.5 it leaves."""
    losses = [[5.0, 5.0, 5.0], [5.5, 5.5, 5.5], [3.8, 7.1, 7.1], [5.0, 6.5, 6.5]]
    stays = promising(np.ravel(losses).tolist(), np.repeat(np.arange(4), 3)).reshape(4, 3)
    assert stays.all(1).tolist() == stays.any(1).tolist() == [True, True, True, False]


def test_equal_settings_stay_together_and_one_that_diverged_leaves():
    assert promising([1.0, 1.0, 1.0], np.arange(3)).all(), "no standard error of a single member"
    stays = promising([1.0, 1.0, 1.0, np.inf, 1.0, 1.0, 1.0, 1.0], np.repeat(np.arange(4), 2))
    assert stays.tolist() == [True, True, False, False, True, True, True, True]


def test_a_rung_is_before_the_last_epoch():
    assert _rungs(160, 5) == [80] and _rungs(161, 5) == [80, 160]
    assert _rungs(16, 400) == [] and _rungs(17, 400) == [16]
    assert _rungs(18, 24) == [17], "400 steps, rounded up to epochs"


# ---- members


def test_numbers_of_a_grid_are_finite_and_not_below_zero():
    numbers = {"penalties": [0.0], "l2s": [0.0], "dropouts": [0.0], "rates": [1e-3]}
    assert [member.fold for member in grid(**numbers)] == [-1]
    for name in numbers:
        with pytest.raises(ValueError):
            grid(**numbers | {name: [np.inf]})
    assert "fold" not in by_number(grid(**numbers))[0] and by_number(grid(**numbers, folds=2))[1]["fold"] == 1


def test_settings_are_numbered_by_all_of_their_knobs():
    members = grid(penalties=[1.0], l2s=[0.0, 1.0], dropouts=[0.0, 0.5], rates=[1e-3], folds=2, seeds=[3, 4])
    assert settings_of(members).tolist() == np.repeat(np.arange(4), 4).tolist()
    more = [members[15], members[0], members[0]]
    assert settings_of(more).tolist() == [0, 1, 1] and [member.l2 for member in more] == [1.0, 0.0, 0.0]


def test_the_highest_penalty_is_the_mean_loss_by_the_cheapest_unit():
    y, weight = np.array([[0.0], [2.0], [4.0]]), np.array([1.0, 3.0, 0.0])
    mean = (0.0 * 1 + 2.0 * 3) / 4
    shares = np.array([1e-5, 1e-4, 1e-3, 1e-2, 1e-1])
    of_units = default_penalties(y, weight, SquaredError(), 5, 1, "units")
    of_parameters = default_penalties(y, weight, SquaredError(), 5, 1, "parameters")
    of_classes = default_penalties(np.array([0, 1]), np.ones(2), Binary(), 5, 1, "units")
    np.testing.assert_allclose(of_units, mean * shares, rtol=1e-6)
    np.testing.assert_allclose(of_parameters, mean * UNIT / 6 * shares, rtol=1e-6)
    np.testing.assert_allclose(of_classes, np.log(2) * shares, rtol=1e-5)


# ---- folds


def test_a_fold_needs_weight_on_both_sides():
    folds = [(np.array([0, 1]), np.array([2, 3])), (np.array([2, 3]), np.array([0, 1]))]
    check_weights(folds, None)
    check_weights(folds, np.array([0.0, 1.0, 0.0, 0.5]))
    for side in (0, 2):
        weight = np.ones(4)
        weight[side : side + 2] = 0
        with pytest.raises(ValueError, match="fold 0"):
            check_weights(folds, weight)
    assert len(shuffled_folds(3, 3, 0)) == 3
    with pytest.raises(ValueError, match="cv=4"):
        shuffled_folds(3, 4, 0)


def test_measured_rows_are_all_that_are_held_out_and_as_many_to_learn_from():
    """Twenty rows, padded to forty: a quarter of forty is held out, which is rounded up to sixteen."""
    folds = [(np.arange(5, 20), np.arange(5)), (np.arange(15), np.arange(15, 20))]
    rows = measured_rows(*fold_weights(folds, 40))
    assert rows.shape == (2, 2, 16) and rows.dtype == np.int32
    for (train, held_out), own in zip(folds, rows, strict=True):
        assert set(own[0, :15].tolist()) == set(train.tolist()) and own[1, :5].tolist() == held_out.tolist()
        assert all(len(set(each.tolist())) == 16 for each in own)
    assert measured_rows(*fold_weights([(np.arange(8, 40), np.arange(8))], 80)).shape == (1, 2, 16), "sixteen stay sixteen"
    assert measured_rows(*fold_weights([(np.arange(3), np.arange(3, 6))], 6)).shape == (1, 2, 6), "no more than there are"


def test_the_held_out_loss_of_the_best_constant():
    fold = [(np.arange(4), np.array([4, 5]))]
    weight = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 3.0])
    labels = np.array([[1.0, 0.0]] * 5 + [[0.0, 1.0]])
    expected = (2 * -np.log(0.9) + 3 * 2 * -np.log(0.1)) / 4  # shares of 0 and 1 are half a row of five from their ends
    np.testing.assert_allclose(constant_losses(labels, weight, fold, Multilabel(), 2), [expected], rtol=1e-5)
    shares = np.array([3 / 4, 1 / 4, 0]) + 1 / 5
    probability = shares / shares.sum()
    classes = np.array([0, 0, 0, 1, 0, 2])
    expected = -(np.log(probability[0]) + 3 * np.log(probability[2])) / 4
    np.testing.assert_allclose(constant_losses(classes, weight, fold, Multiclass(), 3), [expected], rtol=1e-5)
    numbers, weight[0] = np.array([[0.0], [1.0], [2.0], [3.0], [2.0], [4.0]]), 0
    np.testing.assert_allclose(constant_losses(numbers, weight, fold, SquaredError(), 1), [3 * 2**2 / 2 / 4], rtol=1e-5)
    weight[4:] = 0
    assert constant_losses(numbers, weight, fold, SquaredError(), 1).tolist() == [0.0]


def test_a_gain_of_one_percent_is_not_learned_and_a_negative_loss_counts_by_its_size():
    assert not has_learned(np.array([99.0]), np.array([100.0])) and has_learned(np.array([98.9]), np.array([100.0]))
    assert not has_learned(np.array([-101.0]), np.array([-100.0])) and has_learned(np.array([-101.1]), np.array([-100.0]))


def test_a_search_of_one_run_with_several_passes():
    network = Network.create("tunnel", 3, 1, width=6, depth=2, key=jax.random.key(0))
    run = begin(network, Recipe(batch_size=4), Knobs(1e-2, 1e-3, passes=2), jax.random.key(1))
    prepared = prepare(Data(np.ones((4, 3), np.float32), np.ones(4)), network, run.recipe.task)
    (same,) = trained([run], prepared, np.array([0]), max_epochs=0, stays=better_half)
    assert same.epochs == 0 and not same.stopped


def test_members_have_the_knobs_of_the_grid_and_the_rows_of_their_fold():
    members = grid(penalties=[1e-3], l2s=[0.5], dropouts=[0.0, 0.25], rates=[0.1], folds=2, seeds=[0])
    weights = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]), np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    for own, knobs in zip(members, knobs_of(members, weights), strict=True):
        assert (knobs.learning_rate, knobs.penalty, knobs.l2, knobs.dropout or 0.0) == (0.1, 1e-3, 0.5, own.dropout)
        assert (knobs.dropout is None) == (own.dropout == 0), "None compiles no dropout"
        assert knobs.weight.tolist() == weights[0][own.fold].tolist()
        assert knobs.dev_weight.tolist() == weights[1][own.fold].tolist()


# ---- results


@pytest.mark.parametrize(("layers", "has_names"), [(1, False), (2, True), (MOST_NAMES, True), (MOST_NAMES + 1, False)])
def test_a_picture_names_its_layers_if_they_are_few(layers, has_names):
    path = replace(table([[1.0], [2.0]], [1e-3, 1e-1]), layer_sizes=np.ones((2, layers)))
    above, below = subplots(2)
    draw_path(above, below, path, {})
    assert (below.get_legend() is not None) == has_names and above.get_xscale() == below.get_xscale() == "log"
    assert not below.texts


def test_in_a_picture_a_penalty_of_zero_stands_left_of_the_others():
    path = table([[1.0], [2.0], [3.0]], [0.0, 1e-3, 1e-1])
    above, below = subplots(2)
    draw_path(above, below, replace(path, layer_sizes=np.zeros((3, 2))), {})
    zero, first, second = above.transData.transform([(penalty, 1.0) for penalty in (0.0, 1e-3, 1e-1)])[:, 0]
    assert above.get_xlim()[0] < 0 and second - first > first - zero > 0.3 * (second - first), "linear below the least"
    assert [label.get_text() != "" for label in below.texts] == [True], "nothing is open"
    assert "layer_sizes" not in repr(path), "arrays of all members are not printed"


def test_of_equal_points_the_larger_penalty_is_best():
    path = table([[1.0, 2.0], [1.0, 2.0], [3.0, 3.0]], [1e-3, 1e-2, 1e-1])
    assert path.best().penalty == path.within_one_se().penalty == 1e-2
    assert [point.penalty for point in path.frontier()] == [1e-1, 1e-2], "no larger point of the same score"


def test_the_standard_error_is_that_of_the_mean_difference_to_the_best_finished_point():
    path = table(
        [[5.0, 5.0, 5.0], [3.8, 7.1, 7.1], [1.0, 1.0, 1.0]], [1e-3, 1e-2, 1e-1], finished=np.repeat([True, True, False], 3)
    )
    assert path.points[1].standard_error == pytest.approx(1.1) and path.points[0].standard_error == 0
    assert path.within_one_se().penalty == 1e-2
    assert table([[1.0], [2.0]], [1e-3, 1e-2]).points[1].standard_error == 0, "of one member"
    assert table([[1.0, 1.0], [2.0, np.inf]], [1e-3, 1e-2]).points[1].standard_error == 0, "of a member that diverged"


def test_within_one_standard_error_the_other_knobs_are_the_same():
    path = table([[1.0, 2.0], [1.0, 2.1], [1.0, 2.1]], [1e-3, 1e-2, 1e-1], l2=np.repeat([0.0, 0.0, 1.0], 2))
    assert path.within_one_se().penalty == 1e-2


def test_a_member_failed_if_it_is_behind_by_more_than_half():
    """Of the least loss and of the spread, whichever is larger; a member that diverged is no part of the spread."""
    path = table([[2.0, 2.0, 1.0, np.inf], [3.0, 3.1, 1.9, np.inf], [9.0, 2.5, np.inf, np.inf]], [1e-3, 1e-2, 1e-1])
    assert path.replace_failed_folds(path.at(1e-2)) == [4, 1, 2, 7], "1 is less than half of 7, 1.1 and 0.9 more than 1 and 0.5"
    assert path.replace_failed_folds(path.at(1e-1)) == [0, 9, 2, 11]
    tiny = table([[0.001], [0.004]], [1e-3, 1e-2], constant_loss=np.array([0.7, 0.7]))
    assert tiny.replace_failed_folds(tiny.at(1e-2)) == [1], "both have learned nearly all there is to learn"
    poor = table([[0.1], [0.45]], [1e-3, 1e-2], constant_loss=np.array([0.7, 0.7]))
    assert poor.replace_failed_folds(poor.at(1e-2)) == [0], "0.25 is less than half of 0.6"
    early = table([[1.0], [3.0]], [1e-3, 1e-2], finished=np.array([False, True]))
    assert early.replace_failed_folds(early.at(1e-2)) == [1], "nobody is replaced by one that stopped early"


def test_the_nearest_penalty_is_nearest_by_its_logarithm():
    path = table([[1.0], [2.0], [3.0]], [0.0, 1e-4, 1.0])
    assert [path.at(penalty).penalty for penalty in (0.0, 9e-3, 1.1e-2)] == [0.0, 1e-4, 1.0]


@pytest.mark.parametrize("wrong", [{"recipe": Recipe()}, {"key": jax.random.key(0)}])
def test_an_estimator_knows_how_it_is_trained(wrong):
    data = np.ones((4, 2)), np.arange(4) % 2
    with pytest.raises(ValueError, match="recipe"):
        meristem.path(meristem.TunnelClassifier(), data, penalties=[1e-3], **wrong)
