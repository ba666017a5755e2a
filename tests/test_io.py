"""Files: what is saved comes back to the bit, and whatever else a file may be is said in one line."""

import json
import os
import pickle
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy

from meristem import io
from meristem.data.spirals import two_spirals
from meristem.io import document
from meristem.nn import Linear, Network, Plain, Tunnel, resize
from meristem.nn.network import BODIES
from meristem.train import step
from meristem.train.programs import ALONE
from meristem.train.samples import Data, prepared
from meristem.train.step import Knobs, Recipe

GOLDEN = Path(__file__).parent / "golden"
SOURCE = Path(__file__).parent.parent / "src"
RECIPE = Recipe(batch_size=32)


def create(body: str, seed: int = 0, **options) -> Network:
    rows = {} if body == "budding" else {"depth": 2}
    return Network.create(body, 2, 1, width=3, key=jax.random.key(seed), **{**rows, **options})


def noisy(tree, seed: int = 0):
    """The same tree with every array filled with random bits' worth of numbers, special ones among them."""
    random = np.random.default_rng(seed)

    def fill(leaf):
        if not eqx.is_inexact_array(leaf):
            return leaf
        numbers = random.standard_normal(leaf.shape)
        odd = random.choice([np.nan, np.inf, -np.inf, -0.0, 5e-324, 1e-40], leaf.shape)
        return jnp.asarray(np.where(random.random(leaf.shape) < 0.2, odd, numbers), leaf.dtype)

    return jax.tree.map(fill, tree)


def grown(capacity: int, leaves: int, seed: int = 0) -> Network:
    """A budding network with a random tree of that many leaves."""
    random = np.random.default_rng(seed)
    depth = np.full(capacity, -1, np.int32)

    def split(first: int, last: int, level: int) -> None:
        if first < last:
            middle = int(random.integers(first + 1, last + 1))
            depth[middle] = level
            split(first, middle - 1, level + 1)
            split(middle, last, level + 1)

    split(0, leaves - 1, 0)
    return noisy(eqx.tree_at(lambda n: n.body.depth, create("budding", capacity=capacity), jnp.asarray(depth)), seed)


def alike(one, other) -> bool:
    """The same structure and the same bits, types included."""
    assert jax.tree.structure(one) == jax.tree.structure(other)
    first, second = io.tree.by_path(one), io.tree.by_path(other)
    assert [(n, a.dtype, a.shape) for n, a in first.items()] == [(n, a.dtype, a.shape) for n, a in second.items()]
    return all(array.tobytes() == second[name].tobytes() for name, array in first.items())


def kinds(tree):
    """What a compiled program sees of a tree."""
    return jax.tree.structure(tree), [jax.typeof(leaf) for leaf in jax.tree.leaves(tree)]


def complaint(call: Callable, *args) -> str:
    """The one line of a ValueError that names the file; anything else fails."""
    with pytest.raises(ValueError) as caught:
        call(*args)
    text = str(caught.value)
    assert type(caught.value) is ValueError and "\n" not in text and len(text) < 400, text
    return text


def start(network: Network, generator: str = "threefry2x32") -> step.TrainState:
    return step.start(network, RECIPE, key=jax.random.key(1, impl=generator))


def trained(state: step.TrainState, epochs: int) -> step.TrainState:
    data = prepared(Data(*two_spirals("difficult")), state.network, RECIPE.objective)
    for _ in range(epochs):
        state, _ = ALONE.epoch(state, data, Knobs(jnp.asarray(0.03), jnp.asarray(1e-4)), recipe=RECIPE)
    return state


