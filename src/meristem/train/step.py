"""One epoch of training as one pure function: what the device does.

    epoch(state, data, knobs, recipe) → (state, info)

A scan over shuffled minibatches (gradient of J, Adam, projection, growth), then the measures of the epoch, the plateau
schedule and the news whether this is the best model so far. `TrainState` must be carried; `EpochInfo` may be dropped.
Everything that differs between the members of a population is an array (state, knobs); everything else is the `Recipe`.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, Num, PRNGKeyArray, PyTree

from meristem.check import check_number, check_size, unknown
from meristem.complexity import hard_size, layer_sizes
from meristem.nn.budding import Budding
from meristem.nn.growth import grow
from meristem.nn.network import Network
from meristem.train import objective, optimizer, schedule
from meristem.train.samples import Data

MEASURES = ["loss", "error"]
EVALUATION_ROWS = 2048  # measures of a large set are computed in pieces of this many samples


@dataclass(frozen=True)
class Recipe:
    """The settings that shape the program; the defaults are the paper's for two spirals.

    objective       "binary" (y of 0 and 1), "multiclass" (y of 0 … n_out − 1), "multilabel" (y [n, n_out] of 0 and 1) or
                    "squared" (y [n, n_out] of numbers)
    batch_size      samples a step; 1 is online
    l2              the factor of ½ ‖W‖² over the weights that live, relative to the mean loss
    input_dropout   the share of inputs set to 0 in each step
    depth_decay     a layer's rate relative to the one before it
    watch           the development measure of the plateau schedule, "loss" or "error"
    select          that of the best model; ties go to the lower loss
    patience        epochs without improvement after which the rate shrinks, at last the training ends
    scales          the factors of the rate, one after the other

    >>> Recipe(objective="multiclass", batch_size=32, input_dropout=0.25, watch="error").patience
    20
    """

    objective: str = "binary"
    batch_size: int = 1
    l2: float = 1e-5
    input_dropout: float = 0.0
    depth_decay: float = 0.75
    watch: str = "loss"
    select: str = "error"
    patience: int = 20
    scales: tuple[float, ...] = (1.0, 0.3, 0.1)

    def __post_init__(self) -> None:
        objective.objective(self.objective)
        for name in ("watch", "select"):
            if getattr(self, name) not in MEASURES:
                raise unknown(name, getattr(self, name), MEASURES)
        for name in ("batch_size", "patience"):
            check_size(name, getattr(self, name))
        check_number("input_dropout", self.input_dropout, "at least 0 and below 1", lambda v: 0 <= v < 1)
        check_number("depth_decay", self.depth_decay, "above 0 and at most 1", lambda v: 0 < v <= 1)
        check_number("l2", self.l2, "at least 0", lambda v: 0 <= v < math.inf)
        object.__setattr__(self, "scales", tuple(self.scales) if isinstance(self.scales, tuple | list) else (self.scales,))
        if not self.scales:
            raise ValueError("scales=() must hold at least one number: the factors of the rate, one after the other.")
        for value in self.scales:
            check_number("scales", value, "above 0", lambda v: 0 < v < math.inf)


class Knobs(NamedTuple):
    """What may differ between the members of a population."""

    learning_rate: Float[Array, ""]
    penalty: Float[Array, ""]


class TrainState(eqx.Module):
    """All that an epoch needs from the one before it."""

    network: Network
    opt_state: PyTree
    key: PRNGKeyArray
    plateau: schedule.Plateau
    best: tuple[Float[Array, ""], Float[Array, ""]]  # the selection measure of the best epoch, and its loss
    epoch: Int[Array, ""]
    diverged: Bool[Array, ""]


class EpochInfo(NamedTuple):
    """What happened in an epoch; measured after it, dropout off."""

    loss: Float[Array, ""]
    error: Float[Array, ""]
    dev_loss: Float[Array, ""]
    dev_error: Float[Array, ""]
    layer_sizes: Float[Array, " layers"]
    hard_size: Int[Array, ""]
    stage: Int[Array, ""]  # of the rate this epoch was trained with
    improved: Bool[Array, ""]  # the best model so far
    stopped: Bool[Array, ""]  # nothing will change any more
    diverged: Bool[Array, ""]  # the loss turned non-finite; the state is the one before this epoch
    opened: Int[Array, ""]
    closed: Int[Array, ""]
    waited: Int[Array, ""]  # openings that found no free place
    most_leaves: Int[Array, ""]  # at any step of the epoch


def start(network: Network, recipe: Recipe, *, key: PRNGKeyArray) -> TrainState:
    """The state before the first epoch."""
    inf = jnp.asarray(jnp.inf, jnp.result_type(float))
    return TrainState(
        network=network,
        opt_state=optimizer.adam(recipe.depth_decay).init(network),
        key=key,
        plateau=schedule.start(),
        best=(inf, inf),
        epoch=jnp.zeros((), jnp.int32),
        diverged=jnp.zeros((), bool),
    )


def epoch(state: TrainState, data: Data, knobs: Knobs, recipe: Recipe) -> tuple[TrainState, EpochInfo]:
    """One epoch later. A member that has stopped or diverges keeps its state."""
    stages = len(recipe.scales)
    rate = knobs.learning_rate * schedule.scale(state.plateau, recipe.scales)
    key = jax.random.fold_in(state.key, state.epoch)
    network, opt_state, growth = _descend(state.network, state.opt_state, data, rate, knobs.penalty, recipe, key)

    loss, error, hidden = _measure(network, data.x, data.y, recipe)
    dev_loss, dev_error, dev_hidden = loss, error, hidden
    if data.dev_x is not None and data.dev_y is not None:
        dev_loss, dev_error, dev_hidden = _measure(network, data.dev_x, data.dev_y, recipe)
    measures = {"loss": dev_loss, "error": dev_error}
    plateau = schedule.step(state.plateau, measures[recipe.watch], patience=recipe.patience, stages=stages)
    chosen, (best, best_loss) = measures[recipe.select], state.best
    better = (chosen < best) | ((chosen == best) & (dev_loss < best_loss))

    was_stopped = schedule.stopped(state.plateau, stages) | state.diverged
    healthy = jnp.isfinite(loss) & jnp.isfinite(dev_loss)
    improved = better & healthy & ~was_stopped
    after = TrainState(
        network=network,
        opt_state=opt_state,
        key=state.key,
        plateau=plateau,
        best=(jnp.where(improved, chosen, best), jnp.where(improved, dev_loss, best_loss)),
        epoch=state.epoch + 1,
        diverged=state.diverged,
    )
    after = select(was_stopped | ~healthy, state, after)
    after = eqx.tree_at(lambda s: s.diverged, after, state.diverged | (~healthy & ~was_stopped))
    info = EpochInfo(
        loss=loss,
        error=error,
        dev_loss=dev_loss,
        dev_error=dev_error,
        layer_sizes=layer_sizes(network.body, dev_hidden),
        hard_size=hard_size(network.body),
        stage=state.plateau.stage,
        improved=improved,
        stopped=schedule.stopped(after.plateau, stages) | after.diverged,
        diverged=after.diverged,
        **growth,
    )
    return after, info


def select(first: Bool[Array, "*members"], one: PyTree, other: PyTree) -> PyTree:
    """`one` where `first`, else `other`; keys included. A [population] of flags chooses member by member."""

    def pick(a: Array, b: Array) -> Array:
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            return jax.random.wrap_key_data(pick(jax.random.key_data(a), jax.random.key_data(b)), impl=jax.random.key_impl(a))
        return jnp.where(first.reshape(first.shape + (1,) * (a.ndim - first.ndim)), a, b)

    return jax.tree.map(pick, one, other)


def _descend(
    network: Network, opt_state: PyTree, data: Data, rate: Array, penalty: Array, recipe: Recipe, key: PRNGKeyArray
) -> tuple[Network, PyTree, dict[str, Array]]:
    """All minibatch steps of an epoch."""
    batches = _batches(data, recipe.batch_size, key)
    chain = optimizer.adam(recipe.depth_decay)
    grows = isinstance(network.body, Budding)
    zero = jnp.zeros((), jnp.int32)

    def step(carry: PyTree, batch: tuple[PRNGKeyArray, Array, Array, Array | None]) -> tuple[PyTree, None]:
        network, opt_state, (opened, closed, waited, most) = unpack(carry)
        key, x, y, weight = batch
        x = to_float(x)
        if recipe.input_dropout:
            kept = jax.random.bernoulli(key, 1 - recipe.input_dropout, x.shape)
            x = jnp.where(kept, x / (1 - recipe.input_dropout), 0)
        grads = eqx.filter_grad(objective.total)(
            network, x, y, kind=recipe.objective, penalty=penalty, l2=recipe.l2, weight=weight
        )
        updates, opt_state = chain.update(grads, opt_state, network, learning_rate=rate)
        network = eqx.apply_updates(network, updates)
        if grows:
            network, opt_state, info = grow(network, opt_state, key=key)
            opened, closed, waited = opened + info.opened, closed + info.closed, waited + info.waited
            most = jnp.maximum(most, network.body.n_leaves)
        return pack((network, opt_state, (opened, closed, waited, most))), None

    first = (network, opt_state, (zero, zero, zero, zero))
    pack, unpack = _rows_of(first)
    carry, _ = jax.lax.scan(step, pack(first), batches)
    network, opt_state, counts = unpack(carry)
    return network, opt_state, dict(zip(["opened", "closed", "waited", "most_leaves"], counts, strict=True))


def _rows_of(tree: PyTree) -> tuple[Any, Any]:
    """Views of a tree's stacks as [layers, rest] and back, for the loop's carry.

    The compiler makes loops of the carry's shape, and on CPU those over [10, 10, 10] take six times as long as [10, 100].
    """
    shapes = jax.tree.map(jnp.shape, tree, is_leaf=eqx.is_array)

    def pack(tree: PyTree) -> PyTree:
        return jax.tree.map(lambda a: a.reshape(a.shape[0], -1) if a.ndim > 2 else a, tree)

    def unpack(tree: PyTree) -> PyTree:
        return jax.tree.map(lambda a, shape: a.reshape(shape), tree, shapes)

    return pack, unpack


def _batches(data: Data, batch_size: int, key: PRNGKeyArray) -> tuple[Key[Array, " steps"], Array, Array, Array | None]:
    """A key and a shuffled minibatch for each step. A last one that is not full is filled up with samples of weight 0."""
    n = data.x.shape[0]
    size = min(batch_size, n)
    steps = -(-n // size)
    keys = jax.random.split(key, steps + 1)
    order = jax.random.permutation(keys[0], n)
    weight = None
    if steps * size != n:
        order = jnp.concatenate([order, jnp.zeros(steps * size - n, order.dtype)])
        real = (jnp.arange(steps * size) < n).reshape(steps, size).astype(jnp.result_type(float))
        weight = real / real.sum(1, keepdims=True)
    x, y = (a[order].reshape(steps, size, *a.shape[1:]) for a in (data.x, data.y))
    return keys[1:], x, y, weight


def to_float(x: Num[Array, "..."]) -> Float[Array, "..."]:
    """Inputs for the network; bytes stay bytes until here and are then scaled to [0, 1]."""
    dtype = jnp.result_type(float)
    return x.astype(dtype) / 255 if x.dtype == jnp.uint8 else x.astype(dtype)


def _measure(network: Network, x: Array, y: Array, recipe: Recipe) -> tuple[Array, Array, Array]:
    """Mean loss, mean error, and what reached the body [n, width]."""
    kind = objective.objective(recipe.objective)

    def one(sample: tuple[Array, Array]) -> tuple[Array, Array, Array]:
        hidden = network.embed(to_float(sample[0]))
        outputs = network.head(network.body(hidden))
        return kind.loss(outputs, sample[1]), kind.error(outputs, sample[1]), hidden

    if x.shape[0] <= EVALUATION_ROWS:
        loss, error, hidden = jax.vmap(one)((x, y))
    else:
        loss, error, hidden = jax.lax.map(one, (x, y), batch_size=EVALUATION_ROWS)
    return loss.mean(), error.mean(), hidden
