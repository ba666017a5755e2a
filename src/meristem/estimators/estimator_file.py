"""The files of fitted estimators: parameters, fitted attributes, and the training state, so that training can continue.

    header   {"estimator": "TunnelClassifier", "parameters": {…}, "learned": {…}, "feature_names": null,
              "network": {…}, "state": {…}, "targets": {…}}       see files/network_file.py, files/run_file.py, targets
    arrays   network.…, state.…, targets.…, scaling.…, history.NAME

Of a cross-validated one: the chosen setting, the table of the search, and the networks of the bag, but not those of the rest of
the search: a loaded path has only its table.

    header   {"estimator": "TunnelClassifierCV", "parameters": {…}, "chosen": {"penalty": …, "l2": …, "dropout": …},
              "seconds": 12.3, "members": [the header of each plain estimator]}
    arrays   table.NAME [members of the search], layer_sizes, member_0.…, member_1.…, scores.NAME (conformal.py)

Files of earlier versions have no scores: their models have no intervals or sets.

NumPy numbers are saved as numbers. Callbacks and random generators are not saved: they are None after loading, and `save` warns
of it. Other values without a JSON form are refused. A subclass that adds nothing is loaded as its base class; other subclasses
are refused.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator, RandomState
from sklearn.base import ClassifierMixin

from meristem.check import cut, many, unknown
from meristem.compact import compact
from meristem.compact.inference import as_numpy
from meristem.estimators.conformal import Scores, scores_kind
from meristem.estimators.cv import CrossValidated
from meristem.estimators.documentation import ESTIMATORS, E
from meristem.estimators.network_estimator import HISTORY, NetworkEstimator
from meristem.estimators.parameters import check_parameter, parameters_of
from meristem.files import FileKind, register
from meristem.files.named_arrays import Arrays, by_path, is_between, on_device, separated
from meristem.files.network_file import structure_of, unpack_network
from meristem.files.run_file import STATE, state_structure, unpack_state
from meristem.inputs import Inputs, Preprocessor
from meristem.json_schema import COUNT, NUMBER, OBJECT, POSITIVE, TEXT, check_json
from meristem.paths.members import COLUMNS, KNOBS
from meristem.paths.result import Path, Point
from meristem.targets import Classes, Labels, Numbers, unpack as unpack_targets

LEARNED: dict[str, Any] = {  # fitted attributes; the first files have none of those with "?"
    **dict.fromkeys(["n_features_in_", "n_iter_"], POSITIVE),
    **dict.fromkeys(["best_epoch_", "hard_size_", "n_live_units_", "n_samples_seen_?", "n_parameters_?"], COUNT),
    **dict.fromkeys(["soft_size_", "predictability_?", "input_dropout_?", "penalty_?"], NUMBER),
}
HEAD = {"estimator": TEXT, "parameters": OBJECT}  # of the files of every estimator
ESTIMATOR = HEAD | {"learned": LEARNED, "feature_names": (None, [TEXT]), "network": OBJECT, "state": STATE, "targets": OBJECT}
PARTS = ["network", "state", "targets", "scaling", "history"]
CHOSEN = {name: NUMBER for name in KNOBS if name != "learning_rate"}
SEARCH = HEAD | {"chosen": CHOSEN, "seconds": NUMBER, "members": [OBJECT]}
TABLE = {*COLUMNS, "loss", "error", "n_parameters", "soft_size", "hard_size", "epochs", "finished"}
OPTIONAL = {"score", "constant_loss"}
EXTREME = 4.0  # standard deviations
ARRAY_TYPES = ["|b", "<i", "<u", "|i", "|u", "<f", "<U", "O"]


def pack(estimator: NetworkEstimator) -> tuple[dict[str, Any], Arrays]:
    """Return the JSON header and the arrays of a fitted estimator."""
    header = pack_unfitted(estimator)
    if getattr(estimator, "_state_", None) is None:
        raise ValueError(f"This {type(estimator).__name__} cannot be saved: it has not been fitted.")
    check_predictions(estimator)
    learned = [name.removesuffix("?") for name in LEARNED]
    header["learned"] = {name: getattr(estimator, name) for name in learned if hasattr(estimator, name)}
    header["feature_names"] = getattr(estimator, "feature_names_in_", np.array([])).tolist() or None
    header["network"], header["state"] = structure_of(estimator.network_), state_structure(estimator._state_)
    header["targets"], targets = estimator._targets_.pack()
    trained = {"network": estimator.network_, "state": estimator._state_, "history": estimator.history_}
    return header, by_path(trained | {"targets": targets, "scaling": estimator._inputs_.preprocessor.pack()})


def unpack(header: Any, arrays: Arrays) -> NetworkEstimator:
    """Return the estimator, with the same predictions to the bit; raise a one-line ValueError where its parts do not fit."""
    return ready_to_predict(check(header, arrays))


def ready_to_predict(estimator: NetworkEstimator) -> NetworkEstimator:
    """Return an estimator that `check` returned, with its networks on the device; ValueError if predictions are not finite."""
    estimator.network_, estimator._state_ = on_device((estimator.network_, estimator._state_))
    estimator._compact_ = as_numpy(compact(estimator.network_))
    check_predictions(estimator)
    return estimator


def check(header: Any, arrays: Arrays) -> NetworkEstimator:
    """Return the estimator with host arrays, which cannot predict yet; raise ValueError where its parts do not fit."""
    check_json(header, ESTIMATOR)
    parts, estimator = separated(arrays, PARTS), unfitted(header, NetworkEstimator)
    estimator.network_ = unpack_network(header["network"], parts["network"])
    estimator._state_ = unpack_state(header["state"], parts["state"])
    estimator._targets_ = unpack_targets(header["targets"], parts["targets"])
    preprocessor, estimator.history_ = Preprocessor.unpack(parts["scaling"]), parts["history"]
    for name, value in ({"n_samples_seen_": round(preprocessor.scaling.total)} | header["learned"]).items():
        if name != "n_parameters_":  # only for readers of the header: the estimator counts its compact network
            setattr(estimator, name, value)
    names = header["feature_names"]
    _check_parts(estimator, header, preprocessor)
    estimator._inputs_ = Inputs(preprocessor, names=None if names is None else tuple(names))
    if hasattr(estimator._targets_, "classes"):
        estimator.classes_ = estimator._targets_.classes
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    return estimator


def registered_base(estimator: E) -> type[E]:
    """Return the class that a file names: the estimator's own, or the one that its own adds nothing to but a name."""
    own = type(estimator)
    base = next((kind for kind in own.__mro__ if ESTIMATORS.get(kind.__name__) is kind), None)
    if base is None:
        raise ValueError(f"A {own.__name__} cannot be saved; give one of {', '.join(ESTIMATORS)}.")

    class Bare(base):  # type: ignore[misc, valid-type]
        note: str  # so that it has all attributes that Python and scikit-learn set on any class

    added = [name for kind in own.__mro__ if kind not in base.__mro__ for name in vars(kind) if name not in vars(Bare)]
    if added:
        advice = f"change its class: model.__class__ = meristem.{base.__name__}."
        raise ValueError(f"A {own.__name__} cannot be saved: it adds {added[0]!r} to {base.__name__}; {advice}")
    return base


