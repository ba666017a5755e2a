"""A compact network as an ONNX file, for onnxruntime and other runtimes; built node by node (layers/ops/onnx.py).

    inputs   X              [N, features, …] float32, or double where rounding a feature would change an answer
             of a table     an input [N, 1] of its name for each column: numbers double; dates double, days since 1970-01-01;
                            categories string. NaN, infinities and the empty text are missing
    outputs  Raw            outputs        float32 [N, n_out]
             OneOf          label          [N], of the classes' type        probabilities  float32 [N, classes]
             AnyOf          labels         int64 [N, n_out], 0 or 1         probabilities  float32 [N, n_out]
             Values         predictions    [N, n_out], or [N]; float32, or double where y needs it (endings.py)

N is free. Features become inputs in double precision, by the formula of `predict` (inputs/); the network is in float32.
Probabilities agree to 1e-5, numbers to 1e-5 of their scale, at every optimization level of onnxruntime. Operator set 17, which
every runtime since 2022 has. The same network gives the same bytes. An output whose name a column has gets an underscore. Only
this module imports onnx, and only when it is used.
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
from meristem.export.endings import SINGLE, AnyOf, Ending, OneOf, Raw, Values, check_export, ending_of
from meristem.export.feature_scaling import FeatureScaling, Scaling
from meristem.files.atomic_write import PATHS, write_whole
from meristem.inputs import Inputs, Schema
from meristem.inputs.schema import CATEGORY, UNSEEN
from meristem.layers.ops.onnx import Graph, float32
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
) -> Path:
    """Write a network as an ONNX file in place of `path`; a reader sees the old file or the new one, never a part.

    `scaling` is the mean [n_in] and the scale [n_in] by which X is standardized first, or the Inputs of an estimator or a
    table's model. The file's metadata has `versions` and, if passed, `feature_names`, both as JSON, and all of `metadata`.

    >>> import jax, tempfile
    >>> from meristem.nn import Network
    >>> network = Network.create("tunnel", n_in=2, n_out=1, depth=10, key=jax.random.key(0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = to_onnx(f"{folder}/model.onnx", network, ending=OneOf(["no", "yes"]))
    ...     file.name, file.stat().st_size > 0
    ('model.onnx', True)
    """
    write_whole(path, onnx_bytes(network, scaling=scaling, ending=ending, feature_names=feature_names, metadata=metadata))
    return Path(path)


def onnx_of(estimator: Any, path: PATHS) -> Path:
    """Write a fitted estimator as an ONNX file: X [N, features] → what `predict` and `predict_proba` return.

    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> from meristem.estimators import TunnelClassifier
    >>> model = TunnelClassifier(width=16, depth=2, random_state=0).fit(*load_iris(return_X_y=True))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     onnx_of(model, f"{folder}/iris.onnx").name
    'iris.onnx'
    """
    network, inputs, metadata = estimator.compact(), estimator._inputs_, {"estimator": type(estimator).__name__}
    options: dict[str, Any] = {"ending": ending_of(estimator._targets_), "feature_names": inputs.names}
    return to_onnx(path, network, scaling=inputs, **options, metadata=metadata)


def onnx_bytes(network: CompactNetwork | Network, **options: Any) -> bytes:
    """Return the content of the file that `to_onnx` writes."""
    data: bytes = build(network, **options).SerializeToString(deterministic=True)
    return data


def build(
    network: CompactNetwork | Network,
    *,
    scaling: Scaling | None = None,
    ending: Ending = Raw(),
    feature_names: Sequence[str] | None = None,
    metadata: Mapping[str, str] | None = None,
) -> Any:
    """Return the checked `onnx.ModelProto` that `to_onnx` writes."""
    graph, (small, n_in, n_out, ending) = Graph(_import_onnx()), check_export(network, ending)
    helper, types, n_features, graph.scope = graph.onnx.helper, graph.onnx.TensorProto, n_in, "inputs"
    if scaling is None:
        h, inputs = "X", [helper.make_tensor_value_info("X", types.FLOAT, ["N", n_in, *small.positions])]
    elif isinstance(scaling, Inputs) and scaling.schema is not None:
        n_features = scaling.n_features
        h, inputs = _column_inputs(graph, scaling, scaling.schema)
    else:
        features = FeatureScaling.of(scaling, n_in)
        is_double, n_features = features.needs_double(small, ending), len(features.mean)
        h = features.trace(graph, "X" if is_double else graph("Cast", "X", to=types.DOUBLE))
        inputs = [helper.make_tensor_value_info("X", types.DOUBLE if is_double else types.FLOAT, ["N", n_features])]
    properties = _properties(graph.onnx, n_features, feature_names, metadata)
    for k, layer in enumerate(as_numpy(small).layers):
        graph.scope = f"layer_{k}_{type(layer).__name__}"
        h = spread(layer)(graph, h)
    graph.scope = "ending"
    outputs = _add_outputs(graph, ending, h, n_out)
    _rename_outputs(graph, outputs, {value.name for value in inputs})
    sets = [helper.make_opsetid("", OPSET)]
    sets += [helper.make_opsetid(*ML_OPSET)] if any(node.domain == ML_OPSET[0] for node in graph.nodes) else []
    model = helper.make_model(
        helper.make_graph(graph.nodes, "meristem", inputs, outputs, graph.constants),
        opset_imports=sets,
        ir_version=IR_VERSION,
        producer_name="meristem",
        producer_version=meristem.__version__,
    )
    helper.set_model_props(model, properties)
    graph.onnx.checker.check_model(model, full_check=True)
    return model


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


def _add_outputs(graph: Graph, ending: Ending, z: str, n_out: int) -> list[Any]:
    """Add the ending and return the graph's outputs."""
    match ending:
        case Raw():
            return [_output(graph, graph("Identity", z, output="outputs"), np.float32, n_out)]
        case OneOf():
            classes = ending.classes
            if np.can_cast(classes.dtype, np.int64) and classes.dtype != bool:
                classes = classes.astype(np.int64)
            if len(classes) > n_out:  # softmax([0, z]): runtimes compute a low sigmoid to few digits only
                z = graph("MatMul", z, float32([[0, 1]]))
            label = graph("Gather", classes, graph("ArgMax", z, axis=1, keepdims=0), output="label")
            probabilities = graph("Softmax", z, axis=1, output="probabilities")
            return [_output(graph, label, classes.dtype), _output(graph, probabilities, np.float32, len(classes))]
        case AnyOf():
            labels = graph("Cast", graph("Greater", z, float32(0)), to=graph.onnx.TensorProto.INT64, output="labels")
            probabilities = graph("Sigmoid", z, output="probabilities")
            return [_output(graph, labels, np.int64, n_out), _output(graph, probabilities, np.float32, n_out)]
        case Values():
            return [_add_values(graph, ending, z, n_out)]


def _add_values(graph: Graph, ending: Values, z: str, n_out: int) -> Any:
    offset, scale = (np.asarray(values, ending.dtype) for values in (ending.mean / ending.scale, ending.scale))
    if ending.is_flat:
        z, offset, scale = graph("Squeeze", z, np.array([1])), offset[0], scale[0]
    if ending.dtype != np.float32:
        z = graph("Cast", z, to=graph.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(ending.dtype)))
    z = graph("Add", z, offset)
    is_nearly_one = (np.abs(scale - 1) < SINGLE.eps).all() and not (scale == 1).all()
    if is_nearly_one:  # onnxruntime would take it for 1, and leave it out
        z, scale = graph("Mul", z, ending.dtype(0.5)), 2 * scale
    z = graph("Mul", z, scale)
    y = graph("Exp" if ending.link == "log" else "Identity", z, output="predictions")
    return _output(graph, y, ending.dtype, *([] if ending.is_flat else [n_out]))


def _output(graph: Graph, name: str, dtype: Any, *shape: int) -> Any:
    """Return an output of the graph, [N, …]."""
    helper, dtype = graph.onnx.helper, np.dtype(dtype)
    tensor_type = helper.np_dtype_to_tensor_dtype(np.dtype(object) if dtype.kind == "U" else dtype)
    return helper.make_tensor_value_info(name, tensor_type, ["N", *shape])


def _rename_outputs(graph: Graph, outputs: list[Any], taken: set[str]) -> None:
    """Rename outputs that have the name of an input."""
    for output in outputs:
        name = output.name
        while output.name in taken:
            output.name += "_"
        for node in graph.nodes:
            node.output[:] = [output.name if value == name else value for value in node.output]


def _properties(
    onnx: ModuleType, n_features: int, feature_names: Sequence[str] | None, metadata: Mapping[str, str] | None
) -> dict[str, str]:
    """Return the metadata of the file."""
    properties = {"versions": json.dumps({module.__name__: module.__version__ for module in (meristem, jax, np, onnx)})}
    if feature_names is not None:
        names = [str(name) for name in feature_names]
        if len(names) != n_features:
            raise ValueError(f"feature_names has {len(names)} names, the model takes {n_features} features; give one for each.")
        properties["feature_names"] = json.dumps(names)
    for name, value in (metadata or {}).items():
        if name in ("versions", "feature_names"):
            raise ValueError(f"metadata's name {name!r} is taken; choose another.")
        properties[name] = value
    return properties


def _import_onnx() -> ModuleType:
    try:
        import onnx
        import onnx.checker
        import onnx.helper
        import onnx.numpy_helper
    except ImportError:
        raise ImportError("ONNX files need onnx; install it with `pip install 'meristem-nn[onnx]'`.") from None
    return onnx
