"""A model from a table: columns and target are understood, a part is held out, the price is found, and all of it is said.

    fit_table("people.csv", target="income") → TableModel;  model.facts: what was used, found, and how good it is

Baselines and search use at most 50,000 rows, fewer where there are many inputs, drawn from the seed; the encoding is learned
from all training rows (understanding.py), and the score is that of all rows that were held out. With `seconds` the whole takes
so long at most, within a tenth: an eighth is the baselines', while a first program is compiled and tried, and what the end
needs is kept; a time that is too short for a network is refused (pace.py).
Imports the estimators; commands import it.
"""

import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import meristem
from meristem.check import check_number, check_size, many, unknown
from meristem.tables.baselines import baselines
from meristem.tables.limit import Limit
from meristem.tables.model import TableModel
from meristem.tables.pace import Trying, paced
from meristem.tables.reading import tabled
from meristem.tables.scoring import in_words, scored
from meristem.tables.target import CLASS
from meristem.tables.understanding import Understood

MOST_ROWS, MOST_NUMBERS = 50_000, 50_000_000  # that are searched with; rows × inputs
NUMBERS_PER_SECOND, LEAST_USED = 50_000, 1000  # with a limit: what scaling, baselines and a trial go through several times
BODIES = ["tunnel", "budding"]
BESIDE = 0.125  # of the time: for baselines
FEW_EPOCHS = 20  # with fewer a network has hardly begun
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
    known = Understood.of(tabled(table), target=target, task=task, test=test, seed=random_state)
    check_budget(known, **how)
    return fit_understood(known, begun=begun, verbose=verbose, **how)


def fit_understood(
    known: Understood,
    *,
    begun: float,
    body: str,
    seconds: float | None,
    random_state: int,
    verbose: bool,
    **options: Any,
) -> TableModel:
    """The model of a table that is understood; `begun`: when the time began that is limited, as `time.monotonic` has it."""
    say: Say = (lambda line: print(line, file=sys.stderr, flush=True)) if verbose else (lambda line: None)
    whole, goal, encoding, apart, held = known.table, known.goal, known.encoding, known.apart, known.held
    read = time.monotonic()
    for line in known.words():
        say(line)
    estimator = _estimator(body, goal.task, options | {"random_state": random_state, "verbose": verbose})
    used = _used(known, seconds, random_state)
    X, y = encoding(whole, used), goal.values[used]
    labels, places = np.unique(y, return_inverse=True) if goal.task == CLASS else (None, y)
    facts: dict[str, Any] = {"seed": random_state}
    unjudged = TableModel(encoding, _Labels(labels), goal.name, goal.task, facts)
    answers = unjudged.answers(apart)[0]
    limit = None if seconds is None else Limit(seconds, begun)
    beside, said, rows, deadline = {}, {}, np.arange(len(y)), None
    with warnings.catch_warnings():  # those of two threads, which set and reset them
        trying = None if limit is None else Trying(estimator, X, y, limit, seed=random_state)
        share = None if limit is None else BESIDE * max(0.0, limit.end - time.monotonic())
        for name, predict, lacks in baselines(goal.task, X, places, seconds=share, seed=random_state):
            said[name] = np.concatenate([predict(block) for block in encoding.blocks(apart, held)])
            beside[name] = scored(goal.task, answers[held], said[name], random_state) | ({"lacks": lacks} if lacks else {})
            say(f"{name}: {in_words(beside[name])}{lacks and f', in the time there was ({lacks})'}")
        compared = time.monotonic()
        if trying is not None and limit is not None:
            rows, deadline = paced(estimator, X, y, trying.result(), limit, held=len(held), seed=random_state)
    estimator.fit(X[rows], y[rows])
    estimator.callbacks = None  # they have been told, and no file holds them
    searched = time.monotonic()
    model = TableModel(encoding, estimator, goal.name, goal.task, facts, unjudged.sampled(apart, held, answers, said))
    facts |= _found(model, known, beside, used=len(rows), body=body)
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
    for line in _cut_short(facts, int(estimator.n_iter_), len(used)):
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


class _Labels:
    """What the answers of a table are read by before an estimator is there."""

    def __init__(self, classes: np.ndarray | None):
        self.classes_ = classes


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


def check_budget(known: Understood, *, body: str, seconds: float | None, random_state: int, **options: Any) -> None:
    """Raise ValueError, of one line with the least that there can be, where no model of a table is within its budget."""
    if options["budget"] is not None:
        used = _used(known, seconds, random_state)
        estimator = _estimator(body, known.goal.task, options | {"random_state": random_state})
        estimator._planned(known.encoding(known.table, used), known.goal.values[used])


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


def _used(known: Understood, seconds: float | None, seed: int) -> np.ndarray:
    """The rows that are searched with: all to learn from, or as many as can be, drawn from a seed."""
    numbers = MOST_NUMBERS if seconds is None else min(MOST_NUMBERS, int(NUMBERS_PER_SECOND * seconds))
    rows, most = known.train, min(MOST_ROWS, max(LEAST_USED, numbers // len(known.encoding.inputs)))
    return rows if len(rows) <= most else np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))


def _found(model: TableModel, known: Understood, beside: dict[str, Any], *, used: int, body: str) -> dict[str, Any]:
    """What is known of a model but for its score and its time; made of JSON's values."""
    estimator, path, table, goal = model.estimator, model.estimator.path_, known.table, known.goal
    names = ["penalty", "l2", "dropout", "loss", "error", "n_parameters"]
    return {
        "table": table.source.strip("'\""),
        "table_sha256": table.digest,
        "test": {"table": known.apart.source.strip("'\""), "sha256": known.apart.digest} if known.is_apart else None,
        "target": goal.name,
        "task": goal.task,
        "why": goal.why,
        "classes": [str(label) for label in model.classes.tolist()] if goal.task == CLASS else None,
        "rows": {
            "all": table.rows,
            "without_target": goal.n_dropped,
            "train": len(known.train),
            "test": len(known.held),
            "searched_with": used,
        },
        "columns": {one.name: one.why for one in model.encoding.columns},
        "dropped": dict(model.encoding.dropped),
        "doubts": known.doubts(),
        "inputs": len(model.encoding.inputs),
        "marks_of_missing_values": len(estimator._columns_.gaps),
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
        "baselines": beside,
        "versions": {"meristem": meristem.__version__, "jax": jax.__version__, "numpy": np.__version__},
        "device": jax.default_backend(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
    }
