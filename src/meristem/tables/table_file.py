"""The file of a table's model: the schema of its columns, its facts, and the estimator.

    header   {"encoding": {…}, "target": "price", "task": "number", "facts": {…}, "search": the header of a search}
    arrays   those of the search                                                        see estimators/search_file.py

Facts (`TableModel.facts`, summary.json) are checked against FACTS when a file is read or written, because reports, `repr` and
scores rely on them. Facts that FACTS does not name may be anything.
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from meristem.check import short
from meristem.estimators import search_file
from meristem.files import FileKind, register
from meristem.files.named_arrays import Arrays
from meristem.inputs import Schema
from meristem.tables.table_model import TableModel
from meristem.tables.target import CLASS, TASKS

ENTRIES = ["encoding", "target", "task", "facts", "search"]
LARGEST_COUNT = 2**53
DIGEST = re.compile(r"[0-9a-f]{64}")
BASELINES = ("constant", "linear", "mlp")
MEASURES = {"class": "accuracy", "number": "R²"}


def pack(model: TableModel) -> tuple[dict[str, Any], Arrays]:
    """Return a model's header, made of JSON values, and its arrays."""
    header, arrays = search_file.pack(model.estimator)
    own = {"encoding": model.schema.as_json(), "target": model.target, "task": model.task, "facts": model.facts}
    return own | {"search": header}, arrays


def unpack(header: Any, arrays: Arrays) -> TableModel:
    """Return the model, which predicts the same to the bit; raise ValueError where its parts do not fit together."""
    if set(header) != set(ENTRIES):
        raise ValueError("it does not hold what a table's model is made of.")
    target, task, facts = header["target"], header["task"], header["facts"]
    schema, estimator = Schema.of_json(header["encoding"]), search_file.unpack(header["search"], arrays)
    is_valid = isinstance(target, str) and isinstance(task, str) and task in TASKS
    if not is_valid or hasattr(estimator, "predict_proba") != (task == CLASS):
        raise ValueError("its target and its estimator do not fit together.")
    if estimator.n_features_in_ != len(schema.features):
        raise ValueError(f"its encoding gives {len(schema.features)} inputs, its estimator takes {estimator.n_features_in_}.")
    labels = [str(label) for label in estimator.classes_.tolist()] if task == CLASS else None
    check_facts(facts, {"target": target, "task": task, "classes": labels, "inputs": len(schema.features)})
    return TableModel(schema, estimator, target, task, facts)


register(FileKind("table", holds=lambda value: isinstance(value, TableModel), pack=pack, unpack=unpack, check=unpack))


class Rule(NamedTuple):
    """What a value must be, in words, and whether it is."""

    words: str
    fits: Callable[[Any], bool]


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < LARGEST_COUNT if isinstance(value, int) else math.isfinite(value)


def _is_count(value: Any, least: int = 0) -> bool:
    return type(value) is int and least <= value < LARGEST_COUNT