NETWORKS = {
    **{body: lambda body=body: noisy(create(body)) for body in BODIES},
    **{f"tree-{n}-of-{c}": lambda c=c, n=n: grown(c, n) for c, n in [(1, 1), (3, 2), (5, 5), (16, 7), (24, 24)]},
    "zero-probe": lambda: create("budding", probe="zero", activation="tanh"),
    "population": lambda: jax.vmap(lambda key: create("budding"))(jax.random.split(jax.random.key(0), 3)),
    "bfloat16": lambda: jax.tree.map(lambda a: a.astype(jnp.bfloat16), noisy(create("tunnel"))),
    "float16": lambda: jax.tree.map(lambda a: a.astype(jnp.float16), create("highway")),
    "biases": lambda: Network(
        Linear(2, 3, key=jax.random.key(0)),
        Tunnel(3, 2, key=jax.random.key(1)),
        Linear(3, 4, use_bias=False, key=jax.random.key(2)),
    ),
}


@pytest.fixture(params=NETWORKS)
def network(request):
    return NETWORKS[request.param]()


@pytest.fixture
def file(tmp_path):
    return tmp_path / "model.safetensors"


@pytest.fixture
def saved(file):
    io.save(file, create("budding"))
    return file


def test_a_network_comes_back_to_the_bit(network, file):
    io.save(file, network)
    again = io.load(file)
    assert alike(again, network)
    assert all(isinstance(leaf, jax.Array) and not leaf.weak_type for leaf in jax.tree.leaves(again))
    before = file.read_bytes()
    io.save(file, again)
    assert file.read_bytes() == before
    assert os.listdir(file.parent) == [file.name]


def test_float64_comes_back_to_the_bit_or_says_what_it_needs(file):
    with jax.enable_x64(True):
        network = grown(5, 3)
        assert network.body.weight.dtype == jnp.float64
        io.save(file, network)
        assert alike(io.load(file), network)
    text = complaint(io.load, file)
    assert "float64" in text and "jax_enable_x64" in text
    before = file.read_bytes()
    io.save(file, network)  # what there is can be saved all the same
    assert file.read_bytes() == before


def test_a_new_process_reads_the_same_bits(tmp_path):
    """And `import meristem.io` alone does not import safetensors."""
    program = """if True:
        import pathlib, sys
        from meristem import io
        assert "safetensors" not in sys.modules
        for path in sys.argv[1:]:
            io.save(path + ".again", io.load(path))
    """
    files = {tmp_path / name: make() for name, make in NETWORKS.items()}
    for path, network in files.items():
        io.save(path, network)
    python(program, *map(str, files))
    for path, network in files.items():
        assert Path(f"{path}.again").read_bytes() == path.read_bytes()
        assert alike(io.load(f"{path}.again"), network)


@pytest.mark.parametrize("body", ["tunnel", "budding"])
def test_training_goes_on_from_a_state(body, file):
    """To the bit as if it had not been interrupted, and with the program that was compiled."""
    state = trained(start(create(body)), 2)
    structure, arrays = io.pack_state(state)
    io.write_document(file, "state", io.under("training", arrays), {"state": structure})
    header, arrays = io.read_document(file, "state")
    again = io.unpack_state(header["state"], io.within("training", arrays))
    assert alike(again, state)
    compiled = ALONE.epoch._cache_size()
    assert alike(trained(again, 1), trained(state, 1))
    assert ALONE.epoch._cache_size() == compiled


@pytest.mark.parametrize("capacity", [1, 9])
@pytest.mark.parametrize("members", [(), (3,), (2, 2)])
def test_states_of_any_shape(capacity, members):
    """Of populations, and with another capacity than at first."""
    many = lambda leaf: jnp.broadcast_to(leaf, (*members, *leaf.shape))  # noqa: E731
    state = noisy(jax.tree.map(many, start(create("budding"))))
    state = eqx.tree_at(lambda s: (s.network, s.opt_state), state, resize(state.network, state.opt_state, capacity))
    again = io.unpack_state(*io.pack_state(state))
    assert alike(again, state) and kinds(again) == kinds(state)


@pytest.mark.parametrize("generator", ["threefry2x32", "rbg", "unsafe_rbg"])
def test_random_keys_of_every_generator(generator):
    state = start(create("plain"), generator)
    again = io.unpack_state(*io.pack_state(state))
    assert alike(again, state) and jax.random.key_impl(again.key) == jax.random.key_impl(state.key)


