"""The members of a path, trained to their end, or until their setting is clearly behind the others.

    trained(runs, data, settings, …) → runs             every member with its own schedule, stop and best model

With a rule for who `stays`, the settings are compared at some epochs (rungs) by their least held-out loss (so far, or since
they settle), fold by fold, and who does not stay leaves for good: `better_half` keeps just that, `promising` also what is not
clearly behind the best, by the standard error of the difference. train/population.py says how members are trained.

Imports train; paths.path and the estimators import it.
"""

from collections.abc import Callable, Sequence

import numpy as np

from meristem.cache import clear_full_caches
from meristem.train.population import shares_programs, train_alone, train_packed
from meristem.train.run import Run
from meristem.train.samples import Prepared
from meristem.train.watching import Everyone

FIRST_RUNG = 16, 400  # epochs and steps, whichever takes longer; the next ones at twice as many each
Stays = Callable[[Sequence[float], np.ndarray], np.ndarray]
SINCE = 3  # epochs of settling, after which what came before does not count


def trained(
    runs: Sequence[Run],
    prepared: Prepared,
    settings: np.ndarray,
    *,
    max_epochs: int,
    stays: Stays | None = None,
    together: bool | None = None,
    all_begin: bool = True,
    watcher: Everyone = Everyone([]),
) -> list[Run]:
    """The runs at their end; `settings`: for each the number of its setting; `all_begin`: each has an epoch in any case."""
    clear_full_caches()
    train = train_packed if shares_programs(together) else train_alone
    members = dict(enumerate(runs))
    running = {m: run for m, run in members.items() if not run.stopped}
    remains = np.ones(len(runs), bool)  # has not left; it may have stopped by itself
    rungs = [] if stays is None else _rungs(max_epochs, _steps(runs[0], prepared))
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
    """Which members stay, by the losses so far: those of the better half of settings, and all that are not clearly behind.

    >>> promising([1.0, 1.1, 3.0, 3.1, 1.0, 1.2, 2.0, 2.2], np.array([0, 0, 1, 1, 2, 2, 3, 3])).tolist()
    [True, True, False, False, True, True, False, False]
    """
    loss = np.asarray(losses, float)
    stays = better_half(losses, settings)
    best = loss[settings == _best(loss, settings)[0]]
    for number in np.unique(settings[np.isfinite(loss)]):
        with np.errstate(invalid="ignore"):  # members that diverged are at ∞
            behind = loss[settings == number] - best
        error = behind.std(ddof=1) / np.sqrt(len(behind)) if len(behind) > 1 and np.isfinite(behind).all() else 0.0
        stays[settings == number] |= behind.mean() <= error
    return stays


def better_half(losses: Sequence[float], settings: np.ndarray) -> np.ndarray:
    """Which members stay: those of the better half of the settings that are still there; who has left has a loss of infinity.

    >>> better_half([1.0, 1.1, 3.0, 3.1, 1.0, 1.2], np.array([0, 0, 1, 1, 2, 2])).tolist()
    [True, True, False, False, True, True]
    """
    loss = np.asarray(losses, float)
    places = _best(loss, settings)
    there = sum(np.isfinite(loss[settings == number]).all() for number in places)
    return np.isin(settings, places[: max(1, -(-int(there) // 2))])


def better_than(loss: float, losses: Sequence[float], settings: np.ndarray) -> np.ndarray:
    """Which members are of a setting whose mean loss so far is less than this one.

    >>> better_than(2.0, [1.0, 2.0, 3.0, 2.0], np.array([0, 0, 1, 1])).tolist()
    [True, True, False, False]
    """
    means = {number: np.asarray(losses)[settings == number].mean() for number in np.unique(settings)}
    return np.array([means[number] < loss for number in settings])


def _best(loss: np.ndarray, settings: np.ndarray) -> np.ndarray:
    """The settings by their mean loss, the best first."""
    numbers = np.unique(settings)
    return numbers[np.argsort([loss[settings == number].mean() for number in numbers], kind="stable")]


def least_loss(run: Run) -> float:
    """The least loss on what is held out, so far; of a run that diverged at once, infinity.

    A network that settles is not what it was before: as soon as it does, only what came since counts.
    """
    losses = run.history.get("dev_loss", np.array([np.inf]))
    if run.recipe.settle and len(since := losses[run.history.get("stage", np.zeros(len(losses))) >= 1]) >= SINCE:
        losses = since
    return float(np.where(np.isnan(losses), np.inf, losses).min())


def _steps(run: Run, prepared: Prepared) -> int:
    """Of an epoch."""
    passes = 1 if run.knobs.passes is None else int(np.max(run.knobs.passes))
    return passes * -(-len(prepared.data.x) // run.recipe.batch_size)


def _rungs(max_epochs: int, steps: int) -> list[int]:
    """The epochs, of so many steps each, at which settings are compared.

    >>> _rungs(200, 60), _rungs(200, 5)
    ([16, 32, 64, 128], [80, 160])
    """
    epochs, least = FIRST_RUNG
    rungs, at = [], max(epochs, -(-least // steps))
    while at < max_epochs:
        rungs.append(at)
        at *= 2
    return rungs
