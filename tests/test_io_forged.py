"""Files that are true or refused: what is forged with a right digest, what is too large, what was written wrong; `save` too.

Cases that once failed are in tests/cases and are replayed; forging.py makes new ones.
"""

import copy
import os
import random
import tracemalloc
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy

import forging
import meristem
from filing import alike, complaint, create, write_document
from meristem import load, save
from meristem.data.spirals import two_spirals
from meristem.nn.tree import is_tree
from meristem.report.task_metrics import DEFAULTS
from meristem.tables.split import TASKS
from soak import FACTOR, many, tell

pytestmark = pytest.mark.filterwarnings("ignore::meristem.GrowthWarning")
MEMORY = 20e6  # bytes: far less than what is asked for


@pytest.fixture(scope="module")
def forge(tmp_path_factory) -> forging.Forge:
    return forging.Forge(tmp_path_factory.mktemp("forged"), every=FACTOR > 1, programs=many(1))


@pytest.fixture
def file(tmp_path) -> Path:
    return tmp_path / "model.safetensors"


def test_forged_and_damaged_files_work_or_are_refused(forge):
    """10,000 of them in a soak; the smallest of those that fail are kept in tests/cases."""
    outcomes = []
    for outcome in forge.outcomes(many(130)):
        outcomes.append(outcome._replace(data=b""))
        if outcome.result == "failed":
            forging.keep(outcome)
    found = forging.report(outcomes)
    tell("model files", **found)
    assert found["failures"] == []
    assert min(found["counts"].get(f"forged {result}", 0) for result in ("works", "refused")) > many(5)
    assert found["counts"]["damaged refused"] > many(10)


@pytest.mark.parametrize("case", sorted(forging.CASES.glob("*.safetensors")), ids=lambda path: path.stem)
def test_cases_that_once_failed(case, forge):
    outcome = forge.outcome("forged", case.stem, case.read_bytes())
    assert outcome.result != "failed", outcome.words


def with_entry(header: dict, place: list, value: object) -> dict:
    """A header of which one entry is another; None: it is gone."""
    forged = copy.deepcopy(header)
    *path, name = place
    inside = forged
    for key in path:
        inside = inside[key]
    inside[name] = value
    if value is None:
        del inside[name]
    return forged


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        ("", [], "all of it is [], not an object"),
        ("", {"seed": 0}, "table is not there"),
        ("score", None, "score is not there"),
        ("score", 3, "score is 3, not an object"),
        ("score value", "good", "score.value is 'good', not a finite number"),
        ("score high", 10**400, "score.high is "),
        ("score measure", "R²", "score.measure is 'R²', not that of a class"),
        ("score rmse", "1", "score.rmse is '1', not a finite number"),
        ("rows", {}, "rows.all is not there"),
        ("rows test", -1, "rows.test is -1, not an integer of at least 1"),
        ("rows train", 10**6, "of which parts are more than the whole"),
        ("seed", True, "seed is True, not an integer"),
        ("n_parameters", 1.5, "n_parameters is 1.5, not an integer"),
        ("classes", ["ash", "elm"], "classes is ['ash', 'elm'], and the model's is"),
        ("target", "another", "target is 'another', and the model's is 'tree'"),
        ("task", "number", "task is 'number', and the model's is 'class'"),
        ("inputs", 4, "inputs is 4, and the model's is 3"),
        ("baselines", {"rocket": {"value": 1}}, "baselines.rocket is none of constant, last_value, linear, boosting, mlp"),
        ("baselines mlp lacks", 7, "baselines.mlp.lacks is 7, not a text"),
        ("columns", ["a"], "columns is ['a'], not an object"),
        ("doubts", "odd", "doubts is 'odd', not a list"),
        ("doubts", [3], "an entry of doubts is 3, not a text"),
        ("versions", {"é" * 5000: 3}, "is 3, not a text"),
        ("seconds all", -1e300, "seconds.all is -1e+300, not a number of seconds"),
        ("seconds", None, "seconds is not there"),
        ("test", {"table": 3}, "test.table is 3, not a text"),
        ("table_sha256", "no digest", "table_sha256 is 'no digest', not a SHA-256 digest"),
        ("cores", "two", "cores is 'two'"),
    ],
)
def test_wrong_facts_of_a_tables_model_are_refused(forge, file, place, value, says):
    """They were found when a report was written, with a KeyError."""
    original = forge.documents["table"]
    header = with_entry(original.header, ["facts", *place.split()], value)
    write_document(file, original.kind, original.arrays, header)
    text = complaint(load, file)
    assert repr(str(file)) in text and "its facts do not fit: " in text and says in text and len(text) <= 300, text


