"""What training takes: rows filled up to shared shapes, and a state that goes on from an earlier fit.

transformed(x, inputs) → what networks read of x, made once      data_of(rows, z, network, objective, dev, dev_z) → Data
to_go_on_from(state), resumed(state) → TrainState
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from meristem import sparse
from meristem.estimators import buckets
from meristem.inputs import Inputs
from meristem.nn import Network
from meristem.train.hyperparameters import Recipe
from meristem.train.objectives import Objective
from meristem.train.train_state import Plateau, TrainState, fit_to_recipe
from meristem.train.training_data import Data


class Rows(NamedTuple):
    """Samples, dense or sparse; their encoded targets; how much each counts."""

    x: Any
    y: np.ndarray
    weight: np.ndarray

    @property
    def are_alike(self) -> bool:
        """Whether all that count do so alike, as a quick model takes them."""
        counted = self.weight[self.weight > 0]
        return bool(np.ptp(counted) <= 1e-6 * counted.max())

    def at(self, rows: np.ndarray) -> "Rows":
        return Rows(*(part[rows] for part in self))


def transformed(x: Any, inputs: Inputs) -> np.ndarray | sparse.Scattered:
    """Return the inputs of all rows, float32 [n, n_inputs]; of a large sparse table rows that are made when asked for."""
    n_in = buckets.bucket(inputs.n_inputs, buckets.FEATURES)
    stays_sparse = sparse.is_sparse(x) and 4 * x.shape[0] * n_in > sparse.DENSE
    return inputs.preprocessor.scattered(x) if stays_sparse else inputs(x)


def data_of(rows: Rows, z: Any, network: Network, objective: Objective, dev: Rows | None = None, dev_z: Any = None) -> Data:
    """Return transformed rows as a network with this room takes them, for training and to choose by."""
    x, y, weight = _filled(rows, z, network, objective)
    dev_x, dev_y, dev_weight = (None, None, None) if dev is None else _filled(dev, dev_z, network, objective)
    return Data(x, y, dev_x, dev_y, weight, dev_weight)


def _filled(rows: Rows, z: Any, network: Network, objective: Objective) -> tuple[Any, np.ndarray, np.ndarray]:
    """Samples, targets and weights in the shape that many data sets share; a large sparse table as it is, row by row."""
    (n_in,), n_out = network.input_shape, network.n_out
    stays_sparse = isinstance(z, sparse.Scattered)
    n = len(rows.y) if stays_sparse else buckets.bucket(len(rows.y), buckets.ROWS)
    y = rows.y if objective.targets_are_classes else rows.y.reshape(len(rows.y), -1).astype(np.float32)
    return (
        z.filled(n_in) if stays_sparse else buckets.filled(z, n, n_in),
        buckets.filled(y, n, *[n_out] * (y.ndim - 1)),
        buckets.filled(rows.weight, n),
    )


def to_go_on_from(state: TrainState) -> TrainState:
    """What an estimator keeps to go on from: no average, which belongs to the end of a training."""
    return fit_to_recipe(state, Recipe())


def resumed(state: TrainState) -> TrainState:
    """The same network and moments; the schedule and the search for the best begin anew."""
    inf, zero, no = jax.device_put((np.full_like(state.best[0], np.inf), np.int32(0), np.False_))
    return eqx.tree_at(lambda s: (s.plateau, s.best, s.diverged), state, (Plateau(inf, zero, zero), (inf, inf), no))
