"""What a table's model says of itself (`TableModel.facts`), as a schema: reports, `repr` and scores read it without a doubt.

    check_facts(facts, expected)        ValueError of one line that names the first fact that is missing, wrong, or contradicts

A schema is a Kind, or an object whose names have schemas of their own; `Maybe` may be null, `Each` is a list, `Named` an object
of any names. REQUIRED is what something reads; OPTIONAL has its form where it is there; other facts may be anything.
fitting.py writes them; table_file.py asks this when a model is loaded or saved. Imports check.
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from meristem.check import short

MOST = 2**53  # of what is counted
DIGEST = re.compile(r"[0-9a-f]{64}")
BASELINES = ("constant", "linear", "mlp")
MEASURES = {"class": "accuracy", "number": "R²"}


class Kind(NamedTuple):
    """What a value must be, in words, and whether it is."""

    words: str
    fits: Callable[[Any], bool]


class Maybe(NamedTuple):
    """Null, or what a schema says."""

    schema: Any


class Each(NamedTuple):
    """A list, each of whose entries is what a schema says."""

    schema: Any


class Named(NamedTuple):
    """An object, each of whose values is what a schema says; `names`: those that there may be."""

    schema: Any
    names: tuple[str, ...] = ()


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < MOST if isinstance(value, int) else math.isfinite(value)


def _is_count(value: Any, least: int = 0) -> bool:
    return type(value) is int and least <= value < MOST


TEXT = Kind("a text", lambda value: isinstance(value, str))
FLAG = Kind("true or false", lambda value: isinstance(value, bool))
NUMBER = Kind("a finite number", _is_number)
SECONDS = Kind("a number of seconds", lambda value: _is_number(value) and 0 <= value < 1e10)
COUNT = Kind("a whole number of at least 0", _is_count)
SOME = Kind("a whole number of at least 1", lambda value: _is_count(value, 1))
SEED = Kind("a seed", lambda value: type(value) is int and 0 <= value < 2**63)
SHA256 = Kind("a SHA-256 digest", lambda value: isinstance(value, str) and DIGEST.fullmatch(value) is not None)
PLAIN = Kind("a number, true or false", lambda value: isinstance(value, bool) or _is_number(value))
SCORE = {"measure": TEXT, "value": NUMBER, "low": NUMBER, "high": NUMBER}

REQUIRED: dict[str, Any] = {
    "seed": SEED,
    "table": TEXT,
    "target": TEXT,
    "task": TEXT,
    "why": TEXT,
    "classes": Maybe(Each(TEXT)),
    "rows": {"all": SOME, "without_target": COUNT, "train": SOME, "test": SOME, "searched_with": SOME},
    "columns": Named(TEXT),
    "inputs": SOME,
    "n_parameters": COUNT,
    "baselines": Named(SCORE, BASELINES),
    "score": SCORE,
    "seconds": {"all": SECONDS},
    "device": TEXT,
    "cores": SOME,
}
OPTIONAL: dict[str, Any] = {
    "table_sha256": Maybe(SHA256),
    "reading": {"format": Maybe(TEXT), "sep": Maybe(TEXT), "encoding": Maybe(TEXT), "decimal_commas": Each(TEXT)},
    "test": Maybe({"table": TEXT, "sha256": Maybe(SHA256)}),
    "dropped": Named(TEXT),
    "doubts": Each(TEXT),
    "marks_of_missing_values": COUNT,
    "body": TEXT,
    "estimator": TEXT,
    "rule": TEXT,
    "budget": Maybe(SOME),
    "chosen": Named(NUMBER),
    "folds": SOME,
    "path": Each(Named(PLAIN)),
    "versions": Named(TEXT),
    "onnx": Maybe({"onnxruntime": TEXT, "rows": COUNT, "furthest": NUMBER}),
}
FURTHER: dict[str, dict[str, Any]] = {  # entries of objects that are there sometimes
    "score": {"rmse": NUMBER, "lacks": TEXT},
    "seconds": {"limit": Maybe(SECONDS), "ended_the_search": FLAG, "reading": SECONDS, "baselines": SECONDS, "search": SECONDS},
}


def check_facts(facts: Any, expected: Mapping[str, Any]) -> None:
    """Raise ValueError of one line unless all is there that is read, as it is read; `expected`: what else the file says of it.

    >>> check_facts({"seed": -1}, {})
    Traceback (most recent call last):
    ValueError: its facts do not fit: seed is -1, not a seed.
    >>> check_facts({"seed": 0, "table": "people.csv"}, {})
    Traceback (most recent call last):
    ValueError: its facts do not fit: target is not there.
    """
    if not isinstance(facts, dict):
        raise _wrong("all of it", facts, "an object")
    _check("", facts, REQUIRED)
    _check("", facts, {name: schema for name, schema in OPTIONAL.items() if name in facts})
    scored = [("score", facts["score"]), *((f"baselines.{name}", score) for name, score in facts["baselines"].items())]
    for place, entry in [*scored, ("seconds", facts["seconds"])]:
        further = FURTHER["seconds" if place == "seconds" else "score"]
        _check(place, entry, {name: schema for name, schema in further.items() if name in entry})
    for name, value in expected.items():
        if facts[name] != value:
            raise ValueError(f"its facts do not fit: {name} is {short(facts[name])}, and the model's is {short(value)}.")
    for place, score in scored:
        if score["measure"] != MEASURES.get(facts["task"]):
            raise _wrong(f"{place}.measure", score["measure"], f"that of a {facts['task']}")
    rows = facts["rows"]
    if rows["train"] + rows["without_target"] > rows["all"] or rows["searched_with"] > rows["train"]:
        raise ValueError(f"its facts do not fit: rows is {short(rows)}, of which parts are more than the whole.")


def _check(place: str, value: Any, schema: Any) -> None:
    """Raise ValueError of one line where a value is not what its schema says."""
    if isinstance(schema, Kind):
        if not schema.fits(value):
            raise _wrong(place, value, schema.words)
    elif isinstance(schema, Maybe):
        if value is not None:
            _check(place, value, schema.schema)
    elif isinstance(schema, Each):
        if not isinstance(value, list):
            raise _wrong(place, value, "a list")
        for entry in value:
            _check(f"an entry of {place}", entry, schema.schema)
    else:
        if not isinstance(value, dict):
            raise _wrong(place, value, "an object")
        names = schema if isinstance(schema, dict) else dict.fromkeys(value, schema.schema)
        for name, inner in names.items():
            where = f"{place}.{name[:40]}" if place else name
            if name not in value:
                raise ValueError(f"its facts do not fit: {where} is not there.")
            if isinstance(schema, Named) and schema.names and name not in schema.names:
                raise ValueError(f"its facts do not fit: {where} is none of {', '.join(schema.names)}.")
            _check(where, value[name], inner)


def _wrong(place: str, value: Any, words: str) -> ValueError:
    return ValueError(f"its facts do not fit: {place} is {short(value)}, not {words}.")
