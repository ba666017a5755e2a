"""What a report is made of: plain data, gathered once from a fitted model and the rows that it is judged by.

    of_estimator(model, X, y, train=…) → Evidence        the estimators' `report`
    of_table(model, frame) → Evidence                    TableModel.report: its facts, and rows that were held out

Nothing here is written for a reader: words.py, sections.py and the figures do that. Imports estimators and tables.
"""

import hashlib
import sys
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import jax
import numpy as np

import meristem
from meristem.columns import Columns
from meristem.estimators import features
from meristem.report.beside import NAMES, crossed, fitted_beside, n_parameters
from meristem.report.importance import Importance, shuffled
from meristem.report.judge import CLASS, LABELS, MEASURES, Judge, outputs_of, said_of

SECONDS = 3.0  # for shuffling, and as many for what is fitted beside


@dataclass(frozen=True)
class Beside:
    """Another model on the same rows; `gain` is how much better ours is, with 95 % limits."""

    name: str
    score: dict[str, Any]
    gain: tuple[float, float, float]
    n_parameters: int


@dataclass(frozen=True, eq=False)
class Evidence:
    """See the module's header. Where no rows are known, `judge` is None, and what needs rows is not there."""

    model: Any  # an estimator
    target: str  # what is predicted, in a word or two
    rows: str  # which rows it is judged by, in words that go on "on …"
    score: dict[str, Any] | None
    n_rows: int
    beside: tuple[Beside, ...]
    how_beside: str
    judge: Judge | None = field(default=None, repr=False)
    said: np.ndarray | None = field(default=None, repr=False)
    raw: np.ndarray | None = field(default=None, repr=False)
    columns: tuple[str, ...] = ()  # names of what may matter
    unused: tuple[str, ...] = ()  # those of them whose gates are closed
    dropped: tuple[tuple[str, str], ...] = ()  # columns that were never inputs, and why
    importance: Importance | None = None  # of columns
    doubts: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict, repr=False)  # of a table
    digest: str | None = None  # of the data

    @property
    def kind(self) -> str:
        """class, labels, number or quantiles."""
        return self.judge.kind if self.judge is not None else str(self.facts["task"])

    @property
    def measure(self) -> str:
        return self.judge.measure if self.judge is not None else MEASURES[self.kind]

    @property
    def networks(self) -> list[Any]:
        """The plain estimators whose networks are averaged; most often one."""
        return list(getattr(self.model, "estimators_", [self.model]))

    @property
    def is_searched(self) -> bool:
        return hasattr(self.model, "path_")


def of_estimator(model: Any, X: Any, y: Any, train: Any = None) -> Evidence:
    """X and y are rows that the model has not learned from; `train=(X, y)` those that it has, for the others to learn from."""
    plain = getattr(model, "_model_", model)
    X, judge = _checked(plain, X, y)
    seed = model.random_state if isinstance(model.random_state, int) else 0
    raw = outputs_of(model, X)
    said = said_of(model, raw, judge)
    off = judge.off(said)
    if train is None:
        others = crossed(judge, X, seconds=2 * SECONDS, seed=seed)
        how = "The others learned from two thirds of these same rows at a time and predicted the rest, so they know fewer rows."
    else:
        if not isinstance(train, tuple | list) or len(train) != 2:
            raise ValueError(f"train is a {type(train).__name__}; it must be a pair (X, y).")
        x, known = _checked(plain, *train)
        others = fitted_beside(judge, X, (x, known.y), seconds=2 * SECONDS, seed=seed)
        how = f"The others learned from the {len(known.y):,} rows given as train."
    names = [str(name) for name in getattr(model, "feature_names_in_", [f"column {place}" for place in range(X.shape[1])])]
    groups = [np.array([place]) for place in range(X.shape[1])]
    return Evidence(
        model=model,
        target="class" if judge.kind == CLASS else "labels" if judge.kind == LABELS else "number",
        rows=f"{len(judge.y):,} rows" if len(judge.y) != 1 else "1 row",
        score=judge.score(off, seed),
        n_rows=len(judge.y),
        beside=_beside(model, judge, off, others, seed),
        how_beside=how,
        judge=judge,
        said=said,
        raw=raw,
        doubts=tuple(_of_rows(model, X, judge)),
        digest=_digest(X, y),
        **_mattering(model, judge, X, off, names, groups, SECONDS, seed),
    )


