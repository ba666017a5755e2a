"""Settling: what is not worth its price closes for good; a budget holds; inputs of no use are dropped."""

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import meristem
from commanding import meristem_here
from meristem import Data, Knobs, Recipe, begin, fit
from meristem.compact import compact
from meristem.complexity import multiply_adds, parameters
from meristem.data.spirals import two_spirals
from meristem.gate import Confined, fully_open, hold
from meristem.nn import Network
from meristem.train.loop import seed_keys
from meristem.train.run import settling
from meristem.train.settle import close_least, total_price
from soak import FACTOR, many

DATA = Data(*two_spirals("easy"))
RECIPE = Recipe(batch_size=32, patience=5, settle=True, price="parameters")
NO = jnp.array(False)


def tunnel(seed: int = 0, **options) -> Network:
    return Network.create("tunnel", 2, 1, width="auto", max_width=8, depth=2, key=jax.random.key(seed), **options)


def trained(network: Network, recipe: Recipe = RECIPE, max_epochs: int = 40, **knobs):
    given = {"learning_rate": 0.01, "penalty": 0.01, "key": jax.random.key(1)} | knobs
    return fit(network, DATA, recipe=recipe, max_epochs=max_epochs, **given)


def test_what_was_closed_stays_closed_while_it_holds():
    before = {"gate": Confined(jnp.array([0.0, 0.5])), "leafness": Confined(jnp.array([1.0, 0.5]), closed=1.0)}
    after = {"gate": Confined(jnp.array([0.1, 0.0])), "leafness": Confined(jnp.array([0.9, 1.0]), closed=1.0)}
    held, free = (hold(before, after, jnp.array(flag)) for flag in (True, False))
    assert held["gate"].value.tolist() == [0.0, 0.0] and held["leafness"].value.tolist() == [1.0, 1.0]
    assert jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), free, after))


@pytest.mark.parametrize("price", ["units", "parameters", "multiply-adds"])
def test_a_gate_stays_open_only_if_it_is_worth_its_price(price):
    """Of two open units one does nothing: it closes at any price, the other at none but a high one."""
    recipe = Recipe(batch_size=32, settle=True, price=price)
    network = tunnel()
    gates = jnp.zeros((2, 8)).at[0, :2].set(0.5)
    weight = network.head.weight.at[:, 1].set(0).at[:, 0].set(3)
    network = eqx.tree_at(lambda n: (n.body.gate.value, n.head.weight), network, (gates, weight))
    network = eqx.tree_at(lambda n: n.body.trunk, network, None)
    y = jax.vmap(network)(DATA.x)[:, 0] > 0  # what the first unit says is what is to be learned
    data = Data(DATA.x, y.astype(float))

    def left(penalty: float) -> list[int]:
        closed = eqx.filter_jit(close_least)(network, data, Knobs(1e-3, jnp.asarray(penalty)), recipe, jax.random.key(0), NO)
        return np.flatnonzero(closed.body.gate.value[0]).tolist()

    assert left(1e-6) == [0] and left(100.0) == []


def test_the_hard_price_cannot_be_evaded_by_small_gates():
    """A hair open or wide open, it costs the same."""
    network = tunnel()
    small, large = (eqx.tree_at(lambda n: n.body.gate.value, network, jnp.full((2, 8), g)) for g in (0.01, 1.0))
    for price in ("units", "parameters", "multiply-adds"):
        hard = [float(total_price(fully_open(network), Recipe(price=price))) for network in (small, large)]
        assert hard[0] == pytest.approx(hard[1])


def test_the_model_that_is_kept_is_of_the_last_stage():
    last, chosen = (
        trained(tunnel()),
        fit(
            tunnel(),
            Data(DATA.x[::2], DATA.y[::2], DATA.x[1::2], DATA.y[1::2]),
            learning_rate=0.01,
            penalty=0.01,
            key=jax.random.key(1),
            recipe=RECIPE,
            max_epochs=40,
        ),
    )
    assert int(last.best_epoch) == int(last.epochs), "without a validation set the last one"
    stage = chosen.history["stage"]
    assert stage[int(chosen.best_epoch) - 1] == 2
    errors = chosen.history["dev_error"][stage == 2]
    assert chosen.history["dev_error"][int(chosen.best_epoch) - 1] == errors.min(), "with one the best of that stage"


def test_settling_begins_in_time():
    run = trained(tunnel(), max_epochs=24, learning_rate=1e-4)  # it would learn for hundreds of epochs
    assert run.history["stage"].tolist() == [0] * 18 + [1] * 3 + [2] * 3
    short = begin(tunnel(), RECIPE, Knobs(1e-3, 1e-3), jax.random.key(0))
    assert settling(short, 100, 5) is short


def test_closed_in_the_last_stage_is_closed_in_the_end():
    seen = []

    def watch(info):
        seen.append((int(info.stage), int(info.hard_size)))

    fit(tunnel(), DATA, learning_rate=0.01, penalty=0.01, key=jax.random.key(1), recipe=RECIPE, max_epochs=40, watch=watch)
    sizes = [size for stage, size in seen if stage == 2]
    assert sizes == sorted(sizes, reverse=True)


