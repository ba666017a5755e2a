"""A model from a table: columns and target are understood, a part is held out, the price is found, and all of it is said.

    fit_table("people.csv", target="income") → TableModel;  model.facts: what was used, found, and how good it is

Baselines and search use at most 50,000 rows, fewer where there are many inputs, drawn from the seed; the encoding is learned
from all training rows (split.py), and the score is that of all rows that were held out. With `seconds` the whole takes
so long at most, within a tenth: an eighth is the baselines', while a first program is compiled and tried, and what the end
needs is kept; a time that is too short for a network is refused (pace.py).
Imports the estimators; commands import it.
"""

import os
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import numpy as np

import meristem
from meristem.check import check_number, check_size, many, short, unknown
from meristem.inputs.field import NUMBER
from meristem.inputs.preprocessor import TooLargeError
from meristem.report.baselines import baselines
from meristem.report.scoring import in_words, scored
from meristem.tables.answers import answers
from meristem.tables.coding import feature_blocks, features
from meristem.tables.evaluation import Evaluation
from meristem.tables.limit import Limit
from meristem.tables.model import MEDIAN, TableModel
from meristem.tables.pace import Trying, paced
from meristem.tables.reading import tabled
from meristem.tables.split import TableSplit
from meristem.tables.table import Table
from meristem.tables.target import CLASS

MOST_ROWS, MOST_NUMBERS = 50_000, 50_000_000  # that are searched with; rows × inputs
NUMBERS_PER_SECOND, LEAST_USED = 50_000, 1000  # with a limit: what scaling, baselines and a trial go through several times
BODIES = ["tunnel", "budding"]
BESIDE = 0.125  # of the time: for baselines
FEW_EPOCHS = 20  # with fewer a network has hardly begun
LEAST_BYTES, COPIES = 2**21, 8  # of the files of a fit; of a network's numbers in a run: weights, best, last, moments, average
Say = Callable[[str], None]


def fit_table(
    table: Any,
    *,
    target: str,
    task: str | None = None,
    body: str = "tunnel",
    budget: int | None = None,
    rule: str = "min",
    test: Any = 0.2,
    seconds: float | None = None,
    random_state: int = 0,
    verbose: bool = False,
    **options: Any,
) -> TableModel:
    """A model that predicts the column `target` from the others.

    table          a frame, a dictionary of lists, or the path of a file (CSV, gzipped CSV, Parquet; "-": standard input)
    task           "class" or "number"; None: as the data are
    body           "tunnel" or "budding"
    budget, rule   the most parameters of the model; which price is taken ("min", "1se"): see the CV estimators
    test           the share of rows that is held out, or a table of its own
    seconds        a limit on the whole
    options        further parameters of the CV estimator

    >>> x = np.linspace(0, 1, 60)
    >>> quick = {"cv": 2, "max_epochs": 20, "depth": 1, "max_width": 4, "penalties": [1e-4], "learning_rate": 0.03}
    >>> model = fit_table({"x": x, "name": ["a", "b"] * 30, "y": 3 * x}, target="y", **quick)
    >>> model.task, sorted(model.facts["baselines"]), model.facts["score"]["value"] > 0.8
    ('number', ['constant', 'linear', 'mlp'], True)
    """
    begun = time.monotonic()
    how = options | {"body": body, "budget": budget, "rule": rule, "seconds": seconds, "random_state": random_state}
    check_options(test=test, **how)
    split = TableSplit.of(tabled(table), target=target, task=task, test=test, seed=random_state)
    return fit_planned(plan_fit(split, verbose=verbose, **how), begun=begun)


@dataclass(frozen=True, eq=False)
class FitPlan:
    """A table that was found fit to be learned from, and how: nothing is computed or written before there is one."""

    split: TableSplit
    estimator: Any  # a CV estimator, not fitted
    search: Any  # what it will do with the rows (estimators/search.py)
    X: np.ndarray  # features of the rows that are searched with
    y: np.ndarray
    body: str
    seconds: float | None
    seed: int

    @property
    def verbose(self) -> bool:
        return bool(self.estimator.verbose)

    @property
    def n_bytes(self) -> int:
        """What the files of the fit take, roughly: checkpoints and the model, of networks with their optimizer's memory."""
        numbers = sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(self.search.begun_network, eqx.is_array)))
        return LEAST_BYTES + 4 * COPIES * numbers * (len(self.search.folds) + 1)


