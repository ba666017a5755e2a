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
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from meristem import sparse
from meristem.inputs import Inputs
from meristem.nn import Network
from meristem.nn.ends import mask_ends
from meristem.train.hyperparameters import Recipe
from meristem.train.objectives import Binary, Multilabel, Objective
from meristem.train.train_state import Plateau, TrainState, fit_to_recipe, start
from meristem.train.training_data import Data

ROWS, FEATURES, OUTPUTS = 256, 32, 8  # the smallest sizes


class Rows(NamedTuple):
    """Samples, dense or sparse; their encoded targets; their weights."""

    x: Any
    y: np.ndarray
    weight: np.ndarray

    @property
    def have_equal_weights(self) -> bool:
        """Whether all rows of a weight above 0 have the same one."""
        counted = self.weight[self.weight > 0]
        return bool(np.ptp(counted) <= 1e-6 * counted.max())


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


def transformed(x: Any, inputs: Inputs) -> np.ndarray | sparse.Scattered:
    """Return the network inputs of all rows, float32 [n, n_inputs]; those of a large sparse table are made on demand."""
    n_in = padded_size(inputs.n_inputs, FEATURES)
    stays_sparse = sparse.is_sparse(x) and 4 * x.shape[0] * n_in > sparse.DENSE
    return inputs.preprocessor.scattered(x) if stays_sparse else inputs(x)


def padded_data(rows: Rows, z: Any, network: Network, objective: Objective, dev: Rows | None = None, dev_z: Any = None) -> Data:
    """Return training and validation rows, with inputs z and dev_z, in the shapes of a padded network."""
    x, y, weight = _padded(rows, z, network, objective)
    dev_x, dev_y, dev_weight = (None, None, None) if dev is None else _padded(dev, dev_z, network, objective)
    return Data(x, y, dev_x, dev_y, weight, dev_weight)


def _padded(rows: Rows, z: Any, network: Network, objective: Objective) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return padded samples, targets and weights; the rows of a large sparse table are not padded."""
    (n_in,), n_out = network.input_shape, network.n_out
    stays_sparse = isinstance(z, sparse.Scattered)
    n = len(rows.y) if stays_sparse else padded_size(len(rows.y), ROWS)
    y = rows.y if objective.targets_are_classes else rows.y.reshape(len(rows.y), -1).astype(np.float32)
    return (
        z.filled(n_in) if stays_sparse else _zero_padded(z, n, n_in),
        _zero_padded(y, n, *[n_out] * (y.ndim - 1)),
        _zero_padded(rows.weight, n),
    )


def _zero_padded(array: np.ndarray, *shape: int) -> np.ndarray:
    padded = np.zeros(shape, array.dtype)
    padded[tuple(slice(n) for n in array.shape)] = array
    return padded


def initial_state(body: str, n_in: int, n_out: int, objective: Objective, seed: int, **options: Any) -> TrainState:
    """Return the state before the first epoch of a padded network; the options are those of `Network.create`."""
    return _begin(
        np.uint32(seed),
        np.int32(n_in),
        np.int32(n_out),
        np.float32(objective.unused_output),
        body=body,
        n_in=padded_size(n_in, FEATURES),
        n_out=padded_size(n_out, OUTPUTS),
        options=tuple(sorted(options.items())),
    )


@partial(jax.jit, static_argnames=("body", "n_in", "n_out", "options"))
def _begin(
    seed: Any, used_in: Any, used_out: Any, unused_output: Any, *, body: str, n_in: int, n_out: int, options: tuple[Any, ...]
) -> TrainState:
    keys = jax.random.split(jax.random.key(seed))
    network = Network.create(body, n_in, n_out, key=keys[0], **dict(options))
    # The initial state is the same for every recipe.
    return start(mask_ends(network, used_in, used_out, unused_output), Recipe(), key=keys[1])


def state_to_continue(state: TrainState) -> TrainState:
    """Return the state that an estimator stores: without the weight average, which belongs to the end of a training."""
    return fit_to_recipe(state, Recipe())


def continued(state: TrainState) -> TrainState:
    """Return the state with the same network and moments, and with the schedule and the best loss reset."""
    inf, zero, no = jax.device_put((np.full_like(state.best[0], np.inf), np.int32(0), np.False_))
    return eqx.tree_at(lambda s: (s.plateau, s.best, s.diverged), state, (Plateau(inf, zero, zero), (inf, inf), no))
