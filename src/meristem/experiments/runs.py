"""One model trained on tasks at several settings with several seeds, its test figures, and the records of it.

    train("tunnel", task, trials, progress, keep) → [(record, run), …], one per setting and seed
    train_model("tunnel", tasks, trials, progress, keep) → a Result with the setting that it keeps on each task

All members of a task train as one population (`fit` decides whether as one program). The model whose development measure was
best is the one that is tested; nothing else ever sees the test part. `keep` says how a population is trained: at once, or so
that it is kept on the way (kept.py).
"""

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import numpy as np

from meristem.experiments.choice import chosen_setting, describe_choice
from meristem.experiments.models import MODELS
from meristem.experiments.summary import HISTORY_FIELDS, Record, record
from meristem.nn import Network
from meristem.show.measures import LOSS, MACRO_F1, Measure, error_measure
from meristem.show.progress import Progress
from meristem.train.batches import steps_of
from meristem.train.loop import fit, seed_keys
from meristem.train.measure import Measures, evaluate
from meristem.train.recipe import Recipe
from meristem.train.run import Run
from meristem.train.samples import Data, prepare
from meristem.train.watching import Everyone, Watcher

PATH_FIELDS = [
    *("model", "task", "seed", "penalty", "learning_rate", "input_dropout", "epochs", "best_epoch"),
    *("train_error", "dev_error", "test_error", "best_soft_size", "n_parameters"),
]
Arrays = Mapping[str, np.ndarray]
Train = Callable[[list[Watcher]], Run]  # with those who look on
Keep = Callable[[str, str, Train], tuple[Run, float]]  # of a model on a task: the run, and its seconds


@dataclass(frozen=True)
class Task:
    """What a network is trained on, and how."""

    name: str
    data: Data
    n_out: int
    recipe: Recipe
    width: int
    depth: int  # of bodies of a fixed number of layers
    usual_epochs: int  # of one seed, roughly: for the estimate of the time left, nothing else
    test: Data | None = None  # its x and y
    known: Record = field(default_factory=dict)  # what a record says of it besides: features, split
    arrays: Arrays = field(default_factory=dict)  # what history.npz holds of it, below data/
    learns_width: bool = False  # up to `width`

    @property
    def measure(self) -> Measure:
        """By which a model's best epoch is selected, and then its setting."""
        error = error_measure(self.recipe.task.error_name, is_share=self.recipe.task.error_is_share)
        return {"error": error, "macro_f1": MACRO_F1, "loss": LOSS}[self.recipe.select]

    @property
    def selects_by(self) -> str:
        """The part whose measure that is."""
        return "training" if self.data.dev_x is None else "validation"


class Member(NamedTuple):
    """One network of a population."""

    input_dropout: float
    learning_rate: float
    penalty: float
    seed: int


@dataclass(frozen=True)
class Trials:
    """What is tried of a model: every rate with every penalty and share of dropped inputs, `seeds` times; which it keeps."""

    rates: tuple[float, ...]
    penalties: tuple[float, ...]
    seeds: int
    max_epochs: int
    dropouts: tuple[float, ...] = (0.0,)
    choose: str = "best"  # see choice.py
    budget: int | None = None  # the most parameters, in place of a penalty
    is_path: bool = False  # whether the records of all members are kept, for the picture of error against size

    def named(self, members: Sequence[Member]) -> dict[int, dict[str, float]]:
        """What each network is, as watchers take it; with a budget the price is not what was given."""
        return {
            m: {"dropout": one.input_dropout, "learning_rate": one.learning_rate, "seed": one.seed}
            | ({"penalty": one.penalty} if self.budget is None else {})
            for m, one in enumerate(members)
        }

    def members(self, model: str) -> list[Member]:
        """Each network; the complexity of some models has no price."""
        penalties = self.penalties if MODELS[model].is_penalized else (0.0,)
        return [Member(*one) for one in itertools.product(self.dropouts, self.rates, penalties, range(self.seeds))]


@dataclass
class Result:
    """Records for summary.json, arrays for history.npz, and what else the summary should say: lists of records."""

    runs: list[Record] = field(default_factory=list)
    history: dict[str, np.ndarray] = field(default_factory=dict)
    more: dict[str, list[Record]] = field(default_factory=dict)

    def add(self, trained: Sequence[tuple[Record, Run]], arrays: Callable[[Network], Arrays] | None = None) -> None:
        """Runs with their histories; `arrays`: what else history.npz should hold of a run's best network."""
        for one, run in trained:
            self.runs.append(one)
            name = f"{one['model']}/{one['task']}/{one['seed']}"
            kept = {part: run.history[part] for part in HISTORY_FIELDS if part in run.history}
            self.history |= {f"{name}/{part}": values for part, values in kept.items()}
            if arrays is not None:
                self.history |= {f"{name}/{part}": values for part, values in arrays(run.best).items()}

    def join(self, other: "Result") -> None:
        """What another one holds, after what this one does."""
        self.runs += other.runs
        self.history |= other.history
        for name, records in other.more.items():
            self.more.setdefault(name, []).extend(records)


