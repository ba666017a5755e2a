"""The paper's study on two spirals: one set of hyper-parameters, three difficulties.

Online Adam, ten units a layer, ten layers (tunnel, highway), λ = 0.001, L2 = 1e-5, rates 3/4 per layer, plateau schedule on
the training cross-entropy. The paper's constants and results stand here at the top; ours are measured beside them.
"""

import time
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meristem.check import unknown
from meristem.data.spirals import RADIUS, TASKS, two_spirals
from meristem.experiments.summary import HISTORY_FIELDS, Record, record, spread
from meristem.nn import Network
from meristem.progress import Progress
from meristem.train.loop import MAX_EPOCHS, Fit
from meristem.train.population import fit_each, seed_keys
from meristem.train.samples import Data
from meristem.train.step import Recipe

WIDTH, DEPTH = 10, 10
PENALTY = 0.001
RATES = [0.0001, 0.0003, 0.001, 0.003]  # the paper takes the smallest that reaches zero error
DISCRIMINANT = 80  # the grid's points along each axis

# model → (body, learning rate, whether λ applies)
MODELS: dict[str, tuple[str, float, bool]] = {
    "tunnel": ("tunnel", 0.003, True),
    "budding": ("budding", 0.001, True),
    "highway": ("highway", 0.003, False),
    "highway-penalized": ("highway", 0.003, True),
}
PAPER: dict[str, dict[str, float]] = {
    "tunnel/easy": {"zero_error_epoch": 2, "soft_size": 2},
    "tunnel/medium": {"zero_error_epoch": 23, "soft_size": 10},
    "tunnel/difficult": {"zero_error_epoch": 91, "soft_size": 15},
    "budding/easy": {"zero_error_epoch": 2, "soft_size": 1, "hard_size": 1},
    "budding/medium": {"zero_error_epoch": 30, "soft_size": 2.2},
    "budding/difficult": {"zero_error_epoch": 125, "soft_size": 7},
}
# Epochs that a run takes, roughly: for the estimate of the time left, nothing else.
USUAL_EPOCHS = {"easy": 160, "medium": 250, "difficult": 400, "classic": 900}


@dataclass(frozen=True)
class Study:
    """What to run. `select_rate` tries the paper's four rates and keeps the smallest that solves every task."""

    models: tuple[str, ...] = ("tunnel", "budding")
    tasks: tuple[str, ...] = ("easy", "medium", "difficult")
    seeds: int = 3
    penalty: float = PENALTY
    equal_rates: bool = False
    select_rate: bool = False
    max_epochs: int = MAX_EPOCHS

    def __post_init__(self) -> None:
        for name, values, known in (("models", self.models, list(MODELS)), ("tasks", self.tasks, TASKS)):
            object.__setattr__(self, name, tuple(dict.fromkeys(values)))  # each once
            if not values:
                raise ValueError(f"--{name} is empty; choose of: {', '.join(known)}.")
            for value in values:
                if value not in known:
                    raise unknown(f"--{name}", value, known)
        for name in ("seeds", "max_epochs"):
            if getattr(self, name) < 1:
                raise ValueError(f"--{name.replace('_', '-')}={getattr(self, name)} must be at least 1.")
        if not (np.isfinite(self.penalty) and self.penalty >= 0):
            raise ValueError(f"--penalty={self.penalty} must be a finite number of at least 0.")


@dataclass
class Result:
    """Records for summary.json, arrays for history.npz, and how the rates were chosen."""

    runs: list[Record]
    history: dict[str, np.ndarray]
    rates: list[Record]


def run(study: Study, progress: Progress) -> Result:
    """Train everything the study asks for."""
    result = Result([], {}, [])
    candidates = len(RATES) if study.select_rate else 1
    progress.plan({(m, t): study.seeds * USUAL_EPOCHS[t] * candidates for m in study.models for t in study.tasks})
    for task in study.tasks:
        x, y = two_spirals(task)
        result.history |= {f"data/{task}/x": np.asarray(x), f"data/{task}/y": np.asarray(y)}
    for model in study.models:
        if study.select_rate:
            _select_rate(model, study, progress, result)
        else:
            _train_all(model, MODELS[model][1], study, progress, result)
    return result


def _select_rate(model: str, study: Study, progress: Progress, result: Result) -> None:
    """The smallest of the paper's rates at which the median seed reaches zero error on every task; else the largest."""
    for rate in RATES:
        trial = Result([], {}, [])
        _train_all(model, rate, study, progress, trial)
        solved = {
            task: sum(one["zero_error_epoch"] is not None for one in trial.runs if one["task"] == task) for task in study.tasks
        }
        result.rates += [
            {"model": model, "task": task, "learning_rate": rate, "solved": count, "seeds": study.seeds}
            for task, count in solved.items()
        ]
        if all(2 * count > study.seeds for count in solved.values()):
            break
    progress.say(f"{model}: rate {rate:g} is the one that is kept")
    result.runs += trial.runs
    result.history |= trial.history


