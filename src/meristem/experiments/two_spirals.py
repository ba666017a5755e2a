"""The paper's study on two spirals: one set of hyper-parameters, three difficulties.

Online Adam, ten units a layer, ten layers (tunnel, highway), λ = 0.001, L2 = 1e-5, rates 3/4 per layer, plateau schedule on
the training cross-entropy.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from meristem.data.spirals import RADIUS, TASKS, two_spirals
from meristem.experiments.options import Options, choice_option, option
from meristem.experiments.study import PARAMETERS, Arrays, Column, PaperValues, Plan, Study, Task, median_and_range
from meristem.nn import Network
from meristem.pictures.studies.study_figures import CATALOG
from meristem.train.hyperparameters import Recipe
from meristem.train.training_data import Data
from meristem.xla_flags import fuse_small_loops

WIDTH, DEPTH = 10, 10
PENALTY = 0.001
RATES = (0.0001, 0.0003, 0.001, 0.003)  # the paper takes the smallest that reaches zero error
GRID, LIMIT = 80, 1.15 * RADIUS  # of the discriminant: points along each axis, and the largest coordinate
ZERO = "zero_error_epoch"  # None where a run never had no error
PAPER: PaperValues = {
    "tunnel/easy": {"zero_error_epoch": 2, "soft_size": 2},
    "tunnel/medium": {"zero_error_epoch": 23, "soft_size": 10},
    "tunnel/difficult": {"zero_error_epoch": 91, "soft_size": 15},
    "budding/easy": {"zero_error_epoch": 2, "soft_size": 1, "hard_size": 1},
    "budding/medium": {"zero_error_epoch": 30, "soft_size": 2.2},
    "budding/difficult": {"zero_error_epoch": 125, "soft_size": 7},
}
EXPECTED_EPOCHS = {"easy": 160, "medium": 250, "difficult": 400, "classic": 900}  # to estimate the time left


@dataclass(frozen=True, kw_only=True)
class SpiralsOptions(Options):
    default_rate: ClassVar[float] = 0.003
    other_rates: ClassVar[Mapping[str, float]] = {"budding": 0.001}
    from_paper: ClassVar[tuple[str, ...]] = ("penalty",)

    task: tuple[str, ...] = choice_option(
        ("easy", "medium", "difficult"), TASKS, f"with commas, of {', '.join(TASKS)}", default_text="all but classic"
    )
    equal_rates: bool = option(False, "the same rate in all layers, the paper's ablation")
    select_rate: bool = option(
        False, "try rates one after another, by default the paper's four, keep the smallest that solves every task"
    )
    models: tuple[str, ...] = ("tunnel", "budding")
    seeds: int = 3
    penalty: tuple[float, ...] = (PENALTY,)

    def rates_of(self, model: str) -> tuple[float, ...]:
        return RATES if self.select_rate and self.rate is None else super().rates_of(model)


def plan(options: SpiralsOptions) -> Plan:
    recipe = Recipe(depth_decay=1.0) if options.equal_rates else Recipe()
    tasks = []
    for name in options.task:
        x, y = two_spirals(name)
        arrays = {"x": np.asarray(x), "y": np.asarray(y)}
        tasks.append(Task(name, Data(x, y), 1, recipe, WIDTH, DEPTH, EXPECTED_EPOCHS[name], arrays=arrays))
    return Plan(tasks, "Two spirals")


def discriminant(network: Network) -> Arrays:
    """Return the probability of the second class on a grid [y, x] that spans ± LIMIT."""
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
        Column("solved", lambda run: bool(run[ZERO]), average=lambda solved, digits: f"{sum(solved)}/{len(solved)}"),
        Column("zero error at epoch", lambda run: run[ZERO] or math.inf, paper=ZERO, line="zero error at epoch {}"),
        Column("final soft size", "soft_size", 1, paper="soft_size", line="soft size {}"),
        Column("peak", "peak_soft_size", 1),
        Column("hard size", "hard_size"),
        *PARAMETERS,
    ),
    averages="median (range)",
    average=median_and_range,
    pictures=CATALOG["two-spirals"],
    paper=PAPER,
    arrays=discriminant,
    setup=fuse_small_loops,
)
