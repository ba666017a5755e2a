"""Constraints on parameters as data, one checker and one message for all of them.

    check_value("width", 0, (size(), AUTO))     ValueError: width=0 must be an integer of at least 1 or 'auto'.

A value must satisfy one of the constraints. A constraint may explain a rejected value better than the general message does.
"""

import math
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from meristem.check import MOST, check_number, check_size, short, unknown


class Constraint(NamedTuple):
    """A set of values."""

    kind: str  # the type, as docstrings name it
    requirement: str  # as messages name it: "… must be {requirement}"
    accepts: Callable[[Any], bool]
    explain: Callable[[str, Any, str], ValueError | None] = lambda name, value, requirement: None


def check_value(name: str, value: Any, constraints: Sequence[Constraint]) -> None:
    """Raise a one-line ValueError unless a constraint accepts the value."""
    if any(constraint.accepts(value) for constraint in constraints):
        return
    requirement = alternatives(constraint.requirement for constraint in constraints)
    for constraint in constraints:
        if error := constraint.explain(name, value, requirement):
            raise error
    raise ValueError(f"{name}={short(value)} must be {requirement}.")


def alternatives(words: Iterable[str]) -> str:
    """Return words as a list for people: "a, b or c"."""
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def literal(value: Any) -> Constraint:
    return Constraint(repr(value), repr(value), lambda other: isinstance(other, type(value)) and other == value)


AUTO, NONE = literal("auto"), literal(None)
FLAG = Constraint("bool", "True or False", lambda value: isinstance(value, bool | np.bool_))


def interval(low: float, high: float = math.inf, *, closed: str = "") -> Constraint:
    """Return the constraint to a finite number between two bounds; `closed` names those that belong to it: "low", "high"."""
    bounds = [f"{'of at least' if closed == 'low' else 'above'} {low:g}"]
    bounds += [f"{'at most' if closed == 'high' else 'below'} {high:g}"] if high < math.inf else []

    def contains(number: float) -> bool:
        return low < number < high or (closed == "low" and number == low) or (closed == "high" and number == high)

    def error(name: str, value: Any, requirement: str) -> ValueError | None:
        return error_of(check_number, name, value, requirement.removeprefix("a number "), contains)

    return Constraint("float", f"a number {' and '.join(bounds)}", lambda value: error("", value, "") is None, error)


def size(most: int = MOST) -> Constraint:
    """Return the constraint to an integer from 1 to `most`."""

    def explain(name: str, value: Any, requirement: str) -> ValueError | None:
        is_too_large = isinstance(value, int | np.integer) and value > most
        return ValueError(f"{name}={short(value)} must be at most {most:,}.") if is_too_large else None

    return Constraint(
        "int", "an integer of at least 1", lambda value: error_of(check_size, "", value, 1, most) is None, explain
    )


def choice(names: Callable[[], Sequence[str]]) -> Constraint:
    """Return the constraint to one of some names, which are looked up when a value is checked."""
    return Constraint(
        f"{{{', '.join(map(repr, names()))}}}",
        f"one of {', '.join(names())}",
        lambda value: isinstance(value, str) and value in names(),
        lambda name, value, requirement: unknown(name, value, list(names())),
    )


def list_of(member: Constraint) -> Constraint:
    """Return the constraint to a list, or array, of at least one number."""

    def accepts(value: Any) -> bool:
        is_list = np.iterable(value) and not isinstance(value, str)
        entries = (value.tolist() if isinstance(value, np.ndarray) else list(value)) if is_list else []
        return bool(entries) and all(map(member.accepts, entries))

    return Constraint(
        f"list of {member.kind}", f"a list of {member.requirement.removeprefix('a ').replace('number', 'numbers')}", accepts
    )


def raising(kind: str, requirement: str, check: Callable[[Any], Any], *, explains: bool = False) -> Constraint:
    """Return the constraint to what a function accepts; `explains`: the message of its ValueError is the better one."""
    explain = (lambda name, value, requirement: error_of(check, value)) if explains else Constraint._field_defaults["explain"]
    return Constraint(kind, requirement, lambda value: error_of(check, value) is None, explain)


def error_of(check: Callable[..., Any], *arguments: Any) -> ValueError | None:
    """Return the ValueError that a check raises, or None."""
    try:
        check(*arguments)
    except ValueError as error:
        return error
    return None


def is_folder(value: Any) -> bool:
    return isinstance(value, str | os.PathLike) and bool(path := os.fspath(value)) and "\0" not in str(path)


def is_cv(value: Any) -> bool:
    is_number = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return value <= MOST if is_number else not isinstance(value, bool) and (hasattr(value, "split") or np.iterable(value))


def are_levels(value: Any) -> bool:
    """Return whether a value is a list of numbers above 0 and below 1."""
    try:
        levels = np.asarray(value, float)
    except (TypeError, ValueError, OverflowError):
        return False
    return levels.ndim == 1 and len(levels) > 0 and bool(((levels > 0) & (levels < 1)).all())


def class_weights_error(name: str, value: Any, requirement: str = "") -> ValueError | None:
    """Return what is wrong with {class: weight}, or with a list of these, one for each label; None if nothing is."""
    tables = value if isinstance(value, list) else [value]
    if not all(isinstance(table, dict) for table in tables):
        return ValueError(f"{name}={short(value)} must be {requirement}.")
    weights = [(f"{name}[{label!r}]", weight) for table in tables for label, weight in table.items()]
    return next(
        (error for at, weight in weights if (error := error_of(check_value, at, weight, [interval(0, closed="low")]))), None
    )
