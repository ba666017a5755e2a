"""A budget: the price is found by the run itself, and what is kept never costs more.

    μ ← μ · exp(rate · (cost / budget − 1))        after each epoch; the cost is that of all that is open (settle.hard_cost)
    μ ← μ_0                                        once the budget is met: the dual variable is restarted

So a network that is within its budget grows as if it were nearly free, and one above it pays more and more, up to a price at
which it can still learn. That alone promises nothing; settling does (settle.py): from the first time that the rate shrinks,
what is least worth its cost closes, a fifth an epoch, until the rest is within the budget, and stays closed.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meristem.nn.network import Network
from meristem.train.knobs import Knobs
from meristem.train.recipe import Recipe
from meristem.train.settle import hard_cost, smallest

FIRST_PRICE = 1e-5
HIGHEST_PRICE = 1e-3  # enough to close what is of little use; the rest is settling's
RATE = 0.1


def next_price(knobs: Knobs, cost: Any) -> jax.Array:
    """The penalty of the next epoch, of one network or of each in a population. A host function.

    >>> knobs = Knobs(learning_rate=1e-3, penalty=np.array([1e-4, 1e-4]), budget=np.array([100.0, 100.0]))
    >>> price = next_price(knobs, np.array([200.0, 50.0]))          # above it, within it
    >>> bool(price[0] > 1e-4), bool(price[1] == np.float32(FIRST_PRICE))
    (True, True)
    """
    price, budget = np.asarray(knobs.penalty), np.asarray(knobs.budget)
    excess = np.clip(np.asarray(cost) / budget - 1, -1, 1)
    dearer = np.minimum(price * np.exp(RATE * excess), HIGHEST_PRICE)
    return jax.device_put(np.where(excess > 0, dearer, FIRST_PRICE).astype(jnp.result_type(float)))


def cost_of(network: Network, recipe: Recipe) -> np.ndarray:
    """The parameters or multiply-adds of all that is open, of one network or of each in a population. A host function."""
    cost = partial(hard_cost, recipe=recipe)
    return np.asarray(jax.jit(jax.vmap(cost) if network.members else cost)(network))


def check_budget(network: Network, budget: Any, recipe: Recipe) -> None:
    """Raise ValueError, in one line, where no network of this kind can be within the budget."""
    if recipe.price == "units" or not recipe.settle:
        raise ValueError('A budget needs Recipe(price="parameters" or "multiply-adds", settle=True).')
    one = jax.tree.map(lambda leaf: leaf[0], network) if np.ndim(budget) else network
    least = smallest(one, recipe)
    if float(np.min(budget)) < least:
        raise ValueError(
            f"budget={float(np.min(budget)):,.0f} is below the smallest network, which has {least:,} {recipe.price}; "
            'raise it, or let more close: width="auto", feature_gates=True.'
        )
