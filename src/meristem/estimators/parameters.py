"""The parameters of the estimators: constraints as data, which `fit` checks; documentation.py explains each.

    check_parameter("width", 0)     ValueError: width=0 must be an integer of at least 1 or 'auto'.

A value must satisfy one of the constraints; if it satisfies none, the first one explains why.
"""

import math
import os
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import get_scorer_names
from sklearn.utils import check_random_state

from meristem.check import MOST, check_number, check_size, short, unknown
from meristem.complexity import PRICES
from meristem.estimators.fit_context import find_device
from meristem.export.c_sizes import bytes_of
from meristem.forks import check_fork
from meristem.layers.activation import ACTIVATIONS
from meristem.nn.image_ends import image_shape
from meristem.nn.images import IMAGE_BODIES
from meristem.report.task_metrics import METRICS
from meristem.report.thresholds import RULES, check_rule
from meristem.targets import losses
from meristem.train.augmentation import AUGMENTATIONS
from meristem.train.callbacks import watcher_of
from meristem.train.placement import check_executor


class Constraint(NamedTuple):
    """A set of values."""

    kind: str  # the type, as docstrings name it
    requirement: str  # as messages name it: "… must be {requirement}"
    check: Callable[[str, Any], Any]  # raises ValueError for a (name, value) that is not in the set


def parameters_of(estimator: Any) -> dict[str, Any]:
    """Return name → default of the parameters of an estimator or its class, in the order of the constructor."""
    return {field.name: field.default for field in fields(estimator)}


def kind_of(name: str) -> str:
    """Return the types that the parameter of this name may have, as docstrings name them."""
    return alternatives(constraint.kind for constraint in CONSTRAINTS[name])


def check_parameters(estimator: Any) -> None:
    """Raise ValueError for the first parameter whose value does not fit."""
    check_fork()
    for name in parameters_of(estimator):
        check_parameter(name, getattr(estimator, name))


def check_parameter(name: str, value: Any) -> None:
    """Raise a one-line ValueError unless the parameter of this name may have the value."""
    constraints = CONSTRAINTS[name]
    errors = [error_of(constraint.check, name, value) for constraint in constraints]
    if all(errors):
        requirement = alternatives(constraint.requirement for constraint in constraints)
        raise ValueError(str(errors[0]).replace(constraints[0].requirement, requirement))


def error_of(check: Callable[..., Any], *arguments: Any) -> ValueError | None:
    """Return the ValueError that a check raises, or None."""
    try:
        check(*arguments)
    except ValueError as error:
        return error
    return None


def alternatives(words: Iterable[str]) -> str:
    """Return words as a list for people: "a, b or c"."""
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def accepting(kind: str, requirement: str, accepts: Callable[[Any], bool]) -> Constraint:
    """Return the constraint to the values for which a function returns True."""

    def check(name: str, value: Any) -> None:
        if not accepts(value):
            raise ValueError(f"{name}={short(value)} must be {requirement}.")

    return Constraint(kind, requirement, check)


def literal(value: Any) -> Constraint:
    return accepting(repr(value), repr(value), lambda other: isinstance(other, type(value)) and other == value)


def size(most: int = MOST) -> Constraint:
    """Return the constraint to an integer from 1 to `most`."""
    return Constraint("int", "an integer of at least 1", lambda name, value: check_size(name, value, 1, most))


def number(bounds: str, contains: Callable[[float], bool]) -> Constraint:
    """Return the constraint to a number for which `contains` returns True; messages name its bounds."""
    return Constraint("float", f"a number {bounds}", lambda name, value: check_number(name, value, bounds, contains))


def choice(names: Callable[[], Iterable[str]], example: str = "", most: int = 10_000) -> Constraint:
    """Return the constraint to one of some names, looked up when a value is checked; of many, messages name an example."""

    def check(name: str, value: Any) -> None:
        if example and not isinstance(value, str):
            raise ValueError(f"{name}={short(value)} must be {example}.")
        if not isinstance(value, str) or value not in names():
            raise unknown(name, value, list(names()), most)

    kind = "str" if example else f"{{{', '.join(map(repr, names()))}}}"
    return Constraint(kind, example or f"one of {', '.join(names())}", check)


def list_of(member: Constraint, kind: str = "list", example: str = "") -> Constraint:
    """Return the constraint to a list, or array, of at least one number."""

    def accepts(value: Any) -> bool:
        is_list = np.iterable(value) and not isinstance(value, str)
        entries = (value.tolist() if isinstance(value, np.ndarray) else list(value)) if is_list else []
        return bool(entries) and not any(error_of(member.check, "", entry) for entry in entries)

    numbers = member.requirement.removeprefix("a ").replace("number", "numbers")
    return accepting(f"{kind} of {member.kind}", f"a list of {numbers}{example}", accepts)


def _is_cv(value: Any) -> bool:
    if isinstance(value, int | np.integer):
        return not isinstance(value, bool) and bool(value <= MOST)
    return hasattr(value, "split") or bool(np.iterable(value))


def _is_folder(value: Any) -> bool:
    return isinstance(value, str | os.PathLike) and bool(path := os.fspath(value)) and "\0" not in str(path)


