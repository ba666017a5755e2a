"""The files of fitted classifiers of images: parameters, fitted attributes, the network and its training state.

header   {"estimator": "TunnelImageClassifier", "parameters": {…}, "learned": {…}, "image_shape": [8, 8],
"feature_names": null, "network": {…}, "state": {…}, "targets": {…}}
arrays   network.…, state.…, targets.…, history.NAME

Of TunnelImageClassifierCV the chosen setting, the table of the search and its networks, as in estimator_file.py.
"""

from typing import Any

import numpy as np

from meristem.check import many
from meristem.estimators.estimator_file import (
    HEAD,
    SEARCH,
    not_kept,
    pack_search as pack_any_search,
    pack_unfitted,
    unfitted,
    unpack_path,
)
from meristem.estimators.image_classifier import HISTORY, TunnelImageClassifier
from meristem.estimators.image_cv import TunnelImageClassifierCV
from meristem.estimators.image_input import compact_on_pixels
from meristem.files import FileKind, register
from meristem.files.named_arrays import Arrays, by_path, is_between, on_device, separated
from meristem.files.network_file import structure_of, unpack_network
from meristem.files.run_file import STATE, state_structure, unpack_state
from meristem.json_schema import COUNT, FLAG, NUMBER, OBJECT, POSITIVE, TEXT, check_json
from meristem.targets import Classes, unpack as unpack_targets

LEARNED: dict[str, Any] = {
    **dict.fromkeys(["n_features_in_", "n_iter_"], POSITIVE),
    **{"hard_size_": COUNT, "soft_size_": NUMBER, "takes_bytes_": FLAG},
}
IMAGES = HEAD | {
    **{"learned": LEARNED, "image_shape": [POSITIVE], "feature_names": (None, [TEXT])},
    **dict.fromkeys(["network", "state", "targets"], OBJECT),
    "state": STATE,
}
PARTS = ["network", "state", "targets", "history"]


def pack(estimator: TunnelImageClassifier) -> tuple[dict[str, Any], Arrays]:
    """Return the JSON header and the arrays of a fitted estimator."""
    header, (targets, arrays) = pack_unfitted(estimator), estimator._targets_.pack()
    header |= {
        "learned": {name: getattr(estimator, name) for name in LEARNED},
        "image_shape": list(estimator.image_shape_),
        "feature_names": getattr(estimator, "feature_names_in_", np.array([])).tolist() or None,
        "network": structure_of(estimator.network_),
        "state": state_structure(estimator._state_),
        "targets": targets,
    }
    trained = {"network": estimator.network_, "state": estimator._state_, "history": estimator.history_}
    return header, by_path(trained | {"targets": arrays})


def unpack(header: Any, arrays: Arrays) -> TunnelImageClassifier:
    """Return the estimator, with the same predictions to the bit; raise a one-line ValueError where its parts do not fit."""
    estimator = check(header, arrays)
    estimator.network_, estimator._state_ = on_device((estimator.network_, estimator._state_))
    return estimator


def check(header: Any, arrays: Arrays) -> TunnelImageClassifier:
    """Return the estimator with host arrays; raise ValueError where its parts do not fit."""
    check_json(header, IMAGES)
    parts, estimator = separated(arrays, PARTS), unfitted(header, TunnelImageClassifier)
    network, targets = unpack_network(header["network"], parts["network"]), unpack_targets(header["targets"], parts["targets"])
    estimator.network_, estimator._state_ = network, unpack_state(header["state"], parts["state"])
    estimator.history_, estimator.image_shape_ = parts["history"], tuple(header["image_shape"])
    for name, value in header["learned"].items():
        setattr(estimator, name, value)
    if not isinstance(targets, Classes):
        raise ValueError(f"a {type(estimator).__name__} has no targets of kind {targets.kind}.")
    last = estimator._state_.network
    shapes = {network.input_shape, last.input_shape, estimator.image_shape_}
    if len(shapes) > 1 or {network.n_out, last.n_out} != {targets.n_out} or network.members or last.members:
        raise ValueError("its network, its images and its classes do not fit together.")
    history, epochs = estimator.history_, estimator.n_iter_
    is_complete = set(history) == set(HISTORY) and all(len(values) == epochs for values in history.values() if values.ndim)
    if not is_complete or not all(values.ndim and values.dtype.kind in "if" for values in history.values()):
        raise ValueError(f"its history is not that of {many(epochs, 'epoch')}.")
    estimator._targets_, estimator.classes_ = targets, targets.classes
    if header["feature_names"] is not None:
        estimator.feature_names_in_ = np.array(header["feature_names"], dtype=object)
    estimator._compact_ = compact_on_pixels(network, takes_bytes=estimator.takes_bytes_)
    with np.errstate(all="ignore"):
        outputs = estimator._outputs_of(np.zeros((1, *estimator.image_shape_), np.uint8))
    if not is_between(outputs):
        raise ValueError("its predictions are not finite: its weights are too large.")
    return estimator


def pack_search(model: TunnelImageClassifierCV) -> tuple[dict[str, Any], Arrays]:
    """Return the JSON header and the arrays of a fitted search."""
    return pack_any_search(model, pack)


def unpack_search(header: Any, arrays: Arrays) -> TunnelImageClassifierCV:
    """Return the estimator, with the same predictions to the bit; raise a one-line ValueError where its parts do not fit."""
    check_json(header, SEARCH)
    if not header["members"]:
        raise ValueError("its bag is empty.")
    model = unfitted(header, TunnelImageClassifierCV)
    heads = {f"member_{number}": head for number, head in enumerate(header["members"])}
    parts = separated(arrays, ["table", "layer_sizes", *heads])
    path, chosen = unpack_path(parts["table"], arrays.get("layer_sizes"), header)
    members = [unpack(head, parts[name]) for name, head in heads.items()]
    shared = [(head["targets"], head["feature_names"]) for head in heads.values()]
    pixels = [member._compact_.layers[0] for member in members]
    if any(own != shared[0] for own in shared) or any(own != pixels[0] for own in pixels):
        raise ValueError("the networks of its bag differ in images or classes.")
    model._store(path, chosen, members)
    return model


def _is_fitted(model: Any) -> bool:
    return isinstance(model, TunnelImageClassifier) and hasattr(model, "network_")


def _is_search(model: Any) -> bool:
    return isinstance(model, TunnelImageClassifierCV) and hasattr(model, "estimators_")


register(FileKind("image classifier", _is_fitted, pack, unpack, check, not_kept=not_kept))
register(FileKind("image search", _is_search, pack_search, unpack_search, unpack_search, not_kept=not_kept))
