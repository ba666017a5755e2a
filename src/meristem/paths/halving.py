"""Train the members of a path to their end, with successive halving if requested.

With a rule of which members stay, settings are compared at some epochs (rungs) by their least held-out loss, fold by fold, and
the others stop for good: `better_half` keeps half of them, `promising` also those that are within the standard error of the
difference to the best, `ahead` all while they are better than other runs were at that epoch. Whoever `trainer_of`
(train/loop.py) names trains the members of a rung: this process or the workers of an executor.
"""

from collections.abc import Callable, Sequence

import numpy as np

from meristem.cache import clear_full_caches
from meristem.paths.result import standard_error
from meristem.train.callbacks import WatcherGroup
from meristem.train.epoch import steps_per_epoch
from meristem.train.loop import NO_WATCHER, trainer_of
from meristem.train.run import Run
from meristem.train.training_data import Prepared

FIRST_RUNG = 16, 400  # epochs and steps, whichever is longer; each later rung is twice as far
Stays = Callable[[Sequence[float], np.ndarray, int], np.ndarray]  # (losses, settings, epochs) → whether each member stays
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
    train, members = trainer_of(together), dict(enumerate(runs))
    remains = np.ones(len(runs), bool)  # whether each is still in the search; its training may have ended
    rungs = []
    if stays is not None:
        passes = 1 if runs[0].knobs.passes is None else int(np.max(runs[0].knobs.passes))
        rungs = _rungs(max_epochs, passes * steps_per_epoch(len(prepared.data.x), runs[0].recipe.batch_size))
    for rung, pause_at in enumerate([*rungs, max_epochs]):
        if rung and stays is not None:
            losses = [least_loss(run) if remains[m] else np.inf for m, run in members.items()]
            leaves = remains & ~stays(losses, settings, rungs[rung - 1])
            remains &= ~leaves
            watcher.leave([m for m in np.flatnonzero(leaves).tolist() if not members[m].stopped])
        running = {m: run for m, run in members.items() if remains[m] and not run.stopped}
        if not running or (rung and watcher.over()):
            break
        members |= train(running, prepared, max_epochs, watcher, pause_at=pause_at, all_begin=all_begin)
    return list(members.values())


def ahead(losses: Sequence[float], settings: np.ndarray, epochs: int, *, rivals: Sequence[Run]) -> np.ndarray:
    """Return that all members stay if they are better than their rivals were after so many epochs, on average."""
    gain = np.array([least_loss(run, epochs) for run in rivals]) - np.asarray(losses)
    return np.full(len(gain), gain.mean() > 0)


def promising(losses: Sequence[float], settings: np.ndarray, epochs: int = 0, *, limit: float = -np.inf) -> np.ndarray:
    """Return which members stay: the better half of settings, and all within a standard error of the best or below `limit`."""
    loss, stays = np.asarray(losses, float), better_half(losses, settings)
    best = loss[settings == _means(losses, settings).argmin()]
    for number in np.unique(settings[np.isfinite(loss)]):
        with np.errstate(invalid="ignore"):  # members that diverged are at ∞
            behind = loss[settings == number] - best
        stays[settings == number] |= behind.mean() <= standard_error(behind)
    return stays | (_means(losses, settings)[settings] < limit)


def better_half(losses: Sequence[float], settings: np.ndarray, epochs: int = 0) -> np.ndarray:
    """Return which members stay: those of the better half of the remaining settings; one that stopped early has loss ∞."""
    means = _means(losses, settings)
    n_staying = max(1, -(-int(np.isfinite(means).sum()) // 2))
    return np.isin(settings, np.argsort(means, kind="stable")[:n_staying])


def _means(losses: Sequence[float], settings: np.ndarray) -> np.ndarray:
    """Return the mean loss of each setting, by its number."""
    return np.array([np.asarray(losses)[settings == number].mean() for number in range(settings.max() + 1)])


def least_loss(run: Run, epochs: int | None = None) -> float:
    """Return the least held-out loss (of the first `epochs`), infinity if there is none; once a network settles, that since."""
    if not run.infos and not run.past:
        return np.inf
    losses = run.recorded("dev_loss")[:epochs]
    if run.recipe.settle and len(since := losses[run.recorded("stage")[:epochs] >= 1]) >= SETTLED:
        losses = since
    return float(np.where(np.isnan(losses), np.inf, losses).min())


def _rungs(max_epochs: int, steps: int) -> list[int]:
    """Return the epochs, of so many steps each, at which settings are compared."""
    first = max(FIRST_RUNG[0], -(-FIRST_RUNG[1] // steps))
    return [first << rung for rung in range(int(max_epochs).bit_length()) if first << rung < max_epochs]