def plan_fit(
    split: TableSplit, *, body: str, seconds: float | None, random_state: int, verbose: bool = False, **options: Any
) -> FitPlan:
    """Encode the rows and plan the search; ValueError of one line where the table, an option or the budget does not fit."""
    estimator = _estimator(body, split.target.task, options | {"random_state": random_state, "verbose": verbose})
    used = _used(split, seconds, random_state)
    X, y = features(split.schema, split.table, used), split.target.values[used]
    try:
        search = estimator._planned(X, y)
    except TooLargeError as error:
        name = split.schema.features[error.feature]
        raise ValueError(
            f"{split.table.source}: column {short(name)} holds numbers whose squares no float holds; divide it by 1e150."
        ) from None
    return FitPlan(split, estimator, search, X, y, body, seconds, random_state)


def fit_planned(plan: FitPlan, *, begun: float) -> TableModel:
    """The model of a plan; `begun`: when the time began that is limited, as `time.monotonic` has it."""
    say: Say = (lambda line: print(line, file=sys.stderr, flush=True)) if plan.verbose else (lambda line: None)
    split, estimator, X, y, seconds, seed = plan.split, plan.estimator, plan.X, plan.y, plan.seconds, plan.seed
    schema, target, test_table, test_rows = split.schema, split.target, split.test_table, split.test_rows
    read = time.monotonic()
    for line in split.words():
        say(line)
    labels, places = np.unique(y, return_inverse=True) if target.task == CLASS else (None, y)
    values = answers(test_table, target.name, target.task, labels)[0]
    limit = None if seconds is None else Limit(seconds, begun)
    scores, predicted, rows, deadline = {}, {}, np.arange(len(y)), None
    with warnings.catch_warnings():  # those of two threads, which set and reset them
        trying = None if limit is None else Trying(estimator, X, y, limit, seed=seed)
        share = None if limit is None else BESIDE * max(0.0, limit.end - time.monotonic())
        for name, predict, lacks in baselines(target.task, X, places, seconds=share, seed=seed):
            predicted[name] = np.concatenate([predict(block) for block in feature_blocks(schema, test_table, test_rows)])
            scores[name] = scored(target.task, values[test_rows], predicted[name], seed) | ({"lacks": lacks} if lacks else {})
            say(f"{name}: {in_words(scores[name])}{lacks and f', in the time there was ({lacks})'}")
        compared = time.monotonic()
        if trying is not None and limit is not None:
            rows, deadline = paced(estimator, X, y, trying.result(), limit, held=len(test_rows), seed=seed)
    if limit is None:
        estimator.fit_search(plan.search)
    else:
        estimator.fit(X[rows], y[rows])
    estimator.callbacks = None  # they have been told, and no file holds them
    searched = time.monotonic()
    facts: dict[str, Any] = {"seed": seed}
    model = TableModel(schema, estimator, target.name, target.task, facts)
    evaluation = Evaluation.of(model, test_table, test_rows, values, predicted)
    model = replace(model, evaluation=evaluation)
    facts |= _facts(model, split, scores, used=len(rows), body=plan.body)
    facts["score"] = model.scored(values[test_rows], evaluation.predicted)
    facts["seconds"] = {
        "limit": None if seconds is None else float(seconds),
        "ended_the_search": deadline is not None and deadline.has_ended,
        "reading": round(read - begun, 3),
        "baselines": round(compared - read, 3),
        "search": round(searched - compared, 3),
        "all": round(time.monotonic() - begun, 3),
    }
    say(f"found: {in_words(facts['score'])}, {facts['n_parameters']:,} parameters")
    for line in _cut_short(facts, int(estimator.n_iter_), len(y)):
        say(line)
    return model


def _cut_short(facts: dict[str, Any], epochs: int, drawn: int) -> list[str]:
    """What a limit of time took from the search, if it was much.

    >>> facts = {"seconds": {"limit": 20.0, "ended_the_search": True}, "rows": {"searched_with": 2000}}
    >>> _cut_short(facts, 3, 8000)
    ['seconds=20 left time for 3 epochs and 2,000 of 8,000 rows: the model is likely poor; give more.']
    """
    limit, rows = facts["seconds"]["limit"], facts["rows"]["searched_with"]
    parts = [many(epochs, "epoch")] if facts["seconds"]["ended_the_search"] and epochs < FEW_EPOCHS else []
    parts += [f"{rows:,} of {drawn:,} rows"] if rows < drawn else []
    return [f"seconds={limit:g} left time for {' and '.join(parts)}: the model is likely poor; give more."] if parts else []