def test_a_document_holds_every_type(file):
    numbers = np.array([[0, 1, 2], [3, 4, 5]])
    arrays = {name: numbers.astype(dtype) for name, dtype in document.TYPES.items()}
    arrays |= {"scalar": np.array(2.5), "empty": np.zeros((0, 3)), "swapped": numbers.astype(">f4"), "columns": numbers.T}
    header = {"é": [1, 0.1, None, True, "\n\ud800"], "deep": {"a": {"b": []}}}
    io.write_document(file, "all", arrays, header)
    found = io.read(file)
    assert found.kind == "all" and found.header == header and set(found.versions) == {"meristem", "jax", "numpy"}
    assert list(found.arrays) == sorted(arrays)
    for name, array in arrays.items():
        again = found.arrays[name]
        assert again.dtype == array.dtype.newbyteorder("=") and again.shape == array.shape and again.flags.writeable
        assert again.tobytes() == array.astype(again.dtype).tobytes()


@pytest.mark.parametrize(
    ("arrays", "header", "words"),
    [
        ({"z": np.zeros(2, complex)}, {}, "complex128"),
        ({"z": np.array(["a"])}, {}, "'z'"),
        ({"z": np.array([None])}, {}, "object"),
        ({"__metadata__": np.zeros(2)}, {}, "name"),
        ({}, {"a": (1, 2)}, "tuples"),
        ({}, {"a": {1: 2}}, "keys"),
        ({}, {"a": float("nan")}, "JSON"),
        ({}, {"a": np.float32(1)}, "JSON"),
    ],
)
def test_what_a_document_cannot_hold(arrays, header, words, file):
    assert words in complaint(io.write_document, file, "any", arrays, header)
    assert not file.exists()


def test_what_cannot_be_saved(file, tmp_path):
    class Own(Plain):
        pass

    network = create("plain")
    own = eqx.tree_at(lambda n: n.body, network, Own(3, 2, key=jax.random.key(0)))
    assert "Own" in complaint(io.save, file, own)
    assert "cannot be saved" in complaint(io.save, file, eqx.tree_at(lambda n: n.body.bias, network, jnp.zeros((2, 4))))
    assert "folder" in complaint(io.save, tmp_path, network)
    assert "no folder" in complaint(io.save, tmp_path / "none" / "model", network)
    assert os.listdir(tmp_path) == []
    os.mkdir(tmp_path / "closed", 0o500)
    if os.geteuid():  # root may write anywhere
        assert "cannot be written" in complaint(io.save, tmp_path / "closed" / "model", network)


def test_saving_that_fails_leaves_the_old_file(saved, monkeypatch):
    before = saved.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert "No space left" in complaint(io.save, saved, create("plain"))
    assert saved.read_bytes() == before and os.listdir(saved.parent) == [saved.name]


def test_a_link_is_written_through(saved, tmp_path):
    (tmp_path / "link").symlink_to(saved)
    io.save(tmp_path / "link", create("plain"))
    assert (tmp_path / "link").is_symlink() and alike(io.load(saved), create("plain"))


