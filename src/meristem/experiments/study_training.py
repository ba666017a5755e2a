"""Training of a study: each model on each task at several settings with several seeds, its test measures and records.

    train("tunnel", task, options, progress) → [(record, run), …], one per setting and seed
    train_model("tunnel", tasks, options, progress) → a Result with the setting that it keeps on each task
    run(study, options, plan, progress) → the Result of all models; summarize(…) makes summary.json of it

All members of a task train as one population. The network of the best validation epoch is tested; nothing else sees the test
part. Of several settings a model keeps one by its validation measure averaged over seeds:

    best        the setting with the best average, the first of ties
    smallest    of those within one standard error of the best, the one whose networks end smallest

A `Trainer` runs the training of a population, with checkpoints (study_checkpoints.py) or without.
"""

import itertools
import math
import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import signature
from typing import Any

import jax
import numpy as np

import meristem
from meristem.experiments.options import MODELS, Options
from meristem.experiments.study import Arrays, Plan, Study, Task
from meristem.experiments.summary import HISTORY_FIELDS, Record, device, record
from meristem.nn import Network
from meristem.nn.network import BODIES
from meristem.show.describe import SETTINGS, describe_settings
from meristem.show.measures import Measure
from meristem.show.progress import Progress
from meristem.train.callbacks import Watcher, WatcherGroup
from meristem.train.epoch import steps_per_epoch
from meristem.train.loop import fit, seed_keys
from meristem.train.metrics import Measures, evaluate
from meristem.train.run import Run
from meristem.train.training_data import prepare

PATH_FIELDS = [
    *("model", "task", "seed", "penalty", "learning_rate", "input_dropout", "epochs", "best_epoch"),
    *("train_error", "dev_error", "test_error", "best_soft_size", "n_parameters"),
]
Train = Callable[[list[Watcher]], Run]
Trained = Sequence[tuple[Record, Any]]  # records and their runs
Trainer = Callable[[str, str, Train], tuple[Run, float]]  # of a model on a task: the run, and its seconds


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
    model: str, task: Task, options: Options, progress: Progress, trainer: Trainer = train_directly
) -> list[tuple[Record, Run]]:
    """Train a model on a task at every setting with every seed."""
    members = options.members(model)
    dropout, rate, penalty, seeds = (np.asarray(values) for values in zip(*members, strict=True))
    body, n_in = MODELS[model].body, task.data.x.shape[1]
    size: dict[str, Any] = {"width": "auto", "max_width": task.width} if task.learns_width else {"width": task.width}
    if "depth" in signature(BODIES[body]).parameters:
        size["depth"] = task.depth
    create = partial(Network.create, body, n_in, task.n_out, **size)
    networks = jax.vmap(lambda key: create(key=key))(seed_keys(seeds.tolist(), 0))
    settings = [{"dropout": m.input_dropout, "learning_rate": m.learning_rate, "seed": m.seed} for m in members]
    if options.budget is None:  # otherwise the penalty is learned
        settings = [setting | {"penalty": m.penalty} for setting, m in zip(settings, members, strict=True)]

    def train_population(watchers: list[Watcher]) -> Run:
        WatcherGroup(watchers).begin(dict(enumerate(settings)))
        with progress.group(model, task.name, len(members) * task.expected_epochs, task.measure) as display:
            return fit(
                networks,
                task.data,
                learning_rate=rate,
                penalty=penalty,
                budget=options.budget,
                dropout=dropout if dropout.any() else None,  # then none is compiled
                key=seed_keys(seeds.tolist(), 1),
                recipe=task.recipe,
                max_epochs=options.max_epochs,
                watch=[display, *watchers],
            )

    population, seconds = trainer(model, task.name, train_population)
    runs = population.each()
    steps = sum(int(run.epochs) for run in runs) * steps_per_epoch(task.data.x.shape[0], task.recipe.batch_size)
    timing = {"seconds": round(seconds / len(members), 2), "steps_per_second": round(steps / max(seconds, 0.01))}
    trained = []
    for member, run in zip(members, runs, strict=True):
        fields = {"model": model, "task": task.name, **task.record_fields, **member._asdict()}
        fields |= {} if options.budget is None else {"budget": options.budget}
        fields |= {"paper_penalty": member.penalty * task.recipe.batch_size, **timing}
        trained.append((record(run, _test(run, task), **fields), run))
        if run.diverged:
            epoch = trained[-1][0]["best_epoch"]
            outcome = f"the model of epoch {epoch} is kept" if epoch else "no epoch was good, none is kept"
            progress.say(
                f"{model}, {task.name}, seed {member.seed}: the loss turned non-finite in epoch {int(run.epochs)}, "
                f"rate {member.learning_rate:g}; {outcome}. Try a smaller rate."
            )
    return trained


def select_setting(trained: Trained, measure: Measure, rule: str) -> tuple[Trained, list[Record]]:
    """Return the runs of the selected setting, and a record of each setting that was tried, averaged over its seeds."""
    name, groups = f"dev_{measure.name}", dict[tuple[Any, ...], list[tuple[Record, Any]]]()
    for row, run in trained:
        groups.setdefault(tuple(row.get(key) for key in SETTINGS), []).append((row, run))
    tried = [_average([row for row, _ in group], name) for group in groups.values()]
    selected = min(tried, key=lambda record: measure.cost(record[name]))
    if rule == "smallest":
        limit = measure.cost(selected[name]) + (selected["sd"] or 0.0) / math.sqrt(selected["seeds"])
        as_good = [record for record in tried if measure.cost(record[name]) <= limit]
        selected = min(as_good, key=lambda record: math.inf if record["soft_size"] is None else record["soft_size"])
    runs = list(groups.values())[next(place for place, record in enumerate(tried) if record is selected)]
    return runs, [{**record, "chosen": record is selected} for record in tried]


