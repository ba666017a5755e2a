"""The file of a cross-validated estimator: the chosen setting, the table of the search, and every network of the bag.

    header   {"estimator": "TunnelClassifierCV", "parameters": {…}, "chosen": {"penalty": …, "l2": …, "dropout": …},
              "seconds": 12.3, "members": [the header of each plain estimator]}                       see estimator_file.py
    arrays   table.NAME [members of the search], layer_sizes, member_0.…, member_1.…, scores.NAME (conformal.py)

Networks of the search that are not in the bag are not saved: a loaded path has only its table. Files of earlier versions have
no scores: their models have no intervals or sets.
"""

from typing import Any

import numpy as np

from meristem.estimators import estimator_file
from meristem.estimators.conformal import Scores, scores_kind
from meristem.estimators.cv import CrossValidated
from meristem.estimators.growing import Growing
from meristem.files import FileKind, register
from meristem.files.named_arrays import Arrays, by_path, is_between, separated
from meristem.json_schema import NUMBER, OBJECT, check_json
from meristem.paths.members import COLUMNS, KNOBS
from meristem.paths.result import Path, Point

CHOSEN = {name: NUMBER for name in KNOBS if name != "learning_rate"}
SEARCH = estimator_file.HEAD | {"chosen": CHOSEN, "seconds": NUMBER, "members": [OBJECT]}
TABLE = {*COLUMNS, "loss", "error", "n_parameters", "soft_size", "hard_size", "epochs", "finished"}
OPTIONAL = {"score", "constant_loss"}


def pack(model: CrossValidated) -> tuple[dict[str, Any], Arrays]:
    """Return the JSON header and the arrays of a fitted estimator."""
    packed = [estimator_file.pack(member) for member in model.estimators_]
    header = estimator_file.pack_unfitted(model) | {
        "chosen": {"penalty": model.penalty_, "l2": model.l2_, "dropout": model.input_dropout_},
        "seconds": float(model.path_.seconds),
        "members": [head for head, _ in packed],
    }
    members = {f"member_{number}": own for number, (_, own) in enumerate(packed)}
    scores = getattr(model, "_scores_", None)
    members |= {} if scores is None else {"scores": scores.pack()}
    return header, by_path({"table": model.path_.table, "layer_sizes": np.asarray(model.path_.layer_sizes), **members})


def unpack(header: Any, arrays: Arrays) -> CrossValidated:
    """Return the estimator, with the same predictions to the bit; raise a one-line ValueError where its parts do not fit."""
    model, path, chosen, members, scores = check(header, arrays)
    for member in members:
        estimator_file.ready_to_predict(member)
    model._store(path, chosen, members, scores)
    return model


def check(header: Any, arrays: Arrays) -> tuple[CrossValidated, Path, Point, list[Growing], Scores | None]:
    """Return the unfitted estimator, its path, the chosen point, the estimators of the bag, unable to predict, and scores."""
    check_json(header, SEARCH)
    model = estimator_file.unfitted(header, CrossValidated)
    if not header["members"]:
        raise ValueError("its bag is empty.")
    heads = {f"member_{number}": head for number, head in enumerate(header["members"])}
    parts = separated(arrays, ["table", "layer_sizes", "scores", *heads])
    members = [estimator_file.check(head, parts[name]) for name, head in heads.items()]
    if any(type(member) is not model._plain for member in members):
        raise ValueError(f"its bag has other estimators than {model._plain.__name__}.")
    shared = [(head["targets"], head["feature_names"]) for head in heads.values()]
    ends = [(head["network"]["n_in"], head["network"]["n_out"]) for head in heads.values()]
    if any(own != shared[0] for own in shared) or len(set(ends)) > 1:
        raise ValueError("the networks of its bag differ in inputs or targets.")
    path = _path(parts["table"], arrays.get("layer_sizes"), header["seconds"])
    points = [point for point in path.points if all(point.knobs[name] == value for name, value in header["chosen"].items())]
    if not points:
        raise ValueError("its chosen setting is not in its table.")
    targets, arrays_of_scores, scores = members[0]._targets_, parts["scores"], None
    if arrays_of_scores:
        kind = scores_kind(targets)
        if kind is None:
            raise ValueError(f"its targets of kind {targets.kind} have no intervals.")
        scores = kind.unpack(arrays_of_scores, targets, ends[0][0])
    return model, path, points[0], members, scores


def _path(table: Arrays, layers: Any, seconds: float) -> Path:
    lengths = {column.shape for column in table.values()}
    is_complete = TABLE <= set(table) <= TABLE | OPTIONAL and len(lengths) == 1 and len(next(iter(lengths))) == 1
    if not is_complete or not len(table["loss"]):
        raise ValueError("its table of the search has other columns, or columns of several lengths.")
    for name, column in table.items():
        if column.dtype.kind not in ("b" if name == "finished" else "if") or (name in COLUMNS and not is_between(column)):
            raise ValueError(f"the column {name!r} of its table has another type or is not finite.")
    if layers is None or layers.ndim != 2 or len(layers) != len(table["loss"]) or layers.dtype.kind != "f":
        raise ValueError("its sizes by layer are not those of its table.")
    return Path(table, (), layers, seconds)


def _is_fitted(model: Any) -> bool:
    return isinstance(model, CrossValidated) and hasattr(model, "estimators_")


register(FileKind("search", _is_fitted, pack, unpack, check, not_kept=estimator_file.not_kept))
