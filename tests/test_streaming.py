"""Data that do not fit the device: blocks of rows from the host, the same training."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meristem import Data, Recipe, Watcher, fit, layer_sizes
from meristem.nn import Network
from meristem.train import training_data
from meristem.train.loop import seed_keys
from meristem.train.metrics import evaluate
from meristem.train.objectives import Multilabel
from meristem.train.training_data import prepare, rows_that_fit

RECIPE = Recipe(objective="multilabel", batch_size=8, watch="macro_f1", select="macro_f1")


def data(n: int = 203) -> Data:
    x = np.random.default_rng(0).standard_normal((n, 5)).astype(np.float32)
    y = (x[:, :3] + x[:, 1:4] > 0.4).astype(np.float32)
    return Data(x[:150], y[:150], x[150:], y[150:])


def network(key: jax.Array, body: str = "highway") -> Network:
    return Network.create(body, 5, 3, width=6, key=key, **({"capacity": 2} if body == "budding" else {"depth": 2}))


def train(rows: int | None, body: str = "highway", given: Data | None = None, **options):
    knobs = {"learning_rate": 1e-2, "penalty": 1e-3, "recipe": RECIPE, "max_epochs": 10, "max_capacity": 2}
    return fit(network(jax.random.key(0), body), given or data(), key=jax.random.key(1), rows_at_once=rows, **knobs | options)


@pytest.mark.parametrize("body", ["highway", "budding"])
def test_streamed_training_learns_the_same(body):
    whole, streamed = train(None, body), train(40, body)
    assert streamed.history["loss"][-1] < 0.7 * streamed.history["loss"][0]
    np.testing.assert_allclose(streamed.history["loss"][-1], whole.history["loss"][-1], rtol=0.25)
    again = train(40, body)
    for name, values in streamed.history.items():
        np.testing.assert_array_equal(values, again.history[name])


def test_measures_are_those_of_the_whole_set():
    result, (x, y, dev_x, dev_y, *_) = train(40), data()
    for prefix, samples, targets in (("", x, y), ("dev_", dev_x, dev_y)):
        measures = evaluate(result.last, samples, targets, Multilabel())
        for name in ("loss", "error", "macro_f1"):
            value = getattr(measures, name)
            np.testing.assert_allclose(result.history[prefix + name][-1], value, rtol=1e-5)
    np.testing.assert_allclose(result.history["layer_sizes"][-1], layer_sizes(result.last, jnp.asarray(dev_x)), rtol=1e-5)


def test_every_row_is_seen_once_and_those_without_weight_never():
    """Adam's age counts the steps."""
    x = np.ones((50, 5), np.float32)
    weight = np.r_[np.ones(30), np.zeros(20)]
    result = train(16, given=Data(x, np.ones((50, 3), np.float32), weight=weight), max_epochs=1)
    steps = int(result.state.opt_state[0].age.embed.weight) if hasattr(result.state.opt_state, "__getitem__") else 0
    assert steps == 4  # 16 rows, then 14: two batches of eight each


def test_a_pulse_tells_the_share_of_the_blocks_that_count():
    shares: list[float] = []

    class Notes(Watcher):
        def epoch(self, member, info):
            assert shares == [0.5, 1.0]

        def pulse(self, member, share):
            shares.append(share)

    x = np.ones((50, 5), np.float32)
    given = Data(x, np.ones((50, 3), np.float32), weight=np.r_[np.ones(30), np.zeros(20)])
    train(19, given=given, max_epochs=1, watch=Notes())  # blocks are whole batches: 16 rows


@pytest.mark.parametrize("together", [False, True])
def test_populations_stream_too(together):
    keys = seed_keys([0, 1], 0)
    options = {"learning_rate": 1e-2, "penalty": 1e-3, "key": keys, "recipe": RECIPE, "max_epochs": 2, "together": together}
    whole, streamed = (fit(jax.vmap(network)(keys), data(), rows_at_once=n, **options) for n in (None, 40))
    assert streamed.history["loss"].shape == (2, 2)
    np.testing.assert_allclose(whole.history["loss"], streamed.history["loss"], rtol=0.2)


