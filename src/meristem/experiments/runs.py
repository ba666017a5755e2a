"""What all studies share: one model trained on one task with several seeds, its test figures, and the records of it.

    train("tunnel", task, setting, progress) → [(record, fit), …], one per seed

Seeds train together as one population where the device is an accelerator (`fit_each` decides). The model whose development
measure was best is the one that is tested; nothing else ever sees the test part.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from meristem.check import unknown
from meristem.experiments.summary import HISTORY_FIELDS, Record, record
from meristem.nn import Network
from meristem.progress import Progress
from meristem.train.batches import steps_of
from meristem.train.loop import Fit
from meristem.train.measure import Measures, evaluate
from meristem.train.population import fit_each, seed_keys
from meristem.train.samples import Data, prepared
from meristem.train.step import Recipe

# model → (body, whether the penalty applies)
MODELS: dict[str, tuple[str, bool]] = {
    "tunnel": ("tunnel", True),
    "budding": ("budding", True),
    "highway": ("highway", False),
    "highway-penalized": ("highway", True),
}


@dataclass(frozen=True)
class Task:
    """What a network is trained on, and how."""

    name: str
    data: Data
    n_out: int
    recipe: Recipe
    width: int
    depth: int  # of bodies that do not bud
    usual_epochs: int  # of one seed, roughly: for the estimate of the time left, nothing else
    test: Data | None = None  # its x and y
    known: Record = field(default_factory=dict)  # what a record says of it besides: features, split


@dataclass(frozen=True)
class Setting:
    """One model's hyper-parameters."""

    rate: float
    penalty: float
    seeds: int
    max_epochs: int


@dataclass
class Result:
    """Records for summary.json, arrays for history.npz, and what else the summary should say."""

    runs: list[Record] = field(default_factory=list)
    history: dict[str, np.ndarray] = field(default_factory=dict)
    more: Record = field(default_factory=dict)

    def add(self, trained: Sequence[tuple[Record, Fit]]) -> None:
        for one, fit in trained:
            self.runs.append(one)
            name = f"{one['model']}/{one['task']}/{one['seed']}"
            self.history |= {f"{name}/{part}": fit.history[part] for part in HISTORY_FIELDS if part in fit.history}


def check_study(names: dict[str, tuple[tuple[str, ...], list[str]]], counts: dict[str, int], penalty: float | None) -> None:
    """The fields of a study as a person gives them; option → (values, what is known), option → a count."""
    for name, (values, known) in names.items():
        if not values:
            raise ValueError(f"--{name} is empty; choose of: {', '.join(known)}.")
        for value in values:
            if value not in known:
                raise unknown(f"--{name}", value, known)
    for name, count in counts.items():
        if count < 1:
            raise ValueError(f"--{name}={count} must be at least 1.")
    if penalty is not None and not (np.isfinite(penalty) and penalty >= 0):
        raise ValueError(f"--penalty={penalty} must be a finite number of at least 0.")


def device() -> str:
    """What computes, in words: 'NVIDIA H200', 'cpu'."""
    return jax.devices()[0].device_kind


def train(model: str, task: Task, setting: Setting, progress: Progress) -> list[tuple[Record, Fit]]:
    """Every seed of a model on a task."""
    body, is_penalized = MODELS[model]
    penalty = setting.penalty if is_penalized else 0.0
    seeds = list(range(setting.seeds))
    options: dict[str, Any] = {} if body == "budding" else {"depth": task.depth}
    n_in = task.data.x.shape[1]
    networks = jax.vmap(lambda key: Network.create(body, n_in, task.n_out, width=task.width, key=key, **options))(
        seed_keys(seeds, 0)
    )
    begin = time.perf_counter()
    with progress.group(model, task.name, setting.rate, task.recipe.scales, setting.seeds * task.usual_epochs) as shown:
        fits = fit_each(
            networks,
            task.data,
            learning_rate=setting.rate,
            penalty=penalty,
            keys=seed_keys(seeds, 1),
            recipe=task.recipe,
            max_epochs=setting.max_epochs,
            watch=shown.watch,
            pulse=shown.pulse,
        )
    seconds = time.perf_counter() - begin
    steps = sum(int(fit.epochs) for fit in fits) * steps_of(task.data.x.shape[0], task.recipe.batch_size)
    trained = [
        (
            record(
                fit,
                _test(fit, task),
                model=model,
                task=task.name,
                **task.known,
                seed=seed,
                penalty=penalty,
                paper_penalty=penalty * task.recipe.batch_size,
                learning_rate=setting.rate,
                seconds=round(seconds / len(seeds), 2),
                steps_per_second=round(steps / seconds),
            ),
            fit,
        )
        for seed, fit in zip(seeds, fits, strict=True)
    ]
    for one, _ in trained:
        if one["diverged"]:
            progress.say(
                f"{model}, {task.name}, seed {one['seed']}: the loss turned non-finite in epoch {one['epochs']}, "
                f"rate {setting.rate:g}; its last good model is kept. Try a smaller rate."
            )
    return trained


def _test(fit: Fit, task: Task) -> Measures | None:
    """The test figures of the best model."""
    if task.test is None:
        return None
    test = prepared(task.test, fit.best, task.recipe.objective)
    return evaluate(fit.best, test.x, test.y, task.recipe.objective)
