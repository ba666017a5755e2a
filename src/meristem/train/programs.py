"""The compiled programs of training, and how the host runs an epoch with them.

Programs are compiled once per shape and recipe, at module level, so that a second fit compiles nothing. For a population, whose
first argument has members, a program is `vmap`ped over them; the data are shared. Where the members are divided among devices
(devices.py), each device runs the program with its own.

An epoch is one program; a long one runs in parts, with a call of `pulse` after each. Data that do not fit the device stay on
the host, which shuffles them and sends a block of rows at a time while the device computes on the block before; weights within
a block are relative to its mean.

The record of an epoch comes to the host as one array of bytes (`pack`, `unpack`): fetching an array takes 5 µs on a CPU and 20
on a GPU, however small it is, and an epoch of a small network takes 100.
"""

import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, PyTree, UInt8

from meristem.complexity import body_sizes
from meristem.nn.axes import has_positions
from meristem.nn.network import Network
from meristem.train import epoch, train_state
from meristem.train.epoch import steps_per_epoch
from meristem.train.hyperparameters import Knobs, Recipe
from meristem.train.live_size import live_part, restore, shrink
from meristem.train.metrics import measures_of, sum_up
from meristem.train.settle import close_least, is_due, n_rows
from meristem.train.train_state import EpochInfo, Growth, TrainState, no_growth, select
from meristem.train.training_data import Data, Prepared, product

FAST_OPTIONS = {"xla_backend_optimization_level": 1}
STEPS_AT_ONCE = 640  # an epoch of more steps runs in parts, so that progress can be shown
AXIS = "members"  # of a mesh of devices
Pulse = Callable[[float], None] | None  # called with the completed share of the epoch's steps


class Packed(eqx.Module):
    data: UInt8[Array, " bytes"]
    structure: Any = eqx.field(static=True)
    layout: np.dtype = eqx.field(static=True)  # a field for each array


def pack(tree: PyTree) -> Packed:
    """Return the arrays of a tree as one array of bytes."""

    def as_bytes(array: Array) -> UInt8[Array, " bytes"]:
        array = array.astype(jnp.uint8) if array.dtype == bool else jax.lax.bitcast_convert_type(array, jnp.uint8)
        return array.reshape(-1)

    leaves, structure = jax.tree.flatten(jax.tree.map(jnp.asarray, tree))
    layout = np.dtype([(f"leaf {i}", array.dtype, array.shape) for i, array in enumerate(leaves)])
    return Packed(jnp.concatenate([as_bytes(array) for array in leaves]), structure, layout)


def unpack(packed: PyTree) -> PyTree:
    """Return the tree with NumPy arrays, when they are computed; what was not packed is fetched array by array."""
    if not isinstance(packed, Packed):
        return jax.tree.map(np.asarray, packed)
    record = np.asarray(packed.data).view(packed.layout)[0]
    return jax.tree.unflatten(packed.structure, [np.array(leaf) for leaf in record])


def _settle(before: TrainState, data: Data, knobs: Knobs, recipe: Recipe) -> TrainState:
    """Close gates in a member whose learning rate has dropped."""
    stages, plateau = len(recipe.scales), before.plateau
    key = jax.random.fold_in(jax.random.fold_in(before.key, before.epoch), 1)
    network = close_least(before.network, data, knobs, recipe, key, plateau.is_last(stages))
    is_running = ~plateau.is_stopped(stages) & ~before.diverged
    return replace(before, network=select(plateau.has_dropped & is_running, network, before.network))


def _tally(network: Any, x: Any, y: Any, weight: Any, recipe: Recipe) -> Any:
    sums, hidden = sum_up(network, x, y, recipe, weight, calibrated=recipe.calibrate)
    return sums, body_sizes(network.body, hidden, weight) * sums.weight


