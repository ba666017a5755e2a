"""A training state as data: the network, what the optimizer keeps, the random key, the schedule; training goes on from it.

    {"network": {"body": …}, "key": "threefry2x32"}

Its shapes follow from those of the network and from the recipe's optimizer: they are what `train.state.start` would make.
"""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from meristem.check import unknown
from meristem.files.arrays import Arrays, by_path, check, fill
from meristem.files.network import Kinds, population, shapes, structure_of
from meristem.train.recipe import Recipe
from meristem.train.state import TrainState, start

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
    return fill(_shapes(structure, recipe, kinds), arrays)


def _shapes(structure: Any, recipe: Recipe, kinds: Kinds) -> TrainState:
    if not isinstance(structure, dict) or set(structure) != {"network", "key"}:
        raise ValueError("the structure of a state has the entries network and key, and no other.")
    generator = structure["key"]
    if generator not in GENERATORS:
        raise unknown("key", generator, GENERATORS)
    members = shapes(structure["network"], kinds).embed.weight.shape[:-2]
    network = shapes({**structure["network"], "members": []}, kinds)
    alone = jax.eval_shape(lambda one: start(one, recipe, key=jax.random.key(0, impl=generator)), network)
    return population(alone, members)
