"""A compact network as an ONNX file, for onnxruntime and other runtimes; built node by node (layers/ops/onnx.py).

    inputs   X              [N, features, …] float32, or double where rounding a feature would change an answer
             of a table     an input [N, 1] of its name for each column: numbers double; dates double, days since 1970-01-01;
                            categories string. NaN, infinities and the empty text are missing
    outputs  Raw            outputs        float32 [N, n_out]
             OneOf          label          [N], of the classes' type        probabilities  float32 [N, classes]
                            the label is that of the highest probability, or of two classes follows the model's threshold
             AnyOf          labels         int64 [N, n_out], 0 or 1         probabilities  float32 [N, n_out]
             Values         predictions    [N, n_out], or [N]; float32, or double where y needs it (endings.py)

N is free. Features become inputs in double precision, by the formula of `predict` (inputs/); the network is in float32.
Probabilities agree to 1e-5, numbers to 1e-5 of their scale, at every optimization level of onnxruntime. Operator set 17, which
every runtime since 2022 has. With `bits=8` products of matrices are in eight bits (QDQ: layers/ops/onnx_rounding.py), kernels
of images stay in float, and `rounding` in the metadata says what it costs in held-out rows. The same network gives the same
bytes. An output whose name a column has gets an underscore. Only this module imports onnx, and only when it is used.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import numpy as np

import meristem
from meristem.compact import CompactNetwork
from meristem.compact.inference import as_numpy, spread
from meristem.export.endings import (
    HELD_OUT,
    MOST_ROWS,
    SINGLE,
    AnyOf,
    Ending,
    FeatureScaling,
    OneOf,
    Raw,
    Scaling,
    Values,
    check_export,
    ending_of,
    rounding_cost,
)
from meristem.files.atomic_write import PATHS, write_whole
from meristem.inputs import Inputs, Schema
from meristem.inputs.schema import CATEGORY, UNSEEN
from meristem.layers.ops.numpy import NUMPY, NumpyOps
from meristem.layers.ops.onnx import Graph, float32
from meristem.layers.ops.onnx_rounding import Rounded, RoundedGraph, RoundingOps
from meristem.nn import Network

OPSET, IR_VERSION = 17, 8  # they belong together
ML_OPSET = "ai.onnx.ml", 3  # the set of operators that encodes texts


def to_onnx(
    path: PATHS,
    network: CompactNetwork | Network,
    *,
    scaling: Scaling | None = None,
    ending: Ending = Raw(),
    feature_names: Sequence[str] | None = None,
    metadata: Mapping[str, str] | None = None,
    bits: int | None = None,
    X: Any = None,
) -> Path:
    """Write a network as an ONNX file in place of `path`; a reader sees the old file or the new one, never a part.

    `scaling` is the mean [n_in] and the scale [n_in] by which X is standardized first, or the Inputs of an estimator or a
    table's model. The file's metadata has `versions` and, if passed, `feature_names`, both as JSON, and all of `metadata`.

    With bits=8 and training rows X [rows, features], which show the range of each value, weights are int8.

    >>> import jax, tempfile
    >>> from meristem.nn import Network
    >>> network = Network.create("tunnel", n_in=2, n_out=1, depth=10, key=jax.random.key(0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = to_onnx(f"{folder}/model.onnx", network, ending=OneOf(["no", "yes"]))
    ...     file.name, file.stat().st_size > 0
    ('model.onnx', True)
    """
    described: dict[str, Any] = {"feature_names": feature_names, "metadata": metadata, "bits": bits, "X": X}
    write_whole(path, onnx_bytes(network, scaling=scaling, ending=ending, **described))
    return Path(path)


def onnx_of(estimator: Any, path: PATHS, **options: Any) -> Path:
    """Write a fitted estimator as an ONNX file: X [N, features] → what `predict` and `predict_proba` return."""
    network, inputs, metadata = estimator.compact(), estimator._inputs_, {"estimator": type(estimator).__name__}
    ending = ending_of(estimator._targets_)
    return to_onnx(path, network, scaling=inputs, ending=ending, feature_names=inputs.names, metadata=metadata, **options)


def onnx_bytes(
    network: CompactNetwork | Network,
    *,
    scaling: Scaling | None = None,
    ending: Ending = Raw(),
    bits: int | None = None,
    X: Any = None,
    **description: Any,
) -> bytes:
    """Return the content of the file that `to_onnx` writes; `description` is its feature_names and metadata."""
    onnx, small, n_in, n_out, ending = check_export("onnx", network, ending)
    layers = [spread(layer) for layer in as_numpy(small).layers]
    graph, helper, types, n_features = Graph(onnx), onnx.helper, onnx.TensorProto, n_in
    if bits is not None:
        products, cost = _in_eight_bits(layers, ending, bits, X, scaling, (n_in, *small.positions))
        graph = RoundedGraph(onnx, iter(products))
        description["metadata"] = {**(description.get("metadata") or {}), "rounding": cost}
    graph.scope = "inputs"
    if scaling is None:
        h, inputs = "X", [helper.make_tensor_value_info("X", types.FLOAT, ["N", n_in, *small.positions])]
    elif isinstance(scaling, Inputs) and scaling.schema is not None:
        n_features = scaling.n_features
        h, inputs = _column_inputs(graph, scaling, scaling.schema)
    else:
        features = FeatureScaling.of(scaling, n_in)
        is_double, n_features = features.needs_double(small, ending, n_out), len(features.mean)
        h = features.trace(graph, "X" if is_double else graph("Cast", "X", to=types.DOUBLE))
        inputs = [helper.make_tensor_value_info("X", types.DOUBLE if is_double else types.FLOAT, ["N", n_features])]
    properties = _properties(onnx, n_features, **description)
    for k, (layer, own) in enumerate(zip(small.layers, layers, strict=True)):
        graph.scope = f"layer_{k}_{type(layer).__name__}"
        h = own(graph, h)
    graph.scope = "ending"
    outputs = _add_outputs(graph, ending, h, n_out, {value.name for value in inputs})
    sets = [("", OPSET)] + [ML_OPSET] * any(node.domain == ML_OPSET[0] for node in graph.nodes)
    model = helper.make_model(
        helper.make_graph(graph.nodes, "meristem", inputs, outputs, graph.constants),
        opset_imports=[helper.make_opsetid(*each) for each in sets],
        ir_version=IR_VERSION,
        producer_name="meristem",
        producer_version=meristem.__version__,
    )
    helper.set_model_props(model, properties)
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString(deterministic=True))


def _in_eight_bits(
    layers: Sequence[Any], ending: Ending, bits: int, X: Any, scaling: Scaling | None, shape: tuple[int, ...]
) -> tuple[list[Rounded], str]:
    """Return the products of a network in eight bits, ranges set by all rows, and what they cost in held-out rows, in words."""
    if bits != 8:
        raise ValueError(f"bits={bits!r} must be 8 or None: ONNX files have no other integers here.")
    if X is None:
        raise ValueError("bits=8 needs rows that show the range of each value; give the training rows, X=….")
    rows = np.asarray(X, np.float64)
    n_features = scaling.n_features if isinstance(scaling, Inputs) else shape[0]
    if rows.shape[1:] != (shape if scaling is None else (n_features,)) or not len(rows):
        raise ValueError(f"X has shape {rows.shape}; it must be rows of {n_features} features.")
    rows = rows[np.random.default_rng(0).permutation(len(rows))[:MOST_ROWS]]
    x = rows.astype(np.float32) if scaling is None else FeatureScaling.of(scaling, shape[0]).trace(NUMPY, rows)
    held_out = len(rows) // HELD_OUT
    measured, ops = (RoundingOps(len(rows) - n) for n in (held_out, 0))

    def outputs(ops: NumpyOps) -> np.ndarray:
        h = x.view()
        for layer in layers:
            h.flags.writeable = False  # a formula may read h twice
            h = layer(ops, h)
        return h

    cost = rounding_cost(bits, ending, outputs(NUMPY), outputs(measured), held_out)
    outputs(ops)
    return ops.products, cost


def _column_inputs(graph: Graph, inputs: Inputs, schema: Schema) -> tuple[str, list[Any]]:
    """Add an input for each column of a table; return the name of the network's inputs and the graph's inputs."""
    types, values, infos = graph.onnx.TensorProto, [], []
    while any(name.startswith(graph.prefix) for name in schema.names):  # names inside the graph must differ from these
        graph.prefix += "/"
    for place, field in enumerate(schema.fields):
        is_text, value = field.kind == CATEGORY, field.name
        infos.append(graph.onnx.helper.make_tensor_value_info(value, types.STRING if is_text else types.DOUBLE, ["N", 1]))
        graph.scope = f"column_{place}"
        if is_text:  # as codes, int64 [N, 1]
            table: dict[str, Any] = {"keys_strings": [*field.codes], "values_int64s": [*field.codes.values()]}
            value = graph("LabelEncoder", value, domain=ML_OPSET[0], default_int64=UNSEEN, **table)
        values.append(value)
    graph.scope = "inputs"
    return inputs.trace(graph, values), infos


def _add_outputs(graph: Graph, ending: Ending, z: str, n_out: int, taken: set[str]) -> list[Any]:
    """Add the ending and return the graph's outputs, whose names are not among those `taken`."""
    helper, types = graph.onnx.helper, graph.onnx.TensorProto

    def tensor_type(dtype: Any) -> Any:
        return types.STRING if np.dtype(dtype).kind == "U" else helper.np_dtype_to_tensor_dtype(np.dtype(dtype))

    def add(name: str, dtype: Any, shape: list[int], operator: str, *inputs: Any, **attributes: Any) -> Any:
        while name in taken:
            name += "_"
        graph(operator, *inputs, output=name, **attributes)
        return helper.make_tensor_value_info(name, tensor_type(dtype), ["N", *shape])

    match ending:
        case Raw():
            return [add("outputs", np.float32, [n_out], "Identity", z)]
        case OneOf():
            classes = ending.classes
            if np.can_cast(classes.dtype, np.int64) and classes.dtype != bool:
                classes = classes.astype(np.int64)
            shares_logit, logit = len(classes) > n_out, z
            if shares_logit:  # softmax([0, z]): runtimes compute a low sigmoid to few digits only
                z = graph("MatMul", z, float32([[0, 1]]))
            if shares_logit and ending.cut:
                is_second = graph("Cast", graph("Greater", logit, float32(ending.cut)), to=types.INT64)
                index = graph("Squeeze", is_second, np.array([1]))
            else:
                index = graph("ArgMax", z, axis=1, keepdims=0)
            label = add("label", classes.dtype, [], "Gather", classes, index)
            return [label, add("probabilities", np.float32, [len(classes)], "Softmax", z, axis=1)]
        case AnyOf():
            labels = add("labels", np.int64, [n_out], "Cast", graph("Greater", z, float32(0)), to=types.INT64)
            return [labels, add("probabilities", np.float32, [n_out], "Sigmoid", z)]
        case Values():
            offset, scale = (np.asarray(values, ending.dtype) for values in (ending.mean / ending.scale, ending.scale))
            if ending.is_flat:
                z, offset, scale = graph("Squeeze", z, np.array([1])), offset[0], scale[0]
            if ending.dtype != np.float32:
                z = graph("Cast", z, to=tensor_type(ending.dtype))
            z = graph("Add", z, offset)
            is_nearly_one = (np.abs(scale - 1) < SINGLE.eps).all() and not (scale == 1).all()
            if is_nearly_one:  # onnxruntime would take it for 1, and leave it out
                z, scale = graph("Mul", z, ending.dtype(0.5)), 2 * scale
            z, shape = graph("Mul", z, scale), [] if ending.is_flat else [n_out]
            return [add("predictions", ending.dtype, shape, "Exp" if ending.link == "log" else "Identity", z)]


def _properties(onnx: ModuleType, n_features: int, feature_names: Any = None, metadata: Any = None) -> dict[str, str]:
    properties = {"versions": json.dumps({module.__name__: module.__version__ for module in (meristem, jax, np, onnx)})}
    if feature_names is not None:
        names = [str(name) for name in feature_names]
        if len(names) != n_features:
            raise ValueError(f"feature_names has {len(names)} names, the model takes {n_features} features; give one for each.")
        properties["feature_names"] = json.dumps(names)
    if taken := {"versions", "feature_names"}.intersection(metadata or {}):
        raise ValueError(f"metadata's name {min(taken)!r} is taken; choose another.")
    return properties | dict(metadata or {})