def unfitted(header: Any, base: type[E]) -> E:
    """Return an unfitted estimator of a registered subclass of `base`, with the parameters of the header."""
    kinds = {name: kind for name, kind in ESTIMATORS.items() if issubclass(kind, base)}
    if header["estimator"] not in kinds:
        raise unknown("estimator", cut(header["estimator"], 40), list(kinds))
    kind = kinds[header["estimator"]]
    values, names = header["parameters"], list(parameters_of(kind))
    for name in values:
        if name not in names:
            raise unknown(f"parameter of {header['estimator']}", cut(name, 40), names)
    estimator = kind(**{name: from_json(value) for name, value in values.items()})
    for name in names:
        if name != "device":
            check_parameter(name, getattr(estimator, name))
        elif not isinstance(estimator.device, str | None):  # the file may come from a machine with other devices
            raise ValueError(f"device={estimator.device!r} must be a name, or None.")
    return estimator


def check_predictions(estimator: NetworkEstimator) -> None:
    """Raise ValueError unless predictions are finite for the mean row, extreme rows, and a row of missing values."""
    columns = estimator._inputs_.preprocessor
    mean, scale = columns.scaling.mean[: len(columns.fill)], columns.scaling.scale[: len(columns.fill)]
    rows = np.zeros((4, columns.n_features))
    at = slice(None) if columns.selected is None else columns.selected
    rows[:, at] = columns.fill, mean - EXTREME * scale, mean + EXTREME * scale, np.full(len(mean), np.nan)
    with np.errstate(all="ignore"):
        outputs = estimator._predictor_.outputs(columns(rows))
        decoded = estimator._targets_.decode(outputs)
        is_valid = is_between(outputs) and (decoded.dtype.kind != "f" or is_between(decoded))
    if not is_valid:
        raise ValueError("its predictions are not finite: its weights, or its scaling, are too large.")


