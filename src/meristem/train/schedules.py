"""Schedules of a training whose length is known: learning rate and stage as functions of t in [0, 1], the share that is over.

    cosine       rate · ½ (1 + cos π t)
    one-cycle    rate · t / w while t < w, then rate · ½ (1 + cos π (t − w) / (1 − w))          w = 1/4

The stages are those of the plateau schedule: in the first one the network grows; a recipe that settles closes gates from
t = 0.4 on, and from t = 0.8 on, the last stage, they stay closed. All is decided epoch by epoch, at its middle.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

PLATEAU = "plateau"
SCHEDULES = [PLATEAU, "cosine", "one-cycle"]
WARM_UP = 0.25  # of one cycle: the share in which the rate rises
CLOSES, SETTLES = 0.4, 0.8  # where the second and the last stage begin
ROUNDING = 1e-6  # of a share in single precision


def rate_factor(schedule: str, share: Float[Array, ""]) -> Float[Array, ""]:
    """Return the factor of the learning rate where this share of the training is over.

    >>> [round(float(rate_factor("cosine", jnp.asarray(t))), 2) for t in (0.0, 0.5, 1.0)]
    [1.0, 0.5, 0.0]
    >>> [round(float(rate_factor("one-cycle", jnp.asarray(t))), 2) for t in (0.0, 0.125, 0.25, 0.625)]
    [0.0, 0.5, 1.0, 0.5]
    """
    rise = WARM_UP if schedule == "one-cycle" else 0.0
    fall = 0.5 * (1 + jnp.cos(jnp.pi * (share - rise) / (1 - rise)))
    return jnp.where(share < rise, share / rise, fall) if rise else fall


def stage_at(share: Any, stages: int) -> Int[Array, ""]:
    """Return the stage where this share of the training is over; `stages` at its end, where it has stopped.

    >>> [int(stage_at(jnp.asarray(t), 3)) for t in (0.0, 0.39, 0.4, 0.8, 1.0)]
    [0, 0, 1, 2, 3]
    """
    begins = np.append(np.linspace(CLOSES, SETTLES, stages - 1), 1.0)
    return (share >= jnp.asarray(begins - ROUNDING, share.dtype)).sum(dtype=jnp.int32)
