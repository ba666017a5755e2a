"""The cost of an epoch follows the size: what is closed is left out, and nothing else changes."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import meristem
from meristem.gate import is_confined
from meristem.nn import Network
from meristem.train.hyperparameters import Knobs, Recipe
from meristem.train.live_size import live_part, restore, shrink
from meristem.train.run import Run, advance, begin
from soak import FACTOR, many

N_IN, N_OUT, WIDTH = 6, 3, 24
RECIPE = Recipe(objective="multiclass", batch_size=16, settle=True, follow=True, price="parameters")
KNOBS = Knobs(1e-2, 1e-6, dropout=0.1)
LAST = 2  # stage of the schedule
BODIES: dict[str, dict[str, Any]] = {
    "tunnel": {"depth": 4, "width": WIDTH},
    "tunnel, learned width": {"depth": 4, "width": "auto", "max_width": WIDTH},
    "budding, learned width": {"width": "auto", "max_width": WIDTH},
    "plain, learned width": {"depth": 2, "width": "auto", "max_width": WIDTH},
    "highway, learned width": {"depth": 2, "width": "auto", "max_width": WIDTH},
}


OF_LEARNED_WIDTH = ["tunnel, learned width", "budding, learned width", "highway, learned width"]


def data(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(64, N_IN)).astype(np.float32)
    return x, (x[:, 0] * x[:, 1] > 0).astype(np.int32) + (x[:, 2] > 1)


def half_closed(name: str, seed: int = 0) -> Network:
    """A network of which some units and dimensions are open, and a whole layer of a tunnel is not."""
    network = Network.create(name.split(",")[0], N_IN, N_OUT, key=jax.random.key(seed), **BODIES[name])
    rng = np.random.default_rng(seed)

    def drawn(gate: Any) -> Any:
        if not is_confined(gate) or gate.closed:
            return gate
        values = rng.uniform(0.3, 0.9, gate.value.shape) * (rng.random(gate.value.shape) < 0.25)
        if values.ndim == 2:
            values[1] = 0
        return gate.at(jnp.asarray(values, jnp.float32))

    return jax.tree.map(drawn, network, is_leaf=is_confined)


def begun(name: str, recipe: Recipe = RECIPE, stage: int = LAST) -> Run:
    """A run of such a network in a stage of its schedule."""
    return late(begin(half_closed(name), recipe, KNOBS, jax.random.key(1)), stage)


def late(run: Run, stage: int = LAST) -> Run:
    """A run in a stage, after its first epoch: no gate is asked to close before the second."""
    strong = (jnp.full_like(run.state.plateau.stage, stage), jnp.ones_like(run.state.epoch))  # else all is compiled again
    state = eqx.tree_at(lambda s: (s.plateau.stage, s.epoch), run.state, strong)
    return replace(run, state=state, begun_at=np.ones_like(run.begun_at))


@pytest.mark.parametrize("name", BODIES)
def test_what_is_open_computes_the_same_and_is_put_back_to_the_bit(name):
    state = begun(name).state
    live = live_part(state, KNOBS, RECIPE)
    assert live is not None
    small = jax.jit(lambda whole: shrink(whole, live))(state)
    assert small.network.embed.weight.size + small.network.body.weight.size < 0.6 * (
        state.network.embed.weight.size + state.network.body.weight.size
    )
    for one, other in zip(*(_told(s.network, jnp.asarray(data()[0])) for s in (state, small)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    back = jax.jit(lambda whole, part: restore(whole, part, live))(state, small)
    assert jax.tree.structure(back) == jax.tree.structure(state)
    for one, other in zip(jax.tree.leaves(state), jax.tree.leaves(back), strict=True):
        if jnp.issubdtype(one.dtype, jax.dtypes.prng_key):
            one, other = map(jax.random.key_data, (one, other))
        np.testing.assert_array_equal(one, other)


@jax.jit
def _told(network: Network, x: Any) -> list[Any]:
    """All that training asks of a network."""
    body = network.body
    return [
        *jax.vmap(network.priced)(x),
        meristem.complexity.body_sizes(body, jax.vmap(network.embedded)(x)),
        meristem.complexity.hard_size(body),
        network.half_norm(),
        meristem.complexity.soft_parameters(network),
        meristem.complexity.soft_multiply_adds(network),
    ]


@pytest.mark.parametrize("name", BODIES if FACTOR > 1 else OF_LEARNED_WIDTH)
def test_an_epoch_of_what_is_open_is_an_epoch_of_the_whole(name):
    """In the last stage nothing opens: function, gates, moments and measures agree within 1e-5."""
    whole, small = (begun(name, replace(RECIPE, follow=follow)) for follow in (False, True))
    assert live_part(small.state, KNOBS, small.recipe) is not None
    for _ in range(2 if FACTOR > 1 or name in ("tunnel, learned width", "budding, learned width") else 1):
        whole, told = advance(whole, data())
        small, seen = advance(small, data())
    for key, value in dict(told).items():
        np.testing.assert_allclose(value, seen[key], rtol=1e-4, atol=1e-5, err_msg=key)
    x = jnp.asarray(data()[0])
    for one, other in ((whole.last, small.last), (whole.state.network, small.state.network)):
        np.testing.assert_allclose(_outputs(one, x), _outputs(other, x), atol=1e-5)
    for one, other in zip(*(_gates(run.state.network) for run in (whole, small)), strict=True):
        np.testing.assert_array_equal(one == 0, other == 0)
        np.testing.assert_allclose(one, other, atol=1e-5)


@jax.jit
def _outputs(network: Network, x: Any) -> Any:
    return jax.vmap(network)(x)


def _gates(network: Network) -> list[Any]:
    """Their values; of units on closed dimensions, which take no part, 0."""
    found = [node.value for node in jax.tree.leaves(network, is_leaf=is_confined) if is_confined(node)]
    trunk = network.body.trunk
    return [value if trunk is None or value.ndim < 2 else jnp.where(trunk.is_open, value, 0) for value in found]


def test_a_closed_unit_that_is_wanted_opens_in_the_epoch_that_looks_at_all():
    """Until the last stage one epoch of five is of the whole network; growth waits for it, and is not lost."""
    recipe = replace(RECIPE, settle=False, price="units")
    run = begun("tunnel", recipe, stage=1)
    for epoch in range(1, 6):
        before = run.state
        assert (live_part(before, KNOBS, recipe) is None) == (epoch == 5)
        run, _ = advance(run, data())
        has_opened = (_gates(run.state.network)[0] > 0) & (_gates(before.network)[0] == 0)
        assert has_opened.any() == (epoch == 5), epoch


def test_the_members_of_a_population_have_their_own_structures():
    """Each comes out as it does alone."""
    networks = [half_closed("tunnel, learned width", seed) for seed in range(min(3, many(2)))]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *networks)
    keys = jax.random.split(jax.random.key(1), len(networks))

    def one_epoch(network: Network, key: Any) -> Run:
        run = late(begin(network, RECIPE, KNOBS, key))
        assert live_part(run.state, run.knobs, RECIPE) is not None
        return advance(run, data())[0]

    together = one_epoch(stacked, keys).each()
    for network, key, member in zip(networks, keys, together, strict=True):
        alone, x = one_epoch(network, key), jnp.asarray(data()[0])
        np.testing.assert_allclose(_outputs(alone.last, x), _outputs(member.last, x), atol=1e-5)


@pytest.mark.parametrize(
    ("name", "optimizer"),
    [("tunnel", None), ("tunnel, learned width", optax.chain(optax.scale_by_adam(), meristem.scale_by_rate()))],
)
def test_a_whole_training_that_follows_and_one_that_does_not_end_alike(name, optimizer):
    """With an optimizer of one's own, too."""
    network = Network.create("tunnel", N_IN, N_OUT, key=jax.random.key(0), **BODIES[name])
    costs = []
    for follow in (False, True):
        recipe = replace(RECIPE, follow=follow, patience=3, optimizer=optimizer)
        run = meristem.fit(
            network, data(), learning_rate=1e-2, penalty=1e-3, key=jax.random.key(1), recipe=recipe, max_epochs=40
        )
        costs.append(run.history["loss"][-1] + 1e-3 * run.history["hard_cost"][-1] / 50)
    assert abs(costs[1] - costs[0]) < 0.15 * costs[0], costs


def test_a_run_that_follows_is_saved_and_goes_on_to_the_same_bits(tmp_path):
    run = begun("tunnel, learned width")
    run, _ = advance(run, data())
    path = tmp_path / "run.safetensors"
    meristem.save(path, run)
    again = meristem.load(path)
    assert again.recipe.follow
    for one, other in zip(*(jax.tree.leaves(advance(r, data())[0].last) for r in (run, again)), strict=True):
        np.testing.assert_array_equal(one, other)
