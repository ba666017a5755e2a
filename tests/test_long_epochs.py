"""A long epoch is asked for in parts: the same training, and a person sees it move."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from estimating import programs as compiled_programs
from meristem import Data, Recipe, Watcher, fit
from meristem.nn import Network
from meristem.train import programs
from meristem.train.hyperparameters import Knobs
from meristem.train.loop import seed_keys
from meristem.train.programs import descend
from meristem.train.train_state import no_growth, start

RECIPE = Recipe(objective="multiclass", batch_size=4, watch="error")
N = 90  # 23 batches, the last half full


def digits() -> Data:
    random = np.random.default_rng(0)
    x = random.integers(0, 256, (N, 6)).astype(np.uint8)
    return Data(x, x[:, :3].argmax(1), x[:20], x[:20, :3].argmax(1))


def network(body: str, key: jax.Array) -> Network:
    return Network.create(body, 6, 3, width=5, key=key, **({"capacity": 2} if body == "budding" else {"depth": 2}))


@pytest.mark.parametrize("body", ["tunnel", "budding"])
def test_parts_make_the_same_epoch(body, monkeypatch):
    """In one program, in two parts (one step more than there are) and in twenty-three: the same network but for rounding."""

    def train(at_once: int):
        monkeypatch.setattr(programs, "STEPS_AT_ONCE", at_once)
        return fit(
            network(body, jax.random.key(0)),
            digits(),
            learning_rate=1e-2,
            penalty=1e-3,
            dropout=0.2,
            key=jax.random.key(1),
            recipe=RECIPE,
            max_epochs=3,
            max_capacity=2,
        )

    whole, halves, singles = train(512), train(12), train(1)
    for other in (halves, singles):
        for name, values in whole.history.items():
            np.testing.assert_allclose(other.history[name], values, rtol=2e-5, atol=1e-6, err_msg=name)
        for a, b in zip(jax.tree.leaves(whole.last), jax.tree.leaves(other.last), strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-6)


@pytest.mark.parametrize("together", [False, True])
def test_a_pulse_beats_within_the_first_epoch(together, monkeypatch):
    monkeypatch.setattr(programs, "STEPS_AT_ONCE", 12)
    keys = seed_keys([0, 1], 0)
    seen: list[tuple] = []

    class Notes(Watcher):
        def epoch(self, member, info):
            seen.append((member, int(info.epoch), 0.0))

        def pulse(self, member, share):
            seen.append((member, None, share))

    fit(
        jax.vmap(lambda key: network("tunnel", key))(keys),
        digits(),
        learning_rate=1e-2,
        penalty=1e-3,
        dropout=0.2,
        key=keys,
        recipe=RECIPE,
        max_epochs=2,
        together=together,
        watch=Notes(),
    )
    for member in (0, 1):
        own = [(e, s) for m, e, s in seen if m == member]
        assert own == [(None, 0.5), (None, 1.0), (1, 0), (None, 0.5), (None, 1.0), (2, 0)]


def test_parts_are_compiled_once(monkeypatch):
    monkeypatch.setattr(programs, "STEPS_AT_ONCE", 12)
    found = []
    for seed in (5, 6):
        with compiled_programs() as compiled:
            fit(
                network("tunnel", jax.random.key(seed)),
                digits(),
                learning_rate=1e-2,
                penalty=1e-3,
                key=jax.random.key(seed),
                recipe=Recipe(objective="multiclass", batch_size=4, patience=7),
                max_epochs=2,
            )
        found.append(compiled)
    first, second = found
    parts = ["jit(start)", "jit(descend)", "jit(finish)"]
    assert [first.count(name) for name in [*parts, "jit(epoch)"]] == [1, 1, 1, 0] and not second


def test_a_step_that_does_not_count_changes_nothing():
    """The last of 24 places for 23 batches: descend the last part alone, with and without the empty place."""
    state = start(network("tunnel", jax.random.key(0)), jax.random.key(1), RECIPE)
    data = Data(*map(jnp.asarray, digits()[:4]))
    data = data._replace(y=data.y.astype(jnp.int32), dev_y=data.dev_y.astype(jnp.int32))
    knobs = Knobs(jnp.float32(1e-2), jnp.float32(1e-3))
    last = descend(state, no_growth(), data, knobs, jnp.int32(23), recipe=RECIPE, parts=24)[0]
    np.testing.assert_array_equal(last.network.embed.weight, state.network.embed.weight)
    real = descend(state, no_growth(), data, knobs, jnp.int32(22), recipe=RECIPE, parts=24)[0]
    assert (real.network.embed.weight != state.network.embed.weight).any()
