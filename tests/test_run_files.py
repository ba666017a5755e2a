"""Files of runs: one that is saved in the middle and loaded in a new process goes on to the same bits, all of it."""

import json
import os
import random
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import meristem
from filing import alike, complaint, create, python, write_document
from meristem import Data, Knobs, Recipe, begin, fit, load, save
from meristem.data.spirals import two_spirals
from meristem.files import document, run_file
from meristem.train.objectives import OBJECTIVES, Huber, Quantile, SquaredError
from meristem.train.run import Run
from soak import many

X, Y = two_spirals("difficult")
DATA = Data(X[::2], Y[::2], X[1::2], Y[1::2])
RECIPE = Recipe(batch_size=16, patience=3, select="loss")
OWN = Recipe(batch_size=16, patience=3, optimizer=optax.chain(optax.scale_by_lion(), meristem.scale_by_rate()))
KEY = jax.random.key(1)

GOING_ON = """if True:
    import json, sys
    import optax
    import meristem
    from meristem.data.spirals import two_spirals
    x, y = two_spirals("difficult")
    data = meristem.Data(x[::2], y[::2], x[1::2], y[1::2])
    for path, epochs, together, is_own in json.loads(sys.argv[1]):
        chain = optax.chain(optax.scale_by_lion(), meristem.scale_by_rate()) if is_own else None
        run = meristem.load(path, optimizer=chain)
        meristem.save(path + ".rest", meristem.fit(run, data, max_epochs=epochs, together=together))
"""


def population(body: str, seeds: list[int], **options):
    networks = [create(body, seed, **options) for seed in seeds]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *networks)


def trained(network, epochs: int, *, recipe: Recipe = RECIPE, together: bool | None = None, **knobs) -> Run:
    members = network.embed.weight.shape[:-2]
    key = jax.random.split(KEY, members[0]) if members else KEY
    given = {"learning_rate": 0.03, "penalty": 1e-4} | knobs
    return fit(network, DATA, key=key, recipe=recipe, max_epochs=epochs, max_capacity=4, together=together, **given)


