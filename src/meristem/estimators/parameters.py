"""The parameters of the estimators: constraints as data, which `fit` checks, and the text that explains each parameter.

    check_value("width", 0, (size(), AUTO))     ValueError: width=0 must be an integer of at least 1 or 'auto'.

A value must satisfy one of the constraints; if it satisfies none, the first one explains why. Defaults are those of the
classes. Docstrings (documentation.py) and the table in docs/estimators.md show the same texts.
"""

import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import get_scorer_names
from sklearn.utils import check_random_state

from meristem.check import MOST, check_number, check_size, short, unknown
from meristem.complexity import PRICES
from meristem.estimators.fit_context import find_device
from meristem.forks import check_fork
from meristem.layers.activation import ACTIVATIONS, check_activation
from meristem.targets import losses
from meristem.train.callbacks import watcher_of
from meristem.train.objectives import OBJECTIVES


class Constraint(NamedTuple):
    """A set of values."""

    kind: str  # the type, as docstrings name it
    requirement: str  # as messages name it: "… must be {requirement}"
    check: Callable[[str, Any], Any]  # raises ValueError for a (name, value) that is not in the set


class Parameter(NamedTuple):
    """The constraints of a parameter, of which a value must satisfy one; what it does and when to change it."""

    constraints: tuple[Constraint, ...]
    text: str

    @property
    def kind(self) -> str:
        """The types it may have, as docstrings name them."""
        return alternatives(constraint.kind for constraint in self.constraints)


def parameters_of(estimator: Any) -> dict[str, tuple[Parameter, Any]]:
    """Return name → (parameter, default) of an estimator or its class, in the order of the constructor."""
    return {field.name: (PARAMETERS[field.name], field.default) for field in fields(estimator)}


def check_parameters(estimator: Any) -> None:
    """Raise ValueError for the first parameter whose value does not fit."""
    check_fork()
    for name in parameters_of(estimator):
        check_parameter(name, getattr(estimator, name))


def check_parameter(name: str, value: Any) -> None:
    """Raise a one-line ValueError unless the parameter of this name may have the value."""
    check_value(name, value, PARAMETERS[name].constraints)


def check_value(name: str, value: Any, constraints: Sequence[Constraint]) -> None:
    """Raise a one-line ValueError unless the value satisfies a constraint."""
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


# Constraints ----------------------------------------------------------------------------------------------------------------


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


def interval(low: float, high: float = math.inf, *, closed: str = "") -> Constraint:
    """Return the constraint to a finite number between two bounds; `closed` names one that belongs to it: "low", "high"."""
    bounds = f"{'of at least' if closed == 'low' else 'above'} {low:g}"
    bounds += f" and {'at most' if closed == 'high' else 'below'} {high:g}" if high < math.inf else ""

    def contains(number: float) -> bool:
        return low < number < high or (closed == "low" and number == low) or (closed == "high" and number == high)

    return Constraint("float", f"a number {bounds}", lambda name, value: check_number(name, value, bounds, contains))


def choice(names: Callable[[], Iterable[str]]) -> Constraint:
    """Return the constraint to one of some names, which are looked up when a value is checked."""

    def check(name: str, value: Any) -> None:
        if not isinstance(value, str) or value not in names():
            raise unknown(name, value, list(names()))

    return Constraint(f"{{{', '.join(map(repr, names()))}}}", f"one of {', '.join(names())}", check)


def list_of(member: Constraint) -> Constraint:
    """Return the constraint to a list, or array, of at least one number."""

    def accepts(value: Any) -> bool:
        is_list = np.iterable(value) and not isinstance(value, str)
        entries = (value.tolist() if isinstance(value, np.ndarray) else list(value)) if is_list else []
        return bool(entries) and not any(error_of(member.check, "", entry) for entry in entries)

    numbers = member.requirement.removeprefix("a ").replace("number", "numbers")
    return accepting(f"list of {member.kind}", f"a list of {numbers}", accepts)


def _are_levels(value: Any) -> bool:
    try:
        levels = np.asarray(value, float)
    except (TypeError, ValueError, OverflowError):
        return False
    return levels.ndim == 1 and len(levels) > 0 and bool(((levels > 0) & (levels < 1)).all())


def _is_cv(value: Any) -> bool:
    is_number = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return value <= MOST if is_number else not isinstance(value, bool) and (hasattr(value, "split") or np.iterable(value))


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


