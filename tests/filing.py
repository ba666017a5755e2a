"""For tests of files: networks to save, whether two trees are alike to the bit, one-line complaints, other processes."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meristem.files import run_file
from meristem.files.atomic_write import OutputError, write_whole
from meristem.files.document import packed
from meristem.files.named_arrays import by_path
from meristem.gate import is_confined
from meristem.nn import Network
from meristem.train import train_state
from meristem.train.hyperparameters import Recipe

SOURCE = Path(__file__).parent.parent / "src"
RECIPE = Recipe(batch_size=32)


def create(body: str, seed: int = 0, **options) -> Network:
    rows = {} if body == "budding" else {"depth": 2}
    return Network.create(body, 2, 1, width=3, key=jax.random.key(seed), **{**rows, **options})


def noisy(tree, seed: int = 0):
    """The same tree with every array filled with random bits' worth of numbers, special ones among them; gates in [0, 1]."""
    random = np.random.default_rng(seed)

    def fill(node):
        leaf = node.value if is_confined(node) else node
        if not eqx.is_inexact_array(leaf):
            return node
        numbers = random.random(leaf.shape) if is_confined(node) else random.standard_normal(leaf.shape)
        special = [0.0, 1.0, -0.0, 5e-324, 1e-40]
        odd = random.choice(special if is_confined(node) else [*special, -6e4, 6e4], leaf.shape)
        filled = jnp.asarray(np.where(random.random(leaf.shape) < 0.2, odd, numbers), leaf.dtype)
        return node.at(filled) if is_confined(node) else filled

    return jax.tree.map(fill, tree, is_leaf=is_confined)


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


def pack_state(state: train_state.TrainState):
    """The structure and the arrays of a state, as a file has them."""
    return run_file.state_structure(state), by_path(state)


def write_document(path, kind: str, arrays, header) -> None:
    write_whole(path, packed(kind, arrays, header))


def alike(one, other) -> bool:
    """The same structure and the same bits, types included."""
    assert jax.tree.structure(one) == jax.tree.structure(other)
    first, second = by_path(one), by_path(other)
    assert [(n, a.dtype, a.shape) for n, a in first.items()] == [(n, a.dtype, a.shape) for n, a in second.items()]
    return all(array.tobytes() == second[name].tobytes() for name, array in first.items())


def kinds(tree):
    """What a compiled program sees of a tree."""
    return jax.tree.structure(tree), [jax.typeof(leaf) for leaf in jax.tree.leaves(tree)]


def complaint(call: Callable, *args, **options) -> str:
    """The one line of a ValueError that names the file; anything else fails."""
    with pytest.raises(ValueError) as caught:
        call(*args, **options)
    text = str(caught.value)
    assert type(caught.value) in (ValueError, OutputError) and "\n" not in text and len(text) <= 300, (len(text), text)
    return text


def start(network: Network, generator: str = "threefry2x32") -> train_state.TrainState:
    return train_state.start(network, jax.random.key(1, impl=generator), RECIPE)


def launch(program: str, *args: str) -> subprocess.Popen:
    quick = str(jax.config.read("jax_disable_most_optimizations"))  # the new process compiles as this one does
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "JAX_PLATFORMS": "cpu", "JAX_DISABLE_MOST_OPTIMIZATIONS": quick}
    return subprocess.Popen([sys.executable, "-c", program, *args], stdout=subprocess.PIPE, text=True, env=environment)


def python(program: str, *args: str) -> None:
    with launch(program, *args) as process:
        process.communicate()
    assert process.returncode == 0
