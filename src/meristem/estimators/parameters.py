"""The parameters of the estimators: what may be given for each, and the words that explain it. Defaults are the classes' own.

`fit` checks what was given: what does not fit is a ValueError of one line that names it. Docstrings (docstrings.py) and the
table in docs/estimators.md show the words.
"""

import os
from collections.abc import Callable
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import get_scorer_names
from sklearn.utils import check_random_state

from meristem.check import MOST, check_number, check_size, short, unknown
from meristem.complexity import PRICES
from meristem.estimators.device import found
from meristem.forks import check_fork
from meristem.layers.activation import ACTIVATIONS, check_activation
from meristem.targets import losses
from meristem.train.callbacks import watcher_of
from meristem.train.objectives import OBJECTIVES


class Parameter(NamedTuple):
    """What may be given, as numpydoc writes it; the check, which raises ValueError; what it does and when to change it."""

    kind: str
    check: Callable[[str, Any], Any]  # of (name, value)
    text: str


def parameters_of(estimator: Any) -> dict[str, tuple[Parameter, Any]]:
    """Name → (parameter, default) of an estimator or of its class, in the order of the constructor."""
    return {one.name: (PARAMETERS[one.name], one.default) for one in fields(estimator)}


def check_parameters(estimator: Any) -> None:
    """Everything that can be said before the data are seen."""
    check_fork()
    for name, (parameter, _) in parameters_of(estimator).items():
        parameter.check(name, getattr(estimator, name))


def seed_of(given: Any) -> int:
    """The seed of one fit; a generator moves on, None is never the same."""
    return int(check_random_state(given).randint(2**31 - 1))


# Checks: (name, value) → ValueError where it does not fit -------------------------------------------------------------------


def number(wanted: str, fits: Callable[[float], bool]) -> Callable[[str, Any], None]:
    return lambda name, value: check_number(name, value, wanted, fits)


def number_or_auto(wanted: str, fits: Callable[[float], bool]) -> Callable[[str, Any], None]:
    def check(name: str, value: Any) -> None:
        if not (isinstance(value, str) and value == "auto"):
            check_number(name, value, f"{wanted}, or 'auto'", fits)

    return check


def size_or_auto(name: str, value: Any) -> None:
    if isinstance(value, str) and value != "auto":
        raise ValueError(f"{name}={short(value)} must be a whole number, or 'auto'.")
    if not isinstance(value, str):
        check_size(name, value)


def size_or_none(name: str, value: Any) -> None:
    if value is not None:
        check_size(name, value, most=2**53)


def price(name: str, value: Any) -> None:
    if not isinstance(value, str) or value not in PRICES:
        raise unknown(name, value, PRICES)


def flag(name: str, value: Any) -> None:
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name}={short(value)} must be True or False.")


def stopping(name: str, value: Any) -> None:
    if not isinstance(value, bool | np.bool_) and not (isinstance(value, str) and value == "auto"):
        raise ValueError(f"{name}={short(value)} must be True, False or 'auto'.")


def flag_or_level(name: str, value: Any) -> None:
    if not isinstance(value, bool | np.bool_ | int | np.integer):
        raise ValueError(f"{name}={short(value)} must be True or False.")


