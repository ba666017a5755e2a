"""Several labels per instance, at the paper's settings for MIRFLICKR, on any set of features and labels.

Three hundred units a layer, ten layers (tunnel, highway), Adam at 0.0003, batches of 32, a quarter of the inputs dropped, the
sum of binary cross-entropies, λ = 0.1 relative to the sum over a batch, so λ / 32 on our scale. Schedule and choice of the
model by validation macro-F1; test figures are those of the chosen model. Errors are wrong labels per instance.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from meristem.data.multilabel import multilabel
from meristem.data.parts import COLUMNS, Parts
from meristem.experiments.runs import MODELS, Result, Setting, Task, check_study, train_all
from meristem.experiments.summary import Record, groups, mean_and_sd, number
from meristem.show.progress import Progress
from meristem.train.loop import MAX_EPOCHS
from meristem.train.samples import Data
from meristem.train.step import Recipe

WIDTH, DEPTH = 300, 10
BATCH = 32
PENALTY = 0.1 / BATCH
LEARNING_RATE = 0.0003
INPUT_DROPOUT = 0.25
USUAL_EPOCHS = 120  # of a run, roughly: for the estimate of the time left, nothing else
Papers = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Study:
    """What to run: every model on every file of the layout of `meristem.data.multilabel`.

    Of several rates, penalties, shares of dropped inputs and ways to standardise each model keeps one of each by its
    validation macro-F1.
    """

    data: tuple[Path, ...]
    models: tuple[str, ...] = ("tunnel", "budding", "highway")
    seeds: int = 3
    rate: tuple[float, ...] = (LEARNING_RATE,)
    penalty: tuple[float, ...] = (PENALTY,)
    input_dropout: tuple[float, ...] = (INPUT_DROPOUT,)
    standardise: tuple[str, ...] = ("numbers",)
    choose: str = "best"
    split: int = 0
    max_epochs: int = MAX_EPOCHS

    def __post_init__(self) -> None:
        check_study(self, models=list(MODELS), standardise=COLUMNS)
        names = [file.stem for file in self.data]
        if len(set(names)) < len(names):
            raise ValueError(f"--data holds two files of the same name ({', '.join(names)}); rename one of them.")


def run(study: Study, progress: Progress) -> Result:
    """Train everything the study asks for."""
    tasks = [
        task
        for file in study.data
        for task in variants(file.stem, partial(multilabel, file, split=study.split), study, split=study.split)
    ]
    setting = Setting(study.rate, study.penalty, study.seeds, study.max_epochs, study.choose)
    return train_all(study.models, tasks, setting, progress, line)


def variants(name: str, load: Callable[..., Parts], study: Any, **known: object) -> list[Task]:
    """A task with its inputs prepared in each of the ways that a study asks for: columns standardised, shares dropped."""
    return [
        task_of(name, parts, share, standardised=columns, **known)
        for columns in study.standardise
        for parts in [load(columns=columns)]
        for share in study.input_dropout
    ]


def task_of(name: str, parts: Parts, input_dropout: float, **known: object) -> Task:
    """Features and labels as a task; `known` goes into its records."""
    recipe = Recipe(objective="multilabel", batch_size=BATCH, input_dropout=input_dropout, watch="macro_f1", select="macro_f1")
    data, test = Data(*parts.train, *parts.dev), Data(*parts.test)
    known = {"input_dropout": input_dropout} | known
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


def table(runs: list[Record], papers: Papers) -> tuple[list[str], list[list[str]]]:
    """Ours, mean ± sd over seeds, beside the paper's; column names and rows."""
    columns = [
        "model",
        "task",
        "macro-F1, validation",
        "paper",
        "training",
        "paper",
        "test",
        "errors per instance, validation",
        "paper",
        "test",
        "kept epoch",
        "its soft size",
        "epochs",
        "final soft size",
        "peak",
        "hard size",
        "live parameters",
    ]
    rows = []
    for model, task, group in groups(runs):
        paper = papers.get(f"{model}/{task}", {})
        f1 = {part: mean_and_sd([one[f"{part}_macro_f1"] for one in group], 1, 100) for part in ("dev", "train", "test")}
        errors = {part: mean_and_sd([one[f"{part}_error"] for one in group], 3) for part in ("dev", "test")}
        rows.append(
            [
                model,
                task,
                f1["dev"],
                number(paper.get("dev_macro_f1"), 1, 100),
                f1["train"],
                number(paper.get("train_macro_f1"), 1, 100),
                f1["test"],
                errors["dev"],
                number(paper.get("dev_error")),
                errors["test"],
                mean_and_sd([one["best_epoch"] for one in group], 0),
                mean_and_sd([one["best_soft_size"] for one in group], 1),
                mean_and_sd([one["epochs"] for one in group], 0),
                mean_and_sd([one["soft_size"] for one in group], 1),
                mean_and_sd([one["peak_soft_size"] for one in group], 1),
                mean_and_sd([one["hard_size"] for one in group], 1),
                mean_and_sd([one["live_parameters"] for one in group], 0),
            ]
        )
    return columns, rows