def _check_activation(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise ValueError(f"{name}={short(value)} must be a name, such as 'relu'.")
    check_activation(value)


def _check_scoring(name: str, value: Any) -> None:
    if isinstance(value, str) and value not in (names := get_scorer_names()):
        raise unknown(name, value, names, most=100)
    if not isinstance(value, str) and not callable(value):
        raise ValueError(f"{name}={short(value)} must be a name such as 'roc_auc', a function of (estimator, X, y), or None.")


AUTO, NONE = literal("auto"), literal(None)
NON_NEGATIVE, DROPOUT = interval(0, closed="low"), interval(0, 1, closed="low")
FLAG = accepting("bool", "True or False", lambda value: isinstance(value, bool | np.bool_))
VERBOSITY = accepting("bool", "True or False", lambda value: isinstance(value, bool | np.bool_ | int | np.integer))
LEVELS = accepting("tuple of float", "a list of numbers above 0 and below 1, such as (0.1, 0.5, 0.9)", _are_levels)
CLASS_WEIGHT = Constraint("dict", "a dictionary {class: weight}", _check_class_weight)
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
FOLDS = accepting(
    "int, splitter or list of splits",
    "a number of folds, at most one for each sample, a scikit-learn splitter, or a list of splits",
    _is_cv,
)

PARAMETERS = {
    "penalty": Parameter(
        (NON_NEGATIVE, AUTO),
        "The price of complexity, relative to the mean loss: **the one knob**. Higher: smaller networks. 0: no pressure "
        "towards a small network. 'auto' is 1e-3 for classifiers; for regressors 1e-3 · (1 - `predictability_`), the share of "
        "the targets' variance that is noise, and at least 1e-4.",
    ),
    "width": Parameter(
        (size(), AUTO),
        "Units of every layer: the most that a tunnel can open per layer. 'auto' learns it, up to `max_width`.",
    ),
    "max_width": Parameter((size(),), "With width='auto': the initial width, which can only shrink."),
    "feature_gates": Parameter(
        (FLAG,), "Gives each feature a gate with a price, initially open: the gates of useless features close."
    ),
    "price": Parameter(
        (choice(lambda: PRICES),),
        "What `penalty` is the price of: 'units' (as in the paper: units, layers, and dimensions of a learned width), or the "
        "cost of a unit in memory ('parameters') or in computation ('multiply-adds'), fifty of which cost as much as a unit.",
    ),
    "budget": Parameter(
        (size(2**53), NONE),
        "The most parameters (or multiply-adds, as `price` says) of the compact network, in place of `penalty`: the price is "
        "then adapted during training, and the limit holds.",
    ),
    "settle": Parameter(
        (FLAG,),
        "From the first drop of the learning rate on, gates that are not worth their price close; in the last stage they stay "
        "closed, and the model is one of that stage. False keeps the best of all epochs, whose gates are often barely open.",
    ),
    "depth": Parameter((size(),), "Layers of a tunnel (the most it can use) or of a highway."),
    "max_leaves": Parameter(
        (size(),), "The most layers of a budding tree. Raise it where a `GrowthWarning` says that the tree reached it."
    ),
    "learning_rate": Parameter(
        (interval(0),), "Learning rate of Adam. Try a third where training is unsteady, more where nothing opens."
    ),
    "batch_size": Parameter((size(),), "Rows per step. A larger batch makes an epoch faster but less effective."),
    "l2": Parameter(
        (NON_NEGATIVE, AUTO),
        "L2 regularization, ½ · l2 · ‖W‖² beside the mean loss. 'auto' depends on the share of the targets' variance that the "
        "inputs predict (`predictability_`). For classifiers it is 5e-5 from 0.6 on; at 0.5 or less, where a network would "
        "mostly fit noise, it is (1 - `predictability_`) / `predictability_` / rows, from 1 to 10 / rows (3 / rows for trees). "
        "For regressors it is that of ridge regression, in proportion to the noise: (1 - `predictability_`) · 5 / rows (3 / "
        "rows for tunnels, which start linear; for rare counts 3 times their relative variance / rows).",
    ),
    "input_dropout": Parameter(
        (DROPOUT, AUTO),
        "The share of inputs that is set to 0 in each step; 'auto' is 0, but for classifiers with 16 numeric features or more "
        "(binary ones not counted) 0.25 if that has the lower loss on held-out rows.",
    ),
    "depth_decay": Parameter(
        (interval(0, 1, closed="high"),),
        "Each layer's learning rate relative to the layer before it; 1.0 is the same rate for all layers.",
    ),
    "activation": Parameter(
        (Constraint("str", "a name, such as 'relu'", _check_activation),),
        f"One of {', '.join(ACTIVATIONS)}.",
    ),
    "max_epochs": Parameter(
        (size(), AUTO),
        "The most epochs; 'auto': 300, or 6,000 steps where rows are few. Raise it where a `ConvergenceWarning` says that the "
        "loss was still falling.",
    ),
    "patience": Parameter(
        (size(), AUTO),
        "Epochs without a better loss after which the learning rate drops to 0.3, to 0.1, and training ends; 'auto': 10, or "
        "300 steps where rows are few. With held-out rows (in a search: of regressors) it is 40 before the first drop, because "
        "their loss may rise for long before a network finds a difficult pattern.",
    ),
    "early_stopping": Parameter(
        (FLAG, AUTO),
        "True holds out rows, whose loss determines how long to train; then a network is trained on all rows for as long. For "
        "classifiers it is the loss at the best temperature of the logits, which becomes part of the model: probabilities are "
        "better, networks larger. 'auto': True for regressors, False for classifiers.",
    ),
    "validation_fraction": Parameter((interval(0, 1),), "The share of the rows that early stopping holds out."),
    "loss": Parameter(
        (choice(losses),),
        f"What is predicted: {'; '.join(f'{name!r} {OBJECTIVES[name].learns}' for name in losses())}.",
    ),
    "quantiles": Parameter(
        (LEVELS,),
        "With loss='quantile': the share of y below the prediction. Of several, `predict` returns a column each, in this "
        "order; of several targets, target by target.",
    ),
    "class_weight": Parameter(
        (CLASS_WEIGHT, literal("balanced"), NONE),
        "The weight of the rows of each class: None, all rows alike; 'balanced', all classes alike; or {class: weight}.",
    ),
    "standardize": Parameter(
        (FLAG,), "False keeps the scale of features, and of the targets of regressors: for data that share one scale."
    ),
    "warm_start": Parameter((FLAG,), "Another `fit` continues with the trained network."),
    "random_state": Parameter((SEED,), "The seed: the same results on the same machine, to the bit."),
    "device": Parameter(
        (Constraint("str", "a device", lambda name, value: find_device(value)), NONE),
        "'cpu', 'gpu', 'gpu:1'; None is JAX's default.",
    ),
    "callbacks": Parameter(
        (CALLBACKS,),
        "Called after each epoch with its info: epoch, loss, error, dev_loss, dev_error, soft_size, hard_size, rate and more, "
        "by name, as in `info['loss']`; returning True ends the training. A `meristem.Watcher` is also called within long "
        "epochs.",
    ),
    "verbose": Parameter((VERBOSITY,), "Progress with the remaining time, on standard error."),
    "checkpoint_dir": Parameter(
        (accepting("str, Path", "the path of a folder", _is_folder), NONE),
        "A folder for checkpoints, written every five minutes in at most 5 % of the time; one fit at a time can use it. Needs "
        "an integer `random_state`.",
    ),
    "resume": Parameter(
        (FLAG,),
        "The same fit (data, parameters, seed) continues from the checkpoints in `checkpoint_dir`, with the same result to the "
        "bit; without any it starts. False: it starts afresh, unless that would overwrite an interrupted fit.",
    ),
    "penalties": Parameter(
        (list_of(NON_NEGATIVE), AUTO),
        "The penalties to search. 'auto': five, evenly spaced on a log scale, below the penalty at which nothing would open.",
    ),
    "l2s": Parameter((list_of(NON_NEGATIVE), AUTO), "The values of l2 to search. 'auto': 0.01, 0.3 and 10 / rows."),
    "input_dropouts": Parameter(
        (list_of(DROPOUT), AUTO),
        "The values of input_dropout to search. 'auto': 0, and 0.25 for classifiers with 16 numeric features or more (binary "
        "ones not counted).",
    ),
    "cv": Parameter(
        (FOLDS,),
        "The folds: a number of them (shuffled, and for classes stratified), a scikit-learn splitter, or (training rows, "
        "held-out rows) for each.",
    ),
    "rule": Parameter(
        (choice(lambda: ["min", "1se"]),),
        "Which penalty is chosen: that of the least held-out loss, or the largest within one standard error of it, for a "
        "smaller network.",
    ),
    "refit": Parameter(
        (choice(lambda: ["bag", "one"]),),
        "The final model: the networks of all folds with their outputs averaged, or one network, trained on all rows.",
    ),
    "halving": Parameter(
        (FLAG,),
        "l2 is chosen first, at the middle penalty, by successive halving (the worse half stops after 16, 32, 64, … epochs), "
        "then dropout; with these every other penalty is tried, and those that are clearly behind stop early. "
        "False trains every combination to its end.",
    ),
    "scoring": Parameter(
        (Constraint("str, function", "a scorer", _check_scoring), NONE),
        "The score by which l2, dropout and penalty are chosen, as in scikit-learn ('roc_auc', or a function of an "
        "estimator, X and y: higher is better). None: the held-out loss. The length of training always depends on the loss.",
    ),
}
