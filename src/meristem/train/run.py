"""A training as a value: all that it needs to continue, with its best model and its history.

    run = begin(network, recipe, knobs, key)
    run, info = advance(run, data)              one epoch later; the old run is unchanged

It is one network, or a population: every array with a leading axis of members, each with its own rate, penalty, schedule and
structure. Only `run.state` enters the compiled epoch; the host adds the best model, the history and the capacity. A saved run
(`meristem.save`) continues to the same bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from meristem.check import as_key, check_size
from meristem.nn.model_growth import resize
from meristem.nn.network import Network
from meristem.train.hyperparameters import Knobs, Recipe, check_knobs, check_rows, check_samples
from meristem.train.live_size import adapt_capacity, keep_best, with_capacity, with_equal_capacity
from meristem.train.programs import Pulse, run_epoch, settled, start, unpack
from meristem.train.settle import FIRST_PRICE, check_budget, hard_cost, next_penalty
from meristem.train.train_state import EpochInfo, Plateau, TrainState, fit_to_recipe
from meristem.train.training_data import prepare

MAX_CAPACITY = 16
EVENTS = ["improved", "opened", "closed", "waited"]  # histories that are 0 after a member has stopped
History = dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Run:
    """A training after some epochs.

    best, last      the network of the best epoch (lowest selection measure) and of the last one
    best_epoch      counted from 1; 0 if no epoch was finite. Of a population [members], as the next two
    epochs          how many were trained until the member stopped
    diverged        whether the loss turned non-finite
    history         name → [epochs], for a population [epochs, members]: loss, error, dev_loss, dev_error, for labels macro_f1
                    and dev_macro_f1, soft_size, layer_sizes [epochs, layers], hard_size, rate, stage (learning-rate drops so
                    far), improved (best so far), stopped, diverged, opened, closed, waited (openings without a place),
                    most_leaves. A member that has stopped keeps its last values
    state           what the next epoch starts from
    recipe, knobs   how it is trained
    """

    state: TrainState
    best: Network
    best_epoch: np.ndarray
    knobs: Knobs
    recipe: Recipe
    least_capacity: int
    max_capacity: int
    begun_at: np.ndarray  # the epochs of the state when this run began; 0 unless it is that of an earlier run
    capacities: tuple[tuple[int, int], ...] = ()  # of each member's last and best network, if trained alone
    past: History = field(default_factory=dict, repr=False)  # the history of earlier epochs
    infos: tuple[EpochInfo, ...] = field(default=(), repr=False)  # of later epochs

    @property
    def last(self) -> Network:
        return self.state.measured

    @property
    def members(self) -> tuple[int, ...]:
        """() for one network, else (members,)."""
        return jnp.shape(self.knobs.penalty)

    @property
    def temperature(self) -> np.ndarray:
        """The temperature of the best network's logits; 1 if the recipe does not calibrate."""
        if "temperature" not in self.history:
            return np.ones(self.members)
        at = np.maximum(self.best_epoch, 1) - 1
        return np.asarray(np.take_along_axis(self.history["temperature"], at[None], 0)[0])

    @property
    def patience(self) -> int:
        """The longest patience of a member."""
        return self.recipe.patience if self.knobs.patience is None else int(np.asarray(self.knobs.patience).max())

    @property
    def epochs(self) -> np.ndarray:
        # The epoch in which the loss turned non-finite left the state as it was.
        return np.asarray(np.asarray(self.state.epoch) - self.begun_at + self.diverged)

    @property
    def diverged(self) -> np.ndarray:
        return np.asarray(self.state.diverged)

    @property
    def stopped(self) -> np.ndarray:
        """Whether training has ended, for each member."""
        return np.asarray((np.asarray(self.state.plateau.stage) >= len(self.recipe.scales)) | self.diverged)

    @cached_property
    def history(self) -> History:
        if not self.infos:
            return self.past
        all_epochs = {name: self.recorded(name) for name in dict(self.infos[0]) if name != "epoch"}
        if not self.members:
            return all_epochs
        stopped, n_past = all_epochs["stopped"], len(all_epochs["stopped"]) - len(self.infos)
        ran = ~np.concatenate([np.zeros((1, *self.members), bool), stopped])[n_past:-1]  # [infos, members]
        columns = []
        for m, began in enumerate((self.epochs - ran.sum(0)).tolist()):
            rows = [*range(began), *(n_past + np.flatnonzero(ran[:, m]))]
            columns.append({name: values[rows, m] for name, values in all_epochs.items()})
        return _side_by_side(columns)

    def recorded(self, name: str) -> np.ndarray:
        """Return one measure of all epochs; those in which it was not measured, as with other data, have NaN."""
        if not self.infos:
            return self.past[name]
        new = np.stack([np.asarray(getattr(info, name)) for info in self.infos])
        past = self.past.get(name, np.full_like(self.past["loss"], np.nan)) if self.past else new[:0]
        return np.concatenate([past, new])

    def member(self, member: int) -> "Run":
        """Return one member of a population, its history cut where it stopped."""
        state, best, knobs = jax.tree.map(lambda leaf: _row(leaf, member), (self.state, self.best, self.knobs))
        best_epoch, begun_at = np.asarray(self.best_epoch[member]), np.asarray(self.begun_at[member])
        if self.capacities:  # as before it was stacked: the same program, the same bits
            of_last, of_best = self.capacities[member]
            state, best = with_capacity(state, of_last), resize(best, None, of_best)[0]
        past = {name: values[: int(self.epochs[member]), member] for name, values in self.history.items()}
        return Run(state, best, best_epoch, knobs, self.recipe, self.least_capacity, self.max_capacity, begun_at, past=past)

    def each(self) -> "list[Run]":
        """Return all members; of a single network, itself."""
        return [self.member(m) for m in range(self.members[0])] if self.members else [self]


