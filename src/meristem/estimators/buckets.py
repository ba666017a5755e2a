"""Shapes that many data sets share: rows, features and outputs are filled up to the next of few sizes.

    rows      256, 512, …, 2048, then four sizes between one power of two and the next
    features  32, 64, 128, 256, 320, 384, 448, 512, 640, …
    outputs   8, 16, 32, 64, 80, …
    objective two classes are trained as one label, which is the same

A compiled program belongs to a shape; neighboring shapes become one. Small shapes cost nothing, so there are few of them;
of a large one at most a fifth is filling. Nothing changes but the shape: rows get weight 0, features are 0 in every sample,
and outputs that nobody asked for always say what costs nothing (the objective's `unused_output`).
"""

from functools import partial
from typing import Any

import jax
import numpy as np

from meristem.nn import Network
from meristem.nn.ends import mask_ends
from meristem.train.hyperparameters import Recipe
from meristem.train.objectives import Binary, Multilabel, Objective
from meristem.train.train_state import TrainState, start

ROWS, FEATURES, OUTPUTS = 256, 32, 8  # the smallest


def bucket(n: int, least: int) -> int:
    """The next size.

    >>> [bucket(n, 32) for n in (1, 32, 33, 100, 300, 784)]
    [32, 32, 64, 128, 320, 896]
    """
    power = max(least, 1 << (n - 1).bit_length())
    step = power if power <= 8 * least else power // 8
    return -(-n // step) * step


def shared(objective: Objective) -> Objective:
    """The objective that does the same with a shape that others share."""
    return Multilabel() if objective == Binary() else objective


def filled(array: np.ndarray, *shape: int) -> np.ndarray:
    """The array at the front of zeros.

    >>> filled(np.array([1, 2]), 4).tolist()
    [1, 2, 0, 0]
    """
    whole = np.zeros(shape, array.dtype)
    whole[tuple(slice(n) for n in array.shape)] = array
    return whole


def begin(
    body: str, n_in: int, n_out: int, *, size: dict[str, Any], options: dict[str, Any], objective: Objective, seed: int
) -> TrainState:
    """The state before the first epoch of a network with room for more inputs and outputs than it has.

    `size` are arguments of `Network.create`, `options` those of the body.
    """
    return _begin(
        np.uint32(seed),
        np.int32(n_in),
        np.int32(n_out),
        np.float32(objective.unused_output),
        body=body,
        n_in=bucket(n_in, FEATURES),
        n_out=bucket(n_out, OUTPUTS),
        options=tuple(sorted((size | options).items())),
    )


@partial(jax.jit, static_argnames=("body", "n_in", "n_out", "options"))
def _begin(
    seed: Any,
    used_in: Any,
    used_out: Any,
    unused_output: Any,
    *,
    body: str,
    n_in: int,
    n_out: int,
    options: tuple[Any, ...],
) -> TrainState:
    keys = jax.random.split(jax.random.key(seed))
    network = Network.create(body, n_in, n_out, key=keys[0], **dict(options))
    # What the state holds at first is the same for every recipe.
    return start(mask_ends(network, used_in, used_out, unused_output), Recipe(), key=keys[1])