class _Newest(threading.local):
    """The arrays of the newest state that a program returned to this thread, as long as that state is in use.

    Equinox flattens a state in Python, which takes as long as several steps of a small network.
    """

    def __init__(self) -> None:
        self._reference: Callable[[], TrainState | None] = lambda: None
        self._flat: Any = []

    def flattened(self, state: TrainState) -> Any:
        """Return `jax.tree.flatten(state)`."""
        return self._flat if self._reference() is state else jax.tree.flatten(state)

    def state_of(self, leaves: list[Array], structure: Any) -> TrainState:
        """Return the state of these arrays, and remember them."""
        state: TrainState = jax.tree.unflatten(structure, leaves)
        self._flat = flat = [leaves, structure]
        self._reference = weakref.ref(state, lambda _: flat.clear())
        return state


_newest = _Newest()


def _compiled(
    function: Callable[..., Any], *axes: int | None, is_flat: bool = False, in_turn: bool = False
) -> Callable[..., Any]:
    """Return a program that packs an info; `axes` are those of the arguments in a population, static ones are keywords.

    One that `is_flat` takes a state and returns one of the same structure, which it remembers as arrays; `in_turn` is that of
    `over_members`.
    """

    def program(*args: Any, mesh: Mesh | None = None, structure: Any = None, **static: Any) -> Any:
        call = partial(function, **static)
        if structure is not None:
            args = jax.tree.unflatten(structure, args[0]), *args[1:]
        many = over_members(call, axes, args[0], in_turn) if args[0].members else call
        if mesh is not None:
            inputs = tuple(PartitionSpec() if axis is None else PartitionSpec(AXIS) for axis in axes)
            shared: dict[str, Any] = {"mesh": mesh, "in_specs": inputs, "out_specs": PartitionSpec(AXIS), "check_vma": False}
            result = jax.shard_map(many, **shared)(*args)
        else:
            result = many(*args)
            has_info = isinstance(result, tuple) and isinstance(result[1], EpochInfo)
            result = (result[0], pack(result[1])) if has_info else result
        if structure is None:
            return result
        state, *info = result if isinstance(result, tuple) else (result,)
        return jax.tree.leaves(state), *info

    def call(*args: Any, recipe: Recipe, **static: Any) -> Any:
        compiled = fast if compiles_fast(recipe) else optimized
        several = jax.device_count() > 1  # if not, flattening the state would be for nothing
        mesh = getattr(jax.tree.leaves(args[0])[0].sharding, "mesh", None) if several else None
        divided = {"mesh": mesh} if isinstance(mesh, Mesh) and mesh.axis_names == (AXIS,) else {}
        return compiled(*args, recipe=recipe, **static, **divided)

    def call_flat(state: TrainState, *args: Any, recipe: Recipe) -> Any:
        leaves, structure = _newest.flattened(state)
        leaves, *info = call(leaves, *args, recipe=recipe, structure=structure)
        state = _newest.state_of(leaves, structure)
        return (state, *info) if info else state

    program.__name__ = program.__qualname__ = function.__name__
    compiler = partial(jax.jit, program, static_argnames=("recipe", "parts", "mesh", "structure"))
    fast, optimized = compiler(compiler_options=FAST_OPTIONS), compiler()
    return call_flat if is_flat else call


def compiles_fast(recipe: Recipe) -> bool:
    """Return whether programs have FAST_OPTIONS: on a CPU, unless JAX_DISABLE_MOST_OPTIMIZATIONS asks for level 0 anyway."""
    is_requested = recipe.compile_fast and jax.default_backend() == "cpu"
    return is_requested and not jax.config.read("jax_disable_most_optimizations")