def _train_all(model: str, rate: float, study: Study, progress: Progress, result: Result) -> None:
    for task in study.tasks:
        _train(model, task, rate, study, progress, result)


def _train(model: str, task: str, rate: float, study: Study, progress: Progress, result: Result) -> None:
    body, _, penalized = MODELS[model]
    penalty = study.penalty if penalized else 0.0
    recipe = Recipe(depth_decay=1.0) if study.equal_rates else Recipe()
    seeds = list(range(study.seeds))
    options: dict[str, Any] = {} if body == "budding" else {"depth": DEPTH}
    networks = jax.vmap(lambda key: Network.create(body, 2, 1, width=WIDTH, key=key, **options))(seed_keys(seeds, 0))
    begin = time.perf_counter()
    with progress.group(model, task, rate, recipe.scales, study.seeds * USUAL_EPOCHS[task]) as watch:
        fits = fit_each(
            networks,
            Data(*two_spirals(task)),
            learning_rate=rate,
            penalty=penalty,
            keys=seed_keys(seeds, 1),
            recipe=recipe,
            max_epochs=study.max_epochs,
            watch=watch,
        )
    seconds = (time.perf_counter() - begin) / len(seeds)
    runs = [
        record(
            fit,
            model=model,
            task=task,
            seed=seed,
            penalty=penalty,
            paper_penalty=penalty * recipe.batch_size,
            learning_rate=rate,
        )
        for seed, fit in zip(seeds, fits, strict=True)
    ]
    for one, fit in zip(runs, fits, strict=True):
        one["seconds"] = round(seconds, 2)
        result.history |= {f"{model}/{task}/{one['seed']}/{name}": values for name, values in _histories(fit).items()}
    result.runs += runs
    zero = spread([one["zero_error_epoch"] for one in runs])
    size = spread([one["soft_size"] for one in runs], 1)
    progress.say(f"{model}, {task}: zero error at epoch {zero}, soft size {size}, {seconds * len(seeds):.1f} s")
    for one in runs:
        if one["diverged"]:
            progress.say(
                f"{model}, {task}, seed {one['seed']}: the loss turned non-finite in epoch {one['epochs']}, rate {rate:g}; "
                "its last good model is kept. Try a smaller rate."
            )


def _histories(fit: Fit) -> dict[str, np.ndarray]:
    return {
        **{name: fit.history[name] for name in HISTORY_FIELDS},
        "discriminant": discriminant(fit.best),
        "discriminant_limit": np.asarray(discriminant_limit()),
    }


def discriminant_limit() -> float:
    """The picture shows the square ±limit."""
    return 1.15 * RADIUS


def discriminant(network: Network) -> np.ndarray:
    """The probability of the second class on a grid, [y, x]."""
    return np.asarray(_discriminant(network), np.float16)


@jax.jit
def _discriminant(network: Network) -> jax.Array:
    axis = jnp.linspace(-discriminant_limit(), discriminant_limit(), DISCRIMINANT)
    grid = jnp.stack(jnp.meshgrid(axis, axis), -1)
    return jax.nn.sigmoid(jax.vmap(jax.vmap(network))(grid)[..., 0])


def table(runs: list[Record]) -> tuple[list[str], list[list[str]]]:
    """Ours, median (range) over seeds, beside the paper's; column names and rows."""
    columns = [
        "model",
        "task",
        "solved",
        "zero error at epoch",
        "paper",
        "final soft size",
        "paper",
        "peak",
        "hard size",
        "live parameters",
    ]
    rows = []
    for model, task in dict.fromkeys((one["model"], one["task"]) for one in runs):
        group = [one for one in runs if (one["model"], one["task"]) == (model, task)]
        paper = PAPER.get(f"{model}/{task}", {})
        solved = [one["zero_error_epoch"] for one in group]
        hard = [one["hard_size"] for one in group if one["hard_size"] is not None]
        rows.append(
            [
                model,
                task,
                f"{len(solved) - solved.count(None)}/{len(solved)}",
                spread(solved),
                _number(paper.get("zero_error_epoch")),
                spread([one["soft_size"] for one in group], 1),
                _number(paper.get("soft_size")),
                spread([one["peak_soft_size"] for one in group], 1),
                spread(hard) if hard else "–",
                spread([one["live_parameters"] for one in group]),
            ]
        )
    return columns, rows


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:g}"