def test_without_safetensors_it_says_what_to_install(saved, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(ImportError, match=r"pip install 'meristem\[files\]'"):
        io.load(saved)


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("exploded",)


def test_other_files_are_told_apart(saved, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    other = tmp_path / "other"
    assert "does not exist" in complaint(io.load, other)
    assert "folder" in complaint(io.load, tmp_path)
    os.mkfifo(tmp_path / "pipe")
    assert "no plain file" in complaint(io.load, tmp_path / "pipe")
    for data, words in {
        b"": "truncated",
        b"\x00" * 5: "truncated",
        pickle.dumps([Bomb()] * 3): "not a safetensors file",
        b"a letter to a friend\n": "not a safetensors file",
        saved.read_bytes()[:40]: "truncated",
        saved.read_bytes()[:-1]: "truncated",
        saved.read_bytes() + b"\x00": "damaged",
        safetensors.numpy.save({"weight": np.zeros(3)}): "another program's",
        safetensors.numpy.save({"weight": np.zeros(3)}, {"format": "pt"}): "another program's",
        safetensors.numpy.save({"weight": np.zeros(3)}, {"meristem": "hello"}): "damaged",
        safetensors.numpy.save({"weight": np.zeros(3)}, {"meristem": '{"format":1}'}): "damaged",
        safetensors.numpy.save({"weight": np.zeros(3)}, {"meristem": "[" * 100_000}): "damaged",
        safetensors.numpy.save({"weight": np.zeros(3)}, {"meristem": '{"format":' + "9" * 5000 + "}"}): "damaged",
        (2_000_000).to_bytes(8, "little") + b'{"a":' * 400_000: "damaged",
        safetensors.numpy.save({}, {"meristem": '{"format":2,"surprise":[]}'}): "newer meristem",
    }.items():
        other.write_bytes(data)
        text = complaint(io.load, other)
        assert words in text and repr(str(other)) in text
    assert not (tmp_path / "exploded").exists()
    io.write_document(other, "recipe", {}, {})
    assert "holds a 'recipe', not a 'network'" in complaint(io.load, other)


def test_a_type_of_another_time(file, monkeypatch):
    monkeypatch.setitem(document.CODES, "complex64", "C64")
    io.write_document(file, "any", {"z": np.zeros(2, np.complex64)}, {})
    assert "'z' has the type C64" in complaint(io.read, file)


def test_damaged_files_are_refused(file):
    """Every byte changed, every length, blocks that changed places: one line, or (JSON's white space) the same content."""
    network, chance = create("budding", capacity=1), random.Random(0)
    io.save(file, network)
    data = file.read_bytes()

    def damages():
        for place in range(len(data)):
            yield data[:place] + bytes([data[place] ^ 1 << chance.randrange(8)]) + data[place + 1 :]
            yield data[:place] + bytes([chance.randrange(256)]) + data[place + 1 :]
            yield data[:place]
        for _ in range(500):
            a, b, c, d = sorted(chance.choices(range(len(data) + 1), k=4))
            yield data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]
            yield data[:a] + data[b:]
            yield data[:b] + data[a:]

    def outcome() -> str | Network:
        try:
            return io.load(file)
        except ValueError as error:
            return f"{type(error).__name__}: {error}"

    refused = 0
    for damage in damages():
        file.unlink()  # some file systems flush a file that is overwritten, and wait for it
        file.write_bytes(damage)
        result = outcome()
        if isinstance(result, str):
            refused += 1
            assert result.startswith(f"ValueError: {str(file)!r}") and "\n" not in result
        else:
            assert len(damage) == len(data) and alike(result, network)
    assert refused > 3 * len(data)


ODD = [None, True, 0, -1, 3.5, 10**30, "", "tunnel", "no\nline", [], [0], [-1], [2, "a"], {}, {"body": 1}, [[]]]


@pytest.mark.parametrize("body", ["budding", "highway"])
def test_content_that_does_not_hold_together_is_one_line(body, file):
    """With a right digest: what somebody wrote on purpose, or a bug."""
    network = create(body)
    structure, arrays = io.pack_network(network)

    def refused(structure, arrays) -> str:
        io.write_document(file, "network", arrays, structure)
        text = complaint(io.load, file)
        assert repr(str(file)) in text
        return text

    for name in structure:
        refused({key: value for key, value in structure.items() if key != name}, arrays)
        for odd in ODD:
            if odd != structure[name] or type(odd) is not type(structure[name]):
                refused({**structure, name: odd}, arrays)
    assert "surprise" in refused({**structure, "surprise": 1}, arrays)
    for name, array in arrays.items():
        assert name in refused(structure, {key: value for key, value in arrays.items() if key != name})
        assert name in refused(structure, {**arrays, name: array[None]})
        assert name in refused(structure, {**arrays, name: array[:0]})
        assert name in refused(structure, {**arrays, name: array.astype(bool)})
        assert name in refused(structure, {**arrays, name: array.astype("i4" if array.dtype.kind == "f" else "f4")})
    assert "surprise" in refused(structure, {**arrays, "surprise": np.zeros(1)})
    assert "'embed.weight' has shape (3, 2) where the structure has (5, 2)" in refused({**structure, "width": 5}, arrays)


def test_states_that_do_not_hold_together(file):
    structure, arrays = io.pack_state(start(create("tunnel")))
    for odd in ODD:
        complaint(io.unpack_state, {**structure, "key": odd}, arrays)
        complaint(io.unpack_state, {**structure, "network": odd}, arrays)
        complaint(io.unpack_state, {**structure, "network": {**structure["network"], "depth": odd}}, arrays)
    complaint(io.unpack_state, {}, arrays)
    complaint(io.unpack_state, {**structure, "key": "rbg"}, arrays)
    for name in arrays:
        assert name in complaint(io.unpack_state, structure, {key: value for key, value in arrays.items() if key != name})


def test_a_killed_writer_leaves_a_whole_file(tmp_path):
    program = """if True:
        import sys
        import numpy as np
        from meristem.io import write_document
        for turn in range(1_000_000):
            write_document(sys.argv[1], "turn", {"turns": np.full(500_000, turn)}, {"turn": turn})
            print(turn, flush=True)
    """
    writers = [launch(program, str(tmp_path / str(n))) for n in range(3)]
    chance = random.Random()
    try:
        for n, writer in enumerate(writers):
            assert writer.stdout is not None and writer.stdout.readline()
            time.sleep(chance.uniform(0, 0.2))
            writer.send_signal(signal.SIGKILL)
            printed = writer.communicate()[0].split()
            header, arrays = io.read_document(tmp_path / str(n), "turn")
            assert header["turn"] >= int(printed[-1] if printed else 0)
            assert (arrays["turns"] == header["turn"]).all()
    finally:
        for writer in writers:
            with writer:
                writer.kill()
    assert all(path.name in "012" or path.name.startswith(".meristem-") for path in tmp_path.iterdir())


def test_a_writer_that_dies_in_the_middle_leaves_the_old_file(tmp_path):
    """The system ends it at the thousandth byte, to be sure of the moment."""
    program = """if True:
        import resource, signal, sys
        import numpy as np
        from meristem.io import write_document
        write_document(sys.argv[1], "old", {}, {})
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        write_document(sys.argv[1], "new", {"numbers": np.zeros(1000)}, {})
    """
    with launch(program, str(tmp_path / "file")) as writer:
        writer.communicate()
    assert writer.returncode == -signal.SIGXFSZ
    assert io.read(tmp_path / "file").kind == "old"
    rest = [path for path in tmp_path.iterdir() if path.name != "file"]
    assert [path.stat().st_size for path in rest] == [1000] and rest[0].name.startswith(".meristem-")


@pytest.mark.parametrize("name", ["tunnel", "budding"])
def test_files_of_the_past_stay_loadable(name):
    """Written by meristem 0.1.0, see golden/write.py; never rewritten."""
    known = json.loads((GOLDEN / "outputs.json").read_text())
    network = io.load(GOLDEN / f"{name}.safetensors")
    inputs = jnp.asarray(known["inputs"], jnp.float32)
    np.testing.assert_allclose(jax.vmap(network)(inputs), known[name]["outputs"], atol=1e-6)
    if name == "budding":
        assert 2 * int(network.body.n_leaves) - 1 == known[name]["hard_size"]
    header, arrays = io.read_document(GOLDEN / f"{name}-state.safetensors", "state")
    state = io.unpack_state(header, arrays)
    assert int(state.epoch) == 30 and alike(state.network, network)
    fresh = start(network)
    assert kinds(state) == kinds(fresh), "the state of the past is no longer one that training takes"


def launch(program: str, *args: str) -> subprocess.Popen:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "JAX_PLATFORMS": "cpu"}
    return subprocess.Popen([sys.executable, "-c", program, *args], stdout=subprocess.PIPE, text=True, env=environment)


def python(program: str, *args: str) -> None:
    with launch(program, *args) as process:
        process.communicate()
    assert process.returncode == 0
