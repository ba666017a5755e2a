"""The compiled programs of training, and how the host runs an epoch with them.

Programs are compiled once per shape and recipe, at module level, so that a second fit compiles nothing: one set for a single
network, and one, `vmap`ped over members, for a population with shared data.

An epoch is one program; a long one runs in parts, with a call of `pulse` after each. Data that do not fit the device stay on
the host, which shuffles them and sends a block of rows at a time while the device computes on the block before; weights within
a block are relative to its mean.

The record of an epoch comes to the host as one array of bytes (`pack`, `unpack`): fetching an array takes 5 µs on a CPU and 20
on a GPU, however small it is, and an epoch of a small network takes 100.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial, wraps
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree, UInt8

from meristem.complexity import body_sizes
from meristem.train import epoch, train_state
from meristem.train.hyperparameters import Knobs, Recipe
from meristem.train.live_size import live_part, restore, shrink
from meristem.train.metrics import Sums, measures_of, sum_up
from meristem.train.minibatches import steps_per_epoch
from meristem.train.settle import close_least, is_due, n_rows
from meristem.train.train_state import Growth, TrainState, no_growth, select
from meristem.train.training_data import Data, Prepared

STEPS_AT_ONCE = 640  # an epoch of more steps runs in parts, so that progress can be shown
Pulse = Callable[[float], None] | None  # called with the completed share of the epoch's steps


class Packed(eqx.Module):
    """The arrays of a tree as bytes."""

    data: UInt8[Array, " bytes"]
    structure: Any = eqx.field(static=True)
    leaves: tuple[tuple[tuple[int, ...], str], ...] = eqx.field(static=True)  # shape and dtype of each array


def pack(tree: PyTree) -> Packed:
    """Return the arrays of a tree as one array of bytes."""

    def as_bytes(array: Array) -> UInt8[Array, " bytes"]:
        if array.dtype == bool:
            return array.astype(jnp.uint8).reshape(-1)
        return jax.lax.bitcast_convert_type(array, jnp.uint8).reshape(-1)

    leaves, structure = jax.tree.flatten(tree)
    arrays = [jnp.asarray(leaf) for leaf in leaves]
    described = tuple((array.shape, array.dtype.name) for array in arrays)
    return Packed(jnp.concatenate([as_bytes(array) for array in arrays]), structure, described)


def unpack(packed: Packed) -> PyTree:
    """Return the tree with NumPy arrays, when they are computed.

    >>> unpack(pack({"loss": jnp.ones(2), "epoch": jnp.array(3)}))["epoch"].item()
    3
    """
    data = np.asarray(packed.data)
    leaves, start = [], 0
    for shape, name in packed.leaves:
        dtype = np.dtype(name)
        stop = start + dtype.itemsize * math.prod(shape)
        leaves.append(np.ndarray(shape, dtype, data[start:stop].tobytes()))
        start = stop
    return jax.tree.unflatten(packed.structure, leaves)


class Programs(NamedTuple):
    start: Callable[..., Any]  # (network, key, recipe) → state
    settle: Callable[..., Any]  # (state, data, knobs, recipe) → state
    epoch: Callable[..., Any]  # (state, data, knobs, recipe) → state, packed info
    descend: Callable[..., Any]  # (state, growth, data, knobs, part, recipe, parts) → state, growth
    finish: Callable[..., Any]  # (before, state, growth, data, knobs, recipe) → state, packed info
    average: Callable[..., Any]  # (before, state, growth, recipe) → state
    tally: Callable[..., Any]  # (network, x, y, weight, recipe) → sums, layer sizes times the weight
    conclude: Callable[..., Any]  # (before, state, growth, train, dev, sizes, knobs, recipe, has_dev) → state, packed info


def _start(network: Any, key: Any, recipe: Recipe) -> Any:
    return train_state.start(network, recipe, key=key)


def _settle(before: Any, data: Any, knobs: Any, recipe: Recipe) -> Any:
    """Close gates in a member whose learning rate has dropped."""
    stages, plateau = len(recipe.scales), before.plateau
    key = jax.random.fold_in(jax.random.fold_in(before.key, before.epoch), 1)
    network = close_least(before.network, data, knobs, recipe, key, plateau.is_last(stages))
    is_running = ~plateau.is_stopped(stages) & ~before.diverged
    return eqx.tree_at(lambda s: s.network, before, select(plateau.has_dropped & is_running, network, before.network))


def _tally(network: Any, x: Any, y: Any, weight: Any, recipe: Recipe) -> Any:
    sums, hidden = sum_up(network, x, y, recipe.task, weight, priced=recipe.select == "cost", calibrated=recipe.calibrate)
    return sums, body_sizes(network.body, hidden, weight) * sums.weight


def _each(function: Callable[..., Any], axes: tuple[int | None, ...]) -> Callable[..., Any]:
    """Return the function for every member; `axes` are those of the positional arguments, static ones are keywords."""

    @wraps(function)
    def population(*args: Any, **static: Any) -> Any:
        return jax.vmap(lambda *member: function(*member, **static), in_axes=axes)(*args)

    return population


def _packed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, which returns a state and an info, with the info packed."""

    @wraps(function)
    def packed(*args: Any, **static: Any) -> Any:
        state, info = function(*args, **static)
        return state, pack(info)

    return packed