def test_facts_that_nobody_reads_may_be_anything(forge, file):
    original = forge.documents["table"]
    noted = original.header["facts"] | {"note": {"mine": [None, 3]}}
    write_document(file, original.kind, original.arrays, original.header | {"facts": noted})
    model = load(file)
    assert model.facts["note"] == {"mine": [None, 3]} and "accuracy 0.500" in repr(model)


@pytest.mark.parametrize("which", ["rare", "categories"])
def test_a_column_of_more_categories_than_a_table_has_is_refused(forge, file, which):
    original = forge.documents["table"]

    def with_categories(n: int) -> None:
        place = ["encoding", "columns", 2, which]
        header = with_entry(original.header, place, [f"c{number}" for number in range(n)])
        write_document(file, original.kind, original.arrays, header)

    with_categories(40_000)
    text = complaint(load, file)
    assert repr(str(file)) in text and "column 'c' has 40,00" in text and "at most 1,000" in text and len(text) <= 300, text
    if which == "rare":  # they share an input
        with_categories(998)
        text = complaint(load, file)
        assert "4 inputs" in text, "as many as there may be are a question of the inputs alone"


def test_what_facts_and_categories_are_compared_with_is_what_is_written():
    assert set(DEFAULTS) == set(TASKS) and all(metric.task == task for task, metric in DEFAULTS.items())


def test_what_numbers_must_be(forge, file):
    """With a right digest, and each entry of the right form."""

    def refused(source: str, name: str, change, *words: str) -> None:
        found = forge.documents[source]
        arrays = dict(found.arrays)
        arrays[name] = change(arrays[name].copy())
        write_document(file, found.kind, arrays, found.header)
        text = complaint(load, file)
        assert all(word in text for word in (repr(str(file)), *words)), text

    def with_first(value):
        def change(array):
            array.reshape(-1)[0] = value
            return array

        return change

    refused("tunnel", "body.gate.value", with_first(1.5), "'body.gate.value' holds 1.5", "[0, 1]")
    refused("tunnel", "body.gate.value", with_first(np.nan), "holds nan")
    refused("tunnel", "head.weight", with_first(np.inf), "'head.weight' holds inf", "finite")
    refused("tunnel", "body.weight", with_first(np.nan), "'body'", "not finite")
    refused("tree", "body.leafness.value", with_first(-1e-6), "body.leafness.value")
    refused("tree", "body.bud.bias", with_first(-np.inf), "bud.bias")
    refused("tree", "body.depth", lambda depth: np.where(depth >= 0, 0, depth), "is no tree")
    refused("networks", "body.depth", lambda depth: with_first(0)(depth), "is no tree")
    refused("identity", "body.trunk.value", with_first(2), "body.trunk.value")
    refused("run", "state.opt_state.0.mu.head.bias", with_first(np.nan), "opt_state.0.mu.head.bias", "finite")
    refused("run", "state.opt_state.0.nu.head.bias", with_first(-1), "mean of squares")
    refused("run", "state.opt_state.0.age.head.bias", with_first(-1), "an age")
    refused("run", "state.plateau.best", with_first(np.nan), "plateau.best")
    refused("run", "state.plateau.stage", with_first(4), "stage")
    refused("run", "state.epoch", with_first(-1), "epoch")
    refused("run", "best_epoch", with_first(9), "best epoch")
    refused("run", "state.network.embed.weight", lambda a: a.astype("f2"), "several types")
    refused("run", "history.stopped", lambda a: a.astype("f4"), "history")
    refused("classes", "scaling.variance", with_first(-1), "variance")
    refused("classes", "scaling.mean", with_first(np.nan), "finite")
    refused("classes", "scaling.fill", with_first(np.inf), "finite")
    refused("classes", "network.head.bias", with_first(np.nan), "head.bias")
    refused("classes", "history.loss", lambda a: a[:0], "history")
    refused("search", "table.penalty", with_first(np.nan), "'penalty'")
    refused("search", "table.finished", lambda a: a.astype(float), "'finished'")