def _check_parts(estimator: NetworkEstimator, header: dict[str, Any], columns: Preprocessor) -> None:
    """Raise ValueError unless the parts belong to one estimator, whose history has a row for each epoch."""
    names, targets = header["feature_names"], estimator._targets_
    last = header["state"]["network"]
    for name in {"body", *estimator.network_.body.options()} - {"capacity"}:
        if header["network"].get(name) != last.get(name):
            raise ValueError(f"its network and that of its training state differ in {name}.")
    if header["network"]["body"] != estimator._body or header["network"]["members"] or last["members"]:
        raise ValueError(f"a {type(estimator).__name__} has one network, a {estimator._body} one.")
    if not isinstance(targets, Classes | Labels if isinstance(estimator, ClassifierMixin) else Numbers):
        raise ValueError(f"a {type(estimator).__name__} has no targets of kind {targets.kind}.")
    n_out, n_in = header["network"]["n_out"], header["network"]["n_in"]
    fits = [
        columns.n_features == estimator.n_features_in_ and columns.n_inputs == n_in <= last["n_in"],
        names is None or len(names) == estimator.n_features_in_,
        targets.n_out == n_out <= last["n_out"],
        (estimator.network_.features is None) == (estimator._state_.network.features is None),
    ]
    if not all(fits):
        raise ValueError("its network, its scaling, its targets and its number of features do not fit together.")
    history, epochs = estimator.history_, estimator.n_iter_
    is_complete = set(history) == {*HISTORY, "rate"} and all(
        values.shape[:1] == (epochs,) and values.ndim == 1 + (name == "layer_sizes") and values.dtype.kind in "if"
        for name, values in history.items()
    )
    if not is_complete or not 0 <= estimator.best_epoch_ <= epochs:
        raise ValueError(f"its history is not that of {many(epochs, 'epoch')}.")


def pack_unfitted(estimator: E) -> dict[str, Any]:
    """Return the class and the parameters of an estimator as JSON; raise ValueError for a value that has no such form."""
    kind, packed, transient = registered_base(estimator), {}, not_kept(estimator)
    for name in parameters_of(kind):
        try:
            packed[name] = None if name in transient else to_json(getattr(estimator, name))
        except ValueError as error:
            problem = f"its {name} holds a {error}; change it first: model.set_params({name}=…)."
            raise ValueError(f"This {type(estimator).__name__} cannot be saved: {problem}") from None
    return {"estimator": kind.__name__, "parameters": packed}


def not_kept(estimator: Any) -> list[str]:
    """Return the parameters of an estimator that only matter during training: callbacks, executors, random generators."""
    generators = [name for name, value in vars(estimator).items() if isinstance(value, RandomState | Generator)]
    return generators + [name for name in ("callbacks", "executor") if getattr(estimator, name, None) is not None]


def to_json(value: Any) -> Any:
    """Return a parameter as JSON, a dictionary as pairs, whose keys may be numbers; raise ValueError with a type that has none.

    >>> to_json({"a": (1, float("inf"))})
    {'pairs': [['a', {'tuple': [1, {'float': 'inf'}]}]]}
    """
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufUO":
        return {"array": to_json(value.tolist()), "type": value.dtype.str if value.dtype.kind != "O" else "O"}
    value = value.item() if isinstance(value, np.generic) else value
    if type(value) is dict:
        return {"pairs": [[to_json(key), to_json(entry)] for key, entry in value.items()]}
    if type(value) in (tuple, list):
        entries = [to_json(entry) for entry in value]
        return {"tuple": entries} if isinstance(value, tuple) else entries
    if isinstance(value, float):
        return float(value) if np.isfinite(value) else {"float": repr(float(value))}
    if value is None or isinstance(value, bool | int | str):
        return value
    raise ValueError(type(value).__name__)