def begin(network: Network, recipe: Recipe, knobs: Knobs, key: Any, *, max_capacity: int = MAX_CAPACITY) -> Run:
    """Return the run before its first epoch.

    For a population, the networks have a leading axis of members (`jax.vmap` of what creates one), `key` has shape [members],
    and knobs are one number or one per member. A body that grows may have `max_capacity` leaves; openings beyond them wait.

    >>> from meristem.data.spirals import two_spirals
    >>> network = Network.create("tunnel", 2, 1, width=3, depth=2, key=jax.random.key(0))
    >>> run = begin(network, Recipe(batch_size=32), Knobs(learning_rate=3e-3, penalty=1e-3), jax.random.key(1))
    >>> run, info = advance(run, two_spirals("easy"))
    >>> int(info.epoch), run.history["loss"].shape
    (1, (1,))
    """
    for name, value, kind, call in (
        ("network", network, Network, "Network.create(…)"),
        ("recipe", recipe, Recipe, "Recipe(…)"),
        ("knobs", knobs, Knobs, "Knobs(learning_rate=…, penalty=…)"),
    ):
        if not isinstance(value, kind):
            raise ValueError(f"{name} is a {type(value).__name__}; make it with {call}.")
    key, members = as_key("key", key), network.members
    if jnp.shape(key) != members:
        raise ValueError(
            f"key has shape {jnp.shape(key)} but the network has members {members}: give one key for "
            "one network, or as many keys as there are networks, stacked: jax.vmap(create)(keys)."
        )
    knobs = check_knobs(knobs, members)  # before anything is compiled
    return of_state(start(network, key, recipe=recipe), recipe, knobs, max_capacity=max_capacity)


def of_state(state: TrainState, recipe: Recipe, knobs: Knobs, *, max_capacity: int = MAX_CAPACITY) -> Run:
    """Return a run that continues from a state; its best model and its history begin here."""
    check_size("max_capacity", max_capacity)
    state = fit_to_recipe(state, recipe)
    knobs = check_knobs(knobs, state.members)
    check_samples(knobs, recipe, state.network)
    if knobs.budget is not None:
        check_budget(state.network, knobs.budget, recipe)
        knobs = knobs._replace(penalty=jnp.full_like(knobs.penalty, FIRST_PRICE))
    best_epoch, capacities = np.zeros(state.members, int), (state.network.capacity, max_capacity)
    return Run(state, state.measured, best_epoch, knobs, recipe, *capacities, begun_at=np.asarray(state.epoch))


def advance(run: Run, data: Any, *, pulse: Pulse = None) -> tuple[Run, EpochInfo]:
    """Return the run one epoch later, and the record of that epoch, on the host.

    `data` are checked and uploaded each time, unless they come from `prepare(data, run.last, run.recipe.task)`.
    `pulse(share)` is called within long epochs.
    """
    prepared = prepare(data, run.last, run.recipe.task)
    check_rows(run.knobs, prepared.data)
    state, packed = run_epoch(run.state, prepared, run.knobs, run.recipe, pulse)
    info = unpack(packed)
    best = keep_best(info.improved, state.measured, run.best)
    best_epoch = np.where(info.improved, info.epoch - run.begun_at, run.best_epoch)
    state = adapt_capacity(state, info, run.least_capacity, run.max_capacity)
    knobs = run.knobs if run.knobs.budget is None else run.knobs._replace(penalty=next_penalty(run.knobs, info.hard_cost))
    infos = (*run.infos, info)
    return replace(run, state=state, best=best, best_epoch=best_epoch, knobs=knobs, capacities=(), infos=infos), info


