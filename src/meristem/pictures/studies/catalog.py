"""The experiments of which pictures are drawn: a table, experiment → what its files must hold, and which pictures there are."""

import math
from collections.abc import Callable
from functools import partial

from meristem.data.spirals import TASKS
from meristem.pictures.studies.learning import learning_pictures
from meristem.pictures.studies.measures import ERROR, MACRO_F1, WRONG_LABELS, Measure, value_of
from meristem.pictures.studies.solving import solving_pictures, zero_epoch
from meristem.pictures.studies.study import Experiment, Run

SIZES = {"layer_sizes": 2, "hard_size": 1, "stage": 1}


def _rank(field: str) -> Callable[[Run], float]:
    """By a figure; a run without one comes last."""

    def rank(run: Run) -> float:
        value = value_of(run, field)
        return math.inf if value is None else value

    return rank


def _learning(
    subject: str, tasks: dict[str, str], measures: list[Measure], scores: list[str], apart: bool = False
) -> Experiment:
    """An experiment with training, validation and test parts; the last of its measures selects a model."""
    chosen = f"dev_{measures[-1].name}"
    return Experiment(
        subject=subject,
        tasks=tasks,
        values=("model", "task", "seed", "best_epoch", "soft_size"),
        nulls=(chosen, *(f"test_{measure.name}" for measure in measures)),
        arrays={part + measure.name: 1 for measure in measures for part in ("", "dev_")} | SIZES,
        tried=("model", "task", "sd", "chosen", chosen),
        rank=_rank(chosen),
        pictures=partial(learning_pictures, measures=measures, scores=scores, apart=apart),
    )


EXPERIMENTS = {
    "two-spirals": Experiment(
        subject="two spirals",
        tasks={task: task for task in TASKS},
        values=("model", "task", "seed", "soft_size"),
        nulls=("zero_error_epoch",),
        arrays={"error": 1} | SIZES,
        points={"x": 2, "y": 1},
        rank=zero_epoch,
        pictures=solving_pictures,
    ),
    # Two classes are so much easier than ten that errors on one scale could not be read.
    "mnist": _learning("MNIST", {"two": "two classes (0 or 1)", "ten": "ten classes"}, [ERROR], ["test"], apart=True),
    "mirflickr": _learning(
        "MIRFLICKR", {n: f"{n} labels" for n in ("10", "24", "38")}, [WRONG_LABELS, MACRO_F1], ["dev", "test"]
    ),
    "tagging": _learning("multi-label tagging", {}, [WRONG_LABELS, MACRO_F1], ["dev", "test"]),
}
