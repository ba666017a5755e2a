"""Forged and damaged model files, and what `load` makes of them: a thing that works, or one line that refuses it.

    forge = Forge(folder, seed=0)
    for outcome in forge.outcomes(tries):       Outcome("forged", "tunnel", "refused", "… cannot be loaded: …", b"…")
        …

A *forged* file is a real one of which some entries of the header or some arrays were changed, with a right digest; a *damaged*
one had bytes flipped, cut, moved or mixed with those of another. Each outcome is one of

    works       it loaded, predicts finite numbers, can be saved again, and a run or an estimator goes on (each program at most
                once: what a compiled epoch takes depends on shapes alone)
    refused     a ValueError of one line, of at most 300 characters, that names the file
    failed      anything else: a bug. `smallest` undoes what it does not need; `keep` writes it to tests/cases, which the suite
                replays

`report(outcomes)` counts them; `python tests/forging.py 10000` prints it. Of pytest it uses nothing: a soak may call it.
"""

import contextlib
import copy
import json
import random
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning

import meristem
from filing import create, grown
from meristem.compact import compact
from meristem.compact.inference import Predictor, as_numpy
from meristem.data.spirals import two_spirals
from meristem.estimators.cv import CrossValidated
from meristem.files import document, load, save
from meristem.inputs import Schema
from meristem.inputs.schema import Field
from meristem.nn import Network
from meristem.paths.members import COLUMNS, grid
from meristem.paths.result import Path as PenaltyPath
from meristem.report import from_table, render_page
from meristem.tables.table_model import TableModel
from meristem.train.run import Run, advance

CASES = Path(__file__).parent / "cases"
LONGEST = 300
TAME = 1e6  # numbers below it do not overflow in a small network
SMALL = {"width": 4, "max_epochs": 2, "random_state": 0, "settle": False}
ODD: list[Any] = [None, True, False, 0, -1, 1, 2, 3.5, 1e300, 10**9, 2**31, 10**30, "", "tunnel", "no\nline", "é" * 500]
ODD += [[], [0], [-1], [2, "a"], {}, {"body": 1}, [[]], ["a", "b"], {"tuple": [1]}, {"pairs": [[1, 2]]}, {"float": "nan"}]
NUMBERS = [np.nan, np.inf, -np.inf, -1.0, -1e-6, 1.5, 1e30, -1e300, 0.0, 1.0, 7.0, 2.0**31]
TYPES = ["f2", "f4", "f8", "i1", "i4", "i8", "u1", "u4", "?"]


class Outcome(NamedTuple):
    """Of one file."""

    way: str  # forged or damaged
    source: str
    result: str  # works, refused or failed
    words: str  # what was said, or what is wrong
    data: bytes  # the file


class Change(NamedTuple):
    """One thing that is done to a document; the same chance does the same again."""

    apply: Callable[[random.Random, dict[str, Any], dict[str, np.ndarray]], None]
    seed: int


# Real files -----------------------------------------------------------------------------------------------------------------


def sources(folder: Path, *, every: bool) -> dict[str, Path]:
    """A real file of each kind of thing, small ones; `every`: of those that take longer to make, too."""
    things: dict[str, Any] = {
        "tunnel": create("tunnel"),
        "highway": create("highway"),
        "tree": _tame(grown(8, 5)),
        "identity": create("budding", root="identity", capacity=2, learn_width=True),
        "networks": jax.vmap(lambda key: create("budding"))(jax.random.split(jax.random.key(0), 3)),
        **_runs(every),
        **_estimators(every),
    }
    things["search"] = _search(things["classes"])
    things["table"] = _table(things["search"])
    found = {}
    for name, thing in things.items():
        found[name] = folder / name
        save(found[name], thing)
    return found


def _tame(network: Network) -> Network:
    return jax.tree.map(lambda leaf: jnp.clip(leaf, -2, 2) if eqx.is_inexact_array(leaf) else leaf, network)


def _runs(every: bool) -> dict[str, Run]:
    recipe = meristem.Recipe(batch_size=64, patience=3, select="loss")
    knobs = meristem.Knobs(learning_rate=0.03, penalty=1e-4)
    begun = meristem.begin(create("tunnel", 1), recipe, knobs, jax.random.key(1))
    made = {"run": advance(begun, two_spirals("difficult"))[0]}
    made["run of a tree"] = meristem.begin(create("budding", 4, capacity=2), recipe, knobs, jax.random.key(1))
    if every:
        many = jax.vmap(lambda key: create("tunnel"))(jax.random.split(jax.random.key(0), 3))
        priced = knobs._replace(penalty=np.array([0, 1e-4, 1e-3]), dropout=0.1)
        both = meristem.begin(many, recipe, priced, jax.random.split(jax.random.key(1), 3))
        made["runs"] = advance(advance(both, two_spirals("difficult"))[0], two_spirals("difficult"))[0]
        settles = meristem.Recipe(batch_size=64, settle=True, price="parameters", select="loss")
        made["run that settles"] = advance(
            meristem.begin(create("budding", 4, capacity=2), settles, knobs, jax.random.key(1)), two_spirals("difficult")
        )[0]
    return made