TEXT = Rule("a text", lambda value: isinstance(value, str))
FLAG = Rule("true or false", lambda value: isinstance(value, bool))
NUMBER = Rule("a finite number", _is_number)
SECONDS = Rule("a number of seconds", lambda value: _is_number(value) and 0 <= value < 1e10)
COUNT = Rule("a whole number of at least 0", _is_count)
SOME = Rule("a whole number of at least 1", lambda value: _is_count(value, 1))
SEED = Rule("a seed", lambda value: type(value) is int and 0 <= value < 2**63)
SHA256 = Rule("a SHA-256 digest", lambda value: isinstance(value, str) and DIGEST.fullmatch(value) is not None)
PLAIN = Rule("a number, true or false", lambda value: isinstance(value, bool) or _is_number(value))
SCORE = {"measure": TEXT, "value": NUMBER, "low": NUMBER, "high": NUMBER, "rmse?": NUMBER, "lacks?": TEXT}
# A name with "?" may be absent, `...` is any name, (None, x) is null or x, and [x] is a list of x. Other names may be there,
# unless all names have "?".
FACTS: dict[Any, Any] = {
    "seed": SEED,
    "table": TEXT,
    "target": TEXT,
    "task": TEXT,
    "why": TEXT,
    "classes": (None, [TEXT]),
    "rows": {"all": SOME, "without_target": COUNT, "train": SOME, "test": SOME, "searched_with": SOME},
    "columns": {...: TEXT},
    "inputs": SOME,
    "n_parameters": COUNT,
    "baselines": {f"{name}?": SCORE for name in BASELINES},
    "score": SCORE,
    "seconds": {"all": SECONDS, "limit?": (None, SECONDS), "ended_the_search?": FLAG}
    | {"reading?": SECONDS, "baselines?": SECONDS, "search?": SECONDS},
    "device": TEXT,
    "cores": SOME,
    "table_sha256?": (None, SHA256),
    "reading?": {"format": (None, TEXT), "sep": (None, TEXT), "encoding": (None, TEXT), "decimal_commas": [TEXT]},
    "test?": (None, {"table": TEXT, "sha256": (None, SHA256)}),
    "dropped?": {...: TEXT},
    "table_warnings?": [TEXT],
    "doubts?": [TEXT],  # their name in earlier files
    "marks_of_missing_values?": COUNT,
    "body?": TEXT,
    "estimator?": TEXT,
    "rule?": TEXT,
    "budget?": (None, SOME),
    "chosen?": {...: NUMBER},
    "folds?": SOME,
    "path?": [{...: PLAIN}],
    "versions?": {...: TEXT},
    "onnx?": (None, {"onnxruntime": TEXT, "rows": COUNT, "furthest": NUMBER}),
}


def check_facts(facts: Any, expected: Mapping[str, Any]) -> None:
    """Raise ValueError that names the first fact that is missing, wrong, or not what is `expected` of this model."""
    _check("", facts, FACTS)
    for name, value in expected.items():
        if facts[name] != value:
            raise ValueError(f"its facts do not fit: {name} is {short(facts[name])}, and the model's is {short(value)}.")
    scores = [("score", facts["score"])]
    for place, score in scores + [(f"baselines.{name}", score) for name, score in facts["baselines"].items()]:
        if score["measure"] != MEASURES.get(facts["task"]):
            raise _wrong(f"{place}.measure", score["measure"], f"that of a {facts['task']}")
    rows = facts["rows"]
    if rows["train"] + rows["without_target"] > rows["all"] or rows["searched_with"] > rows["train"]:
        raise ValueError(f"its facts do not fit: rows is {short(rows)}, of which parts are more than the whole.")


def _check(place: str, value: Any, schema: Any) -> None:
    """Raise ValueError where a value is not what its schema says."""
    if isinstance(schema, Rule):
        if not schema.fits(value):
            raise _wrong(place, value, schema.words)
    elif isinstance(schema, tuple):
        if value is not None:
            _check(place, value, schema[1])
    elif isinstance(schema, list):
        if not isinstance(value, list):
            raise _wrong(place, value, "a list")
        for entry in value:
            _check(f"an entry of {place}", entry, schema[0])
    else:
        if not isinstance(value, dict):
            raise _wrong(place or "all of it", value, "an object")
        prefix = f"{place}." if place else ""
        if ... in schema:
            schema = dict.fromkeys(value, schema[...])
        elif all(key.endswith("?") for key in schema):
            names = [key.removesuffix("?") for key in schema]
            for name in value:
                if name not in names:
                    raise ValueError(f"its facts do not fit: {prefix}{name[:40]} is none of {', '.join(names)}.")
        for key, inner in schema.items():
            name = key if key in value else key.removesuffix("?")
            if name in value:
                _check(f"{prefix}{name[:40]}", value[name], inner)
            elif name == key:
                raise ValueError(f"its facts do not fit: {prefix}{name} is not there.")


def _wrong(place: str, value: Any, words: str) -> ValueError:
    return ValueError(f"its facts do not fit: {place} is {short(value)}, not {words}.")
