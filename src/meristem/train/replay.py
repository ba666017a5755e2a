"""Replay: training on all rows, for as long as runs took that held out some of them to stop by.

run = replay_on_all_rows(runs, state, blocks, n)        the stages of its schedule end as theirs did, in the median
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from meristem.train.callbacks import WatcherGroup
from meristem.train.loop import NO_WATCHER, cores as cores, train_until
from meristem.train.run import Run, at_stage, of_state, within_budget
from meristem.train.train_state import TrainState
from meristem.train.training_data import Prepared

UNLIMITED = 10**9  # epochs
TEMPERATURE_ROWS = 2000  # at most, of a block


def stage_ends(runs: Sequence[Run]) -> np.ndarray:
    """Return the epochs after which each stage ended, or the best model was reached; the median over runs, [stages]."""
    stages = range(len(runs[0].recipe.scales))
    ends = [[int((run.history["stage"] <= stage).sum()) for stage in stages] for run in runs]
    best = np.array([int(run.best_epoch) for run in runs])
    return np.ceil(np.median(np.minimum(ends, best[:, None]), 0)).astype(int)


def replay(run: Run, blocks: Sequence[Prepared], ends: Sequence[int] | np.ndarray, watcher: WatcherGroup = NO_WATCHER) -> Run:
    """Train a run whose stages end after these epochs, each on the next block of rows; its best model is its last."""
    run = replace(run, knobs=run.knobs._replace(patience=np.full(run.members, UNLIMITED, np.float32)))
    several = blocks if len(blocks) > 1 else ()
    for stage, end in enumerate(ends):
        if end > run.epochs.max():
            run = train_until(at_stage(run, stage), blocks[0], UNLIMITED, watcher, pause_at=int(end), blocks=several)
            if run.epochs.max() < end:  # a watcher stopped it, or it diverged
                break
    return within_budget(replace(run, best=run.last, best_epoch=run.epochs), blocks[0])


def n_held_out(n: int) -> int:
    """Return how many of n rows are held out for a temperature: one number, of which 2,000 rows tell enough."""
    return min(TEMPERATURE_ROWS, n // 10)


def dropout_for(dropout: Any, times: int) -> Any:
    """Return the dropout of so many times the rows; for linear outputs it is an l2 of dropout / (1 − dropout).

    >>> dropout_for(0.5, 1), dropout_for(0.5, 3), dropout_for(0.0, 3)
    (0.5, 0.25, 0.0)
    """
    strength = dropout / (1 - dropout) / times
    return strength / (1 + strength)


def replay_on_all_rows(
    runs: Sequence[Run],
    state: TrainState,
    blocks: Sequence[Prepared],
    n: int,
    budget: Any = None,
    watcher: WatcherGroup = NO_WATCHER,
) -> Run:
    """Train from a state on the first n rows, as long as these runs took on some of them, which held out rows to stop by.

    Of several blocks of n rows, such as those of a table of which the runs had a sample, each epoch takes the next: training
    then takes twice as long, and l2 and dropout, which belong to the number of rows, are lower. The network then overfits less
    than those of the runs, so the last rows of each block are held out for a temperature of its own.
    """
    first, row = runs[0], np.arange(len(blocks[0].data.x))
    n_learned = n - n_held_out(n) if len(blocks) > 1 and first.recipe.calibrate else n
    learned, held_out = (row < n_learned).astype(np.float32), ((row >= n_learned) & (row < n)).astype(np.float32)
    weights = jax.device_put((learned, held_out if held_out.any() else learned))
    knobs = first.knobs._replace(weight=weights[0], dev_weight=weights[1], budget=budget)
    if len(blocks) > 1:
        dropout = None if knobs.dropout is None else dropout_for(np.asarray(knobs.dropout), len(blocks))
        knobs = knobs._replace(l2=np.asarray(knobs.l2) / len(blocks), dropout=dropout)
    run = of_state(state, first.recipe, knobs, max_capacity=first.max_capacity)
    return replay(run, blocks, stage_ends(runs) * min(2, len(blocks)), watcher)
