"""Files: what is saved comes back to the bit, in this process, in others, and years later."""

import json
import os
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from estimating import programs
from filing import RECIPE, alike, complaint, create, grown, kinds, noisy, pack_state, python, start, write_document
from meristem.data.spirals import two_spirals
from meristem.files import document, load, run_file, save
from meristem.files.named_arrays import by_path, on_device, separated
from meristem.nn import Linear, Network, Tunnel, resize
from meristem.nn.network import BODIES
from meristem.train.hyperparameters import Knobs, check_knobs
from meristem.train.programs import whole_epoch
from meristem.train.train_state import TrainState
from meristem.train.training_data import Data, prepare

GOLDEN = Path(__file__).parent / "golden"


def trained(state: TrainState, epochs: int) -> TrainState:
    data = prepare(Data(*two_spirals("difficult")), state.network, RECIPE.task).data
    for _ in range(epochs):
        state, _ = whole_epoch(state, data, check_knobs(Knobs(0.03, 1e-4), ()), recipe=RECIPE)
    return state


NETWORKS = {
    **{body: lambda body=body: noisy(create(body)) for body in BODIES},
    **{f"tree-{n}-of-{c}": lambda c=c, n=n: grown(c, n) for c, n in [(1, 1), (3, 2), (5, 5), (16, 7), (24, 24)]},
    "identity-root": lambda: noisy(create("budding", root="identity")),
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


def test_a_network_comes_back_to_the_bit(network, file):
    save(file, network)
    again = load(file)
    assert alike(again, network)
    assert all(isinstance(leaf, jax.Array) and not leaf.weak_type for leaf in jax.tree.leaves(again))
    before = file.read_bytes()
    save(file, again)
    assert file.read_bytes() == before
    assert os.listdir(file.parent) == [file.name]


def test_float64_comes_back_to_the_bit_or_says_what_it_needs(file):
    with jax.enable_x64(True):
        network = grown(5, 3)
        assert network.body.weight.dtype == jnp.float64
        save(file, network)
        assert alike(load(file), network)
    text = complaint(load, file)
    assert "float64" in text and "jax_enable_x64" in text
    before = file.read_bytes()
    save(file, network)  # what there is can be saved all the same
    assert file.read_bytes() == before


def test_a_new_process_reads_the_same_bits(tmp_path):
    """And `import meristem.files` alone imports neither safetensors nor scikit-learn."""
    program = """if True:
        import pathlib, sys
        from meristem.files import load, save
        assert "safetensors" not in sys.modules and "sklearn" not in sys.modules
        for path in sys.argv[1:]:
            save(path + ".again", load(path))
    """
    files = {tmp_path / name: make() for name, make in NETWORKS.items()}
    for path, network in files.items():
        save(path, network)
    python(program, *map(str, files))
    for path, network in files.items():
        assert Path(f"{path}.again").read_bytes() == path.read_bytes()
        assert alike(load(f"{path}.again"), network)


@pytest.mark.parametrize("body", ["tunnel", "budding"])
def test_training_goes_on_from_a_state(body, file):
    """To the bit as if it had not been interrupted, and with the program that was compiled."""
    state = trained(start(create(body)), 2)
    structure, arrays = pack_state(state)
    write_document(file, "state", by_path({"training": arrays}), {"state": structure})
    kind, header, arrays, _ = document.read(file)
    assert kind == "state"
    again = on_device(run_file.unpack_state(header["state"], separated(arrays, ["training"])["training"]))
    assert alike(again, state)
    with programs() as compiled:
        assert alike(trained(again, 1), trained(state, 1))
    assert "jit(epoch)" not in compiled


@pytest.mark.parametrize("capacity", [1, 9])
@pytest.mark.parametrize("members", [(), (3,), (2, 2)])
def test_states_of_any_shape(capacity, members):
    """Of populations, and with another capacity than at first."""
    many = lambda leaf: jnp.broadcast_to(leaf, (*members, *leaf.shape))  # noqa: E731
    state = noisy(jax.tree.map(many, start(create("budding"))))
    state = eqx.tree_at(lambda s: (s.network, s.opt_state), state, resize(state.network, state.opt_state, capacity))
    squares = jax.tree.map(jnp.abs, state.opt_state[0].nu)
    state = eqx.tree_at(lambda s: s.opt_state[0], state, state.opt_state[0]._replace(nu=squares))
    again = on_device(run_file.unpack_state(*pack_state(state)))
    assert alike(again, state) and kinds(again) == kinds(state)


@pytest.mark.parametrize("generator", ["threefry2x32", "rbg", "unsafe_rbg"])
def test_random_keys_of_every_generator(generator):
    state = start(create("plain"), generator)
    again = on_device(run_file.unpack_state(*pack_state(state)))
    assert alike(again, state) and jax.random.key_impl(again.key) == jax.random.key_impl(state.key)


def test_a_document_holds_every_type(file):
    numbers = np.array([[0, 1, 2], [3, 4, 5]])
    arrays = {name: numbers.astype(dtype) for name, dtype in document.TYPES.items()}
    arrays |= {"scalar": np.array(2.5), "empty": np.zeros((0, 3)), "swapped": numbers.astype(">f4"), "columns": numbers.T}
    header = {"é": [1, 0.1, None, True, "\n\ud800"], "deep": {"a": {"b": []}}}
    write_document(file, "all", arrays, header)
    found = document.read(file)
    assert found.kind == "all" and found.header == header and set(found.versions) == {"meristem", "jax", "numpy"}
    assert list(found.arrays) == sorted(arrays)
    for name, array in arrays.items():
        again = found.arrays[name]
        assert again.dtype == array.dtype.newbyteorder("=") and again.shape == array.shape and again.flags.writeable
        assert again.tobytes() == array.astype(again.dtype).tobytes()


@pytest.mark.parametrize("name", ["tunnel", "budding"])
def test_files_of_the_past_stay_loadable(name):
    """Written by meristem 0.1.0, see golden/write.py; never rewritten."""
    known = json.loads((GOLDEN / "outputs.json").read_text())
    network = load(GOLDEN / f"{name}.safetensors")
    inputs = jnp.asarray(known["inputs"], jnp.float32)
    np.testing.assert_allclose(jax.vmap(network)(inputs), known[name]["outputs"], atol=1e-6)
    if name == "budding":
        assert 2 * int(network.body.n_leaves) - 1 == known[name]["hard_size"]
    _, header, arrays, _ = document.read(GOLDEN / f"{name}-state.safetensors")
    state = on_device(run_file.unpack_state(header, arrays))
    assert int(state.epoch) == 30 and alike(state.network, network)
    fresh = start(network)
    assert kinds(state) == kinds(fresh), "the state of the past is no longer one that training takes"
