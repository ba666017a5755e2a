"""Many networks of one shape: seeds, rates or penalties side by side.

    fit_each(networks, data, …) → one Fit per member

Together, as one `vmap`ped program, where a single small network would leave the device idle (a GPU); each alone, a thread
per core, where it would not (a CPU: a branch stays a branch, and a member that is done costs nothing any more).
A member trained alone and the same member in a population differ in their last bits.
"""

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from meristem.check import as_key
from meristem.nn.network import Network
from meristem.train.loop import MAX_CAPACITY, MAX_EPOCHS, DivergedError, Fit, fit
from meristem.train.samples import Data
from meristem.train.step import EpochInfo, Recipe

Watch = Callable[[int, int, EpochInfo], bool | None]
Pulse = Callable[[int, int, float], None]
Options = dict[str, Any]


def fit_each(
    networks: Network,
    data: Data,
    *,
    learning_rate: Any,
    penalty: Any,
    keys: Any,
    recipe: Recipe = Recipe(),
    max_epochs: int = MAX_EPOCHS,
    max_capacity: int = MAX_CAPACITY,
    together: bool | None = None,
    watch: Watch | None = None,
    pulse: Pulse | None = None,
) -> list[Fit]:
    """Train every member of a population (arrays with a leading axis, as `jax.vmap` makes them).

    `together=None` decides by the device. `watch(member, epoch, info)` is called after each epoch of each member,
    `pulse(member, epoch, share)` within long ones. A member whose loss turns non-finite ends with its last good model and
    `diverged` set; the others go on.

    >>> import jax
    >>> from meristem.data.spirals import two_spirals
    >>> keys = jax.random.split(jax.random.key(0), 2)
    >>> networks = jax.vmap(lambda k: Network.create("tunnel", 2, 1, depth=2, key=k))(keys)
    >>> fits = fit_each(networks, Data(*two_spirals("easy")), learning_rate=3e-3, penalty=1e-3, keys=keys, max_epochs=2)
    >>> [len(fit.history["loss"]) for fit in fits]
    [2, 2]
    """
    keys = as_key("keys", keys)
    if not isinstance(networks, Network) or networks.embed.weight.shape[:-2] != keys.shape or keys.ndim != 1:
        raise ValueError(
            f"keys has shape {keys.shape}; it must be [members], with as many networks, stacked: jax.vmap(create)(keys)."
        )
    together = jax.default_backend() != "cpu" if together is None else together
    train = _together if together else _alone
    options = {"recipe": recipe, "max_epochs": max_epochs, "max_capacity": max_capacity}
    knobs = {"learning_rate": learning_rate, "penalty": penalty}
    return train(networks, data, keys, knobs, options, watch or (lambda member, epoch, info: None), pulse)


def _together(
    networks: Network, data: Data, keys: Array, knobs: Options, options: Options, watch: Watch, pulse: Pulse | None
) -> list[Fit]:
    """One program for all members."""
    members = range(keys.shape[0])
    running = dict.fromkeys(members, True)

    def tell(epoch: int, info: EpochInfo) -> bool:
        ends = []
        for m in members:
            if running[m]:
                ends.append(watch(m, epoch, _member(info, m)))
                running[m] = not info.stopped[m]
        return bool(ends) and all(ends)

    def beat(epoch: int, share: float) -> None:
        for m in members:
            if pulse is not None and running[m]:
                pulse(m, epoch, share)

    whole = fit(networks, data, key=keys, watch=tell, pulse=beat if pulse else None, **knobs, **options)
    return [member_of(whole, m) for m in members]


def _alone(
    networks: Network, data: Data, keys: Array, knobs: Options, options: Options, watch: Watch, pulse: Pulse | None
) -> list[Fit]:
    """Each member by itself, a thread per core."""
    members = keys.shape[0]
    over = threading.Event()  # after an interrupt the threads end with their epoch

    def one(m: int) -> Fit:
        def tell(epoch: int, info: EpochInfo) -> bool:
            return over.is_set() or bool(watch(m, epoch, info))

        mine = {name: value if np.ndim(value) == 0 else value[m] for name, value in knobs.items()}
        try:
            beat = None if pulse is None else partial(pulse, m)
            return fit(_member(networks, m), data, key=keys[m], watch=tell, pulse=beat, **mine, **options)
        except DivergedError as error:
            return error.fit

    for name, value in knobs.items():
        if np.shape(value) not in ((), (members,)):
            raise ValueError(f"{name} has shape {np.shape(value)}; give one number, or one for each of the {members} members.")
    first = one(0)  # it compiles; the others find the program ready
    pool = ThreadPoolExecutor(os.cpu_count())
    try:
        return [first, *pool.map(one, range(1, members))]
    finally:
        over.set()
        pool.shutdown(cancel_futures=True)


def member_of(fit: Fit, member: int) -> Fit:
    """One member of a population's result, its history cut where it stopped."""
    epochs = int(fit.epochs[member])
    return Fit(
        best=_member(fit.best, member),
        last=_member(fit.last, member),
        history={name: values[:epochs, member] for name, values in fit.history.items()},
        best_epoch=np.asarray(fit.best_epoch[member]),
        epochs=np.asarray(fit.epochs[member]),
        diverged=np.asarray(fit.diverged[member]),
        state=_member(fit.state, member),
    )


def _member(tree: Any, member: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[member], tree)


def seed_keys(seeds: Sequence[int], purpose: int) -> Key[Array, " seeds"]:
    """One key per seed; keys of different purposes (weights, training) do not overlap."""
    return jnp.stack([jax.random.fold_in(jax.random.key(seed), purpose) for seed in seeds])
