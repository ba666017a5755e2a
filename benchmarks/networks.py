"""The networks that are timed: in the middle of their life, so that nothing is saved where nothing has grown yet."""

import equinox as eqx
import jax
import jax.numpy as jnp

from meristem.nn import Network
from meristem.nn.linear import he_layer

# Budding is timed at rest: 1 − 1e-9 is 1 in float32, so no leaf opens, and the number of leaves is the one that is claimed.
RESTING_RATE = 1e-9


def half_open_tunnel(n_in: int, n_out: int, *, width: int, depth: int) -> Network:
    """All gates are between 0.2 and 0.8: then L2 reaches every weight, as PyTorch's weight decay does."""
    network = Network.create("tunnel", n_in, n_out, width=width, depth=depth, key=jax.random.key(0))
    gates = jax.random.uniform(jax.random.key(1), network.body.gate.value.shape, minval=0.2, maxval=0.8)
    return eqx.tree_at(lambda n: n.body.gate.value, network, gates)


def full_tree(n_in: int, n_out: int, *, width: int, height: int, capacity: int | None = None) -> Network:
    """A budding network with 2^height leaves of equal depth; every inner γ is 0.5."""
    n = 2**height
    capacity = capacity or n
    network = Network.create("budding", n_in, n_out, width=width, capacity=capacity, key=jax.random.key(0))
    layers, dormant = (he_layer(jax.random.key(k), (capacity, width, width)) for k in (1, 2))
    # Inner node j of a full tree is the less deep the more often 2 divides j.
    depth = [height - (j & -j).bit_length() if 0 < j < n else -1 for j in range(capacity)]
    inner = jnp.arange(2 * capacity - 1)
    leafness = jnp.where((inner % 2 == 1) & (inner < 2 * n - 1), 0.5, 1.0).astype(jnp.float32)
    return eqx.tree_at(
        lambda m: (m.body.weight, m.body.bias, m.body.bud.weight, m.body.bud.bias, m.body.leafness.value, m.body.depth),
        network,
        (*layers, *dormant, leafness, jnp.asarray(depth, jnp.int32)),
    )
