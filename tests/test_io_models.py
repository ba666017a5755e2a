"""Files of a person's own Equinox model with bodies in it: arrays by path, filled into a model of the same structure."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from filing import alike, complaint, grown, noisy, write_document
from meristem import compact, hard_size, load, resize, save, soft_size
from meristem.files import document
from meristem.nn import Budding, Linear, Network, Tunnel


class Own(eqx.Module):
    """Two branches behind an embedding; functions, numbers and arrays of the host among the leaves."""

    embed: Linear
    tree: Budding
    stacks: list
    table: dict
    activation: object
    temperature: float
    offset: np.ndarray
    name: str = eqx.field(static=True)

    def __init__(self, seed: int = 0, *, width=3, capacity=4, activation="relu", temperature=0.5, stacks=2):
        keys = jax.random.split(jax.random.key(seed), 3)
        self.embed = Linear(2, width, key=keys[0])
        self.tree = Budding(width, capacity=capacity, activation=activation, key=keys[1])
        self.stacks = [Tunnel(width, 2, key=key) for key in jax.random.split(keys[2], stacks)]
        self.table = {"mean": jnp.zeros(2), "count": jnp.zeros((), jnp.int32)}
        self.activation = jax.nn.relu
        self.temperature = temperature
        self.offset = np.full(width, seed, np.float32)
        self.name = "own"

    def __call__(self, x):
        h = self.activation(self.embed(x)) + self.offset
        return self.temperature * sum(stack(self.tree(h)) for stack in self.stacks)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "own.safetensors"


def with_tree(model: Own, capacity: int, leaves: int, seed: int = 0) -> Own:
    return eqx.tree_at(lambda m: m.tree, model, grown(capacity, leaves, seed).body)


def arrays_of(model):
    return eqx.filter(model, lambda leaf: isinstance(leaf, jax.Array | np.ndarray))


@pytest.mark.parametrize(("capacity", "leaves"), [(4, 1), (16, 7), (2, 2)])
def test_a_model_comes_back_to_the_bit(capacity, leaves, file):
    """Also where the tree in the file has another capacity than the one that is given, and that one has grown."""
    model = with_tree(noisy(Own(seed=1)), capacity, leaves)
    save(file, model)
    for like in (Own(), with_tree(Own(), 8, 5), Own(capacity=capacity)):
        again = load(file, like=like)
        assert alike(arrays_of(again), arrays_of(model)) and again.activation is jax.nn.relu
        assert isinstance(again.offset, np.ndarray) and isinstance(again.embed.weight, jax.Array)
        before = file.read_bytes()
        save(file, again)
        assert file.read_bytes() == before


def test_a_loaded_model_computes_is_measured_and_compacted(file):
    model = eqx.tree_at(lambda m: m.stacks[0].gate.value, resize(Own(seed=1), None, 8)[0], jnp.full((2, 3), 0.5))
    save(file, model)
    again, x, inside = load(file, like=Own()), jnp.ones(2), jnp.ones((4, 3))
    output = eqx.filter_jit(lambda m: m(x))
    assert alike(output(again), output(model)) and again.tree.capacity == 8
    assert float(soft_size(again, inside)) == float(soft_size(model, inside)) == 4.0
    assert int(hard_size(again)) == 7
    np.testing.assert_allclose(compact.compact(again)(x), output(model), rtol=1e-5)


def test_shapes_alone_will_do(file):
    save(file, Own(seed=1))
    shapes = eqx.filter_eval_shape(Own)
    assert alike(arrays_of(load(file, like=shapes)), arrays_of(Own(seed=1)))


def test_populations_bare_bodies_and_kinds_of_network(file):
    many = eqx.filter_vmap(lambda key: Budding(3, capacity=8, key=key))(jax.random.split(jax.random.key(0), 5))
    save(file, many)
    like = eqx.filter_vmap(lambda key: Budding(3, key=key))(jax.random.split(jax.random.key(1), 5))
    assert alike(load(file, like=like), many)

    class Better(Network):
        scale: jax.Array

    base = Network.create("tunnel", 2, 1, width=3, depth=2, key=jax.random.key(0))
    better = Better(base.embed, base.body, base.head, jnp.ones(3))
    save(file, better)
    assert alike(load(file, like=eqx.tree_at(lambda m: m.scale, better, jnp.zeros(3))), better)


def test_what_differs_is_said_in_one_line(file):
    save(file, Own())
    text = complaint(load, file)
    assert repr(str(file)) in text and "'Own'" in text and "load(path, like=model)" in text
    for like, words in (
        (Own(width=4), "'stacks.0.width' is 3 in the file and 4 in the model"),
        (Own(activation="tanh"), "'tree.activation' is relu in the file and tanh"),
        (Own(temperature=0.7), "'temperature' is 0.5 in the file and 0.7"),
        (Own(stacks=3), "'stacks.2' is not there in the file"),
        (Own(stacks=1), "and not there in the model"),
        (
            eqx.tree_at(lambda m: m.tree, Own(), Tunnel(3, 4, key=jax.random.key(0))),
            "'tree.body' is budding in the file and tunnel",
        ),
        (eqx.tree_at(lambda m: m.table, Own(), {"mean": jnp.zeros(2)}), "it has unknown arrays: 'table.count'"),
        (
            eqx.tree_at(lambda m: m.table["mean"], Own(), jnp.zeros(3)),
            "'table.mean' has shape (2,) where the structure has (3,)",
        ),
        (eqx.tree_at(lambda m: m.table["mean"], Own(), jnp.zeros(2, int)), "'table.mean' holds float32"),
        (Linear(2, 3, key=jax.random.key(0)), "'temperature' is 0.5 in the file and not there in the model"),
        (3, "like is a int"),
    ):
        text = complaint(load, file, like=like)
        assert words in text and repr(str(file)) in text, text


def test_forged_models_are_one_line(file):
    save(file, Own())
    whole = document.read(file)
    header, arrays = whole.header, whole.arrays
    odd = [None, 0, -1, 10**30, "x", [], {}, {"tree": 3}, {"tree": {"body": "budding", "capacity": "8"}}]
    odd += [
        {**header["bodies"], "tree": {**header["bodies"]["tree"], "capacity": capacity}} for capacity in (0, 2**40, 1.5, True)
    ]
    for name in header:
        write_document(file, "model", arrays, {key: value for key, value in header.items() if key != name})
        complaint(load, file, like=Own())
        for value in odd if name != "model" else ():  # the name is only told
            write_document(file, "model", arrays, {**header, name: value})
            complaint(load, file, like=Own())
    larger = {**header["bodies"], "tree": {**header["bodies"]["tree"], "capacity": 2**30}}  # nothing is made for it
    write_document(file, "model", arrays, {**header, "bodies": larger})
    assert "'tree.weight' has shape (4, 3, 3) where the structure has (1073741824, 3, 3)" in complaint(load, file, like=Own())


def test_names_that_would_hide_each_other(file):
    class Ambiguous(eqx.Module):
        table: dict

    assert "dot" in complaint(save, file, Ambiguous({"a.b": jnp.zeros(1), "a": {"b": jnp.ones(1)}}))
    assert not file.exists()