def of_table(model: Any, frame: Any = None, *, seconds: float = SECONDS) -> Evidence:
    """Without a frame the rows that `fit_table` held out, if this model still knows them; else its facts alone."""
    facts, estimator = model.facts, model.estimator
    held, is_held, doubts = (model.held, True, []) if frame is None else model.judged_by(frame)
    common = {
        "model": estimator,
        "target": model.target,
        "dropped": model.encoding.dropped,
        "facts": facts,
        "digest": facts.get("digest"),
        "doubts": tuple(doubts),
    }
    task, inputs = str(facts["task"]), model.encoding.inputs
    if held is None:
        score, n = facts["score"], int(facts["rows"]["test"])
        beside = _recorded(estimator, task, facts, score)
        return Evidence(rows=f"{n:,} rows that were held out", score=score, n_rows=n, beside=beside, how_beside=_same(n), **common)
    labels = tuple(str(label) for label in model.classes.tolist()) if task == CLASS else ()
    judge = Judge(task, held.y if task == CLASS else held.y.reshape(-1, 1), labels)
    raw = outputs_of(estimator, held.X)
    said = said_of(estimator, raw, judge)
    off, seed = judge.off(said), int(facts["seed"])
    score = facts["score"] if is_held else judge.score(off, seed)
    n = int(facts["rows"]["test"]) if is_held else len(judge.y)
    if held.said:
        beside, how = _beside(estimator, judge, off, held.said, seed, facts), _same(n)
    else:
        beside, how = _recorded(estimator, task, facts, score), _same(n) if is_held else "The others were fitted and scored with the model, on the rows held out then; they are not those of this report."
    places = np.split(np.arange(len(inputs)), np.cumsum([len(one.inputs) for one in model.encoding.columns])[:-1])
    names = [one.name for one in model.encoding.columns]
    return Evidence(
        rows=f"{n:,} rows that were held out" if is_held else f"{n:,} rows",
        score=score,
        n_rows=n,
        beside=beside,
        how_beside=how,
        judge=judge,
        said=said,
        raw=raw,
        **common,
        **_mattering(estimator, judge, held.X, off, names, places, seconds, seed),
    )


def _same(n: int) -> str:
    return f"The others learned from the same rows, and are judged by the same {n:,}."


def _checked(plain: Any, X: Any, y: Any) -> tuple[Any, Judge]:
    X, y = features.checked_with(plain, X, y, reset=False)
    y = plain._validated_target(y)
    targets = plain._targets_
    columns = y.shape[1] if y.ndim == 2 else 1
    expected = targets.n_out // len(targets.levels) if hasattr(targets, "levels") else targets.n_out
    if (hasattr(targets, "count") or not hasattr(plain, "classes_")) and columns != expected:
        raise ValueError(f"y has {columns} columns; this model predicts {expected}.")
    return X, Judge.of(plain, y)


def _beside(
    model: Any, judge: Judge, off: np.ndarray, others: dict[str, np.ndarray], seed: int, facts: dict[str, Any] | None = None
) -> tuple[Beside, ...]:
    sizes, found = n_parameters(model._columns_.n_inputs, judge.n_values), []
    for name, said in others.items():
        own = judge.off(said)
        score = judge.score(own, seed) if facts is None else facts["baselines"][name]
        found.append(Beside(NAMES[name], score, judge.gain(off, own, seed), sizes[name]))
    return tuple(found)


