"""How the host asks for an epoch: as one program, in parts with a sign of life after each, or with the data in blocks.

    epochs(programs, data, recipe, rows_at_once) → run;  run(state, knobs, pulse) → state, info

Data that do not fit the device stay with the host, which shuffles them and sends a block of rows at a time, while the device
computes on the one before; inside a block it shuffles again. A block's weights are relative to the block's mean.
"""

from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meristem.train.batches import steps_of
from meristem.train.measure import Sums, measures_of
from meristem.train.programs import Programs
from meristem.train.samples import Data
from meristem.train.step import EpochInfo, Growth, Knobs, Recipe, TrainState, still

STEPS_AT_ONCE = 640  # an epoch of more steps is asked for in parts, so that a person sees it move
SHARE_OF_MEMORY = 0.5  # data that need more of the device's memory stay with the host

Pulse = Callable[[float], None] | None
Run = Callable[[TrainState, Knobs, Pulse], tuple[TrainState, EpochInfo]]


def rows_that_fit(data: Data, limit: int | None = None) -> int | None:
    """How many rows may be on the device at a time; None: all of them. `limit`: its memory in bytes, if not as it says."""
    if limit is None:
        limit = (jax.local_devices()[0].memory_stats() or {}).get("bytes_limit")
    whole = sum(a.nbytes for a in data if a is not None)
    if limit is None or whole <= SHARE_OF_MEMORY * limit:
        return None
    row = whole / (len(data.x) + (0 if data.dev_x is None else len(data.dev_x)))
    return max(1, int(SHARE_OF_MEMORY / 4 * limit / row))  # two blocks, and the room to shuffle them


def epochs(programs: Programs, data: Data, recipe: Recipe, rows_at_once: int | None) -> Run:
    """What runs an epoch on these data."""
    if rows_at_once is not None and rows_at_once < len(data.x):
        rows = max(1, rows_at_once // recipe.batch_size) * recipe.batch_size
        return lambda state, knobs, pulse: _streamed(programs, state, data, knobs, recipe, rows, pulse)
    data = jax.device_put(data)  # compiles nothing, unlike jnp.asarray
    parts = parts_of(steps_of(data.x.shape[0], recipe.batch_size))
    if parts == 1:
        return lambda state, knobs, pulse: programs.epoch(state, data, knobs, recipe=recipe)
    return lambda state, knobs, pulse: _in_parts(programs, state, data, knobs, recipe, parts, pulse)


def parts_of(steps: int) -> int:
    """In how many parts an epoch is asked for: as few as may be, or a few more if these divide it without a rest.

    >>> parts_of(500), parts_of(1563), parts_of(1301)
    (1, 3, 3)
    """
    fewest = -(-steps // STEPS_AT_ONCE)
    return next((parts for parts in range(fewest, 2 * fewest) if steps % parts == 0), fewest)


def _in_parts(
    programs: Programs, state: TrainState, data: Data, knobs: Knobs, recipe: Recipe, parts: int, pulse: Pulse
) -> tuple[TrainState, EpochInfo]:
    after, growth = state, _still(knobs)
    for part in range(parts):
        after, growth = programs.descend(after, growth, data, knobs, jnp.asarray(part, jnp.int32), recipe=recipe, parts=parts)
        _beat(pulse, growth, (part + 1) / parts)
    return programs.finish(state, after, growth, data, recipe=recipe)


def _streamed(
    programs: Programs, state: TrainState, data: Data, knobs: Knobs, recipe: Recipe, rows: int, pulse: Pulse
) -> tuple[TrainState, EpochInfo]:
    """Blocks of rows in random order, then the measures block by block."""
    weight = np.ones(len(data.x), np.float32) if data.weight is None else np.asarray(data.weight)
    seed = [*np.asarray(jax.random.key_data(state.key)).ravel()[:2].tolist(), int(np.max(state.epoch))]
    order = np.random.default_rng(seed).permutation(np.flatnonzero(weight))
    after, growth, blocks = state, _still(knobs), -(-len(order) // rows)
    zero = jnp.zeros((), jnp.int32)
    for index, block in enumerate(_blocks(data.x, data.y, weight, order, rows)):
        keyed = eqx.tree_at(lambda s: s.key, after, _folded(state.key, index))
        after, growth = programs.descend(keyed, growth, block, knobs, zero, recipe=recipe, parts=1)
        _beat(pulse, growth, (index + 1) / blocks)
    train, sizes = _tally(programs, after, data.x, data.y, weight, recipe, rows)
    dev = train
    if data.dev_x is not None and data.dev_y is not None:
        dev_weight = np.ones(len(data.dev_x), np.float32) if data.dev_weight is None else np.asarray(data.dev_weight)
        dev, sizes = _tally(programs, after, data.dev_x, data.dev_y, dev_weight, recipe, rows)
    as_measures = jax.vmap(measures_of) if jnp.ndim(knobs.penalty) else measures_of
    return programs.conclude(state, after, growth, as_measures(train), as_measures(dev), sizes, recipe=recipe)


def _blocks(x: Any, y: Any, weight: np.ndarray, order: np.ndarray, rows: int) -> Iterator[Data]:
    """So many rows each, the last filled up with some of weight 0; on the device."""
    for start in range(0, len(order), rows):
        chosen = order[start : start + rows]
        here = np.zeros(rows, weight.dtype)
        here[: len(chosen)] = weight[chosen]
        chosen = np.concatenate([chosen, np.zeros(rows - len(chosen), chosen.dtype)])
        yield Data(jax.device_put(x[chosen]), jax.device_put(y[chosen]), weight=jax.device_put(here))


def _tally(
    programs: Programs, state: TrainState, x: Any, y: Any, weight: np.ndarray, recipe: Recipe, rows: int
) -> tuple[Sums, jax.Array]:
    """The sums over a whole set, and the layers' sizes over it."""
    parts = [
        programs.tally(state.network, block.x, block.y, block.weight, recipe=recipe)
        for block in _blocks(x, y, weight, np.flatnonzero(weight), rows)
    ]
    total = jax.tree.map(lambda *sums: sum(sums[1:], start=sums[0]), *parts)
    return total[0], total[1] / total[0].weight[..., None]


def _folded(key: Any, index: int) -> Any:
    fold = jax.vmap(jax.random.fold_in, in_axes=(0, None)) if jnp.ndim(key) else jax.random.fold_in
    return fold(key, index)


def _still(knobs: Knobs) -> Growth:
    return jax.tree.map(lambda a: jnp.zeros(jnp.shape(knobs.penalty), a.dtype), still())


def _beat(pulse: Pulse, growth: Growth, share: float) -> None:
    if pulse is not None:
        jax.block_until_ready(growth)
        pulse(share)
