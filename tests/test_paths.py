"""Penalty paths: members of one population, folds as weights of rows, and what is said of them together."""

from typing import Any

import jax
import numpy as np
import pytest

import meristem
from drawing import subplots
from meristem.data.spirals import two_spirals
from meristem.nn import Network
from meristem.paths.folds import fold_weights, shuffled_folds
from meristem.paths.halving import promising
from meristem.paths.members import grid
from meristem.paths.result import Path
from meristem.train.hyperparameters import Recipe

RECIPE = Recipe(batch_size=32, patience=3)
PENALTIES = [1e-4, 1e-2, 1.0]


def network() -> Network:
    return Network.create("tunnel", 2, 1, width=4, depth=2, key=jax.random.key(0))


def found(**how: Any) -> Path:
    given: dict[str, Any] = {"penalties": PENALTIES, "learning_rates": [1e-2], "cv": 3, "key": jax.random.key(1)}
    return meristem.path(network(), two_spirals("easy"), **given | {"recipe": RECIPE, "max_epochs": 8} | how)


def table(losses: np.ndarray, penalties: list[float], **more: np.ndarray) -> Path:
    """A path of one l2, dropout and rate; losses [penalties, folds]."""
    n, folds = losses.shape
    zeros = np.zeros(n * folds)
    columns = {"penalty": np.repeat(penalties, folds), "l2": zeros, "dropout": zeros, "learning_rate": zeros}
    columns |= {"fold": np.tile(np.arange(folds), n), "seed": zeros, "loss": losses.ravel(), "error": losses.ravel()}
    columns |= {"n_parameters": np.repeat(100 / (1 + np.arange(n)), folds)}
    return Path(columns | more, (), np.ones((n * folds, 2)))


def test_a_member_of_a_path_is_the_run_that_one_would_have_made_oneself():
    """The rows of its fold alone, its knobs, its key."""
    path = found(penalties=[1e-2], l2s=[1e-4], together=False)
    x, y = two_spirals("easy")[:2]
    learn, held = (np.asarray(path_rows) for path_rows in _first_fold(len(x)))
    key = jax.random.fold_in(jax.random.fold_in(jax.random.key(1), 0), 1)
    weights = fold_weights([(learn, held)], len(x))
    run = meristem.fit(
        network(),
        (x, y),
        learning_rate=1e-2,
        penalty=1e-2,
        l2=1e-4,
        weight=weights[0][0],
        dev_weight=weights[1][0],
        key=key,
        recipe=RECIPE,
        max_epochs=8,
    )
    measured = run.history["dev_loss"][int(run.best_epoch) - 1]
    np.testing.assert_allclose(path.table["loss"][0], measured, rtol=1e-6)  # the same rows, summed in another order
    for one, other in zip(*(jax.tree.leaves(net) for net in (path.networks[0], run.best)), strict=True):
        np.testing.assert_array_equal(one, other)


def _first_fold(rows: int) -> tuple[np.ndarray, np.ndarray]:
    return shuffled_folds(rows, 3, np.asarray(jax.random.key_data(jax.random.key(1))).ravel()[-1].item())[0]


def test_together_and_alone_a_path_is_the_same():
    alone, together = (found(together=flag) for flag in (False, True))
    for name in ("penalty", "fold", "epochs", "n_parameters"):
        np.testing.assert_array_equal(alone.table[name], together.table[name])
    np.testing.assert_allclose(alone.table["loss"], together.table["loss"], rtol=1e-4)


def test_a_table_has_a_row_for_every_combination():
    path = found(penalties=[1e-3, 1e-2], l2s=[0.0, 1e-3], dropouts=[0.0, 0.2], seeds=2, cv=2, max_epochs=1)
    assert {len(column) for column in path.table.values()} == {2 * 2 * 2 * 2 * 2}
    assert len(path.points) == 8 and all(len(point.members) == 4 for point in path.points)
    frame = path.frame()
    assert list(frame["penalty"].unique()) == [1e-3, 1e-2] and len(frame) == 32


