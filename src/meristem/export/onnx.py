"""A compact network as an ONNX file, for onnxruntime and whatever else reads ONNX; built node by node (compact/ops/onnx.py).

    inputs   X              [N, features, …] float32, or double where rounding a feature would change an answer (precision.py)
             of a table     an input [N, 1] of its name for each column: numbers double; dates double, days since 1970-01-01;
                            categories string. NaN, an infinity or the empty text are missing
    outputs  Raw            outputs        float32 [N, n_out]
             OneOf          label          [N], of the classes' type        probabilities  float32 [N, classes]
             AnyOf          labels         int64 [N, n_out], 0 or 1         probabilities  float32 [N, n_out]
             Values         predictions    [N, n_out], or [N]; float32, or double where y needs it (endings.py)

N is free. Features become inputs in double precision, by the formula of `predict` (inputs/); the network is in float32.
Probabilities agree to 1e-5, numbers to 1e-5 of what they vary by, at every optimization level of onnxruntime. Operator set 17,
which every runtime since 2022 has. The same network gives the same bytes. Where a column is called as an output is, the output
has an underscore behind its name. Only this file imports onnx, and only when it is used.
"""

import json
from collections.abc import Mapping, Sequence
from functools import singledispatch
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import numpy as np

import meristem
from meristem.compact import CompactNetwork, compact
from meristem.compact.inference import as_numpy, spread
from meristem.export.endings import SINGLE, AnyOf, Ending, OneOf, Raw, Values, check_ending, sizes
from meristem.export.precision import needs_double
from meristem.export.scale import Scale, Scaling
from meristem.files.atomic_write import PATHS, write_whole
from meristem.inputs import Inputs, Schema
from meristem.inputs.schema import CATEGORY, UNSEEN, Field
from meristem.layers.ops.numpy import NUMPY
from meristem.layers.ops.onnx import Graph, float32
from meristem.nn import Network

OPSET, IR = 17, 8  # they belong together
LOOKUP = "ai.onnx.ml", 3  # the set of operators that looks texts up


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
    table's model. The file's metadata has `versions` and, where given, `feature_names`, both as JSON, and all of `metadata`.

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
    """The model that `to_onnx` writes (an `onnx.ModelProto`), checked.

    >>> import jax
    >>> from meristem.nn import Network
    >>> model = build(Network.create("plain", n_in=2, n_out=1, width=4, depth=1, key=jax.random.key(0)))
    >>> [node.op_type for node in model.graph.node]
    ['Gemm', 'Relu', 'Gemm', 'Identity']
    """
    graph, small = Graph(_onnx()), compact(network)
    n_in, n_out = sizes(small)
    ending = check_ending(ending, n_out)
    if isinstance(scaling, Inputs) and scaling.schema is not None:
        h, inputs = _columns(graph, scaling, scaling.schema)
    else:
        h, inputs = _matrix(graph, scaling, small, ending)
    n_features = n_in if scaling is None else scaling.n_features if isinstance(scaling, Inputs) else len(scaling[0])
    properties = _properties(graph.onnx, n_features, feature_names, metadata)
    outputs = ended(graph, h, small, ending)
    _rename(graph, outputs, {value.name for value in inputs})
    return _model(graph, inputs, outputs, properties, *([LOOKUP] if h != "X" and _has_texts(scaling) else []))


# ---- inputs


def _matrix(graph: Graph, scaling: Scaling | None, network: CompactNetwork, ending: Ending) -> tuple[str, list[Any]]:
    """The network's inputs from X, and what the graph takes."""
    n_in, helper, kinds = sizes(network)[0], graph.onnx.helper, graph.onnx.TensorProto
    if scaling is None:
        return "X", [helper.make_tensor_value_info("X", kinds.FLOAT, ["N", n_in, *network.positions])]
    scale = Scale.of(scaling, n_in)
    is_double = needs_double(scale.mean, scale.scale, lambda x: scale.trace(NUMPY, x), network, ending)
    graph.scope = "inputs"
    h = scale.trace(graph, "X" if is_double else graph("Cast", "X", to=kinds.DOUBLE))
    return h, [helper.make_tensor_value_info("X", kinds.DOUBLE if is_double else kinds.FLOAT, ["N", len(scale.mean)])]


def _columns(graph: Graph, inputs: Inputs, schema: Schema) -> tuple[str, list[Any]]:
    """The same from an input for each column of a table."""
    kinds, values, infos = graph.onnx.TensorProto, [], []
    while any(name.startswith(graph.prefix) for name in schema.names):  # names inside the graph are none of these
        graph.prefix += "/"
    for place, field in enumerate(schema.fields):
        is_text = field.kind == CATEGORY
        infos.append(graph.onnx.helper.make_tensor_value_info(field.name, kinds.STRING if is_text else kinds.DOUBLE, ["N", 1]))
        graph.scope = f"column_{place}"
        values.append(_looked_up(graph, field) if is_text else field.name)
    graph.scope = "inputs"
    return inputs.trace(graph, values), infos


