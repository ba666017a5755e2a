"""One model trained on tasks at several settings with several seeds, its test measures, and the records of it.

    train("tunnel", task, trials, progress) → [(record, run), …], one per setting and seed
    train_model("tunnel", tasks, trials, progress) → a Result with the setting that it keeps on each task

All members of a task train as one population. The network of the best validation epoch is tested; nothing else sees the test
part. A `Trainer` runs the training of a population, with checkpoints (study_checkpoints.py) or without.
"""

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from typing import Any, NamedTuple

import jax
import numpy as np

from meristem.experiments.setting_selection import describe_selection, select_setting
from meristem.experiments.summary import HISTORY_FIELDS, Record, record
from meristem.nn import Network
from meristem.nn.network import BODIES
from meristem.show.measures import LOSS, MACRO_F1, Measure, error_measure
from meristem.show.progress import Progress
from meristem.train.callbacks import Watcher, WatcherGroup
from meristem.train.epoch import steps_per_epoch
from meristem.train.hyperparameters import Recipe
from meristem.train.loop import fit, seed_keys
from meristem.train.metrics import Measures, evaluate
from meristem.train.run import Run
from meristem.train.training_data import Data, prepare

PATH_FIELDS = [
    *("model", "task", "seed", "penalty", "learning_rate", "input_dropout", "epochs", "best_epoch"),
    *("train_error", "dev_error", "test_error", "best_soft_size", "n_parameters"),
]
Arrays = Mapping[str, np.ndarray]
Train = Callable[[list[Watcher]], Run]
Trainer = Callable[[str, str, Train], tuple[Run, float]]  # of a model on a task: the run, and its seconds


class Model(NamedTuple):
    """A kind of network."""

    body: str
    is_penalized: bool

    def create(self, n_in: int, n_out: int, *, width: int, depth: int, learns_width: bool = False, key: object) -> Network:
        """Return a new network; `depth` is for bodies with a fixed number of layers."""
        options: dict[str, Any] = {"depth": depth} if "depth" in signature(BODIES[self.body]).parameters else {}
        size: dict[str, Any] = {"width": "auto", "max_width": width} if learns_width else {"width": width}
        return Network.create(self.body, n_in, n_out, **size, key=key, **options)


MODELS = {
    "tunnel": Model("tunnel", is_penalized=True),
    "budding": Model("budding", is_penalized=True),
    "highway": Model("highway", is_penalized=False),
    "highway-penalized": Model("highway", is_penalized=True),
}


@dataclass(frozen=True)
class Task:
    """What a network is trained on, and how."""

    name: str
    data: Data
    n_out: int
    recipe: Recipe
    width: int
    depth: int  # of bodies with a fixed number of layers
    expected_epochs: int  # of one seed, to estimate the time left
    test: Data | None = None  # its x and y
    record_fields: Record = field(default_factory=dict)  # further values of its records: features, split
    arrays: Arrays = field(default_factory=dict)  # further arrays of history.npz, below data/
    learns_width: bool = False  # up to `width`

    @property
    def measure(self) -> Measure:
        """The measure that selects a model's best epoch, and then its setting."""
        error = error_measure(self.recipe.task.error_name, is_share=self.recipe.task.error_is_share)
        return {"error": error, "macro_f1": MACRO_F1, "loss": LOSS}[self.recipe.select]

    @property
    def selection_part(self) -> str:
        return "training" if self.data.dev_x is None else "validation"


class Member(NamedTuple):
    """The settings of one network of a population."""

    input_dropout: float
    learning_rate: float
    penalty: float
    seed: int


@dataclass(frozen=True)
class Trials:
    """What is tried of a model: every rate with every penalty and input dropout, `seeds` times."""

    rates: tuple[float, ...]
    penalties: tuple[float, ...]
    seeds: int
    max_epochs: int
    dropouts: tuple[float, ...] = (0.0,)
    choose: str = "best"  # see setting_selection.py
    budget: int | None = None  # the most parameters, in place of a penalty
    is_path: bool = False  # whether the records of all members are stored, for the figure of error against size

    def members(self, model: str) -> list[Member]:
        """Return the settings of each network; models that are not penalized have a penalty of 0."""
        penalties = self.penalties if MODELS[model].is_penalized else (0.0,)
        return [Member(*values) for values in itertools.product(self.dropouts, self.rates, penalties, range(self.seeds))]

    def member_settings(self, members: Sequence[Member]) -> dict[int, dict[str, float]]:
        """Return the settings of each network for watchers; with a budget the penalty is learned, so it is left out."""
        return {
            m: {"dropout": member.input_dropout, "learning_rate": member.learning_rate, "seed": member.seed}
            | ({"penalty": member.penalty} if self.budget is None else {})
            for m, member in enumerate(members)
        }


