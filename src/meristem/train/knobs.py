"""What may differ between the members of a population: a number each, or one for all.

    learning_rate, penalty, l2, dropout    numbers; with a leading axis of members in a population
    budget                                 the most parameters or multiply-adds, of which the penalty is then found by the run
    patience                               epochs, in place of the recipe's: a number that compiles nothing anew
    passes                                 over the rows, that are one epoch: where rows are few, what comes after an epoch
                                           (measures, the schedule, the host) takes longer than its steps
    weight, dev_weight                     how much each row counts, [rows]; times the weights of the data
    measured                               the rows [2, m] that an epoch is measured by: some to learn from, and all held out

Row weights make folds and bootstraps members of one population over data that are on the device once: a fold has weight 0
where its development weight is 1. Where the data have no development set, `dev_weight` counts the training rows. Then all rows
go through the network after each epoch, unless `measured` names some: a fifth of the work where a fifth is held out.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from meristem.check import short
from meristem.train.samples import Data

L2 = 1e-5


class Knobs(NamedTuple):
    """See the module's header. A dropout of None compiles none; weights of None count all rows alike.

    >>> Knobs(learning_rate=1e-3, penalty=1e-4).l2
    1e-05
    """

    learning_rate: Float[Array | np.ndarray, "*members"] | float
    penalty: Float[Array | np.ndarray, "*members"] | float
    l2: Float[Array | np.ndarray, "*members"] | float = L2
    dropout: Float[Array | np.ndarray, "*members"] | float | None = None  # the share of inputs set to 0 in each step
    weight: Float[Array | np.ndarray, "*members rows"] | None = None
    dev_weight: Float[Array | np.ndarray, "*members rows"] | None = None
    budget: Float[Array | np.ndarray, "*members"] | float | None = None
    patience: Float[Array | np.ndarray, "*members"] | float | None = None
    measured: Int[Array | np.ndarray, "*members 2 m"] | None = None
    passes: Int[Array | np.ndarray, "*members"] | int | None = None  # None: one


def checked(knobs: Knobs, members: tuple[int, ...]) -> Knobs:
    """Arrays on the device with the axis of members, or a ValueError of one line."""
    return Knobs(
        learning_rate=_numbers("learning_rate", knobs.learning_rate, members, "above 0", lambda v: v > 0),
        penalty=_numbers("penalty", knobs.penalty, members, "of at least 0", lambda v: v >= 0),
        l2=_numbers("l2", knobs.l2, members, "of at least 0", lambda v: v >= 0),
        dropout=None
        if knobs.dropout is None
        else _numbers("dropout", knobs.dropout, members, "of at least 0 and below 1", lambda v: (v >= 0) & (v < 1)),
        weight=_rows("weight", knobs.weight, members),
        dev_weight=_rows("dev_weight", knobs.dev_weight, members),
        budget=None if knobs.budget is None else _numbers("budget", knobs.budget, members, "of at least 1", lambda v: v >= 1),
        patience=None
        if knobs.patience is None
        else _numbers("patience", knobs.patience, members, "of at least 1", lambda v: v >= 1),
        measured=None if knobs.measured is None else jnp.asarray(knobs.measured),
        passes=None
        if knobs.passes is None
        else _numbers("passes", knobs.passes, members, "of at least 1", lambda v: v >= 1, np.int32),
    )


def check_rows(knobs: Knobs, data: Data) -> None:
    """Raise ValueError unless the weights are those of the data's rows."""
    dev = data.x if data.dev_x is None else data.dev_x
    for name, weight, rows in (("weight", knobs.weight, len(data.x)), ("dev_weight", knobs.dev_weight, len(dev))):
        if weight is not None and jnp.shape(weight)[-1] != rows:
            raise ValueError(f"{name} is for {jnp.shape(weight)[-1]} rows; the data have {rows}.")


def _numbers(name: str, value: Any, members: tuple[int, ...], wanted: str, fits: Any, dtype: Any = None) -> jax.Array:
    array = np.asarray(value)
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{name}={short(value)} must be a number, of those that a float holds.")
    dtype = dtype or jnp.result_type(float)
    with np.errstate(over="ignore", under="ignore"):
        single = array.astype(dtype)  # as it will be
    if not (np.isfinite(array) & fits(array) & np.isfinite(single) & fits(single)).all():
        raise ValueError(f"{name}={short(value)} must be a finite number {wanted}, of those that {single.dtype} holds.")
    if array.shape not in ((), members):
        many = f", or one for each of the {members[0]} members" if members else ""
        raise ValueError(f"{name} has shape {array.shape}; give one number{many}.")
    return jax.device_put(np.broadcast_to(single, members))


def _rows(name: str, value: Any, members: tuple[int, ...]) -> jax.Array | None:
    if value is None:
        return None
    array = np.asarray(value)
    if array.dtype.kind not in "fiub" or array.ndim not in (1, 1 + len(members)):
        raise ValueError(f"{name} has shape {array.shape}; give a number for each row{', of each member' * bool(members)}.")
    array = np.broadcast_to(array, (*members, array.shape[-1])) if array.ndim == 1 else array
    if array.shape[:-1] != members:
        raise ValueError(f"{name} has shape {array.shape}; give [rows], or [{members[0]}, rows] for the {members[0]} members.")
    if not np.isfinite(array).all() or (array < 0).any() or not (array > 0).any(-1).all():
        raise ValueError(f"{name} must hold finite numbers, none below 0, and at least one above 0 for each member.")
    return jax.device_put(array.astype(jnp.result_type(float)))
