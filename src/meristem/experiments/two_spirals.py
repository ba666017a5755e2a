"""The paper's study on two spirals: one set of hyper-parameters, three difficulties.

Online Adam, ten units a layer, ten layers (tunnel, highway), λ = 0.001, L2 = 1e-5, rates 3/4 per layer, plateau schedule on
the training cross-entropy. The paper's constants and results stand here at the top; ours are measured beside them.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from meristem.data.spirals import RADIUS, TASKS, two_spirals
from meristem.experiments.runs import MODELS, Result, Setting, Task, check_study, train
from meristem.experiments.summary import Record, groups, number, spread
from meristem.nn import Network
from meristem.show.progress import Progress
from meristem.train.loop import MAX_EPOCHS
from meristem.train.samples import Data
from meristem.train.step import Recipe

WIDTH, DEPTH = 10, 10
PENALTY = 0.001
RATES = [0.0001, 0.0003, 0.001, 0.003]  # the paper takes the smallest that reaches zero error
DISCRIMINANT = 80  # the grid's points along each axis

LEARNING_RATES = {"tunnel": 0.003, "budding": 0.001, "highway": 0.003, "highway-penalized": 0.003}
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
        check_study(self, models=list(MODELS), tasks=TASKS)


def run(study: Study, progress: Progress) -> Result:
    """Train everything the study asks for."""
    result = Result()
    candidates = len(RATES) if study.select_rate else 1
    progress.plan({(m, t): study.seeds * USUAL_EPOCHS[t] * candidates for m in study.models for t in study.tasks})
    for task in study.tasks:
        x, y = two_spirals(task)
        result.history |= {f"data/{task}/x": np.asarray(x), f"data/{task}/y": np.asarray(y)}
    for model in study.models:
        if study.select_rate:
            _select_rate(model, study, progress, result)
        else:
            _train_all(model, LEARNING_RATES[model], study, progress, result)
    return result


def _select_rate(model: str, study: Study, progress: Progress, result: Result) -> None:
    """The smallest of the paper's rates at which the median seed reaches zero error on every task; else the largest."""
    tried = result.more.setdefault("rates", [])
    for rate in RATES:
        trial = Result()
        _train_all(model, rate, study, progress, trial)
        solved = {
            task: sum(one["zero_error_epoch"] is not None for one in trial.runs if one["task"] == task) for task in study.tasks
        }
        tried += [
            {"model": model, "task": task, "learning_rate": rate, "solved": count, "seeds": study.seeds}
            for task, count in solved.items()
        ]
        if all(2 * count > study.seeds for count in solved.values()):
            break
    progress.say(f"{model}: rate {rate:g} is the one that is kept")
    result.runs += trial.runs
    result.history |= trial.history


def _train_all(model: str, rate: float, study: Study, progress: Progress, result: Result) -> None:
    recipe = Recipe(depth_decay=1.0) if study.equal_rates else Recipe()
    setting = Setting((rate,), (study.penalty,), study.seeds, study.max_epochs)
    for name in study.tasks:
        task = Task(name, Data(*two_spirals(name)), 1, recipe, WIDTH, DEPTH, USUAL_EPOCHS[name])
        trained = train(model, task, setting, progress)
        result.add(trained)
        for one, fit in trained:
            place = f"{model}/{name}/{one['seed']}/discriminant"
            result.history |= {place: discriminant(fit.best), f"{place}_limit": np.asarray(discriminant_limit())}
        runs = [one for one, _ in trained]
        zero, size = spread([one["zero_error_epoch"] for one in runs]), spread([one["soft_size"] for one in runs], 1)
        seconds = sum(one["seconds"] for one in runs)
        progress.say(f"{model}, {name}: zero error at epoch {zero}, soft size {size}, {seconds:.1f} s")


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
    for model, task, group in groups(runs):
        paper = PAPER.get(f"{model}/{task}", {})
        solved = [one["zero_error_epoch"] for one in group]
        hard = [one["hard_size"] for one in group if one["hard_size"] is not None]
        rows.append(
            [
                model,
                task,
                f"{len(solved) - solved.count(None)}/{len(solved)}",
                spread(solved),
                number(paper.get("zero_error_epoch")),
                spread([one["soft_size"] for one in group], 1),
                number(paper.get("soft_size")),
                spread([one["peak_soft_size"] for one in group], 1),
                spread(hard) if hard else "–",
                spread([one["live_parameters"] for one in group]),
            ]
        )
    return columns, rows
