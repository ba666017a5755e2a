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
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from meristem.nn.network import Network
from meristem.train.loop import MAX_CAPACITY, MAX_EPOCHS, DivergedError, Fit, fit
from meristem.train.step import Data, EpochInfo, Recipe

Watch = Callable[[int, int, EpochInfo], bool | None]


def fit_each(
    networks: Network,
    data: Data,
    *,
    learning_rate: Any,
    penalty: Any,
    keys: Key[Array, " members"],
    recipe: Recipe = Recipe(),
    max_epochs: int = MAX_EPOCHS,
    max_capacity: int = MAX_CAPACITY,
    together: bool | None = None,
    watch: Watch | None = None,
) -> list[Fit]:
    """Train every member of a population (arrays with a leading axis, as `jax.vmap` makes them).

    `together=None` decides by the device. `watch(member, epoch, info)` is called after each epoch of each member. A member
    whose loss turns non-finite ends with its last good model and `diverged` set; the others go on.

    >>> import jax
    >>> from meristem.data.spirals import two_spirals
    >>> keys = jax.random.split(jax.random.key(0), 2)
    >>> networks = jax.vmap(lambda k: Network.create("tunnel", 2, 1, depth=2, key=k))(keys)
    >>> fits = fit_each(networks, Data(*two_spirals("easy")), learning_rate=3e-3, penalty=1e-3, keys=keys, max_epochs=2)
    >>> [len(fit.history["loss"]) for fit in fits]
    [2, 2]
    """
    members = keys.shape[0]
    together = jax.default_backend() != "cpu" if together is None else together
    options: dict[str, Any] = {"recipe": recipe, "max_epochs": max_epochs, "max_capacity": max_capacity}

    if together:

        def tell(epoch: int, info: EpochInfo) -> bool:
            told = [watch(m, epoch, _member(info, m)) for m in range(members) if watch and not _over(info, m, epoch)]
            return bool(told) and all(told)

        ended = np.full(members, max_epochs)

        def _over(info: EpochInfo, member: int, epoch: int) -> bool:
            over = bool(ended[member] < epoch)
            if info.stopped[member]:
                ended[member] = min(ended[member], epoch)
            return over

        whole = fit(networks, data, learning_rate=learning_rate, penalty=penalty, key=keys, watch=tell, **options)
        return [member_of(whole, m) for m in range(members)]

    rates, penalties = (np.broadcast_to(np.asarray(v), members) for v in (learning_rate, penalty))

    over = threading.Event()  # an interrupt: the threads end after their epoch

    def alone(m: int) -> Fit:
        def tell(epoch: int, info: EpochInfo) -> bool:
            return over.is_set() or bool(watch is not None and watch(m, epoch, info))

        try:
            return fit(
                _member(networks, m), data, learning_rate=rates[m], penalty=penalties[m], key=keys[m], watch=tell, **options
            )
        except DivergedError as error:
            return error.fit

    first = alone(0)  # it compiles; the others find the program ready
    pool = ThreadPoolExecutor(os.cpu_count())
    try:
        return [first, *pool.map(alone, range(1, members))]
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
    )


def _member(tree: Any, member: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[member], tree)


def seed_keys(seeds: Sequence[int], purpose: int) -> Key[Array, " seeds"]:
    """One key per seed; keys of different purposes (weights, training) do not overlap."""
    return jnp.stack([jax.random.fold_in(jax.random.key(seed), purpose) for seed in seeds])