def describe_selection(tried: Sequence[Record], measure: Measure, part: str = "validation") -> str:
    """Return a line with the settings that were tried, their measure, and the selected one.

    >>> from meristem.show.measures import ERROR
    >>> tunnel = {"model": "tunnel", "task": "ten", "learning_rate": 0.001, "penalty": 0.0, "dev_error": 0.025, "chosen": True}
    >>> describe_selection([tunnel, {**tunnel, "learning_rate": 0.003, "dev_error": 0.03, "chosen": False}], ERROR)
    'tunnel, ten: tried rate 0.001 → validation error 2.50 % (kept); rate 0.003 → validation error 3.00 %'
    """
    settings = [
        f"{words} → {part} {measure.label} {measure.show(record[f'dev_{measure.name}'])}{' (kept)' * record['chosen']}"
        for words, record in zip(describe_settings(tried), tried, strict=True)
    ]
    return f"{tried[0]['model']}, {tried[0]['task']}: tried {'; '.join(settings)}"


def _average(group: list[Record], name: str) -> Record:
    values, sizes = ([record[key] for record in group if record[key] is not None] for key in (name, "soft_size"))
    return {
        **{key: group[0][key] for key in ("model", "task", *SETTINGS) if key in group[0]},
        "seeds": len(group),
        name: statistics.mean(values) if values else None,
        "sd": statistics.stdev(values) if len(values) > 1 else None,
        "soft_size": statistics.mean(sizes) if sizes else None,
    }


def train_model(
    model: str,
    tasks: Sequence[Task],
    options: Options,
    progress: Progress,
    trainer: Trainer = train_directly,
    study: Study | None = None,
) -> Result:
    """Train a model on every task and return the runs of the setting that it keeps there.

    Tasks of the same name are variants of one task (its preprocessing), of which a model keeps one too.
    """
    result = Result()
    for name in dict.fromkeys(task.name for task in tasks):
        variants = [task for task in tasks if task.name == name]
        measure, part = variants[0].measure, variants[0].selection_part
        trained = [pair for task in variants for pair in train(model, task, options, progress, trainer)]
        selected, tried = select_setting(trained, measure, options.choose)
        result.add(selected, study.arrays if study else None)
        if options.penalties is not None:
            result.extra.setdefault("path", []).extend({key: row[key] for key in PATH_FIELDS} for row, _ in trained)
        if len(tried) > 1:
            result.extra.setdefault("tried", []).extend(tried)
            progress.say(describe_selection(tried, measure, part))
        if study is not None:
            rows = [row for row, _ in selected]
            seconds, speed = sum(row["seconds"] for row in rows), rows[0]["steps_per_second"]
            progress.say(f"{model}, {name}: {study.summary_line(rows)}, {seconds:.1f} s, {speed:,} steps/s")
    return result


def run(study: Study, options: Options, plan: Plan, progress: Progress, trainer: Trainer = train_directly) -> Result:
    """Train every model on every task, each at the setting that it keeps."""
    data = {f"data/{task.name}/{name}": values for task in plan.tasks for name, values in task.arrays.items()}
    result, tasks = Result(history=data), [task.resized(options) for task in plan.tasks]
    progress.plan(expected_epochs(options, tasks))
    for model in options.models:
        train_at = partial(train_model, model, tasks, progress=progress, trainer=trainer, study=study)
        result.join(_select_rate(model, options, train_at, progress) if options.select_rate else train_at(options))
    return result


def _select_rate(model: str, options: Options, train_at: Callable[[Options], Result], progress: Progress) -> Result:
    """Return the result of the smallest rate that solves every task, or else of the largest: the paper's rule.

    A task is solved if more than half of the seeds reach zero training error; the counts are in the result's "rates".
    """
    tried: list[Record] = []
    for rate in sorted(options.rates_of(model)):
        result, fields = train_at(replace(options, rate=(rate,))), {"learning_rate": rate, "seeds": options.seeds}
        solved = dict.fromkeys((run["task"] for run in result.runs), 0)
        for run in result.runs:
            solved[run["task"]] += run["zero_error_epoch"] is not None
        tried += [{"model": model, "task": task, "solved": count, **fields} for task, count in solved.items()]
        if all(2 * count > options.seeds for count in solved.values()):
            break
    progress.say(f"{model}: rate {rate:g} is the one that is kept")
    result.extra["rates"] = tried
    return result


def expected_epochs(options: Options, tasks: Sequence[Task]) -> Mapping[tuple[str, str], float]:
    """Return how many epochs each model takes on each task, approximately."""
    epochs: Counter[tuple[str, str]] = Counter()
    for model, task in itertools.product(options.models, tasks):
        epochs[model, task.name] += len(options.members(model)) * task.expected_epochs
    return epochs


def summarize(study: Study, plan: Plan, result: Result, wall_seconds: float, command: str) -> Record:
    """Return the content of summary.json."""
    return {
        "experiment": study.name,
        "title": plan.title,
        "meristem": meristem.__version__,
        "jax": jax.__version__,
        "device": jax.default_backend(),
        "device_name": device(),
        "command": command,
        "wall_seconds": round(wall_seconds, 1),
        "runs": result.runs,
        "paper": dict(study.paper if plan.is_papers_data else {}),
        **plan.summary_fields,
        "pictures": (plan.pictures or study.pictures).as_json(),
        **result.extra,
    }


def _test(run: Run, task: Task) -> Measures | None:
    """Return the test measures of the best network."""
    if task.test is None or not run.best_epoch:
        return None
    test = prepare(task.test, run.best, task.recipe.task).data
    return evaluate(run.best, test.x, test.y, task.recipe.task)