def test_a_development_set_of_ones_own_is_scored_without_folds():
    x, y = two_spirals("easy")[:2]
    path = meristem.path(
        network(),
        (x[::2], y[::2], x[1::2], y[1::2]),
        penalties=[1e-2],
        learning_rates=[1e-2],
        cv=None,
        key=jax.random.key(0),
        recipe=RECIPE,
        max_epochs=2,
    )
    assert path.table["fold"].tolist() == [-1]


# ---- what to take


def test_the_one_standard_error_rule_takes_a_larger_price_and_never_a_smaller_one():
    """Differences are paired: fold by fold the second is worse by a little, whatever the fold."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        losses = rng.normal(1, 0.3, (1, 5)) + rng.normal(0, rng.uniform(0.001, 0.2), (6, 5))
        path = table(losses, np.geomspace(1e-4, 1, 6).tolist())
        assert path.within_one_se().penalty >= path.best().penalty
        assert path.within_one_se().loss - path.best().loss <= path.within_one_se().standard_error
    hard_fold = np.array([[1.0, 9.0, 1.0], [1.1, 9.1, 1.1], [1.0, 9.5, 1.1]])
    path = table(hard_fold, [1e-3, 1e-2, 1e-1])
    assert path.best().penalty == 1e-3
    assert path.points[1].standard_error == pytest.approx(0, abs=1e-12), "the same difference in each fold is no chance"
    assert path.within_one_se().penalty == 1e-3


def test_of_points_that_left_early_none_is_taken():
    losses = np.array([[0.1, 0.1], [0.5, 0.5]])
    path = table(losses, [1e-3, 1e-2], finished=np.array([False, False, True, True]))
    assert path.best().penalty == path.within_one_se().penalty == 1e-2


def test_frontier_and_at():
    path = table(np.array([[0.1, 0.2], [0.5, 0.5], [0.3, 0.3]]), [1e-3, 1e-2, 1e-1])
    assert [point.penalty for point in path.frontier()] == [1e-1, 1e-3]
    assert path.at(3e-2).penalty == 1e-2
    assert path.at(1e-9).penalty == 1e-3


@pytest.mark.parametrize("scores", [None, [0.9, 0.5, 0.7]], ids=["loss", "score"])
def test_the_picture_of_a_frontier_marks_its_points_and_no_others(scores):
    """Errors are in another order than what points are chosen by."""
    losses = np.array([[0.1, 0.2], [0.5, np.nan], [0.3, 0.3]])
    more = {"error": np.repeat([0.3, 0.2, 0.1], 2)} | ({} if scores is None else {"score": np.repeat(scores, 2)})
    path = table(losses, PENALTIES, **more)
    name = "loss" if scores is None else "score"
    ax = path.plot_frontier(ax=subplots())
    x, y = ax.get_lines()[0].get_data()
    assert x.tolist() == [point.n_parameters for point in path.frontier()] and len(x) == 2
    assert y.tolist() == [getattr(point, name) for point in path.frontier()] and ax.get_ylabel() == f"held-out {name}"


def test_a_frontier_of_one_point_is_a_ring_and_promises_no_line():
    path = table(np.array([[0.5, 0.5], [0.4, 0.4], [0.3, 0.3]]), PENALTIES)
    ax = path.plot_frontier(ax=subplots())
    (marked,), (named,) = ax.get_lines(), ax.get_legend().get_lines()
    assert len(marked.get_xdata()) == len(path.frontier()) == 1
    assert {one.get_linestyle() for one in (marked, named)} == {"None"} and {marked.get_marker(), named.get_marker()} == {"o"}


def test_points_that_left_early_are_on_no_frontier_and_come_last_at_their_price():
    """The first two settings share a price; the last one has one of its own."""
    losses = np.array([[0.2, 0.2], [0.1, 0.1], [0.3, 0.3], [0.05, 0.05]])
    ends = np.repeat([True, False, True, False], 2)
    path = table(losses, [1e-3, 1e-3, 1e-2, 1e-1], l2=np.repeat([0.0, 1.0, 0.0, 0.0], 2), finished=ends)
    assert [point.penalty for point in path.frontier()] == [1e-2, 1e-3] and path.frontier()[1].l2 == 0
    drawn = path.plot_frontier(ax=subplots()).collections[0].get_offsets()
    np.testing.assert_allclose(drawn[:, 1], [0.2, 0.3])
    assert path.at(1e-3).is_finished and path.at(1e-3).l2 == 0 and path.at(1e-1).penalty == 1e-1
    assert not path.at(1e-1).is_finished and path.best() == path.at(1e-3)
    all_left = table(losses[:2], [1e-3, 1e-2], finished=np.zeros(4, bool))
    assert [point.penalty for point in all_left.frontier()] == [1e-2] and not all_left.frontier()[0].is_finished
    assert all_left._repr_html_().count("no, its loss is not comparable") == 2


def test_a_setting_that_diverged_is_not_taken():
    path = table(np.array([[np.inf, 0.1], [0.5, 0.5]]), [1e-3, 1e-2])
    assert path.best().penalty == 1e-2


def test_halving_keeps_the_better_half_and_what_is_not_clearly_behind():
    settings = np.repeat(np.arange(4), 3)
    losses = np.array([[1.0, 1.1, 0.9], [1.0, 1.4, 0.8], [2.0, 2.1, 1.9], [1.3, 1.4, 1.2]])
    assert promising(losses.ravel().tolist(), settings).reshape(4, 3).all(1).tolist() == [True, True, False, False]
    recipe = Recipe(batch_size=2, patience=20)
    path = found(halving=True, max_epochs=40, penalties=[1e-4, 1e-3], l2s=[1e-5, 30.0], recipe=recipe)
    left = ~path.table["finished"] & (path.table["epochs"] < 40)
    assert left[path.table["l2"] == 30.0].all(), "a huge l2 leaves at a rung"
    assert path.best().l2 == 1e-5


def test_pictures_of_a_path():
    path = found(max_epochs=3)
    above, below = subplots(2, 1, figsize=(6, 5))
    assert path.plot_path(ax=[above, below]) is above
    assert above.get_xscale() == "log" and below.get_xlabel() == "penalty"
    assert path.plot_frontier(ax=subplots()).get_xlabel() == "parameters"


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"penalties": "auto"}, "penalties="),
        ({"penalties": []}, "penalties is empty"),
        ({"penalties": [-1.0]}, "penalties=-1.0 must be"),
        ({"cv": 1}, "cv=1 must be at least 2"),
        ({"cv": [([0, 1], [])]}, "fold 0 has no held-out rows"),
        ({"key": None}, "key=jax.random.key"),
    ],
)
def test_what_does_not_fit_is_one_line(how, said):
    with pytest.raises(ValueError, match=said) as error:
        found(**how)
    assert "\n" not in str(error.value)


def test_a_grid_is_in_the_order_of_the_price():
    members = grid(penalties=[1, 0.1, 1], l2s=[0.0], dropouts=[0, 0.0], rates=[1e-3], folds=2)
    assert [(member.penalty, member.fold) for member in members] == [(0.1, 0), (0.1, 1), (1, 0), (1, 1)]


def test_a_member_that_failed_gives_its_place_to_the_best_of_its_fold():
    """Fold 1 at the smaller penalty stayed where it began; that the other one is a little better in fold 2 means nothing."""
    names = ("l2", "dropout", "learning_rate", "seed", "error", "n_parameters")
    table = {"penalty": np.repeat([1e-3, 1e-2], 3), "fold": np.tile([0, 1, 2], 2)} | {name: np.zeros(6) for name in names}
    table["loss"] = np.array([0.03, 0.44, 0.04, 0.30, 0.20, 0.035])
    path = Path(table, (), np.zeros((6, 1)))
    assert path.replace_failed_folds(path.at(1e-3)) == [0, 4, 2]
    assert path.replace_failed_folds(path.at(1e-2)) == [0, 4, 5]


def test_settings_are_chosen_by_a_score_of_ones_own():
    """Of a network a function of what is held out; more is better, and ties go to the larger price."""
    x = two_spirals("easy")[0]
    held = [
        rows for _, rows in shuffled_folds(len(x), 3, np.asarray(jax.random.key_data(jax.random.key(1))).ravel()[-1].item())
    ]
    seen = []

    def score(one: Network, rows: Any, targets: Any) -> float:
        seen.append((np.asarray(rows), np.asarray(targets)))
        return -float(np.abs(np.asarray(jax.vmap(one)(rows))).mean())

    by_score, by_loss = found(scoring=score, max_epochs=4), found(max_epochs=4)
    assert len(seen) == 9 and all(np.array_equal(seen[m][0], x[held[m % 3]]) for m in range(9))
    assert np.array_equal(by_score.table["loss"], by_loss.table["loss"]) and "score" not in by_loss.table
    means = by_score.table["score"].reshape(3, 3).mean(1)
    assert by_score.best().score == pytest.approx(means.max()) and by_score.best().penalty == PENALTIES[int(means.argmax())]
    assert by_loss.best().score == -by_loss.best().loss
    above = by_score.plot_path(ax=subplots(2, 1))
    assert above.get_ylabel() == "held-out score"
    with pytest.raises(ValueError, match=r"^scoring='auc' must be a function"):
        found(scoring="auc")


def test_who_looks_on_is_told_what_the_members_are():
    """Before their first epoch, by the numbers that epochs are told with."""
    told: list[Any] = []

    class Notes(meristem.Watcher):
        def begin(self, settings: Any) -> None:
            told.append(dict(settings))

        def epoch(self, member: int, info: Any) -> None:
            told.append(member)

    path = found(penalties=[1e-3, 1e-2], cv=2, max_epochs=1, watch=[Notes(), print])
    first, *members = told
    assert sorted(members) == sorted(first) == [0, 1, 2, 3]
    names = ("penalty", "l2", "dropout", "learning_rate", "fold", "seed")
    assert [tuple(first[m].values()) for m in first] == list(zip(*(path.table[name].tolist() for name in names), strict=True))


def test_progress_of_the_whole_begins_with_how_many_there_are(capsys, monkeypatch):
    monkeypatch.setattr("meristem.show.progress.PLAIN_SECONDS", 0.0)
    found(penalties=[1e-2], max_epochs=6, verbose=True)
    assert "path, all members: epoch" in (said := capsys.readouterr().err) and said.startswith(
        "path, all members: 3 networks\n"
    )


def test_settings_that_left_early_are_rings():
    """They are no part of the curve: what they had reached is not comparable."""
    losses = np.array([[0.5, 0.6], [0.4, 0.5], [0.1, 0.2]])
    path = table(losses, PENALTIES, finished=np.array([True] * 4 + [False] * 2))
    above = path.plot_path(ax=subplots(2, 1))
    curve, rings = above.get_lines()[:2]
    assert curve.get_xdata().tolist() == PENALTIES[:2] and rings.get_xdata().tolist() == PENALTIES[2:]
    assert above.get_legend().get_texts()[0].get_text() == "stopped early (not comparable)"
    assert path._repr_html_().count("no, its loss is not comparable") == 1


def test_a_penalty_of_nothing_is_drawn_too():
    path = table(np.array([[0.5, 0.6], [0.4, 0.5], [0.3, 0.2]]), [0.0, 1e-3, 1e-2])
    above = path.plot_path(ax=subplots(2, 1))
    assert above.get_lines()[0].get_xdata().tolist() == [0.0, 1e-3, 1e-2] and above.get_xlim()[0] < 0


def test_a_path_on_which_nothing_opens_is_drawn():
    path = table(np.array([[0.5, 0.6], [0.4, 0.5]]), PENALTIES[:2])
    below = subplots(2, 1)
    Path(path.table, (), np.zeros((4, 2))).plot_path(ax=below)
    assert [text.get_text() for text in below[1].texts] == ["nothing is open: a linear map is enough"]