def _looked_up(graph: Graph, field: Field) -> str:
    """Codes int64 [N, 1] from texts."""
    return graph(
        "LabelEncoder",
        field.name,
        domain=LOOKUP[0],
        keys_strings=[*field.codes],
        values_int64s=[*field.codes.values()],
        default_int64=UNSEEN,
    )


def _has_texts(scaling: Any) -> bool:
    return isinstance(scaling, Inputs) and scaling.schema is not None and bool(scaling.schema.texts)


def _rename(graph: Graph, outputs: list[Any], taken: set[str]) -> None:
    """Give outputs that are called as an input is another name."""
    for output in outputs:
        name = output.name
        while output.name in taken:
            output.name += "_"
        for node in graph.nodes:
            node.output[:] = [output.name if value == name else value for value in node.output]


# ---- network


def ended(graph: Graph, h: str, network: CompactNetwork, ending: Ending) -> list[Any]:
    """The graph's outputs from what the network takes."""
    for k, layer in enumerate(as_numpy(network).layers):
        graph.scope = f"layer_{k}_{type(layer).__name__}"
        h = spread(layer)(graph, h)
    graph.scope = "ending"
    return finish(ending, graph, h, sizes(network)[1])


def _model(graph: Graph, inputs: list[Any], outputs: list[Any], properties: Mapping[str, str], *opsets: tuple[str, int]) -> Any:
    """The graph as an `onnx.ModelProto`, checked; `opsets`: further sets of operators, as domain and version."""
    helper = graph.onnx.helper
    model = helper.make_model(
        helper.make_graph(graph.nodes, "meristem", inputs, outputs, graph.constants),
        opset_imports=[helper.make_opsetid("", OPSET), *(helper.make_opsetid(*opset) for opset in opsets)],
        ir_version=IR,
        producer_name="meristem",
        producer_version=meristem.__version__,
    )
    helper.set_model_props(model, dict(properties))
    graph.onnx.checker.check_model(model, full_check=True)
    return model


# ---- endings


@singledispatch
def finish(ending: Ending, graph: Graph, z: str, n_out: int) -> list[Any]:
    """The graph's outputs from the network's."""
    raise ValueError(f"ending={ending!r} is not known; give Raw(), OneOf(classes), AnyOf() or Values(mean, scale).")


@finish.register
def _(ending: Raw, graph: Graph, z: str, n_out: int) -> list[Any]:
    return [_info(graph, graph("Identity", z, output="outputs"), np.float32, n_out)]


@finish.register
def _(ending: OneOf, graph: Graph, z: str, n_out: int) -> list[Any]:
    classes = ending.classes
    if np.can_cast(classes.dtype, np.int64) and classes.dtype != bool:
        classes = classes.astype(np.int64)
    if len(classes) > n_out:  # softmax([0, z]): runtimes know a low sigmoid to few digits only
        z = graph("MatMul", z, float32([[0, 1]]))
    label = graph("Gather", classes, graph("ArgMax", z, axis=1, keepdims=0), output="label")
    probabilities = graph("Softmax", z, axis=1, output="probabilities")
    return [_info(graph, label, classes.dtype), _info(graph, probabilities, np.float32, len(classes))]


@finish.register
def _(ending: AnyOf, graph: Graph, z: str, n_out: int) -> list[Any]:
    labels = graph("Cast", graph("Greater", z, float32(0)), to=graph.onnx.TensorProto.INT64, output="labels")
    probabilities = graph("Sigmoid", z, output="probabilities")
    return [_info(graph, labels, np.int64, n_out), _info(graph, probabilities, np.float32, n_out)]


@finish.register
def _(ending: Values, graph: Graph, z: str, n_out: int) -> list[Any]:
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
    return [_info(graph, y, ending.dtype, *([] if ending.is_flat else [n_out]))]


def _info(graph: Graph, name: str, dtype: Any, *shape: int) -> Any:
    """An output of the graph, [N, …]."""
    helper, dtype = graph.onnx.helper, np.dtype(dtype)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(object) if dtype.kind == "U" else dtype)
    return helper.make_tensor_value_info(name, kind, ["N", *shape])


# ---- around the graph


def versions(onnx: ModuleType) -> str:
    """What wrote a file, as JSON."""
    return json.dumps({name.__name__: name.__version__ for name in (meristem, jax, np, onnx)})


def _properties(
    onnx: ModuleType, n_features: int, feature_names: Sequence[str] | None, metadata: Mapping[str, str] | None
) -> dict[str, str]:
    properties = {"versions": versions(onnx)}
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


def _onnx() -> ModuleType:
    try:
        import onnx
        import onnx.checker
        import onnx.helper
        import onnx.numpy_helper
    except ImportError:
        raise ImportError("ONNX files need onnx; install it with `pip install 'meristem-nn[onnx]'`.") from None
    return onnx
