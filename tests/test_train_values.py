"""What training computes with besides networks: bounds of arguments, schedules, averages, capacities, when to save; no fit."""

from dataclasses import replace
from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from meristem import Data, Knobs, Recipe
from meristem.nn import Network
from meristem.train import saving
from meristem.train.epoch import steps_per_epoch
from meristem.train.hyperparameters import check_knobs, check_rows
from meristem.train.live_size import _first, _is_time, _position, adapt_capacity
from meristem.train.loop import DivergedError
from meristem.train.programs import _blocks, parts_of
from meristem.train.replay import UNLIMITED
from meristem.train.run import Run, at_stage, begin, settling, stacked
from meristem.train.saving import Saver
from meristem.train.settle import n_rows, next_penalty
from meristem.train.train_state import FIELDS, Average, EpochInfo, Plateau, fit_to_recipe, select
from meristem.train.training_data import check_data, product, to_float

KEY = jax.random.key(0)
KNOBS = Knobs(1e-2, 1e-3)


def network(body: str = "tunnel") -> Network:
    size = {"depth": 2} if body == "tunnel" else {"capacity": 4}
    return Network.create(body, 3, 1, width=6, key=KEY, **size)


def begun(recipe: Recipe = Recipe()) -> Run:
    return begin(network(), recipe, KNOBS, jax.random.key(1))


# ---- arguments


@pytest.mark.parametrize(
    ("name", "fine", "wrong"),
    [
        ("learning_rate", 1e-9, 0.0),
        ("penalty", 0.0, -1e-9),
        ("l2", 0.0, -1e-9),
        ("dropout", 0.0, 1.0),
        ("dropout", 0.99, -0.01),
        ("budget", 1.0, 0.9),
        ("patience", 1.0, 0.9),
        ("passes", 1, 0),
        ("penalty", 1e38, 1e39),
        ("l2", 1, np.inf),
    ],
)
def test_bounds_of_the_knobs(name, fine, wrong):
    assert np.shape(getattr(check_knobs(KNOBS._replace(**{name: fine}), (2,)), name)) == (2,)
    with pytest.raises(ValueError, match=name):
        check_knobs(KNOBS._replace(**{name: wrong}), ())
    with pytest.raises(ValueError, match=name):
        check_knobs(KNOBS._replace(**{name: np.full(3, fine)}), (2,))


@pytest.mark.parametrize("name", ["weight", "dev_weight"])
def test_weights_are_of_rows_or_of_the_rows_of_each_member(name):
    def shape(weight, members):
        return getattr(check_knobs(KNOBS._replace(**{name: weight}), members), name).shape

    assert shape(np.array([1.0, 0.0]), ()) == (2,) and shape(np.array([True, False]), ()) == (2,)
    assert shape(np.array([1.0, 0.0]), (3,)) == (3, 2) and shape(np.ones((3, 2)), (3,)) == (3, 2)
    negative, nothing = np.array([1.0, -1.0]), np.array([[1.0, 1.0], [0.0, 0.0]])
    for weight, members in [
        (np.ones((2, 2)), ()),
        (np.ones(()), ()),
        (np.ones((2, 2)), (3,)),
        (np.ones((3, 2, 1)), (3,)),
        (negative, ()),
        (np.array([1.0, np.inf]), ()),
        (np.zeros(2), ()),
        (nothing, (2,)),
        (np.array(["a", "b"]), ()),
    ]:
        with pytest.raises(ValueError, match=name):
            shape(weight, members)