@dataclass
class Result:
    """Records and further lists of records for summary.json, and arrays for history.npz."""

    runs: list[Record] = field(default_factory=list)
    history: dict[str, np.ndarray] = field(default_factory=dict)
    extra: dict[str, list[Record]] = field(default_factory=dict)

    def add(self, trained: Sequence[tuple[Record, Run]], arrays: Callable[[Network], Arrays] | None = None) -> None:
        """Add runs with their histories; `arrays` returns further arrays of a run's best network."""
        for row, run in trained:
            self.runs.append(row)
            values = {part: run.history[part] for part in HISTORY_FIELDS if part in run.history}
            values |= {} if arrays is None else arrays(run.best)
            self.history |= {f"{row['model']}/{row['task']}/{row['seed']}/{part}": array for part, array in values.items()}

    def join(self, other: "Result") -> None:
        """Append another result."""
        self.runs += other.runs
        self.history |= other.history
        for name, records in other.extra.items():
            self.extra.setdefault(name, []).extend(records)


def train_directly(model: str, task: str, train: Train) -> tuple[Run, float]:
    """Train a population without checkpoints; a Trainer."""
    start = time.perf_counter()
    return train([]), time.perf_counter() - start


def train(
    model: str, task: Task, trials: Trials, progress: Progress, trainer: Trainer = train_directly
) -> list[tuple[Record, Run]]:
    """Train a model on a task at every setting with every seed."""
    members = trials.members(model)
    dropout, rate, penalty, seeds = (np.asarray(values) for values in zip(*members, strict=True))
    size: dict[str, Any] = {"width": task.width, "depth": task.depth, "learns_width": task.learns_width}
    networks = jax.vmap(lambda key: MODELS[model].create(task.data.x.shape[1], task.n_out, key=key, **size))(
        seed_keys(seeds.tolist(), 0)
    )

    def train_population(watchers: list[Watcher]) -> Run:
        WatcherGroup(watchers).begin(trials.member_settings(members))
        with progress.group(model, task.name, len(members) * task.expected_epochs, task.measure) as display:
            return fit(
                networks,
                task.data,
                learning_rate=rate,
                penalty=penalty,
                budget=trials.budget,
                dropout=dropout if dropout.any() else None,  # then none is compiled
                key=seed_keys(seeds.tolist(), 1),
                recipe=task.recipe,
                max_epochs=trials.max_epochs,
                watch=[display, *watchers],
            )

    population, seconds = trainer(model, task.name, train_population)
    runs = population.each()
    steps = sum(int(run.epochs) for run in runs) * steps_per_epoch(task.data.x.shape[0], task.recipe.batch_size)
    common = {"model": model, "task": task.name, **task.record_fields}
    timing = {"seconds": round(seconds / len(members), 2), "steps_per_second": round(steps / max(seconds, 0.01))}
    trained = []
    for member, run in zip(members, runs, strict=True):
        settings = member._asdict() | ({} if trials.budget is None else {"budget": trials.budget})
        settings["paper_penalty"] = member.penalty * task.recipe.batch_size
        trained.append((record(run, _test(run, task), **common, **settings, **timing), run))
        if run.diverged:
            progress.say(_divergence_line(trained[-1][0]))
    return trained


def train_model(
    model: str,
    tasks: Sequence[Task],
    trials: Trials,
    progress: Progress,
    trainer: Trainer = train_directly,
    *,
    summary_line: Callable[[list[Record]], str] | None = None,
    arrays: Callable[[Network], Arrays] | None = None,
) -> Result:
    """Train a model on every task and return the runs of the setting that it keeps there; for `arrays` see `Result.add`.

    Tasks of the same name are variants of one task (its preprocessing), of which a model keeps one too.
    """
    result = Result()
    for variants in tasks_by_name(tasks).values():
        measure, part = variants[0].measure, variants[0].selection_part
        trained = [pair for task in variants for pair in train(model, task, trials, progress, trainer)]
        selected, tried = select_setting(trained, measure, trials.choose)
        result.add(selected, arrays)
        if trials.is_path:
            result.extra.setdefault("path", []).extend({name: row[name] for name in PATH_FIELDS} for row, _ in trained)
        if len(tried) > 1:
            result.extra.setdefault("tried", []).extend(tried)
            progress.say(describe_selection(tried, measure, part))
        if summary_line is not None:
            progress.say(summary_line([row for row, _ in selected]))
    return result


def tasks_by_name(tasks: Sequence[Task]) -> dict[str, list[Task]]:
    """Return the variants of each task."""
    return {name: [task for task in tasks if task.name == name] for name in dict.fromkeys(task.name for task in tasks)}


def _test(run: Run, task: Task) -> Measures | None:
    """Return the test measures of the best network."""
    if task.test is None or not run.best_epoch:
        return None
    test = prepare(task.test, run.best, task.recipe.task).data
    return evaluate(run.best, test.x, test.y, task.recipe.task)


def _divergence_line(row: Record) -> str:
    epoch = row["best_epoch"]
    outcome = f"the model of epoch {epoch} is kept" if epoch else "no epoch was good, none is kept"
    return (
        f"{row['model']}, {row['task']}, seed {row['seed']}: the loss turned non-finite in epoch {row['epochs']}, "
        f"rate {row['learning_rate']:g}; {outcome}. Try a smaller rate."
    )
