"""A table's model as an ONNX graph: raw columns in, each an input of its own name; labels and probabilities, or numbers, out.

    input    of a number or a date     double [N, 1]; a date as days since 1970-01-01; NaN: missing
             of a category             string [N, 1]; the empty text, or one of those that CSV files have for it: missing
    outputs  of a class                label [N], of the target's own type; probabilities float32 [N, classes]
             of a number               predictions double [N]

    onnx_bytes(model) → bytes;  feeds(encoding, table, rows) → what a runtime is given;  compared(data, model, table, rows)

A text is looked up without spaces around it being taken off, which ONNX cannot; else columns are encoded as encoding.py says,
unseen categories included, and scaled in double precision, as `predict` does it; the network is in float32. Where a column is
called as an output is, the output has an underscore behind its name. `compared` runs the graph in onnxruntime, which only this
file imports, and only then. Imports export; model and commands import it.
"""

import json
from dataclasses import replace
from typing import Any

import numpy as np

from meristem.compact import compact
from meristem.export.ends import Values, check_ending, inputs_of, sizes
from meristem.export.estimator import ending_of
from meristem.export.onnx import empty, ended, modeled, standardized, versions
from meristem.tables.column import MISSING_TEXTS
from meristem.tables.encoding import BLOCK, Encoded, Encoding
from meristem.tables.kinds import CATEGORY, NUMBER
from meristem.tables.table import Table
from meristem.tables.target import CLASS

LEARNING = "ai.onnx.ml", 3  # the set of operators that looks texts up
TOLERANCE = 1e-5
UNSEEN = "(none of them)"


def onnx_bytes(model: Any) -> bytes:
    """The content of an ONNX file of a `TableModel`; the same model gives the same bytes."""
    graph, estimator = empty(), model.estimator
    small, kinds = compact(estimator.compact()), graph.onnx.TensorProto
    n_in, n_out = sizes(small)
    ending = ending_of(estimator._targets_)
    ending = replace(ending, dtype=np.float64) if isinstance(ending, Values) else ending
    inputs, parts = [], []
    for place, one in enumerate(model.encoding.columns):
        graph.scope = f"column_{place}"
        kind = kinds.STRING if one.kind == CATEGORY else kinds.DOUBLE
        inputs.append(graph.onnx.helper.make_tensor_value_info(one.name, kind, ["N", 1]))
        parts.append(_indicators(graph, one) if one.kind == CATEGORY else _finite(graph, one.name))
    graph.scope = "inputs"
    z = standardized(graph, graph.concat(parts), inputs_of(estimator._columns_, n_in, np.float64))
    outputs = ended(graph, graph("Cast", z, to=kinds.FLOAT), small, check_ending(ending, n_out))
    _rename(graph, outputs, {one.name for one in model.encoding.columns})
    about = {one.name: "text" if one.kind == CATEGORY else one.kind for one in model.encoding.columns}
    properties = {"columns": json.dumps(about), "target": model.target, "estimator": type(estimator).__name__}
    written = modeled(graph, inputs, outputs, properties | {"versions": versions(graph.onnx)}, LEARNING)
    data: bytes = written.SerializeToString(deterministic=True)
    return data


def _finite(graph: Any, x: str) -> str:
    """A column of numbers in which what is not finite is missing."""
    return str(graph("Where", graph("IsInf", x), np.float64(np.nan), x))


def _indicators(graph: Any, one: Encoded) -> str:
    """Double [N, inputs] from texts [N, 1]."""
    n, others = len(one.inputs), len(one.categories)
    places = dict.fromkeys(sorted(MISSING_TEXTS), n - 1 if one.has_missing else -1)
    places |= {text: place for place, text in enumerate(one.categories)} | dict.fromkeys(one.rare, others)
    places |= {} if one.silent is None else {one.silent: -1}
    place = graph(
        "LabelEncoder",
        one.name,
        domain=LEARNING[0],
        keys_strings=[*places],
        values_int64s=[*places.values()],
        default_int64=others if one.rare else -1,
    )
    return str(graph("Cast", graph("Equal", place, np.arange(n)), to=graph.onnx.TensorProto.DOUBLE))


def _rename(graph: Any, outputs: list[Any], taken: set[str]) -> None:
    """Give outputs that are called as a column is another name."""
    for output in outputs:
        name = output.name
        while output.name in taken:
            output.name += "_"
        for node in graph.nodes:
            node.output[:] = [output.name if one == name else one for one in node.output]


def feeds(encoding: Encoding, table: Table, rows: np.ndarray) -> dict[str, np.ndarray]:
    """What a runtime is given for some rows of a table.

    >>> from meristem.tables.reading import table_of
    >>> encoding = Encoding.of(table_of({"size": [1, 2, 3], "color": ["red", "blue", "red"]}), np.arange(3))
    >>> given = feeds(encoding, table_of({"color": ["red", "", "pink"]}), np.arange(3))
    >>> given["size"].ravel().tolist(), given["color"].ravel().tolist()
    ([nan, nan, nan], ['red', '', 'pink'])
    """
    return {one.name: _fed(one, table, rows)[:, None] for one in encoding.columns}


def _fed(one: Encoded, table: Table, rows: np.ndarray) -> np.ndarray:
    column = table.columns.get(one.name)
    if one.kind != CATEGORY:
        if column is None:
            return np.full(len(rows), np.nan)
        return (column.as_numbers() if one.kind == NUMBER else column.as_days())[rows]
    if column is None:
        return np.full(len(rows), "", object)
    known, codes = (one.known, column.as_codes(one.known)) if column.codes is None else (column.texts, column.codes)
    unseen = UNSEEN
    while unseen in one.known:
        unseen += "_"
    return np.array([*known, unseen, ""], object)[codes[rows]]  # codes −1 and −2 are the last two


def compared(data: bytes, model: Any, table: Table, rows: np.ndarray) -> dict[str, Any] | None:
    """How far the graph in onnxruntime is from what the model says of these rows; None where onnxruntime is not installed.

    Raises ValueError where they differ: probabilities by 1e-5, numbers by 1e-5
    of what they vary by, or labels where no two of them are as likely.
    """
    try:
        import onnxruntime
    except ImportError:
        return None
    opened = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    furthest = 0.0
    for begin in range(0, len(rows), BLOCK):
        some = rows[begin : begin + BLOCK]
        said, x = opened.run(None, feeds(model.encoding, table, some)), model.encoding(table, some)
        if model.task == CLASS:
            expected = model.estimator.predict_proba(x)
            off, certain = np.abs(said[-1] - expected).max(), np.ptp(np.sort(expected, 1)[:, -2:], 1) > 2 * TOLERANCE
            wrong = (np.asarray(said[0]).astype(model.classes.dtype) != model.classes[expected.argmax(1)]) & certain
            off = max(float(off), 1.0 if wrong.any() else 0.0)
        else:
            expected = model.estimator.predict(x)
            off = float((np.abs(said[0] - expected) / np.maximum(_unit(model), np.abs(expected))).max())
        furthest = max(furthest, off if np.isfinite(off) else np.inf)
    if furthest > TOLERANCE:
        raise ValueError(
            f"The ONNX graph differs from the model by {furthest:.2g} in onnxruntime {onnxruntime.__version__}; nothing was "
            "written. Try another version of it."
        )
    return {"onnxruntime": onnxruntime.__version__, "rows": len(rows), "furthest": furthest}


def _unit(model: Any) -> float:
    """What the numbers that were learned vary by."""
    return float(model.estimator._targets_.scaling.scale.max())