def from_json(value: Any) -> Any:
    if isinstance(value, list):
        return [from_json(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"tuple"}:
        return tuple(map(from_json, value["tuple"]))
    if set(value) == {"pairs"}:
        return {from_json(key): from_json(entry) for key, entry in value["pairs"]}
    if set(value) == {"float"} and value["float"] in ("inf", "-inf", "nan"):
        return float(value["float"])
    if set(value) == {"array", "type"} and str(value["type"])[:2] in ARRAY_TYPES:
        return np.array(from_json(value["array"]), dtype=value["type"])
    raise ValueError(f"a parameter has an unknown form: {cut(str(value), 60)}.")


def pack_search(
    model: Any, pack_member: Callable[[Any], tuple[dict[str, Any], Arrays]] = pack
) -> tuple[dict[str, Any], Arrays]:
    """Return the JSON header and the arrays of a fitted estimator."""
    packed = [pack_member(member) for member in model.estimators_]
    l2, dropout = (getattr(model, name, 0.0) for name in ("l2_", "input_dropout_"))  # of images there are none
    header = pack_unfitted(model) | {
        "chosen": {"penalty": model.penalty_, "l2": l2, "dropout": dropout},
        "seconds": float(model.path_.seconds),
        "members": [head for head, _ in packed],
    }
    members = {f"member_{number}": own for number, (_, own) in enumerate(packed)}
    scores = getattr(model, "_scores_", None)
    members |= {} if scores is None else {"scores": scores.pack()}
    return header, by_path({"table": model.path_.table, "layer_sizes": np.asarray(model.path_.layer_sizes), **members})


def unpack_search(header: Any, arrays: Arrays) -> CrossValidated:
    """Return the estimator, with the same predictions to the bit; raise a one-line ValueError where its parts do not fit."""
    model, path, chosen, members, scores = check_search(header, arrays)
    for member in members:
        ready_to_predict(member)
    model._store(path, chosen, members, scores)
    return model


def check_search(header: Any, arrays: Arrays) -> tuple[CrossValidated, Path, Point, list[NetworkEstimator], Scores | None]:
    """Return the unfitted estimator, its path, the chosen point, the estimators of the bag, unable to predict, and scores."""
    check_json(header, SEARCH)
    model = unfitted(header, CrossValidated)
    if not header["members"]:
        raise ValueError("its bag is empty.")
    heads = {f"member_{number}": head for number, head in enumerate(header["members"])}
    parts = separated(arrays, ["table", "layer_sizes", "scores", *heads])
    members = [check(head, parts[name]) for name, head in heads.items()]
    if any(type(member) is not model._plain for member in members):
        raise ValueError(f"its bag has other estimators than {model._plain.__name__}.")
    shared = [(head["targets"], head["feature_names"]) for head in heads.values()]
    ends = [(head["network"]["n_in"], head["network"]["n_out"]) for head in heads.values()]
    if any(own != shared[0] for own in shared) or len(set(ends)) > 1:
        raise ValueError("the networks of its bag differ in inputs or targets.")
    path, chosen = unpack_path(parts["table"], arrays.get("layer_sizes"), header)
    targets, arrays_of_scores, scores = members[0]._targets_, parts["scores"], None
    if arrays_of_scores:
        kind = scores_kind(targets)
        if kind is None:
            raise ValueError(f"its targets of kind {targets.kind} have no intervals.")
        scores = kind.unpack(arrays_of_scores, targets, ends[0][0])
    return model, path, chosen, members, scores


def unpack_path(table: Arrays, layers: Any, header: dict[str, Any]) -> tuple[Path, Point]:
    """Return the path of a search, of which only the table is kept, and its chosen point."""
    lengths = {column.shape for column in table.values()}
    is_complete = TABLE <= set(table) <= TABLE | OPTIONAL and len(lengths) == 1 and len(next(iter(lengths))) == 1
    if not is_complete or not len(table["loss"]):
        raise ValueError("its table of the search has other columns, or columns of several lengths.")
    for name, column in table.items():
        if column.dtype.kind not in ("b" if name == "finished" else "if") or (name in COLUMNS and not is_between(column)):
            raise ValueError(f"the column {name!r} of its table has another type or is not finite.")
    if layers is None or layers.ndim != 2 or len(layers) != len(table["loss"]) or layers.dtype.kind != "f":
        raise ValueError("its sizes by layer are not those of its table.")
    path = Path(table, (), layers, header["seconds"])
    points = [point for point in path.points if all(point.knobs[name] == value for name, value in header["chosen"].items())]
    if not points:
        raise ValueError("its chosen setting is not in its table.")
    return path, points[0]


def _is_estimator(model: Any) -> bool:
    return isinstance(model, NetworkEstimator) and hasattr(model, "network_")


def _is_search(model: Any) -> bool:
    return isinstance(model, CrossValidated) and hasattr(model, "estimators_")


register(FileKind("estimator", _is_estimator, pack, unpack, check, not_kept=not_kept))
register(FileKind("search", _is_search, pack_search, unpack_search, check_search, not_kept=not_kept))
