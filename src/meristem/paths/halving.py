"""Train the members of a path to their end, with successive halving if requested.

With a rule of which members stay, settings are compared at some epochs (rungs) by their least held-out loss, fold by fold, and
the others stop for good: `better_half` keeps half of them, `promising` also those that are within the standard error of the
difference to the best. train/loop.py trains the members.
"""

from collections.abc import Callable, Sequence

import numpy as np

from meristem.cache import clear_full_caches
from meristem.train.callbacks import WatcherGroup
from meristem.train.epoch import steps_per_epoch
from meristem.train.loop import NO_WATCHER, shares_programs, train_alone, train_packed
from meristem.train.run import Run
from meristem.train.training_data import Prepared

FIRST_RUNG = 16, 400  # epochs and steps, whichever is longer; each later rung is twice as far
Stays = Callable[[Sequence[float], np.ndarray], np.ndarray]  # (losses, settings) → whether each member stays
SETTLED = 3  # epochs of settling after which earlier losses do not count


def trained(
    runs: Sequence[Run],
    prepared: Prepared,
    settings: np.ndarray,
    *,
    max_epochs: int,
    stays: Stays | None = None,
    together: bool | None = None,
    all_begin: bool = True,
    watcher: WatcherGroup = NO_WATCHER,
) -> list[Run]:
    """Return the runs at their end; `settings` numbers the setting of each, and with `all_begin` each has a first epoch."""
    clear_full_caches()
    train = train_packed if shares_programs(together) else train_alone
    members = dict(enumerate(runs))
    running = {m: run for m, run in members.items() if not run.stopped}
    remains = np.ones(len(runs), bool)  # whether each is still in the search; its training may have ended
    rungs = []
    if stays is not None:
        passes = 1 if runs[0].knobs.passes is None else int(np.max(runs[0].knobs.passes))
        rungs = _rungs(max_epochs, passes * steps_per_epoch(len(prepared.data.x), runs[0].recipe.batch_size))
    for rung, pause_at in enumerate([*rungs, max_epochs]):
        if rung and stays is not None:
            remains &= stays([least_loss(run) if remains[m] else np.inf for m, run in members.items()], settings)
            running = {m: run for m, run in running.items() if remains[m]}
        running = train(running, prepared, max_epochs, watcher, pause_at=pause_at, all_begin=all_begin)
        members |= running
        running = {m: run for m, run in running.items() if not run.stopped}
        if not running or watcher.over():
            break
    return list(members.values())


def promising(losses: Sequence[float], settings: np.ndarray) -> np.ndarray:
    """Return which members stay: those of the better half of settings, and all within a standard error of the best.

    >>> promising([1.0, 1.1, 3.0, 3.1, 1.0, 1.2, 2.0, 2.2], np.array([0, 0, 1, 1, 2, 2, 3, 3])).tolist()
    [True, True, False, False, True, True, False, False]
    """
    loss = np.asarray(losses, float)
    stays = better_half(losses, settings)
    best = loss[settings == _ranked(loss, settings)[0]]
    for number in np.unique(settings[np.isfinite(loss)]):
        with np.errstate(invalid="ignore"):  # members that diverged are at ∞
            behind = loss[settings == number] - best
        error = behind.std(ddof=1) / np.sqrt(len(behind)) if len(behind) > 1 and np.isfinite(behind).all() else 0.0
        stays[settings == number] |= behind.mean() <= error
    return stays


def better_half(losses: Sequence[float], settings: np.ndarray) -> np.ndarray:
    """Return which members stay: those of the better half of the remaining settings; one that stopped early has loss ∞.

    >>> better_half([1.0, 1.1, 3.0, 3.1, 1.0, 1.2], np.array([0, 0, 1, 1, 2, 2])).tolist()
    [True, True, False, False, True, True]
    """
    loss = np.asarray(losses, float)
    ranked = _ranked(loss, settings)
    n_remaining = sum(np.isfinite(loss[settings == number]).all() for number in ranked)
    return np.isin(settings, ranked[: max(1, -(-int(n_remaining) // 2))])


def better_than(loss: float, losses: Sequence[float], settings: np.ndarray) -> np.ndarray:
    """Return which members belong to a setting whose mean loss so far is less than this one.

    >>> better_than(2.0, [1.0, 2.0, 3.0, 2.0], np.array([0, 0, 1, 1])).tolist()
    [True, True, False, False]
    """
    means = {number: np.asarray(losses)[settings == number].mean() for number in np.unique(settings)}
    return np.array([means[number] < loss for number in settings])


def _ranked(loss: np.ndarray, settings: np.ndarray) -> np.ndarray:
    """Return the settings by their mean loss, the best first."""
    numbers = np.unique(settings)
    return numbers[np.argsort([loss[settings == number].mean() for number in numbers], kind="stable")]


def least_loss(run: Run) -> float:
    """Return the least held-out loss so far, infinity if there is none; once a network settles, only losses since count."""
    losses = run.history.get("dev_loss", np.array([np.inf]))
    if run.recipe.settle and len(since := losses[run.history.get("stage", np.zeros(len(losses))) >= 1]) >= SETTLED:
        losses = since
    return float(np.where(np.isnan(losses), np.inf, losses).min())


def _rungs(max_epochs: int, steps: int) -> list[int]:
    """Return the epochs, of so many steps each, at which settings are compared.

    >>> _rungs(200, 60), _rungs(200, 5)
    ([16, 32, 64, 128], [80, 160])
    """
    first = max(FIRST_RUNG[0], -(-FIRST_RUNG[1] // steps))
    return [first << rung for rung in range(int(max_epochs).bit_length()) if first << rung < max_epochs]