def _estimators(every: bool) -> dict[str, Any]:
    chance = np.random.default_rng(0)
    X = chance.standard_normal((40, 3))
    X[::7, 1] = np.nan
    two, three, y = X[:, 0] > 0, np.array(["ash", "elm", "oak"])[chance.integers(0, 3, 40)], X[:, 0] ** 2
    made = {
        "classes": (meristem.TunnelClassifier(depth=2, class_weight={"ash": 2.0, "elm": 1, "oak": 1}, **SMALL), three),
        "two": (meristem.BuddingClassifier(max_leaves=2, **SMALL), two),
    }
    if every:
        labels, counts = np.stack([two, ~two], 1).astype(int), chance.poisson(2.0, 40)
        made |= {
            "labels": (meristem.TunnelClassifier(depth=2, **SMALL), labels),
            "numbers": (meristem.HighwayRegressor(depth=2, **SMALL), np.stack([y, -y], 1)),
            "counts": (meristem.TunnelRegressor(depth=2, loss="poisson", **SMALL), counts),
            "quantiles": (meristem.TunnelRegressor(depth=2, loss="quantile", quantiles=[0.1, 0.9], **SMALL), y),
        }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            name: model.partial_fit(X, target, **({"classes": target} if is_classifier(model) else {}))
            for name, (model, target) in made.items()
        }


def _search(member: Any) -> Any:
    """As a search leaves it, without one: a bag of two, and a table of what was tried."""
    members = grid(penalties=[1e-3, 1e-2], l2s=[0.0], dropouts=[0.0], rates=[3e-3], folds=2)
    columns = {name: np.array([getattr(member, name) for member in members]) for name in COLUMNS}
    count = len(members)
    said = {"loss": np.arange(4.0), "error": np.zeros(4), "n_parameters": np.arange(4), "soft_size": np.zeros(4)}
    said |= {"hard_size": np.zeros(4, int), "epochs": np.ones(count, int), "finished": np.ones(count, bool)}
    path = PenaltyPath(columns | said, (), np.zeros((count, 2), np.float32), 1.5)
    model = meristem.TunnelClassifierCV(depth=2, penalties=[1e-3, 1e-2], cv=2, width=4)
    model._store(path, path.best(), [member, copy.copy(member)], None)
    return model


def _table(search: Any) -> TableModel:
    """As `fit_table` leaves it, without a fit: two numbers, and a category of which one has no input."""
    columns = [Field("a", "number", "numbers"), Field("b", "date", "dates, as days")]
    columns.append(Field("c", "category", "2 categories", ("red",), (), False, "blue"))
    score = {"measure": "accuracy", "value": 0.5, "low": 0.25, "high": 0.75}
    labels = search.classes_.tolist()
    facts: dict[str, Any] = {
        "seed": 0,
        "table": "table.csv",
        "table_sha256": None,
        "test": None,
        "target": "tree",
        "task": "class",
    }
    facts |= {"why": "texts", "classes": labels, "inputs": 3, "n_parameters": int(search.n_parameters_), "score": score}
    facts |= {
        "rows": {"all": 50, "without_target": 2, "train": 38, "test": 10, "searched_with": 38},
        "device": "cpu",
        "cores": 2,
    }
    facts |= {
        "columns": {column.name: column.why for column in columns},
        "dropped": {"id": "more than 1,000 categories"},
        "doubts": ["odd"],
    }
    facts |= {"baselines": {"constant": score, "mlp": score | {"lacks": "7 epochs"}}, "versions": {"jax": "0.9"}}
    facts["seconds"] = {"limit": 20.0, "ended_the_search": True, "reading": 0.1, "baselines": 1, "search": 15.5, "all": 17.0}
    return TableModel(Schema(tuple(columns), (("id", "more than 1,000 categories"),)), search, "tree", "class", facts)


# What is done to them -------------------------------------------------------------------------------------------------------


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every entry of a header, by its path."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, entry in inside for place in [(*path, key), *_places(entry, (*path, key))]]


