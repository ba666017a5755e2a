"""One epoch of training as one pure function on the device, and one step of it: the gradient of the cost J on a minibatch.

    J = mean_x E(x) + penalty · price + l2 · ½ ‖W‖²         (equations 2 and 5)

E is the objective's loss. The price is the paper's ("units": Σ g, Σ 1 − γ, and the gates of trunk and inputs if there are any),
or the stored or computed numbers ("parameters", "multiply-adds", complexity.py): each gate then pays for what closing it would
save. `penalty` is relative to the mean loss, independent of the batch size (the paper's λ is relative to the sum: λ / batch).

`epoch` is `descend` (a loop over shuffled minibatches, or equal parts of it), then `finish` (measures, plateau schedule, is
this the best model so far?). The members of a population differ in arrays (state, knobs), and share the `Recipe`.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Num, PRNGKeyArray, PyTree

from meristem.complexity import body_sizes, hard_size, soft_cost
from meristem.gate import fully_open, hold
from meristem.nn.axes import MAP, has_positions, tree_map
from meristem.nn.batch_norm import BATCH
from meristem.nn.body import Body, GrowthInfo
from meristem.nn.model_growth import after_update
from meristem.nn.network import Network, UsedEnds
from meristem.train.augmentation import augmented
from meristem.train.hyperparameters import MEASURES, Knobs, Recipe
from meristem.train.loop_carry import as_rows
from meristem.train.metrics import Measures, measures_of, sum_up
from meristem.train.mixup import Mixed, mix
from meristem.train.precision import in_precision
from meristem.train.schedules import PLATEAU, stage_at
from meristem.train.settle import hard_cost, total_price
from meristem.train.smoothing import smoothed
from meristem.train.train_state import TOLERANCE, EpochInfo, Growth, Plateau, TrainState, no_growth, select
from meristem.train.training_data import Data, product, to_float

LEAST_GAIN = 1e-3  # of J_hard, for an improvement while gates close
KEY_STRIDE = 2**20  # epochs: between the random keys of the passes of one epoch
AUGMENT, MIXUP = 2**20, 2**20 + 1  # what else a step's key is for


class Batch(NamedTuple):
    """The minibatch of a step, or stacked, [steps, …], those of an epoch."""

    key: PRNGKeyArray
    x: Array
    y: Array
    weight: Array | None = None  # [batch], sums to 1 (weighted data: on average); None: all alike
    is_real: Array | None = None  # whether the step counts; None: all do


def step(state: TrainState, batch: Batch, knobs: Knobs, recipe: Recipe) -> tuple[TrainState, GrowthInfo]:
    """Return the state after one minibatch, with another network and optimizer state. For one network; `vmap` for many.

    >>> from meristem.train.train_state import start
    >>> recipe = Recipe(batch_size=4)
    >>> network = Network.create("tunnel", 2, 1, width=3, depth=2, key=jax.random.key(0))
    >>> batch = Batch(jax.random.key(2), jnp.ones((4, 2)), jnp.ones(4))
    >>> state, info = eqx.filter_jit(step)(start(network, jax.random.key(1), recipe), batch, Knobs(1e-3, 1e-3), recipe)
    >>> state.network.body.gate.value.shape, int(info.opened)
    ((2, 3), 0)
    """
    network, opt_state, info = updater(state, knobs, recipe)(state.network, state.opt_state, batch)
    return replace(state, network=network, opt_state=opt_state), info


def updater(
    state: TrainState, knobs: Knobs, recipe: Recipe
) -> Callable[[Network, PyTree, Batch], tuple[Network, PyTree, GrowthInfo]]:
    """Return what a step does to a network and its optimizer state; rate and stage are the state's, all epoch long."""
    plateau, rate = state.plateau, state.rate(knobs, recipe)
    used_ends = None if recipe.price == "units" else state.network.used_ends()  # in each step it would read all weights
    stays_closed = plateau.is_last(len(recipe.scales)) if knobs.budget is None else plateau.has_dropped

    def update(network: Network, opt_state: PyTree, batch: Batch) -> tuple[Network, PyTree, GrowthInfo]:
        images, mixed = batch.x, None
        if recipe.augment:
            images = augmented(jax.random.fold_in(batch.key, AUGMENT), images, recipe.augment)
        x = to_float(images)
        if recipe.mixup:
            x, mixed = mix(jax.random.fold_in(batch.key, MIXUP), x, batch.y, batch.weight, recipe.mixup)
        if knobs.dropout is not None:
            keep = 1 - knobs.dropout
            x = jnp.where(jax.random.bernoulli(batch.key, keep, x.shape), x * (1 / keep), 0)
        grads = eqx.filter_grad(cost)(network, x, batch.y, knobs, recipe, batch.weight, mixed, used_ends)
        updates, opt_state = recipe.chain.update(grads, opt_state, network, learning_rate=rate)
        updated = eqx.apply_updates(network, updates)
        if recipe.settle:
            updated = hold(network, updated, stays_closed)
        return after_update(updated, opt_state, batch.key)

    return update


