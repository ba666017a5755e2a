"""Rows of any number in, a trained network out: filled up to shared shapes, trained, and cut back.

train(rows, dev, scaling, begin, …) → Trained
"""

import warnings
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from meristem.estimators import buckets
from meristem.estimators.advice import GrowthWarning
from meristem.targets.scaling import Scaling
from meristem.estimators.watching import SCALES, Pulse, Watch
from meristem.nn import Network
from meristem.train import schedule
from meristem.train.loop import DivergedError, Fit, fit
from meristem.train.samples import Data
from meristem.train.step import Recipe, TrainState

HISTORY = ["loss", "error", "dev_loss", "dev_error", "layer_sizes", "soft_size", "hard_size"]


class Rows(NamedTuple):
    """Samples, dense or sparse; their encoded targets; how much each counts."""

    x: Any
    y: np.ndarray
    weight: np.ndarray

    def at(self, rows: np.ndarray) -> "Rows":
        return Rows(*(part[rows] for part in self))


class Trained(NamedTuple):
    """What is kept of a training."""

    network: Network  # of the epoch that is kept, without what filled it up
    state: TrainState  # after the last epoch
    history: dict[str, np.ndarray]  # name → [epochs]
    kept: int  # the epoch that is kept, from 1
    wanted_more: bool  # whether an opening waited in vain at the largest number of leaves


def train(
    rows: Rows,
    dev: Rows | None,
    scaling: Scaling,
    begin: TrainState,
    recipe: Recipe,
    *,
    learning_rate: float,
    penalty: float,
    l2: float,
    max_epochs: int,
    max_leaves: int,
    n_out: int,
    keeps_last: bool,
    watch: Watch,
    pulse: Pulse | None,
) -> Trained:
    """Train on the rows; keep the model of the best development loss, or the last one."""
    room = recipe.objective, begin.network.embed.weight.shape[1], begin.network.head.weight.shape[0]
    x, y, weight = _filled(rows, scaling, *room)
    dev_x, dev_y, dev_weight = (None, None, None) if dev is None else _filled(dev, scaling, *room)
    try:
        result = fit(
            begin.network,
            Data(x, y, dev_x, dev_y, weight, dev_weight),
            learning_rate=learning_rate,
            penalty=penalty,
            l2=l2,
            key=begin.key,
            recipe=recipe,
            max_epochs=max_epochs,
            max_capacity=max_leaves,
            start=begin,
            watch=watch,
            pulse=pulse,
        )
    except DivergedError as error:
        result = error.fit
        if not result.best_epoch:  # nothing good came of it
            raise
        warnings.warn(str(error), GrowthWarning, stacklevel=4)
    history = {name: result.history[name] for name in HISTORY}
    history["rate"] = learning_rate * np.asarray(SCALES)[np.minimum(result.history["stage"], len(SCALES) - 1)]
    kept = result.last if keeps_last else result.best
    return Trained(
        network=buckets.narrow(kept, rows.x.shape[1], n_out),
        state=result.state,
        history=history,
        kept=int(result.epochs if keeps_last else result.best_epoch),
        wanted_more=_wanted_more(result, max_leaves),
    )


def _filled(
    rows: Rows, scaling: Scaling, objective: str, features: int, outputs: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows in the shape that many data sets share."""
    n = buckets.bucket(len(rows.y), buckets.ROWS)
    y = rows.y if objective == "multiclass" else rows.y.reshape(len(rows.y), -1).astype(np.float32)
    return (
        buckets.filled(scaling(rows.x), n, features),
        buckets.filled(y, n, *[outputs] * (y.ndim - 1)),
        buckets.filled(rows.weight, n),
    )


def _wanted_more(result: Fit, max_leaves: int) -> bool:
    return bool(((result.history["waited"] > 0) & (result.history["most_leaves"] >= max_leaves)).any())


def resumed(state: TrainState) -> TrainState:
    """The same network and moments; the schedule and the search for the best begin anew."""
    inf, zero, no = jax.device_put((np.full_like(state.best[0], np.inf), np.int32(0), np.False_))
    return eqx.tree_at(lambda s: (s.plateau, s.best, s.diverged), state, (schedule.Plateau(inf, zero, zero), (inf, inf), no))
