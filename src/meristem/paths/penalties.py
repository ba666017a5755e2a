"""A grid of penalties from the data: from the price at which nothing is worth opening, downward.

    highest = (mean loss of a network that says nothing) / (what the cheapest thing costs)

A gate is open in the end only if it lowers the mean loss by more than its price. No gate can lower it by more than all there
is, so at the highest price nothing opens, and far below it everything does.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num

from meristem.complexity import SOFT, UNIT
from meristem.train.objectives import Objective

N = 5
FROM, TO = 1e-5, 1e-1  # of the highest price


def highest(
    y: Num[Array | np.ndarray, "n ..."],
    weight: Float[Array | np.ndarray, " n"],
    objective: Objective,
    n_in: int,
    n_out: int,
    price: str,
) -> float:
    """The price above which nothing opens; `n_in` features, `n_out` outputs."""
    says = jnp.zeros(n_out)
    losses = jax.vmap(lambda target: objective.loss(says, target))(jnp.asarray(y))
    cheapest = (n_in + n_out) / UNIT if price in SOFT else 1.0
    return float((losses * weight).sum() / np.sum(weight)) / cheapest


def penalties_below(top: float, n: int = N) -> np.ndarray:
    """So many, evenly by their logarithm.

    >>> penalties_below(1.0, 3).tolist()
    [1e-05, 0.001, 0.1]
    """
    return np.geomspace(FROM * top, TO * top, n)
