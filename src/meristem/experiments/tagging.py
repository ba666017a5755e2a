"""Several labels per instance, at the paper's settings for MIRFLICKR, on any set of features and labels.

Three hundred units a layer, ten layers (tunnel, highway), Adam at 0.0003, batches of 32, a quarter of the inputs dropped, the
sum of binary cross-entropies, λ = 0.1 relative to the sum over a batch, so λ / 32 on our scale. Schedule and best epoch by
validation macro-F1. Errors are wrong labels per instance.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from meristem.data.multilabel import multilabel
from meristem.data.parts import COLUMNS as STANDARDIZED, Parts
from meristem.experiments.options import (
    FROM_PAPER,
    Options,
    dropouts_option,
    files_option,
    integer_option,
    names_option,
    penalties_option,
    rates_option,
    seeds_option,
)
from meristem.experiments.result_table import mean_and_sd, mean_column, parameter_columns, percent_column, values_of
from meristem.experiments.study import Plan, Study
from meristem.experiments.study_training import MODELS, Task
from meristem.experiments.summary import Record
from meristem.pictures.studies.study_figures import CATALOG
from meristem.train.hyperparameters import Recipe
from meristem.train.training_data import Data

WIDTH, DEPTH = 300, 10
BATCH = 32
PENALTY = 0.1 / BATCH
LEARNING_RATE = 0.0003
INPUT_DROPOUT = 0.25
EXPECTED_EPOCHS = 120  # to estimate the time left


@dataclass(frozen=True, kw_only=True)
class LabelOptions(Options):
    """Options of all multi-label studies; standardization is tried along with rates, penalties and input dropouts."""

    default_rates: ClassVar[Mapping[str, float]] = dict.fromkeys(MODELS, LEARNING_RATE)

    input_dropout: tuple[float, ...] = dropouts_option(INPUT_DROPOUT, FROM_PAPER)
    standardize: tuple[str, ...] = names_option(
        ("numbers",),
        STANDARDIZED,
        "which features get mean 0 and sd 1: numbers, those that hold more than 0 and 1, or all; or both with a comma",
        old_spellings=("--standardise",),
    )
    rate: tuple[float, ...] | None = rates_option(default_rates, FROM_PAPER)
    penalty: tuple[float, ...] = penalties_option(PENALTY, FROM_PAPER)

    def tasks(self, name: str, load: Callable[..., Parts], **fields: Any) -> list[Task]:
        """Return a task for each requested standardization; `fields` go into its records."""
        return [task_of(name, load(columns=columns), standardized=columns, **fields) for columns in self.standardize]


@dataclass(frozen=True, kw_only=True)
class TaggingOptions(LabelOptions):
    """Options of this study: every model is trained on every file."""

    data: tuple[Path, ...] = files_option("one or more .npz files")
    split: int = integer_option(0, "which fifth of the training part is for validation", least=0, metavar="SEED")
    seeds: int = seeds_option(3)

    def __post_init__(self) -> None:
        super().__post_init__()
        stems = [file.stem for file in self.data]
        if len(set(stems)) < len(stems):
            raise ValueError(f"--data holds two files of the same name ({', '.join(stems)}); rename one of them.")


def plan(options: TaggingOptions) -> Plan:
    tasks = []
    for file in options.data:
        tasks += options.tasks(file.stem, partial(multilabel, file, split=options.split), split=options.split)
    return Plan(tasks, "Tagging", is_papers_data=False)


def task_of(name: str, parts: Parts, **fields: Any) -> Task:
    """Return features and labels as a task; `fields` go into its records."""
    recipe = Recipe(objective="multilabel", batch_size=BATCH, watch="macro_f1", select="macro_f1")
    data, test = Data(*parts.train, *parts.dev), Data(*parts.test)
    return Task(name, data, parts.train.y.shape[1], recipe, WIDTH, DEPTH, EXPECTED_EPOCHS, test, fields)


def summary_line(runs: list[Record]) -> str:
    first, seconds = runs[0], sum(run["seconds"] for run in runs)
    dev, test = (mean_and_sd(values_of(runs, f"{part}_macro_f1"), 1, 100) for part in ("dev", "test"))
    size = mean_and_sd(values_of(runs, "soft_size"), 1)
    return (
        f"{first['model']}, {first['task']}: macro-F1 {dev} % (validation), {test} % (test), soft size {size}, "
        f"{seconds:.0f} s, {first['steps_per_second']:,} steps/s"
    )


COLUMNS = (
    percent_column("macro-F1, validation", "dev_macro_f1", 1, paper="dev_macro_f1"),
    percent_column("training", "train_macro_f1", 1, paper="train_macro_f1"),
    percent_column("test", "test_macro_f1", 1),
    mean_column("errors per instance, validation", "dev_error", 3, paper="dev_error"),
    mean_column("test", "test_error", 3),
    mean_column("kept epoch", "best_epoch", 0),
    mean_column("its soft size", "best_soft_size", 1),
    mean_column("epochs", "epochs", 0),
    mean_column("final soft size", "soft_size", 1),
    mean_column("peak", "peak_soft_size", 1),
    mean_column("hard size", "hard_size", 1),
    *parameter_columns(mean_column),
)
STUDY = Study(
    name="tagging",
    help="the study of photographs' labels on multi-label data of your own",
    description="Train on .npz files with X_train, Y_train, X_test, Y_test (labels as 0 and 1) and labels (their names), "
    "at the paper's settings for MIRFLICKR.",
    example="--data scene.npz corel5k.npz --seeds 2",
    options=TaggingOptions,
    plan=plan,
    columns=COLUMNS,
    averages="mean ± sd, macro-F1 in %",
    summary_line=summary_line,
    pictures=CATALOG["tagging"],
)
