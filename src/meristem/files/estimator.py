"""Fitted estimators as files: parameters, what was learned, and the whole training state, so that training can go on.

    save(path, estimator);  load(path) → the estimator, which predicts the same to the bit

The file is a document of `meristem.files`: nothing in it is executed. What has no plain form, callbacks and a random generator,
is not kept and comes back as None.
"""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from meristem.check import unknown
from meristem.compact import compact
from meristem.estimators.base import Growing
from meristem.estimators.classifiers import BuddingClassifier, HighwayClassifier, TunnelClassifier
from meristem.compact.inference import as_numpy
from meristem.estimators.regressors import BuddingRegressor, HighwayRegressor, TunnelRegressor
from meristem.targets.scaling import Scaling
from meristem.targets.targets import Classes, Labels, Numbers
from meristem.files import (
    about,
    pack_network,
    pack_state,
    read_document,
    under,
    unpack_network,
    unpack_state,
    within,
    write_document,
)
from meristem.files.document import PATHS

KIND = "estimator"
KINDS: dict[str, type[Growing]] = {
    kind.__name__: kind
    for kind in (
        TunnelClassifier,
        BuddingClassifier,
        HighwayClassifier,
        TunnelRegressor,
        BuddingRegressor,
        HighwayRegressor,
    )
}
NUMBERS = ["n_features_in_", "n_iter_", "best_epoch_", "soft_size_", "hard_size_", "n_live_units_"]
LATER = ["n_samples_seen_", "predictability_"]  # not in the first files


def save(path: PATHS, estimator: Growing) -> None:
    """Write a fitted estimator.

    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TunnelClassifier(random_state=0, max_epochs=2).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(f"{folder}/iris.safetensors", model)
    ...     same = load(f"{folder}/iris.safetensors")
    >>> bool((same.predict_proba(X) == model.predict_proba(X)).all())
    True
    """
    check_is_fitted(estimator)
    network, network_arrays = pack_network(estimator.network_)
    state, state_arrays = pack_state(estimator._state_)
    targets, target_arrays = _pack_targets(estimator._targets_)
    header = {
        "estimator": type(estimator).__name__,
        "parameters": {name: _plain(value) for name, value in estimator.get_params().items()},
        "learned": {name: getattr(estimator, name) for name in NUMBERS + LATER if hasattr(estimator, name)},
        "feature_names": getattr(estimator, "feature_names_in_", np.array([])).tolist() or None,
        "network": network,
        "state": state,
        "targets": targets,
    }
    scaling = _pack_scaling(estimator._scaling_)
    arrays = [("network", network_arrays), ("state", state_arrays), ("targets", target_arrays), ("scaling", scaling)]
    arrays.append(("history", estimator.history_))
    write_document(path, KIND, {name: a for prefix, part in arrays for name, a in under(prefix, part).items()}, header)


def load(path: PATHS) -> Growing:
    """The estimator of a file that `save` wrote; what is wrong with the file is said in one line."""
    header, arrays = read_document(path, KIND)
    with about(path):
        return _unpack(header, arrays)


def _unpack(header: Any, arrays: dict[str, np.ndarray]) -> Growing:
    wanted = {"estimator", "parameters", "learned", "feature_names", "network", "state", "targets"}
    if not isinstance(header, dict) or set(header) != wanted or set(header["learned"]) - set(LATER) != set(NUMBERS):
        raise ValueError("it does not hold what an estimator is made of.")
    if header["estimator"] not in KINDS:
        raise unknown("estimator", header["estimator"], list(KINDS))
    kind = KINDS[header["estimator"]]
    given, known = header["parameters"], kind().get_params()
    for name in given:
        if name not in known:
            raise unknown(f"parameter of {header['estimator']}", name, list(known))
    estimator = kind(**{name: _unplain(value) for name, value in given.items()})
    estimator.network_ = unpack_network(header["network"], within("network", arrays))
    estimator._state_ = unpack_state(header["state"], within("state", arrays))
    estimator._compact_ = as_numpy(compact(estimator.network_))
    estimator._targets_ = _unpack_targets(header["targets"], within("targets", arrays))
    estimator._scaling_ = _unpack_scaling(within("scaling", arrays))
    estimator.history_ = dict(within("history", arrays))
    for name, value in ({"n_samples_seen_": round(estimator._scaling_.total)} | header["learned"]).items():
        setattr(estimator, name, value)
    if isinstance(estimator._targets_, Classes | Labels):
        estimator.classes_ = estimator._targets_.classes
    if header["feature_names"] is not None:
        estimator.feature_names_in_ = np.array(header["feature_names"], dtype=object)
    if not len(estimator._scaling_.mean) == estimator.n_features_in_ == estimator.network_.embed.weight.shape[1]:
        raise ValueError("its network, its scaling and its number of features do not fit together.")
    return estimator


def _pack_scaling(scaling: Scaling) -> dict[str, np.ndarray]:
    return {"total": np.array([scaling.total]), "mean": scaling.mean, "variance": scaling.variance}


def _unpack_scaling(arrays: dict[str, np.ndarray]) -> Scaling:
    (total,), mean, variance = (_row(arrays, name) for name in ("total", "mean", "variance"))
    return Scaling(float(total), mean, variance)


def _row(arrays: dict[str, np.ndarray], name: str) -> np.ndarray:
    if name not in arrays or arrays[name].ndim != 1 or arrays[name].dtype != np.float64:
        raise ValueError(f"its {name} is missing or no row of numbers.")
    return arrays[name]


def _plain(value: Any) -> Any:
    """A parameter as JSON has it; a dictionary as its pairs, because its keys may be numbers."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, dict):
        return {"pairs": [[_plain(key), _plain(entry)] for key, entry in value.items()]}
    return value if value is None or isinstance(value, bool | int | float | str) else None


def _unplain(value: Any) -> Any:
    return dict(value["pairs"]) if isinstance(value, dict) else value


def _pack_targets(targets: Classes | Labels | Numbers) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    if isinstance(targets, Numbers):
        return {"kind": "numbers", "is_flat": targets.is_flat}, _pack_scaling(targets.scaling)
    if isinstance(targets, Labels):
        return {"kind": "labels", "count": targets.count}, {}
    classes = targets.classes
    if classes.dtype.kind in "biuf":
        return {"kind": "classes"}, {"classes": classes}
    if not all(isinstance(name, str) for name in classes.tolist()):
        raise ValueError(f"Classes of type {classes.dtype} cannot be written to a file; use numbers or texts.")
    return {"kind": "classes", "names": classes.tolist(), "is_object": classes.dtype.kind == "O"}, {}


def _unpack_targets(header: Any, arrays: dict[str, np.ndarray]) -> Classes | Labels | Numbers:
    kind = header.get("kind") if isinstance(header, dict) else None
    if kind == "numbers":
        return Numbers(_unpack_scaling(arrays), bool(header["is_flat"]))
    if kind == "labels":
        return Labels(int(header["count"]))
    if kind != "classes" or not ("names" in header or "classes" in arrays):
        raise ValueError("it does not say what y means.")
    if "names" in header:
        return Classes(np.array(header["names"], dtype=object if header["is_object"] else None))
    return Classes(arrays["classes"])
