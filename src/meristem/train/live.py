"""The cost of an epoch follows the size: steps are taken with what is open alone.

    live = what_is_open(state, knobs, recipe)            the host decides before each epoch; None: all of it
    restore(state, epoch(shrink(state, live)), live)     the state itself is always whole

From the first time that the rate shrinks (what is not worth its price closes then) closed dimensions of the trunk, units and
layers are left out, with what the optimizer keeps for them. They keep their weights and moments. A closed gate opens when the
loss wants it to, so until the last stage every fifth epoch is one of the whole network: growth is delayed, not lost. An epoch
in which nothing opens comes out as that of the whole network but for the order of sums. The sizes are of a few that many
structures share, and none is used unless it saves a third.

Imports nn and train.state; train.dispatch imports it.
"""

from typing import Any

import equinox as eqx
import jax
import numpy as np

from meristem.gate import closed_as
from meristem.nn.axes import TRUNK
from meristem.nn.body import Live
from meristem.nn.live import put, taken
from meristem.nn.network import Network
from meristem.train.knobs import Knobs
from meristem.train.recipe import Recipe
from meristem.train.state import TrainState

PROBE = 5  # epochs; one of so many is of the whole network
WORTH = 2 / 3  # of the multiply-adds of the whole, at most
LEAST = 4  # dimensions, units


def what_is_open(state: TrainState, knobs: Knobs, recipe: Recipe) -> Live | None:
    """What the next epoch is trained with, of one network or of each in a population; None: all of it. A host function."""
    if not recipe.follow or not _is_time(state, knobs, recipe):
        return None
    network, members = state.network, state.epoch.shape
    declared = network.body.axes()
    gated = [axis.is_open for axis in declared.axes.values() if axis.closable and axis.per is not None]
    trunk = declared.axis(TRUNK).is_open
    units = np.asarray(gated[0]()) if gated and gated[0] is not None else None
    if trunk is None and units is None:
        return None
    (n_in,), width, n_out = network.input_shape, network.width, network.n_out
    there = np.ones((*members, width), bool) if trunk is None else np.asarray(trunk())
    units = np.zeros((*members, 0, width), bool) if units is None else units & there[..., None, :]
    depth, is_used = units.shape[-2], np.asarray(units.any(-1))
    n_dims = width if trunk is None else _shared(there.sum(-1).max(), width)
    n_layers, n_rows = _shared(is_used.sum(-1).max(), depth, least=1), _shared(units.sum(-1).max(initial=0), width)
    if not there.any(-1).all() or n_dims * (n_in + n_layers * n_rows + n_out) > WORTH * width * (n_in + depth * width + n_out):
        return None
    dims, layers = _first(there, n_dims), _first(is_used, n_layers)
    rows = _first(_at(units, layers), n_rows)
    at, unit = _position(rows, dims[..., None, :], width), _position(dims[..., None, :], rows, width)
    return Live(*jax.device_put(tuple(index.astype(np.int32) for index in (dims, layers, rows, at, unit))))


def shrink(state: TrainState, live: Live) -> TrainState:
    """The state of what is open."""
    return (_shrink_each if state.epoch.ndim else _shrink)(state, live)


def restore(state: TrainState, small: TrainState, live: Live) -> TrainState:
    """The whole state with what has become of what was open."""
    return (_restore_each if state.epoch.ndim else _restore)(state, small, live)


def _one_shrunk(state: TrainState, live: Live) -> TrainState:
    def mirrors(node: Any) -> Any:
        return taken(node, state.network, live, mirrors=True) if _is_network(node) else node

    small = eqx.tree_at(lambda s: s.network, state, taken(state.network, state.network, live))
    small = eqx.tree_at(lambda s: s.opt_state, small, jax.tree.map(mirrors, state.opt_state, is_leaf=_is_network))
    if state.average is None:
        return small
    return eqx.tree_at(lambda s: s.average.network, small, taken(state.average.network, state.network, live))


def _one_restored(state: TrainState, small: TrainState, live: Live) -> TrainState:
    def whole(old: Any, new: Any) -> Any:
        return put(old, new, state.network, live) if _is_network(old) else new

    after = jax.tree.map(whole, state, small, is_leaf=_is_network)
    if state.average is None:
        return after
    # What was closed before the epoch was left out of it, in the average too.
    return eqx.tree_at(lambda s: s.average.network, after, closed_as(after.network, after.average.network))


_shrink, _shrink_each = jax.jit(_one_shrunk), jax.jit(jax.vmap(_one_shrunk))
_restore, _restore_each = jax.jit(_one_restored), jax.jit(jax.vmap(_one_restored))


def _is_network(node: Any) -> bool:
    return isinstance(node, Network)


def _is_time(state: TrainState, knobs: Knobs, recipe: Recipe) -> bool:
    stage = np.atleast_1d(np.asarray(state.plateau.stage))
    running = stage[(stage < len(recipe.scales)) & ~np.atleast_1d(np.asarray(state.diverged))]
    if not running.size or (running < 1).any():
        return False
    is_closed_for_good = recipe.settle and (knobs.budget is not None or (running >= len(recipe.scales) - 1).all())
    return bool(is_closed_for_good) or int(np.max(state.epoch)) % PROBE != 0


def _shared(n: Any, most: int, least: int = LEAST) -> int:
    """The next size, of which there are four between one power of two and the next: 8, 10, 12, 14, 16, 20, …

    >>> [_shared(n, 100) for n in (1, 5, 33, 65, 98)]
    [4, 5, 40, 80, 100]
    """
    n = max(int(n), least)
    step = max(1, (1 << (n - 1).bit_length()) // 8)
    return min(-(-n // step) * step, most)


def _first(flags: np.ndarray, n: int) -> np.ndarray:
    """The indices of the first n that are true along the last axis; where there are fewer, one too large.

    >>> _first(np.array([False, True, True, False]), 3).tolist()
    [1, 2, 4]
    """
    order = np.argsort(~flags, axis=-1, kind="stable")[..., :n]
    return np.where(np.arange(n) < flags.sum(-1)[..., None], order, flags.shape[-1])


def _at(units: np.ndarray, layers: np.ndarray) -> np.ndarray:
    """The units of these layers; of a layer that is one too large, none."""
    padded = np.concatenate([units, np.zeros_like(units[..., :1, :])], -2) if units.shape[-2] else units
    return np.take_along_axis(padded, layers[..., None], -2)


def _position(wanted: np.ndarray, found: np.ndarray, none: int) -> np.ndarray:
    """Where each of some numbers stands in a list, along the last axis; one too large where it does not, or is `none`.

    >>> _position(np.array([7, 2, 9]), np.array([2, 7, 9]), 9).tolist()
    [1, 0, 3]
    """
    same = (wanted[..., :, None] == found[..., None, :]) & (wanted < none)[..., :, None]
    return np.where(same.any(-1), same.argmax(-1), found.shape[-1])
