"""One epoch of training as one pure function: what the device does.

    epoch(state, data, knobs, recipe) → (state, info)

A scan over shuffled minibatches (gradient of J, Adam, projection, growth), then the measures of the epoch, the plateau
schedule and the news whether this is the best model so far. `TrainState` must be carried; `EpochInfo` may be dropped.
`epoch` is `descend`, then `finish`; of a long epoch the host may ask for the steps in equal parts, and for the end by itself.
Everything that differs between the members of a population is an array (state, knobs); everything else is the `Recipe`.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from meristem.check import check_number, check_size, unknown
from meristem.complexity import hard_size, layer_sizes
from meristem.nn.budding import Budding
from meristem.nn.grow import grow
from meristem.nn.network import Network
from meristem.train import objective, optimizer, schedule
from meristem.train.batches import Batch, through
from meristem.train.measure import Measures, measure
from meristem.train.samples import Data, to_float

MEASURES = ["loss", "error", "macro_f1"]


@dataclass(frozen=True)
class Recipe:
    """The settings that shape the program; the defaults are the paper's for two spirals.

    objective       "binary" (y of 0 and 1), "multiclass" (y of 0 … n_out − 1), "multilabel" (y [n, n_out] of 0 and 1) or
                    "squared" (y [n, n_out] of numbers)
    batch_size      samples a step; 1 is online
    l2              the factor of ½ ‖W‖² over the weights that live, relative to the mean loss
    input_dropout   the share of inputs set to 0 in each step
    depth_decay     a layer's rate relative to the one before it
    watch           the development measure of the plateau schedule: "loss", "error" or, for "multilabel", "macro_f1"
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
            if getattr(self, name) == "macro_f1" and self.objective != "multilabel":
                raise ValueError(
                    f"{name}='macro_f1' needs objective='multilabel'; for {self.objective!r} choose loss or error."
                )
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
    l2: Float[Array, ""] | None = None  # None: the recipe's


class TrainState(eqx.Module):
    """All that an epoch needs from the one before it."""

    network: Network
    opt_state: PyTree
    key: PRNGKeyArray
    plateau: schedule.Plateau
    best: tuple[Float[Array, ""], Float[Array, ""]]  # the selection measure of the best epoch, and its loss
    epoch: Int[Array, ""]
    diverged: Bool[Array, ""]


class Growth(NamedTuple):
    """What happened to the structure in the steps of an epoch so far; all 0 where nothing buds."""

    opened: Int[Array, ""]
    closed: Int[Array, ""]
    waited: Int[Array, ""]  # openings that found no free place
    most_leaves: Int[Array, ""]  # at any step of the epoch


class EpochInfo(NamedTuple):
    """What happened in an epoch; measured after it, dropout off. The macro-F1 is None where there are no labels."""

    loss: Float[Array, ""]
    error: Float[Array, ""]
    macro_f1: Float[Array, ""] | None
    dev_loss: Float[Array, ""]
    dev_error: Float[Array, ""]
    dev_macro_f1: Float[Array, ""] | None
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
    return finish(state, *descend(state, still(), data, knobs, jnp.zeros((), jnp.int32), recipe, parts=1), data, recipe)


def still() -> Growth:
    """Nothing has grown yet."""
    return Growth(*(jnp.zeros((), jnp.int32) for _ in Growth._fields))


