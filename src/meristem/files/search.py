"""Fitted estimators that found their price, as data: what was chosen, the table of the search, and every network of the bag.

    header   {"estimator": "TunnelClassifierCV", "parameters": {…}, "chosen": {"penalty": …, "l2": …, "dropout": …},
              "seconds": 12.3, "members": [the header of each plain estimator]}                       see estimator.py
    arrays   table.NAME [members of the search], layer_sizes, member_0.…, member_1.…

The networks of the search that are not in the bag are not kept: a path that comes from a file has its table alone.
"""

from typing import Any

import numpy as np

from meristem import estimators
from meristem.estimators.cv import CrossValidated
from meristem.files import estimator
from meristem.files.arrays import Arrays, with_prefix, without_prefix
from meristem.paths.members import COLUMNS, KNOBS
from meristem.paths.result import Path

KIND = "search"
KINDS: dict[str, type[CrossValidated]] = {
    kind.__name__: kind
    for kind in (
        estimators.TunnelClassifierCV,
        estimators.BuddingClassifierCV,
        estimators.TunnelRegressorCV,
        estimators.BuddingRegressorCV,
    )
}
ENTRIES = ["estimator", "parameters", "chosen", "seconds", "members"]
TABLE = {*COLUMNS, "loss", "error", "n_parameters", "soft_size", "hard_size", "epochs", "finished"}


def pack(model: CrossValidated) -> tuple[dict[str, Any], Arrays]:
    """A fitted estimator's header, made of JSON's values, and its arrays."""
    if KINDS.get(type(model).__name__) is not type(model):
        raise ValueError(f"A {type(model).__name__} cannot be saved; give one of {', '.join(KINDS)}.")
    packed = [estimator.pack(member) for member in model.estimators_]
    header = {
        "estimator": type(model).__name__,
        "parameters": {name: estimator.plain(value) for name, value in model.get_params().items()},
        "chosen": {"penalty": model.penalty_, "l2": model.l2_, "dropout": model.input_dropout_},
        "seconds": float(model.path_.seconds),
        "members": [head for head, _ in packed],
    }
    arrays = with_prefix("table", model.path_.table) | {"layer_sizes": np.asarray(model.path_.layer_sizes)}
    for number, (_, own) in enumerate(packed):
        arrays |= with_prefix(f"member_{number}", own)
    return header, arrays


def unpack(header: Any, arrays: Arrays) -> CrossValidated:
    """The estimator, which predicts the same to the bit; raises ValueError of one line where its parts do not fit together."""
    if not isinstance(header, dict) or set(header) != set(ENTRIES):
        raise ValueError("it does not hold what a search is made of.")
    model = estimator.made(header, KINDS)
    if not isinstance(header["members"], list) or not header["members"]:
        raise ValueError("its bag is empty.")
    members = [
        estimator.unpack(head, without_prefix(f"member_{number}", arrays)) for number, head in enumerate(header["members"])
    ]
    if any(type(member) is not model._plain for member in members):
        raise ValueError(f"its bag holds others than {model._plain.__name__}.")
    path = _path(without_prefix("table", arrays), arrays.get("layer_sizes"), header["seconds"])
    chosen = [point for point in path.points if all(point.knobs[name] == value for name, value in header["chosen"].items())]
    if set(header["chosen"]) != set(KNOBS) - {"learning_rate"} or not chosen:
        raise ValueError("what was chosen is none of what was tried.")
    model._keep(path, chosen[0], members)
    return model


def _path(table: Arrays, layers: Any, seconds: Any) -> Path:
    lengths = {column.shape for column in table.values()}
    if set(table) != TABLE or len(lengths) != 1 or len(next(iter(lengths))) != 1 or type(seconds) is not float:
        raise ValueError("its table of the search has other columns, or columns of several lengths.")
    if layers is None or layers.ndim != 2 or len(layers) != len(table["loss"]):
        raise ValueError("its sizes by layer are not those of its table.")
    return Path(table, (), layers, seconds)
