"""What all studies share: one model trained on one task with several seeds, its test figures, and the records of it.

    train("tunnel", task, setting, progress) → [(record, fit), …], one per rate, penalty and seed

All of them train together as one population where the device is an accelerator (`fit_each` decides). The model whose
development measure was best is the one that is tested; nothing else ever sees the test part.
"""

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from meristem.check import unknown
from meristem.experiments.choice import CHOICES, chosen_setting, told
from meristem.experiments.summary import HISTORY_FIELDS, Record, record
from meristem.nn import Network
from meristem.show.progress import Progress
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
    """How a model is trained: at every one of the rates with every one of the penalties, `seeds` times each; which it keeps."""

    rates: tuple[float, ...]
    penalties: tuple[float, ...]
    seeds: int
    max_epochs: int
    choose: str = "best"  # see choice.py

    def members(self, *, is_penalized: bool) -> list[tuple[float, float, int]]:
        """(rate, penalty, seed) of each network."""
        return list(itertools.product(self.rates, self.penalties if is_penalized else (0.0,), range(self.seeds)))


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


def check_study(study: Any, **known: list[str]) -> None:
    """The fields of a study as a person gives them, lists with each value once; `known`: the names that a field may hold."""
    for name, values in vars(study).items():
        if isinstance(values, tuple):
            object.__setattr__(study, name, tuple(dict.fromkeys(values)))
    for name, choices in known.items():
        check_names(name, getattr(study, name), choices)
    for name in ("seeds", "max_epochs"):
        if getattr(study, name) < 1:
            raise ValueError(f"--{name.replace('_', '-')}={getattr(study, name)} must be at least 1.")
    _check_numbers("penalty", study.penalty, "of at least 0", lambda value: value >= 0)
    _check_numbers("rate", getattr(study, "rate", 1.0), "above 0", lambda value: value > 0)
    share = getattr(study, "input_dropout", 0.0)
    _check_numbers("input-dropout", share, "of at least 0 and below 1", lambda value: 0 <= value < 1)
    check_names("choose", [getattr(study, "choose", CHOICES[0])], CHOICES)


def check_names(name: str, values: Sequence[str], known: list[str]) -> None:
    """That an option holds names, and none but the known ones."""
    if not values:
        raise ValueError(f"--{name} is empty; choose of: {', '.join(known)}.")
    for value in values:
        if value not in known:
            raise unknown(f"--{name}", value, known)


def _check_numbers(name: str, values: float | tuple[float, ...], must: str, holds: Callable[[float], bool]) -> None:
    if values == ():
        raise ValueError(f"--{name} is empty; give a number, or several with commas.")
    for value in values if isinstance(values, tuple) else (values,):
        if not (np.isfinite(value) and holds(value)):
            raise ValueError(f"--{name}={value} must be a finite number {must}.")


def device() -> str:
    """What computes, in words: 'NVIDIA H200', 'cpu'."""
    return jax.devices()[0].device_kind


def train(model: str, task: Task, setting: Setting, progress: Progress) -> list[tuple[Record, Fit]]:
    """A model on a task, at every rate, penalty and seed."""
    body, is_penalized = MODELS[model]
    members = setting.members(is_penalized=is_penalized)
    rates, penalties, seeds = zip(*members, strict=True)
    options: dict[str, Any] = {} if body == "budding" else {"depth": task.depth}
    n_in = task.data.x.shape[1]
    networks = jax.vmap(lambda key: Network.create(body, n_in, task.n_out, width=task.width, key=key, **options))(
        seed_keys(seeds, 0)
    )
    begin = time.perf_counter()
    with progress.group(model, task.name, setting.rates, task.recipe.scales, len(members) * task.usual_epochs) as shown:
        fits = fit_each(
            networks,
            task.data,
            learning_rate=np.asarray(rates),
            penalty=np.asarray(penalties),
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
                learning_rate=rate,
                seconds=round(seconds / len(members), 2),
                steps_per_second=round(steps / seconds),
            ),
            fit,
        )
        for (rate, penalty, seed), fit in zip(members, fits, strict=True)
    ]
    for one, _ in trained:
        if one["diverged"]:
            progress.say(
                f"{model}, {task.name}, seed {one['seed']}: the loss turned non-finite in epoch {one['epochs']}, "
                f"rate {one['learning_rate']:g}; its last good model is kept. Try a smaller rate."
            )
    return trained


def train_all(
    models: Sequence[str],
    tasks: Sequence[Task],
    setting: Setting,
    progress: Progress,
    line: Callable[[list[Record]], str],
) -> Result:
    """Every model on every task, each at the setting that suits it there; `line` says what came out.

    Tasks of the same name are one task prepared in several ways, of which a model keeps one too.
    """
    result = Result()
    members = {model: len(setting.members(is_penalized=MODELS[model][1])) for model in models}
    ways = {name: [task for task in tasks if task.name == name] for name in dict.fromkeys(task.name for task in tasks)}
    epochs = {name: sum(task.usual_epochs for task in each) for name, each in ways.items()}
    progress.plan({(model, name): members[model] * epochs[name] for model in models for name in ways})
    for model in models:
        for each in ways.values():
            trained = [pair for task in each for pair in train(model, task, setting, progress)]
            measure = each[0].recipe.select
            chosen, tried = chosen_setting(trained, measure, setting.choose)
            result.add(chosen)
            if len(tried) > 1:
                result.more.setdefault("tried", []).extend(tried)
                progress.say(told(tried, measure))
            progress.say(line([one for one, _ in chosen]))
    return result


def _test(fit: Fit, task: Task) -> Measures | None:
    """The test figures of the best model."""
    if task.test is None:
        return None
    test = prepared(task.test, fit.best, task.recipe.objective)
    return evaluate(fit.best, test.x, test.y, task.recipe.objective)