def over_members(
    function: Callable[..., Any], axes: tuple[int | None, ...], population: Any, in_turn: bool = False
) -> Callable[..., Any]:
    """Return a function of many members: all at once, or of convolutions one after the other, on a CPU or where `in_turn`.

    Convolutions by as many kernels as there are members are one grouped convolution, for which a CPU takes as long as for each
    alone where they are small, and six times as long for four of 32 channels at 14 × 14 positions. Settling computes a gradient
    for each of a thousand images, which fill any device, and of several networks its memory.
    """
    network = population if isinstance(population, Network) else population.network
    member = jax.tree.map(lambda leaf: leaf[0], network)  # the declaration is that of one network
    if not has_positions(member.axes()) or not (in_turn or jax.default_backend() == "cpu"):
        return jax.vmap(function, in_axes=axes)

    def each(*args: Any) -> Any:
        def single(mapped: tuple[Any, ...]) -> Any:
            rest = iter(mapped)
            return function(*(arg if axis is None else next(rest) for axis, arg in zip(axes, args, strict=True)))

        return jax.lax.map(single, tuple(arg for axis, arg in zip(axes, args, strict=True) if axis is not None))

    return each


start = _compiled(train_state.start, 0, 0)  # (network, key, recipe) → state
settle = _compiled(_settle, 0, None, 0, is_flat=True, in_turn=True)  # (state, data, knobs, recipe) → state
whole_epoch = _compiled(epoch.epoch, 0, None, 0, is_flat=True)  # (state, data, knobs, recipe) → state, packed info
descend = _compiled(epoch.descend, 0, 0, None, 0, None)  # (state, growth, data, knobs, part, recipe, parts) → state, growth
finish = _compiled(epoch.finish, 0, 0, 0, None, 0)  # (before, state, growth, data, knobs, recipe) → state, packed info
average = _compiled(epoch.with_average, 0, 0, 0)  # (before, state, growth, recipe) → state
tally = _compiled(_tally, 0, None, None, 0)  # (network, x, y, weight, recipe) → sums, layer sizes times the weight
conclude = _compiled(epoch.conclude, 0, 0, 0, 0, 0)  # (before, state, growth, measured, knobs, recipe) → as finish


def run_epoch(
    state: TrainState, prepared: Prepared, knobs: Knobs, recipe: Recipe, pulse: Pulse = None
) -> tuple[TrainState, Packed]:
    """Run one epoch, of one network or of a population; the result is on the device."""
    if recipe.settle and (stage := int(np.asarray(state.plateau.stage).max())) >= 1:  # np.max would compute on the device
        passes = 1 if knobs.passes is None else int(np.asarray(knobs.passes).max())
        steps, is_last = passes * steps_per_epoch(len(prepared.data.x), recipe.batch_size), stage >= len(recipe.scales) - 1
        if is_due(int(np.asarray(state.epoch).max()), steps, is_last, knobs):
            state = settled(state, prepared, knobs, recipe)
    live = live_part(state, knobs, recipe)
    if live is None:
        return _epoch(state, prepared, knobs, recipe, pulse)
    small, info = _epoch(shrink(state, live), prepared, knobs, recipe, pulse)
    return restore(state, small, live), info


def _epoch(state: TrainState, prepared: Prepared, knobs: Knobs, recipe: Recipe, pulse: Pulse) -> tuple[TrainState, Packed]:
    data = prepared.data
    if prepared.rows_at_once is not None:
        return _streamed(state, data, knobs, recipe, prepared.rows_at_once, pulse)
    parts = parts_of(steps_per_epoch(len(data.x), recipe.batch_size))
    if parts == 1:
        return whole_epoch(state, data, knobs, recipe=recipe)
    after, growth = state, no_growth(state.members)
    for part in range(parts):
        after, growth = descend(after, growth, data, knobs, jnp.asarray(part, jnp.int32), recipe=recipe, parts=parts)
        _call(pulse, growth, (part + 1) / parts)
    return finish(state, after, growth, data, knobs, recipe=recipe)


