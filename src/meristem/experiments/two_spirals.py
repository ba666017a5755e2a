"""The paper's study on two spirals: one set of hyper-parameters, three difficulties.

Online Adam, ten units a layer, ten layers (tunnel, highway), λ = 0.001, L2 = 1e-5, rates 3/4 per layer, plateau schedule on
the training cross-entropy. The paper's constants and results stand here at the top; ours are measured beside them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from meristem.cpu import fuse_small_loops
from meristem.data.spirals import RADIUS, TASKS, two_spirals
from meristem.experiments.columns import Column, Papers, median, parameters, spread
from meristem.experiments.option import names_option, switch_option
from meristem.experiments.options import THE_PAPERS, Options, models_option, penalties_option, rates_option, seeds_option
from meristem.experiments.runs import Arrays, Task
from meristem.experiments.study import Plan, Study
from meristem.experiments.summary import Record
from meristem.nn import Network
from meristem.pictures.studies.catalog import CATALOG
from meristem.train.hyperparameters import Recipe
from meristem.train.training_data import Data

WIDTH, DEPTH = 10, 10
PENALTY = 0.001
RATES = (0.0001, 0.0003, 0.001, 0.003)  # the paper takes the smallest that reaches zero error
LEARNING_RATES = {"tunnel": 0.003, "budding": 0.001, "highway": 0.003, "highway-penalized": 0.003}
GRID, LIMIT = 80, 1.15 * RADIUS  # points of the discriminant along each axis, and how far it reaches
PAPER: Papers = {
    "tunnel/easy": {"zero_error_epoch": 2, "soft_size": 2},
    "tunnel/medium": {"zero_error_epoch": 23, "soft_size": 10},
    "tunnel/difficult": {"zero_error_epoch": 91, "soft_size": 15},
    "budding/easy": {"zero_error_epoch": 2, "soft_size": 1, "hard_size": 1},
    "budding/medium": {"zero_error_epoch": 30, "soft_size": 2.2},
    "budding/difficult": {"zero_error_epoch": 125, "soft_size": 7},
}
# Epochs that a run takes, roughly: for the estimate of the time left, nothing else.
USUAL_EPOCHS = {"easy": 160, "medium": 250, "difficult": 400, "classic": 900}


@dataclass(frozen=True, kw_only=True)
class SpiralsOptions(Options):
    """What to run. `select_rate` keeps the smallest of the rates that solves every task, by default of the paper's four."""

    usual_rates: ClassVar[Mapping[str, float]] = LEARNING_RATES

    task: tuple[str, ...] = names_option(
        ("easy", "medium", "difficult"),
        TASKS,
        f"with commas, of {', '.join(TASKS)}",
        usual="all but classic",
        older=("--tasks",),
    )
    equal_rates: bool = switch_option("the same rate in all layers, the paper's ablation")
    select_rate: bool = switch_option(
        "try rates one after another, by default the paper's four, keep the smallest that solves every task"
    )
    models: tuple[str, ...] = models_option("tunnel", "budding")
    seeds: int = seeds_option(3)
    rate: tuple[float, ...] | None = rates_option(LEARNING_RATES)
    penalty: tuple[float, ...] = penalties_option(PENALTY, THE_PAPERS)

    def rates_of(self, model: str) -> tuple[float, ...]:
        return RATES if self.select_rate and self.rate is None else super().rates_of(model)


def plan(options: SpiralsOptions) -> Plan:
    """The tasks that are asked for."""
    recipe = Recipe(depth_decay=1.0) if options.equal_rates else Recipe()
    tasks = []
    for name in options.task:
        x, y = two_spirals(name)
        arrays = {"x": np.asarray(x), "y": np.asarray(y)}
        tasks.append(Task(name, Data(x, y), 1, recipe, WIDTH, DEPTH, USUAL_EPOCHS[name], arrays=arrays))
    return Plan(tasks, "Two spirals")


def line(runs: list[Record]) -> str:
    """What came out of a model's runs on a task."""
    sizes = [one["soft_size"] for one in runs if one["soft_size"] is not None]
    zero, size = spread([one["zero_error_epoch"] for one in runs]), spread(sizes, 1) if sizes else "–"
    seconds = sum(one["seconds"] for one in runs)
    return f"{runs[0]['model']}, {runs[0]['task']}: zero error at epoch {zero}, soft size {size}, {seconds:.1f} s"


def discriminant(network: Network) -> Arrays:
    """The probability of the second class on a grid [y, x], which spans ± limit."""
    return {"discriminant": np.asarray(_probability(network), np.float16), "discriminant_limit": np.asarray(LIMIT)}


@jax.jit
def _probability(network: Network) -> jax.Array:
    axis = jnp.linspace(-LIMIT, LIMIT, GRID)
    grid = jnp.stack(jnp.meshgrid(axis, axis), -1)
    return jax.nn.sigmoid(jax.vmap(jax.vmap(network))(grid)[..., 0])


STUDY = Study(
    name="two-spirals",
    help="two spirals, easy to difficult, with one set of hyper-parameters",
    description="Train networks that size themselves on two spirals; show what came out beside the paper's results.",
    example="--seeds 10 --models tunnel,budding,highway,highway-penalized --out out/all",
    options=SpiralsOptions,
    plan=plan,
    columns=(
        Column("solved", lambda runs: f"{sum(one['zero_error_epoch'] is not None for one in runs)}/{len(runs)}"),
        Column("zero error at epoch", lambda runs: spread([one["zero_error_epoch"] for one in runs]), "zero_error_epoch"),
        median("final soft size", "soft_size", 1, paper="soft_size"),
        median("peak", "peak_soft_size", 1),
        median("hard size", "hard_size"),
        *parameters(median),
    ),
    averages="median (range)",
    line=line,
    pictures=CATALOG["two-spirals"],
    paper=PAPER,
    arrays=discriminant,
    before=fuse_small_loops,
)