ROWS = {"weight": np.linspace(0, 2, len(DATA.x)), "dev_weight": np.arange(len(DATA.dev_x)) % 2}
TUNNEL = create("tunnel", 1)
# What is trained, saved after how many epochs, and trained to how many.
CASES = {
    "tunnel": (partial(trained, TUNNEL), 10, 13),
    "budding": (partial(trained, create("budding", 4, capacity=2)), 1, 8),
    "budding-small-best": (partial(trained, create("budding", 1, capacity=2)), 3, 4),
    "together": (partial(trained, population("tunnel", [0, 1, 2]), together=True, penalty=np.array([0, 1e-4, 1e-3])), 4, 14),
    "alone": (
        partial(trained, population("tunnel", [0, 1, 2]), together=False, learning_rate=np.array([0.01, 0.1, 0.3])),
        4,
        40,
    ),
    "alone-growing": (partial(trained, population("budding", [4, 5], capacity=2), together=False), 3, 6),
    "own": (partial(trained, TUNNEL, recipe=OWN, learning_rate=0.01, dropout=0.1, **ROWS), 2, 4),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def middles(folder) -> dict[str, Run]:
    """Interrupted runs, each in the file NAME; what a new process made of it in NAME.rest; one of a piece in NAME.whole."""
    with jax.numpy_rank_promotion("raise"):  # as in the tests, which then compile nothing again
        made = {name: train(middle) for name, (train, middle, _) in CASES.items()}
        for name, (train, _, end) in CASES.items():
            save(folder / name, made[name])
            save(folder / f"{name}.whole", train(end))
    together = {name: train.keywords.get("together") for name, (train, _, _) in CASES.items()}
    python(GOING_ON, json.dumps([[str(folder / name), CASES[name][2], together[name], name == "own"] for name in CASES]))
    return made


@pytest.mark.parametrize("name", CASES)
@pytest.mark.usefixtures("middles")
def test_a_run_goes_on_in_a_new_process_to_the_same_bits(name, folder):
    """Best model, its epoch, history, state, knobs, capacity: the file of the whole run and of the resumed one are the same."""
    here, there = document.read(folder / f"{name}.whole"), document.read(folder / f"{name}.rest")
    assert here.header == there.header and list(here.arrays) == list(there.arrays)
    assert [n for n, array in here.arrays.items() if array.tobytes() != there.arrays[n].tobytes()] == []
    assert (folder / f"{name}.whole").read_bytes() == (folder / f"{name}.rest").read_bytes()


def test_what_these_runs_show(middles, folder):
    """That the cases are what they are there for."""
    after_best = middles["tunnel"]
    rest = load(folder / "tunnel.rest")
    assert after_best.best_epoch == rest.best_epoch == 8 < after_best.epochs == 10 < rest.epochs == 13
    assert alike(rest.best, after_best.best) and not alike(rest.best, after_best.last)
    growing = middles["budding"], load(folder / "budding.rest")
    assert [run.last.body.capacity for run in growing] == [2, 4]
    both = load(folder / "budding-small-best.rest")
    assert both.best_epoch == 1 and (both.best.body.capacity, both.last.body.capacity) == (2, 4)
    alone = load(folder / "alone-growing")
    assert [run.last.body.capacity for run in alone.each()] == [4, 2], "each member has the capacity that it was trained with"
    assert alone.last.body.capacity == 4
    ended = load(folder / "alone.rest").epochs
    assert len(set(ended.tolist())) > 1, "some members stop before others"
    assert (middles["together"].best_epoch < middles["together"].epochs).any()


@pytest.mark.parametrize("name", CASES)
def test_a_loaded_run_is_the_run(name, middles, folder, tmp_path):
    middle = middles[name]
    again = load(folder / name, optimizer=middle.recipe.optimizer)
    for part in ("state", "best", "knobs", "history", "best_epoch", "begun_at"):
        assert alike(getattr(again, part), getattr(middle, part)), part
    assert again.recipe == middle.recipe and again.members == middle.members
    assert (again.least_capacity, again.max_capacity) == (middle.least_capacity, middle.max_capacity)
    save(tmp_path / "again", again)
    assert (tmp_path / "again").read_bytes() == (folder / name).read_bytes()
    assert os.listdir(tmp_path) == ["again"]


@pytest.mark.usefixtures("middles")
def test_an_interruption_costs_the_epochs_since_the_last_save(tmp_path, folder):
    """As a person meets it: `fit` saves on the way, something happens, the file goes on."""

    def break_down(info):
        if int(info.epoch) == 11:
            raise KeyboardInterrupt

    file = tmp_path / "run"
    given = {"learning_rate": 0.03, "penalty": 1e-4, "key": KEY, "recipe": RECIPE, "max_capacity": 4}
    with pytest.raises(KeyboardInterrupt):
        fit(TUNNEL, DATA, **given, save=partial(save, file), save_seconds=0, watch=break_down)
    assert file.read_bytes() == (folder / "tunnel").read_bytes(), "after epoch 10"
    save(file, fit(load(file), DATA, max_epochs=13))
    assert file.read_bytes() == (folder / "tunnel.rest").read_bytes()


def test_a_run_before_its_first_epoch_and_one_of_a_state(tmp_path, middles):
    from meristem.train.run import of_state

    for run in (
        begin(create("budding"), Recipe(), Knobs(0.1, 0.2, dropout=0.5), KEY),
        of_state(middles["tunnel"].state, RECIPE, Knobs(0.1, 0)),
    ):
        save(tmp_path / "run", run)
        again = load(tmp_path / "run")
        assert again.history == {} and again.epochs == 0 and alike(again.state, run.state) and alike(again.knobs, run.knobs)


@pytest.mark.parametrize("objective", [*OBJECTIVES, Huber(delta=2.0), Quantile((0.1, 0.5, 0.9))], ids=str)
def test_recipes_of_every_objective(objective):
    recipe = Recipe(objective=objective, batch_size=7, scales=(1.0, 0.5), watch="error", depth_decay=0.5)
    again = run_file.unpack_recipe(run_file.pack_recipe(recipe))
    assert again == recipe and hash(again) == hash(recipe)


@dataclass(frozen=True)
class Asymmetric(SquaredError):
    """One of a person's own, with parameters."""

    name: ClassVar[str] = "asymmetric"
    weights: tuple[float, ...] = (1.0, 2.0)


@dataclass(frozen=True)
class Impostor(SquaredError):
    """With the name of one of ours."""


def test_an_objective_of_ones_own_is_found_where_it_was_defined(tmp_path, monkeypatch):
    run = begin(create("plain"), Recipe(objective=Asymmetric((3.0, 0.5))), Knobs(0.1, 0), KEY)
    save(tmp_path / "run", run)
    assert load(tmp_path / "run").recipe == load(tmp_path / "run", kinds=[Asymmetric]).recipe == run.recipe
    monkeypatch.delitem(OBJECTIVES, "asymmetric")  # as in a process that has not imported it
    text = complaint(load, tmp_path / "run")
    assert "objective='asymmetric' is not known" in text and "load(path, kinds=[…])" in text
    assert "another name" in complaint(save, tmp_path / "run", begin(create("plain"), Recipe(Impostor()), Knobs(0.1, 0), KEY))


@pytest.mark.usefixtures("middles")
def test_an_optimizer_of_ones_own_must_be_given(folder):
    assert "load(path, optimizer=chain)" in complaint(load, folder / "own")
    assert "leave optimizer=… out" in complaint(load, folder / "tunnel", optimizer=OWN.optimizer)
    assert "arrays" in complaint(load, folder / "own", optimizer=optax.adam(0.1))
    assert "must be an optax optimizer" in complaint(load, folder / "own", optimizer=3)


EVERY_ODD = [None, True, 0, -1, 3.5, 10**30, "", "tunnel", "no\nline", [], [0], [-1], [2, "a"], {}, {"body": 1}, [[]]]

ALSO_RIGHT = [("settle", True), ("follow", True), ("calibrate", True), ("linger", 3.5), ("linger", 10**30)]
ALSO_RIGHT += [("smoothing", 0), *((name, right) for name in ("weight_decay", "mixup") for right in (0, 3.5, 10**30))]


def odd_ones(name: str) -> list:
    """Some of them for each entry; in a soak all."""
    return random.Random(name).sample(EVERY_ODD, min(len(EVERY_ODD), many(4)))


@pytest.mark.usefixtures("middles")
def test_runs_that_do_not_hold_together_are_one_line(folder, tmp_path):
    """With a right digest: what somebody wrote on purpose, or a bug."""
    file = tmp_path / "forged"

    def refused(header, arrays) -> str:
        write_document(file, "run", arrays, header)
        text = complaint(load, file)
        assert repr(str(file)) in text
        return text

    whole = document.read(folder / "together")
    header, arrays = whole.header, whole.arrays
    for name in header:
        refused({key: value for key, value in header.items() if key != name}, arrays)
        for odd in odd_ones(name):
            if (name, odd) not in (("least_capacity", 0), ("capacities", [])):
                refused({**header, name: odd}, arrays)
    for part in ("recipe", "best", "state"):
        refused({**header, part: {**header[part], "surprise": 1}}, arrays)
        for name in header[part] if part != "best" else ():  # a network like any other
            for odd in odd_ones(name):
                if (name, odd) not in ALSO_RIGHT and (odd != header[part][name] or type(odd) is not type(header[part][name])):
                    refused({**header, part: {**header[part], name: odd}}, arrays)
    for name, odd in (("name", "own"), ("name", []), ("parameters", {"delta": 1}), ("parameters", [])):
        refused({**header, "recipe": {**header["recipe"], "objective": {**header["recipe"]["objective"], name: odd}}}, arrays)
    for name, array in arrays.items():
        refused(header, {key: value for key, value in arrays.items() if key != name})
        refused(header, {**arrays, name: array[None]})
        refused(header, {**arrays, name: array[:-1]})
    growing = document.read(folder / "alone-growing")
    for odd in ([[4, 2]], [[4, 2], [2, 16]], [[4, 2], [2, "2"]], [[4, 2], [2]], [[0, 1], [1, 1]], [3, 4]):
        assert "capacities" in refused({**growing.header, "capacities": odd}, growing.arrays)
    refused(header, {**arrays, "knobs.penalty": np.full(3, np.nan)})
    refused(header, {**arrays, "knobs.weight": np.full((3, 5), -1.0)})
    refused(header, {**arrays, "begun_at": arrays["begun_at"].astype(float)})
    assert "surprise" in refused(header, {**arrays, "surprise": np.zeros(3)})
    assert "epochs" in refused(header, {name: a[:2] if name.startswith("history.") else a for name, a in arrays.items()})
    other = document.read(folder / "budding")
    best = {name: a for name, a in other.arrays.items() if name.startswith("best.")}
    mixed = {name: a for name, a in document.read(folder / "tunnel").arrays.items() if not name.startswith("best.")} | best
    one = document.read(folder / "tunnel").header
    assert "differ in body" in refused({**one, "best": other.header["best"]}, mixed)


def test_damaged_files_of_runs_are_refused(folder, middles, tmp_path):
    data, file, chance = (folder / "tunnel").read_bytes(), tmp_path / "run", random.Random(0)

    def outcome() -> str | Run:
        try:
            return load(file)
        except ValueError as error:
            return str(error)

    for place in chance.sample(range(len(data)), min(many(140), len(data))):
        for damage in (data[:place] + bytes([data[place] ^ 1 << chance.randrange(8)]) + data[place + 1 :], data[:place]):
            file.unlink(missing_ok=True)
            file.write_bytes(damage)
            result = outcome()
            if isinstance(result, str):
                assert result.startswith(repr(str(file))) and "\n" not in result
            else:  # JSON's white space
                assert len(damage) == len(data) and alike(result.state, middles["tunnel"].state)
