"""Data sets padded to few shared shapes, so that compiled programs are reused; and states that training starts from.

    rows      256, 512, …, 2048, then four sizes between one power of two and the next
    features  32, 64, 128, 256, 320, 384, 448, 512, 640, …
    outputs   8, 16, 32, 64, 80, …
    objective two classes are trained as one label, which is equivalent

A compiled program belongs to one shape. Small shapes are cheap, so there are few of them; at most a fifth of a large one is
padding. Padding changes no result: rows get weight 0, features are 0 in every sample, and unused outputs are constant (the
objective's `unused_output`).
"""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import numpy as np

from meristem.nn import Network
from meristem.nn.ends import mask_ends
from meristem.train.hyperparameters import Recipe
from meristem.train.objectives import Binary, Multilabel, Objective
from meristem.train.train_state import Plateau, TrainState, fit_to_recipe, start

ROWS, FEATURES, OUTPUTS = 256, 32, 8  # the smallest sizes


def padded_size(n: int, least: int) -> int:
    """Return the next shared size.

    >>> [padded_size(n, 32) for n in (1, 32, 33, 100, 300, 784)]
    [32, 32, 64, 128, 320, 896]
    """
    power = max(least, 1 << (n - 1).bit_length())
    step = power if power <= 8 * least else power // 8
    return -(-n // step) * step


def shared_objective(objective: Objective) -> Objective:
    """Return the equivalent objective that other data sets share."""
    return Multilabel() if objective == Binary() else objective


@partial(jax.jit, static_argnames=("body", "n_in", "n_out", "options"))
def initial_state(
    seed: Any, used_in: Any, used_out: Any, unused_output: Any, *, body: str, n_in: int, n_out: int, options: tuple[Any, ...]
) -> TrainState:
    """Return the state before the first epoch of a padded network; it is the same for every recipe.

    Of its inputs and outputs, `used_in` and `used_out` are not padding; the options are those of `Network.create`.
    """
    keys = jax.random.split(jax.random.key(seed))
    network = Network.create(body, n_in, n_out, key=keys[0], **dict(options))
    return start(mask_ends(network, used_in, used_out, unused_output), Recipe(), key=keys[1])


def state_to_continue(state: TrainState) -> TrainState:
    """Return the state that an estimator stores: without the weight average, which belongs to the end of a training."""
    return fit_to_recipe(state, Recipe())


def continued(state: TrainState) -> TrainState:
    """Return the state with the same network and moments, and with the schedule and the best loss reset."""
    inf, zero, no = jax.device_put((np.full_like(state.best[0], np.inf), np.int32(0), np.False_))
    return eqx.tree_at(lambda s: (s.plateau, s.best, s.diverged), state, (Plateau(inf, zero, zero), (inf, inf), no))
