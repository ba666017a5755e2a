"""The file of a table's model: the schema of its columns, what is known of it, and the estimator that found its price.

    header   {"encoding": {…}, "target": "price", "task": "number", "facts": {…}, "search": the header of a search}
    arrays   those of the search                                                        see estimators/search_file.py

The package imports it, so that the kind is registered.
"""

from typing import Any

from meristem.estimators import search_file
from meristem.files import FileKind, register
from meristem.files.named_arrays import Arrays
from meristem.inputs import Schema
from meristem.tables.facts import check_facts
from meristem.tables.model import TableModel
from meristem.tables.target import CLASS, TASKS

ENTRIES = ["encoding", "target", "task", "facts", "search"]


def pack(model: TableModel) -> tuple[dict[str, Any], Arrays]:
    """A model's header, made of JSON's values, and its arrays."""
    header, arrays = search_file.pack(model.estimator)
    own = {"encoding": model.schema.as_json(), "target": model.target, "task": model.task, "facts": model.facts}
    return own | {"search": header}, arrays


def unpack(header: Any, arrays: Arrays) -> TableModel:
    """The model, which predicts the same to the bit; raises ValueError of one line where its parts do not fit together."""
    if set(header) != set(ENTRIES):
        raise ValueError("it does not hold what a table's model is made of.")
    schema, estimator = Schema.of_json(header["encoding"]), search_file.unpack(header["search"], arrays)
    is_whole = isinstance(header["target"], str) and isinstance(header["task"], str) and header["task"] in TASKS
    if not is_whole or hasattr(estimator, "predict_proba") != (header["task"] == CLASS):
        raise ValueError("its target and its estimator do not fit together.")
    if estimator.n_features_in_ != len(schema.features):
        raise ValueError(f"its encoding gives {len(schema.features)} inputs, its estimator takes {estimator.n_features_in_}.")
    labels = [str(label) for label in estimator.classes_.tolist()] if header["task"] == CLASS else None
    expected = {"target": header["target"], "task": header["task"], "classes": labels, "inputs": len(schema.features)}
    check_facts(header["facts"], expected)
    return TableModel(schema, estimator, header["target"], header["task"], header["facts"])


register(FileKind("table", holds=lambda thing: isinstance(thing, TableModel), pack=pack, unpack=unpack, check=unpack))
