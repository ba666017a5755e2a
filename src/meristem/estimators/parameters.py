"""What a person may give: every parameter is looked at when `fit` begins, and what does not fit is one line that says so."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from meristem.check import check_number, check_size
from meristem.estimators.device import found
from meristem.nn.activation import check_activation

SIZES = ["width", "depth", "max_leaves", "batch_size", "max_epochs", "patience"]
FLAGS = ["early_stopping", "standardize", "warm_start"]
NUMBERS: dict[str, tuple[str, Callable[[float], bool]]] = {
    "penalty": ("of at least 0", lambda v: 0 <= v < np.inf),
    "learning_rate": ("above 0", lambda v: 0 < v < np.inf),
    "l2": ("of at least 0, or 'auto'", lambda v: 0 <= v < np.inf),
    "input_dropout": ("of at least 0 and below 1, or 'auto'", lambda v: 0 <= v < 1),
    "depth_decay": ("above 0 and at most 1", lambda v: 0 < v <= 1),
    "validation_fraction": ("above 0 and below 1", lambda v: 0 < v < 1),
}


def check_parameters(given: dict[str, Any]) -> None:
    """Everything that can be said before the data are seen; `given` is what `get_params` returns."""
    for name in [name for name in SIZES if name in given]:
        check_size(name, given[name])
    for name, (wanted, fits) in NUMBERS.items():
        if not (name in ("input_dropout", "l2") and isinstance(given[name], str) and given[name] == "auto"):
            check_number(name, given[name], wanted, fits)
    for name in FLAGS:
        if not isinstance(given[name], bool | np.bool_):
            raise ValueError(f"{name}={given[name]!r} must be True or False.")
    if not isinstance(given["verbose"], bool | np.bool_ | int | np.integer):
        raise ValueError(f"verbose={given['verbose']!r} must be True or False.")
    if not isinstance(given["activation"], str):
        raise ValueError(f"activation={given['activation']!r} must be a name, such as 'relu'.")
    check_activation(given["activation"])
    if given["device"] is not None:
        found(given["device"])
    callbacks_of(given["callbacks"])
    check_class_weight(given.get("class_weight"))


def callbacks_of(given: Any) -> list[Callable[[dict[str, float]], Any]]:
    """None, a function, or several of them, as a list."""
    callbacks = [] if given is None else [given] if callable(given) else given
    if not isinstance(callbacks, list | tuple) or not all(map(callable, callbacks)):
        raise ValueError(f"callbacks={given!r} must be a function that takes the epoch's info, or a list of such functions.")
    return list(callbacks)


def seed_of(given: Any) -> int:
    """The seed of one fit; a generator moves on, None is never the same."""
    try:
        return int(check_random_state(given).randint(2**31 - 1))
    except ValueError:
        raise ValueError(f"random_state={given!r} must be None, a whole number from 0 to 2³² − 1, or a RandomState.") from None


def check_class_weight(given: Any) -> None:
    is_fine = given is None or isinstance(given, dict | list) or (isinstance(given, str) and given == "balanced")
    if not is_fine:
        raise ValueError(f"class_weight={given!r} must be None, 'balanced' or a dictionary {{class: weight}}.")
