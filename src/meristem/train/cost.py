"""The cost that training minimizes (equations 2 and 5).

    J = mean_x E(x) + penalty · price + l2 · ½ ‖W‖²

E is the objective's loss. The price is the paper's ("units": Σ g, Σ 1 − γ, and the gates of trunk and inputs if there are any),
or the stored or computed numbers ("parameters", "multiply-adds", complexity.py): each gate then pays for what closing it would
save. `penalty` is relative to the mean loss, independent of the batch size (the paper's λ is relative to the sum: λ / batch).

The gradient of a tunnel's biases and gates is a sum over the batch, layer by layer: twenty small kernels in a network of ten
layers, and on a GPU each costs its launch. If every sample has its own copy, gradients come out side by side and are summed
once for all layers: on an H200 a step of the 10 × 100 network takes 125 instead of 136 µs. On a CPU there is no launch to save
and the copies cost a tenth; in trees and highway networks they gain nothing.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Num

from meristem.complexity import soft_cost
from meristem.nn.axes import MAP, tree_map
from meristem.nn.body import Body
from meristem.nn.network import Network
from meristem.train.objectives import Objective

Outputs = tuple[Float[Array, "batch out"], Float[Array, " batch"]]


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
    """Return J over a batch; `weight` sums to 1, None is the plain mean."""
    # The price of most bodies does not depend on the sample; where it does (highway), J has its mean.
    outputs, units = over_batch(network, x)
    each = jax.vmap(objective.loss)(outputs, y)
    if price == "units":
        each = each + penalty * units
    mean = each.mean() if weight is None else (weight * each).sum()
    if price != "units":
        mean = mean + penalty * soft_cost(network, price)
    return mean + l2 * network.half_norm()


def over_batch(network: Network, x: Float[Array, "batch in ..."]) -> Outputs:
    """Return the outputs and prices of all samples, as jax.vmap(network.priced)(x) does."""
    declared = network.body.axes()
    has_gated_layers = any((axis := declared.axis(name)).closable and axis.per is not None for name in declared.sizes)
    if jax.default_backend() != "cpu" and has_gated_layers:
        return over_batch_with_copies(network, x)
    return jax.vmap(network.priced)(x)


def over_batch_with_copies(network: Network, x: Float[Array, "batch in ..."]) -> Outputs:
    """Return the same, computed with a copy of the body's vectors for every sample; the matrices are shared."""
    declared = network.body.axes()
    is_vector = tree_map(lambda entry, leaf: entry.role != MAP and leaf.ndim == 2, declared, network.body)
    vectors, matrices = eqx.partition(network.body, is_vector)
    copies = jax.tree.map(lambda a: jnp.broadcast_to(a, (x.shape[0], *a.shape)), vectors)

    def priced(own: Body, sample: Float[Array, "in ..."]) -> tuple[Float[Array, " out"], Float[Array, ""]]:
        return eqx.tree_at(lambda n: n.body, network, eqx.combine(own, matrices)).priced(sample)

    return jax.vmap(priced)(copies, x)