def test_weights_belong_to_the_rows_of_their_set():
    x, y = np.ones((4, 3)), np.ones(4)
    check_rows(KNOBS._replace(weight=np.ones(4), dev_weight=np.ones(4)), Data(x, y))
    check_rows(KNOBS._replace(weight=np.ones(4), dev_weight=np.ones((2, 2))), Data(x, y, x[:2], y[:2]))
    for wrong in ({"weight": np.ones(2)}, {"dev_weight": np.ones(4)}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            check_rows(KNOBS._replace(**wrong), Data(x, y, x[:2], y[:2]))


@pytest.mark.parametrize(
    ("name", "fine", "wrong"),
    [
        ("depth_decay", 1.0, 0.0),
        ("depth_decay", 0.1, 1.1),
        ("linger", 0.1, 0.0),
        ("linger", 9.0, np.inf),
        ("b2", 0.5, 1.0),
        ("b2", 0.1, 0.0),
        ("scales", (1.0,), ()),
        ("scales", (0.1, 2.0), (1.0, 0.0)),
        ("batch_size", 1, 0),
        ("watch", "error", "cost"),
        ("price", "parameters", "weight"),
        ("optimizer", None, "adam"),
        ("optimizer", optax.sgd(0.1), SimpleNamespace(init=None)),
        ("optimizer", optax.sgd(0.1), SimpleNamespace(update=None)),
    ],
)
def test_bounds_of_a_recipe(name, fine, wrong):
    Recipe(**{name: fine})
    with pytest.raises(ValueError, match=name):
        Recipe(**{name: wrong})


def test_shapes_of_data():
    task, x, y = Recipe().task, np.ones((4, 3)), np.array([0, 1, 1, 0])
    assert check_data((x, y), network(), task).x.dtype == np.float32
    assert check_data(Data(x.astype(np.uint8), y, weight=np.r_[0.0, 1, 1, 1]), network(), task).x.dtype == np.uint8
    assert check_data([x, y, x[:1], y[:1], y + 1, y[:1] + 1], network(), task).dev_weight.shape == (1,)
    for wrong in [
        (x,),
        (x, y, x, y, y, y, y),
        {"x": x},
        (x[:0], y[:0]),
        (x[:, :2], y),
        (x[:, 0], y),
        (x, y[:3]),
        (x, 1),
        (x, y, x),
        Data(x, y, weight=np.zeros(4)),
        Data(x, y, weight=np.ones(3)),
        Data(x, y, weight=np.r_[-1.0, 1, 1, 1]),
        (np.full((4, 3), np.nan), y),
        (np.full((4, 3), "a"), y),
    ]:
        with pytest.raises(ValueError):
            check_data(wrong, network(), task)


def test_bytes_are_shares_of_255():
    assert to_float(jnp.array([0, 51, 255], jnp.uint8)).tolist() == pytest.approx([0, 0.2, 1])
    assert to_float(jnp.array([0, 51], jnp.int32)).tolist() == [0, 51]


# ---- numbers of steps, rows and parts


def test_numbers_of_steps_parts_and_rows():
    assert [steps_per_epoch(10, size) for size in (1, 3, 5, 10, 99)] == [10, 4, 2, 1, 1]
    assert [parts_of(steps) for steps in (640, 641, 1280, 1281, 1301, 1563)] == [1, 2, 2, 3, 3, 3]
    assert [n_rows(n) for n in (255, 512, 514, 2048, 2050)] == [255, 256, 257, 1024, 1024]
    assert product(None, None) is None and product(2, None) == product(None, 2) == 2 and product(2, 3) == 6


def test_blocks_are_the_rows_that_count_and_padding_has_no_weight():
    x, weight = np.arange(5.0), np.array([1.0, 0.0, 2.0, 3.0, 4.0])
    rows = np.arange(5)
    blocks = [(block.x.tolist(), block.weight.tolist(), own.tolist()) for block, own in _blocks(x, x, weight, rows, 3)]
    assert blocks == [([0, 2, 3], [1, 2, 3], [0, 2, 3]), ([4, 0, 0], [4, 0, 0], [4, 0, 0])]
    assert [block.weight.tolist() for block, _ in _blocks(x[:2], x[:2], None, None, 2)] == [[1, 1]]


# ---- the schedule


def test_a_plateau_drops_after_its_patience_and_ends_after_its_last_stage():
    def after(measures, **options):
        plateau = Plateau.start()
        for value in measures:
            plateau = plateau.after(jnp.float32(value), patience=2, stages=2, **options)
        return int(plateau.stage), int(plateau.since), float(plateau.best)

    assert after([3, 2, 1]) == (0, 0, 1) and after([1, 1]) == (0, 1, 1) and after([1, 2, np.nan]) == (1, 0, 1)
    assert after([1, 1, 1, 1]) == (1, 1, 1) and after([1] * 5) == (2, 0, 1) and after([1] * 9)[0] == 2
    assert after([2, 1.5], tolerance=0.5) == (0, 1, 2) and after([2, 1.25], tolerance=0.5) == (0, 0, 1.25)


def test_stages_by_their_number():
    def flags(stage: int) -> list[bool]:
        plateau = Plateau.start()._replace(stage=jnp.int32(stage))
        return [bool(flag) for flag in (plateau.has_dropped, plateau.is_last(3), plateau.is_stopped(3))]

    assert [flags(stage) for stage in range(4)] == [[False] * 3, [True, False, False], [True, True, False], [True] * 3]


def test_a_run_moves_to_the_stage_that_leaves_time_for_those_that_follow():
    run = begun(Recipe(settle=True))
    stages = [int(settling(run, left, 5).state.plateau.stage) for left in (100, 11, 10, 6, 5, 1)]
    assert stages == [0, 0, 1, 1, 2, 2] and int(settling(run, 1, 0).state.plateau.stage) == 2
    ahead = eqx.tree_at(lambda s: s.plateau, run.state, Plateau(jnp.float32(0.5), jnp.int32(3), jnp.int32(1)))
    ahead = replace(run, state=replace(ahead, best=(jnp.float32(0.1), jnp.float32(0.2))))
    assert at_stage(ahead, 1) is ahead
    moved = at_stage(ahead, 2).state
    assert [float(v) for v in (*moved.plateau, *moved.best)] == [0.5, 0, 2, np.inf, np.inf]
    first = at_stage(
        replace(ahead, state=replace(ahead.state, plateau=ahead.state.plateau._replace(stage=jnp.int32(0)))), 1
    ).state
    assert [float(v) for v in first.plateau] == [np.inf, 0, 1] and float(first.best[0]) == pytest.approx(0.1)


def test_the_average_is_over_the_last_stage():
    """The mean of the first epochs, then a share of 0.15 of the newest; a tree that moves begins anew."""
    plain = network()
    at = jax.jit(lambda value: jax.tree.map(lambda leaf: jnp.full_like(leaf, value), plain))
    step = jax.jit(lambda average, network, is_last, moved: average.after(network, is_last, moved))
    yes, no = jnp.asarray(True), jnp.asarray(False)
    average = step(Average(at(0.5), jnp.int32(0)), at(0.75), no, no)
    assert int(average.epochs) == 0 and float(average.network.head.bias[0]) == 0.75

    expected = 0.0
    for epoch in range(1, 10):
        value = 0.1 * epoch
        expected += max(1 / epoch, 0.15) * (value - expected)
        average = step(average, at(value), yes, no)
        assert float(average.network.head.bias[0]) == pytest.approx(expected, rel=1e-5)
    assert int(average.epochs) == 9
    average = step(average, at(0.25), yes, yes)
    assert int(average.epochs) == 1 and float(average.network.head.bias[0]) == 0.25


def test_a_state_has_an_average_where_the_recipe_settles():
    state = begun().state
    settles = fit_to_recipe(state, Recipe(settle=True))
    assert state.average is None and settles.average is not None and int(settles.average.epochs) == 0
    assert fit_to_recipe(settles, Recipe(settle=True)) is settles and fit_to_recipe(settles, Recipe()).average is None


def test_members_are_selected_one_by_one():
    keys = jax.random.split(KEY, 2)
    first, second = {"a": jnp.ones((2, 3)), "key": keys}, {"a": jnp.zeros((2, 3)), "key": keys[::-1]}
    picked = select(jnp.array([True, False]), first, second)
    assert picked["a"].tolist() == [[1] * 3, [0] * 3]
    assert jax.random.key_data(picked["key"]).tolist() == 2 * [jax.random.key_data(keys[0]).tolist()]


def test_the_price_of_a_budget_is_bounded():
    knobs = Knobs(1e-3, np.float32(9.9e-4), budget=np.float32(100))
    assert float(next_penalty(knobs, 1e6)) == pytest.approx(1e-3) and float(next_penalty(knobs, 0.0)) == pytest.approx(1e-5)


# ---- what an epoch is trained with


def info(**values) -> EpochInfo:
    zeros = {name: np.zeros(2, np.int32) for name in FIELDS} | {"layer_sizes": np.ones((2, 3))}
    flags = {name: np.zeros(2, bool) for name in ("improved", "stopped", "diverged")}
    floats = {name: np.zeros(2) for name in ("rate", "loss", "error", "dev_loss", "dev_error", "macro_f1", "dev_macro_f1")}
    return EpochInfo(**zeros | flags | floats | {"hard_cost": None, "temperature": None} | values)


def test_an_info_by_name():
    epoch = info(macro_f1=None, epoch=np.array([3, 4]))
    assert {"macro_f1", "dev_macro_f1"} & {*epoch.keys()} == {"dev_macro_f1"} and epoch["soft_size"].tolist() == [3, 3]
    assert epoch.member(1)["epoch"] == 4 and isinstance(epoch.member(1)["epoch"], int)
    with pytest.raises(KeyError):
        epoch["macro_f1"]


def test_a_capacity_doubles_when_an_opening_waits_and_is_halved_when_half_would_do():
    state = begin(network("budding"), Recipe(), KNOBS, jax.random.key(1)).state
    one, waited = np.array([0, 1]), np.array([True, False])

    def capacity(least: int, most: int, **values) -> int:
        return adapt_capacity(state, info(**values), least, most).network.capacity

    assert capacity(1, 16, waited=one) == 8 and capacity(1, 6, waited=one) == 6 and capacity(1, 2, waited=one) == 4
    assert capacity(1, 16, waited=one, stopped=~waited, most_leaves=np.array([3, 0])) == 4, "one that stopped does not wait"
    assert capacity(1, 16) == 2 and capacity(2, 16) == 2 and capacity(3, 16) == 4
    assert capacity(1, 16, most_leaves=np.array([2, 1])) == 2 and capacity(1, 16, most_leaves=np.array([3, 1])) == 4
    assert capacity(1, 16, most_leaves=np.array([3, 1]), stopped=waited) == 2
    assert capacity(1, 16, stopped=np.array([True, True])) == 4


def test_steps_follow_the_size_from_the_first_drop_on_but_for_every_fifth_epoch():
    def is_time(stage, epoch: int, *, settle: bool = True, diverged: bool = False, **knobs) -> bool:
        recipe = Recipe(settle=settle, follow=True)
        plateau = Plateau.start()._replace(stage=jnp.asarray(stage, jnp.int32))
        state = replace(begun().state, plateau=plateau, epoch=jnp.int32(epoch), diverged=jnp.asarray(diverged))
        return _is_time(state, KNOBS._replace(**knobs), recipe)

    assert not is_time(0, 6) and is_time(1, 6) and not is_time(1, 5) and not is_time(1, 10)
    assert is_time(2, 5) and not is_time(2, 5, settle=False) and is_time(2, 6, settle=False)
    assert is_time(1, 5, budget=100.0) and not is_time(0, 6, budget=100.0)
    assert not is_time(3, 6) and not is_time(1, 6, diverged=True)
    assert not is_time([0, 2], 6) and is_time([3, 2], 5) and not is_time([1, 2], 5) and is_time([1, 2], 6)


def test_indices_of_what_is_open_and_where_they_are_in_a_list():
    flags = np.zeros((2, 12), bool)
    flags[0, [1, 5, 6, 7, 11]] = flags[1, 3] = True
    assert _first(flags).tolist() == [[1, 5, 6, 7, 11], [3, 12, 12, 12, 12]]
    assert _first(flags[1:]).tolist() == [[3, 12, 12, 12]] and _first(flags[1:], least=1).tolist() == [[3]]
    assert _first(np.ones(3, bool)).tolist() == [0, 1, 2] and _first(np.zeros(3, bool)).tolist() == [3, 3, 3]
    assert [_first(np.arange(100) < n).size for n in (3, 5, 33, 65, 98)] == [4, 5, 40, 80, 100]
    assert _position(np.array([4, 9, 0]), np.array([0, 9, 4, 9]), 9).tolist() == [2, 4, 0], "9 is padding"


# ---- several runs, and when they are saved


def test_a_member_that_stopped_keeps_its_last_values_without_events():
    runs = [replace(begun(), past={"loss": np.arange(n, 0.0, -1), "opened": np.ones(n, int)}) for n in (1, 3)]
    history = stacked(runs).history
    assert history["loss"].tolist() == [[1, 3], [1, 2], [1, 1]] and history["opened"].tolist() == [[1, 1], [0, 1], [0, 1]]
    assert stacked([begun(), runs[1]]).history["loss"].tolist() == [[0, 3], [0, 2], [0, 1]]


def test_the_temperature_of_a_run_is_that_of_its_best_epoch():
    run = replace(begun(), past={"temperature": np.array([1.5, 2.5, 3.5])})
    assert [float(replace(run, best_epoch=np.array(best)).temperature) for best in (0, 1, 3)] == [1.5, 1.5, 3.5]
    assert begun().temperature == 1 and begun().patience == 20
    assert replace(run, knobs=KNOBS._replace(patience=np.array([3.0, 7.0]))).patience == 7


@pytest.mark.parametrize(("rate", "advice"), [(1.0, "0.003"), (1e-3, "0.0001")])
def test_advice_after_divergence_is_a_tenth_of_the_rate_and_at_most_a_usual_one(rate, advice):
    run = replace(begun(), past={"rate": np.array([rate])}, best_epoch=np.array(0))
    assert f"learning_rate={advice} " in str(DivergedError(run)) and UNLIMITED > 10**6


def test_runs_are_saved_at_intervals_and_for_a_twentieth_of_the_time(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(saving.time, "monotonic", lambda: now[0])
    saved: list[str] = []

    def save(name, run):
        saved.append(f"{name} at {now[0]:g}")
        now[0] += 6

    saver, run = Saver(save, seconds=100), begun()

    def offer(at: float) -> None:
        now[0] = at
        saver.offer("run", lambda: run)
        saver.close()

    for at in (99, 100, 205, 206, 239, 240, 400):
        offer(at)
    assert saved == ["run at 100", "run at 240", "run at 400"], "100 s apart, and 12 of 240 s are a twentieth"
    assert saver.spent == 18
    now[0] = 401
    saver.offer("run", lambda: run)
    saver.forget()
    saver.now()
    assert len(saved) == 3
