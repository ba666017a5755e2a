"""What a report is made of: plain data, gathered once from a fitted model and the rows that it is judged by.

    of_estimator(model, X, y, train=…) → Evidence        the estimators' `report`
    of_table(model, frame) → Evidence                    TableModel.report: its facts, and rows that were held out

Nothing here is written for a reader: words.py, sections.py and the figures do that. Imports estimators and tables.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from meristem.inputs import Inputs, Schema
from meristem.report.beside import NAMES, crossed, fitted_beside, n_parameters, sizes_beside
from meristem.report.importance import Importance, shuffled
from meristem.report.judge import CLASS, LABELS, MEASURES, Judge, outputs_of, said_of
from meristem.report.rows import caveats, checked, digest_of, read_features

SECONDS, BESIDE = 3.0, 15.0  # for shuffling; for what is fitted beside
BEST = "The constant is the best that there is for these very rows."
CROSSED = f"{BEST} The others learned from two thirds of them at a time and predicted the rest, so they know fewer rows."
UNPAIRED = (
    "They were not trained again, and what they said of each row is not in the model’s file: the intervals of the differences "
    "are as if on other rows, wider than in the report that was written with the fit."
)


@dataclass(frozen=True)
class Beside:
    """Another model on the same rows; `gain` is how much better ours is, with 95 % limits."""

    name: str
    score: dict[str, Any]
    gain: tuple[float, float, float]
    n_parameters: int
    same: tuple[str, int] | None = None  # "answers", or else "scores", and of how many rows, where no row tells them apart


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
    is_paired: bool = True  # whether what the others say of each row is known, so that differences are taken row by row
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
    schema: Schema | None = field(default=None, repr=False)  # of a table

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
    X, judge = checked(plain, X, y)
    seed = model.random_state if isinstance(model.random_state, int) else 0
    raw = outputs_of(model, X)
    said = said_of(model, raw, judge)
    off = judge.off(said)
    if train is None:
        others = crossed(judge, X, seconds=BESIDE, seed=seed)
        others = others._replace(said=others.said | {"constant": judge.constant})
        how = CROSSED if len(others.said) > 1 else BEST
    else:
        if not isinstance(train, tuple | list) or len(train) != 2:
            raise ValueError(f"train is a {type(train).__name__}; it must be a pair (X, y).")
        x, known = checked(plain, *train)
        others = fitted_beside(judge, X, (x, known.y), seconds=BESIDE, seed=seed)
        how = f"The others learned from the {len(known.y):,} rows given as train."
    return Evidence(
        model=model,
        target="class" if judge.kind == CLASS else "labels" if judge.kind == LABELS else "number",
        rows=f"{len(judge.y):,} rows" if len(judge.y) != 1 else "1 row",
        score=judge.score(off, seed),
        n_rows=len(judge.y),
        beside=_beside(model, judge, said, others.said, seed),
        how_beside=how + _cut_short(others.lacks),
        judge=judge,
        said=said,
        raw=raw,
        doubts=tuple(caveats(model, X, judge)),
        digest=digest_of(X, y),
        **_mattering(model, judge, X, off, model._inputs_, SECONDS, seed),
    )


def of_table(model: Any, frame: Any = None, *, seconds: float = SECONDS) -> Evidence:
    """Without a frame the rows that `fit_table` held out, if this model still knows them; else its facts alone."""
    facts, estimator = model.facts, model.estimator
    evaluation, is_held, doubts = (model.evaluation, True, []) if frame is None else model.evaluated(frame)
    common = {
        "model": estimator,
        "target": model.target,
        "dropped": model.schema.dropped,
        "schema": model.schema,
        "facts": facts,
        "digest": facts.get("table_sha256"),
        "doubts": tuple(doubts),
    }
    task = str(facts["task"])
    if evaluation is None:
        score, n = facts["score"], int(facts["rows"]["test"])
        beside = _recorded(estimator, facts, score)
        return Evidence(
            rows=f"{n:,} rows that were held out",
            score=score,
            n_rows=n,
            beside=beside,
            how_beside=f"{_same(facts, n)} {UNPAIRED}",
            is_paired=False,
            **common,
        )
    labels = tuple(str(label) for label in model.classes.tolist()) if task == CLASS else ()
    y = evaluation.y if task == CLASS else evaluation.y.reshape(-1, 1)
    judge, raw = Judge(task, y, labels, model.levels), evaluation.sample_outputs
    said = said_of(estimator, raw, judge)
    off, seed = judge.off(said), int(facts["seed"])
    score = facts["score"] if is_held else judge.score(off, seed)
    n = int(facts["rows"]["test"]) if is_held else len(judge.y)
    if evaluation.baselines:
        beside, how = _beside(estimator, judge, said, evaluation.baselines, seed, facts), _same(facts, n)
    else:
        beside, how = (
            _recorded(estimator, facts, score),
            f"{_same(facts, n)} {UNPAIRED}"
            if is_held
            else "The others were scored when the model was made, on the rows held out then: not on those of this report.",
        )
    return Evidence(
        rows=f"{n:,} rows that were held out" if is_held else f"{n:,} rows",
        score=score,
        n_rows=n,
        beside=beside,
        how_beside=how,
        is_paired=bool(evaluation.baselines),
        judge=judge,
        said=said,
        raw=raw,
        **common,
        **_mattering(estimator, judge, evaluation.X, off, model.inputs, seconds, seed),
    )


def _same(facts: dict[str, Any], n: int) -> str:
    lacks = {name: one["lacks"] for name, one in facts["baselines"].items() if "lacks" in one}
    return f"The others were given the same rows to learn from, and are judged by the same {n:,}.{_cut_short(lacks)}"


def _cut_short(lacks: dict[str, str]) -> str:
    """A sentence for each whose time was short.

    >>> _cut_short({"mlp": "7 epochs"})
    ' The MLP of default size had time for 7 epochs only; with more it may be better.'
    """
    return "".join(f" The {NAMES[name]} had time for {had} only; with more it may be better." for name, had in lacks.items())


def _beside(
    model: Any, judge: Judge, said: np.ndarray, others: dict[str, np.ndarray], seed: int, facts: dict[str, Any] | None = None
) -> tuple[Beside, ...]:
    sizes, found, off = n_parameters(model._inputs_.n_inputs, judge.n_values), [], judge.off(said)
    for name, other in others.items():
        own = judge.off(other)
        score = judge.score(own, seed) if facts is None else facts["baselines"][name]
        alike = {"answers": np.array_equal(np.ravel(said), np.ravel(other)), "scores": np.array_equal(off, own)}
        same = next(((what, len(off)) for what, is_alike in alike.items() if is_alike), None)
        found.append(Beside(NAMES[name], score, judge.gain(off, own, seed), sizes[name], same))
    return tuple(found)


def _recorded(model: Any, facts: dict[str, Any], score: dict[str, Any]) -> tuple[Beside, ...]:
    """Others of which the scores alone are known: whether ours is better, their intervals say."""
    sizes, found = sizes_beside(model, facts), []
    for name, other in facts["baselines"].items():
        gain = score["value"] - other["value"]
        half = np.hypot(score["high"] - score["low"], other["high"] - other["low"]) / 2
        found.append(Beside(NAMES[name], other, (gain, gain - float(half), gain + float(half)), sizes[name]))
    return tuple(found)


def _mattering(model: Any, judge: Judge, X: Any, off: np.ndarray, inputs: Inputs, seconds: float, seed: int) -> dict[str, Any]:
    """What is known of the columns: those that are read, and how much each matters."""
    is_read, names, groups = read_features(model), inputs.column_names, inputs.groups
    used = [bool(is_read[group].any()) for group in groups]

    def cost(x: Any, rows: np.ndarray) -> np.ndarray:
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
