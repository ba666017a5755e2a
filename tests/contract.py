"""What the library does for any body by its declaration alone: one function for each promise, of networks trained once.

train(create, data) → Trained          create(key) → Network; data [n, …] with targets 0 and 1
for check in CHECKS: check(trained, folder)
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from drawing import subplots
from exporting import assert_close, everywhere
from filing import alike
from meristem import Data, Recipe, fit, hard_size, load, save
from meristem.compact import compact
from meristem.compact.inference import Predictor
from meristem.compact.report import multiply_adds
from meristem.complexity import soft_multiply_adds, soft_parameters
from meristem.gate import Confined, is_confined
from meristem.nn import Network
from meristem.nn.axes import TRAINED, with_axes
from meristem.nn.compaction import trunk_gates
from meristem.pictures import plot_structure
from meristem.show.describe import describe
from meristem.train.live_size import live_part
from meristem.train.programs import run_epoch, unpack
from meristem.train.run import Run
from meristem.train.settle import hard_cost
from meristem.train.training_data import prepare
from soak import FACTOR

# In a soak trainings follow the size, too: each structure is a program. Here one check does.
RECIPE = Recipe(batch_size=20, price="parameters", settle=True, follow=FACTOR > 1, patience=5, depth_decay=1.0)
KEY = jax.random.key(0)
EPOCHS = 60


class Trained(NamedTuple):
    create: Callable[[Any], Network]
    data: Data
    run: Run


def sequences(time: int) -> Data:
    """Two signals over time; 1 where the first jumps up by more than one somewhere."""
    x = np.random.default_rng(0).normal(size=(100, 2, time)).astype(np.float32) * 0.7
    return Data(x, (np.diff(x[:, 0], axis=1).max(1) > 1.3).astype(np.float32))


def train(create: Callable[[Any], Network], data: Data) -> Trained:
    with jax.numpy_rank_promotion("raise"):
        run = fit(create(KEY), data, learning_rate=0.02, penalty=3e-3, key=KEY, recipe=RECIPE, max_epochs=EPOCHS)
    return Trained(create, data, run)


def trained_once(create: Callable[[Any], Network], data: Data) -> Any:
    """A fixture: `train` once for all tests of a file."""
    return pytest.fixture(scope="module", name="trained")(lambda: train(create, data))


@eqx.filter_jit
def outputs(network: Any, x: jax.Array) -> jax.Array:
    """Of all rows, in one program: each operation of its own would be compiled by itself."""
    return jax.vmap(network)(x)


def it_trains(trained: Trained, folder: Path) -> None:
    history, constant = trained.run.history, min(np.mean(trained.data.y), 1 - np.mean(trained.data.y))
    assert history["error"][-1] < 0.6 * constant, "more is learned than which target is more frequent"
    np.testing.assert_allclose(history["soft_size"], history["layer_sizes"].sum(1), rtol=1e-6)


def it_settles(trained: Trained, folder: Path) -> None:
    sizes, network = trained.run.history["hard_size"], trained.run.best
    assert 0 < sizes[-1] < sizes.max() and int(hard_size(network)) == sizes[trained.run.best_epoch - 1]
    soft = trained.run.history["hard_cost"]
    assert soft[-1] < 0.8 * soft.max()


def it_keeps_budgets_in_a_population(trained: Trained, folder: Path) -> None:
    """One program for members of different budgets; a soak also tries prices, and a budget alone."""
    keys = jax.random.split(KEY, 3)
    budgets = np.array([0.25, 0.45, 1.0]) * trained.run.history["hard_cost"].max()
    settings = {"learning_rate": 0.02, "key": keys, "recipe": replace(RECIPE, follow=False), "max_epochs": EPOCHS // 4}
    run = fit(jax.vmap(trained.create)(keys), trained.data, budget=budgets, together=True, **settings)
    members = run.each()
    costs = [float(hard_cost(member.best, RECIPE)) for member in members]
    assert [member.last.members for member in members] == [()] * 3
    for member, cost, most in zip(members, costs, budgets, strict=True):
        assert compact(member.best).n_parameters <= cost <= most
    assert costs[0] < costs[2], "what may be larger is"


def it_trains_in_a_population(trained: Trained, folder: Path) -> None:
    keys, penalty = jax.random.split(KEY, 3), np.array([1e-4, 3e-3, 1.0])
    networks = jax.vmap(trained.create)(keys)
    settings = {"learning_rate": 0.02, "penalty": penalty, "key": keys, "recipe": RECIPE, "max_epochs": 20}
    run = fit(networks, trained.data, together=True, **settings)
    costs = run.history["hard_cost"][-1]
    assert costs[0] > costs[1] > costs[2] and [member.last.members for member in run.each()] == [()] * 3


def it_is_priced(trained: Trained, folder: Path) -> None:
    network, n_trained = everything_open(trained.create(KEY))
    stored = sum(leaf.size for leaf in jax.tree.leaves(network)) - n_trained
    sample = jnp.zeros(network.input_shape)

    def prices(network: Network) -> list[jax.Array]:
        return [soft_parameters(network), soft_multiply_adds(network), network.priced(sample)[1]]

    @eqx.filter_jit
    def prices_and_slopes(network: Network) -> Any:
        return prices(network), eqx.filter_grad(lambda n: sum(prices(n)))(network)

    (parameters, products, units), slopes = prices_and_slopes(network)
    assert float(parameters) == stored
    assert float(products) == multiply_adds(network, sample)
    assert float(units) == sum(values.size for values in trunk_gates(network.axes()).values()) + int(hard_size(network))
    assert all((node.value > 0).all() for node in jax.tree.leaves(slopes, is_leaf=is_confined) if is_confined(node))


def it_keeps_a_budget(trained: Trained, folder: Path) -> None:
    budget = 0.4 * trained.run.history["hard_cost"].max()
    recipe = replace(RECIPE, follow=False)
    settings = {"learning_rate": 0.02, "key": KEY, "recipe": recipe, "max_epochs": EPOCHS // 2}
    run = fit(trained.create(KEY), trained.data, budget=budget, **settings)
    assert compact(run.best).n_parameters <= float(hard_cost(run.best, RECIPE)) <= budget


def its_steps_follow_its_size(trained: Trained, folder: Path) -> None:
    run, data = trained.run, trained.data
    strong = (jnp.asarray(2, jnp.int32), jnp.asarray(7, jnp.int32))  # else all of it is compiled again
    state = eqx.tree_at(lambda s: (s.plateau.stage, s.epoch), run.state, strong)
    live = live_part(state, run.knobs, replace(RECIPE, follow=True))
    assert live is not None and len(live.indices) >= 2
    prepared = prepare(data, run.last, run.recipe.task)
    both = [run_epoch(state, prepared, run.knobs, replace(RECIPE, follow=follow)) for follow in (True, False)]
    (small, small_info), (whole, whole_info) = [(after, unpack(info)) for after, info in both]
    x = jnp.asarray(data.x)
    assert_close(np.asarray(outputs(small.network, x)), np.asarray(outputs(whole.network, x)))
    np.testing.assert_allclose(small_info.loss, whole_info.loss, rtol=1e-4)
    np.testing.assert_allclose(small_info.layer_sizes, whole_info.layer_sizes, rtol=1e-4)


def it_compacts_exactly(trained: Trained, folder: Path) -> None:
    network, x = trained.run.best, jnp.asarray(trained.data.x)
    small, expected = compact(network), outputs(network, x)
    assert_close(np.asarray(outputs(small, x)), np.asarray(expected))
    assert_close(Predictor(small).outputs(np.asarray(trained.data.x)), np.asarray(expected))
    assert small.n_parameters < 0.8 * sum(leaf.size for leaf in jax.tree.leaves(network))


def it_is_exported(trained: Trained, folder: Path) -> None:
    expected = np.asarray(outputs(trained.run.best, jnp.asarray(trained.data.x)))
    for got in everywhere(trained.run.best, np.asarray(trained.data.x)):
        assert_close(got, expected)


def it_is_saved_loaded_and_resumed(trained: Trained, folder: Path) -> None:
    save(folder / "network", trained.run.best)
    assert alike(load(folder / "network"), trained.run.best)
    settings = {"learning_rate": 0.02, "penalty": 3e-3, "key": KEY, "recipe": RECIPE}
    stopped = fit(trained.create(KEY), trained.data, max_epochs=6, **settings)
    save(folder / "run", stopped)
    resumed, uninterrupted = (fit(run, trained.data, max_epochs=10) for run in (load(folder / "run"), stopped))
    assert alike(resumed.state, uninterrupted.state) and alike(resumed.best, uninterrupted.best)


def it_is_drawn_and_described(trained: Trained, folder: Path) -> None:
    axes = plot_structure(trained.run.best, ax=subplots())
    name = type(trained.run.best.body).__name__
    assert axes.get_title().startswith(f"{name} network") and len(axes.patches) + len(axes.collections) > 0
    lines, columns, rows = describe(trained.run.best)
    assert "in its compact form" in lines[-1] and any("trunk" in line for line in lines)
    assert columns[1] == "open units" and len(rows) >= len(trained.run.history["layer_sizes"][0])


CHECKS = [
    it_trains,
    it_settles,
    it_keeps_budgets_in_a_population,
    it_is_priced,
    its_steps_follow_its_size,
    it_compacts_exactly,
    it_is_exported,
    it_is_saved_loaded_and_resumed,
    it_is_drawn_and_described,
    *([it_trains_in_a_population, it_keeps_a_budget] if FACTOR > 1 else []),
]


def everything_open(network: Network) -> tuple[Network, int]:
    """The network with every gate at 1, and how many numbers of it are not shipped: gates that go into the weights."""

    def opened(node: Any) -> Any:
        return Confined(jnp.ones_like(node.value)) if is_confined(node) else node

    whole = jax.tree.map(opened, network, is_leaf=is_confined)
    return whole, sum(leaf.size for entry, leaf in with_axes(whole, whole.axes()) if entry.role == TRAINED and leaf is not None)