def test_weights_of_members_stream_too():
    """A row that no weight counts is as good as not there; here it would make the loss infinite."""
    (x, y, *_), keys = data(), seed_keys([0, 1], 0)
    x, weight = x.copy(), np.ones((2, 150))
    x[:75] = 1e30
    weight[:, :75] = 0
    options = {"learning_rate": 1e-2, "penalty": 1e-3, "key": keys, "recipe": RECIPE, "max_epochs": 2, "together": True}
    run = fit(jax.vmap(network)(keys), Data(x, y), rows_at_once=40, weight=weight, dev_weight=weight[0], **options)
    assert np.isfinite(run.last.embed.weight).all() and not run.diverged.any()
    assert np.isfinite(run.history["dev_loss"]).all()


def test_what_fits_is_not_streamed():
    assert rows_that_fit(data()) is None
    given = data()
    size = sum(a.nbytes for a in given if a is not None)
    assert rows_that_fit(given, limit=3 * size) is None
    rows = rows_that_fit(given, limit=size)
    assert rows is not None and 20 <= rows <= 30  # an eighth of the 203


def test_half_of_the_memory_may_be_data_and_a_block_is_an_eighth():
    few = Data(np.zeros((80, 1), np.float32), np.zeros(80, np.float32))  # eight bytes a row
    assert rows_that_fit(few, limit=1280) is None
    assert rows_that_fit(few, limit=1216) == 1216 / 8 / 8
    both = few._replace(dev_x=few.x, dev_y=few.y)
    assert rows_that_fit(both, limit=2560) is None and rows_that_fit(both, limit=2496) == 2496 / 8 / 8
    assert rows_that_fit(few, limit=1) == 1


def test_streamed_networks_that_settle_keep_the_best_of_their_held_out_rows():
    """With a development set the best model is one of the last stage by that set, not simply the last."""
    recipe = Recipe(objective="multilabel", batch_size=8, select="loss", settle=True, patience=2, price="parameters")
    run = train(40, "tunnel", recipe=recipe, learning_rate=0.1, max_epochs=40)
    in_last_stage = run.history["dev_loss"][run.history["stage"] == run.history["stage"].max()]
    best = run.history["dev_loss"][int(run.best_epoch) - 1]
    assert best == in_last_stage.min() and best < in_last_stage[-1]


def test_images_stay_in_the_file_of_a_memory_map(tmp_path, monkeypatch):
    """Bytes are read block by block, and the training is that of the same images in memory."""
    random = np.random.default_rng(0)
    y = random.integers(0, 2, 70).astype(np.float32)
    images = (random.integers(0, 90, (70, 4, 5)) + 150 * y[:, None, None].astype(int)).astype(np.uint8)
    np.save(tmp_path / "images.npy", images)
    mapped = np.load(tmp_path / "images.npy", mmap_mode="r")
    recipe = Recipe(objective="binary", batch_size=8)
    network = Network.create("conv-branch", input_shape=(4, 5), n_out=1, max_width=2, depth=1, key=jax.random.key(0))
    prepared = prepare(Data(mapped, y), network, recipe.task, rows_at_once=16)
    assert prepared.data.x.dtype == np.uint8 and np.shares_memory(prepared.data.x, mapped)
    settings = {"learning_rate": 0.03, "penalty": 0.0, "key": jax.random.key(1), "recipe": recipe, "max_epochs": 3}
    runs = [fit(network, Data(x, y), rows_at_once=16, **settings) for x in (mapped, images)]
    np.testing.assert_array_equal(runs[0].history["loss"], runs[1].history["loss"])
    assert runs[0].history["error"][-1] < 0.2
    monkeypatch.setattr(training_data, "memory", lambda: 2 * mapped.nbytes)
    assert prepare(Data(mapped, y), network, recipe.task).rows_at_once == rows_that_fit(Data(mapped, y), 2 * mapped.nbytes)
    monkeypatch.setattr(training_data, "memory", lambda: 100 * mapped.nbytes)
    assert prepare(Data(mapped, y), network, recipe.task).rows_at_once is None
