"""The plateau schedule: 1 → 0.3 → 0.1 of the rate → stop, each after `patience` epochs without improvement.

A value that is carried, so that every member of a population has its own. `step` is pure and runs on the device.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

TOLERANCE = 1e-9  # a smaller gain is none


class Plateau(NamedTuple):
    best: Float[Array, ""]  # lowest watched measure so far
    since: Int[Array, ""]  # epochs since it improved or the rate shrank
    stage: Int[Array, ""]  # how often the rate shrank; len(scales): stopped


def start() -> Plateau:
    return Plateau(jnp.asarray(jnp.inf, jnp.result_type(float)), jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32))


def step(
    plateau: Plateau,
    measure: Float[Array, ""],
    *,
    patience: int | Float[Array, ""],
    stages: int,
    tolerance: float | Float[Array, ""] = TOLERANCE,
) -> Plateau:
    """One epoch later. Lower is better; NaN is no improvement, nor is a gain that is not above the tolerance.

    >>> plateau = start()
    >>> for _ in range(3):
    ...     plateau = step(plateau, jnp.asarray(1.0), patience=2, stages=3)
    >>> int(plateau.stage)
    1
    """
    improved = measure < plateau.best - tolerance
    since = jnp.where(improved, 0, plateau.since + 1)
    shrink = (since >= patience) & (plateau.stage < stages)
    return Plateau(
        jnp.where(improved, measure, plateau.best),
        jnp.where(shrink, 0, since),
        plateau.stage + shrink.astype(jnp.int32),
    )


def scale(plateau: Plateau, scales: tuple[float, ...]) -> Float[Array, ""]:
    """The factor of the rate at this stage; 0 when stopped."""
    return jnp.asarray((*scales, 0.0), plateau.best.dtype)[plateau.stage]


def closes(plateau: Plateau) -> Bool[Array, ""]:
    """Whether the rate has shrunk: what is not worth its price closes, where a recipe says so."""
    return plateau.stage >= 1


def holds(plateau: Plateau, stages: int) -> Bool[Array, ""]:
    """Whether this is the last stage: what is closed stays closed, where a recipe says so."""
    return plateau.stage >= stages - 1


def stopped(plateau: Plateau, stages: int) -> Bool[Array, ""]:
    return plateau.stage >= stages
