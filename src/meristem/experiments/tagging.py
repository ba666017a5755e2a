"""Several labels per instance, at the paper's settings for MIRFLICKR, on any set of features and labels.

Three hundred units a layer, ten layers (tunnel, highway), Adam at 0.0003, batches of 32, a quarter of the inputs dropped, the
sum of binary cross-entropies, λ = 0.1 relative to the sum over a batch, so λ / 32 on our scale. Schedule and best epoch by
validation macro-F1. Errors are wrong labels per instance.
"""

from collections.abc import Callable
from dataclasses import MISSING, dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from meristem.data.parts import COLUMNS as STANDARDIZED, Parts, multilabel
from meristem.experiments.options import Options, choice_option, integer_option, numbers_option, option
from meristem.experiments.study import PARAMETERS, Column, Plan, Study, Task
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

    default_rate: ClassVar[float] = LEARNING_RATE
    from_paper: ClassVar[tuple[str, ...]] = ("rate", "penalty", "input_dropout")

    input_dropout: tuple[float, ...] = numbers_option(
        (INPUT_DROPOUT,),
        "inputs set to 0 in each step, one share or several with commas",
        "of at least 0 and below 1",
        lambda v: 0 <= v < 1,
        metavar="SHARE",
    )
    standardize: tuple[str, ...] = choice_option(
        ("numbers",),
        STANDARDIZED,
        "which features get mean 0 and sd 1: numbers, those that hold more than 0 and 1, or all; or both with a comma",
    )
    penalty: tuple[float, ...] = (PENALTY,)

    def tasks(self, name: str, load: Callable[..., Parts], **fields: Any) -> list[Task]:
        """Return a task for each requested standardization; `fields` go into its records."""
        recipe, tasks = Recipe(objective="multilabel", batch_size=BATCH, watch="macro_f1", select="macro_f1"), []
        for columns in self.standardize:
            parts = load(columns=columns)
            data, test, n_out = Data(*parts.train, *parts.dev), Data(*parts.test), parts.train.y.shape[1]
            its = {"standardized": columns, **fields}
            tasks.append(Task(name, data, n_out, recipe, WIDTH, DEPTH, EXPECTED_EPOCHS, test, its))
        return tasks


@dataclass(frozen=True, kw_only=True)
class TaggingOptions(LabelOptions):
    """Options of this study: every model is trained on every file."""

    data: tuple[Path, ...] = option(MISSING, "one or more .npz files", type=Path, metavar="FILE", nargs="+")
    split: int = integer_option(0, "which fifth of the training part is for validation", least=0, metavar="SEED")
    seeds: int = 3

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


COLUMNS = (
    Column("macro-F1, validation", "dev_macro_f1", 1, percent=True, paper="dev_macro_f1", line="macro-F1 {} % (validation)"),
    Column("training", "train_macro_f1", 1, percent=True, paper="train_macro_f1"),
    Column("test", "test_macro_f1", 1, percent=True, line="{} % (test)"),
    Column("errors per instance, validation", "dev_error", 3, paper="dev_error"),
    Column("test", "test_error", 3),
    Column("kept epoch", "best_epoch"),
    Column("its soft size", "best_soft_size", 1),
    Column("epochs", "epochs"),
    Column("final soft size", "soft_size", 1, line="soft size {}"),
    Column("peak", "peak_soft_size", 1),
    Column("hard size", "hard_size", 1),
    *PARAMETERS,
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
    pictures=CATALOG["tagging"],
)
