"""Training: deterministic to the bit, compiled once, watched by the host, kept at its best, stopped when it breaks."""

import contextlib
import gc
import weakref
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meristem import Data, DivergedError, Recipe, fit
from meristem.data.spirals import TASKS, two_spirals
from meristem.nn import Network
from meristem.train.loop import seed_keys
from meristem.train.run import advance
from meristem.train.train_state import Plateau

COMPILED: list[str] = []


def _note(name: str, _: float, **__: object) -> None:
    if name == "/jax/core/compile/backend_compile_duration":
        COMPILED.append(name)


jax.monitoring.register_event_duration_secs_listener(_note)


@contextlib.contextmanager
def compilations(allowed: int):
    before = len(COMPILED)
    yield
    assert len(COMPILED) - before == allowed


def network(body: str, seed: int = 0, **options: object) -> Network:
    return Network.create(
        body, 2, 1, width=6, key=jax.random.key(seed), **({"depth": 3} if body != "budding" else {}) | options
    )


def same(one, other) -> bool:
    return all(jax.tree.leaves(jax.tree.map(lambda a, b: bool((numbers(a) == numbers(b)).all()), one, other)))


def numbers(leaf) -> np.ndarray:
    return np.asarray(jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf)


def train(body: str, epochs: int, *, task: str = "medium", seed: int = 0, **options):
    knobs = {"learning_rate": 1e-2, "penalty": 1e-3, "dropout": None, "max_capacity": 4}
    knobs |= {name: options.pop(name) for name in knobs if name in options}
    return fit(
        network(body, seed),
        Data(*two_spirals(task)),
        key=jax.random.key(seed + 1),
        max_epochs=epochs,
        recipe=Recipe(**options),
        **knobs,
    )


def test_the_counter_counts():
    x = jnp.ones(3)
    with compilations(1):
        jax.jit(lambda x: x * 3 + 1.25)(x).block_until_ready()


@pytest.mark.parametrize("body", ["tunnel", "budding"])
def test_same_seed_same_numbers_to_the_bit_and_nothing_compiled_twice(body):
    first = train(body, 6)
    with compilations(0):
        second = train(body, 6)
    assert same(first.last, second.last) and same(first.best, second.best)
    assert all((first.history[name] == second.history[name]).all() for name in first.history)
    other = train(body, 6, seed=1)
    assert not same(first.last, other.last)


def test_an_epoch_begins_with_the_arrays_of_its_state_and_no_others_stay():
    data, run = Data(*two_spirals("medium")), train("tunnel", 1)
    newest, _ = advance(run, data)
    again, _ = advance(run, data)  # from a state that is not the newest
    assert same(newest.state, again.state) and not same(newest.state, run.state)
    (from_newest, _), (from_copy, _) = (
        advance(again, data),
        advance(replace(again, state=jax.tree.map(jnp.copy, again.state)), data),
    )
    assert same(from_newest.state, from_copy.state) and not same(from_newest.state, newest.state)
    array = weakref.ref(from_copy.state.plateau.best)
    del from_copy
    gc.collect()
    assert array() is None


def test_growth_inside_the_capacity_compiles_nothing():
    calm = train("budding", 2, penalty=100.0)
    assert (calm.history["hard_size"] == 1).all()
    with compilations(0):
        result = train("budding", 6)
    assert result.history["opened"].sum() > 5 and result.history["closed"].sum() > 5
    assert len(set(result.history["hard_size"].tolist())) > 1


def test_capacity_doubles_when_an_opening_waited_and_halves_when_half_is_idle():
    seen = []
    from meristem.train import run

    original = run.adapt_capacity

    def spy(state, info, least, most):
        after = original(state, info, least, most)
        seen.append((state.network.body.capacity, int(info.waited), int(info.most_leaves), after.network.body.capacity))
        return after

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "adapt_capacity", spy)
        train("budding", 40, task="easy", learning_rate=1e-3, max_capacity=8)
    assert any(after == 2 * before for before, waited, _, after in seen if waited)
    assert any(2 * after == before for before, waited, _, after in seen if not waited)
    for before, waited, most, after in seen:
        if waited:
            assert most == before and after == min(2 * before, 8)
        else:
            assert after == before or (2 * after == before and most <= after and after >= 4)


