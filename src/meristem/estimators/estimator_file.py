"""The file of a fitted estimator: parameters, what was learned, and the whole training state, so that training can go on.

    header   {"estimator": "TunnelClassifier", "parameters": {…}, "learned": {…}, "feature_names": null,
              "network": {…}, "state": {…}, "targets": {…}}       see files/network_file.py, files/run_file.py, targets
    arrays   network.…, state.…, targets.…, scaling.…, history.NAME

Parameters keep their value, numbers of NumPy as numbers. Callbacks and random generators are not kept: they come back as None,
and `save` warns of it. What else has no plain form is refused, with what to do. A subclass that adds nothing comes back as the
class of which it is one; others are refused. A class registers itself with `@registered`. classifiers, regressors, cv and
search_file import it.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from sklearn.base import ClassifierMixin

from meristem.check import cut, many, unknown
from meristem.compact import compact
from meristem.compact.inference import as_numpy
from meristem.estimators.base import HISTORY, Growing
from meristem.estimators.parameters import parameters_of
from meristem.estimators.settings import Settings
from meristem.files import FileKind, register
from meristem.files.named_arrays import Arrays, is_finite, on_device, with_prefix, without_prefix
from meristem.files.network_file import fill_network, pack_network, shapes
from meristem.files.run_file import fill_state, pack_state, state_on_device
from meristem.inputs import Inputs, Preprocessor
from meristem.targets import Classes, Labels, Numbers, unpack as unpack_targets

E = TypeVar("E", bound=Settings)
ESTIMATORS: dict[str, type[Settings]] = {}  # those that files may name
ENTRIES = ["estimator", "parameters", "learned", "feature_names", "network", "state", "targets"]
LEARNED = ["n_features_in_", "n_iter_", "best_epoch_", "soft_size_", "hard_size_", "n_live_units_"]
LATER = ["n_samples_seen_", "predictability_", "input_dropout_", "penalty_", "n_parameters_"]  # not in the first files
PARTS = ["network", "state", "targets", "scaling", "history"]
EDGE = 4.0  # standard deviations
ARRAYS = ["|b", "<i", "<u", "|i", "|u", "<f", "<U", "O"]
# What Python itself notes of a class.
BOOKKEEPING = {
    "__module__",
    "__qualname__",
    "__doc__",
    "__firstlineno__",
    "__static_attributes__",
    "__annotations__",
    "__annotate_func__",
    "__abstractmethods__",
    "__parameters__",
    "_abc_impl",
}


def registered(kind: type[E]) -> type[E]:
    """Let files name a class of estimators: what is saved of it comes back as one."""
    ESTIMATORS[kind.__name__] = kind
    return kind


def _whole(least: int) -> Callable[[str, Any], None]:
    def check(name: str, value: Any) -> None:
        if type(value) is not int or not least <= value < 2**53:
            raise ValueError(f"{name}={cut(repr(value), 40)} must be a number, whole and of at least {least}.")

    return check


def _share(name: str, value: Any) -> None:
    if type(value) not in (int, float) or not -np.inf < value < np.inf:
        raise ValueError(f"{name}={cut(repr(value), 40)} must be a number.")


LEARNS: dict[str, Callable[[str, Any], None]] = {
    "n_features_in_": _whole(1),
    "n_iter_": _whole(1),
    "best_epoch_": _whole(0),
    "soft_size_": _share,
    "hard_size_": _whole(0),
    "n_live_units_": _whole(0),
    "n_samples_seen_": _whole(0),
    "predictability_": _share,
    "input_dropout_": _share,
    "penalty_": _share,
    "n_parameters_": _whole(0),
}


def pack(estimator: Growing) -> tuple[dict[str, Any], Arrays]:
    """A fitted estimator's header, made of JSON's values, and its arrays.

    >>> from sklearn.datasets import load_iris
    >>> from meristem.estimators import TunnelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TunnelClassifier(width=16, depth=2, random_state=0).partial_fit(X, y, classes=[0, 1, 2])
    >>> same = unpack(*pack(model))
    >>> bool((same.predict_proba(X) == model.predict_proba(X)).all())
    True
    """
    kind = registered_base(estimator)
    if getattr(estimator, "_state_", None) is None:
        raise ValueError(f"This {type(estimator).__name__} cannot be saved: it has not been fitted.")
    check_says_numbers(estimator)
    parts: dict[str, Arrays] = {"scaling": estimator._inputs_.preprocessor.pack(), "history": estimator.history_}
    header = {
        "estimator": kind.__name__,
        "parameters": packed_parameters(estimator, kind),
        "learned": {name: getattr(estimator, name) for name in LEARNED + LATER if hasattr(estimator, name)},
        "feature_names": getattr(estimator, "feature_names_in_", np.array([])).tolist() or None,
    }
    header["network"], parts["network"] = pack_network(estimator.network_)
    header["state"], parts["state"] = pack_state(estimator._state_)
    header["targets"], parts["targets"] = estimator._targets_.pack()
    return header, {name: array for prefix, part in parts.items() for name, array in with_prefix(prefix, part).items()}


def unpack(header: Any, arrays: Arrays) -> Growing:
    """The estimator, which predicts the same to the bit; raises ValueError of one line where its parts do not fit together."""
    estimator = checked(header, arrays)
    estimator.network_ = on_device(shapes(header["network"]), estimator.network_)
    estimator._state_ = state_on_device(header["state"], estimator._state_)
    estimator._compact_ = as_numpy(compact(estimator.network_))
    check_says_numbers(estimator)
    return estimator


def checked(header: Any, arrays: Arrays) -> Growing:
    """The estimator with arrays of the host, if its parts fit together; ValueError of one line else. It cannot predict yet."""
    if not isinstance(header, dict) or set(header) != set(ENTRIES) or not isinstance(header["learned"], dict):
        raise ValueError("it does not hold what an estimator is made of.")
    if set(header["learned"]) - set(LATER) != set(LEARNED):
        raise ValueError("it does not hold what an estimator has learned.")
    off = [name for name in arrays if name.partition(".")[0] not in PARTS]
    if off:
        raise ValueError(f"it has unknown arrays: {off[:3]}.")
    estimator = unfitted(header, Growing)
    estimator.network_ = fill_network(header["network"], without_prefix("network", arrays))
    estimator._state_ = fill_state(header["state"], without_prefix("state", arrays))
    estimator._targets_ = unpack_targets(header["targets"], without_prefix("targets", arrays))
    preprocessor = Preprocessor.unpack(without_prefix("scaling", arrays))
    estimator.history_ = without_prefix("history", arrays)
    learned = {"n_samples_seen_": round(preprocessor.scaling.total)} | header["learned"]
    for name, value in learned.items():
        LEARNS[name](name, value)
        if name != "n_parameters_":  # for whoever reads the header; the estimator counts its compact network
            setattr(estimator, name, value)
    names = header["feature_names"]
    _check_parts(estimator, header, preprocessor)
    _check_history(estimator)
    estimator._inputs_ = Inputs(preprocessor, names=None if names is None else tuple(names))
    if hasattr(estimator._targets_, "classes"):
        estimator.classes_ = estimator._targets_.classes
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    return estimator


def registered_base(estimator: E) -> type[E]:
    """The class that it comes back as: its own, or that of which it is a subclass that adds nothing but a name."""
    own = type(estimator)
    base = next((kind for kind in own.__mro__ if ESTIMATORS.get(kind.__name__) is kind), None)
    if base is None:
        raise ValueError(f"A {own.__name__} cannot be saved; give one of {', '.join(ESTIMATORS)}.")
    between = own.__mro__[: own.__mro__.index(base)]
    added = [name for kind in between for name in vars(kind) if name not in BOOKKEEPING and not _is_request(name)]
    others = [kind for kind in own.__mro__ if kind not in base.__mro__ and kind not in between]
    if added or others:
        what = repr(added[0]) if added else f"the base {others[0].__name__}"
        raise ValueError(
            f"A {own.__name__} cannot be saved: it adds {what} to {base.__name__}, which no file holds; make it a plain one "
            f"first, with all that it has learned: model.__class__ = meristem.{base.__name__}."
        )
    return base


def _is_request(name: str) -> bool:
    """Whether scikit-learn gives every subclass a method of that name."""
    return name.startswith("set_") and name.endswith("_request")


def unfitted(header: Any, base: type[E]) -> E:
    """An estimator of a registered subclass of `base` that is not fitted, with the parameters of the header."""
    kinds = {name: kind for name, kind in ESTIMATORS.items() if issubclass(kind, base)}
    if not isinstance(header["estimator"], str) or header["estimator"] not in kinds:
        raise unknown("estimator", cut(str(header["estimator"]), 40), list(kinds))
    kind = kinds[header["estimator"]]
    given, known = header["parameters"], parameters_of(kind)
    if not isinstance(given, dict):
        raise ValueError("its parameters cannot be loaded: they are no dictionary.")
    for name in given:
        if name not in known:
            raise unknown(f"parameter of {header['estimator']}", cut(name, 40), list(known))
    estimator = kind(**{name: unplain(value) for name, value in given.items()})
    for name, (parameter, _) in known.items():
        if name == "device":  # the file may come from a machine that has another
            if not isinstance(estimator.device, str | None):
                raise ValueError(f"device={estimator.device!r} must be a name, or None.")
        else:
            parameter.check(name, getattr(estimator, name))
    return estimator


def check_says_numbers(estimator: Growing) -> None:
    """Raise ValueError unless it says finite numbers to rows in the middle, at the edges and without any number."""
    columns = estimator._inputs_.preprocessor
    mean, scale = columns.scaling.mean[: len(columns.fill)], columns.scaling.scale[: len(columns.fill)]
    rows = np.zeros((4, columns.n_features))
    at = slice(None) if columns.selected is None else columns.selected
    rows[:, at] = columns.fill, mean - EDGE * scale, mean + EDGE * scale, np.full(len(mean), np.nan)
    with np.errstate(all="ignore"):
        outputs = estimator._predictor_.outputs(columns(rows))
        decoded = estimator._targets_.decode(outputs)
        is_fine = is_finite(outputs) and (decoded.dtype.kind != "f" or is_finite(decoded))
    if not is_fine:
        raise ValueError("what it predicts is not finite: its weights, or its scaling, are too large.")


def _check_parts(estimator: Growing, header: dict[str, Any], columns: Preprocessor) -> None:
    """Raise ValueError unless the parts are those of one estimator."""
    names, targets = header["feature_names"], estimator._targets_
    if names is not None and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise ValueError("its feature_names are no texts.")
    last = header["state"]["network"]
    for name in {"body", *estimator.network_.body.options()} - {"capacity"}:
        if header["network"].get(name) != last.get(name):
            raise ValueError(f"its network and the one to go on from differ in {name}.")
    if header["network"]["body"] != estimator._body or header["network"]["members"] or last["members"]:
        raise ValueError(f"a {type(estimator).__name__} has one network, a {estimator._body} one.")
    if not isinstance(targets, Classes | Labels if isinstance(estimator, ClassifierMixin) else Numbers):
        raise ValueError(f"a {type(estimator).__name__} does not learn {targets.kind}.")
    n_out, n_in = header["network"]["n_out"], header["network"]["n_in"]
    fits = [
        columns.n_features == estimator.n_features_in_ and columns.n_inputs == n_in <= last["n_in"],
        names is None or len(names) == estimator.n_features_in_,
        targets.n_out == n_out <= last["n_out"],
        (estimator.network_.features is None) == (estimator._state_.network.features is None),
    ]
    if not all(fits):
        raise ValueError("its network, its scaling, its targets and its number of features do not fit together.")


def _check_history(estimator: Growing) -> None:
    """Raise ValueError unless there is a row for each epoch; measures may be anything, those of one that diverged NaN."""
    history, epochs = estimator.history_, estimator.n_iter_
    is_whole = set(history) == {*HISTORY, "rate"} and all(
        values.shape[:1] == (epochs,) and values.ndim == 1 + (name == "layer_sizes") and values.dtype.kind in "if"
        for name, values in history.items()
    )
    if not is_whole or not 0 <= estimator.best_epoch_ <= epochs:
        raise ValueError(f"its history is not that of {many(epochs, 'epoch')}.")


def packed_parameters(estimator: E, kind: type[E]) -> dict[str, Any]:
    """The parameters as JSON has them; what has no such form is refused, but for what is only of use while it learns."""
    found = {}
    for name in parameters_of(kind):
        value = getattr(estimator, name)
        try:
            found[name] = None if is_passing(name, value) else plain(value)
        except ValueError as error:
            raise ValueError(
                f"This {type(estimator).__name__} cannot be saved: its {name} holds a {error}, which no file does; give it "
                f"another value first: model.set_params({name}=…)."
            ) from None
    return found


def not_kept(estimator: Settings) -> list[str]:
    """The parameters of an estimator that no file holds."""
    return [name for name in vars(estimator) if is_passing(name, getattr(estimator, name))]


def is_passing(name: str, value: Any) -> bool:
    """Whether a parameter is of use only while it learns: `save` warns that it is not kept.

    >>> is_passing("callbacks", print), is_passing("random_state", np.random.RandomState(0)), is_passing("random_state", 0)
    (True, True, False)
    """
    return (name == "callbacks" and value is not None) or isinstance(value, np.random.RandomState | np.random.Generator)


def plain(value: Any) -> Any:
    """A parameter as JSON has it; a dictionary as its pairs, because its keys may be numbers. ValueError with what has no form.

    >>> plain({"a": (1, float("inf"))})
    {'pairs': [['a', {'tuple': [1, {'float': 'inf'}]}]]}
    """
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufUO":
        return {"array": plain(value.tolist()), "type": value.dtype.str if value.dtype.kind != "O" else "O"}
    if isinstance(value, np.generic):
        value = value.item()
    if type(value) is dict:
        return {"pairs": [[plain(key), plain(entry)] for key, entry in value.items()]}
    if type(value) in (tuple, list):
        entries = [plain(entry) for entry in value]
        return {"tuple": entries} if isinstance(value, tuple) else entries
    if isinstance(value, float) and not np.isfinite(value):
        return {"float": repr(float(value))}
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return float(value)
    raise ValueError(type(value).__name__)


def unplain(value: Any) -> Any:
    """What `plain` made JSON of.

    >>> unplain(plain({"a": (1, [None, float("-inf")])}))
    {'a': (1, [None, -inf])}
    """
    if isinstance(value, list):
        return [unplain(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"tuple"}:
        return tuple(map(unplain, value["tuple"]))
    if set(value) == {"pairs"}:
        return {unplain(key): unplain(entry) for key, entry in value["pairs"]}
    if set(value) == {"float"} and value["float"] in ("inf", "-inf", "nan"):
        return float(value["float"])
    if set(value) == {"array", "type"} and str(value["type"])[:2] in ARRAYS:
        return np.array(unplain(value["array"]), dtype=value["type"])
    raise ValueError(f"a parameter is not as it is written: {cut(str(value), 60)}.")


register(
    FileKind(
        "estimator",
        holds=lambda thing: isinstance(thing, Growing) and hasattr(thing, "network_"),
        pack=pack,
        unpack=unpack,
        check=checked,
        not_kept=not_kept,
    )
)
