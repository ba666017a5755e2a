"""A training that takes the schedule of others: its stages last as long as theirs did, and it ends where theirs were best.

    ends = ends_of(runs)                      [stages]: the epochs at which each stage ends, in the median over runs
    replayed(run, prepared, ends) → run       whose best model is its last
    on_all_rows(runs, state, prepared, n)     a run from this state on the first n rows, replaying runs on some of them

Where a price was found on rows held out, a network for all rows has none left that could say when it is enough. The folds have
said it.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from meristem.train.population import train_until
from meristem.train.run import Run, at_stage, of_state, within_budget
from meristem.train.samples import Prepared
from meristem.train.state import TrainState
from meristem.train.watching import Everyone

EVER = 10**9  # epochs


def ends_of(runs: Sequence[Run]) -> np.ndarray:
    """For each stage the epochs after which it ended, or after which the best model was there; in the median."""
    stages = len(runs[0].recipe.scales)
    found = [[int((run.history["stage"] <= stage).sum()) for stage in range(stages)] for run in runs]
    kept = np.array([int(run.best_epoch) for run in runs])
    return np.ceil(np.median(np.minimum(found, kept[:, None]), 0)).astype(int)


def replayed(run: Run, prepared: Prepared, ends: Sequence[int] | np.ndarray, watcher: Everyone = Everyone([])) -> Run:
    """A run that was begun, at its end; nothing but `ends` says when the rate shrinks."""
    run = replace(run, knobs=run.knobs._replace(patience=np.full(run.members, float(EVER), np.float32)))
    for stage, end in enumerate(ends):
        if end > run.epochs.max():
            run = train_until(at_stage(run, stage), prepared, EVER, watcher, pause_at=int(end))
            if run.epochs.max() < end:  # someone gave up, or it diverged
                break
    return within_budget(replace(run, best=run.last, best_epoch=run.epochs), prepared)


def on_all_rows(
    runs: Sequence[Run], state: TrainState, prepared: Prepared, n: int, budget: Any = None, watcher: Everyone = Everyone([])
) -> Run:
    """As long as these runs took on some of the first n rows, on all of them; with the setting and the program of these."""
    rows = jax.device_put((np.arange(len(prepared.data.x)) < n).astype(np.float32))
    first = runs[0]
    knobs = first.knobs._replace(weight=rows, dev_weight=rows, budget=budget)
    return replayed(of_state(state, first.recipe, knobs, max_capacity=first.max_capacity), prepared, ends_of(runs), watcher)