def test_members_of_a_population_have_structures_schedules_and_penalties_of_their_own():
    networks = jax.vmap(lambda key: Network.create("budding", 2, 1, width=6, key=key))(seed_keys([0, 1, 2], 0))
    options = {"learning_rate": 1e-2, "penalty": np.array([0.0, 1e-3, 100.0]), "key": seed_keys([0, 1, 2], 1)}

    def together():
        return fit(networks, Data(*two_spirals("medium")), max_epochs=12, max_capacity=4, together=True, **options)

    first = together()
    assert first.history["loss"].shape == (12, 3)
    assert (first.history["hard_size"][:, 2] == 1).all()  # at that price nothing grows
    assert first.history["hard_size"][:, 0].max() > 1
    with compilations(0):
        again = together()
    assert same(first.last, again.last)


def test_alone_and_together_follow_the_same_path_within_rounding():
    keys = seed_keys([0, 1], 0)
    networks = jax.vmap(lambda key: Network.create("tunnel", 2, 1, width=6, depth=3, key=key))(keys)
    options = {"learning_rate": 3e-3, "penalty": 1e-3, "key": seed_keys([0, 1], 1), "max_epochs": 3}
    alone = fit(networks, Data(*two_spirals("medium")), together=False, **options)
    together = fit(networks, Data(*two_spirals("medium")), together=True, **options)
    for one, other in zip(alone.each(), together.each(), strict=True):
        np.testing.assert_allclose(one.history["loss"], other.history["loss"], rtol=1e-4)
        np.testing.assert_allclose(one.last.body.gate.value, other.last.body.gate.value, atol=1e-4)


def test_the_best_model_is_the_one_of_the_best_epoch():
    data = Data(*two_spirals("medium"))
    result = train("tunnel", 25)
    error, loss = result.history["dev_error"], result.history["dev_loss"]
    best = min(range(25), key=lambda e: (error[e], loss[e]))
    assert result.best_epoch == best + 1
    wrong = jax.vmap(lambda x, y: (result.best(x)[0] > 0) != (y > 0))(*data[:2]).mean()
    np.testing.assert_allclose(wrong, error[best], atol=1e-6)


def test_the_schedule_shrinks_twice_and_then_stops():
    plateau, stages = Plateau.start(), []
    for measure in [3.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]:
        plateau = plateau.after(jnp.asarray(measure), patience=2, stages=3)
        stages.append(int(plateau.stage))
    assert stages == [0, 0, 0, 1, 1, 1, 2, 2, 3, 3]
    assert [float(plateau._replace(stage=jnp.asarray(s)).scale((1.0, 0.3, 0.1))) for s in range(4)] == pytest.approx(
        [1, 0.3, 0.1, 0]
    )
    nan = Plateau.start().after(jnp.asarray(jnp.nan), patience=2, stages=3)
    assert float(nan.best) == np.inf and int(nan.since) == 1


def test_training_ends_by_itself_and_a_stopped_member_stands_still():
    result = train("tunnel", 500, task="easy", patience=3)
    assert result.epochs < 500 and result.history["stopped"][-1]
    assert sorted(set(result.history["stage"].tolist())) == [0, 1, 2]


def test_a_watcher_may_stop_the_fit():
    losses = []
    result = fit(
        network("tunnel"),
        Data(*two_spirals("easy")),
        learning_rate=1e-3,
        penalty=0.0,
        key=jax.random.key(0),
        watch=lambda info: losses.append(float(info["loss"])) or info.epoch == 3,
    )
    assert len(losses) == 3 and result.epochs == 3


