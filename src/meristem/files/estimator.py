"""Fitted estimators as data: parameters, what was learned, and the whole training state, so that training can go on.

    header   {"estimator": "TunnelClassifier", "parameters": {…}, "learned": {…}, "feature_names": null,
              "network": {…}, "state": {…}, "targets": {…}}       see network.py, state.py and meristem.targets
    arrays   network.…, state.…, targets.…, scaling.…, history.NAME

Parameters that have no plain form, callbacks and a random generator, are not kept and come back as None. Imports scikit-learn.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from meristem import estimators
from meristem.check import unknown
from meristem.columns import Columns
from meristem.compact import compact
from meristem.compact.inference import as_numpy
from meristem.estimators.base import Growing
from meristem.estimators.settings import Settings
from meristem.files import network, state
from meristem.files.arrays import Arrays, with_prefix, without_prefix
from meristem.targets import unpack as unpack_targets

E = TypeVar("E", bound=Settings)
KINDS: dict[str, type[Growing]] = {
    kind.__name__: kind
    for kind in (
        estimators.TunnelClassifier,
        estimators.BuddingClassifier,
        estimators.HighwayClassifier,
        estimators.TunnelRegressor,
        estimators.BuddingRegressor,
        estimators.HighwayRegressor,
    )
}
ENTRIES = ["estimator", "parameters", "learned", "feature_names", "network", "state", "targets"]
LEARNED = ["n_features_in_", "n_iter_", "best_epoch_", "soft_size_", "hard_size_", "n_live_units_"]
LATER = ["n_samples_seen_", "predictability_", "input_dropout_", "n_parameters_"]  # not in the first files


def pack(estimator: Growing) -> tuple[dict[str, Any], Arrays]:
    """A fitted estimator's header, made of JSON's values, and its arrays.

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = estimators.TunnelClassifier(width=16, depth=2, random_state=0).partial_fit(X, y, classes=[0, 1, 2])
    >>> same = unpack(*pack(model))
    >>> bool((same.predict_proba(X) == model.predict_proba(X)).all())
    True
    """
    if KINDS.get(type(estimator).__name__) is not type(estimator):
        raise ValueError(f"A {type(estimator).__name__} cannot be saved; give one of {', '.join(KINDS)}.")
    parts: dict[str, Arrays] = {"scaling": estimator._columns_.pack(), "history": estimator.history_}
    header = {
        "estimator": type(estimator).__name__,
        "parameters": {name: plain(value) for name, value in estimator.get_params().items()},
        "learned": {name: getattr(estimator, name) for name in LEARNED + LATER if hasattr(estimator, name)},
        "feature_names": getattr(estimator, "feature_names_in_", np.array([])).tolist() or None,
    }
    header["network"], parts["network"] = network.pack(estimator.network_)
    header["state"], parts["state"] = state.pack(estimator._state_)
    header["targets"], parts["targets"] = estimator._targets_.pack()
    return header, {name: array for prefix, part in parts.items() for name, array in with_prefix(prefix, part).items()}


def unpack(header: Any, arrays: Arrays) -> Growing:
    """The estimator, which predicts the same to the bit; raises ValueError of one line where its parts do not fit together."""
    if set(header) != set(ENTRIES) or set(header["learned"]) - set(LATER) != set(LEARNED):
        raise ValueError("it does not hold what an estimator is made of.")
    estimator = made(header, KINDS)
    estimator.network_ = network.unpack(header["network"], without_prefix("network", arrays))
    estimator._state_ = state.unpack(header["state"], without_prefix("state", arrays))
    estimator._compact_ = as_numpy(compact(estimator.network_))
    estimator._targets_ = unpack_targets(header["targets"], without_prefix("targets", arrays))
    estimator._columns_ = Columns.unpack(without_prefix("scaling", arrays))
    estimator.history_ = without_prefix("history", arrays)
    learned = {"n_samples_seen_": round(estimator._columns_.scaling.total)} | header["learned"]
    learned.pop("n_parameters_", None)  # for whoever reads the header; the estimator counts its compact network
    for name, value in learned.items():
        if type(value) not in (int, float):
            raise ValueError(f"{name}={value!r} must be a number.")
        setattr(estimator, name, value)
    if hasattr(estimator._targets_, "classes"):
        estimator.classes_ = estimator._targets_.classes
    if header["feature_names"] is not None:
        estimator.feature_names_in_ = np.array(header["feature_names"], dtype=object)
    _check_parts(estimator)
    return estimator


def made(header: Any, kinds: Mapping[str, type[E]]) -> E:
    """An estimator of one of these kinds that is not fitted, with the parameters of the header."""
    if header["estimator"] not in kinds:
        raise unknown("estimator", header["estimator"], list(kinds))
    kind = kinds[header["estimator"]]
    given, known = header["parameters"], kind().get_params()
    for name in given:
        if name not in known:
            raise unknown(f"parameter of {header['estimator']}", name, list(known))
    return kind(**{name: unplain(value) for name, value in given.items()})


def _check_parts(estimator: Growing) -> None:
    """Raise ValueError unless the parts are those of one estimator."""
    n_out, n_in = estimator.network_.head.weight.shape[-2], estimator.network_.embed.weight.shape[-1]
    fits = [
        estimator._columns_.n_features == estimator.n_features_in_ and estimator._columns_.n_inputs == n_in,
        len(getattr(estimator, "feature_names_in_", range(estimator.n_features_in_))) == estimator.n_features_in_,
        estimator._targets_.n_out == n_out,
    ]
    if not all(fits):
        raise ValueError("its network, its scaling, its targets and its number of features do not fit together.")


def plain(value: Any) -> Any:
    """A parameter as JSON has it; a dictionary as its pairs, because its keys may be numbers, and a tuple as one."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, dict):
        return {"pairs": [[plain(key), plain(entry)] for key, entry in value.items()]}
    if isinstance(value, tuple | list | np.ndarray):
        entries = [plain(entry) for entry in value]
        whole = {"tuple": entries} if isinstance(value, tuple) else entries
        return None if None in entries else whole
    return value if value is None or isinstance(value, bool | int | float | str) else None


def unplain(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(value["tuple"]) if "tuple" in value else dict(value["pairs"])
    return value
