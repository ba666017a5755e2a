"""Stages of any kind in one network: a tree, a highway and a tunnel, each with a trunk of its own, and maps between them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from filing import alike
from meristem import Data, Recipe, fit, grow, hard_size, load, save
from meristem.compact import compact
from meristem.data.spirals import two_spirals
from meristem.nn import Budding, Highway, Linear, Network, Stages, Tunnel, structures
from meristem.show.describe import describe
from meristem.train.optimizer import adam, layer_depths

DATA = Data(*two_spirals("easy"))
RECIPE = Recipe(batch_size=32, price="parameters", settle=True, follow=True, patience=3)


def create(key) -> Network:
    keys = jax.random.split(key, 7)
    parts = [
        Budding(5, capacity=2, learn_width=True, key=keys[0]),
        Linear(5, 7, key=keys[1]),
        Highway(7, 2, key=keys[2]),
        Linear(7, 4, key=keys[3]),
        Tunnel(4, 2, key=keys[4]),
    ]
    return Network(Linear(2, 5, use_bias=False, key=keys[5]), Stages(parts), Linear(4, 1, key=keys[6]))


@pytest.fixture(scope="module")
def run():
    keys = jax.random.split(jax.random.key(0), 2)
    settings = {"learning_rate": 0.01, "penalty": np.array([1e-4, 1e-3]), "key": keys, "recipe": RECIPE, "max_epochs": 12}
    return fit(jax.vmap(create)(keys), DATA, together=True, **settings)


def test_they_learn_in_a_population(run):
    assert run.history["layer_sizes"].shape == (12, 2, 1 + 2 + 2), "one size of a tree, one of each layer"
    assert (run.history["error"][-1] < 0.2).all()


def test_they_are_compacted_saved_and_described(run, tmp_path):
    member = run.each()[0]
    x, network = jnp.asarray(DATA.x), member.best
    expected = jax.vmap(network)(x)
    np.testing.assert_allclose(jax.vmap(compact(network))(x), expected, atol=1e-5 * float(jnp.abs(expected).max()))
    save(tmp_path / "run", run)
    again = load(tmp_path / "run")
    assert alike(again.state, run.state) and alike(again.best, run.best)
    assert [type(part).__name__ for part in structures(network.body)] == ["Nodes", "Gates", "Gates"]
    lines, _, rows = describe(network)
    assert "width 5 → width 7 → width 4" in lines[0] and {row[0][0] for row in rows} == {"1", "2", "3"}


def test_a_tree_in_a_stage_grows():
    network = create(jax.random.key(1))
    parts = list(network.body.parts)
    leafness = parts[0].leafness
    parts[0] = jax.tree.map(lambda leaf: leaf, parts[0])
    object.__setattr__(parts[0], "leafness", leafness.at(leafness.value.at[0].set(0.9)))
    body = Stages(parts)
    state = adam().init(body)
    grown, _, info = grow(body, state, key=jax.random.key(2))
    assert int(info.opened) == 1 and int(hard_size(grown)) == int(hard_size(body)) + 2
    assert int(grown.axes().in_use()) == 2


def test_rates_go_on_where_the_stage_before_ended():
    depths = layer_depths(create(jax.random.key(0)).body)
    assert depths.parts[2].weight.tolist() == [2, 3], "after a leaf and its bud"
    assert depths.parts[4].weight.tolist() == [4, 5]


def test_parts_that_are_none_are_refused():
    with pytest.raises(ValueError, match="parts must be bodies and maps"):
        Stages([lambda x: x])