_recipe = partial(jax.jit, static_argnames="recipe")
_parts = partial(jax.jit, static_argnames=("recipe", "parts"))
_end = partial(jax.jit, static_argnames=("recipe", "has_dev"))

ALONE = Programs(
    _recipe(_start),
    _recipe(_settle),
    _recipe(_packed(epoch.epoch)),
    _parts(epoch.descend),
    _recipe(_packed(epoch.finish)),
    _recipe(epoch.with_average),
    _recipe(_tally),
    _end(_packed(epoch.conclude)),
)
TOGETHER = Programs(
    _recipe(_each(_start, (0, 0))),
    _recipe(_each(_settle, (0, None, 0))),
    _recipe(_packed(_each(epoch.epoch, (0, None, 0)))),
    _parts(_each(epoch.descend, (0, 0, None, 0, None))),
    _recipe(_packed(_each(epoch.finish, (0, 0, 0, None, 0)))),
    _recipe(_each(epoch.with_average, (0, 0, 0))),
    _recipe(_each(_tally, (0, None, None, 0))),
    _end(_packed(_each(epoch.conclude, (0, 0, 0, 0, 0, 0, 0)))),
)


def programs_for(knobs: Knobs) -> Programs:
    """Return the programs of a population if the knobs have members, else those of one network."""
    return TOGETHER if jnp.ndim(knobs.penalty) else ALONE


def run_epoch(
    state: TrainState, prepared: Prepared, knobs: Knobs, recipe: Recipe, pulse: Pulse = None
) -> tuple[TrainState, Packed]:
    """Run one epoch, of one network or of a population; the result is on the device."""
    if recipe.settle and (stage := int(np.max(state.plateau.stage))) >= 1:
        passes = 1 if knobs.passes is None else int(np.max(knobs.passes))
        steps, is_last = passes * steps_per_epoch(len(prepared.data.x), recipe.batch_size), stage >= len(recipe.scales) - 1
        if is_due(int(np.max(state.epoch)), steps, is_last, knobs):
            state = settled(state, prepared, knobs, recipe)
    live = live_part(state, knobs, recipe)
    if live is None:
        return _epoch(state, prepared, knobs, recipe, pulse)
    small, info = _epoch(shrink(state, live), prepared, knobs, recipe, pulse)
    return restore(state, small, live), info


