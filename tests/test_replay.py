"""A training by the schedule of others: its own again is the same training, and all rows are trained as long as folds were."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

import meristem
from meristem import Data, Recipe
from meristem.nn import Network
from meristem.train.callbacks import WatcherGroup
from meristem.train.hyperparameters import Knobs
from meristem.train.loop import train_until
from meristem.train.replay import n_held_out, replay, replay_on_all_rows, stage_ends
from meristem.train.run import Run, begin
from meristem.train.training_data import prepare


@pytest.mark.parametrize("options", [{}, {"settle": True, "price": "parameters"}])
@pytest.mark.parametrize("body", ["tunnel", "budding"])
def test_its_own_schedule_again_is_the_same_training(body, options):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((96, 3)).astype(np.float32)
    recipe = Recipe(objective="squared_error", batch_size=16, patience=3, select="loss", **options)
    size = {"depth": 2} if body == "tunnel" else {"capacity": 2}
    network = Network.create(body, 3, 1, width=6, key=jax.random.key(0), **size)
    held = (np.arange(96) % 4 == 0).astype(np.float32)
    knobs = Knobs(1e-2, 1e-3, weight=1 - held, dev_weight=held, patience=3.0)
    data = prepare(Data(x, np.sin(2 * x[:, :1])), network, recipe.task)
    begun = begin(network, recipe, knobs, jax.random.key(1), max_capacity=2)
    run = train_until(begun, data, 200, WatcherGroup([]))
    assert run.stopped
    again = replay(begun, [data], stage_ends([run]))
    assert int(again.epochs) == int(again.best_epoch) == int(run.best_epoch)
    if options:  # what was best is an epoch of the last stage; without settling it may be of an earlier one
        for one, other in zip(jax.tree.leaves(run.best), jax.tree.leaves(again.best), strict=True):
            np.testing.assert_array_equal(one, other)
    later = replace(begun, state=replace(begun.state, epoch=begun.state.epoch + 5), begun_at=np.asarray(5))
    later = train_until(later, data, 2, WatcherGroup([]))
    assert int(later.epochs) == len(later.history["loss"]) == 2, "epochs before a run began do not count"
    in_turn = replay(begun, [data, data], stage_ends([run]))
    for one, other in zip(jax.tree.leaves(again.best), jax.tree.leaves(in_turn.best), strict=True):
        np.testing.assert_array_equal(one, other, err_msg="an epoch of each of two equal blocks")
    kept = slice(int(run.best_epoch))
    np.testing.assert_array_equal(run.history["loss"][kept], again.history["loss"])
    np.testing.assert_array_equal(run.history["rate"][kept], again.history["rate"])


def test_of_several_blocks_the_last_rows_of_each_are_held_out_for_a_temperature():
    """The runs, of one block, need a high temperature; the final network has seen twenty blocks of rows as noisy."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((20 * 60, 5)).astype(np.float32)
    y = (x[:, 0] + x[:, 1] + 1.5 * rng.standard_normal(len(x)) > 0).astype(np.float32)
    recipe = Recipe(batch_size=8, select="loss", calibrate=True, settle=True, price="parameters")
    network = Network.create("tunnel", 5, 1, width=8, depth=2, key=jax.random.key(0))
    blocks = [prepare(Data(x[start : start + 60], y[start : start + 60]), network, recipe.task) for start in range(0, 1200, 60)]
    held = (np.arange(60) >= 48).astype(np.float32)
    knobs = Knobs(1e-2, 0.0, l2=0.0, weight=1 - held, dev_weight=held)
    of_one = [replay(begin(network, recipe, knobs, jax.random.key(1)), blocks[:1], [10, 20, 30])]
    final = replay_on_all_rows(of_one, of_one[0].state, blocks, 60)
    assert n_held_out(60) == 6 and n_held_out(10**6) == 2000
    learned, for_temperature = np.asarray(final.knobs.weight), np.asarray(final.knobs.dev_weight)
    assert learned.tolist() == [1.0] * 54 + [0.0] * 6 and for_temperature.tolist() == (1 - learned).tolist()
    one_block = np.asarray(replay_on_all_rows(of_one, of_one[0].state, blocks[:1], 60).knobs.weight)
    assert one_block.all(), "without more rows than the runs had, their temperature is the best estimate"
    assert final.temperature != of_one[0].temperature