def cost(
    network: Network,
    x: Float[Array, "batch in ..."],
    y: Num[Array, "batch ..."],
    knobs: Knobs,
    recipe: Recipe,
    weight: Float[Array, " batch"] | None = None,
    mixed: Mixed | None = None,
    used_ends: UsedEnds | None = None,
) -> Float[Array, ""]:
    """Return J over a batch; `weight` sums to 1, None is the plain mean."""
    # The price of most bodies does not depend on the sample; where it does (highway), J has its mean.
    outputs, units = in_precision(recipe.precision, over_batch, network, x)
    loss = jax.vmap(smoothed(recipe.task, recipe.smoothing))
    each = loss(outputs, y)
    if mixed is not None:
        each = mixed.share * each + (1 - mixed.share) * loss(outputs, mixed.y)
    if recipe.price == "units":
        each = each + knobs.penalty * units
    mean = each.mean() if weight is None else (weight * each).sum()
    if recipe.price != "units":
        mean = mean + knobs.penalty * soft_cost(network, recipe.price, used_ends)
    return mean + knobs.l2 * network.half_norm()


def over_batch(
    network: Network, x: Float[Array, "batch in ..."], with_copies: bool | None = None
) -> tuple[Float[Array, "batch out"], Float[Array, " batch"]]:
    """Return jax.vmap(network.priced)(x), on a GPU with a copy of the body's vectors for every sample; matrices are shared.

    The gradient of a tunnel's biases and gates is a sum over the batch, layer by layer, and on a GPU each costs a launch. With
    copies they are summed once for all layers: on an H200 a step of the 10 × 100 network takes 125 instead of 136 µs. On a CPU
    the copies cost a tenth; in trees and highway networks they gain nothing. A convolution multiplies its gates into a kernel,
    which must stay one for all samples.
    """
    declared = network.body.axes()
    if with_copies is None:
        has_gated_layers = any((axis := declared.axis(name)).closable and axis.per is not None for name in declared.sizes)
        with_copies = jax.default_backend() != "cpu" and has_gated_layers and not has_positions(declared)
    if not with_copies:
        return jax.vmap(network.priced, axis_name=BATCH)(x)
    is_vector = tree_map(lambda entry, leaf: entry.role != MAP and leaf.ndim == 2, declared, network.body)
    vectors, matrices = eqx.partition(network.body, is_vector)
    copies = jax.tree.map(lambda a: jnp.broadcast_to(a, (x.shape[0], *a.shape)), vectors)

    def priced(own: Body, sample: Float[Array, "in ..."]) -> tuple[Float[Array, " out"], Float[Array, ""]]:
        return eqx.tree_at(lambda n: n.body, network, eqx.combine(own, matrices)).priced(sample)

    return jax.vmap(priced, axis_name=BATCH)(copies, x)


