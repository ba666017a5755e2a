"""How much room a budding body has, decided by the host between dispatches.

    an opening had to wait in the last epoch            → twice the capacity, up to `most`
    half of the capacity would have done all epoch long → half of it, down to `least`

So the cost of a step follows the live size, whatever the network's past; inside a capacity nothing is compiled again.
"""

from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from meristem.nn.budding import Budding
from meristem.nn.grow import resize
from meristem.nn.network import Network
from meristem.train.step import EpochInfo, TrainState, select

N = TypeVar("N", bound=Network)

_select = jax.jit(select)


def capacity_of(network: Network) -> int:
    """The leaves there is room for; 0 for a body that does not bud."""
    return network.body.capacity if isinstance(network.body, Budding) else 0


def adapt(state: TrainState, info: EpochInfo, least: int, most: int) -> TrainState:
    """The state with the room that the next epoch should have. `info` is on the host; a population shares one capacity."""
    body = state.network.body
    if not isinstance(body, Budding):
        return state
    now = body.capacity
    if info.waited[~info.stopped].any():
        wanted = max(now, min(2 * now, most))
    else:
        used = max(np.asarray(body.in_use()).max(), np.where(info.stopped, 0, info.most_leaves).max())
        wanted = now // 2 if max(used, least) <= now // 2 else now
    if wanted == now:
        return state
    moved: PyTree = resize(state.network, state.opt_state, wanted)
    return eqx.tree_at(lambda s: (s.network, s.opt_state), state, moved)


def keep_best(improved: np.ndarray, network: N, best: N) -> N:
    """The new network for the members that improved, the old best for the others."""
    if improved.all():
        return network
    room = max(capacity_of(network), capacity_of(best))
    network, best = (n if capacity_of(n) == room else resize(n, None, room)[0] for n in (network, best))
    return _select(jnp.asarray(improved), network, best)
