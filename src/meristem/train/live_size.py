"""The cost of an epoch follows the live size: the host decides before each epoch which shapes it is trained with.

A body that grows has a capacity: it doubles when an opening had to wait, and is halved when half of it would have been enough
all epoch long. Within a capacity nothing is compiled again.

From the first learning-rate drop on, closed dimensions of trunks, units and layers (of every axis with gates, nn/axes.py) are
left out, with their optimizer state (`shrink`); they keep weights and moments (`restore`). A closed gate may reopen, so until
the last stage every fifth epoch trains the full network. An epoch in which nothing opens equals that of the full network but
for the order of sums.
Sizes are rounded up to a few that many structures share, and used only if they save a third of the multiply-adds.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from meristem.gate import hold
from meristem.nn.axes import MAP, ROWS, Axes, is_entry, with_axes
from meristem.nn.compaction import INPUT
from meristem.nn.model_growth import resize
from meristem.nn.network import Network
from meristem.nn.rows import Live, Rows, put, taken
from meristem.train.hyperparameters import Knobs, Recipe
from meristem.train.train_state import EpochInfo, TrainState, select

N = TypeVar("N", bound=Network)
PROBE = 5  # one of so many epochs trains the full network
WORTH = 2 / 3  # of the multiply-adds of the full network, at most
LEAST = 4  # dimensions, units


def adapt_capacity(state: TrainState, info: EpochInfo, least: int, most: int) -> TrainState:
    """Return the state with the capacity of the next epoch; `info` is on the host, a population shares one capacity."""
    if not least or least == most or info.stopped.all():  # nothing grows, or no longer
        return state
    capacity = new = state.network.capacity
    if info.waited[~info.stopped].any():
        new = max(capacity, min(2 * capacity, most))
    elif max(np.where(info.stopped, 0, info.most_leaves).max(), least) <= capacity // 2:
        new = capacity // 2 if np.max(state.network.in_use()) <= capacity // 2 else capacity
    return state if new == capacity else with_capacity(state, new)


def with_capacity(state: TrainState, capacity: int) -> TrainState:
    """Return the same state with this capacity."""
    network, opt_state = resize(state.network, state.opt_state, capacity)
    average = state.average and replace(state.average, network=resize(state.average.network, None, capacity)[0])
    return replace(state, network=network, opt_state=opt_state, average=average)


def keep_best(improved: np.ndarray, network: N, best: N) -> N:
    """Return the new network for the members that improved, the old best for the others."""
    if improved.all() or not improved.any():
        return network if improved.all() else best
    return jax.jit(select)(jnp.asarray(improved), *with_equal_capacity([network, best]))


def with_equal_capacity(networks: list[N]) -> list[N]:
    """Return the networks with the capacity of the largest of them."""
    most = max(network.capacity for network in networks)
    return [n if n.capacity == most else resize(n, None, most)[0] for n in networks]


def live_part(state: TrainState, knobs: Knobs, recipe: Recipe) -> Live | None:
    """Return what the next epoch is trained with, of one network or of each in a population; None: the full network."""
    if not recipe.follow or not _is_time(state, knobs, recipe):
        return None
    network, declared = state.network, state.network.axes()
    is_open = {name: np.asarray(axis.is_open()) for name, axis in declared.axes.items() if axis.closable and axis.is_open}
    trunks = {name: is_open[name] for name in declared.trunks if name in is_open}
    if not all(flags.any(-1).all() for flags in trunks.values()):
        return None
    lists, rows = {name: _first(flags) for name, flags in trunks.items()}, {}
    standing = {entry.names[0] for entry in jax.tree.leaves(declared.arrays, is_leaf=is_entry) if entry.role == ROWS}
    for name, flags in is_open.items():
        axis = declared.axes[name]
        if name in trunks or name == INPUT or (axis.on is not None and name not in standing):
            continue
        if axis.on in trunks:
            flags = flags & (trunks[axis.on] if axis.per is None else trunks[axis.on][..., None, :])
        if name not in standing:
            lists[name] = _first(flags)
            continue
        (depth, width), at, unit = flags.shape[-2:], None, None
        lists[str(axis.per)] = layers = _first(np.asarray(flags.any(-1)), least=1)
        flags = np.concatenate([flags, np.zeros_like(flags[..., :1, :])], -2)  # none for a layer that is padding
        lists[name] = places = _first(np.take_along_axis(flags, layers[..., None], -2))
        if axis.on is not None:
            dims = lists.get(axis.on, np.broadcast_to(np.arange(width), (*layers.shape[:-1], width)))[..., None, :]
            at, unit = _position(places, dims, width), _position(dims, places, width)
        rows[name] = Rows(layers, at, unit, depth)
    if not lists or _products(network, declared, lists) > WORTH * _products(network, declared, {}):
        return None
    for name, axis in declared.axes.items():  # an axis on a trunk that is not listed itself has the places of the trunk
        if axis.on in trunks and name not in lists:
            lists[name] = lists[axis.on]
    return jax.device_put(jax.tree.map(lambda index: index.astype(np.int32), Live(lists, rows)))


def _products(network: Network, declared: Axes, lists: Mapping[str, np.ndarray]) -> int:
    """Return the multiply-adds of a network whose listed axes have only the listed places."""

    def places(name: str, n: int) -> int:
        index = lists.get(name, lists.get(str(declared.axis(name).on)))
        return n if index is None else int(index.shape[-1])

    maps = [(entry, leaf.shape) for entry, leaf in with_axes(network, declared) if entry.role == MAP]
    return sum(entry.positions * math.prod(map(places, entry.names, shape[-len(entry.names) :])) for entry, shape in maps)


@jax.jit
def shrink(state: TrainState, live: Live) -> TrainState:
    """Return the state of the live part."""
    if state.members:
        return jax.vmap(shrink)(state, live)

    def part(node: Any, **options: bool) -> Any:
        return taken(node, state.network, live, **options) if _is_network(node) else node

    small = jax.tree.map(part, replace(state, opt_state=None), is_leaf=_is_network)
    return replace(small, opt_state=jax.tree.map(partial(part, mirrors=True), state.opt_state, is_leaf=_is_network))


@jax.jit
def restore(state: TrainState, small: TrainState, live: Live) -> TrainState:
    """Return the full state with the live part replaced."""
    if state.members:
        return jax.vmap(restore)(state, small, live)

    def put_back(old: Any, new: Any) -> Any:
        return put(old, new, state.network, live) if _is_network(old) else new

    after = jax.tree.map(put_back, state, small, is_leaf=_is_network)
    # What was closed before the epoch was left out of the average, too.
    average = after.average and replace(after.average, network=hold(after.network, after.average.network))
    return replace(after, average=average)


def _is_network(node: Any) -> bool:
    return isinstance(node, Network)


def _is_time(state: TrainState, knobs: Knobs, recipe: Recipe) -> bool:
    stage, stages = np.asarray(state.plateau.stage), len(recipe.scales)
    running = stage[(stage < stages) & ~np.asarray(state.diverged)]
    if not running.size or (running < 1).any():
        return False
    is_closed_for_good = recipe.settle and (knobs.budget is not None or bool((running >= stages - 1).all()))
    return is_closed_for_good or int(np.max(state.epoch)) % PROBE != 0


def _first(flags: np.ndarray, least: int = LEAST) -> np.ndarray:
    """Return the indices that are true along the last axis; index == size is padding."""
    counts, size = flags.sum(-1), flags.shape[-1]
    n = max(int(counts.max(initial=0)), least)
    step = max(1, (1 << (n - 1).bit_length()) // 8)  # one of four sizes between powers of two: 8, 10, 12, 14, 16, 20, …
    n = min(-(-n // step) * step, size)
    order = np.argsort(~flags, axis=-1, kind="stable")[..., :n]
    return np.where(np.arange(n) < counts[..., None], order, size)


def _position(numbers: np.ndarray, places: np.ndarray, padding: int) -> np.ndarray:
    """Return the index of each number in a list, along the last axis; the list's size where it is absent, or padding."""
    same = (numbers[..., :, None] == places[..., None, :]) & (numbers < padding)[..., :, None]
    return np.where(same.any(-1), same.argmax(-1), places.shape[-1])
