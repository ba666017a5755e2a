"""Two spirals in three difficulties, and Lang & Witbrock's classic; 97 points per class.

r = 6.5 · (ρ + (1 − ρ) t),  angle = 2π · turns · t,  t = 0 … 1;  the second class is the first reflected at the origin
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from meristem.check import unknown

POINTS, RADIUS = 97, 6.5
TURNS_AND_RHO = {"easy": (0.25, 0.1), "medium": (1.0, 0.05), "difficult": (1.5, 0.05)}
TASKS = [*TURNS_AND_RHO, "classic"]


def two_spirals(task: str) -> tuple[Float[Array, "194 2"], Float[Array, " 194"]]:
    """Return points and classes (0 and 1).

    >>> x, y = two_spirals("easy")
    >>> x.shape, y.sum().item()
    ((194, 2), 97.0)
    """
    if task == "classic":
        i = np.arange(POINTS)
        radius, angle = RADIUS * (104 - i) / 104, i * np.pi / 16
    elif task in TURNS_AND_RHO:
        turns, rho = TURNS_AND_RHO[task]
        t = np.linspace(0, 1, POINTS)
        radius, angle = RADIUS * (rho + (1 - rho) * t), 2 * np.pi * turns * t
    else:
        raise unknown("task", task, TASKS)
    arm = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)
    dtype = jnp.result_type(float)
    return jnp.asarray(np.concatenate([arm, -arm]), dtype), jnp.asarray(np.repeat([0, 1], POINTS), dtype)
