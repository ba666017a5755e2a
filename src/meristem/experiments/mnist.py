"""The paper's study on MNIST: the ten digits, and 0 versus 1, with one set of hyper-parameters; or other images in such files.

A hundred units a layer, ten layers (tunnel, highway), Adam at 0.0003, a quarter of the inputs dropped, λ = 0.001 relative to
the sum over a batch of 32, so λ / 32 on our scale. Schedule and best epoch by validation error. The paper's results are shown
for MNIST only, not for other images in such files (Fashion-MNIST, KMNIST).
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from meristem.data.mnist import FILES, TASKS, Images, read_images, split_images
from meristem.experiments.options import Options, choice_option, folder_option
from meristem.experiments.study import PARAMETERS, Column, PaperValues, Plan, Record, Study, Task
from meristem.pictures.studies.study_figures import CATALOG
from meristem.train.hyperparameters import Recipe
from meristem.train.training_data import Data

WIDTH, DEPTH = 100, 10
BATCH = 32
PENALTY = 0.001 / BATCH
LEARNING_RATE = 0.0003
INPUT_DROPOUT = 0.25
PAPER: PaperValues = {
    "tunnel/ten": {"test_error": 0.0167, "epochs": 175, "peak_first_layer": 30},
    "budding/ten": {"test_error": 0.0184, "epochs": 125, "soft_size": 1.2},
    "highway/ten": {"test_error": 0.0283},
    "tunnel/two": {"epochs": 40, "peak_first_layer": 2},
    "budding/two": {"epochs": 40, "soft_size": 1, "hard_size": 1},
    "highway/two": {"test_error": 0.0043},
}
EXPECTED_EPOCHS = {"ten": 180, "two": 90}  # to estimate the time left


@dataclass(frozen=True, kw_only=True)
class MnistOptions(Options):
    default_rate: ClassVar[float] = LEARNING_RATE
    from_paper: ClassVar[tuple[str, ...]] = ("rate", "penalty")

    task: tuple[str, ...] = choice_option(("ten",), TASKS, "ten (all classes), two (0 versus 1), or both with a comma")
    data: Path | None = folder_option("the four IDX files, of MNIST or of other images, gzipped or not")  # noqa: RUF009
    penalty: tuple[float, ...] = (PENALTY,)
    input_dropout: tuple[float, ...] = (INPUT_DROPOUT,)


def plan(options: MnistOptions) -> Plan:
    images = read_images(options.data)
    tasks = [task_of(images, name) for name in options.task]
    md5 = {file.removesuffix(".gz"): content for file, content in zip(FILES, images.md5, strict=True)}
    fields = {"data": {"folder": images.folder, "is_mnist": images.is_mnist, "md5": md5}}
    if images.is_mnist:
        return Plan(tasks, "MNIST", summary_fields=fields)
    title, labels = f"IDX images in {images.folder}", STUDY.pictures.tasks
    if images.n_classes != 10:
        labels = labels | {"ten": f"{images.n_classes} classes"}
    pictures = replace(STUDY.pictures, subject=title, tasks=labels)
    return Plan(tasks, title, is_papers_data=False, pictures=pictures, summary_fields=fields)


def task_of(images: Images, name: str) -> Task:
    """Return the task "ten", all classes with an output for each, or "two", 0 versus 1 with one output."""
    parts = split_images(images, name)
    n_out, objective = (1, "binary") if name == "two" else (images.n_classes, "multiclass")
    recipe = Recipe(objective=objective, batch_size=BATCH, watch="error", select="error")
    data, test = Data(*parts.train, *parts.dev), Data(*parts.test)
    return Task(name, data, n_out, recipe, WIDTH, DEPTH, EXPECTED_EPOCHS[name], test)


def _size_digits(run: Record) -> int:
    return 1 if run["layer_sizes"] else 2  # a tree has few nodes


STUDY = Study(
    name="mnist",
    help="handwritten digits: ten classes, or 0 versus 1; or other images in such files",
    description="Train on MNIST; show test errors and sizes beside the paper's. An epoch takes about two seconds on two "
    "cores, a run of ten classes some 150 epochs; a GPU trains all seeds of a model in about a minute. Any other images in "
    "four IDX files of the same names do, too (Fashion-MNIST, KMNIST).",
    example="--task two --models tunnel,budding --seeds 2 --data DIR",
    options=MnistOptions,
    plan=plan,
    columns=(
        Column("test error, %", "test_error", 2, percent=True, paper="test_error", line="test error {} %"),
        Column("validation", "dev_error", 2, percent=True),
        Column("training", "train_error", 2, percent=True),
        Column("epochs", "epochs", paper="epochs"),
        Column("first layer's peak", lambda run: (run["peak_layer_sizes"] or [None])[0], 1, paper="peak_first_layer"),
        Column("final soft size", "soft_size", _size_digits, paper="soft_size", line="soft size {}"),
        Column("peak", "peak_soft_size", _size_digits),
        Column("hard size", "hard_size", 1),
        *PARAMETERS,
    ),
    pictures=CATALOG["mnist"],
    paper=PAPER,
)
