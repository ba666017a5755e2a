"""Schemas of JSON values: what a header or a record must hold, as data, with one check that names the first misfit.

Rule("a text", fits)                        a value for which `fits` is true
(None, x)  [x]                              null or x; a list of x
{"rows": x, "test?": y}                     an object: "rows" must be there, "test" may be, and nothing else
{"rows": x, TEXT: z}                        every other name fits the rule TEXT, and its value z
"""

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from meristem.check import cut, short

LONGEST_NAME, LONGEST_DIFFERENT = 40, 60  # characters of a name, and of a value that differs, in a message


@dataclass(frozen=True, eq=False)
class Rule:
    """What a value must be, in words, and whether it is."""

    words: str
    fits: Callable[[Any], bool]


def integer(least: int = 0, bits: int = 53) -> Rule:
    """Return the rule for an integer of at least `least` and below 2**bits; by default it is exact as a float."""
    words = f"an integer of at least {least} and below 2**{bits}"
    return Rule(words, lambda value: type(value) is int and least <= value < 2**bits)


def one_of(choices: Iterable[str]) -> Rule:
    texts = list(choices)
    return Rule(f"one of {', '.join(texts)}", lambda value: isinstance(value, str) and value in texts)


ANY = Rule("anything", lambda value: True)
TEXT = Rule("a text", lambda value: isinstance(value, str))
FLAG = Rule("true or false", lambda value: isinstance(value, bool))
NUMBER = Rule("a finite number", lambda v: abs(v) < 2**53 if type(v) is int else isinstance(v, float) and math.isfinite(v))
COUNT, POSITIVE = integer(0), integer(1)
SIZE = integer(1, bits=31)
SHA256 = Rule("a SHA-256 digest", lambda value: isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None)
OBJECT: dict[Any, Any] = {TEXT: ANY}
CONTAINERS: dict[type, str] = {list: "a list", dict: "an object"}


def check_json(value: Any, schema: Any, problem: str = "", place: str = "") -> None:
    """Raise ValueError for the first entry of a value that does not fit its schema; its message starts with `problem`.

    >>> check_json({"rows": {"all": 5, "test": -1}}, {"rows": {"all": COUNT, "test?": COUNT}, "seed?": COUNT})
    Traceback (most recent call last):
    ValueError: rows.test is -1, not an integer of at least 0 and below 2**53.
    """
    if isinstance(schema, tuple):
        schema = ANY if value is None else schema[1]
    fits = schema.fits(value) if isinstance(schema, Rule) else isinstance(value, type(schema))
    if not fits:
        words = schema.words if isinstance(schema, Rule) else CONTAINERS[type(schema)]
        raise ValueError(f"{problem}{place or 'all of it'} is {short(value)}, not {words}.")
    if isinstance(schema, list):
        for entry in value:
            check_json(entry, schema[0], problem, f"an entry of {place}")
    elif isinstance(schema, dict):
        keys = {key.removesuffix("?"): key for key in schema if isinstance(key, str)}
        other = next((key for key in schema if isinstance(key, Rule)), None)
        for name in keys | value:
            key, inner = keys.get(name, other), f"{place}{'.' * bool(place)}{cut(name, LONGEST_NAME)}"
            if name not in value and key == name:
                raise ValueError(f"{problem}{inner} is not there.")
            if name in value and key is None:
                raise ValueError(f"{problem}{inner} is none of {', '.join(keys)}.")
            if isinstance(key, Rule) and not key.fits(name):
                raise ValueError(f"{problem}{inner} is named otherwise than {key.words}.")
            if name in value:
                check_json(value[name], schema[key], problem, inner)


def first_difference(old: Any, new: Any, place: str = "") -> tuple[str, ...] | None:
    """Return the place ("settings.seeds") and the texts of both values where two JSON values differ first, or None."""
    if isinstance(old, dict) and isinstance(new, dict):
        places = ((name, f"{place}.{name}" if place else name) for name in old | new)
        differences = (first_difference(old.get(name), new.get(name), inner) for name, inner in places)
        return next(filter(None, differences), None)
    texts = ("not there" if value is None else cut(str(value), LONGEST_DIFFERENT) for value in (old, new))
    return None if old == new else (place, *texts)
