"""A training as a value: everything it needs to go on, its best model and its history included.

    run = begin(network, recipe, knobs, key)
    run, info = advance(run, data)              one epoch later; the run that was given has not changed

One network, or a population: every array with a leading axis of members, a rate, a penalty, a schedule and a structure each.
Only `run.state` enters the compiled epoch; the host adds the best model, the history and the capacity. A saved run
(`meristem.save`) that is loaded goes on to the same bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meristem.check import as_key, check_size
from meristem.nn.grow import resize
from meristem.nn.network import Network
from meristem.train.budget import FIRST_PRICE, check_budget, cost_of, next_price
from meristem.train.capacity import adapt, keep_best, level, with_room
from meristem.train.dispatch import Pulse, programs_for, run_epoch, settled
from meristem.train.history import History, side_by_side, with_epochs
from meristem.train.knobs import Knobs, check_rows, checked
from meristem.train.packing import unpack
from meristem.train.recipe import Recipe
from meristem.train.samples import prepare
from meristem.train.schedule import Plateau
from meristem.train.state import EpochInfo, TrainState, fitting

MAX_CAPACITY = 16


@dataclass(frozen=True, eq=False)
class Run:
    """What training has come to.

    best, last      the network of the best epoch (lowest selection measure) and of the last one
    best_epoch      counted from 1; 0 if no epoch was finite. Of a population [members], as the next two
    epochs          how many were trained until the member stopped
    diverged        whether the loss turned non-finite
    history         name → [epochs], for a population [epochs, members]: loss, error, dev_loss, dev_error, for labels macro_f1
                    and dev_macro_f1, soft_size, layer_sizes [epochs, layers], hard_size, rate, stage (how often the rate had
                    shrunk), improved (best so far), stopped, diverged, opened, closed, waited (openings without a place),
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
    begun_at: np.ndarray  # the epochs that the state had behind it when this run began; 0 but for states of earlier runs
    capacities: tuple[tuple[int, int], ...] = ()  # of each member's last and best network, where each is trained with its own
    past: History = field(default_factory=dict, repr=False)  # of earlier epochs, as `history` has them
    infos: tuple[EpochInfo, ...] = field(default=(), repr=False)  # of the epochs since

    @property
    def last(self) -> Network:
        return self.state.measured

    @property
    def members(self) -> tuple[int, ...]:
        """(), or how many there are."""
        return jnp.shape(self.knobs.penalty)

    @property
    def temperature(self) -> np.ndarray:
        """At which the best network's logits say how sure it should be; 1 where the recipe does not calibrate."""
        history = self.history.get("temperature")
        if history is None:
            return np.ones(self.members)
        at = np.maximum(self.best_epoch, 1) - 1
        return np.asarray(np.take_along_axis(history, at[None], 0)[0])

    @property
    def patience(self) -> int:
        """The longest that a member waits."""
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
        """Which members will not change any more."""
        return np.asarray((np.asarray(self.state.plateau.stage) >= len(self.recipe.scales)) | self.diverged)

    @cached_property
    def history(self) -> History:
        return with_epochs(self.past, self.infos, self.begun_at)

    def member(self, member: int) -> "Run":
        """One member of a population, its history cut where it stopped."""
        epochs = int(self.epochs[member])
        state, best = _pick(self.state, member), _pick(self.best, member)
        if self.capacities:  # how it was before it was stacked: the same program, the same bits
            of_last, of_best = self.capacities[member]
            state, best = with_room(state, of_last), resize(best, None, of_best)[0]
        return Run(
            state=state,
            best=best,
            best_epoch=np.asarray(self.best_epoch[member]),
            knobs=_pick(self.knobs, member),
            recipe=self.recipe,
            least_capacity=self.least_capacity,
            max_capacity=self.max_capacity,
            begun_at=np.asarray(self.begun_at[member]),
            past={name: values[:epochs, member] for name, values in self.history.items()},
        )

    def each(self) -> "list[Run]":
        """All members, one by one; of a single network, itself."""
        return [self.member(m) for m in range(self.members[0])] if self.members else [self]


def begin(network: Network, recipe: Recipe, knobs: Knobs, key: Any, *, max_capacity: int = MAX_CAPACITY) -> Run:
    """The run before its first epoch.

    A `key` of shape [] is for one network, of shape [members] for a population, whose networks have a leading axis
    (`jax.vmap` of what creates one); knobs may then be one number or one per member. A body that grows may have
    `max_capacity` leaves; an opening beyond them waits.

    >>> from meristem.data.spirals import two_spirals
    >>> network = Network.create("tunnel", 2, 1, width=3, depth=2, key=jax.random.key(0))
    >>> run = begin(network, Recipe(batch_size=32), Knobs(learning_rate=3e-3, penalty=1e-3), jax.random.key(1))
    >>> run, info = advance(run, two_spirals("easy"))
    >>> int(info.epoch), run.history["loss"].shape
    (1, (1,))
    """
    _check_kind("network", network, Network, "Network.create(…)")
    _check_kind("recipe", recipe, Recipe, "Recipe(…)")
    _check_kind("knobs", knobs, Knobs, "Knobs(learning_rate=…, penalty=…)")
    key = as_key("key", key)
    members = network.members
    if jnp.shape(key) != members:
        raise ValueError(
            f"key has shape {jnp.shape(key)} but the network has members {members}: give one key for "
            "one network, or as many keys as there are networks, stacked: jax.vmap(create)(keys)."
        )
    ready = checked(knobs, members)
    return of_state(programs_for(ready).start(network, key, recipe=recipe), recipe, ready, max_capacity=max_capacity)


