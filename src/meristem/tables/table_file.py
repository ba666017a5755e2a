"""The file of a table's model: the schema of its columns, its facts, and the estimator.

    header   {"encoding": {…}, "target": "price", "task": "number", "facts": {…}, "search": the header of a search}
    arrays   those of the search                                                        see estimators/search_file.py

Facts (`TableModel.facts`, summary.json) are checked against FACTS when a file is read or written, because reports, `repr` and
scores rely on them. Facts that FACTS does not name may be anything.
"""

from collections.abc import Mapping
from typing import Any

from meristem.check import short
from meristem.estimators import search_file
from meristem.files import FileKind, register
from meristem.files.named_arrays import Arrays
from meristem.inputs import Schema
from meristem.json_schema import ANY, COUNT, FLAG, NUMBER, OBJECT, POSITIVE, SHA256, TEXT, Rule, check_json, integer, one_of
from meristem.tables.table_model import TableModel
from meristem.tables.target import CLASS, TASKS

HEADER = {"encoding": OBJECT, "target": TEXT, "task": one_of(TASKS), "facts": ANY, "search": OBJECT}
PROBLEM = "its facts do not fit: "
BASELINES = ("constant", "linear", "mlp")
MEASURES = {"class": "accuracy", "number": "R²"}


def pack(model: TableModel) -> tuple[dict[str, Any], Arrays]:
    """Return a model's header, made of JSON values, and its arrays."""
    header, arrays = search_file.pack(model.estimator)
    own = {"encoding": model.schema.as_json(), "target": model.target, "task": model.task, "facts": model.facts}
    return own | {"search": header}, arrays


def unpack(header: Any, arrays: Arrays) -> TableModel:
    """Return the model, which predicts the same to the bit; raise ValueError where its parts do not fit together."""
    check_json(header, HEADER)
    target, task, facts = header["target"], header["task"], header["facts"]
    schema, estimator = Schema.of_json(header["encoding"]), search_file.unpack(header["search"], arrays)
    if hasattr(estimator, "predict_proba") != (task == CLASS):
        raise ValueError("its target and its estimator do not fit together.")
    if estimator.n_features_in_ != len(schema.features):
        raise ValueError(f"its encoding gives {len(schema.features)} inputs, its estimator takes {estimator.n_features_in_}.")
    labels = [str(label) for label in estimator.classes_.tolist()] if task == CLASS else None
    check_facts(facts, {"target": target, "task": task, "classes": labels, "inputs": len(schema.features)})
    return TableModel(schema, estimator, target, task, facts)


register(FileKind("table", holds=lambda value: isinstance(value, TableModel), pack=pack, unpack=unpack, check=unpack))


SECONDS = Rule("a number of seconds", lambda value: NUMBER.fits(value) and 0 <= value < 1e10)
PLAIN = Rule("a number, true or false", lambda value: isinstance(value, bool) or NUMBER.fits(value))
TEXTS = {TEXT: TEXT}
SCORE = {"measure": TEXT, "value": NUMBER, "low": NUMBER, "high": NUMBER, "rmse?": NUMBER, "lacks?": TEXT, TEXT: ANY}
FACTS: dict[Any, Any] = {
    **dict.fromkeys(["table", "target", "task", "why", "device", "body?", "estimator?", "rule?"], TEXT),
    **dict.fromkeys(["inputs", "cores", "folds?"], POSITIVE),
    **dict.fromkeys(["n_parameters", "marks_of_missing_values?"], COUNT),
    **{"columns": TEXTS, "dropped?": TEXTS, "versions?": TEXTS},
    "seed": integer(0, bits=63),
    "classes": (None, [TEXT]),
    "rows": dict.fromkeys(["all", "train", "test", "searched_with", "learned_from?"], POSITIVE)
    | {"without_target": COUNT, TEXT: ANY},
    "baselines": {f"{name}?": SCORE for name in BASELINES},
    "score": SCORE,
    "seconds": {"all": SECONDS, "limit?": (None, SECONDS), "ended_the_search?": FLAG, TEXT: ANY}
    | dict.fromkeys(["reading?", "baselines?", "search?"], SECONDS),
    "table_sha256?": (None, SHA256),
    "reading?": dict.fromkeys(["format", "sep", "encoding"], (None, TEXT)) | {"decimal_commas": [TEXT], TEXT: ANY},
    "test?": (None, {"table": TEXT, "sha256": (None, SHA256), TEXT: ANY}),
    "table_warnings?": [TEXT],
    "doubts?": [TEXT],  # their name in earlier files
    "budget?": (None, POSITIVE),
    "chosen?": {TEXT: NUMBER},
    "path?": [{TEXT: PLAIN}],
    "onnx?": (None, {"onnxruntime": TEXT, "rows": COUNT, "furthest": NUMBER, TEXT: ANY}),
    TEXT: ANY,
}


def check_facts(facts: Any, expected: Mapping[str, Any]) -> None:
    """Raise ValueError that names the first fact that is missing, wrong, or not what is `expected` of this model."""
    check_json(facts, FACTS, PROBLEM)
    for name, value in expected.items():
        if facts[name] != value:
            raise ValueError(f"{PROBLEM}{name} is {short(facts[name])}, and the model's is {short(value)}.")
    scores = {"score": facts["score"]} | {f"baselines.{name}": score for name, score in facts["baselines"].items()}
    for place, score in scores.items():
        if score["measure"] != MEASURES[facts["task"]]:
            raise ValueError(f"{PROBLEM}{place}.measure is {short(score['measure'])}, not that of a {facts['task']}.")
    rows = facts["rows"]
    most = max(rows["searched_with"], rows.get("learned_from", 0))
    if rows["train"] + rows["without_target"] > rows["all"] or most > rows["train"]:
        raise ValueError(f"{PROBLEM}rows is {short(rows)}, of which parts are more than the whole.")
