"""Training for images: schedules of known length, AdamW, smoothing, mixup, averages of all steps, augmentation, bfloat16."""

from dataclasses import replace
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import meristem
from meristem.gate import is_confined
from meristem.nn import Network
from meristem.train import epoch
from meristem.train.augmentation import AUGMENTATIONS, augmented
from meristem.train.hyperparameters import Knobs, Recipe
from meristem.train.loop import fit
from meristem.train.mixup import mix
from meristem.train.objectives import NEVER, Binary, Multiclass
from meristem.train.optimizer import adam
from meristem.train.run import Run, advance, begin
from meristem.train.smoothing import smoothed
from meristem.train.train_state import Average, start
from meristem.train.training_data import Data

EPOCHS = 5
ALL = Recipe(
    objective="multiclass",
    batch_size=8,
    price="parameters",
    settle=True,
    schedule="one-cycle",
    weight_decay=0.02,
    smoothing=0.1,
    mixup=0.4,
    augment=("flip", "crop", "cutout"),
    average=0.9,
)


def images(n: int = 30) -> Data:
    """The class is the quarter of the image that is bright."""
    random = np.random.default_rng(0)
    x, y = random.integers(0, 120, (n, 6, 5, 1)).astype(np.uint8), np.arange(n) % 3
    for image, label in zip(x, y, strict=True):
        image[3 * (label // 2) :][:3, 3 * (label % 2) :][:, :3] += 120
    return Data(x, y, x[:10], y[:10])


def network(key=0) -> Network:
    options = {"input_shape": (6, 5, 1), "width": 3, "depth": 1, "key": jax.random.key(key)}
    return Network.create("conv-branch", n_out=3, **options)


def vectors() -> Network:
    """A network that takes little to compute without compiling."""
    return Network.create("tunnel", 4, 3, width=3, depth=1, key=jax.random.key(0))


@pytest.fixture(scope="module")
def trained() -> tuple[Run, Run]:
    """A run of all ideas after two epochs, and at its end."""
    run = begin(network(), ALL, Knobs(5e-3, 1e-3, epochs=EPOCHS), jax.random.key(1))
    for _ in range(2):
        run, _ = advance(run, images())
    early = run
    while not run.stopped:
        run, _ = advance(run, images())
    return early, run


def same(a, b) -> bool:
    return all(
        np.array_equal(np.asarray(x), np.asarray(y)) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    )


# ---- all of it


def test_a_schedule_grows_settles_and_ends(trained):
    _, run = trained
    assert run.epochs == EPOCHS and run.history["stage"].tolist() == [0, 0, 1, 1, 2]
    t = (np.arange(EPOCHS) + 0.5) / EPOCHS
    expected = np.where(t < 0.25, t / 0.25, (1 + np.cos(np.pi * (t - 0.25) / 0.75)) / 2)
    np.testing.assert_allclose(run.history["rate"], 5e-3 * expected, rtol=1e-5)
    assert run.best_epoch == EPOCHS  # only the last stage has settled
    gates = [np.asarray(node.value) for node in jax.tree.leaves(run.best, is_leaf=is_confined) if is_confined(node)]
    assert all(((gate >= 0) & (gate <= 1)).all() for gate in gates)


def test_a_saved_run_continues_to_the_bit(trained, tmp_path):
    early, end = trained
    meristem.save(tmp_path / "run", early)
    restored = meristem.load(tmp_path / "run")
    assert restored.recipe == ALL and restored.knobs.epochs == EPOCHS
    again = fit(restored, images(), max_epochs=EPOCHS)
    assert same((again.state.network, again.best, again.state.average), (end.state.network, end.best, end.state.average))


def test_a_file_without_the_length_of_its_schedule_is_refused(trained, tmp_path):
    early, _ = trained
    with pytest.raises(ValueError, match="needs its length"):
        meristem.save(tmp_path / "run", replace(early, knobs=early.knobs._replace(epochs=None)))
    assert not (tmp_path / "run").exists()


def test_fit_gives_a_schedule_its_length(trained):
    run = fit(network(), images(), learning_rate=5e-3, penalty=1e-3, key=jax.random.key(1), recipe=ALL, max_epochs=EPOCHS)
    assert same(run.best, trained[1].best)


def test_members_of_a_population_may_have_lengths_of_their_own():
    networks = jax.vmap(lambda key: Network.create("tunnel", 4, 1, width=3, depth=1, key=key))(
        jax.random.split(jax.random.key(0))
    )
    x = np.random.default_rng(0).standard_normal((16, 4)).astype(np.float32)
    data = Data(x, (x[:, 0] > 0).astype(np.float32))
    recipe = Recipe(batch_size=8, schedule="cosine", average=0.9, smoothing=0.1)
    run = begin(networks, recipe, Knobs(1e-2, 1e-3, epochs=np.array([2.0, 3.0])), jax.random.split(jax.random.key(1)))
    for _ in range(3):
        run, _ = advance(run, data)
    assert run.epochs.tolist() == [2, 3] and run.stopped.all()
    assert np.isfinite(run.history["loss"]).all()


def test_a_recipe_that_asks_for_nothing_has_the_program_that_it_had():
    """No operation of the new ideas is in it, and values that say nothing add none."""
    x, y = np.zeros((20, 3), np.float32), np.zeros(20, np.float32)
    net = Network.create("tunnel", 3, 1, width=3, depth=1, key=jax.random.key(0))

    def text(recipe: Recipe, **knobs) -> str:
        run = begin(net, recipe, Knobs(1e-3, 1e-3, **knobs), jax.random.key(1))
        return jax.jit(partial(epoch.epoch, recipe=recipe)).lower(run.state, Data(x, y), run.knobs).as_text()

    plain = text(Recipe(batch_size=8))
    assert text(Recipe(batch_size=8, smoothing=0.0, mixup=0.0, weight_decay=0.0, augment=())) == plain
    assert "bf16" not in plain and "cosine" not in plain
    others = text(Recipe(batch_size=8, precision="bfloat16", schedule="cosine"), epochs=3)
    assert "bf16" in others and "cosine" in others


# ---- one by one


def test_a_weight_of_a_network_decays_and_a_gate_does_not():
    net = network()
    zeros = jax.tree.map(jnp.zeros_like, eqx.filter(net, eqx.is_inexact_array))
    optimizer = adam(1.0, weight_decay=0.1)
    updates, _ = optimizer.update(zeros, optimizer.init(net), net, learning_rate=0.5)
    after = eqx.apply_updates(net, updates)

    def check(before, now):
        expected = before.value if is_confined(before) else 0.95 * before
        np.testing.assert_allclose(now.value if is_confined(now) else now, expected, rtol=1e-6)

    jax.tree.map(check, eqx.filter(net, eqx.is_inexact_array), eqx.filter(after, eqx.is_inexact_array), is_leaf=is_confined)


def test_smoothing_is_the_mean_loss_over_targets():
    outputs = jnp.array([1.0, -0.5, 2.0])
    every = [float(Multiclass().loss(outputs, jnp.array(k))) for k in range(3)]
    np.testing.assert_allclose(
        smoothed(Multiclass(), 0.2)(outputs, jnp.array(1)), 0.8 * every[1] + 0.2 * np.mean(every), rtol=1e-6
    )
    padded = jnp.concatenate([outputs, jnp.full(2, NEVER)])
    np.testing.assert_allclose(
        smoothed(Multiclass(), 0.2)(padded, jnp.array(1)), smoothed(Multiclass(), 0.2)(outputs, jnp.array(1)), rtol=1e-6
    )
    logit, both = jnp.array([0.7]), [float(Binary().loss(jnp.array([0.7]), jnp.array(t))) for t in (0.0, 1.0)]
    np.testing.assert_allclose(smoothed(Binary(), 0.2)(logit, jnp.array(1.0)), 0.1 * both[0] + 0.9 * both[1], rtol=1e-6)


def test_mixup_mixes_targets_as_it_mixes_samples_and_leaves_padding_out():
    x, weight = jnp.eye(6), jnp.array([1.0, 1, 1, 1, 0, 0]) / 4
    for seed in range(5):
        mixed_x, mixed = mix(jax.random.key(seed), x, jnp.arange(6), weight, 0.5)
        np.testing.assert_allclose(mixed_x, mixed.share * x + (1 - mixed.share) * x[mixed.y], rtol=1e-6)
        assert 0 <= mixed.share <= 1 and not {4, 5} & set(mixed.y[:4].tolist())


def test_the_loss_of_a_mixture_is_the_mixture_of_losses():
    net, x = vectors(), jnp.ones((2, 4))
    knobs, recipe = Knobs(1e-3, 0.0, l2=0.0), Recipe(objective="multiclass")
    losses = [float(epoch.cost(net, x, jnp.full(2, k), knobs, recipe)) for k in (0, 2)]
    both = epoch.cost(net, x, jnp.zeros(2, int), knobs, recipe, None, epoch.Mixed(jnp.full(2, 2), jnp.asarray(0.25)))
    np.testing.assert_allclose(both, 0.25 * losses[0] + 0.75 * losses[1], rtol=1e-5)


def test_the_average_forgets_its_first_steps_and_closed_gates_stay_closed_in_it():
    net = network()
    average = Average(net, jnp.zeros((), jnp.int32))
    numbers = [jax.tree.map(lambda a, k=k: jnp.full_like(a, k / 8), net) for k in range(1, 5)]
    expected = None
    for step, other in enumerate(numbers, 1):
        average = average.after_step(other, jnp.asarray(False), 0.5)
        share = max(10 / (9 + step), 0.5)
        expected = step / 8 if expected is None else expected + share * (step / 8 - expected)
    np.testing.assert_allclose(average.network.head.weight, expected, rtol=1e-6)
    closed = jax.tree.map(lambda n: n.at(jnp.zeros_like(n.value)) if is_confined(n) else n, net, is_leaf=is_confined)
    after = average.after_step(closed, jnp.asarray(False), 0.5).network
    assert all((node.value == 0).all() for node in jax.tree.leaves(after, is_leaf=is_confined) if is_confined(node))
    restarted = average.after_step(net, jnp.asarray(True), 0.5)
    assert same(restarted.network, net) and restarted.epochs == 1


def test_bfloat16_gives_gradients_of_the_float32_weights():
    net, x, y = vectors(), jax.random.normal(jax.random.key(1), (8, 4)), jnp.arange(8) % 3
    knobs = Knobs(1e-3, 1e-3)
    exact, short = (
        eqx.filter_grad(epoch.cost)(net, x, y, knobs, Recipe(objective="multiclass", precision=precision))
        for precision in ("float32", "bfloat16")
    )
    for a, b in zip(jax.tree.leaves(exact), jax.tree.leaves(short), strict=True):
        assert b.dtype == a.dtype == jnp.float32
        assert jnp.linalg.norm(b - a) <= 0.1 * jnp.linalg.norm(a) + 1e-4


# ---- augmentation


@pytest.mark.parametrize("name", AUGMENTATIONS)
@pytest.mark.parametrize(("shape", "dtype"), [((8, 9, 3), np.uint8), ((5, 4), np.float32), ((1, 6, 1), np.float32)])
def test_an_augmentation_keeps_shape_type_and_range_and_follows_its_key(name, shape, dtype):
    x = jnp.asarray(np.random.default_rng(0).integers(0, 256, (16, *shape)).astype(dtype))
    change = jax.jit(AUGMENTATIONS[name])
    once, again, other = (change(jax.random.key(k), x) for k in (0, 0, 1))
    assert once.shape == x.shape and once.dtype == x.dtype
    assert (once >= x.min()).all() and (once <= x.max()).all()
    np.testing.assert_array_equal(once, again)
    assert (once != other).any() and (once != x).any()


def test_a_flip_mirrors_and_a_crop_shifts_with_a_mirror_at_the_edge():
    x = jnp.broadcast_to(jnp.arange(16.0).reshape(1, 1, 16), (64, 16, 16))
    flipped = np.asarray(AUGMENTATIONS["flip"](jax.random.key(0), x))
    is_flipped = (flipped[:, 0, 0] == 15).astype(bool)
    np.testing.assert_array_equal(flipped[is_flipped], np.asarray(x)[is_flipped][..., ::-1])
    np.testing.assert_array_equal(flipped[~is_flipped], np.asarray(x)[~is_flipped])
    assert 16 < is_flipped.sum() < 48
    cropped = np.asarray(AUGMENTATIONS["crop"](jax.random.key(0), x))[:, 0]
    shifts = cropped[:, 8] - 8
    assert set(shifts.tolist()) == {-2.0, -1.0, 0.0, 1.0, 2.0}
    np.testing.assert_array_equal(cropped[shifts == -2][0][:5], [2, 1, 0, 1, 2])


def test_a_cutout_is_a_square_of_the_mean_color():
    x = jnp.asarray(np.random.default_rng(0).standard_normal((32, 8, 8, 2)).astype(np.float32))
    cut = np.asarray(AUGMENTATIONS["cutout"](jax.random.key(0), x))
    color = np.asarray(x.mean((1, 2), keepdims=True))
    is_cut = (cut == color).all(-1)
    np.testing.assert_array_equal(cut[~is_cut], np.asarray(x)[~is_cut])
    assert is_cut.sum((1, 2)).max() == 16 and is_cut.sum((1, 2)).min() >= 4


def test_augmentations_are_applied_in_their_order_with_keys_of_their_own():
    x = jnp.asarray(images().x)
    key = jax.random.key(3)
    expected = AUGMENTATIONS["flip"](jax.random.fold_in(key, 1), AUGMENTATIONS["crop"](jax.random.fold_in(key, 0), x))
    np.testing.assert_array_equal(augmented(key, x, ("crop", "flip")), expected)


# ---- what does not fit


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"schedule": "cosin"}, "Did you mean 'cosine'"),
        ({"precision": "float16"}, "precision='float16'"),
        ({"smoothing": 1.0}, r"smoothing=1\.0 must be a number of at least 0 and below 1"),
        ({"smoothing": 0.1, "objective": "huber"}, "smoothing=0.1 is for classes"),
        ({"mixup": -1}, "mixup=-1"),
        ({"average": 1.0}, "average=1.0"),
        ({"weight_decay": float("nan")}, "weight_decay=nan"),
        ({"weight_decay": 0.1, "optimizer": meristem.adam()}, "weight_decay"),
        ({"augment": "flop"}, "Did you mean 'flip'"),
    ],
)
def test_an_option_that_does_not_fit_is_named(options, says):
    with pytest.raises(ValueError, match=says) as caught:
        Recipe(**options)
    assert "\n" not in str(caught.value)


def test_a_schedule_needs_its_length_and_augmentation_needs_images():
    net, key = Network.create("tunnel", 3, 1, width=3, depth=1, key=jax.random.key(0)), jax.random.key(0)
    with pytest.raises(ValueError, match="needs its length"):
        begin(net, Recipe(schedule="cosine"), Knobs(1e-3, 1e-3), key)
    with pytest.raises(ValueError, match="leave out the knob epochs"):
        begin(net, Recipe(), Knobs(1e-3, 1e-3, epochs=5), key)
    with pytest.raises(ValueError, match="is for images"):
        begin(net, Recipe(augment=("flip",)), Knobs(1e-3, 1e-3), key)
    assert replace(Recipe(), augment=["flip"]).augment == ("flip",)
    assert start(net, key, Recipe(average=0.9)).average is not None