def within_budget(run: Run, data: Any) -> Run:
    """Return the run with its best model cut to the budget, if it ended before that was met."""
    cost = partial(hard_cost, recipe=run.recipe)
    budget, costs = run.knobs.budget, jax.jit(jax.vmap(cost) if run.members else cost)
    if budget is None or not np.any(np.asarray(costs(run.best)) > np.asarray(budget)):
        return run
    last = jnp.full_like(run.state.plateau.stage, len(run.recipe.scales) - 1)
    state = replace(run.state, network=run.best, plateau=run.state.plateau._replace(stage=last))
    return replace(run, best=settled(state, prepare(data, run.last, run.recipe.task), run.knobs, run.recipe).network)


def settling(run: Run, epochs_left: int, epochs_per_stage: int) -> Run:
    """Return the run in a stage of its schedule that leaves time for the stages that follow."""
    last = len(run.recipe.scales) - 1
    return at_stage(run, min(max(last + 1 - -(-epochs_left // max(epochs_per_stage, 1)), 0), last))


def at_stage(run: Run, least: int) -> Run:
    """Return the run in this stage of its schedule, or in its own if that is later."""
    if not least:
        return run
    plateau: Plateau = jax.tree.map(np.asarray, run.state.plateau)
    moves = plateau.stage < least
    if not moves.any():
        return run
    watched = np.where(moves & (plateau.stage == 0), np.inf, plateau.best)
    begins_last = moves & (least == len(run.recipe.scales) - 1)
    best = tuple(np.where(begins_last, np.inf, np.asarray(value)) for value in run.state.best)
    plateau = Plateau._make((watched, np.where(moves, 0, plateau.since), np.maximum(plateau.stage, least)))
    plateau, best = jax.device_put((plateau, best))
    return replace(run, state=replace(run.state, plateau=plateau, best=best))


def stacked(runs: Sequence[Run]) -> Run:
    """Return runs of single networks of one shape as the run of a population."""
    most = max(run.last.capacity for run in runs)
    states = [run.state if run.last.capacity == most else with_capacity(run.state, most) for run in runs]
    members = zip(states, with_equal_capacity([run.best for run in runs]), [run.knobs for run in runs], strict=True)
    state, best, knobs = jax.tree.map(_stack, *members)
    best_epoch, begun_at = (np.stack([getattr(run, name) for run in runs]) for name in ("best_epoch", "begun_at"))
    capacities = tuple((run.last.capacity, run.best.capacity) for run in runs) if most else ()
    changed = replace(runs[0], state=state, best=best, best_epoch=best_epoch, knobs=knobs, begun_at=begun_at)
    return replace(changed, capacities=capacities, past=_side_by_side([run.history for run in runs]), infos=())


def _row(leaf: Any, member: int) -> Any:
    """Return a member's part of an array, on a CPU by NumPy: JAX compiles a program for each shape."""
    if not isinstance(leaf, jax.Array) or leaf.committed or _needs_jax(leaf):
        return leaf[member]
    return jax.device_put(np.array(np.asarray(leaf)[member]))


def _needs_jax(leaf: Any) -> bool:
    return jax.default_backend() != "cpu" or jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _stack(*leaves: Array) -> Array:
    """Return arrays as one, on a CPU by NumPy: JAX compiles a program of as many operands as there are, for each shape."""
    if _needs_jax(leaves[0]):
        return jnp.stack(leaves)
    stack: Array = jax.device_put(np.stack([np.asarray(leaf) for leaf in leaves]))
    return stack


def _side_by_side(columns: Sequence[History]) -> History:
    """Return histories of single networks as that of a population; shorter ones keep their last values, without events."""
    longest = max(columns, key=lambda column: max(map(len, column.values()), default=0))

    def padded(name: str, values: np.ndarray) -> np.ndarray:
        if not len(values):  # a member that has not begun
            return np.zeros_like(longest[name])
        filling = np.zeros_like(values[-1:]) if name in EVENTS else values[-1:]
        return np.concatenate([values, np.repeat(filling, len(longest[name]) - len(values), 0)])

    return {
        name: np.stack([padded(name, column.get(name, like[:0])) for column in columns], 1) for name, like in longest.items()
    }