def descend(
    state: TrainState, growth: Growth, data: Data, knobs: Knobs, part: Int[Array, ""], recipe: Recipe, parts: int
) -> tuple[TrainState, Growth]:
    """The minibatch steps of one of the equal `parts` of an epoch."""
    rate = knobs.learning_rate * schedule.scale(state.plateau, recipe.scales)
    l2 = recipe.l2 if knobs.l2 is None else knobs.l2
    chain = optimizer.adam(recipe.depth_decay)
    grows = isinstance(state.network.body, Budding)

    def step(carry: PyTree, batch: Batch) -> PyTree:
        network, opt_state, growth = unpack(carry)
        x = to_float(batch.x)
        if recipe.input_dropout:
            kept = jax.random.bernoulli(batch.key, 1 - recipe.input_dropout, x.shape)
            x = jnp.where(kept, x / (1 - recipe.input_dropout), 0)
        grads = eqx.filter_grad(objective.total)(
            network, x, batch.y, kind=recipe.objective, penalty=knobs.penalty, l2=l2, weight=batch.weight
        )
        updates, opt_state = chain.update(grads, opt_state, network, learning_rate=rate)
        network = eqx.apply_updates(network, updates)
        if grows:
            network, opt_state, info = grow(network, opt_state, key=batch.key)
            growth = Growth(
                growth.opened + info.opened,
                growth.closed + info.closed,
                growth.waited + info.waited,
                jnp.maximum(growth.most_leaves, network.body.n_leaves),
            )
        after = pack((network, opt_state, growth))
        return after if batch.is_real is None else select(batch.is_real, after, carry)

    first = (state.network, state.opt_state, growth)
    pack, unpack = _rows_of(first)
    key = jax.random.fold_in(state.key, state.epoch)
    network, opt_state, growth = unpack(through(step, pack(first), data, recipe.batch_size, key, part, parts))
    return eqx.tree_at(lambda s: (s.network, s.opt_state), state, (network, opt_state)), growth


def finish(before: TrainState, state: TrainState, growth: Growth, data: Data, recipe: Recipe) -> tuple[TrainState, EpochInfo]:
    """The measures after the last step, and the end of the epoch; `before`: as it began."""
    network = state.network
    train, hidden = measure(network, data.x, data.y, recipe.objective, data.weight)
    dev, weight = train, data.weight
    if data.dev_x is not None and data.dev_y is not None:
        dev, hidden = measure(network, data.dev_x, data.dev_y, recipe.objective, data.dev_weight)
        weight = data.dev_weight
    return conclude(before, state, growth, train, dev, layer_sizes(network.body, hidden, weight), recipe)


def conclude(
    before: TrainState,
    state: TrainState,
    growth: Growth,
    train: Measures,
    dev: Measures,
    sizes: Float[Array, " layers"],
    recipe: Recipe,
) -> tuple[TrainState, EpochInfo]:
    """The schedule, and whether this is the best model."""
    stages, network = len(recipe.scales), state.network
    plateau = schedule.step(before.plateau, _cost(dev, recipe.watch), patience=recipe.patience, stages=stages)
    chosen, (best, best_loss) = _cost(dev, recipe.select), before.best
    better = (chosen < best) | ((chosen == best) & (dev.loss < best_loss))

    was_stopped = schedule.stopped(before.plateau, stages) | before.diverged
    healthy = jnp.isfinite(train.loss) & jnp.isfinite(dev.loss)
    improved = better & healthy & ~was_stopped
    after = TrainState(
        network=network,
        opt_state=state.opt_state,
        key=before.key,
        plateau=plateau,
        best=(jnp.where(improved, chosen, best), jnp.where(improved, dev.loss, best_loss)),
        epoch=before.epoch + 1,
        diverged=before.diverged,
    )
    after = select(was_stopped | ~healthy, before, after)
    after = eqx.tree_at(lambda s: s.diverged, after, before.diverged | (~healthy & ~was_stopped))
    info = EpochInfo(
        loss=train.loss,
        error=train.error,
        macro_f1=train.macro_f1,
        dev_loss=dev.loss,
        dev_error=dev.error,
        dev_macro_f1=dev.macro_f1,
        layer_sizes=sizes,
        hard_size=hard_size(network.body),
        stage=before.plateau.stage,
        improved=improved,
        stopped=schedule.stopped(after.plateau, stages) | after.diverged,
        diverged=after.diverged,
        **growth._asdict(),
    )
    return after, info


def _cost(measures: Measures, name: str) -> Float[Array, ""]:
    """A measure as something to make small."""
    value = getattr(measures, name)
    return -value if name == "macro_f1" else value


def select(first: Bool[Array, "*members"], one: PyTree, other: PyTree) -> PyTree:
    """`one` where `first`, else `other`; keys included. A [population] of flags chooses member by member."""

    def pick(a: Array, b: Array) -> Array:
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            return jax.random.wrap_key_data(pick(jax.random.key_data(a), jax.random.key_data(b)), impl=jax.random.key_impl(a))
        return jnp.where(first.reshape(first.shape + (1,) * (a.ndim - first.ndim)), a, b)

    return jax.tree.map(pick, one, other)


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
