"""A run is a value: it can be kept, gone on from twice, taken apart and put together; knobs, optimizers and watchers."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from estimating import programs
from meristem import Data, DivergedError, Knobs, Recipe, Watcher, advance, begin, fit, load, save, scale_by_rate, step
from meristem.data.spirals import two_spirals
from meristem.nn import Network
from meristem.train.epoch import Batch
from meristem.train.loop import seed_keys
from meristem.train.run import stacked
from meristem.train.train_state import start
from meristem.train.training_data import prepare
from soak import FACTOR

DATA = Data(*two_spirals("medium"))
EASY = Data(*two_spirals("easy"))
RECIPE = Recipe(batch_size=16)
KNOBS = Knobs(learning_rate=1e-2, penalty=1e-3)


ROOM = {"budding": {"capacity": 2}, "tunnel": {"depth": 2}}


def create(body: str, key: jax.Array) -> Network:
    return Network.create(body, 2, 1, width=4, key=key, **ROOM[body])


def network(body: str, seed: int = 0) -> Network:
    return create(body, jax.random.key(seed))


def population(body: str, seeds: list[int]) -> Network:
    return jax.vmap(lambda key: create(body, key))(seed_keys(seeds, 0))


def same(one, other) -> bool:
    assert jax.tree.structure(one) == jax.tree.structure(other)
    keys = lambda a: jax.random.key_data(a) if jnp.issubdtype(a.dtype, jax.dtypes.prng_key) else a  # noqa: E731
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.array_equal(np.asarray(keys(a)), np.asarray(keys(b)), equal_nan=True) for a, b in pairs)


def same_run(one, other) -> bool:
    return (
        same((one.state, one.best, one.knobs), (other.state, other.best, other.knobs))
        and np.array_equal(one.best_epoch, other.best_epoch)
        and list(one.history) == list(other.history)
        and all(np.array_equal(one.history[name], other.history[name]) for name in one.history)
    )


def advanced(run, epochs: int):
    for _ in range(epochs):
        run, _ = advance(run, DATA)
    return run


@pytest.mark.parametrize("body", ["tunnel", "budding"])
@pytest.mark.parametrize("members", [(), (2,)])
def test_advancing_leaves_the_run_as_it_was_and_two_ways_from_it_are_the_same(body, members):
    keys = seed_keys([0, 1], 1)
    networks, key = (population(body, [0, 1]), keys) if members else (network(body), keys[0])
    run = begin(networks, RECIPE, KNOBS, key, max_capacity=2)
    assert run.members == members and not run.history and (run.epochs == 0).all()
    middle = advanced(run, 3)
    kept = (jax.tree.map(np.asarray, jax.tree.leaves(middle.best)), {k: v.copy() for k, v in middle.history.items()})
    first, second = advanced(middle, 4), advanced(middle, 4)
    assert same_run(first, second)
    assert (middle.epochs == 3).all() and (first.epochs == 7).all()
    assert all(np.array_equal(a, b) for a, b in zip(kept[0], jax.tree.leaves(middle.best), strict=True))
    assert all(np.array_equal(values, middle.history[name]) for name, values in kept[1].items())
    assert all(np.array_equal(first.history[name][:3], middle.history[name]) for name in middle.history)


@pytest.mark.parametrize(("body", "rate"), [("tunnel", 0.3), ("budding", 0.1)])
def test_a_fit_that_goes_on_after_its_best_epoch_ends_as_one_that_was_never_interrupted(body, rate):
    """The best model so far is part of the run: it survives, though nothing after it is as good."""
    options = {"learning_rate": rate, "penalty": 1e-3, "key": jax.random.key(1), "recipe": Recipe(batch_size=16, patience=2)}
    whole = fit(network(body), EASY, max_epochs=60, **options)
    best = int(whole.best_epoch)
    assert 1 < best < whole.epochs - 2
    for pause in (best - 1, best + 1):
        half = fit(network(body), EASY, max_epochs=pause, **options)
        assert same_run(fit(half, EASY, max_epochs=60), whole)


def test_members_come_apart_and_together_again():
    run = advanced(begin(population("budding", [0, 1]), RECIPE, KNOBS, seed_keys([0, 1], 1), max_capacity=2), 3)
    assert same_run(stacked(run.each()), run)
    assert run.member(1).history["loss"].shape == (3,) and run.history["layer_sizes"].shape == (3, 2, 1)


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="elsewhere they are put together on the device")
def test_on_a_cpu_members_come_together_without_a_program_for_their_number():
    """A program of a thousand operands for each shape took seven seconds and a hundred mebibytes."""
    run = begin(population("tunnel", list(range(7))), RECIPE, KNOBS, seed_keys(range(7), 1))
    members = run.each()
    with programs() as compiled:
        again = stacked(members)
    assert compiled == [] and same_run(again, run)


def test_members_that_stop_at_different_epochs_have_histories_of_their_own_length():
    recipe = Recipe(batch_size=16, patience=2)
    options = {"learning_rate": np.array([1e-12, 1e-2]), "penalty": 1e-3, "key": seed_keys([0, 1], 1), "recipe": recipe}
    alone, together = (fit(population("tunnel", [0, 1]), EASY, max_epochs=10, together=way, **options) for way in (False, True))
    for run in (alone, together):
        assert run.history["loss"].shape == (run.epochs.max(), 2)
        short = int(run.epochs.argmin())
        assert run.epochs[short] < run.epochs.max()
        member = run.member(short)
        assert member.history["stopped"][-1] and len(member.history["loss"]) == run.epochs[short]
        filled = run.history["improved"][run.epochs[short] :, short]
        assert len(filled) and not filled.any()


def test_data_are_checked_once_and_every_member_sees_the_same_arrays():
    run = begin(network("tunnel"), RECIPE, KNOBS, jax.random.key(1))
    ready = prepare(DATA, run.last, run.recipe.task)
    assert prepare(ready, run.last, run.recipe.task) is ready
    one, _ = advance(run, ready)
    assert same_run(one, advance(run, tuple(DATA[:2]))[0])


# ---- knobs


def test_folds_are_members_of_one_population():
    """Row weights: a member learns from its rows alone, and is measured on the others."""
    x, y = (np.asarray(a) for a in DATA[:2])
    held_out = np.arange(len(x)) % 3 == np.arange(3)[:, None]  # [folds, rows]
    options = {"learning_rate": 1e-2, "penalty": 1e-3, "recipe": RECIPE, "max_epochs": 4}
    folds = fit(
        population("tunnel", [0, 0, 0]),
        (x, y),
        key=seed_keys([0, 0, 0], 1),
        weight=~held_out,
        dev_weight=held_out,
        together=True,
        **options,
    )
    for fold, rows in enumerate(held_out):
        spoiled = x.copy()
        spoiled[rows] = 1e3  # rows of weight 0 are as good as not there
        alone = fit(
            jax.tree.map(lambda a: a[0], population("tunnel", [0])),
            Data(spoiled, y, x[rows], y[rows]),
            key=seed_keys([0], 1)[0],
            weight=~rows,
            **options,
        )
        for name in ("loss", "dev_loss", "dev_error", "soft_size"):
            np.testing.assert_allclose(folds.history[name][:, fold], alone.history[name], rtol=2e-4, err_msg=name)


def test_dropout_is_a_knob_and_none_of_it_compiles_none():
    options = {"learning_rate": 1e-2, "penalty": 1e-3, "key": seed_keys([0, 0], 1), "recipe": RECIPE, "max_epochs": 2}
    run = fit(population("tunnel", [0, 0]), DATA, dropout=np.array([0.0, 0.5]), together=True, **options)
    plain = fit(population("tunnel", [0, 0]), DATA, together=True, **options)
    np.testing.assert_allclose(run.history["loss"][:, 0], plain.history["loss"][:, 0], rtol=1e-6)
    assert (run.history["loss"][:, 1] != run.history["loss"][:, 0]).all()
    state = start(network("tunnel"), jax.random.key(0), RECIPE)
    batch = Batch(jax.random.key(2), jnp.ones((16, 2)), jnp.ones(16))
    with_dropout, without = (
        str(jax.make_jaxpr(lambda s, k=k: step(s, batch, k, RECIPE))(state)) for k in (KNOBS._replace(dropout=0.5), KNOBS)
    )
    assert "random_bits" in with_dropout and "random_bits" not in without


def test_a_step_is_one_turn_of_an_epoch():
    """An epoch of one batch is that step."""
    run = begin(network("budding"), Recipe(batch_size=len(DATA.x)), KNOBS, jax.random.key(1))
    order = jax.random.split(jax.random.fold_in(run.state.key, 0), 2)
    batch = Batch(order[1], DATA.x, DATA.y)
    stepped, info = jax.jit(step, static_argnames="recipe")(run.state, batch, run.knobs, recipe=run.recipe)
    after, _ = advance(run, DATA)
    for a, b in zip(jax.tree.leaves(stepped.network), jax.tree.leaves(after.last), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)
    assert int(info.opened) == int(after.history["opened"][0])


# ---- optimizers


OPTIMIZERS = {
    "schedule": optax.adam(optax.cosine_decay_schedule(3e-2, 60)),
    "rate": optax.chain(optax.scale_by_lion(), scale_by_rate()),
    "chain": optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(0.3, momentum=0.9)),
}


@pytest.mark.parametrize(
    ("body", "optimizer"),
    [
        pytest.param(body, chain, id=f"{body}-{name}")
        for body in ("tunnel", "budding")
        for name, chain in OPTIMIZERS.items()
        if (body == "budding") == (name == "chain") or FACTOR > 1  # each chain with one body, but for a soak
    ],
)
def test_any_optax_chain_trains(body, optimizer):
    recipe = Recipe(batch_size=16, optimizer=optimizer)
    options = {"learning_rate": 3e-3, "penalty": 1e-3, "key": jax.random.key(1), "recipe": recipe, "max_epochs": 8}
    run = fit(network(body), EASY, max_capacity=2, **options)
    assert run.history["loss"][-1] < 0.9 * run.history["loss"][0]
    gates = run.last.body.gate.value if body == "tunnel" else run.last.body.leafness.value
    assert ((gates >= 0) & (gates <= 1)).all()
    if body == "budding":
        assert run.history["opened"].sum() > 0


def test_our_own_optimizer_is_a_chain_like_any_other():
    """Given explicitly, also within a chain, it does what the default does."""
    from meristem import adam

    options = {"learning_rate": 1e-2, "penalty": 1e-3, "key": jax.random.key(1), "max_epochs": 3}
    options["max_capacity"] = 2
    usual = fit(network("budding"), DATA, recipe=RECIPE, **options)
    for optimizer in (adam(), optax.chain(optax.identity(), adam())):
        run = fit(network("budding"), DATA, recipe=Recipe(batch_size=16, optimizer=optimizer), **options)
        np.testing.assert_allclose(run.history["loss"], usual.history["loss"], rtol=1e-6)
        np.testing.assert_array_equal(run.history["hard_size"], usual.history["hard_size"])


def test_the_rate_and_the_schedule_reach_a_chain_that_asks_for_them():
    recipe = Recipe(batch_size=16, patience=1, optimizer=optax.chain(optax.scale_by_adam(), scale_by_rate()))
    run = fit(network("tunnel"), DATA, learning_rate=1e-2, penalty=1e-3, key=jax.random.key(1), recipe=recipe, max_epochs=40)
    assert set(run.history["stage"].tolist()) == {0, 1, 2}
    np.testing.assert_allclose(sorted(set(run.history["rate"].tolist())), [1e-3, 3e-3, 1e-2], rtol=1e-5)
    still = fit(network("tunnel"), DATA, learning_rate=1e-12, penalty=1e-3, key=jax.random.key(1), recipe=recipe, max_epochs=1)
    np.testing.assert_allclose(still.last.embed.weight, network("tunnel").embed.weight, atol=1e-6)


def test_equal_recipes_are_one_program():
    options = {"learning_rate": 1e-2, "penalty": 1e-3, "key": jax.random.key(1), "max_epochs": 1}
    optimizer = optax.sgd(0.1)
    fit(network("tunnel"), DATA, recipe=Recipe(batch_size=16, optimizer=optimizer), **options)
    fit(network("tunnel"), DATA, recipe=Recipe(objective="binary", batch_size=16), **options)
    with programs() as compiled:
        fit(network("tunnel", 5), DATA, recipe=Recipe(batch_size=16, optimizer=optimizer), **options)
        fit(network("tunnel", 5), DATA, recipe=Recipe(batch_size=16), l2=1e-3, **options)
    assert not compiled


# ---- watchers


@pytest.mark.parametrize("together", [False, True])
def test_one_protocol_for_whoever_looks_on(together):
    seen: list[tuple[int, int]] = []

    class Notes(Watcher):
        def epoch(self, member, info):
            seen.append((member, int(info.epoch)))
            return member == 1 and info["epoch"] == 2

    plain, pairs = [], []
    run = fit(
        population("tunnel", [0, 1]),
        DATA,
        learning_rate=1e-2,
        penalty=1e-3,
        key=seed_keys([0, 1], 1),
        recipe=RECIPE,
        max_epochs=4,
        together=together,
        watch=[Notes(), lambda info: plain.append(float(info.soft_size)), lambda member, info: pairs.append(member)],
    )
    assert len(seen) == len(plain) == len(pairs)
    if together:  # the training ends when every member that still runs says so
        assert run.epochs.tolist() == [4, 4]
    else:
        assert run.epochs.tolist() == [4, 2]
        assert [e for m, e in seen if m == 1] == [1, 2]


def test_a_fit_saves_what_it_has():
    saved = []
    run = fit(
        population("tunnel", [0, 1]),
        DATA,
        learning_rate=1e-2,
        penalty=1e-3,
        key=seed_keys([0, 1], 1),
        recipe=RECIPE,
        max_epochs=3,
        save=saved.append,
        save_seconds=0.0,
    )
    assert len(saved) >= 2 and saved[-1] is run, "in the background, for a small share of the time; and at the end"
    assert all(one.members == (2,) for one in saved)
    rest = fit(saved[0], DATA, max_epochs=3)
    assert same_run(rest, run)


def test_a_member_that_diverged_keeps_its_history_in_a_loaded_population_that_continues(tmp_path):
    data, options = Data(1e3 * np.asarray(EASY.x), EASY.y), {"penalty": 1e-3, "recipe": RECIPE, "together": True}
    key = seed_keys([0, 1], 1)
    run = fit(population("tunnel", [0, 1]), data, learning_rate=[1e-3, 1e30], key=key, max_epochs=2, **options)
    assert run.diverged.tolist() == [False, True] and run.epochs.tolist() == [2, 1]
    save(tmp_path / "run", run)
    later = fit(load(tmp_path / "run"), data, max_epochs=3, together=True)
    assert later.epochs.tolist() == [3, 1] and later.history["diverged"].tolist() == [[False, True]] * 3
    assert later.member(1).history["diverged"].tolist() == [True] and np.isnan(later.history["loss"][:, 1]).all()


def test_a_network_that_diverges_is_told_of_with_advice_that_helps():
    x, y = (np.asarray(a) for a in DATA[:2])
    with pytest.raises(DivergedError) as caught:
        fit(network("tunnel"), (x * 1e30, y), learning_rate=1e10, penalty=0.0, key=jax.random.key(1), recipe=RECIPE)
    text = str(caught.value)
    assert "epoch 1" in text and "epoch 0" not in text and "no model to keep" in text and "learning_rate=0.003" in text
