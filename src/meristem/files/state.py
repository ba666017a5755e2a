"""A training state as data: the network, what the optimizer keeps, the random key, the schedule; training goes on from it.

    {"network": {"body": …}, "key": "threefry2x32"}

Its shapes follow from those of the network and from the recipe's optimizer: they are what `train.state.start` would make.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import jax
import numpy as np

from meristem.check import cut, unknown
from meristem.files.arrays import Arrays, by_path, check, fill, on_device
from meristem.files.meaning import check_state
from meristem.files.network import Kinds, check_sizes, population, shapes, structure_of
from meristem.train.hyperparameters import Recipe
from meristem.train.train_state import TrainState, start

GENERATORS = ["threefry2x32", "rbg", "unsafe_rbg"]


def pack(state: TrainState, recipe: Recipe = Recipe()) -> tuple[dict[str, Any], Arrays]:
    """A state's structure, made of JSON's values, and its arrays by path, on the host.

    >>> import jax
    >>> from meristem.nn import Network
    >>> network = Network.create("budding", n_in=2, n_out=1, key=jax.random.key(0))
    >>> structure, arrays = pack(start(network, Recipe(), key=jax.random.key(1)))
    >>> int(unpack(structure, arrays).epoch)
    0
    """
    structure = {"network": structure_of(state.network), "key": str(jax.random.key_impl(state.key))}
    arrays = by_path(state)
    try:
        check(_shapes(structure, recipe, [type(state.network.body)]), arrays)
    except ValueError as error:
        raise ValueError(f"This state cannot be saved, it is not as training leaves it: {error}") from error
    return structure, arrays


def unpack(structure: Any, arrays: Mapping[str, np.ndarray], recipe: Recipe = Recipe(), kinds: Kinds = ()) -> TrainState:
    """The state; raises ValueError of one line where structure, arrays and the recipe's optimizer do not fit."""
    return placed(structure, checked(structure, arrays, recipe, kinds), recipe, kinds)


def checked(structure: Any, arrays: Mapping[str, np.ndarray], recipe: Recipe = Recipe(), kinds: Kinds = ()) -> TrainState:
    """The state with arrays of the host, its key as data, if training can go on from it; ValueError of one line else."""
    check_sizes(structure.get("network") if isinstance(structure, dict) else None, arrays)
    state = fill(_shapes(structure, recipe, kinds), arrays)
    check_state(state, recipe)
    return state


def placed(structure: Any, state: TrainState, recipe: Recipe = Recipe(), kinds: Kinds = ()) -> TrainState:
    """What `checked` gave, on the device."""
    return on_device(_shapes(structure, recipe, kinds), state)


def _shapes(structure: Any, recipe: Recipe, kinds: Kinds) -> TrainState:
    if not isinstance(structure, dict) or set(structure) != {"network", "key"}:
        raise ValueError("the structure of a state has the entries network and key, and no other.")
    if structure["key"] not in GENERATORS:
        raise unknown("key", cut(str(structure["key"]), 40), GENERATORS)
    try:
        return _known_shapes(json.dumps(structure, sort_keys=True), recipe, tuple(kinds), jax.config.read("jax_enable_x64"))
    except TypeError:  # an objective of one's own that has no hash
        return _all_shapes(structure, recipe, kinds)


@lru_cache(maxsize=64)
def _known_shapes(text: str, recipe: Recipe, kinds: tuple[type, ...], x64: bool) -> TrainState:
    return _all_shapes(json.loads(text), recipe, kinds)


def _all_shapes(structure: dict[str, Any], recipe: Recipe, kinds: Kinds) -> TrainState:
    generator = structure["key"]
    members = shapes(structure["network"], kinds).members
    network = shapes({**structure["network"], "members": []}, kinds)
    alone = jax.eval_shape(lambda one: start(one, recipe, key=jax.random.key(0, impl=generator)), network)
    return population(alone, members)
