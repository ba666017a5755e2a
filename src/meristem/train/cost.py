"""What is minimized (equations 2 and 5).

    J = mean_x E(x) + penalty · price + l2 · ½ ‖W‖²

E is the objective's. The price is the paper's ("units": Σ g, Σ 1 − γ, and Σ of the gates of trunk and inputs where there are
any), or what the network costs to keep or to run ("parameters", "multiply-adds", complexity.py): each gate then pays for what
closing it would save, given what else is open. `penalty` is relative to the mean loss, so it does not change with the batch
size (the paper's λ is relative to the sum over a batch: λ / batch).
"""

import jax
import numpy as np
from jaxtyping import Array, Float, Num

from meristem.complexity import soft_cost
from meristem.nn.network import Network
from meristem.train.objectives import Objective
from meristem.train.over_batch import over_batch


def cost(
    network: Network,
    x: Float[Array, "batch in ..."],
    y: Num[Array, "batch ..."],
    *,
    objective: Objective,
    penalty: Float[Array | np.ndarray, ""] | float,
    l2: Float[Array | np.ndarray, ""] | float,
    weight: Float[Array, " batch"] | None = None,
    price: str = "units",
) -> Float[Array, ""]:
    """J over a batch. `weight` sums to 1; None is the plain mean.

    >>> import jax, jax.numpy as jnp
    >>> from meristem.train.objectives import Binary
    >>> network = Network.create("tunnel", 2, 1, width=3, depth=2, key=jax.random.key(0))
    >>> cost(network, jnp.zeros((4, 2)), jnp.zeros(4), objective=Binary(), penalty=0.0, l2=0.0).item() == jnp.log(2.0).item()
    True
    """
    # The price of most bodies does not depend on the sample; where it does (highway) its mean is meant.
    outputs, units = over_batch(network, x)
    each = jax.vmap(objective.loss)(outputs, y)
    if price == "units":
        each = each + penalty * units
    mean = each.mean() if weight is None else (weight * each).sum()
    if price != "units":
        mean = mean + penalty * soft_cost(network, price)
    return mean + l2 * network.half_norm()
