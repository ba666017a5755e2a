"""Calls of all estimators with odd data and odd parameters: a model with finite predictions, or one line that names why not.

    calls = Calls(folder, seed=0)
    for outcome in calls.outcomes(tries):       Outcome({"estimator": "TunnelRegressor", "X": "huge", …}, "works", "")
        …

A call is a choice of names: the estimator, X, y and sample_weight by what is odd about them, parameters by name and value; a
fitted model then predicts, scores, is cloned, saved, loaded, now and then exported, and learns more. Each outcome is one of

    works       finite predictions, the same from the file; or a RuntimeWarning that says which rows have none
    refused     a ValueError or TypeError of one line, of at most 300 characters, that names an argument; or a loss
                that turned non-finite: DivergedError
    failed      anything else: a bug. `smallest` makes plain what need not be odd; `keep` writes the choice to tests/cases

Networks are of four units and two epochs, on 24 rows of three columns: few programs are compiled.
"""

import io
import json
import os
import random
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import redirect_stderr
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas
from scipy import sparse
from sklearn.base import clone, is_classifier

import meristem
from forging import CASES, LONGEST
from meristem.estimators.parameters import parameters_of

ROWS, COLUMNS = 24, 3
PLAIN = [
    "TunnelClassifier",
    "BuddingClassifier",
    "HighwayClassifier",
    "TunnelRegressor",
    "BuddingRegressor",
    "HighwayRegressor",
]
SEARCHES = ["TunnelClassifierCV", "BuddingClassifierCV", "TunnelRegressorCV", "BuddingRegressorCV"]
SMALL = {"width": 4, "max_epochs": 2, "random_state": 0, "settle": False, "depth": 1, "max_leaves": 2}
SMALL |= {"penalties": [1e-3], "l2s": [1e-3], "input_dropouts": [0.0], "cv": 2}
ARGUMENTS = r"\b(X|y|sample_weight|class_weight|classes|validation|sample|samples|feature|features)\b"


_CHANCE = np.random.default_rng(0)
_X = _CHANCE.standard_normal((ROWS, COLUMNS))
_Y = np.arange(ROWS) % 3
_NAMES = np.array(["ash", "elm", "oak"])
_DAYS = pandas.to_datetime(["2020-01-01"] * ROWS)


def _with(values: np.ndarray, value: Any, where: Any = (2, 1)) -> np.ndarray:
    changed = values.copy()
    changed[where] = value
    return changed


def _frame(**columns: Any) -> pandas.DataFrame:
    return pandas.DataFrame({"a": _X[:, 0], "b": _X[:, 1], "c": _X[:, 2]} | columns)