def test_what_headers_must_be(forge, file):
    def refused(source: str, path: tuple, value, word: str) -> None:
        found = forge.documents[source]
        header = copy.deepcopy(found.header)
        inside = header
        for key in path[:-1]:
            inside = inside[key]
        inside[path[-1]] = value
        write_document(file, found.kind, found.arrays, header)
        text = complaint(load, file)
        assert word in text and repr(str(file)) in text, text

    for names in (["oak", "elm", "ash"], ["ash", "ash", "oak"], ["ash", "elm", 3], "ash"):
        refused("classes", ("targets", "names"), names, "classes are")
    refused("classes", ("targets", "names"), ["ash", "oak"], "fit together")  # one output for two
    refused("classes", ("targets",), {"kind": "labels", "count": 3.0}, "labels")
    refused("classes", ("targets",), {"kind": "quantiles", "is_flat": True}, "objective")
    refused("classes", ("parameters", "width"), "wide", "width='wide'")
    refused("classes", ("parameters", "penalty"), -1, "penalty=-1")
    refused("classes", ("parameters", "standardize"), "yes", "standardize='yes'")
    refused("classes", ("parameters", "class_weight"), {"sets": [1]}, "unknown form")
    refused("classes", ("parameters", "device"), 3, "device=3")
    refused("classes", ("learned", "n_iter_"), 2.5, "n_iter_ is 2.5")
    refused("classes", ("estimator",), "BuddingClassifier", "parameter of BuddingClassifier='depth'")
    refused("classes", ("estimator",), "HighwayClassifier", "a highway one")
    refused("classes", ("estimator",), "TunnelRegressor", "parameter")
    refused("classes", ("state", "network", "activation"), "tanh", "differ in activation")
    refused("run", ("best", "activation"), "tanh", "differ in activation")
    refused("run", ("recipe", "price"), "parameters", "history")
    refused("search", ("chosen", "penalty"), 3, "chosen")
    refused("search", ("members", 1, "targets", "names"), ["a", "b", "c"], "differ in inputs")


def test_a_small_file_asks_for_little(forge, file):
    """Sizes that a header names are checked before anything of that size is made."""
    labels = copy.deepcopy(forge.documents["classes"].header) | {"targets": {"kind": "labels", "count": 10**9}}
    wide = forge.documents["tree"].header | {"capacity": 2**30}
    many_members = forge.documents["networks"].header | {"members": [2**30]}
    many_folds = copy.deepcopy(forge.documents["search"].header)
    many_folds["members"] = many_folds["members"] * 500
    for source, header in (("classes", labels), ("tree", wide), ("networks", many_members), ("search", many_folds)):
        write_document(file, forge.documents[source].kind, forge.documents[source].arrays, header)
        assert _peak(lambda: complaint(load, file)) < MEMORY


def test_a_large_file_is_refused_after_its_header(file):
    """20 GB that are hardly on the disk: zeros, a model that goes on, another program's, one whose array is too short."""
    save(file, create("tunnel"))
    model, other = file.read_bytes(), safetensors.numpy.save({"weight": np.zeros(3)})
    size = b'{"weight":{"dtype":"F32","shape":[5000000000],"data_offsets":[0,20000000000]}}'
    huge = len(size).to_bytes(8, "little") + size
    endless = (10**10).to_bytes(8, "little") + b"{"
    for data, word in (
        (b"", "not a safetensors"),
        (model, "goes on"),
        (other, "goes on"),
        (huge, "another"),
        (endless, "long"),
    ):
        file.write_bytes(data)
        os.truncate(file, 20_000_000_000 + (len(huge) if data is huge else 0))
        text = []
        assert _peak(lambda text=text: text.append(complaint(load, file))) < MEMORY
        assert word in text[0]


