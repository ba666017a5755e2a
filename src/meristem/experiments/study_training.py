"""Training of a study: each model on each task at several settings with several seeds, its test measures and records.

All members of a task train as one population. The network of the best validation epoch is tested; nothing else sees the test
part. Of several settings a model keeps one by its validation measure averaged over seeds:

    best        the setting with the best average, the first of ties
    smallest    of those within one standard error of the best, the one whose networks end smallest

A population is a group in the folder of a run, called `tunnel-easy`; further ones of the same model and task (other rates,
other preprocessing) are numbered: `tunnel-easy-2`. The options alone determine the order of training, so a resumed study gives
each group the same name.
"""

import itertools
import math
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from meristem.experiments.options import MODELS, Options
from meristem.experiments.study import Plan, Record, Result, Study, Task, record
from meristem.files.run_file import pack_recipe
from meristem.folders.checkpoints import Checkpoints, digest_of
from meristem.folders.run_folder import RunFolder
from meristem.show.describe import SETTINGS, describe_settings
from meristem.show.measures import Measure
from meristem.show.progress import Progress
from meristem.train.callbacks import Watcher, WatcherGroup
from meristem.train.epoch import steps_per_epoch
from meristem.train.loop import fit, seed_keys
from meristem.train.metrics import evaluate
from meristem.train.run import Run
from meristem.train.training_data import prepare

PATH_FIELDS = ["model", "task", "seed", "penalty", "learning_rate", "input_dropout", "epochs", "best_epoch"]
PATH_FIELDS += ["train_error", "dev_error", "test_error", "best_soft_size", "n_parameters"]
Trained = Sequence[tuple[Record, Any]]  # records and their runs


class Trainer:
    """Trains populations: directly, or with checkpoints in a folder, where finished ones are loaded and others continue."""

    def __init__(self, progress: Progress, folder: RunFolder | None = None, checkpoints: Checkpoints | None = None):
        self.progress, self.folder, self.checkpoints, self._counts = progress, folder, checkpoints, Counter[str]()
        self._current: tuple[str, float] | None = None  # the group being trained, and its start less the time trained before

    def train(self, model: str, task: str, train: Callable[[list[Watcher]], Run]) -> tuple[Run, float]:
        """Return the run of a population and its training time in seconds, loaded or trained."""
        start = time.perf_counter()
        if self.folder is None or self.checkpoints is None:
            return train([]), time.perf_counter() - start
        name = group_name(model, task)
        self._counts[name] += 1
        if self._counts[name] > 1:
            name = f"{name}-{self._counts[name]}"
        seconds, finished = self.folder.seconds(name), self.folder.finished(name)
        if finished is not None:
            return finished, seconds
        self._current = name, start - seconds
        with self.checkpoints.keeping(name):
            run = train([self.folder.epochs.watcher(name)])
        seconds, self._current = seconds + time.perf_counter() - start, None
        self.folder.finish(name, run, seconds)
        self.checkpoints.drop(name)
        return run, seconds

    def last_call(self) -> str:
        """Write a checkpoint, as the process is about to end, and return how to continue."""
        if self.folder is None or self.checkpoints is None:
            return "no results were written"
        self.checkpoints.now()
        if self._current is not None:
            name, start = self._current
            self.folder.note(name, time.perf_counter() - start)
        return f"continue with: {self.folder.command.removesuffix(' --resume')} --resume"


def group_name(model: str, task: str) -> str:
    """Return the name of the first group of a model on a task.

    >>> group_name("tunnel", "two: easy")
    'tunnel-two__easy'
    """
    return re.sub(r"[^A-Za-z0-9_-]", "_", f"{model}-{task}")[:80]


