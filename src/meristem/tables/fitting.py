"""Fit a model to a table: read and split it, search the penalty, score the model on the test rows, and record the facts.

    fit_table("people.csv", target="income") → TableModel;  model.facts: what was used, and how good the model is

Baselines and search use at most 50,000 rows, fewer where there are many inputs, drawn from the seed; the schema is learned from
all training rows, a single final network too (in blocks of as many rows as the search has), and the score is that of all test
rows. With `seconds` the whole takes so long at most, within a tenth: an eighth of it goes to the baselines, while a first
program is compiled and timed in a thread (time_limit.py).
"""

import os
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import equinox as eqx
import jax
import numpy as np

import meristem
from meristem.check import check_number, check_size, many, short, unknown
from meristem.estimators.flash_budget import ROWS
from meristem.inputs.preprocessor import TooLargeError
from meristem.inputs.schema import NUMBER
from meristem.report.baselines import baselines
from meristem.report.report_data import compare_table
from meristem.report.report_text import clearly_worse, learning_curve_text, missed_recall, worse_warnings
from meristem.report.scoring import in_words
from meristem.report.task_metrics import METRICS, Metric, Outcome, Predicted, check_metric, evaluate, headline, values
from meristem.tables.data_faults import data_faults
from meristem.tables.encoding import codes, feature_blocks, features
from meristem.tables.evaluation import MOST_PROBABILITIES, Evaluation
from meristem.tables.reading import as_table
from meristem.tables.row_blocks import RowBlocks
from meristem.tables.split import CLASS, TableSplit, target_values
from meristem.tables.split_rule import TIME
from meristem.tables.table_columns import Table
from meristem.tables.table_model import MEDIAN, TableModel
from meristem.tables.time_limit import fit_into, time_fold, wait_for_timing

MOST_ROWS, MOST_NUMBERS = 50_000, 50_000_000  # of the search; rows × inputs
NUMBERS_PER_SECOND, LEAST_USED = 50_000, 1000  # with a limit: scaling, baselines and timing pass over them several times
BODIES = ["tunnel", "budding"]
BASELINE_SHARE = 0.125  # of the time
FEW_EPOCHS = 20  # with fewer a network is hardly trained
LEAST_BYTES, COPIES = 2**21, 8  # of the files of a fit; of a network's numbers in a run: weights, best, last, moments, average


def fit_table(
    table: Any,
    *,
    target: str,
    task: str | None = None,
    body: str | None = None,
    budget: int | str | None = None,
    bits: int | None = 8,
    rule: str = "1se",
    refit: str = "auto",
    test: Any = 0.2,
    time_column: str | None = None,
    group_column: str | None = None,
    drop_duplicates: bool = False,
    seconds: float | None = None,
    metric: str | None = None,
    threshold: float | str | None = None,
    random_state: int = 0,
    verbose: bool = False,
    **options: Any,
) -> TableModel:
    """Return a model that predicts the column `target` from the others.

    table          a frame, a dictionary of lists, or the path of a file (CSV, gzipped CSV, Parquet; "-": standard input)
    task           "class" or "number"; None: chosen from the data
    body           "budding" or "tunnel"; None: budding, or tunnel if `depth` is among the options
    budget         the most parameters of the model, or the flash that its C file may take, such as "2 KB", in so many bits
    rule           how the penalty is chosen ("min", "1se"): see the CV estimators
    refit          the final model: "distill", one network that learned what the bag of the folds' networks answers; this "bag";
                   or "one" network that learned the targets. "auto" is a bag with a time limit, which leaves no time for
                   another training, one with a budget, a time column, or more rows than the search uses, else distill
    test           the share of rows that is held out, or a table of its own
    time_column    dates, numbers or ISO texts: the latest rows are the test, and folds of the search go forward
    group_column   such as a patient: no group is on both sides, in test and folds; the column is no input. With time_column,
                   a group on both sides of a time is drawn to one of them
    drop_duplicates  whether rows identical in inputs and target are used once, so that none is on both sides
    seconds        a time limit for everything
    metric         what the model is judged by, and the search chooses by, such as "average_precision" or "mae"; None: judged by
                   accuracy (average precision, of a rare class) or R², chosen by the held-out loss
    threshold      of two classes: "best-f1", "cost=FP:FN", "recall=0.9" (chosen on out-of-fold predictions), or a number
    options        further parameters of the CV estimator

    >>> x = np.linspace(0, 1, 60)
    >>> quick = {"cv": 2, "max_epochs": 20, "depth": 1, "max_width": 4, "penalties": [1e-4], "learning_rate": 0.03}
    >>> model = fit_table({"x": x, "name": ["a", "b"] * 30, "y": 3 * x}, target="y", **quick)
    >>> model.task, sorted(model.facts["baselines"]), model.facts["score"]["value"] > 0.8
    ('number', ['boosting', 'constant', 'linear', 'mlp'], True)
    """
    begun = time.monotonic()
    body = ("tunnel" if "depth" in options else "budding") if body is None else body
    options |= {"body": body, "budget": budget, "bits": bits, "rule": rule, "refit": refit, "seconds": seconds}
    options |= {"metric": metric, "threshold": threshold, "random_state": random_state}
    check_options(test=test, **options)
    columns: dict[str, Any] = {"time_column": time_column, "group_column": group_column, "drop_duplicates": drop_duplicates}
    read = _read_with_groups(table, group_column)
    split = TableSplit.of(read, target=target, task=task, test=test, seed=random_state, **columns)
    return fit_planned(plan_fit(split, verbose=verbose, **options), begun=begun)


