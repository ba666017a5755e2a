"""The host's part of training: it watches, keeps the best model, changes the capacity, and stops.

    fit(networks, data, learning_rate=…, penalty=…, recipe=…) → Fit

One network or a population (every array with a leading axis of members) goes through the same loop; a population is the
`vmap` of the epoch, its members have rates, penalties, schedules and structures of their own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meristem.check import as_key, check_size
from meristem.nn.network import Network
from meristem.train.capacity import adapt, capacity_of, keep_best
from meristem.train.epochs import epochs, rows_that_fit
from meristem.train.programs import ALONE, TOGETHER
from meristem.train.samples import Data, prepared
from meristem.train.step import EpochInfo, Knobs, Recipe, TrainState

MAX_EPOCHS = 2000
MAX_CAPACITY = 16


@dataclass(frozen=True)
class Fit:
    """What training leaves behind.

    best, last      the network of the best epoch (lowest selection measure) and of the last one
    history         name → [epochs], for a population [epochs, members]: loss, error, dev_loss, dev_error, for labels macro_f1
                    and dev_macro_f1, soft_size, layer_sizes [epochs, layers], hard_size, stage (how often the rate had
                    shrunk), improved (best so far),
                    stopped, diverged, opened, closed, waited (openings without a place), most_leaves
    best_epoch      counted from 1; 0 if no epoch was finite
    epochs          how many were trained until the member stopped
    diverged        whether the loss turned non-finite
    state           the whole state after the last epoch; `fit(…, start=state)` goes on from it
    """

    best: Network
    last: Network
    history: dict[str, np.ndarray]
    best_epoch: np.ndarray
    epochs: np.ndarray
    diverged: np.ndarray
    state: TrainState


class DivergedError(ArithmeticError):
    """The loss turned non-finite. `fit` holds the last good model."""

    def __init__(self, epoch: int, rate: float, fit: Fit):
        self.fit = fit
        super().__init__(
            f"The loss turned non-finite in epoch {epoch} at learning rate {rate:g}; the model of epoch {epoch - 1} is kept. "
            f"Try learning_rate={rate / 3:.1g}, and check the scale of the inputs."
        )


def fit(
    network: Network,
    data: Data,
    *,
    learning_rate: Any,
    penalty: Any,
    key: Any,
    l2: Any = None,
    recipe: Recipe = Recipe(),
    max_epochs: int = MAX_EPOCHS,
    max_capacity: int = MAX_CAPACITY,
    rows_at_once: int | None = None,
    start: TrainState | None = None,
    watch: Callable[[int, EpochInfo], bool | None] | None = None,
    pulse: Callable[[int, float], None] | None = None,
) -> Fit:
    """Train until every member has stopped.

    A `key` of shape [] trains one network, of shape [members] a population, whose networks have a leading axis; rates and
    penalties may then be one number or one per member; so may `l2`, which, if given, takes the place of the recipe's. A
    budding body may have `max_capacity` leaves; an opening beyond them waits. `watch(epoch, info)` is called after each epoch
    and may return True to stop; `pulse(epoch, share)` within long ones, with the share of their steps that is done. `start` is
    the state to go on from, of a network of the same kind; the given network then only says what it should fit, and `key` is
    not used. Data that do not fit the device stay with the host, which sends `rows_at_once` of them at a time (None: as many
    as fit).

    >>> import jax
    >>> from meristem.data.spirals import two_spirals
    >>> from meristem.nn import Network
    >>> x, y = two_spirals("easy")
    >>> network = Network.create("tunnel", 2, 1, depth=2, key=jax.random.key(0))
    >>> result = fit(network, Data(x, y), learning_rate=3e-3, penalty=1e-3, key=jax.random.key(1), max_epochs=3)
    >>> result.history["loss"].shape
    (3,)
    """
    _check_kind("network", network, Network, "Network.create(…)")
    _check_kind("recipe", recipe, Recipe, "Recipe(…)")
    key = as_key("key", key)
    if jnp.shape(key) != network.embed.weight.shape[:-2]:
        raise ValueError(
            f"key has shape {jnp.shape(key)} but the network has members {network.embed.weight.shape[:-2]}: give one key for "
            "one network, or as many keys as there are networks, stacked: jax.vmap(create)(keys)."
        )
    data = prepared(data, network, recipe.objective, on_host=True)
    check_size("max_epochs", max_epochs)
    check_size("max_capacity", max_capacity)
    members = jnp.shape(key)
    knobs = Knobs(
        learning_rate=_per_member("learning_rate", learning_rate, members),
        penalty=_per_member("penalty", penalty, members),
        l2=None if l2 is None else _per_member("l2", l2, members),
    )
    programs = TOGETHER if members else ALONE
    state: TrainState = programs.start(network, key, recipe=recipe) if start is None else start
    run, least = epochs(programs, data, recipe, rows_at_once or rows_that_fit(data)), capacity_of(network)

    best, best_epoch, infos = state.network, np.zeros(members, int), []
    for epoch in range(1, max_epochs + 1):
        state, info = run(state, knobs, partial(pulse, epoch) if pulse else None)
        host = jax.device_get(info)
        infos.append(host)
        if host.improved.any():
            best = keep_best(host.improved, state.network, best)
            best_epoch = np.where(host.improved, epoch, best_epoch)
        if (watch is not None and watch(epoch, host)) or host.stopped.all():
            break
        state = adapt(state, host, least, max_capacity)

    history = _history(infos)
    alive = ~np.concatenate([np.zeros((1, *members), bool), history["stopped"][:-1]])
    result = Fit(best, state.network, history, best_epoch, np.asarray(alive.sum(0)), np.asarray(history["diverged"][-1]), state)
    if not members and result.diverged:
        scale = recipe.scales[int(history["stage"][-1])]
        raise DivergedError(len(infos), float(knobs.learning_rate) * scale, result)
    return result


def _check_kind(name: str, value: Any, kind: type, made: str) -> None:
    if not isinstance(value, kind):
        raise ValueError(f"{name} is a {type(value).__name__}; make it with {made}.")


def _per_member(name: str, value: Any, members: tuple[int, ...]) -> jax.Array:
    array = np.asarray(value)
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{name}={value!r} must be a number.")
    if not np.isfinite(array).all() or (array < 0).any() or (name == "learning_rate" and (array == 0).any()):
        raise ValueError(f"{name}={value!r} must be a finite number {'above' if name == 'learning_rate' else 'of at least'} 0.")
    if array.shape not in ((), members):
        many = f", or one for each of the {members[0]} members" if members else ""
        raise ValueError(f"{name} has shape {array.shape}; give one number{many}.")
    return jnp.asarray(np.broadcast_to(array, members), jnp.result_type(float))


def _history(infos: list[EpochInfo]) -> dict[str, np.ndarray]:
    known = [name for name, value in infos[0]._asdict().items() if value is not None]
    history = {name: np.stack([getattr(info, name) for info in infos]) for name in known}
    return history | {"soft_size": history["layer_sizes"].sum(-1)}