def activation(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise ValueError(f"{name}={short(value)} must be a name, such as 'relu'.")
    check_activation(value)


def loss(name: str, value: Any) -> None:
    if not isinstance(value, str) or value not in losses():
        raise unknown(name, value, list(losses()))


def levels(name: str, value: Any) -> None:
    try:
        given = np.asarray(value, float)
        is_fine = given.ndim == 1 and len(given) > 0 and bool(((given > 0) & (given < 1)).all())
    except (TypeError, ValueError, OverflowError):
        is_fine = False
    if not is_fine:
        raise ValueError(f"{name}={short(value)} must be a list of numbers above 0 and below 1, such as (0.1, 0.5, 0.9).")


def class_weight(name: str, value: Any) -> None:
    is_listed = isinstance(value, list) and all(isinstance(one, dict) for one in value)  # of labels, one each
    is_fine = value is None or isinstance(value, dict) or is_listed or (isinstance(value, str) and value == "balanced")
    if not is_fine:
        raise ValueError(f"{name}={short(value)} must be None, 'balanced' or a dictionary {{class: weight}}.")
    for given in [value] if isinstance(value, dict) else value if isinstance(value, list) else []:
        for one, weight in given.items():
            check_number(f"{name}[{one!r}]", weight, "of at least 0", lambda v: 0 <= v < np.inf)


def seed(name: str, value: Any) -> None:
    try:
        check_random_state(value)
    except ValueError:
        raise ValueError(f"{name}={short(value)} must be None, a whole number from 0 to 2³² − 1, or a RandomState.") from None


def device(name: str, value: Any) -> None:
    if value is not None:
        found(value)


def callbacks(name: str, value: Any) -> None:
    try:
        watcher_of(name, value)
    except ValueError:
        raise ValueError(
            f"{name}={short(value)} must be a function that takes the epoch's info, an object with epoch(member, info), "
            "or a list of these."
        ) from None


def numbers_or_auto(wanted: str, fits: Callable[[float], bool]) -> Callable[[str, Any], None]:
    def check(name: str, value: Any) -> None:
        if isinstance(value, str):
            if value != "auto":
                raise ValueError(f"{name}={short(value)} must be a list of numbers, or 'auto'.")
            return
        given = value.tolist() if isinstance(value, np.ndarray) and value.ndim else list(value) if np.iterable(value) else []
        if not given or any(np.ndim(one) for one in given):
            raise ValueError(f"{name}={short(value)} must be a list of numbers, or 'auto'.")
        for one in given:
            check_number(name, one, wanted, fits)

    return check


def one_of(*names: str) -> Callable[[str, Any], None]:
    def check(name: str, value: Any) -> None:
        if not isinstance(value, str) or value not in names:
            raise unknown(name, value, list(names))

    return check


def folds(name: str, value: Any) -> None:
    if isinstance(value, bool) or not (isinstance(value, int | np.integer) or hasattr(value, "split") or np.iterable(value)):
        raise ValueError(f"{name}={short(value)} must be a number of folds, a splitter of scikit-learn's, or a list of splits.")
    if isinstance(value, int) and value > MOST:
        raise ValueError(f"{name}={short(value)} must be at most as many as there are samples.")


def check_scoring(name: str, value: Any) -> None:
    """A name of scikit-learn's, a function of (estimator, X, y), or None."""
    if isinstance(value, str) and value not in (known := get_scorer_names()):
        raise unknown(name, value, known, most=100)
    if value is not None and not isinstance(value, str) and not callable(value):
        raise ValueError(f"{name}={short(value)} must be a name such as 'roc_auc', a function of (estimator, X, y), or None.")


def folder(name: str, value: Any) -> None:
    is_path = isinstance(value, str | os.PathLike) and bool(path := os.fspath(value)) and "\0" not in str(path)
    if value is not None and not is_path:
        raise ValueError(f"{name}={short(value)} must be the path of a folder, or None.")


# What each does -------------------------------------------------------------------------------------------------------------

PARAMETERS = {
    "penalty": Parameter(
        "float or 'auto'",
        number_or_auto("of at least 0", lambda v: 0 <= v < np.inf),
        "The price of complexity, relative to the mean loss: **the one knob**. Higher: smaller networks. 0: as large as "
        "training likes. 'auto' is 1e-3 for classifiers; for regressors 1e-3 times the share of the targets' variance that the "
        "inputs do not tell (1 - `predictability_`), and at least 1e-4.",
    ),
    "width": Parameter(
        "int or 'auto'",
        size_or_auto,
        "Units of every layer: the most that a tunnel can open per layer. 'auto' learns it, up to `max_width`.",
    ),
    "max_width": Parameter("int", check_size, "With width='auto': the most that it may be, and what it is at first."),
    "feature_gates": Parameter("bool", flag, "Gives each feature a gate, open at first, with a price: those of no use close."),
    "price": Parameter(
        f"{{{', '.join(map(repr, PRICES))}}}",
        price,
        "What `penalty` is the price of: 'units' (the paper's: units, layers, and dimensions of a width that is learned), or "
        "what they cost to keep ('parameters') or to compute ('multiply-adds'), fifty of which cost as much as a unit.",
    ),
    "budget": Parameter(
        "int or None",
        size_or_none,
        "The most parameters (or multiply-adds, as `price` says) of the compact network, in place of `penalty`: the price is "
        "then found while it learns, and the limit holds.",
    ),
    "settle": Parameter(
        "bool",
        flag,
        "From the first time that the rate shrinks, what is not worth its price closes; in the last stage it stays closed, and "
        "the model that is kept is one of that stage. False keeps the best of all epochs, whose gates are often a hair open.",
    ),
    "depth": Parameter("int", check_size, "Layers of a tunnel (the most it can use) or of a highway."),
    "max_leaves": Parameter(
        "int",
        check_size,
        "The most layers that a budding tree may have. Raise it where a `GrowthWarning` says that it wanted more.",
    ),
    "learning_rate": Parameter(
        "float",
        number("above 0", lambda v: 0 < v < np.inf),
        "Adam's. Three times less where training is unsteady, more where nothing opens.",
    ),
    "batch_size": Parameter("int", check_size, "Rows a step. More is faster per epoch and learns less per epoch."),
    "l2": Parameter(
        "float or 'auto'",
        number_or_auto("of at least 0", lambda v: 0 <= v < np.inf),
        "The price of large weights, ½ · l2 · ‖W‖² beside the mean loss. 'auto' looks at how much of the targets' variance the "
        "inputs tell (`predictability_`). For classifiers it is 5e-5 from 0.6 on; at half or less, where a network could only "
        "learn noise by heart, it is (1 - `predictability_`) / `predictability_` / rows, from 1 to 10 / rows (3 / rows for "
        "trees). For regressors it is that of ridge regression, in proportion to the noise: (1 - `predictability_`) · 5 / rows "
        "(3 / rows for tunnels, which start linear; for rare counts 3 times their relative variance / rows).",
    ),
    "input_dropout": Parameter(
        "float or 'auto'",
        number_or_auto("of at least 0 and below 1", lambda v: 0 <= v < 1),
        "The share of inputs that is set to 0 in each step; 'auto' is 0, but for classifiers of 16 numbers or more "
        "(indicators, of two values, not counted) 0.25 where that has the lower loss on rows that are held out.",
    ),
    "depth_decay": Parameter(
        "float",
        number("above 0 and at most 1", lambda v: 0 < v <= 1),
        "Each layer's rate relative to the one before it; 1.0 uses all layers alike.",
    ),
    "activation": Parameter("str", activation, f"One of {', '.join(ACTIVATIONS)}."),
    "max_epochs": Parameter(
        "int or 'auto'",
        size_or_auto,
        "An end in any case; 'auto': 300, or as many as 6,000 steps take, where rows are few. Raise it where a "
        "`ConvergenceWarning` says that the loss was still falling.",
    ),
    "patience": Parameter(
        "int or 'auto'",
        size_or_auto,
        "Epochs without a better loss after which the rate shrinks to 0.3, to 0.1, and training ends; 'auto': 10, or "
        "as many as 300 steps take, where rows are few. Where rows are held out (in a search: for numbers), 40 before the rate "
        "first shrinks: their loss may get worse for long before a network finds what is hard to find.",
    ),
    "early_stopping": Parameter(
        "bool or 'auto'",
        stopping,
        "True holds out a part of the rows, whose loss says how long to train; then a network is trained on all rows, as long. "
        "Of classifiers it is the loss at the best temperature of the logits, which is then built in: their probabilities are "
        "better, their networks larger. 'auto': True for regressors, False for classifiers.",
    ),
    "validation_fraction": Parameter(
        "float", number("above 0 and below 1", lambda v: 0 < v < 1), "How large the part is that is held out."
    ),
    "loss": Parameter(
        f"{{{', '.join(map(repr, losses()))}}}",
        loss,
        f"What is learned: {'; '.join(f'{name!r} {OBJECTIVES[name].learns}' for name in losses())}.",
    ),
    "quantiles": Parameter(
        "tuple of float",
        levels,
        "With loss='quantile': which share of y shall lie below what is predicted. Of several, `predict` gives a column each, "
        "in this order; of several targets, target by target.",
    ),
    "class_weight": Parameter(
        "dict, 'balanced' or None",
        class_weight,
        "How much the rows of each class count: None, all rows alike; 'balanced', all classes alike; or {class: weight}.",
    ),
    "standardize": Parameter(
        "bool", flag, "False where features, and the targets of regressors, are on one scale and should stay there."
    ),
    "warm_start": Parameter("bool", flag, "Another `fit` goes on from the network that is there."),
    "random_state": Parameter("int, RandomState or None", seed, "A seed: the same numbers on the same machine, to the bit."),
    "device": Parameter("str or None", device, "'cpu', 'gpu', 'gpu:1'; None is JAX's choice."),
    "callbacks": Parameter(
        "function, Watcher, list of these, or None",
        callbacks,
        "Called after each epoch with its info: epoch, loss, error, dev_loss, dev_error, soft_size, hard_size, rate and more, "
        "by name, as in `info['loss']`; one that returns True ends the training. A `meristem.Watcher` hears of parts of long "
        "epochs, too.",
    ),
    "verbose": Parameter("bool", flag_or_level, "Progress with the time left, on standard error."),
    "checkpoint_dir": Parameter(
        "str, Path or None",
        folder,
        "A folder in which what is being trained is saved every five minutes, for at most 5 % of the time; a fit at a time has "
        "it. Needs a `random_state` that is a number.",
    ),
    "resume": Parameter(
        "bool",
        flag,
        "The same fit (data, parameters, seed) goes on from what `checkpoint_dir` holds, to the same bits; with nothing there "
        "it begins. False: it begins anew, unless a fit that was interrupted would be lost.",
    ),
    "penalties": Parameter(
        "list of float, or 'auto'",
        numbers_or_auto("of at least 0", lambda v: 0 <= v < np.inf),
        "The prices that are tried. 'auto': five, evenly by their logarithm, below the price at which nothing would open.",
    ),
    "l2s": Parameter(
        "list of float, or 'auto'",
        numbers_or_auto("of at least 0", lambda v: 0 <= v < np.inf),
        "The prices of large weights that are tried. 'auto': 0.01, 0.3 and 10 / rows.",
    ),
    "input_dropouts": Parameter(
        "list of float, or 'auto'",
        numbers_or_auto("of at least 0 and below 1", lambda v: 0 <= v < 1),
        "The shares of inputs set to 0 in each step that are tried. 'auto': none, and 0.25 for classifiers of 16 "
        "numbers or more, indicators (of two values) not counted.",
    ),
    "cv": Parameter(
        "int, splitter, or list of splits",
        folds,
        "The folds: a number of them (shuffled, and for classes stratified), a splitter of scikit-learn's, or (training rows, "
        "held-out rows) for each.",
    ),
    "rule": Parameter(
        "{'min', '1se'}",
        one_of("min", "1se"),
        "Which penalty is taken: that of the least held-out loss, or the largest within one standard error of it, for a "
        "smaller network.",
    ),
    "refit": Parameter(
        "{'bag', 'one'}",
        one_of("bag", "one"),
        "What is kept: the networks of all folds, whose outputs are averaged, or one network, trained on all rows.",
    ),
    "halving": Parameter(
        "bool",
        flag,
        "l2 is chosen first, at the middle penalty, by successive halving (the worse half leaves after 16, 32, 64, … epochs), "
        "then dropout; with them every other penalty is tried, and those that are clearly behind leave early. "
        "False trains every combination to its end.",
    ),
    "scoring": Parameter(
        "str, function or None",
        check_scoring,
        "By what l2, dropout and penalty are chosen, as in scikit-learn ('roc_auc', or a function of an estimator, X and y: "
        "more is better). None: the held-out loss. How long each network is trained follows the loss in any case.",
    ),
}
