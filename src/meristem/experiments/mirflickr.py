"""The paper's study on MIRFLICKR: photographs with 38 labels, and the ten that these collapse to.

The settings are those of `tagging`. The paper's features are 3,857 numbers of each image (`features="images"`, from the
released archive); without it, the users' tags (`"tags"`, 24 or 10 labels) are the same photographs seen through words, and
the paper's values, which are of the images, do not stand beside them.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from meristem.data.mirflickr import FEATURES, SPLITS, TASKS, mirflickr
from meristem.data.parts import COLUMNS
from meristem.experiments.runs import MODELS, Result, Setting, check_names, check_study, train_all
from meristem.experiments.tagging import INPUT_DROPOUT, LEARNING_RATE, PENALTY, Papers, line, variants
from meristem.show.progress import Progress
from meristem.train.loop import MAX_EPOCHS

PAPER: Papers = {
    "highway/10": {"train_macro_f1": 0.9895, "dev_macro_f1": 0.5556, "train_error": 0.0448, "dev_error": 1.685},
    "tunnel/10": {"train_macro_f1": 0.9715, "dev_macro_f1": 0.5686},
    "budding/10": {"train_macro_f1": 0.9975, "dev_macro_f1": 0.5545},
    "highway/38": {"train_macro_f1": 0.9716, "dev_macro_f1": 0.4104, "train_error": 0.2233, "dev_error": 3.687},
    "tunnel/38": {"train_macro_f1": 0.9570, "dev_macro_f1": 0.4391},
    "budding/38": {"train_macro_f1": 0.9956, "dev_macro_f1": 0.4339},
}
USUAL_TASKS = {"images": ("10", "38"), "tags": ("10", "24")}


@dataclass(frozen=True)
class Study:
    """What to run; `data` is the folder of the archive or of the tags' file, None: where they are usually found.

    Of several rates, penalties, shares of dropped inputs and ways to standardise each model keeps one of each by its
    validation macro-F1.
    """

    features: str = "images"
    task: tuple[str, ...] = ()  # both of the features' usual tasks
    models: tuple[str, ...] = ("tunnel", "budding", "highway")
    seeds: int = 1
    split: int = 1
    rate: tuple[float, ...] = (LEARNING_RATE,)
    penalty: tuple[float, ...] = (PENALTY,)
    input_dropout: tuple[float, ...] = (INPUT_DROPOUT,)
    standardise: tuple[str, ...] = ("numbers",)
    choose: str = "best"
    data: Path | None = None
    max_epochs: int = MAX_EPOCHS

    def __post_init__(self) -> None:
        check_names("features", [self.features], FEATURES)
        if not self.task:
            object.__setattr__(self, "task", USUAL_TASKS[self.features])
        check_study(self, models=list(MODELS), task=TASKS, standardise=COLUMNS)
        if self.split not in SPLITS:
            raise ValueError(f"--split={self.split} must be one of 1, 2, 3, 4, 5.")


def run(study: Study, progress: Progress) -> Result:
    """Train everything the study asks for."""
    known = {"features": study.features, "split": study.split}
    tasks = [
        task
        for name in study.task
        for task in variants(name, partial(mirflickr, name, study.features, study.data, split=study.split), study, **known)
    ]
    setting = Setting(study.rate, study.penalty, study.seeds, study.max_epochs, study.choose)
    return train_all(study.models, tasks, setting, progress, line)


def papers(features: str) -> Papers:
    """The paper's values, which are of the images alone."""
    return PAPER if features == "images" else {}