def test_minibatches_that_do_not_divide_the_data_count_every_sample_once():
    """Ten samples in batches of four: one epoch's full gradient steps see each of them, the filling none."""
    x, y = (a[::20] for a in two_spirals("medium"))
    assert x.shape[0] % 4
    from meristem.train.epoch import _batches

    for parts in (1, 2, 3):  # three batches: in three parts all count, in two the last part has one that does not
        pieces = [_batches(Data(x, y), 4, jax.random.key(0), jnp.asarray(part), parts, -(-3 // parts)) for part in range(parts)]
        batch_x, weight = (np.concatenate([getattr(piece, name) for piece in pieces]) for name in ("x", "weight"))
        used = batch_x.reshape(-1, 2)[weight.reshape(-1) > 0]
        np.testing.assert_array_equal(np.sort(used, 0), np.sort(np.asarray(x), 0))
        is_real = np.concatenate([piece.is_real for piece in pieces]) if parts == 2 else np.ones(3, bool)
        assert is_real.sum() == 3
        np.testing.assert_allclose(weight.sum(1), is_real, rtol=1e-6)
    result = fit(
        network("tunnel"),
        Data(x, y),
        learning_rate=1e-2,
        penalty=0.0,
        key=jax.random.key(0),
        max_epochs=3,
        recipe=Recipe(batch_size=4),
    )
    assert np.isfinite(result.history["loss"]).all()


@pytest.mark.parametrize(
    ("kind", "make", "n_out"),
    [
        ("multiclass", lambda x: (jnp.arctan2(x[:, 1], x[:, 0]) > 0).astype(jnp.int32) + (x[:, 0] > 0), 3),
        ("multilabel", lambda x: (x > 0).astype(jnp.int32), 2),
        ("squared_error", lambda x: jnp.abs(x), 2),
    ],
)
def test_every_objective_learns(kind, make, n_out):
    x = jax.random.normal(jax.random.key(0), (200, 2))
    net = Network.create("tunnel", 2, n_out, width=8, depth=2, key=jax.random.key(1))
    data = Data(x[:150], make(x)[:150], x[150:], make(x)[150:])
    result = fit(
        net,
        data,
        learning_rate=1e-2,
        penalty=1e-4,
        key=jax.random.key(2),
        max_epochs=20,
        recipe=Recipe(objective=kind, batch_size=10),
    )
    assert result.history["dev_loss"].min() < 0.5 * result.history["dev_loss"][0]


def test_input_dropout_changes_training_and_not_measuring():
    plain, dropped = train("tunnel", 2), train("tunnel", 2, dropout=0.25)
    assert plain.history["loss"][1] != dropped.history["loss"][1]
    data = Data(*two_spirals("medium"))
    wrong = jax.vmap(lambda x, y: (dropped.last(x)[0] > 0) != (y > 0))(*data[:2]).mean()
    np.testing.assert_allclose(wrong, dropped.history["error"][-1], atol=1e-6)


def test_bytes_are_scaled_in_the_step():
    x = jax.random.randint(jax.random.key(0), (64, 3), 0, 256).astype(jnp.uint8)
    y = (x[:, 0] > 127).astype(jnp.float32)
    net = Network.create("tunnel", 3, 1, width=4, depth=1, key=jax.random.key(0))
    options = {"learning_rate": 1e-2, "penalty": 0.0, "key": jax.random.key(1), "max_epochs": 2}
    as_bytes = fit(net, Data(x, y), **options)
    as_floats = fit(net, Data(x.astype(jnp.float32) / 255, y), **options)
    np.testing.assert_allclose(as_bytes.history["loss"], as_floats.history["loss"], rtol=1e-5)


def test_a_loss_that_turns_non_finite_stops_the_run_and_keeps_the_last_good_model():
    x = jnp.full((194, 2), 1e30)
    net = network("tunnel")
    with pytest.raises(
        DivergedError, match=r"in epoch 1 at learning rate 1e\+10; no epoch was finite.* Try learning_rate=0.003 or less"
    ) as caught:
        fit(
            net,
            Data(x, jnp.ones(194)),
            learning_rate=1e10,
            penalty=0.0,
            key=jax.random.key(1),
            max_epochs=4,
            recipe=Recipe(objective="binary"),
        )
    assert same(caught.value.run.last, net)
    keys = seed_keys([0, 1], 0)
    networks = jax.vmap(lambda key: Network.create("tunnel", 2, 1, width=6, depth=3, key=key))(keys)
    fits = fit(
        networks,
        Data(*two_spirals("easy")),
        learning_rate=np.array([1e-3, 1e38]),
        penalty=0.0,
        key=keys,
        max_epochs=3,
        together=True,
    ).each()
    assert [bool(one.diverged) for one in fits] == [False, True]
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(eqx.filter(fits[1].last, eqx.is_inexact_array)))


def test_keys_of_the_old_style_and_lists_are_welcome():
    x, y = two_spirals("easy")
    options = {"learning_rate": 1e-3, "penalty": 0.0, "max_epochs": 1}
    new = fit(network("tunnel"), Data(x.tolist(), y.tolist()), key=jax.random.key(3), **options)
    old = fit(network("tunnel"), Data(np.asarray(x, np.float64), np.asarray(y, np.int64)), key=jax.random.PRNGKey(3), **options)
    assert same(new.last, old.last)


def test_a_population_needs_as_many_keys_as_networks():
    keys = seed_keys([0, 1, 2], 0)
    networks = jax.vmap(lambda key: Network.create("tunnel", 2, 1, width=4, depth=1, key=key))(keys)
    options = {"learning_rate": 1e-3, "max_epochs": 1}
    for wrong in ({"key": keys[:2], "penalty": 0.0}, {"key": keys[0], "penalty": 0.0}, {"key": keys, "penalty": [0.1, 0.2]}):
        with pytest.raises(ValueError, match="members"):
            fit(networks, Data(*two_spirals("easy")), **options, **wrong)


X, Y = two_spirals("easy")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"data": Data(X.at[3, 1].set(jnp.nan), Y)}, "x holds NaN or infinite values"),
        ({"data": Data(X, Y.at[0].set(jnp.inf))}, "y holds NaN or infinite values"),
        ({"data": Data(X[:, 0], Y)}, r"x has shape \(194,\); it must be \[samples, features\]"),
        ({"data": Data(X[:0], Y[:0])}, "at least one sample"),
        ({"data": Data(X, Y[:5])}, "y has 5 rows but x has 194"),
        ({"data": Data(X, Y[:, None])}, r"objective='binary' needs \[samples\]. Try y.reshape"),
        ({"data": Data(X, Y + 1)}, "y holds 2.0; objective='binary' needs 0 and 1 alone"),
        ({"data": Data(np.full((2, 2), "a"), Y[:2])}, "x has dtype <U1; it must hold numbers"),
        ({"data": Data(X, Y.astype(int)), "recipe": Recipe(objective="multiclass")}, "y holds 1; .*from 0 to 0, with n_out=1"),
        ({"data": Data(X, Y), "recipe": Recipe(objective="squared")}, r"needs \[samples, 1\], a column per output"),
        ({"learning_rate": "fast"}, "learning_rate='fast' must be a number"),
        ({"data": Data(X, Y, X, None)}, "dev_x and dev_y must be given together"),
        ({"data": Data(jnp.concatenate([X, X], 1), Y)}, "4 features, but the network takes 2"),
        ({"penalty": -1.0}, "penalty=-1.0 must be a finite number of at least 0"),
        ({"penalty": float("nan")}, "penalty=nan"),
        ({"learning_rate": 0}, "learning_rate=0 must be a finite number above 0"),
        ({"learning_rate": np.ones(3)}, r"learning_rate has shape \(3,\)"),
        ({"learning_rate": "0.003"}, "learning_rate='0.003' must be a number"),
        ({"key": 0}, r"key=0 is not a random key; use jax.random.key\(0\)"),
        ({"key": jax.random.split(jax.random.key(0), 3)}, "one key for one network"),
        ({"data": Data(X, Y, X[:, :1], Y)}, "dev_x has 1 features, but the network takes 2"),
        ({"max_epochs": 0}, "max_epochs=0"),
        ({"dropout": 1.0}, "dropout=1.0 must be a finite number of at least 0 and below 1"),
        ({"l2": -1.0}, "l2=-1.0 must be a finite number of at least 0"),
        ({"weight": np.ones(5)}, "weight is for 5 rows; the data have 194"),
        ({"weight": -np.ones(194)}, "weight must hold finite numbers, none below 0"),
        ({"penalty": None}, r"penalty is missing: fit\(network, data, learning_rate="),
        ({"data": X}, r"data is a \w+; give Data\(x, y\)"),
        ({"watch": 3}, "watch=3 must be a function that takes the epoch's info"),
    ],
)
def test_bad_input_is_named_in_one_line(change, says):
    options = {"data": Data(X, Y), "learning_rate": 1e-3, "penalty": 0.0, "key": jax.random.key(0), "max_epochs": 2} | change
    with pytest.raises(ValueError, match=says) as caught:
        fit(network("tunnel"), options.pop("data"), **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"watch": "accuracy"}, "watch='accuracy' is not known"),
        ({"batch_size": 0}, "batch_size=0"),
        ({"optimizer": "adam"}, "optimizer='adam' must be an optax optimizer"),
        ({"objective": "hinge"}, "objective='hinge'"),
        ({"scales": ()}, "at least one number"),
        ({"scales": (1.0, -1.0)}, "scales=-1.0"),
        ({"depth_decay": 0.0}, "depth_decay=0.0"),
    ],
)
def test_bad_recipes_are_named(options, says):
    with pytest.raises(ValueError, match=says):
        Recipe(**options)


def test_the_spirals_are_as_defined():
    for task in TASKS:
        x, y = two_spirals(task)
        assert x.shape == (194, 2) and int(y.sum()) == 97
        np.testing.assert_allclose(x[:97], -x[97:], atol=1e-6)
    x, _ = two_spirals("medium")
    np.testing.assert_allclose(np.hypot(*x[0]), 6.5 * 0.05, rtol=1e-5)
    np.testing.assert_allclose(np.hypot(*x[96]), 6.5, rtol=1e-5)
    classic, _ = two_spirals("classic")
    np.testing.assert_allclose(classic[0], [6.5, 0], atol=1e-6)
    np.testing.assert_allclose(np.hypot(*classic[96]), 6.5 * 8 / 104, rtol=1e-5)
    with pytest.raises(ValueError, match="Did you mean 'easy'"):
        two_spirals("eazy")