def check_options(*, test: Any = 0.2, body: str = BODIES[0], seconds: float | None = None, **options: Any) -> None:
    """Raise ValueError, of one line, where `fit_table` would because of an option, before it looks at a table.

    >>> check_options(body="tunel")
    Traceback (most recent call last):
    ValueError: body='tunel' is not known. Did you mean 'tunnel'? Choose one of: tunnel, budding.
    """
    if body not in BODIES:
        raise unknown("body", body, BODIES)
    if seconds is not None:
        check_number("seconds", seconds, "above 0", lambda value: 0 < value < np.inf)
    if isinstance(test, int | float | np.number):
        check_number("test", test, "above 0 and below 1", lambda value: 0 < value < 1)
    check_size("random_state", options.get("random_state", 0), least=0)
    _estimator(body, CLASS, options)
    levels = tuple(options.get("quantiles", ()) or ()) if options.get("loss") == "quantile" else ()
    if len(levels) > 1 and MEDIAN not in levels:
        raise ValueError(f"quantiles={short(levels)} must have 0.5 among them: a table's model is scored by its median.")


def _estimator(body: str, task: str, options: dict[str, Any]) -> Any:
    """The CV estimator of a body and a task, not fitted; raises ValueError where it cannot be told so."""
    from meristem import estimators
    from meristem.estimators.parameters import check_parameters

    kinds = {name: getattr(estimators, f"{body.capitalize()}{name}CV") for name in ("Classifier", "Regressor")}
    parameters = {name: kind().get_params() for name, kind in kinds.items()}
    for name in options:
        if not any(name in own for own in parameters.values()):
            raise unknown("option", name, sorted(parameters["Classifier"] | parameters["Regressor"]))
    which = "Classifier" if task == CLASS else "Regressor"
    model = kinds[which](**{name: value for name, value in options.items() if name in parameters[which]})
    check_parameters(model)
    return model


def _used(split: TableSplit, seconds: float | None, seed: int) -> np.ndarray:
    """The rows that are searched with: all to learn from, or as many as can be, drawn from a seed."""
    numbers = MOST_NUMBERS if seconds is None else min(MOST_NUMBERS, int(NUMBERS_PER_SECOND * seconds))
    rows, most = split.train_rows, min(MOST_ROWS, max(LEAST_USED, numbers // len(split.schema.features)))
    return rows if len(rows) <= most else np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))


def _source(table: Table) -> dict[str, Any]:
    """Where a table came from."""
    return {"table": table.source.strip("'\""), "sha256": table.digest}


def _reading(split: TableSplit) -> dict[str, Any]:
    """How the table was read, so that others can read one like it."""
    table, numbers = split.table, [column.name for column in split.schema.fields if column.kind == NUMBER]
    commas = [name for name in numbers if table[name].has_commas]
    return {"format": table.format, "sep": table.sep, "encoding": table.encoding, "decimal_commas": commas}


def _facts(model: TableModel, split: TableSplit, baselines: dict[str, Any], *, used: int, body: str) -> dict[str, Any]:
    """What is known of a model but for its score and its time; made of JSON's values."""
    estimator, path, table, target = model.estimator, model.estimator.path_, split.table, split.target
    names = ["penalty", "l2", "dropout", "loss", "error", "n_parameters"]
    return {
        "table": _source(table)["table"],
        "table_sha256": table.digest,
        "reading": _reading(split),
        "test": _source(split.test_table) if split.has_test_table else None,
        "target": target.name,
        "task": target.task,
        "why": target.why,
        "classes": [str(label) for label in model.classes.tolist()] if target.task == CLASS else None,
        "rows": {
            "all": table.rows,
            "without_target": target.n_dropped,
            "train": len(split.train_rows),
            "test": len(split.test_rows),
            "searched_with": used,
        },
        "columns": {column.name: column.why for column in split.schema.fields},
        "dropped": dict(split.schema.dropped),
        "doubts": split.doubts(),
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
