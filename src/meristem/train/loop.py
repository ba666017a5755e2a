"""Training from the first epoch to the last in one call, `fit`.

The members of a population train together, as one `vmap`ped program, on a GPU, which a single small network would leave idle;
on a CPU each trains alone, in a thread per core, so that a member that has stopped costs nothing. Both differ in the last bits.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Key

from meristem.cache import clear_full_caches
from meristem.check import check_size
from meristem.forks import check_fork
from meristem.nn.network import Network
from meristem.train.callbacks import watcher_of
from meristem.train.hyperparameters import L2, Knobs, Recipe, check_rows
from meristem.train.population import shares_programs, train_alone, train_until
from meristem.train.run import MAX_CAPACITY, Run, begin, stacked, within_budget
from meristem.train.saving import SECONDS, Saver
from meristem.train.training_data import prepare

MAX_EPOCHS = 2000
Save = Callable[[Run], Any]


class DivergedError(ArithmeticError):
    """The loss turned non-finite. `run` holds the last good model, if there was one."""

    def __init__(self, run: Run):
        self.run = run
        epoch, best = int(run.epochs), int(run.best_epoch)
        rate = float(run.history["rate"][-1])
        model = f"the model of epoch {best} is kept" if best else "no epoch was finite, so there is no model to keep"
        lower = min(rate / 10, 3e-3)
        super().__init__(
            f"The loss turned non-finite in epoch {epoch} at learning rate {rate:.2g}; {model}. "
            f"Try learning_rate={lower:.1g} or less, and check the scale of the inputs."
        )


def fit(
    start: Network | Run,
    data: Any,
    *,
    learning_rate: Any = None,
    penalty: Any = None,
    l2: Any = L2,
    dropout: Any = None,
    weight: Any = None,
    dev_weight: Any = None,
    budget: Any = None,
    key: Any = None,
    recipe: Recipe = Recipe(),
    max_epochs: int = MAX_EPOCHS,
    max_capacity: int = MAX_CAPACITY,
    rows_at_once: int | None = None,
    together: bool | None = None,
    watch: Any = None,
    save: Save | None = None,
    save_seconds: float = SECONDS,
) -> Run:
    """Train until every member has stopped, or `max_epochs` is reached.

    start           a network; several, with a leading axis; or a `Run`, which continues with its recipe and knobs
    data            Data(x, y) or Data(x, y, dev_x, dev_y); a tuple of these does, too
    learning_rate, penalty, l2, dropout, weight, dev_weight, budget
                    the `Knobs`: numbers, or one for each member; weights are [rows], or [members, rows]
    key             a random key, or as many as there are members
    recipe          everything that is the same for all members; see `Recipe`
    max_epochs      the most epochs; a recipe that settles drops the learning rate early enough that each later stage has
                    `patience` epochs, or an eighth of all in a short training
    max_capacity    the most leaves of a body that grows; openings beyond them wait
    rows_at_once    how many rows are sent to the device at a time if the data do not fit it; None: as many as fit
    together        whether the members of a population share a program; None: on an accelerator
    watch           a function of an epoch's info, or of (member, info), that may return True to stop; a `Watcher`; or several
    save            called with the run every `save_seconds`, in a thread of its own, for at most 5 % of the time, and at the
                    end, also after an exception: `partial(meristem.save, path)`

    A network whose loss turns non-finite raises `DivergedError`; a member of a population ends with its last good model, and
    the others continue.

    >>> from meristem.data.spirals import two_spirals
    >>> network = Network.create("tunnel", 2, 1, width=3, depth=2, key=jax.random.key(0))
    >>> data, recipe = two_spirals("easy"), Recipe(batch_size=32)
    >>> run = fit(network, data, learning_rate=3e-3, penalty=1e-3, key=jax.random.key(1), recipe=recipe, max_epochs=3)
    >>> run.history["loss"].shape
    (3,)
    >>> fit(run, data, max_epochs=5).history["loss"].shape
    (5,)
    """
    check_size("max_epochs", max_epochs)
    check_fork()
    clear_full_caches()
    if isinstance(start, Run):
        run = start
    else:
        penalty = 0.0 if penalty is None and budget is not None else penalty  # the run adapts it
        for name, value in (("learning_rate", learning_rate), ("penalty", penalty), ("key", key)):
            if value is None:
                raise ValueError(f"{name} is missing: fit(network, data, learning_rate=…, penalty=…, key=jax.random.key(0)).")
        knobs = Knobs(learning_rate, penalty, l2, dropout, weight, dev_weight, budget)
        run = begin(start, recipe, knobs, key, max_capacity=max_capacity)
    prepared = prepare(data, run.last, run.recipe.task, rows_at_once=rows_at_once)
    check_rows(run.knobs, prepared.data)
    watcher = watcher_of("watch", watch)
    saver = Saver(lambda name, run: save and save(run), math.inf if save is None else save_seconds)

    def offer(run: Run) -> None:
        saver.offer("run", lambda: run)

    def offer_members(runs: dict[int, Run]) -> None:
        saver.offer("run", lambda: stacked([*runs.values()]))

    try:
        if run.members and not shares_programs(together):
            members = dict(enumerate(run.each()))
            members = train_alone(members, prepared, max_epochs, watcher, after_epoch=offer_members)
            run = stacked([*members.values()])
        else:
            run = train_until(run, prepared, max_epochs, watcher, after_epoch=offer)
        run = within_budget(run, prepared)
    except BaseException:
        with suppress(Exception):  # the first exception is the one to raise
            if save is not None:
                saver.now()
        raise
    if save is not None:
        saver.forget()
        saver.close()
        save(run)
    if not run.members and run.diverged:
        raise DivergedError(run)
    return run


def seed_keys(seeds: Sequence[int], purpose: int) -> Key[Array, " seeds"]:
    """Return a key per seed; keys of different purposes (weights, training) do not overlap."""
    return jnp.stack([jax.random.fold_in(jax.random.key(seed), purpose) for seed in seeds])