def of_state(state: TrainState, recipe: Recipe, knobs: Knobs, *, max_capacity: int = MAX_CAPACITY) -> Run:
    """A run that goes on from a state; its best model and its history begin here."""
    check_size("max_capacity", max_capacity)
    state = fitting(state, recipe)
    members = state.network.members
    ready = checked(knobs, members)
    if ready.budget is not None:
        check_budget(state.network, ready.budget, recipe)
        ready = ready._replace(penalty=jnp.full_like(ready.penalty, FIRST_PRICE))
    return Run(
        state=state,
        best=state.measured,
        best_epoch=np.zeros(members, int),
        knobs=ready,
        recipe=recipe,
        least_capacity=state.network.capacity,
        max_capacity=max_capacity,
        begun_at=np.asarray(state.epoch),
    )


def advance(run: Run, data: Any, *, pulse: Pulse = None) -> tuple[Run, EpochInfo]:
    """The run one epoch later, and what happened in it, on the host.

    `data` are checked and uploaded each time, unless they come from `prepare(data, run.last, run.recipe.task)`.
    `pulse(share)` is called within long epochs.
    """
    prepared = prepare(data, run.last, run.recipe.task)
    check_rows(run.knobs, prepared.data)
    state, packed = run_epoch(run.state, prepared, run.knobs, run.recipe, pulse)
    info = unpack(packed)
    best, best_epoch = run.best, run.best_epoch
    if info.improved.any():
        best = keep_best(info.improved, state.measured, best)
        best_epoch = np.where(info.improved, info.epoch - run.begun_at, best_epoch)
    if not info.stopped.all():
        state = adapt(state, info, run.least_capacity, run.max_capacity)
    knobs = run.knobs if run.knobs.budget is None else run.knobs._replace(penalty=next_price(run.knobs, info.hard_cost))
    changed = replace(run, state=state, best=best, best_epoch=best_epoch, knobs=knobs, capacities=())
    return replace(changed, infos=(*run.infos, info)), info


def within_budget(run: Run, data: Any) -> Run:
    """The run with a best model that is within its budget, if it ended before it had settled. A host function."""
    budget = run.knobs.budget
    if budget is None or not np.any(cost_of(run.best, run.recipe) > np.asarray(budget)):
        return run
    last = jnp.full_like(run.state.plateau.stage, len(run.recipe.scales) - 1)
    state = eqx.tree_at(lambda s: (s.network, s.plateau.stage), run.state, (run.best, last))
    return replace(run, best=settled(state, prepare(data, run.last, run.recipe.task), run.knobs, run.recipe).network)


def settling(run: Run, epochs_left: int, epochs_per_stage: int) -> Run:
    """The run in a stage of its schedule that leaves time for those that follow. A host function."""
    last = len(run.recipe.scales) - 1
    return at_stage(run, min(max(last + 1 - -(-epochs_left // max(epochs_per_stage, 1)), 0), last))


def at_stage(run: Run, least: int) -> Run:
    """The run in this stage of its schedule, or a later one where it is that far. A host function."""
    last, stage = len(run.recipe.scales) - 1, np.asarray(run.state.plateau.stage)
    moves = stage < least
    if not moves.any():
        return run
    stage_now = np.where(moves, least, stage)
    since = np.where(moves, 0, np.asarray(run.state.plateau.since)).astype(np.int32)
    watched = _anew(run.state.plateau.best, moves & (stage == 0))
    changed = Plateau(*jax.device_put((watched, since, stage_now.astype(stage.dtype))))
    best = tuple(_anew(value, moves & (stage_now == last)) for value in run.state.best)
    return replace(run, state=eqx.tree_at(lambda s: (s.plateau, s.best), run.state, jax.device_put((changed, best))))


def _anew(value: Any, where: Any) -> np.ndarray:
    """The search for something least begins anew."""
    found = np.asarray(value)
    return np.where(where, np.inf, found).astype(found.dtype)


def stacked(runs: Sequence[Run]) -> Run:
    """Runs of single networks of one shape as the run of a population."""
    room = max(run.last.capacity for run in runs)
    states = [run.state if run.last.capacity == room else with_room(run.state, room) for run in runs]
    return replace(
        runs[0],
        state=_stack(states),
        best=_stack(level([run.best for run in runs])),
        best_epoch=np.stack([run.best_epoch for run in runs]),
        knobs=_stack([run.knobs for run in runs]),
        begun_at=np.stack([run.begun_at for run in runs]),
        capacities=tuple((run.last.capacity, run.best.capacity) for run in runs) if room else (),
        past=side_by_side([run.history for run in runs]),
        infos=(),
    )


def _stack(trees: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


def _pick(tree: Any, member: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[member], tree)


def _check_kind(name: str, value: Any, kind: type, made: str) -> None:
    if not isinstance(value, kind):
        raise ValueError(f"{name} is a {type(value).__name__}; make it with {made}.")
