"""A training state as data: the network, its moments and ages, the random key, the schedule; training goes on from it.

    {"network": {"body": …}, "key": "threefry2x32"}

Its shapes follow from those of the network: they are what `train.step.start` would make of it.
"""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from meristem.check import unknown
from meristem.files.network import population, shapes, structure_of
from meristem.files.arrays import by_path, check, fill
from meristem.train.step import Recipe, TrainState, start

GENERATORS = ["threefry2x32", "rbg", "unsafe_rbg"]


def pack_state(state: TrainState) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """A state's structure, made of JSON's values, and its arrays by path, on the host.

    >>> import jax
    >>> from meristem.nn import Network
    >>> from meristem.train.step import Recipe, start
    >>> network = Network.create("budding", n_in=2, n_out=1, key=jax.random.key(0))
    >>> structure, arrays = pack_state(start(network, Recipe(), key=jax.random.key(1)))
    >>> int(unpack_state(structure, arrays).epoch)
    0
    """
    structure = {"network": structure_of(state.network), "key": str(jax.random.key_impl(state.key))}
    arrays = by_path(state)
    try:
        check(_shapes(structure), arrays)
    except ValueError as error:
        raise ValueError(f"This state cannot be saved, it is not as training leaves it: {error}") from error
    return structure, arrays


def unpack_state(structure: Any, arrays: Mapping[str, np.ndarray]) -> TrainState:
    """The state; raises ValueError of one line where structure and arrays do not fit."""
    return fill(_shapes(structure), arrays)


def _shapes(structure: Any) -> TrainState:
    if not isinstance(structure, dict) or set(structure) != {"network", "key"}:
        raise ValueError("the structure of a state has the entries network and key, and no other.")
    generator = structure["key"]
    if generator not in GENERATORS:
        raise unknown("key", generator, GENERATORS)
    members = shapes(structure["network"]).embed.weight.shape[:-2]
    network = shapes({**structure["network"], "members": []})
    alone = jax.eval_shape(lambda one: start(one, Recipe(), key=jax.random.key(0, impl=generator)), network)
    return population(alone, members)
