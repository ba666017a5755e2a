"""The paper's study on MIRFLICKR: photographs with 38 labels, and the ten that these collapse to.

The settings are those of `tagging`. The paper's features are 3,857 numbers of each image (`features="images"`, from the
released archive). The users' tags of the same photographs (`"tags"`, 24 or 10 labels) are not compared with the paper's values.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from meristem.data.mirflickr import FEATURES, SPLITS, TASKS, mirflickr
from meristem.experiments import tagging
from meristem.experiments.options import choice_option, folder_option
from meristem.experiments.study import PaperValues, Plan, Study
from meristem.pictures.studies.study_figures import CATALOG

PAPER: PaperValues = {
    "highway/10": {"train_macro_f1": 0.9895, "dev_macro_f1": 0.5556, "train_error": 0.0448, "dev_error": 1.685},
    "tunnel/10": {"train_macro_f1": 0.9715, "dev_macro_f1": 0.5686},
    "budding/10": {"train_macro_f1": 0.9975, "dev_macro_f1": 0.5545},
    "highway/38": {"train_macro_f1": 0.9716, "dev_macro_f1": 0.4104, "train_error": 0.2233, "dev_error": 3.687},
    "tunnel/38": {"train_macro_f1": 0.9570, "dev_macro_f1": 0.4391},
    "budding/38": {"train_macro_f1": 0.9956, "dev_macro_f1": 0.4339},
}
DEFAULT_TASKS = {"images": ("10", "38"), "tags": ("10", "24")}


@dataclass(frozen=True, kw_only=True)
class MirflickrOptions(tagging.LabelOptions):
    features: str = choice_option("images", FEATURES, "images, the paper's, or tags")
    task: tuple[str, ...] | None = choice_option(
        None, TASKS, "how many labels, with commas, of 38, 24 and 10", default_text="10,38 for images, 10,24 for tags"
    )
    split: int = choice_option(1, SPLITS, "which split", metavar="1…5")
    data: Path | None = folder_option("the unpacked archive, or the tags' file")  # noqa: RUF009


def plan(options: MirflickrOptions) -> Plan:
    features, split, tasks = options.features, options.split, []
    for task in options.task or DEFAULT_TASKS[features]:
        load = partial(mirflickr, task, features, options.data, split=split)
        tasks += options.tasks(task, load, features=features, split=split)
    return Plan(tasks, f"MIRFLICKR, {features}, split {split}", is_papers_data=features == "images")


STUDY = Study(
    name="mirflickr",
    help="photographs with several labels each",
    description="Train on MIRFLICKR-25k, on the paper's image features or on the users' tags; show macro-F1, errors per "
    "instance and sizes.",
    example="--features tags --task 10,24 --seeds 2 --data DIR",
    options=MirflickrOptions,
    plan=plan,
    columns=tagging.COLUMNS,
    averages="mean ± sd, macro-F1 in %",
    pictures=CATALOG["mirflickr"],
    paper=PAPER,
)