def _recorded(model: Any, task: str, facts: dict[str, Any], score: dict[str, Any]) -> tuple[Beside, ...]:
    """Others of which the scores alone are known: whether ours is better, their intervals say."""
    values = len(facts["classes"]) if task == CLASS and len(facts["classes"]) > 2 else 1
    sizes, found = n_parameters(model._columns_.n_inputs, values), []
    for name, other in facts["baselines"].items():
        gain = score["value"] - other["value"]
        half = np.hypot(score["high"] - score["low"], other["high"] - other["low"]) / 2
        found.append(Beside(NAMES[name], other, (gain, gain - float(half), gain + float(half)), sizes[name]))
    return tuple(found)


def _mattering(
    model: Any, judge: Judge, X: Any, off: np.ndarray, names: list[str], groups: list[np.ndarray], seconds: float, seed: int
) -> dict[str, Any]:
    """What is known of the columns: those that are read, and how much each matters."""
    is_read = reads(model)
    used = [bool(is_read[group].any()) for group in groups]

    def cost(x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return judge.part(rows).off(said_of(model, outputs_of(model, x), judge))

    kept = [place for place, one in enumerate(used) if one]
    is_told = judge.base.sum() > 0 and len(judge.y) > 1 and kept
    verbose = bool(getattr(model, "verbose", False))
    found = (
        shuffled(cost, X, judge.base, [groups[place] for place in kept], seconds=seconds, seed=seed, verbose=verbose)
        if is_told
        else None
    )
    return {
        "columns": tuple(names[place] for place in kept),
        "unused": tuple(name for name, one in zip(names, used, strict=True) if not one),
        "importance": found,
    }


def reads(model: Any) -> np.ndarray:
    """Which columns of X [features] any of its networks reads."""
    found = np.zeros(model.n_features_in_, bool)
    for one in getattr(model, "estimators_", [model]):
        gates, columns = one.network_.features, one._columns_
        is_open = np.ones(columns.n_inputs, bool) if gates is None else np.asarray(gates.value) > 0
        found |= is_open[: columns.n_features]
        found[columns.gaps] |= is_open[columns.n_features :]
    return found


def _of_rows(model: Any, X: Any, judge: Judge) -> list[str]:
    """What is doubtful about the rows that a report is made with."""
    lines = []
    columns, seen = model._columns_, getattr(model, "n_samples_seen_", None) or model._model_.n_samples_seen_
    if X.shape[0] == seen and np.allclose(Columns.of(X).fill, columns.fill, rtol=1e-6, atol=0):
        lines.append("These are the rows that it learned from, as far as can be told: on others it will be worse.")
    if judge.kind == CLASS and (n := int((judge.y < 0).sum())):
        lines.append(f"{n:,} of the rows have a class that the model has never seen; they count as wrong.")
    if judge.kind == CLASS and len(np.unique(judge.y)) == 1:
        lines.append("All rows are of one class: whether it tells classes apart cannot be seen here.")
    if judge.base.sum() <= 0:
        lines.append("All rows have the same number: R² says nothing here.")
    return lines


def _digest(X: Any, y: Any) -> str:
    """SHA-256 of the rows: of X as float64, a row after the other, then of y as text."""
    found = hashlib.sha256()
    for at in range(0, X.shape[0], 4096):
        block = X[at : at + 4096]
        found.update(np.ascontiguousarray(block.toarray() if hasattr(block, "toarray") else block, "<f8").tobytes())
    rows = y.toarray() if hasattr(y, "toarray") else np.asarray(y)
    found.update("\n".join(map(str, rows.tolist())).encode("utf-8", "replace"))
    return found.hexdigest()


def versions() -> dict[str, str]:
    """Of what this report was made with."""
    found = {"meristem": meristem.__version__, "Python": sys.version.split()[0], "jax": jax.__version__, "NumPy": np.__version__}
    for name in ("equinox", "scikit-learn"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