def _epoch(state: TrainState, prepared: Prepared, knobs: Knobs, recipe: Recipe, pulse: Pulse) -> tuple[TrainState, Packed]:
    programs, data = programs_for(knobs), prepared.data
    if prepared.rows_at_once is not None:
        rows = max(1, prepared.rows_at_once // recipe.batch_size) * recipe.batch_size
        return _streamed(programs, state, data, knobs, recipe, rows, pulse)
    parts = parts_of(steps_per_epoch(data.x.shape[0], recipe.batch_size))
    if parts == 1:
        return programs.epoch(state, data, knobs, recipe=recipe)
    after, growth = state, _no_growth(knobs)
    for part in range(parts):
        after, growth = programs.descend(after, growth, data, knobs, jnp.asarray(part, jnp.int32), recipe=recipe, parts=parts)
        _call(pulse, growth, (part + 1) / parts)
    return programs.finish(state, after, growth, data, knobs, recipe=recipe)


def parts_of(steps: int) -> int:
    """Return in how many parts an epoch runs: as few as possible, or up to twice as many if these divide it evenly.

    >>> parts_of(500), parts_of(1563), parts_of(1301)
    (1, 3, 3)
    """
    fewest = -(-steps // STEPS_AT_ONCE)
    return next((parts for parts in range(fewest, 2 * fewest) if steps % parts == 0), fewest)


def settled(state: TrainState, prepared: Prepared, knobs: Knobs, recipe: Recipe) -> TrainState:
    """Return the state with the gates closed that are not worth their price, or exceed the budget."""
    knobs = knobs._replace(dev_weight=None, measured=None, dropout=None, passes=None)  # so that more runs share a program
    data = prepared.data
    if prepared.rows_at_once is None:
        block = Data(data.x, data.y, weight=data.weight)
    else:
        weight = _ones(data.weight, data.x)
        rows = _shuffled(state, weight, 1)[: 2 * n_rows(len(data.x))]
        block = Data(jax.device_put(data.x[rows]), jax.device_put(data.y[rows]), weight=jax.device_put(weight[rows]))
        knobs = knobs._replace(weight=_take(knobs.weight, rows))
    return programs_for(knobs).settle(state, block, knobs, recipe=recipe)


def _streamed(
    programs: Programs, state: TrainState, data: Data, knobs: Knobs, recipe: Recipe, rows: int, pulse: Pulse
) -> tuple[TrainState, Packed]:
    """Train on blocks of rows in random order, then measure block by block."""
    weight = _ones(data.weight, data.x)
    order = _shuffled(state, weight)
    after, growth, blocks = state, _no_growth(knobs), -(-len(order) // rows)
    zero, fold_in = jnp.zeros((), jnp.int32), jax.random.fold_in
    fold = jax.vmap(fold_in, in_axes=(0, None)) if jnp.ndim(state.key) else fold_in
    for index, (block, chosen) in enumerate(_blocks(data.x, data.y, weight, order, rows)):
        keyed = eqx.tree_at(lambda s: s.key, after, fold(state.key, index))
        block_knobs = knobs._replace(weight=_take(knobs.weight, chosen), dev_weight=None, measured=None)
        after, growth = programs.descend(keyed, growth, block, block_knobs, zero, recipe=recipe, parts=1)
        _call(pulse, growth, (index + 1) / blocks)
    after = programs.average(state, eqx.tree_at(lambda s: s.key, after, state.key), growth, recipe=recipe)

    def tally(x: Any, y: Any, weight: np.ndarray, member_weight: Any) -> tuple[Sums, jax.Array]:
        """Return the sums over a whole set, and the sizes of the layers over it."""
        parts = []
        for block, chosen in _blocks(x, y, weight, np.flatnonzero(weight), rows):
            counted = jnp.broadcast_to(jnp.asarray(block.weight), (*jnp.shape(knobs.penalty), rows))
            counted = counted if member_weight is None else counted * _take(member_weight, chosen)
            parts.append(programs.tally(after.measured, block.x, block.y, counted, recipe=recipe))
        total = jax.tree.map(lambda *sums: sum(sums[1:], start=sums[0]), *parts)
        return total[0], total[1] / total[0].weight[..., None]

    train, sizes = tally(data.x, data.y, weight, knobs.weight)
    dev = train
    if data.dev_x is not None and data.dev_y is not None:
        dev, sizes = tally(data.dev_x, data.dev_y, _ones(data.dev_weight, data.dev_x), knobs.dev_weight)
    elif knobs.dev_weight is not None:
        dev, sizes = tally(data.x, data.y, weight, knobs.dev_weight)
    as_measures = jax.vmap(measures_of) if jnp.ndim(knobs.penalty) else measures_of
    plain = knobs._replace(weight=None, dev_weight=None, measured=None)
    measures, has_dev = (as_measures(train._replace(tempered=None)), as_measures(dev)), dev is not train
    return programs.conclude(state, after, growth, *measures, sizes, plain, recipe=recipe, has_dev=has_dev)


def _blocks(x: Any, y: Any, weight: np.ndarray, order: np.ndarray, rows: int) -> Iterator[tuple[Data, np.ndarray]]:
    """Yield blocks on the device, the last padded with rows of weight 0, and which rows they are."""
    for start in range(0, len(order), rows):
        chosen = order[start : start + rows]
        block_weight = np.zeros(rows, weight.dtype)
        block_weight[: len(chosen)] = weight[chosen]
        chosen = np.concatenate([chosen, np.zeros(rows - len(chosen), chosen.dtype)])
        yield Data(jax.device_put(x[chosen]), jax.device_put(y[chosen]), weight=jax.device_put(block_weight)), chosen


def _ones(weight: Any, x: Any) -> np.ndarray:
    return np.ones(len(x), np.float32) if weight is None else np.asarray(weight)


def _shuffled(state: TrainState, weight: np.ndarray, *purpose: int) -> np.ndarray:
    """Return the rows of weight above 0 in an order drawn from the state's key."""
    seed = [*np.asarray(jax.random.key_data(state.key)).ravel()[:2].tolist(), int(np.max(state.epoch)), *purpose]
    return np.random.default_rng(seed).permutation(np.flatnonzero(weight))


def _take(weight: Any, rows: np.ndarray) -> Any:
    return None if weight is None else weight[..., rows]


def _no_growth(knobs: Knobs) -> Growth:
    return jax.tree.map(lambda a: jnp.zeros(jnp.shape(knobs.penalty), a.dtype), no_growth())


def _call(pulse: Pulse, growth: Growth, share: float) -> None:
    if pulse is not None:
        jax.block_until_ready(growth)
        pulse(share)