def test_members_of_a_population_settle_each_in_its_time():
    keys = seed_keys(range(3), 0)
    networks = jax.vmap(lambda key: Network.create("tunnel", 2, 1, width="auto", max_width=8, depth=2, key=key))(keys)
    options = {"learning_rate": 0.01, "penalty": np.array([1e-4, 1e-2, 0.3]), "key": keys, "recipe": RECIPE}
    run = fit(networks, DATA, **options, max_epochs=40, together=True)
    sizes = [parameters(member.best) for member in run.each()]
    assert sizes[0] > sizes[2], "a higher price, a smaller network"


def test_a_schedule_of_one_stage_cannot_settle():
    with pytest.raises(ValueError, match=r"scales=\(1\.0,\)"):
        Recipe(settle=True, scales=(1.0,))
    with pytest.raises(ValueError, match="Did you mean 'parameters'"):
        Recipe(price="parameter")


# ---- budgets


@pytest.mark.parametrize(
    ("body", "price", "count"),
    [
        ("tunnel", "parameters", parameters),
        ("budding", "multiply-adds", multiply_adds),
        *([("tunnel", "multiply-adds", multiply_adds), ("budding", "parameters", parameters)] if FACTOR > 1 else []),
    ],
)
def test_a_budget_is_never_exceeded(body, price, count):
    """One program for a vector of budgets; the sooner ended, too."""
    options = {"depth": 2} if body == "tunnel" else {"capacity": 2}
    keys = seed_keys([0, 1, 2], 0)
    networks = jax.vmap(lambda key: Network.create(body, 2, 1, width="auto", max_width=8, key=key, **options))(keys)
    budgets = np.array([20.0, 40.0, 80.0])
    recipe = Recipe(batch_size=32, patience=5, settle=True, price=price)
    for epochs in (2, 30):
        how = {"learning_rate": 0.01, "key": keys, "recipe": recipe, "max_capacity": 2, "together": True}
        run = fit(networks, DATA, budget=budgets, max_epochs=epochs, **how)
        found = [count(member.best) for member in run.each()]
        assert (np.array(found) <= budgets).all(), (epochs, found)
    assert found[2] > found[0], "a larger budget is made use of"
    assert (np.asarray(run.history["hard_cost"][-1]) <= budgets).all()


def test_a_budget_below_the_smallest_network_is_one_line_before_anything_is_trained():
    with pytest.raises(ValueError, match=r"budget=3 is below the smallest network, which has 4 parameters; raise it, or"):
        trained(tunnel(), budget=3)
    with pytest.raises(ValueError, match="A budget needs Recipe"):
        trained(tunnel(), Recipe(batch_size=32), budget=30)


# ---- estimators


def noise_columns(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """20 columns that tell the class, 200 that tell nothing, in random order; which are which."""
    rng = np.random.default_rng(seed)
    X, order = rng.normal(size=(1000, 220)), rng.permutation(220)
    y = (X[:, :20] @ rng.choice([-1, 1], 20) + np.sin(3 * X[:, 0]) > 0).astype(int)
    return X[:, order], y, order < 20


@pytest.mark.parametrize("seed", range(min(4, many(1))))
def test_inputs_of_no_use_are_dropped(seed):
    """All useful columns are found, and of the noise at most one in a hundred stays; predictions ask for all columns still."""
    X, y, useful = noise_columns(seed)
    quick = {} if FACTOR > 1 else {"max_epochs": 60, "learning_rate": 0.01}
    model = meristem.TunnelClassifier(feature_gates=True, random_state=0, depth=2, max_width=16, **quick).fit(X, y)
    kept = np.isin(np.arange(220), model.selected_features_)
    assert kept[useful].mean() == 1, kept[useful].mean()
    assert kept[~useful].mean() <= 0.01, kept[~useful].mean()
    moved = np.where(kept, X, 0)
    np.testing.assert_allclose(model.predict_proba(moved), model.predict_proba(X), rtol=1e-6)
    assert compact(model.network_).layers[0].n_in == 220


def test_an_estimator_keeps_its_budget(tmp_path):
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    model = meristem.BuddingClassifier(budget=60, random_state=0, max_width=16, max_leaves=2).fit(X, y)
    assert model.n_parameters_ <= 60 and model.score(X, y) > 0.85
    with pytest.raises(ValueError, match="budget=5 is below the smallest network"):
        meristem.BuddingClassifier(budget=5).fit(X, y)
    meristem.save(tmp_path / "model", model)
    assert meristem.load(tmp_path / "model").n_parameters_ == model.n_parameters_


def test_a_study_settles_and_keeps_a_budget_where_it_is_asked_to(tmp_path):
    args = [
        "reproduce",
        "two-spirals",
        "--models",
        "tunnel",
        "--task",
        "easy",
        "--seeds",
        "1",
        "--rate",
        "0.01",
        "--depth",
        "2",
        "--max-epochs",
        "24",
    ]
    runs = []
    for name, more in {"paper": [], "settled": ["--settle"], "within": ["--budget", 40]}.items():
        done = meristem_here(*args, *more, "--out", tmp_path / name, draws=False)
        assert done.returncode == 0, done.stderr
        runs += json.loads((tmp_path / name / "summary.json").read_text())["runs"]
    paper, settled, within = runs
    assert settled["n_parameters"] <= paper["n_parameters"]
    assert within["budget"] == 40 and within["n_parameters"] <= 40