def study_config(options: Options, tasks: Sequence[Task]) -> dict[str, Any]:
    """Return what must be equal for a study to be resumed: settings, data and models, but no paths."""
    values = {name: value if isinstance(value, tuple) else (value,) for name, value in vars(options).items()}
    settings = {name: getattr(options, name) for name, entries in values.items() if not isinstance(entries[0], Path)}
    config: dict[str, Any] = {"settings": settings, "data": {}, "model": {}}
    for n, task in enumerate(tasks):
        name = f"{n}: {task.name}"
        config["data"][name] = {"training": digest_of(task.data).hex()[:16], "test": digest_of(task.test or ()).hex()[:16]}
        size = {"outputs": task.n_out, "width": task.width, "depth": task.depth, "learns_width": task.learns_width}
        config["model"][name] = size | {"recipe": pack_recipe(task.recipe)}
    return config


def train(model: str, task: Task, options: Options, trainer: Trainer) -> list[tuple[Record, Run]]:
    """Train a model on a task at every setting with every seed."""
    members = options.members(model)
    dropout, rate, penalty, seeds = (np.asarray(values) for values in zip(*members, strict=True))
    create = partial(task.create, task, MODELS[model])
    networks = jax.vmap(lambda key: create(key=key))(seed_keys(seeds.tolist(), 0))

    def train_population(watchers: list[Watcher]) -> Run:
        settings = [{"dropout": m.input_dropout, "learning_rate": m.learning_rate, "seed": m.seed} for m in members]
        if options.budget is None:  # otherwise the penalty is learned
            settings = [setting | {"penalty": m.penalty} for setting, m in zip(settings, members, strict=True)]
        with trainer.progress.group(model, task.name, len(members) * task.expected_epochs, task.measure) as display:
            WatcherGroup([display, *watchers]).begin(dict(enumerate(settings)))
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

    population, seconds = trainer.train(model, task.name, train_population)
    runs, trained = population.each(), []
    steps = sum(int(run.epochs) for run in runs) * steps_per_epoch(task.data.x.shape[0], task.recipe.batch_size)
    timing = {"seconds": round(seconds / len(members), 2), "steps_per_second": round(steps / max(seconds, 0.01))}
    for member, run in zip(members, runs, strict=True):
        fields = {"model": model, "task": task.name, **task.record_fields, **member._asdict()}
        fields |= {} if options.budget is None else {"budget": options.budget}
        fields |= {"paper_penalty": member.penalty * task.recipe.batch_size, **timing}
        measures = None
        if task.test is not None and run.best_epoch:
            test = prepare(task.test, run.best, task.recipe.task).data
            measures = evaluate(run.best, test.x, test.y, task.recipe.task)
        trained.append((record(run, measures, **fields), run))
        if run.diverged:
            epoch = int(run.best_epoch)
            outcome = f"the model of epoch {epoch} is kept" if epoch else "no epoch was good, none is kept"
            trainer.progress.say(
                f"{model}, {task.name}, seed {member.seed}: the loss turned non-finite in epoch {int(run.epochs)}, "
                f"rate {member.learning_rate:g}; {outcome}. Try a smaller rate."
            )
    return trained


def select_setting(trained: Trained, measure: Measure, rule: str) -> tuple[Trained, list[Record]]:
    """Return the runs of the selected setting, and a record of each setting that was tried, averaged over its seeds."""
    name, groups = f"dev_{measure.name}", dict[tuple[Any, ...], list[tuple[Record, Any]]]()
    for row, run in trained:
        groups.setdefault(tuple(row.get(key) for key in SETTINGS), []).append((row, run))
    tried = []
    for group in groups.values():
        first, *_ = rows = [row for row, _ in group]
        values, sizes = ([row[key] for row in rows if row[key] is not None] for key in (name, "soft_size"))
        average = {key: first[key] for key in ("model", "task", *SETTINGS) if key in first} | {"seeds": len(rows)}
        average |= {name: statistics.mean(values) if values else None}
        average |= {"sd": statistics.stdev(values) if len(values) > 1 else None}
        tried.append(average | {"soft_size": statistics.mean(sizes) if sizes else None})
    selected = min(tried, key=lambda record: measure.cost(record[name]))
    if rule == "smallest":
        limit = measure.cost(selected[name]) + (selected["sd"] or 0.0) / math.sqrt(selected["seeds"])
        as_good = [record for record in tried if measure.cost(record[name]) <= limit]
        selected = min(as_good, key=lambda record: math.inf if record["soft_size"] is None else record["soft_size"])
    runs = next(group for group, record in zip(groups.values(), tried, strict=True) if record is selected)
    return runs, [{**record, "chosen": record is selected} for record in tried]


