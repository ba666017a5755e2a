"""Several labels per instance, at the paper's settings for MIRFLICKR, on any set of features and labels.

Three hundred units a layer, ten layers (tunnel, highway), Adam at 0.0003, batches of 32, a quarter of the inputs dropped, the
sum of binary cross-entropies, λ = 0.1 relative to the sum over a batch, so λ / 32 on our scale. Schedule and choice of the
model by validation macro-F1; test figures are those of the chosen model. Errors are wrong labels per instance.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from meristem.data.multilabel import multilabel
from meristem.data.parts import COLUMNS as STANDARDIZED, Parts
from meristem.experiments.columns import mean, mean_and_sd, parameters, percent
from meristem.experiments.models import MODELS
from meristem.experiments.option import files_option, names_option, whole_option
from meristem.experiments.options import THE_PAPERS, Options, dropouts_option, penalties_option, rates_option, seeds_option
from meristem.experiments.runs import Task
from meristem.experiments.study import Plan, Study
from meristem.experiments.summary import Record
from meristem.pictures.studies.catalog import CATALOG
from meristem.train.hyperparameters import Recipe
from meristem.train.training_data import Data

WIDTH, DEPTH = 300, 10
BATCH = 32
PENALTY = 0.1 / BATCH
LEARNING_RATE = 0.0003
INPUT_DROPOUT = 0.25
USUAL_EPOCHS = 120  # of a run, roughly: for the estimate of the time left, nothing else


@dataclass(frozen=True, kw_only=True)
class LabelOptions(Options):
    """What all studies of labels take. Ways to standardize are tried beside rates, penalties and shares of dropped inputs."""

    usual_rates: ClassVar[Mapping[str, float]] = dict.fromkeys(MODELS, LEARNING_RATE)

    input_dropout: tuple[float, ...] = dropouts_option(INPUT_DROPOUT, THE_PAPERS)
    standardize: tuple[str, ...] = names_option(
        ("numbers",),
        STANDARDIZED,
        "which features get mean 0 and sd 1: numbers, those that hold more than 0 and 1, or all; or both with a comma",
        older=("--standardise",),
    )
    rate: tuple[float, ...] | None = rates_option(usual_rates, THE_PAPERS)
    penalty: tuple[float, ...] = penalties_option(PENALTY, THE_PAPERS)

    def tasks(self, name: str, load: Callable[..., Parts], **known: Any) -> list[Task]:
        """A task, with its columns standardized in each of the ways that are asked for; `known` goes into its records."""
        return [task_of(name, load(columns=columns), standardized=columns, **known) for columns in self.standardize]


@dataclass(frozen=True, kw_only=True)
class TaggingOptions(LabelOptions):
    """What to run: every model on every file of the layout of `meristem.data.multilabel`."""

    data: tuple[Path, ...] = files_option("one or more .npz files")
    split: int = whole_option(0, "which fifth of the training part is for validation", least=0, metavar="SEED")
    seeds: int = seeds_option(3)

    def __post_init__(self) -> None:
        super().__post_init__()
        stems = [file.stem for file in self.data]
        if len(set(stems)) < len(stems):
            raise ValueError(f"--data holds two files of the same name ({', '.join(stems)}); rename one of them.")


def plan(options: TaggingOptions) -> Plan:
    """A task for each file."""
    each = [
        options.tasks(file.stem, partial(multilabel, file, split=options.split), split=options.split) for file in options.data
    ]
    return Plan([task for ways in each for task in ways], "Tagging", is_papers_data=False)


def task_of(name: str, parts: Parts, **known: Any) -> Task:
    """Features and labels as a task; `known` goes into its records."""
    recipe = Recipe(objective="multilabel", batch_size=BATCH, watch="macro_f1", select="macro_f1")
    data, test = Data(*parts.train, *parts.dev), Data(*parts.test)
    return Task(name, data, parts.train.y.shape[1], recipe, WIDTH, DEPTH, USUAL_EPOCHS, test, known)


def line(runs: list[Record]) -> str:
    """What came out of a model's runs on a task."""
    first, seconds = runs[0], sum(one["seconds"] for one in runs)
    dev, test = (mean_and_sd([one[f"{part}_macro_f1"] for one in runs], 1, 100) for part in ("dev", "test"))
    size = mean_and_sd([one["soft_size"] for one in runs], 1)
    return (
        f"{first['model']}, {first['task']}: macro-F1 {dev} % (validation), {test} % (test), soft size {size}, "
        f"{seconds:.0f} s, {first['steps_per_second']:,} steps/s"
    )


COLUMNS = (
    percent("macro-F1, validation", "dev_macro_f1", 1, paper="dev_macro_f1"),
    percent("training", "train_macro_f1", 1, paper="train_macro_f1"),
    percent("test", "test_macro_f1", 1),
    mean("errors per instance, validation", "dev_error", 3, paper="dev_error"),
    mean("test", "test_error", 3),
    mean("kept epoch", "best_epoch", 0),
    mean("its soft size", "best_soft_size", 1),
    mean("epochs", "epochs", 0),
    mean("final soft size", "soft_size", 1),
    mean("peak", "peak_soft_size", 1),
    mean("hard size", "hard_size", 1),
    *parameters(mean),
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
    line=line,
    pictures=CATALOG["tagging"],
)