def device() -> str:
    """What computes, in words: 'NVIDIA H200', 'cpu'."""
    return jax.devices()[0].device_kind


def at_once(model: str, task: str, train: Train) -> tuple[Run, float]:
    """Train a population, and keep nothing on the way."""
    begin = time.perf_counter()
    return train([]), time.perf_counter() - begin


def train(model: str, task: Task, trials: Trials, progress: Progress, keep: Keep = at_once) -> list[tuple[Record, Run]]:
    """A model on a task, at every setting and with every seed."""
    members = trials.members(model)
    dropout, rate, penalty, seeds = (np.asarray(values) for values in zip(*members, strict=True))
    size: dict[str, Any] = {"width": task.width, "depth": task.depth, "learns_width": task.learns_width}
    networks = jax.vmap(lambda key: MODELS[model].create(task.data.x.shape[1], task.n_out, key=key, **size))(
        seed_keys(seeds.tolist(), 0)
    )

    def population(watchers: list[Watcher]) -> Run:
        Everyone(watchers).begin(trials.named(members))
        with progress.group(model, task.name, len(members) * task.usual_epochs, task.measure) as shown:
            return fit(
                networks,
                task.data,
                learning_rate=rate,
                penalty=penalty,
                budget=trials.budget,
                dropout=dropout if dropout.any() else None,  # none is compiled where there is none
                key=seed_keys(seeds.tolist(), 1),
                recipe=task.recipe,
                max_epochs=trials.max_epochs,
                watch=[shown, *watchers],
            )

    trained_run, seconds = keep(model, task.name, population)
    runs = trained_run.each()
    steps = sum(int(run.epochs) for run in runs) * steps_of(task.data.x.shape[0], task.recipe.batch_size)
    trained = [
        (
            record(
                run,
                _test(run, task),
                model=model,
                task=task.name,
                **task.known,
                **member._asdict(),
                **({} if trials.budget is None else {"budget": trials.budget}),
                paper_penalty=member.penalty * task.recipe.batch_size,
                seconds=round(seconds / len(members), 2),
                steps_per_second=round(steps / max(seconds, 0.01)),
            ),
            run,
        )
        for member, run in zip(members, runs, strict=True)
    ]
    for one, _ in trained:
        if one["diverged"]:
            kept = f"the model of epoch {one['best_epoch']} is kept" if one["best_epoch"] else "no epoch was good, none is kept"
            progress.say(
                f"{model}, {task.name}, seed {one['seed']}: the loss turned non-finite in epoch {one['epochs']}, "
                f"rate {one['learning_rate']:g}; {kept}. Try a smaller rate."
            )
    return trained


def train_model(
    model: str,
    tasks: Sequence[Task],
    trials: Trials,
    progress: Progress,
    keep: Keep = at_once,
    *,
    line: Callable[[list[Record]], str] | None = None,
    arrays: Callable[[Network], Arrays] | None = None,
) -> Result:
    """A model on every task, at the setting that it keeps there; `line` says what came out, for `arrays` see `Result.add`.

    Tasks of the same name are one task prepared in several ways, of which a model keeps one too.
    """
    result = Result()
    for ways in by_name(tasks).values():
        trained = [pair for task in ways for pair in train(model, task, trials, progress, keep)]
        chosen, tried = chosen_setting(trained, ways[0].measure, trials.choose)
        result.add(chosen, arrays)
        if trials.is_path:
            result.more.setdefault("path", []).extend({name: one[name] for name in PATH_FIELDS} for one, _ in trained)
        if len(tried) > 1:
            result.more.setdefault("tried", []).extend(tried)
            progress.say(describe_choice(tried, ways[0].measure, ways[0].selects_by))
        if line is not None:
            progress.say(line([one for one, _ in chosen]))
    return result


def by_name(tasks: Sequence[Task]) -> dict[str, list[Task]]:
    """The ways in which each task is prepared."""
    return {name: [task for task in tasks if task.name == name] for name in dict.fromkeys(task.name for task in tasks)}


def _test(run: Run, task: Task) -> Measures | None:
    """The test figures of the best model."""
    if task.test is None or not run.best_epoch:
        return None
    test = prepare(task.test, run.best, task.recipe.task).data
    return evaluate(run.best, test.x, test.y, task.recipe.task)