def _read_with_groups(source: Any, group_column: str | None) -> Table:
    """Return the table with all texts of the column of groups, of which there may be many."""
    try:
        return as_table(source, keep=[] if group_column is None else [group_column])
    except ValueError as error:
        option, equals, rest = str(error).partition("=")
        if option != "keep":
            raise
        raise ValueError(f"group_column{equals}{rest}") from None


@dataclass(frozen=True, eq=False)
class FitPlan:
    """A split table and the search that is to be fitted; all errors of table and options are raised before there is one."""

    split: TableSplit
    estimator: Any  # a CV estimator, not fitted
    search: Any  # its search over the rows (estimators/search.py)
    rows: np.ndarray  # those of the search, in order of time where there is one
    X: np.ndarray  # their features
    y: np.ndarray
    body: str
    seconds: float | None

    @property
    def n_bytes(self) -> int:
        """The approximate size of the files of the fit: checkpoints with the optimizer's state, and the model."""
        numbers = sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(self.search.begun_network, eqx.is_array)))
        return LEAST_BYTES + 4 * COPIES * numbers * (len(self.search.folds) + 1)


def plan_fit(
    split: TableSplit, *, body: str, seconds: float | None, random_state: int, metric: str | None = None, **options: Any
) -> FitPlan:
    """Encode the rows and plan the search; raise ValueError where the table, an option or the budget does not fit."""
    task, labels = split.target.task, split.target.values[split.train_rows]
    if metric is not None:
        check_metric(metric, task, len(np.unique(labels)) if task == CLASS else 0)
        options |= {"scoring": metric}
    if options.get("threshold") is not None and task != CLASS:
        raise ValueError(
            f"threshold={options['threshold']!r} is for two classes; the target {split.target.name!r} is a number."
        )
    estimator = _estimator(body, task, options | {"random_state": random_state})
    numbers = MOST_NUMBERS if seconds is None else min(MOST_NUMBERS, int(NUMBERS_PER_SECOND * seconds))
    rows, most = split.train_rows, min(MOST_ROWS, max(LEAST_USED, numbers // len(split.schema.features)))
    if len(rows) > most:
        rows = np.sort(np.random.default_rng(random_state).choice(rows, most, replace=False))
    if estimator.refit == "auto" and seconds is None:  # a bag of a sample, or of earlier rows, knows less than all rows
        has_bag = len(rows) == len(split.train_rows) and split.rule.kind != TIME and estimator.budget is None
        estimator.set_params(refit="distill" if has_bag else "one")
    rows = split.rule.in_order(rows)
    X, y = features(split.schema, split.table, rows), split.target.values[rows]
    try:
        columns = split.schema, codes(split.schema, split.table, rows[:ROWS])
        search = estimator._planned(X, y, columns=columns, **split.rule.fold_options(rows))
    except TooLargeError as error:
        where = f"{split.table.source}: column {short(split.schema.features[error.feature])}"
        raise ValueError(f"{where} holds numbers whose squares no float holds; divide it by 1e150.") from None
    return FitPlan(split, estimator, search, rows, X, y, body, seconds)


def fit_planned(plan: FitPlan, *, begun: float) -> TableModel:
    """Return the fitted model of a plan; `begun` is when a time limit began, a time of `time.monotonic`."""
    say: Callable[[str], None] = partial(print, file=sys.stderr, flush=True) if plan.estimator.verbose else lambda line: None
    split, estimator, X, y, seconds = plan.split, plan.estimator, plan.X, plan.y, plan.seconds
    schema, target, test_table, test_rows = split.schema, split.target, split.test_table, split.test_rows
    seed, read = estimator.random_state, time.monotonic()
    labels, places = np.unique(y, return_inverse=True) if target.task == CLASS else (None, y)
    true = target_values(test_table, target.name, target.task, labels)[0]
    n_classes, positive = 0 if labels is None else len(labels), getattr(plan.search.table.targets, "positive", 1)
    has_probabilities = target.task == CLASS and len(test_rows) * n_classes <= MOST_PROBABILITIES
    metric: Metric | None = None
    scores, predicted = dict[str, dict[str, Any]](), dict[str, Predicted]()
    rows, deadline, settling = np.arange(len(y)), None, 0
    with warnings.catch_warnings():  # those of two threads, which set and reset them
        timing = None if seconds is None else ThreadPoolExecutor(1).submit(time_fold, estimator, X, y, seed)
        faults = data_faults(split)
        for line in [*split.words(), *(f"warning: {line}" for line in faults)]:
            say(line)
        share = None if seconds is None else BASELINE_SHARE * max(0.0, begun + seconds - time.monotonic())
        last = y if split.rule.kind == TIME and target.task != CLASS else None  # rows are in the order of time
        for own in baselines(target.task, X, places, seconds=share, seed=seed, folds=plan.search.folds, last_value=last):
            test_blocks = feature_blocks(schema, test_table, test_rows)
            parts = [Predicted.by(own, block, with_probabilities=has_probabilities) for block in test_blocks]
            outcome = Outcome(target.task, true[test_rows], Predicted.joined(parts), n_classes, positive)
            metric, predicted[own.name] = metric or headline(outcome, estimator.scoring), outcome.predicted
            scores[own.name] = metric.score(outcome, seed) | own.facts | {"test": values(outcome)}
            short_of = f", in the time there was ({own.lacks})" if own.lacks else ""
            say(f"{own.label}: {in_words(scores[own.name])}, {own.seconds:.1f} s{short_of}")
        compared = time.monotonic()
        if timing is not None and seconds is not None:
            limit = (wait_for_timing(timing, seconds, begun + seconds), seconds, begun + seconds)
            rows, deadline, settling = fit_into(estimator, X, y, *limit, n_test=len(test_rows), seed=seed)
    learned = len(rows)
    if deadline is not None:
        options = split.rule.fold_options(plan.rows[rows])
        columns = schema, codes(schema, split.table, plan.rows[rows][:ROWS])
        estimator.fit_search(estimator._planned(X[rows], y[rows], columns=columns, **options), settling=settling)
    else:
        is_whole = learned == len(split.train_rows) or estimator.makes_bag(plan.search.folds)
        blocks = () if is_whole else RowBlocks(split, y, seed)
        learned = learned if isinstance(blocks, tuple) else blocks.n_learned
        curve = metric.name if metric is not None and split.rule.column is None and estimator.budget is None else None
        estimator.fit_search(plan.search, blocks, curve=curve)
    estimator.callbacks = estimator.executor = None  # no file holds them
    searched = time.monotonic()
    facts: dict[str, Any] = {"seed": seed}
    model = TableModel(schema, estimator, target.name, target.task, facts)
    evaluation = Evaluation.of(model, test_table, test_rows, true, predicted)
    model = replace(model, evaluation=evaluation)
    if plan.search.flash is not None:
        facts["flash"] = {"bytes": plan.search.flash.compact_bytes(estimator._compact_), "bits": estimator.bits}
    facts |= _facts(model, split, scores, used=len(rows), learned=learned, body=plan.body)
    facts["learning_curve"] = None if estimator._curve_ is None else estimator._curve_.facts(metric)
    facts |= _test_facts(evaluation.outcome, headline(evaluation.outcome, estimator.scoring), seed)
    facts["seconds"] = {
        "limit": None if seconds is None else float(seconds),
        "ended_the_search": deadline is not None and deadline.has_ended,
        "reading": round(read - begun, 3),
        "baselines": round(compared - read, 3),
        "search": round(searched - compared, 3),
        "all": round(time.monotonic() - begun, 3),
    }
    comparisons = compare_table(model, scores, headline(evaluation.outcome, estimator.scoring))
    for own_facts, comparison in zip(scores.values(), comparisons, strict=True):
        if np.isfinite(comparison.gain).all():
            own_facts["gain"] = dict(zip(("value", "low", "high"), comparison.gain, strict=True))
    lines = worse_warnings(comparisons, target.task)
    if (missed := missed_recall(getattr(estimator, "threshold", None), facts["test"], facts["test_intervals"])) is not None:
        say(f"warning: {missed}")
        lines.append(missed)
    facts["warnings"] = [*lines, *faults, *split.table_warnings()]
    say(f"found: {in_words(facts['score'])}{clearly_worse(comparisons, target.task)}; {facts['n_parameters']:,} parameters")
    if (more := learning_curve_text(facts)) is not None:
        say(more)
    epochs = int(estimator.n_iter_)
    few = [many(epochs, "epoch")] if facts["seconds"]["ended_the_search"] and epochs < FEW_EPOCHS else []
    few += [f"{len(rows):,} of {len(y):,} rows"] if len(rows) < len(y) else []
    if few:
        say(f"seconds={seconds:g} left time for {' and '.join(few)}: the model is likely poor; give more.")
    return model


def _test_facts(outcome: Outcome, metric: Metric, seed: int) -> dict[str, Any]:
    """Return the score of the test rows by a metric, and by all others, made of JSON values."""
    scores = evaluate(outcome, seed)
    score = scores[metric.name] | ({"rmse": scores["rmse"]["value"]} if "rmse" in scores else {})
    intervals = {name: [own["low"], own["high"]] for name, own in scores.items()}
    return {"score": score, "test": {name: own["value"] for name, own in scores.items()}, "test_intervals": intervals}


def check_options(
    *, test: Any, body: str, seconds: float | None, random_state: int, metric: str | None = None, **options: Any
) -> None:
    """Raise ValueError where `fit_table` would because of an option, before a table is read."""
    if body not in BODIES:
        raise unknown("body", body, BODIES)
    if seconds is not None:
        check_number("seconds", seconds, "above 0", lambda value: 0 < value < np.inf)
    if isinstance(test, int | float | np.number):
        check_number("test", test, "above 0 and below 1", lambda value: 0 < value < 1)
    check_size("random_state", random_state, least=0)
    if metric not in (None, *METRICS):
        raise unknown("metric", metric, list(METRICS))
    _estimator(body, CLASS, options)
    levels = tuple(options.get("quantiles", ()) or ()) if options.get("loss") == "quantile" else ()
    if len(levels) > 1 and MEDIAN not in levels:
        raise ValueError(f"quantiles={short(levels)} must have 0.5 among them: a table's model is scored by its median.")


def _estimator(body: str, task: str, options: dict[str, Any]) -> Any:
    """Return the CV estimator of a body and a task, not fitted; raise ValueError where an option does not fit."""
    from meristem import estimators
    from meristem.estimators.parameters import check_parameters

    kinds = [getattr(estimators, f"{body.capitalize()}{name}CV")() for name in ("Classifier", "Regressor")]
    parameters = kinds[0].get_params() | kinds[1].get_params()
    for name in options:
        if name not in parameters:
            raise unknown("option", name, sorted(parameters))
    model = kinds[0 if task == CLASS else 1]
    model.set_params(**{name: value for name, value in options.items() if name in model.get_params()})
    check_parameters(model)
    return model


def _facts(model: TableModel, split: TableSplit, baselines: Any, *, used: int, learned: int, body: str) -> dict[str, Any]:
    """Return what was used and chosen, made of JSON values."""
    estimator, path, table, target = model.estimator, model.estimator.path_, split.table, split.target
    names = ["penalty", "l2", "dropout", "loss", "error", "n_parameters"]
    commas = [field.name for field in split.schema.fields if field.kind == NUMBER and table[field.name].has_commas]
    is_binary = target.task == CLASS and len(model.classes) == 2
    test_source = {"table": split.test_table.source.strip("'\""), "sha256": split.test_table.digest}
    return {
        "table": table.source.strip("'\""),
        "table_sha256": table.digest,
        "reading": {"format": table.format, "sep": table.sep, "encoding": table.encoding, "decimal_commas": commas},
        "test_table": test_source if split.has_test_table else None,
        "split": split.rule.facts(table, split.train_rows, None if split.has_test_table else split.test_rows, split.share),
        "target": target.name,
        "task": target.task,
        "why": target.why,
        "classes": [str(label) for label in model.classes.tolist()] if target.task == CLASS else None,
        "positive_class": str(estimator.positive_class_) if is_binary else None,
        "threshold": estimator.threshold_ if is_binary else None,
        "rows": {
            "all": table.rows,
            "without_target": target.n_dropped,
            "train": len(split.train_rows),
            "test": len(split.test_rows),
            "searched_with": used,
            "learned_from": learned,
        },
        "columns": {column.name: column.why for column in split.schema.fields},
        "dropped": dict(split.schema.dropped),
        "inputs": len(split.schema.features),
        "marks_of_missing_values": len(estimator._inputs_.gaps),
        "body": body,
        "estimator": type(estimator).__name__,
        "rule": estimator.rule,
        "budget": estimator.budget,
        "chosen": {"penalty": estimator.penalty_, "l2": estimator.l2_, "dropout": estimator.input_dropout_},
        "folds": len(np.unique(path.table["fold"])),
        "path": [
            {name: float(getattr(point, name)) for name in names if np.isfinite(getattr(point, name))}
            | {"finished": point.is_finished}
            for point in path.points
        ],
        "n_parameters": int(estimator.n_parameters_),
        "baselines": baselines,
        "versions": {"meristem": meristem.__version__, "jax": jax.__version__, "numpy": np.__version__},
        "device": jax.default_backend(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
    }