def epoch(state: TrainState, data: Data, knobs: Knobs, recipe: Recipe) -> tuple[TrainState, EpochInfo]:
    """Return the state and the record of an epoch; a member that has stopped or diverges keeps its state."""
    after, growth = descend(state, no_growth(), data, knobs, jnp.zeros((), jnp.int32), recipe, parts=1)
    return finish(state, after, growth, data, knobs, recipe)


def descend(
    state: TrainState, growth: Growth, data: Data, knobs: Knobs, part: Int[Array, ""], recipe: Recipe, parts: int
) -> tuple[TrainState, Growth]:
    """Take the minibatch steps of one of the equal `parts` of an epoch."""
    update = updater(state, knobs, recipe)
    grows = state.network.capacity > 0  # if not, nothing is counted: on a GPU every small operation costs a launch
    first = (state.network, state.opt_state, growth, None if recipe.average is None else state.average)
    pack, unpack = as_rows(first)
    weighted = data._replace(weight=product(data.weight, knobs.weight))

    def take_step(carry: PyTree, batch: Batch) -> PyTree:
        network, opt_state, growth, average = unpack(carry)
        network, opt_state, info = update(network, opt_state, batch)
        if grows:
            counts = (growth.opened + info.opened, growth.closed + info.closed, growth.waited + info.waited)
            growth = Growth(*counts, jnp.maximum(growth.most_leaves, network.in_use()))
        if average is not None:
            average = average.after_step(network, info.opened + info.closed > 0, recipe.average)
        after = pack((network, opt_state, growth, average))
        return after if batch.is_real is None else select(batch.is_real, after, carry)

    def over_all_rows(number: Any, carry: PyTree) -> PyTree:
        key = jax.random.fold_in(state.key, state.epoch + number * KEY_STRIDE)
        return scan_batches(take_step, carry, weighted, recipe.batch_size, key, part, parts)

    carry = pack(first)
    if knobs.passes is None:
        carry = over_all_rows(0, carry)
    else:  # counted in the type of `passes`: a plain 0 would be of 64 bits where JAX has these
        passes = jnp.asarray(knobs.passes)
        carry = jax.lax.fori_loop(jnp.zeros((), passes.dtype), passes, over_all_rows, carry)
    network, opt_state, growth, average = unpack(carry)
    average = state.average if recipe.average is None else average
    return replace(state, network=network, opt_state=opt_state, average=average), growth


