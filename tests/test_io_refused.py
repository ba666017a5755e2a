"""Files: what cannot be saved, and whatever else a file may be, is said in one line; nothing in a file is ever executed."""

import os
import pickle
import random
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import safetensors.numpy

from filing import alike, complaint, create, pack_state, start, write_document
from meristem import load, save
from meristem.files import document, network_file, run_file
from meristem.nn import Network, Plain
from meristem.train.hyperparameters import Recipe
from soak import many


@pytest.fixture
def file(tmp_path):
    return tmp_path / "model.safetensors"


@pytest.fixture
def saved(file):
    save(file, create("budding"))
    return file


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
    assert words in complaint(write_document, file, "any", arrays, header)
    assert not file.exists()


def test_what_cannot_be_saved(file, tmp_path):
    class Forgetful(Plain):
        def __init__(self, width, depth, slope, *, key):
            super().__init__(width, depth, key=key)

    class Counting(Plain):
        members: int = eqx.field(static=True)

        def __init__(self, width, depth, members, *, key):
            super().__init__(width, depth, key=key)
            self.members = members

    class Tunnel(Plain):
        pass

    network, key = create("plain"), jax.random.key(0)

    def with_body(body):
        return eqx.tree_at(lambda n: n.body, network, body)

    assert "'slope'" in complaint(save, file, with_body(Forgetful(3, 2, 0.1, key=key)))
    assert "'members'" in complaint(save, file, with_body(Counting(3, 2, 7, key=key)))
    assert "another name" in complaint(save, file, with_body(Tunnel(3, 2, key=key)))
    assert "cannot be saved" in complaint(save, file, eqx.tree_at(lambda n: n.body.bias, network, jnp.zeros((2, 4))))
    assert "fitted" in complaint(save, file, {"weight": jnp.zeros(3)})
    assert "folder" in complaint(save, tmp_path, network)
    assert "no folder" in complaint(save, tmp_path / "none" / "model", network)
    assert os.listdir(tmp_path) == []
    os.mkdir(tmp_path / "closed", 0o500)
    if os.geteuid():  # root may write anywhere
        assert "cannot be written" in complaint(save, tmp_path / "closed" / "model", network)


def test_without_safetensors_it_says_what_to_install(saved, monkeypatch):
    """To write; to read a file nothing else is needed."""
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(ImportError, match=r"pip install 'meristem-nn\[files\]'"):
        save(saved, create("plain"))
    assert alike(load(saved), create("budding"))


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("exploded",)


def test_other_files_are_told_apart(saved, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    other = tmp_path / "other"
    assert "does not exist" in complaint(load, other)
    assert "folder" in complaint(load, tmp_path)
    os.mkfifo(tmp_path / "pipe")
    assert "no plain file" in complaint(load, tmp_path / "pipe")
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
        text = complaint(load, other)
        assert words in text and repr(str(other)) in text
    assert not (tmp_path / "exploded").exists()
    write_document(other, "recipe", {}, {})
    assert "it holds a 'recipe', which is none of network, run, model, estimator, search, " in complaint(load, other)
    assert "needs no like=" in complaint(load, saved, like=create("budding"))
    assert "needs no optimizer=" in complaint(load, saved, optimizer=optax.sgd(0.1))
    assert "kinds holds" in complaint(load, saved, kinds=["budding"])


def test_a_type_of_another_time(file, monkeypatch):
    monkeypatch.setitem(document.CODES, "complex64", "C64")
    write_document(file, "any", {"z": np.zeros(2, np.complex64)}, {})
    assert "'z' has the type C64" in complaint(document.read, file)


def test_damaged_files_are_refused(file):
    """Every byte changed, every length, blocks that changed places: one line, or (JSON's white space) the same content."""
    network, chance = create("budding", capacity=1), random.Random(0)
    save(file, network)
    data = file.read_bytes()

    def damages():
        for place in range(len(data)):
            yield data[:place] + bytes([data[place] ^ 1 << chance.randrange(8)]) + data[place + 1 :]
            yield data[:place] + bytes([chance.randrange(256)]) + data[place + 1 :]
            yield data[:place]
        for _ in range(many(200)):
            a, b, c, d = sorted(chance.choices(range(len(data) + 1), k=4))
            yield data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]
            yield data[:a] + data[b:]
            yield data[:b] + data[a:]

    def outcome() -> str | Network:
        try:
            return load(file)
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
    structure, arrays = network_file.pack_network(network)

    def refused(structure, arrays) -> str:
        write_document(file, "network", arrays, structure)
        text = complaint(load, file)
        assert repr(str(file)) in text
        return text

    known = {"budding": ["activation", "capacity", "probe", "root"], "highway": ["activation"]}[body]
    defaults = [*known, "learn_width", "feature_gates"]
    for name in structure:
        without = {key: value for key, value in structure.items() if key != name}
        if name in defaults:  # an older file knows nothing of a newer option
            write_document(file, "network", arrays, without)
            assert alike(load(file), network)
        else:
            refused(without, arrays)
        for odd in ODD:
            if odd != structure[name] or type(odd) is not type(structure[name]):
                refused({**structure, name: odd}, arrays)
    assert "surprise" in refused({**structure, "surprise": 1}, arrays)
    assert "load(path, kinds=[…])" in refused({**structure, "body": "own"}, arrays)
    if body == "highway":  # its constructor takes it, but it is no part of the structure
        assert "gate_bias" in refused({**structure, "gate_bias": 1.5}, arrays)
    for name, array in arrays.items():
        assert name in refused(structure, {key: value for key, value in arrays.items() if key != name})
        assert name in refused(structure, {**arrays, name: array[None]})
        assert name in refused(structure, {**arrays, name: array[:0]})
        assert name in refused(structure, {**arrays, name: array.astype(bool)})
        assert name in refused(structure, {**arrays, name: array.astype("i4" if array.dtype.kind == "f" else "f4")})
    assert "surprise" in refused(structure, {**arrays, "surprise": np.zeros(1)})
    assert "'embed.weight' has shape (3, 2) where the structure has (5, 2)" in refused({**structure, "width": 5}, arrays)


def test_states_that_do_not_hold_together(file):
    def unpack(*args):
        with document.naming_file(file):
            run_file.unpack_state(*args)

    structure, arrays = pack_state(start(create("tunnel")))
    for odd in ODD:
        complaint(unpack, {**structure, "key": odd}, arrays)
        complaint(unpack, {**structure, "network": odd}, arrays)
        complaint(unpack, {**structure, "network": {**structure["network"], "depth": odd}}, arrays)
    complaint(unpack, {}, arrays)
    complaint(unpack, {**structure, "key": "rbg"}, arrays)
    for name in arrays:
        assert name in complaint(unpack, structure, {key: value for key, value in arrays.items() if key != name})
    assert "arrays" in complaint(unpack, structure, arrays, Recipe(optimizer=optax.sgd(0.1)))