XS: dict[str, Any] = {
    "plain": _X,
    "float32": _X.astype(np.float32),
    "float16": _X.astype(np.float16),
    "longdouble": _X.astype(np.longdouble),
    "big-endian": _X.astype(">f8"),
    "integers": (_X * 5).astype(int),
    "bytes": (_X * 5).astype(np.uint8),
    "booleans": _X > 0,
    "lists": _X.tolist(),
    "by columns": np.asfortranarray(_X),
    "backwards": _X[::-1, ::-1],
    "frame": _frame(),
    "frame of many types": _frame(b=np.arange(ROWS, dtype=np.int8), c=_X[:, 0] > 0),
    "frame with text": _frame(b=["red"] * ROWS),
    "frame with categories": _frame(b=pandas.Categorical(["red", "blue"] * (ROWS // 2))),
    "frame with missing": _frame(b=pandas.array([1, None] * (ROWS // 2), dtype="Int64")),
    "frame with days": _frame(b=_DAYS),
    "frame with numbers for names": pandas.DataFrame(_X),
    "frame with equal names": pandas.DataFrame(_X, columns=["a", "a", "b"]),
    "sparse": sparse.csr_matrix(_X * (_X > 0)),
    "sparse columns": sparse.csc_array(_X * (_X > 0)),
    "gaps": _with(_X, np.nan),
    "a column of gaps": _with(_X, np.nan, (slice(None), 1)),
    "all gaps": np.full_like(_X, np.nan),
    "constant": np.ones_like(_X),
    "one column constant": _with(_X, 3.0, (slice(None), 1)),
    "infinite": _with(_X, np.inf),
    "outlier": _with(_X, 1e9),
    "huge": _X * 1e200,
    "at the edge": _X * 5e307,
    "tiny": _X * 1e-200,
    "below normal": _X * 5e-324,
    "scales apart": _X * [1e-30, 1, 1e30],
    "far off": _X + 1e15,
    "numbers as texts": _X.astype(str),
    "texts": np.full(_X.shape, "red"),
    "objects": _X.astype(object),
    "None": None,
    "None inside": _with(_X.astype(object), None),
    "dictionaries": [{"a": 1}] * ROWS,
    "complex": _X + 1j,
    "days": _DAYS.to_numpy()[:, None],
    "one dimension": _X[:, 0],
    "three dimensions": _X[:, :, None],
    "a number": 3.0,
    "no rows": _X[:0],
    "no columns": _X[:, :0],
    "ragged": [[1.0, 2.0], [3.0]],
    "masked": np.ma.masked_array(_X, _X > 1),
    "read only": _X.view(),
}
XS["read only"].flags.writeable = False
CLASSES: dict[str, Any] = {
    "plain": _Y,
    "two": _Y > 0,
    "names": _NAMES[_Y],
    "objects": _NAMES[_Y].astype(object),
    "series": pandas.Series(_NAMES[_Y]),
    "categorical": pandas.Series(pandas.Categorical(_NAMES[_Y])),
    "whole floats": _Y.astype(float),
    "floats": _X[:, 0],
    "one class": np.zeros(ROWS, int),
    "a class of one": _with(np.zeros(ROWS, int), 1, 3),
    "every row its own": np.arange(ROWS),
    "large integers": _Y + 2**60,
    "gaps": _with(_Y.astype(float), np.nan, 2),
    "None inside": _with(_NAMES[_Y].astype(object), None, 2),
    "mixed": _with(_NAMES[_Y].astype(object), 7, 2),
    "labels": np.stack([_Y > 0, _Y > 1], 1).astype(int),
    "one label": (_Y[:, None] > 0).astype(int),
    "sparse labels": sparse.csr_matrix(np.stack([_Y > 0, _Y > 1], 1).astype(int)),
    "labels that none has": np.zeros((ROWS, 2), int),
    "column": _Y[:, None],
    "two classes at once": np.stack([_Y, _Y], 1),
    "shorter": _Y[:-1],
    "none": None,
    "empty": _Y[:0],
    "a number": 1,
    "days": _DAYS,
    "bytes": np.array([b"a", b"b", b"c"])[_Y],
    "lines": np.array(["a\nb", "c", "d" * 500])[_Y],
}
NUMBERS: dict[str, Any] = {
    "plain": _X[:, 0] ** 2,
    "integers": _Y,
    "booleans": _Y > 0,
    "float32": _X[:, 0].astype(np.float32),
    "float16": _X[:, 0].astype(np.float16),
    "lists": _X[:, 0].tolist(),
    "series": pandas.Series(_X[:, 0]),
    "nullable": pandas.Series([1.5, 2.5, 3.5] * (ROWS // 3), dtype="Float64"),
    "constant": np.ones(ROWS),
    "zeros": np.zeros(ROWS),
    "huge": _X[:, 0] * 1e200,
    "at the edge": _X[:, 0] * 5e307,
    "tiny": _X[:, 0] * 1e-200,
    "far off": _X[:, 0] + 1e15,
    "outlier": _with(_X[:, 0], 1e30, 2),
    "counts": _Y,
    "below zero": -_Y - 1.0,
    "column": _X[:, :1],
    "two": _X[:, :2],
    "no targets": _X[:, :0],
    "three dimensions": _X[:, :, None],
    "gaps": _with(_X[:, 0], np.nan, 2),
    "infinite": _with(_X[:, 0], np.inf, 2),
    "texts": _NAMES[_Y],
    "numbers as texts": _X[:, 0].astype(str),
    "None inside": _with(_X[:, 0].astype(object), None, 2),
    "complex": _X[:, 0] + 1j,
    "days": _DAYS,
    "shorter": _X[:-1, 0],
    "none": None,
    "empty": _X[:0, 0],
    "a number": 1.0,
    "sparse": sparse.csr_matrix(_X[:, :1]),
}
WEIGHTS: dict[str, Any] = {
    "plain": None,
    "ones": np.ones(ROWS),
    "any": np.abs(_X[:, 0]),
    "integers": [1, 2, 3] * (ROWS // 3),
    "booleans": _Y > 0,
    "series": pandas.Series(np.ones(ROWS), index=range(100, 100 + ROWS)),
    "one counts": _with(np.zeros(ROWS), 1, 3),
    "zeros": np.zeros(ROWS),
    "of one class": (_Y == 0).astype(float),
    "huge": np.full(ROWS, 1e300),
    "tiny": np.full(ROWS, 1e-300),
    "apart": np.where(_Y == 0, 1e-30, 1e30),
    "negative": -np.ones(ROWS),
    "gaps": _with(np.ones(ROWS), np.nan, 2),
    "infinite": _with(np.ones(ROWS), np.inf, 2),
    "texts": ["a"] * ROWS,
    "numbers as texts": ["1"] * ROWS,
    "shorter": np.ones(ROWS - 1),
    "two columns": np.ones((ROWS, 2)),
    "a number": 2.0,
    "none inside": [None] * ROWS,
    "complex": np.ones(ROWS, complex),
}
# Cases name values by their place: new ones come last.
FINE: dict[str, list[Any]] = {
    "penalty": [0, 1e-6, np.float32(0.1), 1e30],
    "l2": [0, "auto", 1.0, 1e30],
    "input_dropout": [0, "auto", 0.5],
    "learning_rate": [1e-30, 1e-3, 1.0, 1e10, 1e30],
    "depth_decay": [1e-3, 1.0],
    "early_stopping": [True, False, np.True_],
    "validation_fraction": [0.01, 0.3, 0.99],
    "standardize": [False],
    "class_weight": [None, "balanced", {0: 2.0, 1: 1, 2: 0.5}, {0: 0, 1: 0, 2: 0}, {"ash": 2.0}, {7: 1}],
    "loss": ["absolute_error", "huber", "poisson", "quantile"],
    "quantiles": [(0.1, 0.5, 0.9), [0.5], np.array([0.2])],
    "batch_size": [1, 7, 10**6, np.int64(8)],
    "patience": [1, "auto"],
    "random_state": [0, 2**32 - 1, np.random.RandomState(0), None],
    "verbose": [True, 1],
    "warm_start": [True],
    "penalties": [[0.0], "auto", np.array([1e-3, 1e-2])],
    "rule": ["1se"],
    "refit": ["one", "distill"],
    "halving": [False],
    "cv": [[(np.arange(12), np.arange(12, 24))], 3],
    "scoring": ["accuracy", "r2", "roc_auc"],
    "callbacks": [[]],
}
ODD: list[Any] = [
    None,
    -1,
    0,
    1.5,
    np.nan,
    np.inf,
    True,
    "",
    "x",
    "auto\n",
    [],
    {},
    (),
    b"x",
    10**400,
    2**31,
    1j,
    object,
    [[]],
    {1: "x"},
]
ODD += [np.array([1.0, 2.0]), np.array(0.5), ["a"], lambda: None, {"a"}, Path("x\0y"), [np.nan], [(1, 2)], [None]]


class Outcome(NamedTuple):
    """Of one call."""

    call: dict[str, Any]
    result: str  # works, refused or failed
    words: str


class Calls:
    """Draws calls and tells what became of each; files go to a folder."""

    def __init__(self, folder: Path, *, seed: int = 0, names: Sequence[str] = (*PLAIN, *SEARCHES)):
        self.chance, self.folder, self.names = random.Random(seed), folder, names

    def outcomes(self, tries: int) -> Iterator[Outcome]:
        """So many calls, of all estimators in turn."""
        for number in range(tries):
            call = self.draw(self.names[number % len(self.names)])
            result, words = self.outcome(call)
            yield Outcome(call, result, words) if result != "failed" else self.smallest(call, words)

    def draw(self, name: str) -> dict[str, Any]:
        """One to three things are odd."""
        chance, call = self.chance, {"estimator": name, "X": "plain", "y": "plain", "weight": "plain", "parameters": {}}
        for _ in range(chance.choice([1, 1, 2, 3])):
            what = chance.choice(["X", "y", "weight", "fine", "odd"])
            if what in ("X", "y", "weight"):
                call[what] = chance.choice([*self._choices(name)[what]])
            else:
                known = [one for one in parameters_of(getattr(meristem, name)) if what == "odd" or one in FINE]
                parameter = chance.choice(known)
                size = len(ODD) if what == "odd" else len(FINE[parameter])
                place = chance.randrange(size)
                if not (what == "odd" and parameter in ("callbacks", "scoring") and callable(ODD[place])):  # code of one's own
                    call["parameters"][parameter] = [what, place]
        return call

    @staticmethod
    def _choices(name: str) -> dict[str, dict[str, Any]]:
        return {"X": XS, "y": CLASSES if "Classifier" in name else NUMBERS, "weight": WEIGHTS}

    def outcome(self, call: dict[str, Any]) -> tuple[str, str]:
        """The result and what was said."""
        data = {what: found[call[what]] for what, found in self._choices(call["estimator"]).items()}
        kind = getattr(meristem, call["estimator"])
        values = {name: (ODD if way == "odd" else FINE[name])[place] for name, (way, place) in call["parameters"].items()}
        model = kind(**{name: value for name, value in SMALL.items() if name in parameters_of(kind)} | values)
        before = {name: id(value) for name, value in vars(model).items()}
        with warnings.catch_warnings(record=True) as said, redirect_stderr(io.StringIO()), np.errstate(all="ignore"):
            warnings.simplefilter("always")
            try:
                self._use(model, data["X"], data["y"], data["weight"], said)
            except (ValueError, TypeError, ArithmeticError) as error:
                words = f"{type(error).__name__}: {error}"
                return self._judged(error, [*parameters_of(kind), *values]), words
            except Exception as error:
                return "failed", f"{type(error).__name__}: {error}"
        kept = {name: id(vars(model)[name]) for name in before}
        return ("works", "") if kept == before else ("failed", "a parameter is no longer what was given")

    @staticmethod
    def _judged(error: Exception, parameters: list[str]) -> str:
        text = str(error)
        is_named = re.search(ARGUMENTS, text) or any(name in text for name in parameters)
        is_ours = type(error) in (ValueError, TypeError)
        is_diverged = type(error) in (ArithmeticError, meristem.DivergedError)
        return "refused" if ((is_ours and is_named) or is_diverged) and "\n" not in text and len(text) <= LONGEST else "failed"

    def _use(self, model: Any, X: Any, y: Any, weight: Any, said: list[warnings.WarningMessage]) -> None:
        model.fit(X, y, weight)
        answers = [model.predict(X)] + ([model.predict_proba(X)] if is_classifier(model) else [])
        is_warned = any(issubclass(one.category, RuntimeWarning) and "no finite prediction" in str(one.message) for one in said)
        for answer in answers:
            is_finite = answer.dtype.kind not in "fc" or bool(np.isfinite(answer).all())
            assert len(answer) == ROWS and (is_finite or is_warned), (
                f"{(~np.isfinite(answer)).sum()} predictions are not finite"
            )
        if not is_warned and not hasattr(model, "quantiles"):
            assert np.ndim(model.score(X, y)) == 0
        clone(model), repr(model)
        path = self.folder / "model.safetensors"
        model.save(path)
        again = meristem.load(path).predict(X)
        assert np.array_equal(again, answers[0], equal_nan=again.dtype.kind == "f"), "a file predicts something else"
        if self.chance.random() < 0.1:
            model.to_onnx(self.folder / "model.onnx")
        if hasattr(model, "partial_fit") and self.chance.random() < 0.1:
            model.partial_fit(X, y, sample_weight=weight)

    def smallest(self, call: dict[str, Any], words: str) -> Outcome:
        """The same failure with as little odd as can be."""
        for part in ("X", "y", "weight", *list(call["parameters"])):
            plain = dict(call, parameters=dict(call["parameters"]))
            if part in plain["parameters"]:
                del plain["parameters"][part]
            else:
                plain[part] = "plain"
            result, found = self.outcome(plain)
            if result == "failed":
                call, words = plain, found
        return Outcome(call, "failed", words)


def report(outcomes: Iterable[Outcome]) -> dict[str, Any]:
    """Counts by estimator and result, and what failed.

    >>> report([Outcome({"estimator": "TunnelRegressor"}, "works", "")])["counts"]
    {'TunnelRegressor works': 1}
    """
    found = list(outcomes)
    counts = Counter(f"{outcome.call['estimator']} {outcome.result}" for outcome in found)
    failures = [[json.dumps(outcome.call), outcome.words[:200]] for outcome in found if outcome.result == "failed"]
    return {"calls": len(found), "counts": dict(sorted(counts.items())), "failures": failures}


def keep(outcome: Outcome) -> Path:
    """A failing call among the cases that the suite replays."""
    text = json.dumps(outcome.call, indent=1) + "\n"
    place = CASES / "calls" / f"{outcome.call['estimator']}-{sha256(text.encode()).hexdigest()[:8]}.json"
    os.makedirs(place.parent, exist_ok=True)
    place.write_text(text)
    return place