def _peak(call) -> int:
    """The most memory that Python and NumPy had at once, in bytes."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_file_is_opened_once(file, monkeypatch):
    save(file, create("tunnel"))
    opened, really = [], os.open
    monkeypatch.setattr(os, "open", lambda path, *args, **options: opened.append(path) or really(path, *args, **options))
    load(file)
    assert opened == [os.fspath(file)]


def test_a_long_name_is_shortened(tmp_path):
    folder = tmp_path / ("folder" * 30) / ("more" * 50)
    folder.mkdir(parents=True)
    place = folder / f"{'model' * 40}.safetensors"
    text = complaint(load, place)
    assert text.endswith("model.safetensors' does not exist; check the path.")
    place.write_bytes(b"nonsense")
    complaint(load, place)
    write_document(place, "network", {"x" * 5000: np.zeros(1)}, {"body": "y" * 5000})
    complaint(load, place)
    assert "cannot be read" in complaint(load, tmp_path / ("n" * 400))
    assert "cannot be read" in complaint(load, "nu\0ll")


def test_what_was_written_wrong_replaces_nothing(file, monkeypatch):
    """The disk gives back another byte than it was given."""
    save(file, create("tunnel"))
    before, really = file.read_bytes(), os.fsync

    def faulty(descriptor: int) -> None:
        really(descriptor)
        os.pwrite(descriptor, b"\x07", 3000)

    monkeypatch.setattr(os, "fsync", faulty)
    assert "cannot be saved" in complaint(save, file, create("budding", capacity=16))
    assert file.read_bytes() == before and os.listdir(file.parent) == [file.name]


def test_what_load_refuses_is_not_saved(file):
    network = create("tunnel")
    off = eqx.tree_at(lambda n: n.body.gate.value, network, jnp.full((2, 3), 2.0))
    text = complaint(save, file, off)
    assert "cannot be saved" in text and "body.gate.value" in text
    tree = eqx.tree_at(lambda n: n.body.depth, create("budding"), jnp.zeros(4, jnp.int32))
    assert "is no tree" in complaint(save, file, tree)
    assert "finite" in complaint(save, file, eqx.tree_at(lambda n: n.head.bias, network, jnp.full(1, jnp.nan)))
    assert not file.exists()


def test_a_run_that_diverged_is_kept(file):
    """Its state is that before the epoch; the loss of that epoch is NaN, a square that overflowed +∞."""
    recipe = meristem.Recipe(objective="squared_error", batch_size=64, select="loss")
    x, y = two_spirals("difficult")
    data = (x, 1e15 * y[:, None].astype(np.float32))
    run = meristem.begin(create("tunnel"), recipe, meristem.Knobs(learning_rate=1e15, penalty=0), jax.random.key(1))
    for _ in range(4):  # also when it has stopped
        run, _ = meristem.advance(run, data)
    overflown = jax.tree.map(lambda nu: nu.at[...].set(jnp.inf), run.state.opt_state[0].nu)
    run = copy.copy(run)
    state = eqx.tree_at(lambda s: s.opt_state[0], run.state, run.state.opt_state[0]._replace(nu=overflown))
    object.__setattr__(run, "state", state)
    assert run.diverged and not np.isfinite(run.history["loss"]).all()
    save(file, run)
    again = load(file)
    assert alike(again.state, run.state) and alike(again.history, run.history)


def test_trees_that_are_trees():
    """Against the definition: in each part of the row one node is least deep, and by one deeper than what bounds it."""
    chance, found = random.Random(0), 0

    def is_one(inner: list[int], level: int = 0) -> bool:
        places = [place for place, depth in enumerate(inner) if depth == level]
        if not inner:
            return True
        return len(places) == 1 and all(is_one(part, level + 1) for part in (inner[: places[0]], inner[places[0] + 1 :]))

    for _ in range(many(2000)):
        inner = [chance.choice([0, 0, 1, 1, 1, 2, 2, 3]) for _ in range(chance.randrange(6))]
        free = [-1] * chance.randrange(3)
        assert is_tree([-1, *inner, *free]) == is_one(inner), inner
        assert not is_tree([-1, *inner, -1, *free, 0]) and not is_tree([0, *inner]) and not is_tree([-1, *inner, -2])
        found += is_one(inner)
    assert found > 100