def test_l2_and_dropout_belong_to_the_number_of_rows():
    """Dropout of the inputs is an l2 of p / (1 − p) for linear outputs: that of three times the rows is a third."""
    rng = np.random.default_rng(0)
    network = Network.create("tunnel", 5, 1, width=8, depth=2, key=jax.random.key(0))
    recipe = Recipe(batch_size=8, settle=True, price="parameters")
    x = rng.standard_normal((60, 5)).astype(np.float32)
    block = prepare(Data(x, (x[:, 0] > 0).astype(np.float32)), network, recipe.task)

    def knobs_of(dropout, times):
        knobs = Knobs(1e-2, 0.0, l2=0.3, dropout=dropout, weight=np.ones(60, np.float32))
        run = replay(begin(network, recipe, knobs, jax.random.key(1)), [block], [1, 1, 2])
        return replay_on_all_rows([run], run.state, [block] * times, 60).knobs

    assert float(knobs_of(None, 3).l2) == pytest.approx(0.1) and knobs_of(None, 3).dropout is None
    assert float(knobs_of(0.5, 3).dropout) == pytest.approx(0.25) and float(knobs_of(0.0, 3).dropout) == 0
    assert float(knobs_of(0.5, 1).dropout) == 0.5 and float(knobs_of(0.5, 1).l2) == pytest.approx(0.3)


def test_stages_end_in_the_median_where_those_of_the_folds_did():
    network = Network.create("tunnel", 3, 1, width=6, depth=2, key=jax.random.key(0))
    begun = begin(network, Recipe(), Knobs(1e-2, 1e-3), jax.random.key(1))

    def like(stages: list[int], best: int) -> Run:
        return replace(begun, past={"stage": np.array(stages)}, best_epoch=np.array(best))

    runs = [like([0] * 5 + [1] * 3 + [2] * 4, 11), like([0] * 9 + [1] * 3 + [2] * 9, 20), like([0] * 7 + [1] * 9 + [2] * 3, 17)]
    assert stage_ends(runs).tolist() == [7, 12, 17]
    assert stage_ends([like([0] * 5 + [1] * 5 + [2] * 5, 4)]).tolist() == [4, 4, 4]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_one_network_for_all_rows_is_trained_as_long_as_the_folds_were():
    """With the shapes of test_cv.py, whose programs it uses."""
    X, y = load_iris(return_X_y=True)
    small = {"max_width": 8, "depth": 2, "learning_rate": 0.02, "max_epochs": 25, "random_state": 0}
    search = {"penalties": [1e-3], "l2s": [1e-4], "input_dropouts": [0.0], "cv": 2}
    with pytest.warns(ConvergenceWarning, match="raise max_epochs"):  # a search says what a plain fit would say
        bag = meristem.TunnelClassifierCV(**small, **search).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="raise max_epochs"):
        one = meristem.TunnelClassifierCV(**small, **search, refit="one").fit(X, y)
    assert len(one.estimators_) == 1 and one.n_parameters_ < bag.n_parameters_
    assert one.n_iter_ == int(np.ceil(np.median([fold.best_epoch_ for fold in bag.estimators_])))
    assert one.score(X, y) > 0.9
    bound = meristem.TunnelClassifierCV(**small, **search, price="parameters", budget=40).fit(X, y)
    assert bound.n_parameters_ <= 40 and len(bound.estimators_) == 1, "five networks would have to share a budget"
    assert jnp.isfinite(jnp.asarray(bound.predict_proba(X))).all()
