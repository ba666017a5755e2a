"""The cost of an epoch follows the size: steps are taken with what is open alone.

    live = what_is_open(state, knobs, recipe)            the host decides before each epoch; None: all of it
    restore(state, epoch(shrink(state, live)), live)     the state itself is always whole

From the first time that the rate shrinks (what is not worth its price closes then) closed dimensions of trunks, units and
layers are left out, with what the optimizer keeps for them: of every axis that has gates (nn/axes.py). They keep their weights
and moments. A closed gate opens when the loss wants it to, so until the last stage every fifth epoch is one of the whole
network: growth is delayed, not lost. An epoch in which nothing opens comes out as that of the whole network but for the order
of sums. The sizes are of a few that many structures share, and none is used unless it saves a third of the multiply-adds.

Imports nn and train.state; train.dispatch imports it.
"""

import math
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import numpy as np

from meristem.gate import closed_as
from meristem.nn.axes import MAP, Axes, Axis, Standing, is_entry, with_axes
from meristem.nn.compaction import INPUT
from meristem.nn.live import Live, put, taken
from meristem.nn.network import Network
from meristem.nn.rows import Rows
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
    network, declared = state.network, state.network.axes()
    trunks = {name: _flags(declared, name) for name in declared.trunks if declared.axis(name).closable}
    if not all(flags.any(-1).all() for flags in trunks.values()):
        return None
    lists = {name: _first(flags, _shared(flags.sum(-1).max(), flags.shape[-1])) for name, flags in trunks.items()}
    rows = {}
    standing = {entry.axis for entry in jax.tree.leaves(declared.arrays, is_leaf=is_entry) if isinstance(entry, Standing)}
    for name, axis in declared.axes.items():
        if not axis.closable or name in trunks or name == INPUT or (axis.on is not None and name not in standing):
            continue
        flags = _flags(declared, name)
        if axis.on in trunks:
            flags = flags & (trunks[axis.on] if axis.per is None else trunks[axis.on][..., None, :])
        depth = 0
        if axis.per is not None and name in standing:
            depth, is_used = flags.shape[-2], np.asarray(flags.any(-1))
            lists[axis.per] = _first(is_used, _shared(is_used.sum(-1).max(), depth, least=1))
            flags = _at(flags, lists[axis.per])
        lists[name] = _first(flags, _shared(flags.sum(-1).max(initial=0), flags.shape[-1]))
        if name in standing:
            rows[name] = _standing(axis, lists, name, depth, flags.shape[-1])
    if not lists or _products(network, declared, lists) > WORTH * _products(network, declared, {}):
        return None
    for name, axis in declared.axes.items():  # what stands on a trunk, and is not listed itself, is where that is
        if axis.on in trunks and name not in lists:
            lists[name] = lists[axis.on]
    return jax.device_put(jax.tree.map(lambda index: index.astype(np.int32), Live(lists, rows)))


def _flags(declared: Axes, name: str) -> np.ndarray:
    """Which places of an axis are open, of one network or of each in a population."""
    is_open = declared.axis(name).is_open
    assert is_open is not None
    return np.asarray(is_open())


def _standing(axis: Axis, lists: Mapping[str, np.ndarray], name: str, depth: int, width: int) -> Rows:
    """Where the listed places of an axis stand: in which layers, and on which of the listed dimensions."""
    layers, places = lists[str(axis.per)], lists[name]
    if axis.on is None:
        return Rows(layers, None, None, depth)
    dims = lists[axis.on] if axis.on in lists else np.broadcast_to(np.arange(width), (*layers.shape[:-1], width))
    at, unit = _position(places, dims[..., None, :], width), _position(dims[..., None, :], places, width)
    return Rows(layers, at, unit, depth)


def _products(network: Network, declared: Axes, lists: Mapping[str, np.ndarray]) -> int:
    """The multiply-adds of a network whose listed axes have as many places as are listed."""

    def places(name: str, n: int) -> int:
        on = declared.axis(name).on
        index = lists.get(name, lists.get(on) if on is not None else None)
        return n if index is None else int(index.shape[-1])

    total = 0
    for entry, leaf in with_axes(network, declared):
        if entry.role == MAP:
            shape = leaf.shape[leaf.ndim - len(entry.names) :]
            total += entry.positions * math.prod(places(name, n) for name, n in zip(entry.names, shape, strict=True))
    return total


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