def _check_class_weight(name: str, value: Any) -> None:
    """Raise ValueError unless the value is {class: weight}, or a list of these, one for each label."""
    tables = value if isinstance(value, list) else [value]
    if not all(isinstance(table, dict) for table in tables):
        raise ValueError(f"{name}={short(value)} must be {CLASS_WEIGHT.requirement}.")
    for table in tables:
        for label, weight in table.items():
            NON_NEGATIVE.check(f"{name}[{label!r}]", weight)


def check_flash(name: str, value: Any) -> None:
    """Raise ValueError unless the value is a text with a number of bytes and its unit."""
    if not isinstance(value, str) or value.strip().isdecimal():
        raise ValueError(f"{name}={short(value)} must be {FLASH.requirement}.")
    bytes_of(value)


AUTO, NONE = literal("auto"), literal(None)
NON_NEGATIVE = number("of at least 0", lambda value: 0 <= value < math.inf)
POSITIVE = number("above 0", lambda value: 0 < value < math.inf)
SHARE = number("above 0 and below 1", lambda value: 0 < value < 1)
DROPOUT = number("of at least 0 and below 1", lambda value: 0 <= value < 1)
DECAY = number("above 0 and at most 1", lambda value: 0 < value <= 1)
FLAG = accepting("bool", "True or False", lambda value: isinstance(value, bool | np.bool_))
VERBOSITY = accepting("bool", "True or False", lambda value: isinstance(value, int | np.bool_ | np.integer))
CLASS_WEIGHT = Constraint("dict", "a dictionary {class: weight}", _check_class_weight)
FUNCTION = accepting("function", "a function of (estimator, X, y)", callable)
FOLDER = accepting("str, Path", "the path of a folder", _is_folder)
SEED = accepting(
    "int, RandomState or None",
    "None, an integer from 0 to 2³² − 1, or a RandomState",
    lambda value: error_of(check_random_state, value) is None,
)
CALLBACKS = accepting(
    "function, Watcher, list of these or None",
    "a function that takes the epoch's info, an object with epoch(member, info), or a list of these",
    lambda value: error_of(watcher_of, "callbacks", value) is None,
)
EXECUTOR = accepting(
    "str, object with submit, or None",
    "'processes', 'ray', or an object with submit",
    lambda value: error_of(check_executor, value) is None,
)
SHAPE = accepting("tuple of int", "(height, width) or (height, width, channels)", lambda v: error_of(image_shape, v) is None)
NAMES = accepting(
    "tuple of str",
    f"names of {', '.join(AUGMENTATIONS)}, such as ('crop', 'flip')",
    lambda value: isinstance(value, tuple | list) and all(name in AUGMENTATIONS for name in value),
)
FOLDS = accepting("int, splitter or list of splits", "a number of folds, a scikit-learn splitter, or a list of splits", _is_cv)

FLASH = Constraint("str", 'bytes of flash, such as "2 KB"', check_flash)

CONSTRAINTS: dict[str, tuple[Constraint, ...]] = {
    **dict.fromkeys(["feature_gates", "settle", "standardize", "warm_start", "resume", "halving"], (FLAG,)),
    **dict.fromkeys(["max_width", "depth", "max_leaves"], (size(),)),
    **dict.fromkeys(["width", "max_epochs", "patience", "batch_size"], (size(), AUTO)),
    **dict.fromkeys(["penalty", "l2"], (NON_NEGATIVE, AUTO)),
    **dict.fromkeys(["penalties", "l2s"], (list_of(NON_NEGATIVE), AUTO)),
    "input_dropout": (DROPOUT, AUTO),
    "input_dropouts": (list_of(DROPOUT), AUTO),
    "early_stopping": (FLAG, AUTO),
    "learning_rate": (POSITIVE, AUTO),
    "depth_decay": (DECAY,),
    "validation_fraction": (SHARE,),
    "budget": (size(2**53), FLASH, NONE),
    "bits": (accepting("int", "8, 16", lambda value: not isinstance(value, bool) and value in (8, 16)), NONE),
    "price": (choice(lambda: PRICES),),
    "loss": (choice(losses),),
    "rule": (choice(lambda: ["min", "1se"]),),
    "refit": (choice(lambda: ["auto", "bag", "one", "distill"]),),
    "activation": (choice(lambda: ACTIVATIONS, "a name, such as 'relu'"),),
    "device": (Constraint("str", "a device", lambda name, value: find_device(value)), NONE),
    "scoring": (choice(lambda: sorted({*get_scorer_names(), *METRICS}), "a name such as 'roc_auc'", most=100), FUNCTION, NONE),
    "threshold": (SHARE, Constraint("str", RULES, check_rule), NONE),
    "checkpoint_dir": (FOLDER, NONE),
    "class_weight": (CLASS_WEIGHT, literal("balanced"), NONE),
    "quantiles": (list_of(SHARE, "tuple", ", such as (0.1, 0.5, 0.9)"),),
    "random_state": (SEED,),
    "callbacks": (CALLBACKS,),
    "verbose": (VERBOSITY,),
    "executor": (EXECUTOR,),
    "cv": (FOLDS, SHARE),
    "shape": (SHAPE, NONE),
    "body": (choice(lambda: IMAGE_BODIES),),
    "channels": (size(), list_of(size(), "tuple", ", such as (16, 32)"), AUTO),
    "blocks": (size(),),
    "epochs": (size(), AUTO),
    "augment": (NAMES, AUTO),
}
