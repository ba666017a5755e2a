"""The paper's study on MNIST: the ten digits, and 0 versus 1, with one set of hyper-parameters.

A hundred units a layer, ten layers (tunnel, highway), Adam at 0.0003, a quarter of the inputs dropped, λ = 0.001 relative to
the sum over a batch of 32, so λ / 32 on our scale. Schedule and choice of the model by validation error; test figures are
those of the chosen model. The paper's results stand here at the top; ours are measured beside them.
"""

from dataclasses import dataclass
from pathlib import Path

from meristem.data.mnist import TASKS, mnist
from meristem.experiments.runs import MODELS, Result, Setting, Task, check_study, train_all
from meristem.experiments.summary import Record, groups, mean_and_sd, number
from meristem.show.progress import Progress
from meristem.train.loop import MAX_EPOCHS
from meristem.train.samples import Data
from meristem.train.step import Recipe

WIDTH, DEPTH = 100, 10
BATCH = 32
PENALTY = 0.001 / BATCH
LEARNING_RATE = 0.0003
INPUT_DROPOUT = 0.25
OUTPUTS = {"ten": (10, "multiclass"), "two": (1, "binary")}
PAPER: dict[str, dict[str, float]] = {
    "tunnel/ten": {"test_error": 0.0167, "epochs": 175, "peak_first_layer": 30},
    "budding/ten": {"test_error": 0.0184, "epochs": 125, "soft_size": 1.2},
    "highway/ten": {"test_error": 0.0283},
    "tunnel/two": {"epochs": 40, "peak_first_layer": 2},
    "budding/two": {"epochs": 40, "soft_size": 1, "hard_size": 1},
    "highway/two": {"test_error": 0.0043},
}
# Epochs that a run takes, roughly: for the estimate of the time left, nothing else.
USUAL_EPOCHS = {"ten": 180, "two": 90}


@dataclass(frozen=True)
class Study:
    """What to run; `data` is the folder with the four files, None: where they are usually found.

    Of several rates and penalties each model keeps one of each by its validation error.
    """

    models: tuple[str, ...] = ("tunnel", "budding", "highway")
    task: tuple[str, ...] = ("ten",)
    seeds: int = 1
    rate: tuple[float, ...] = (LEARNING_RATE,)
    penalty: tuple[float, ...] = (PENALTY,)
    choose: str = "best"
    data: Path | None = None
    max_epochs: int = MAX_EPOCHS

    def __post_init__(self) -> None:
        check_study(self, models=list(MODELS), task=TASKS)


def run(study: Study, progress: Progress) -> Result:
    """Train everything the study asks for."""
    tasks = [load(name, study.data) for name in study.task]
    setting = Setting(study.rate, study.penalty, study.seeds, study.max_epochs, study.choose)
    return train_all(study.models, tasks, setting, progress, _line)


def load(name: str, folder: Path | None) -> Task:
    """One of the two tasks, with its data."""
    parts = mnist(name, folder)
    n_out, objective = OUTPUTS[name]
    recipe = Recipe(objective=objective, batch_size=BATCH, input_dropout=INPUT_DROPOUT, watch="error", select="error")
    data, test = Data(*parts.train, *parts.dev), Data(*parts.test)
    return Task(name, data, n_out, recipe, WIDTH, DEPTH, USUAL_EPOCHS[name], test)


def _line(runs: list[Record]) -> str:
    first, seconds = runs[0], sum(one["seconds"] for one in runs)
    error = mean_and_sd([one["test_error"] for one in runs], 2, 100)
    size = mean_and_sd([one["soft_size"] for one in runs], 1)
    return (
        f"{first['model']}, {first['task']}: test error {error} %, soft size {size}, {seconds:.0f} s, "
        f"{first['steps_per_second']:,} steps/s"
    )


def table(runs: list[Record]) -> tuple[list[str], list[list[str]]]:
    """Ours, mean ± sd over seeds, beside the paper's; column names and rows."""
    columns = [
        "model",
        "task",
        "test error, %",
        "paper",
        "validation",
        "training",
        "epochs",
        "paper",
        "first layer's peak",
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
        errors = [mean_and_sd([one[f"{part}_error"] for one in group], 2, 100) for part in ("test", "dev", "train")]
        first = [one["peak_layer_sizes"][0] if one["peak_layer_sizes"] else None for one in group]
        rows.append(
            [
                model,
                task,
                errors[0],
                number(paper.get("test_error"), 2, 100),
                *errors[1:],
                mean_and_sd([one["epochs"] for one in group], 0),
                number(paper.get("epochs")),
                mean_and_sd(first, 1),
                number(paper.get("peak_first_layer")),
                mean_and_sd([one["soft_size"] for one in group], 1 if first[0] is not None else 2),
                number(paper.get("soft_size")),
                mean_and_sd([one["peak_soft_size"] for one in group], 1 if first[0] is not None else 2),
                mean_and_sd([one["hard_size"] for one in group], 1),
                mean_and_sd([one["live_parameters"] for one in group], 0),
            ]
        )
    return columns, rows
