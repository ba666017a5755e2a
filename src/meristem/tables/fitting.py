"""A model from a table: columns and target are understood, a part is held out, the price is found, and all of it is said.

    fit_table("people.csv", target="income") → TableModel;  model.facts: what was used, found, and how good it is

Rows without a target are left out. Of the rest `test` is a share that is held out (of classes as much of each), or a table of
its own. Baselines and search use at most 50,000 rows, fewer where there are many inputs, drawn from the seed; the encoding is
learned from all training rows, and the score is that of all rows that were held out. With `seconds` the whole takes so long at
most, within a tenth (pace.py): a twentieth is kept for the end, an eighth of the rest is the baselines'.
Imports the estimators; commands import it.
"""

import os
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import meristem
from meristem.check import check_number, check_size, unknown
from meristem.tables.baselines import baselines
from meristem.tables.encoding import Encoding
from meristem.tables.model import TableModel
from meristem.tables.pace import Deadline, paced
from meristem.tables.reading import Table, tabled
from meristem.tables.scoring import in_words, scored
from meristem.tables.target import CLASS, Target

MOST_ROWS, MOST_NUMBERS = 50_000, 50_000_000  # that are searched with; rows × inputs
NUMBERS_PER_SECOND, LEAST_USED = 50_000, 1000  # with a limit: what scaling, baselines and a trial go through several times
LEAST_ROWS = 10  # on each side of a split
BODIES = ["tunnel", "budding"]
END, BESIDE = 0.05, 0.125  # of the time: for the score and files, and for baselines
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
    how = {"body": body, "budget": budget, "rule": rule, "test": test, "seconds": seconds, "random_state": random_state}
    check_fit(**how, **options)
    say: Say = (lambda line: print(line, file=sys.stderr, flush=True)) if verbose else (lambda line: None)
    whole = tabled(table)
    goal, train, apart, held, encoding = _understood(whole, target, task, test, random_state)
    read = time.monotonic()
    for line in _words(whole, goal, encoding, train, held):
        say(line)
    estimator = _estimator(
        body, goal.task, {"budget": budget, "rule": rule, "random_state": random_state, "verbose": verbose} | options
    )
    most = MOST_NUMBERS if seconds is None else min(MOST_NUMBERS, int(NUMBERS_PER_SECOND * seconds))
    used = _drawn(train, min(MOST_ROWS, max(LEAST_USED, most // len(encoding.inputs))), random_state)
    X, y = encoding(whole, used), goal.values[used]
    labels, places = np.unique(y, return_inverse=True) if goal.task == CLASS else (None, y)
    facts: dict[str, Any] = {"seed": random_state}
    known = TableModel(encoding, _Labels(labels), target, goal.task, facts)
    answers = known.answers(apart)[0][held]
    left = None if seconds is None else begun + seconds * (1 - END) - time.monotonic()

    beside, said_by = {}, {}
    share = None if left is None else BESIDE * left
    for name, predict in baselines(goal.task, X, places, seconds=share, seed=random_state):
        said_by[name] = np.concatenate([predict(block) for block in encoding.blocks(apart, held)])
        beside[name] = scored(goal.task, answers, said_by[name], random_state)
        say(f"{name}: {in_words(beside[name])}")
    compared = time.monotonic()

    rows, deadline = np.arange(len(y)), None
    if seconds is not None:
        deadline = Deadline(begun + seconds * (1 - END))
        changed, rows = paced(estimator, X, y, seconds=max(0.1, deadline.at - time.monotonic()), seed=random_state)
        given = estimator.callbacks if isinstance(estimator.callbacks, list) else [estimator.callbacks]
        estimator.set_params(**changed, callbacks=[*(one for one in given if one is not None), deadline])
    estimator.fit(X[rows], y[rows])
    estimator.callbacks = None  # they have been told, and no file holds them
    searched = time.monotonic()
    judges = known.sampled(apart, held, known.answers(apart)[0], said_by)
    model = TableModel(encoding, estimator, target, goal.task, facts, judges)
    facts |= _found(model, whole, goal, beside, train=train, held=held, used=len(rows), body=body)
    facts["score"] = model.scored(apart, held)
    facts["seconds"] = {
        "limit": None if seconds is None else float(seconds),
        "ended_the_search": deadline is not None and deadline.has_ended,
        "reading": round(read - begun, 3),
        "baselines": round(compared - read, 3),
        "search": round(searched - compared, 3),
        "all": round(time.monotonic() - begun, 3),
    }
    say(f"found: {in_words(facts['score'])}, {facts['n_parameters']:,} parameters")
    return model


class _Labels:
    """What the answers of a table are read by before an estimator is there."""

    def __init__(self, classes: np.ndarray | None):
        self.classes_ = classes


def check_fit(table: Any = None, *, target: str = "", task: str | None = None, test: Any = 0.2, **how: Any) -> None:
    """Raise ValueError, of one line, where `fit_table` would before it computes; without a table of its options alone.

    >>> check_fit(body="tunel")
    Traceback (most recent call last):
    ValueError: body='tunel' is not known. Did you mean 'tunnel'? Choose one of: tunnel, budding.
    """
    seconds, body = how.pop("seconds", None), how.pop("body", BODIES[0])
    if body not in BODIES:
        raise unknown("body", body, BODIES)
    if seconds is not None:
        check_number("seconds", seconds, "above 0", lambda value: 0 < value < np.inf)
    if isinstance(test, int | float | np.number):
        check_number("test", test, "above 0 and below 1", lambda value: 0 < value < 1)
    check_size("random_state", how.get("random_state", 0), least=0)
    _estimator(body, CLASS, how)
    if table is not None:
        _understood(tabled(table), target, task, test, how.get("random_state", 0))


def _understood(
    table: Table, target: str, task: str | None, test: Any, seed: int
) -> tuple[Target, np.ndarray, Table, np.ndarray, Encoding]:
    """The target; training rows; the table that is tested on, and its rows; and how columns are encoded."""
    goal = Target.of(table, target, task)
    train, apart, held = _parts(table, goal, test, seed)
    return goal, train, apart, held, Encoding.of(table, train, without=[target])


def _estimator(body: str, task: str, options: dict[str, Any]) -> Any:
    """The CV estimator of a body and a task, not fitted; raises ValueError where it cannot be told so."""
    from meristem import estimators
    from meristem.estimators.parameters import check_parameters

    kinds = {name: getattr(estimators, f"{body.capitalize()}{name}CV") for name in ("Classifier", "Regressor")}
    known = {name: kind().get_params() for name, kind in kinds.items()}
    for name in options:
        if not any(name in parameters for parameters in known.values()):
            raise unknown("option", name, sorted(known["Classifier"] | known["Regressor"]))
    which = "Classifier" if task == CLASS else "Regressor"
    model = kinds[which](**{name: value for name, value in options.items() if name in known[which]})
    check_parameters(model)
    return model


def _parts(table: Table, goal: Target, test: Any, seed: int) -> tuple[np.ndarray, Table, np.ndarray]:
    """Training rows; the table that is tested on, and its rows."""
    if isinstance(test, bool) or not isinstance(test, int | float | np.number):
        apart = tabled(test)
        if goal.name not in apart:
            raise ValueError(f"test: {apart.source} has no column {goal.name!r}; the target must be in it, too.")
        held = np.flatnonzero(apart[goal.name].as_codes([]) != -1)  # any value
        if not len(held):
            raise ValueError(f"test: {apart.source}: column {goal.name!r} is missing in every row.")
        return goal.rows, apart, held
    from sklearn.model_selection import train_test_split

    n = len(goal.rows)
    if round(n * float(test)) < 2 or n < LEAST_ROWS:
        raise ValueError(f"{table.source} has {n} rows with a target, of which test={test} holds out too few; give more rows.")
    n_held = round(n * float(test))
    counts = np.unique(goal.values[goal.rows], return_counts=True)[1] if goal.task == CLASS else np.zeros(1)
    is_even = counts.min() >= 2 and len(counts) <= min(n_held, n - n_held)
    train, rest = train_test_split(
        goal.rows, test_size=n_held, random_state=seed, stratify=goal.values[goal.rows] if is_even else None
    )
    if goal.task == CLASS and len(np.unique(goal.values[train])) < 2:
        raise ValueError(f"{table.source}: the rows to learn from hold one class; give more rows of the others.")
    return np.sort(train), table, np.sort(rest)


def held_again(model: TableModel, table: Table) -> np.ndarray | None:
    """The rows of the file that a model was made from which were held out then; None of any other table."""
    known = model.facts["rows"]
    is_same = table.digest is not None and table.digest == model.facts.get("digest") and table.rows == known["all"]
    if not is_same or known["train"] + known["test"] + known["without_target"] != known["all"]:  # it was tested on another
        return None
    goal = Target.of(tabled(table), model.target, model.task)
    return _parts(table, goal, known["test"] / len(goal.rows), int(model.facts["seed"]))[2]


def _drawn(rows: np.ndarray, most: int, seed: int) -> np.ndarray:
    """At most so many of them, from a seed."""
    return rows if len(rows) <= most else np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))


def _words(table: Table, goal: Target, encoding: Encoding, train: np.ndarray, held: np.ndarray) -> list[str]:
    """What was understood of a table, for a person."""
    without = f", {goal.n_dropped:,} without a target are dropped" if goal.n_dropped else ""
    kinds = [one.kind for one in encoding.columns]
    seen = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    return [
        f"{table.source}: {table.rows:,} rows{without}; {len(train):,} to learn from, {len(held):,} held out",
        f"target {goal.name!r}: {goal.why}",
        f"columns: {seen}; {len(encoding.inputs):,} inputs",
        *(f"dropped column {name!r}: {why}" for name, why in encoding.dropped),
    ]


def _found(
    model: TableModel,
    table: Table,
    goal: Target,
    beside: dict[str, Any],
    *,
    train: np.ndarray,
    held: np.ndarray,
    used: int,
    body: str,
) -> dict[str, Any]:
    """What is known of a model but for its score and its time; made of JSON's values."""
    estimator, path = model.estimator, model.estimator.path_
    names = ["penalty", "l2", "dropout", "loss", "error", "n_parameters"]
    return {
        "table": table.source.strip("'\""),
        "digest": table.digest,
        "target": goal.name,
        "task": goal.task,
        "why": goal.why,
        "classes": [str(label) for label in model.classes.tolist()] if goal.task == CLASS else None,
        "rows": {
            "all": table.rows,
            "without_target": goal.n_dropped,
            "train": len(train),
            "test": len(held),
            "searched_with": used,
        },
        "columns": {one.name: one.why for one in model.encoding.columns},
        "dropped": dict(model.encoding.dropped),
        "inputs": len(model.encoding.inputs),
        "body": body,
        "estimator": type(estimator).__name__,
        "rule": estimator.rule,
        "budget": estimator.budget,
        "chosen": {"penalty": estimator.penalty_, "l2": estimator.l2_, "dropout": estimator.input_dropout_},
        "folds": len(np.unique(path.table["fold"])),
        "path": [
            {name: float(getattr(point, name)) for name in names if np.isfinite(getattr(point, name))} for point in path.points
        ],
        "n_parameters": int(estimator.n_parameters_),
        "baselines": beside,
        "versions": {"meristem": meristem.__version__, "jax": jax.__version__, "numpy": np.__version__},
        "device": jax.default_backend(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
    }
