"""How much room a body that grows has, decided by the host between dispatches.

    an opening had to wait in the last epoch            → twice the capacity, up to `most`
    half of the capacity would have done all epoch long → half of it, down to `least`

So the cost of a step follows the live size, whatever the network's past; inside a capacity nothing is compiled again.
"""

from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meristem.nn.grow import resize
from meristem.nn.network import Network
from meristem.train.state import EpochInfo, TrainState, select

N = TypeVar("N", bound=Network)

_select = jax.jit(select)


def adapt(state: TrainState, info: EpochInfo, least: int, most: int) -> TrainState:
    """The state with the room that the next epoch should have. `info` is on the host; a population shares one capacity."""
    now = state.network.capacity
    if not now:
        return state
    if info.waited[~info.stopped].any():
        wanted = max(now, min(2 * now, most))
    else:
        used = max(np.max(state.network.in_use()), np.where(info.stopped, 0, info.most_leaves).max())
        wanted = now // 2 if max(used, least) <= now // 2 else now
    if wanted == now:
        return state
    return with_room(state, wanted)


def with_room(state: TrainState, capacity: int) -> TrainState:
    """The same state with so many places."""
    state = eqx.tree_at(lambda s: (s.network, s.opt_state), state, resize(state.network, state.opt_state, capacity))
    if state.average is None:
        return state
    return eqx.tree_at(lambda s: s.average.network, state, resize(state.average.network, None, capacity)[0])


def keep_best(improved: np.ndarray, network: N, best: N) -> N:
    """The new network for the members that improved, the old best for the others."""
    if improved.all():
        return network
    network, best = level([network, best])
    return _select(jnp.asarray(improved), network, best)


def level(networks: list[N]) -> list[N]:
    """The same networks with as much room as the largest of them has."""
    room = max(network.capacity for network in networks)
    return [n if n.capacity == room else resize(n, None, room)[0] for n in networks]
