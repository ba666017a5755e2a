"""How the host asks for an epoch: as one program, in parts with a sign of life after each, or with the data in blocks.

    run_epoch(state, prepared, knobs, recipe, pulse) → state, packed info

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
from meristem.train.knobs import Knobs
from meristem.train.live import restore, shrink, what_is_open
from meristem.train.measure import Sums, measures_of
from meristem.train.packing import Packed
from meristem.train.programs import ALONE, TOGETHER, Programs
from meristem.train.recipe import Recipe
from meristem.train.samples import Data, Prepared
from meristem.train.settle import is_due, n_rows
from meristem.train.state import Growth, TrainState, no_growth

STEPS_AT_ONCE = 640  # an epoch of more steps is asked for in parts, so that a person sees it move

Pulse = Callable[[float], None] | None  # called with the share of the epoch's steps that is done


def run_epoch(
    state: TrainState, prepared: Prepared, knobs: Knobs, recipe: Recipe, pulse: Pulse = None
) -> tuple[TrainState, Packed]:
    """One epoch, of one network or of a population; the result is on the device."""
    if recipe.settle and (stage := int(np.max(state.plateau.stage))) >= 1:
        passes = 1 if knobs.passes is None else int(np.max(knobs.passes))
        steps, is_last = passes * steps_of(len(prepared.data.x), recipe.batch_size), stage >= len(recipe.scales) - 1
        if is_due(int(np.max(state.epoch)), steps, is_last, knobs):
            state = settled(state, prepared, knobs, recipe)
    live = what_is_open(state, knobs, recipe)
    if live is None:
        return _epoch(state, prepared, knobs, recipe, pulse)
    small, info = _epoch(shrink(state, live), prepared, knobs, recipe, pulse)
    return restore(state, small, live), info


def _epoch(state: TrainState, prepared: Prepared, knobs: Knobs, recipe: Recipe, pulse: Pulse) -> tuple[TrainState, Packed]:
    programs, data = programs_for(knobs), prepared.data
    if prepared.rows_at_once is not None:
        rows = max(1, prepared.rows_at_once // recipe.batch_size) * recipe.batch_size
        return _streamed(programs, state, data, knobs, recipe, rows, pulse)
    parts = parts_of(steps_of(data.x.shape[0], recipe.batch_size))
    if parts == 1:
        return programs.epoch(state, data, knobs, recipe=recipe)
    return _in_parts(programs, state, data, knobs, recipe, parts, pulse)


def settled(state: TrainState, prepared: Prepared, knobs: Knobs, recipe: Recipe) -> TrainState:
    """The state in which what is not worth its price, or above the budget, has closed."""
    return programs_for(knobs).settle(state, *_to_settle_by(prepared, knobs, state), recipe=recipe)


def _to_settle_by(prepared: Prepared, knobs: Knobs, state: TrainState) -> tuple[Data, Knobs]:
    """The data that decide what closes: all that are on the device, which takes some; of others, some."""
    data, plain = (
        prepared.data,
        knobs._replace(dev_weight=None, measured=None, dropout=None, passes=None),
    )  # what others share a program with
    if prepared.rows_at_once is None:
        return Data(data.x, data.y, weight=data.weight), plain
    weight = np.ones(len(data.x), np.float32) if data.weight is None else np.asarray(data.weight)
    seed = [*np.asarray(jax.random.key_data(state.key)).ravel()[:2].tolist(), int(np.max(state.epoch)), 1]
    rows = np.random.default_rng(seed).permutation(np.flatnonzero(weight))[: 2 * n_rows(len(data.x))]
    block = Data(jax.device_put(data.x[rows]), jax.device_put(data.y[rows]), weight=jax.device_put(weight[rows]))
    return block, plain._replace(weight=_at(knobs.weight, rows))


def programs_for(knobs: Knobs) -> Programs:
    """Those of a population, if the knobs have members."""
    return TOGETHER if jnp.ndim(knobs.penalty) else ALONE


def parts_of(steps: int) -> int:
    """In how many parts an epoch is asked for: as few as may be, or a few more if these divide it without a rest.

    >>> parts_of(500), parts_of(1563), parts_of(1301)
    (1, 3, 3)
    """
    fewest = -(-steps // STEPS_AT_ONCE)
    return next((parts for parts in range(fewest, 2 * fewest) if steps % parts == 0), fewest)


def _in_parts(
    programs: Programs, state: TrainState, data: Data, knobs: Knobs, recipe: Recipe, parts: int, pulse: Pulse
) -> tuple[TrainState, Packed]:
    after, growth = state, _no_growth(knobs)
    for part in range(parts):
        after, growth = programs.descend(after, growth, data, knobs, jnp.asarray(part, jnp.int32), recipe=recipe, parts=parts)
        _beat(pulse, growth, (part + 1) / parts)
    return programs.finish(state, after, growth, data, knobs, recipe=recipe)


def _streamed(
    programs: Programs, state: TrainState, data: Data, knobs: Knobs, recipe: Recipe, rows: int, pulse: Pulse
) -> tuple[TrainState, Packed]:
    """Blocks of rows in random order, then the measures block by block."""
    weight = np.ones(len(data.x), np.float32) if data.weight is None else np.asarray(data.weight)
    seed = [*np.asarray(jax.random.key_data(state.key)).ravel()[:2].tolist(), int(np.max(state.epoch))]
    order = np.random.default_rng(seed).permutation(np.flatnonzero(weight))
    after, growth, blocks = state, _no_growth(knobs), -(-len(order) // rows)
    zero = jnp.zeros((), jnp.int32)
    for index, (block, chosen) in enumerate(_blocks(data.x, data.y, weight, order, rows)):
        keyed = eqx.tree_at(lambda s: s.key, after, _folded(state.key, index))
        here = knobs._replace(weight=_at(knobs.weight, chosen), dev_weight=None, measured=None)
        after, growth = programs.descend(keyed, growth, block, here, zero, recipe=recipe, parts=1)
        _beat(pulse, growth, (index + 1) / blocks)
    after = programs.average(state, eqx.tree_at(lambda s: s.key, after, state.key), growth, recipe=recipe)
    train, sizes = _tally(programs, after, data.x, data.y, weight, knobs.weight, knobs, recipe, rows)
    dev = train
    if data.dev_x is not None and data.dev_y is not None:
        dev_weight = np.ones(len(data.dev_x), np.float32) if data.dev_weight is None else np.asarray(data.dev_weight)
        dev, sizes = _tally(programs, after, data.dev_x, data.dev_y, dev_weight, knobs.dev_weight, knobs, recipe, rows)
    elif knobs.dev_weight is not None:
        dev, sizes = _tally(programs, after, data.x, data.y, weight, knobs.dev_weight, knobs, recipe, rows)
    as_measures = jax.vmap(measures_of) if jnp.ndim(knobs.penalty) else measures_of
    plain = knobs._replace(weight=None, dev_weight=None, measured=None)
    measures, has_dev = (as_measures(train._replace(tempered=None)), as_measures(dev)), dev is not train
    return programs.conclude(state, after, growth, *measures, sizes, plain, recipe=recipe, has_dev=has_dev)


def _blocks(x: Any, y: Any, weight: np.ndarray, order: np.ndarray, rows: int) -> Iterator[tuple[Data, np.ndarray]]:
    """So many rows each, the last filled up with some of weight 0, on the device; and which rows they are."""
    for start in range(0, len(order), rows):
        chosen = order[start : start + rows]
        here = np.zeros(rows, weight.dtype)
        here[: len(chosen)] = weight[chosen]
        chosen = np.concatenate([chosen, np.zeros(rows - len(chosen), chosen.dtype)])
        yield Data(jax.device_put(x[chosen]), jax.device_put(y[chosen]), weight=jax.device_put(here)), chosen


def _tally(
    programs: Programs,
    state: TrainState,
    x: Any,
    y: Any,
    weight: np.ndarray,
    own: Any,
    knobs: Knobs,
    recipe: Recipe,
    rows: int,
) -> tuple[Sums, jax.Array]:
    """The sums over a whole set, and the layers' sizes over it; `own`: the weights of the members, or None."""
    parts = []
    for block, chosen in _blocks(x, y, weight, np.flatnonzero(weight), rows):
        counted = jnp.broadcast_to(jnp.asarray(block.weight), (*jnp.shape(knobs.penalty), rows))
        counted = counted if own is None else counted * _at(own, chosen)
        parts.append(programs.tally(state.measured, block.x, block.y, counted, recipe=recipe))
    total = jax.tree.map(lambda *sums: sum(sums[1:], start=sums[0]), *parts)
    return total[0], total[1] / total[0].weight[..., None]


def _at(weight: Any, rows: np.ndarray) -> Any:
    return None if weight is None else weight[..., rows]


def _folded(key: Any, index: int) -> Any:
    fold = jax.vmap(jax.random.fold_in, in_axes=(0, None)) if jnp.ndim(key) else jax.random.fold_in
    return fold(key, index)


def _no_growth(knobs: Knobs) -> Growth:
    return jax.tree.map(lambda a: jnp.zeros(jnp.shape(knobs.penalty), a.dtype), no_growth())


def _beat(pulse: Pulse, growth: Growth, share: float) -> None:
    if pulse is not None:
        jax.block_until_ready(growth)
        pulse(share)