def parts_of(steps: int) -> int:
    """Return in how many parts an epoch runs: as few as possible, or up to twice as many if these divide it evenly."""
    fewest = -(-steps // STEPS_AT_ONCE)
    return next((parts for parts in range(fewest, 2 * fewest) if steps % parts == 0), fewest)


def settled(state: TrainState, prepared: Prepared, knobs: Knobs, recipe: Recipe) -> TrainState:
    """Return the state with the gates closed that are not worth their price, or exceed the budget."""
    knobs = knobs._replace(
        dev_weight=None, measured=None, dropout=None, passes=None, epochs=None
    )  # so that more runs share a program
    data = prepared.data
    if prepared.rows_at_once is None:
        return settle(state, Data(data.x, data.y, weight=data.weight), knobs, recipe=recipe)
    n = min(2 * n_rows(len(data.x)), int(np.count_nonzero(_weight(data.weight, data.x))))
    block, own_weight = next(_blocks(data.x, data.y, data.weight, knobs.weight, n, _shuffle(state, 1)))
    return settle(state, block, knobs._replace(weight=own_weight), recipe=recipe)


def _streamed(
    state: TrainState, data: Data, knobs: Knobs, recipe: Recipe, rows_at_once: int, pulse: Pulse
) -> tuple[TrainState, Packed]:
    """Train on blocks of rows in random order, then measure block by block."""
    rows = max(1, rows_at_once // recipe.batch_size) * recipe.batch_size
    after, growth, zero = state, no_growth(state.members), jnp.zeros((), jnp.int32)
    n_blocks = -(-np.count_nonzero(_weight(data.weight, data.x)) // rows)
    fold_in = jax.vmap(jax.random.fold_in, in_axes=(0, None)) if state.members else jax.random.fold_in
    plain = knobs._replace(weight=None, dev_weight=None, measured=None)
    blocks = _blocks(data.x, data.y, data.weight, knobs.weight, rows, _shuffle(state))
    for index, (block, own_weight) in enumerate(blocks):
        after = replace(after, key=fold_in(state.key, index))
        after, growth = descend(after, growth, block, plain._replace(weight=own_weight), zero, recipe=recipe, parts=1)
        _call(pulse, growth, (index + 1) / n_blocks)
    after = average(state, replace(after, key=state.key), growth, recipe=recipe)

    as_measures, measures = jax.vmap(measures_of) if state.members else measures_of, []
    for number, each in enumerate(epoch.measured_sets(data, knobs)):
        parts = []
        for block, own_weight in _blocks(*each, rows):
            weight = product(jnp.broadcast_to(jnp.asarray(block.weight), (*state.members, rows)), own_weight)
            parts.append(tally(after.measured, block.x, block.y, weight, recipe=recipe))
        sums, sizes = jax.tree.map(lambda *sums: sum(sums[1:], start=sums[0]), *parts)
        measures.append(as_measures(sums if number else sums._replace(tempered=None)))
        layer_sizes = sizes / sums.weight[..., None]
    return conclude(state, after, growth, (measures, layer_sizes), plain, recipe=recipe)


def _blocks(
    x: Any, y: Any, weight: Any, own_weight: Any, size: int, order: Callable[[np.ndarray], np.ndarray] = np.asarray
) -> Iterator[tuple[Data, Any]]:
    """Yield blocks of rows of weight above 0 on the device, the last padded with rows of weight 0; and their own weights."""
    weight = _weight(weight, x)
    rows = order(np.flatnonzero(weight))
    for start in range(0, len(rows), size):
        chosen = rows[start : start + size]
        padding = (0, size - len(chosen))
        block_weight, chosen = np.pad(weight[chosen], padding), np.pad(chosen, padding)
        block = Data(jax.device_put(x[chosen]), jax.device_put(y[chosen]), weight=jax.device_put(block_weight))
        yield block, None if own_weight is None else own_weight[..., chosen]


def _weight(weight: Any, x: Any) -> np.ndarray:
    return np.ones(len(x), np.float32) if weight is None else np.asarray(weight)


def _shuffle(state: TrainState, *purpose: int) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that shuffles rows as the state's key and epoch determine."""
    seed = [*np.asarray(jax.random.key_data(state.key)).ravel()[:2].tolist(), int(np.max(state.epoch)), *purpose]
    return np.random.default_rng(seed).permutation


def _call(pulse: Pulse, growth: Growth, share: float) -> None:
    if pulse is not None:
        jax.block_until_ready(growth)
        pulse(share)