def steps_per_epoch(n: int, batch_size: int) -> int:
    return -(-n // min(batch_size, n))


def scan_batches(
    step: Callable[..., PyTree], carry: PyTree, data: Data, batch_size: int, key: PRNGKeyArray, part: Int[Array, ""], parts: int
) -> PyTree:
    """Return the carry after step(carry, batch) for each batch of the part.

    Without weights the number of steps is static, and the loop is a `scan`. With weights only samples of weight above 0 count,
    and their number is data: the loop takes as many steps as they need, so that data sets padded to one length share a program,
    and padding costs nothing.
    """
    n = data.x.shape[0]
    size, steps = min(batch_size, n), steps_per_epoch(n, batch_size)
    length = -(-steps // parts)
    if data.weight is None:
        batches = _batches(data, size, key, part, parts, length)
        return jax.lax.scan(lambda carry, batch: (step(carry, batch), None), carry, batches)[0]
    # Samples of weight above 0 in random order, the others out of reach.
    x, y, weight = (jnp.asarray(a) for a in (data.x, data.y, data.weight))
    keys = jax.random.split(key, steps + 1)
    order = jnp.argsort(jnp.where(weight > 0, jax.random.uniform(keys[0], (n,)), 2.0))
    n_real = (weight > 0).sum(dtype=jnp.int32)
    order = order[jnp.arange(steps * size) % n_real]  # the last batch is filled up with rows of the first, of weight 0
    share = weight / (weight.sum() / n_real)  # 1 on average

    def weighted_step(i: Any, carry: PyTree) -> PyTree:
        rows = jax.lax.dynamic_slice_in_dim(order, i * size, size)
        is_real = i * size + jnp.arange(size) < n_real
        count = jnp.maximum(is_real.sum(), 1).astype(share.dtype)
        return step(carry, Batch(keys[1:][i], x[rows], y[rows], jnp.where(is_real, share[rows], 0) / count))

    first = part * length
    return jax.lax.fori_loop(first, jnp.minimum(first + length, -(-n_real // size)), weighted_step, carry)


def _batches(data: Data, size: int, key: PRNGKeyArray, part: Int[Array, ""], parts: int, length: int) -> Batch:
    """Return the `length` batches of a part; the last batch is filled up with samples of weight 0, the last part with steps."""
    n, padded = data.x.shape[0], parts * length * size
    keys = jax.random.split(key, parts * length + 1)
    order = jax.random.permutation(keys[0], n)
    weight = is_real = None
    if padded != n:
        order = jnp.resize(order, (padded,))  # not copies of one: statistics of a batch count them, too
        real = (jnp.arange(padded) < n).reshape(-1, size).astype(jnp.result_type(float))
        weight = real / jnp.maximum(real.sum(1, keepdims=True), 1)
        is_real = real.any(1) if padded - n >= size else None
    keys, order, weight, is_real = jax.tree.map(
        lambda a: a if parts == 1 else jax.lax.dynamic_slice_in_dim(a, part * length, length),
        (keys[1:], order.reshape(-1, size), weight, is_real),
    )
    return Batch(keys, data.x[order], data.y[order], weight, is_real)


def finish(
    before: TrainState, state: TrainState, growth: Growth, data: Data, knobs: Knobs, recipe: Recipe
) -> tuple[TrainState, EpochInfo]:
    """Measure the network after the last step and end the epoch; `before` is the state at its beginning."""
    state = with_average(before, state, growth, recipe)
    network, measured = state.measured, []
    for number, (x, y, *weights) in enumerate(measured_sets(data, knobs)):
        weight = product(*weights)
        if knobs.measured is not None and data.dev_x is None:
            x, y, weight = (None if a is None else jnp.asarray(a)[knobs.measured[number]] for a in (x, y, weight))
        sums, hidden = sum_up(network, x, y, recipe, weight, calibrated=recipe.calibrate and number == 1)
        measured.append(measures_of(sums))
    sizes = body_sizes(network.body, hidden, weight)
    return conclude(before, state, growth, (measured, sizes), knobs, recipe)


def measured_sets(data: Data, knobs: Knobs) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Yield (x, y, weight of the data, weight of the knobs) of the training set and, if there is one, the development set."""
    yield data.x, data.y, data.weight, knobs.weight
    if data.dev_x is not None:
        yield data.dev_x, data.dev_y, data.dev_weight, knobs.dev_weight
    elif knobs.dev_weight is not None:
        yield data.x, data.y, data.weight, knobs.dev_weight


def with_average(before: TrainState, state: TrainState, growth: Growth, recipe: Recipe) -> TrainState:
    """Return the state after the last step with the new average; `before` is the state at the beginning of the epoch."""
    if state.average is None or recipe.average is not None:
        return state
    is_last, moved = before.plateau.is_last(len(recipe.scales)), growth.opened + growth.closed > 0
    return replace(state, average=state.average.after(state.network, is_last, moved))


def conclude(
    before: TrainState, state: TrainState, growth: Growth, measured: tuple[Any, Any], knobs: Knobs, recipe: Recipe
) -> tuple[TrainState, EpochInfo]:
    """Advance the schedule, and decide whether this is the best model, given the measures of the sets and the layers' sizes."""
    (train, *others), sizes = measured
    dev = others[0] if others else train
    stages, network = len(recipe.scales), state.measured
    plateau = _next_plateau(before, dev, network, knobs, recipe)
    chosen, (best, best_loss) = _to_minimize(dev, recipe.select), before.best
    if dev.price is not None:  # J, of which the measure so far is E
        price = dev.price if recipe.price == "units" else soft_cost(network, recipe.price)
        chosen = chosen + knobs.penalty * price + knobs.l2 * network.half_norm()
    better = (chosen < best) | ((chosen == best) & (dev.loss < best_loss))
    if recipe.settle and not others:  # without a development set the best model is the last
        better = better | before.plateau.is_last(stages)

    was_stopped = before.plateau.is_stopped(stages) | before.diverged
    healthy = jnp.isfinite(train.loss) & jnp.isfinite(dev.loss)
    improved = better & healthy & ~was_stopped
    best, best_loss = jnp.where(improved, chosen, best), jnp.where(improved, dev.loss, best_loss)
    if recipe.settle:  # models before the last stage had not settled: the search restarts there
        begins = plateau.is_last(stages) & ~before.plateau.is_last(stages)
        best, best_loss = jnp.where(begins, jnp.inf, best), jnp.where(begins, jnp.inf, best_loss)
    after = replace(state, plateau=plateau, best=(best, best_loss), epoch=before.epoch + 1)
    keeps_state = was_stopped | ~healthy
    if jax.default_backend() == "cpu":  # compiles faster than a select of every array; on a GPU a branch takes 30 ms an epoch
        after = jax.lax.cond(keeps_state, lambda: before, lambda: after)
    else:
        after = select(keeps_state, before, after)
    after = replace(after, diverged=before.diverged | (~healthy & ~was_stopped))
    info = EpochInfo(
        epoch=before.epoch + ~was_stopped,
        rate=before.rate(knobs, recipe),
        **{name: getattr(train, name) for name in MEASURES},
        **{f"dev_{name}": getattr(dev, name) for name in MEASURES},
        layer_sizes=sizes,
        hard_size=hard_size(network.body),
        stage=before.plateau.stage,
        improved=improved,
        stopped=after.plateau.is_stopped(stages) | after.diverged,
        diverged=after.diverged,
        **growth._asdict(),
        temperature=dev.temperature,
        hard_cost=None if recipe.price == "units" else hard_cost(network, recipe),
    )
    return after, info


def _next_plateau(before: TrainState, dev: Measures, network: Network, knobs: Knobs, recipe: Recipe) -> Plateau:
    """Return the schedule after an epoch; while gates close it watches J_hard."""
    watched, stages, plateau = _to_minimize(dev, recipe.watch), len(recipe.scales), before.plateau
    if recipe.schedule != PLATEAU:
        stage = jnp.maximum(plateau.stage, stage_at((before.epoch + 1) / jnp.asarray(knobs.epochs), stages))
        return Plateau(jnp.minimum(plateau.best, watched), jnp.zeros_like(plateau.since), stage)
    patience = recipe.patience if knobs.patience is None else jnp.asarray(knobs.patience)
    if not recipe.settle:
        return plateau.after(watched, patience=patience, stages=stages)
    closes = plateau.has_dropped
    patience = patience if recipe.linger == 1 else jnp.where(closes, recipe.linger * patience, patience)
    watched = jnp.where(closes, dev.loss + knobs.penalty * total_price(fully_open(network), recipe), watched)
    least = jnp.where(closes & jnp.isfinite(plateau.best), LEAST_GAIN * jnp.abs(plateau.best), TOLERANCE)
    after = plateau.after(watched, patience=patience, stages=stages, tolerance=least)
    if knobs.budget is not None:  # no stage ends while gates close for the budget
        is_above = hard_cost(network, recipe) > knobs.budget
        after = select(closes & is_above, plateau._replace(since=jnp.zeros_like(plateau.since)), after)
    return after._replace(best=jnp.where(after.has_dropped & ~closes, jnp.inf, after.best))


def _to_minimize(measures: Measures, name: str) -> Float[Array, ""]:
    value = measures.loss if name == "cost" else getattr(measures, name)
    return -value if name == "macro_f1" else value