def _inside(header: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        header = header[key]
    return header


def entry_is_odd(chance: random.Random, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """An entry becomes something else."""
    *path, key = chance.choice(_places(header))
    _inside(header, tuple(path))[key] = copy.deepcopy(chance.choice(ODD))


def entry_is_another(chance: random.Random, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """An entry becomes what another one of its type is; a number, one near it."""
    places = _places(header)
    path = chance.choice(places)
    value = _inside(header, path)
    alike = [other for other in places if type(_inside(header, other)) is type(value)]
    near = [value - 1, value + 1, value * 2, -value] if type(value) in (int, float) else []
    chosen = chance.choice([*near, *(_inside(header, chance.choice(alike)) for _ in range(2))])
    _inside(header, path[:-1])[path[-1]] = copy.deepcopy(chosen)


def entry_is_missing(chance: random.Random, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    *path, key = chance.choice(_places(header))
    del _inside(header, tuple(path))[key]


def entry_is_new(chance: random.Random, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    inside = [place for place in [(), *_places(header)] if isinstance(_inside(header, place), dict | list)]
    found = _inside(header, chance.choice(inside))
    if isinstance(found, dict):
        found[chance.choice(["surprise", "width", "depth", "key", "names", "objective"])] = copy.deepcopy(chance.choice(ODD))
    else:
        found.insert(chance.randint(0, len(found)), copy.deepcopy(chance.choice([*ODD, *found])))


def number_is_odd(chance: random.Random, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """One number of an array becomes another, or all do."""
    name = chance.choice([*arrays])
    array = arrays[name] = arrays[name].copy()
    value = chance.choice(NUMBERS)
    if array.dtype.kind in "iu":
        low, high = np.iinfo(array.dtype).min, np.iinfo(array.dtype).max
        value = int(np.clip(np.nan_to_num(chance.choice([value, chance.randint(-2, 8), low, high])), low, high))
    with np.errstate(all="ignore"):
        where = chance.randrange(array.size) if array.size and chance.random() < 0.8 else slice(None)
        array.reshape(-1)[where] = value


def tree_is_another(chance: random.Random, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    trees = [name for name in arrays if name.endswith("depth") and arrays[name].size]
    if not trees:
        number_is_odd(chance, header, arrays)
        return
    name = chance.choice(trees)
    array = arrays[name]
    rows = [[chance.randint(-2, 4) for _ in range(array.shape[-1])] for _ in range(array.size // array.shape[-1])]
    arrays[name] = np.array(rows, array.dtype).reshape(array.shape)


def array_is_another(chance: random.Random, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """An array has another type, shape, order, name or place, or is gone."""
    name = chance.choice([*arrays])
    array, other = arrays[name], arrays[chance.choice([*arrays])]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arrays[name] = chance.choice(
            [
                lambda: array.astype(chance.choice(TYPES)),
                lambda: array.reshape(-1),
                lambda: array[None],
                lambda: array.T.copy(),
                lambda: array.reshape(-1)[::-1].reshape(array.shape).copy(),
                lambda: other.copy(),
                lambda: np.zeros_like(array),
                lambda: array[..., :-1].copy() if array.ndim else array,
                lambda: np.concatenate([array, array]) if array.ndim else array,
                lambda: array[:0].copy() if array.ndim else array,
            ]
        )()
    if chance.random() < 0.2:
        del arrays[name]
    elif chance.random() < 0.1:
        arrays[f"{name}.more"] = arrays[name]


def rows_are_more(chance: random.Random, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """A size and every array that has it, so that shapes still fit."""
    sizes = [place for place in _places(header) if type(_inside(header, place)) is int and 1 < _inside(header, place) < 50]
    if not sizes:
        entry_is_odd(chance, header, arrays)
        return
    size = _inside(header, chance.choice(sizes))
    new = chance.choice([size + 1, size - 1, 2 * size])
    for place in sizes:
        if _inside(header, place) == size:
            _inside(header, place[:-1])[place[-1]] = new
    for name, array in arrays.items():
        arrays[name] = np.resize(array, [new if length == size else length for length in array.shape])


CHANGES = [
    entry_is_odd,
    entry_is_another,
    entry_is_missing,
    entry_is_new,
    number_is_odd,
    number_is_odd,
    tree_is_another,
    array_is_another,
    rows_are_more,
]


def forged(data: document.Document, changes: Iterable[Change]) -> bytes | None:
    """The file after these changes, with a right digest; None where no file holds that."""
    header, arrays = copy.deepcopy(data.header), dict(data.arrays)
    try:
        for change in changes:
            change.apply(random.Random(change.seed), header, arrays)
        return document.packed(data.kind, arrays, header)
    except (ValueError, LookupError, TypeError, ArithmeticError):  # nothing is left to change, or JSON has no such number
        return None


def damaged(chance: random.Random, data: bytes, other: bytes) -> bytes:
    """Bytes flipped, set, cut, moved, doubled or mixed with another file's; more often at the beginning."""
    a, b, c, d = sorted(chance.choices(range(len(data) + 1), k=4) if chance.random() < 0.5 else _early(chance, data))
    flipped = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        flipped[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    ways = [bytes(flipped), data[:a] + bytes([chance.randrange(256)]) + data[a + 1 :], data[:b], data[:a] + data[b:]]
    ways += [data[:b] + data[a:], data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:], data[:a] + other[a:], data + other]
    return chance.choice(ways)


def _early(chance: random.Random, data: bytes) -> list[int]:
    return [min(int(chance.expovariate(1 / 200)), len(data)) for _ in range(4)]


# What becomes of them -------------------------------------------------------------------------------------------------------


class Forge:
    """Makes files in a folder and tells what became of each."""

    def __init__(self, folder: Path, *, seed: int = 0, every: bool = False, programs: int = 1):
        self.chance, self.file, self.again = random.Random(seed), folder / "forged.safetensors", folder / "again.safetensors"
        self.paths = sources(folder, every=every)
        self.documents = {name: document.read(path) for name, path in self.paths.items()}
        self.programs_left = programs  # that may be compiled to see whether a run goes on
        self.known: set[Any] = set()

    def outcomes(self, tries: int, *, forging: float = 0.75) -> Iterator[Outcome]:
        """So many files, the share `forging` of them forged, the rest damaged."""
        names = [*self.paths]
        for number in range(tries):
            name = names[number % len(names)]
            if self.chance.random() < forging:
                count = self.chance.choice([1, 1, 1, 2, 3])
                changes = [Change(self.chance.choice(CHANGES), self.chance.randrange(2**32)) for _ in range(count)]
                data = forged(self.documents[name], changes)
                if data is None:
                    continue
                outcome = self.outcome("forged", name, data)
                yield outcome if outcome.result != "failed" else self.smallest(name, changes, outcome)
            else:
                other = self.paths[self.chance.choice(names)].read_bytes()
                yield self.outcome("damaged", name, damaged(self.chance, self.paths[name].read_bytes(), other))

    def outcome(self, way: str, name: str, data: bytes) -> Outcome:
        """What becomes of one file."""
        self.file.unlink(missing_ok=True)
        self.file.write_bytes(data)
        try:
            thing = load(self.file)
        except ValueError as error:
            text = str(error)
            is_fine = type(error) is ValueError and "\n" not in text and len(text) <= LONGEST and repr(str(self.file)) in text
            return Outcome(way, name, "refused" if is_fine else "failed", text, data)
        except Exception as error:
            return Outcome(way, name, "failed", f"load: {type(error).__name__}: {error}", data)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                self._works(thing)
        except Exception as error:
            return Outcome(way, name, "failed", f"{type(thing).__name__}: {type(error).__name__}: {error}", data)
        return Outcome(way, name, "works", type(thing).__name__, data)

    def smallest(self, name: str, changes: list[Change], found: Outcome) -> Outcome:
        """The same failure with as few changes as can be."""
        for change in list(changes):
            fewer = [one for one in changes if one is not change]
            data = forged(self.documents[name], fewer) if fewer else None
            outcome = found if data is None else self.outcome("forged", name, data)
            if data is not None and outcome.result == "failed":
                changes, found = fewer, outcome
        return found

    def _works(self, thing: Any) -> None:
        if isinstance(thing, Network):
            self._computes(thing)
        elif isinstance(thing, Run):
            self._computes(thing.best)
            assert all(len(values) >= int(thing.epochs.max()) for values in thing.history.values())
            assert thing.temperature.shape == thing.members and thing.stopped.shape == thing.members
            assert len(thing.each()) == (thing.members[0] if thing.members else 1)
            self._goes_on(thing)
        elif isinstance(thing, TableModel):
            self._says(thing)
        else:
            X = np.zeros((5, thing.n_features_in_))
            X[1], X[2], X[3] = 1.0, -3.0, np.nan
            if hasattr(thing, "feature_names_in_"):
                del thing.feature_names_in_
            with np.errstate(all="ignore"):
                said = [thing.predict(X)]
                said += [thing.predict_proba(X)] if hasattr(thing, "predict_proba") else []
            assert all(len(one) == 5 and (one.dtype.kind != "f" or np.isfinite(one).all()) for one in said), said
            assert thing.n_iter_ >= 1 and thing.n_parameters_ >= 1 and thing.get_params()
            if not isinstance(thing, CrossValidated):
                self._learns_more(thing, X)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            save(self.again, thing)

    def _says(self, model: TableModel) -> None:
        """A table's model: what it is, of whom, how good, on a page, and what it says of rows."""
        assert repr(model) and model._repr_html_() and render_page(from_table(model))
        frame = {column.name: ["1", "red", "", "2020-02-02"] for column in model.schema.fields}
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of what is unlike
            assert len(model.predict(frame)) == len(model.predict_proba(frame)) == 4 and isinstance(model.doubts(frame), list)
        answers = {model.target: [str(label) for label in model.classes.tolist()[:1]] * 4}
        assert 0 <= model.score(frame | answers) <= 1 and render_page(from_table(model, frame | answers))

    def _computes(self, network: Network) -> None:
        members = network.embed.weight.shape[:-2]
        one = jax.tree.map(lambda leaf: np.asarray(leaf)[(0,) * len(members)], network)
        x = np.linspace(-1, 1, 3 * one.embed.weight.shape[-1]).reshape(3, -1)
        largest = max(float(np.abs(leaf.astype(float)).max(initial=0)) for leaf in jax.tree.leaves(one))
        with np.errstate(all="ignore"):
            said = Predictor(as_numpy(compact(jax.tree.map(jnp.asarray, one)))).outputs(x)
        assert said.shape == (3, one.head.weight.shape[-2]) and (largest > TAME or np.isfinite(said).all()), said

    def _is_new(self, program: Any) -> bool:
        """Whether it has not been seen at work, and there is time to."""
        is_new = program not in self.known and self.programs_left > 0
        self.known.add(program)
        self.programs_left -= is_new
        return is_new

    def _goes_on(self, run: Run) -> None:
        shapes = tuple((leaf.shape, str(leaf.dtype)) for leaf in jax.tree.leaves((run.state, run.knobs)))
        n_in, n_out = run.best.embed.weight.shape[-1], run.best.head.weight.shape[-2]
        if (n_in, n_out) != (2, 1) or run.recipe.task.name != "binary" or run.knobs.passes is not None:
            return
        if run.knobs.weight is None and run.knobs.dev_weight is None and self._is_new((shapes, run.recipe)):
            after, info = advance(run, two_spirals("difficult"))
            assert after.history["loss"].shape[0] >= 1 and np.isfinite(info.loss[~after.diverged]).all()

    def _learns_more(self, model: Any, X: np.ndarray) -> None:
        said, targets = model.predict(X), model._targets_
        if self._is_new((type(model), targets.kind, model._state_.network.embed.weight.shape, targets.n_out)):
            model.set_params(device=None, class_weight=None) if hasattr(model, "class_weight") else model.set_params(
                device=None
            )
            with contextlib.suppress(ValueError, ArithmeticError):  # another width than the network has, or it diverges
                model.partial_fit(X, said)


def report(outcomes: Iterable[Outcome]) -> dict[str, Any]:
    """Counts by way and result, and what failed.

    >>> report([Outcome("forged", "tunnel", "refused", "…", b"")])["counts"]
    {'forged refused': 1}
    """
    found = list(outcomes)
    counts = Counter(f"{outcome.way} {outcome.result}" for outcome in found)
    failures = sorted({(outcome.source, outcome.words[:200]) for outcome in found if outcome.result == "failed"})
    return {"files": len(found), "counts": dict(sorted(counts.items())), "failures": [list(one) for one in failures]}


def keep(outcome: Outcome) -> Path:
    """A failing file among the cases that the suite replays."""
    CASES.mkdir(exist_ok=True)
    place = CASES / f"{outcome.source.replace(' ', '-')}-{sha256(outcome.data).hexdigest()[:8]}.safetensors"
    place.write_bytes(outcome.data)
    return place


def main() -> None:
    """`python tests/forging.py [TRIES] [SEED]`: a report in JSON; failing files go to tests/cases."""
    import sys
    import tempfile

    tries, seed = (int(given) for given in (sys.argv[1:] + ["1000", "0"][len(sys.argv) - 1 :])[:2])
    with tempfile.TemporaryDirectory() as folder:
        forge, found, seen = Forge(Path(folder), seed=seed, every=tries > 2000, programs=min(30, tries // 200)), [], set()
        for outcome in forge.outcomes(tries):
            found.append(outcome._replace(data=b""))
            if outcome.result == "failed" and outcome.words[:60] not in seen:
                seen.add(outcome.words[:60])
                keep(outcome)
    print(json.dumps(report(found), indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