def train_model(study: Study, model: str, tasks: Sequence[Task], options: Options, trainer: Trainer) -> Result:
    """Train a model on every task and return the runs of the setting that it keeps there.

    Tasks of the same name are variants of one task (its preprocessing), of which a model keeps one too.
    """
    result = Result()
    for name in dict.fromkeys(task.name for task in tasks):
        variants = [task for task in tasks if task.name == name]
        measure, part = variants[0].measure, "training" if variants[0].data.dev_x is None else "validation"
        trained = [pair for task in variants for pair in train(model, task, options, trainer)]
        selected, tried = select_setting(trained, measure, options.choose)
        result.add(selected, study.arrays)
        if options.penalties is not None:
            result.extra.setdefault("path", []).extend({key: row[key] for key in PATH_FIELDS} for row, _ in trained)
        if len(tried) > 1:
            result.extra.setdefault("tried", []).extend(tried)
            words = [
                f"{words} → {part} {measure.label} {measure.show(record[f'dev_{measure.name}'])}{' (kept)' * record['chosen']}"
                for words, record in zip(describe_settings(tried), tried, strict=True)
            ]
            trainer.progress.say(f"{model}, {name}: tried {'; '.join(words)}")
        rows = [row for row, _ in selected]
        reached = [column.line.format(column.show(rows, study.average)) for column in study.columns if column.line]
        seconds, speed = sum(row["seconds"] for row in rows), rows[0]["steps_per_second"]
        trainer.progress.say(f"{model}, {name}: {', '.join(reached)}, {seconds:.1f} s, {speed:,} steps/s")
    return result


def run(study: Study, options: Options, plan: Plan, trainer: Trainer) -> Result:
    """Train every model on every task, each at the setting that it keeps."""
    data = {f"data/{task.name}/{name}": values for task in plan.tasks for name, values in task.arrays.items()}
    result, tasks = Result(history=data), [task.resized(options) for task in plan.tasks]
    trainer.progress.plan(expected_epochs(options, tasks))
    train_models = _select_rate if options.select_rate else train_model
    for model in options.models:
        result.join(train_models(study, model, tasks, options, trainer))
    return result


def _select_rate(study: Study, model: str, tasks: Sequence[Task], options: Options, trainer: Trainer) -> Result:
    """Return the result of the smallest rate that solves every task, or else of the largest: the paper's rule.

    A task is solved if more than half of the seeds reach zero training error; the counts are in the result's "rates".
    """
    tried: list[Record] = []
    for rate in sorted(options.rates_of(model)):
        result = train_model(study, model, tasks, replace(options, rate=(rate,)), trainer)
        fields = {"learning_rate": rate, "seeds": options.seeds}
        solved = dict.fromkeys((run["task"] for run in result.runs), 0)
        for run in result.runs:
            solved[run["task"]] += run["zero_error_epoch"] is not None
        tried += [{"model": model, "task": task, "solved": count, **fields} for task, count in solved.items()]
        if all(2 * count > options.seeds for count in solved.values()):
            break
    trainer.progress.say(f"{model}: rate {rate:g} is the one that is kept")
    result.extra["rates"] = tried
    return result


def expected_epochs(options: Options, tasks: Sequence[Task]) -> Mapping[tuple[str, str], float]:
    epochs = Counter[tuple[str, str]]()
    for model, task in itertools.product(options.models, tasks):
        epochs[model, task.name] += len(options.members(model)) * task.expected_epochs
    return epochs
