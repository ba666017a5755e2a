"""A compact network as an ONNX file, for onnxruntime and whatever else reads ONNX; built node by node (compact/ops/onnx.py).

    input    X              float32 [N, n_in]; N is free
    outputs  Raw            outputs        float32 [N, n_out]
             OneOf          label          [N], of the classes' type        probabilities  float32 [N, classes]
             AnyOf          labels         int64 [N, n_out], 0 or 1         probabilities  float32 [N, n_out]
             Values         predictions    of the ending's type [N, n_out], or [N]; float32 as a rule

All arithmetic is in float32, as in `predict`; probabilities agree to 1e-5, numbers to 1e-5 of their standard deviation or to
a float's last digit, whichever is more. Operator set 17, which every runtime since 2022 has. The same network gives the same
bytes. Only this file imports onnx, and only when it is used.
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
from meristem.columns import Columns
from meristem.compact import CompactNetwork, compact
from meristem.compact.inference import as_numpy
from meristem.compact.ops.onnx import Graph, float32
from meristem.compact.spread import spread
from meristem.export.ends import AnyOf, Ending, Inputs, OneOf, Raw, Values, check_ending, inputs_of, sizes
from meristem.files.whole import PATHS, write_whole
from meristem.nn import Network

OPSET, IR = 17, 8  # they belong together


def to_onnx(
    path: PATHS,
    network: CompactNetwork | Network,
    *,
    scaling: tuple[Any, Any] | Columns | None = None,
    ending: Ending = Raw(),
    feature_names: Sequence[str] | None = None,
    metadata: Mapping[str, str] | None = None,
) -> Path:
    """Write a network as an ONNX file in place of `path`; a reader sees the old file or the new one, never a part.

    `scaling` is the mean [n_in] and the scale [n_in] by which X is standardized first, or the columns of an estimator. The
    file's metadata has `versions` and, where given, `feature_names`, both as JSON, and all of `metadata`.

    >>> import jax, tempfile
    >>> from meristem.nn import Network
    >>> network = Network.create("tunnel", n_in=2, n_out=1, depth=10, key=jax.random.key(0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = to_onnx(f"{folder}/model.onnx", network, ending=OneOf(["no", "yes"]))
    ...     file.name, file.stat().st_size > 0
    ('model.onnx', True)
    """
    model = build(network, scaling=scaling, ending=ending, feature_names=feature_names, metadata=metadata)
    write_whole(path, model.SerializeToString(deterministic=True))
    return Path(path)


def build(
    network: CompactNetwork | Network,
    *,
    scaling: tuple[Any, Any] | Columns | None = None,
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
    graph, small = empty(), compact(network)
    n_in, n_out = sizes(small)
    ending = check_ending(ending, n_out)
    properties = _properties(graph.onnx, n_in, feature_names, metadata)
    h = "X"
    n_features = n_in
    if scaling is not None:
        graph.scope = "inputs"
        inputs = inputs_of(scaling, n_in, np.float32)
        h, n_features = standardized(graph, h, inputs), inputs.n_features
    outputs = ended(graph, h, small, ending)
    x = graph.onnx.helper.make_tensor_value_info("X", graph.onnx.TensorProto.FLOAT, ["N", n_features])
    return modeled(graph, [x], outputs, properties)


def empty() -> Graph:
    """A graph without nodes; raises ImportError where onnx is not installed."""
    return Graph(_onnx())


def standardized(graph: Graph, x: str, inputs: Inputs) -> str:
    """What the network takes, from columns; in the type of the inputs."""
    kind = graph.onnx.helper.np_dtype_to_tensor_dtype(inputs.mean.dtype)
    x = x if inputs.kept is None else graph.pick(inputs.kept.tolist(), x)
    if inputs.fill is not None and inputs.gaps is not None:
        is_gap = graph("IsNaN", x)
        x = graph("Where", is_gap, inputs.fill, x)
        if len(inputs.gaps):
            x = graph.concat([x, graph("Cast", graph.pick(inputs.gaps.tolist(), is_gap), to=kind)])
    z = graph("Div", graph("Sub", graph("Sub", x, inputs.mean), inputs.rest), inputs.scale)
    if not np.isfinite(inputs.limit):
        return z
    limit = inputs.mean.dtype.type(inputs.limit)
    c = graph("Clip", z, -limit, limit)
    return graph("Add", c, graph("Mul", graph("Tanh", graph("Div", graph("Sub", z, c), limit)), limit))


def ended(graph: Graph, h: str, network: CompactNetwork, ending: Ending) -> list[Any]:
    """The graph's outputs from what the network takes."""
    for k, layer in enumerate(as_numpy(network).layers):
        graph.scope = f"layer_{k}_{type(layer).__name__}"
        h = spread(layer)(graph, h)
    graph.scope = "ending"
    return finish(ending, graph, h, sizes(network)[1])


def modeled(
    graph: Graph, inputs: list[Any], outputs: list[Any], properties: Mapping[str, str], *opsets: tuple[str, int]
) -> Any:
    """The graph as an `onnx.ModelProto`, checked; `opsets`: further sets of operators, as domain and version."""
    helper = graph.onnx.helper
    model = helper.make_model(
        helper.make_graph(graph.nodes, "meristem", inputs, outputs, graph.constants),
        opset_imports=[helper.make_opsetid("", OPSET), *(helper.make_opsetid(*one) for one in opsets)],
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
    mean, scale = (np.asarray(values, ending.dtype) for values in (ending.mean, ending.scale))
    if ending.is_flat:
        z, mean, scale = graph("Squeeze", z, np.array([1])), mean[0], scale[0]
    if ending.dtype != np.float32:
        z = graph("Cast", z, to=graph.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(ending.dtype)))
    z = graph("Add", graph("Mul", z, scale), mean)
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
    onnx: ModuleType, n_in: int, feature_names: Sequence[str] | None, metadata: Mapping[str, str] | None
) -> dict[str, str]:
    properties = {"versions": versions(onnx)}
    if feature_names is not None:
        names = [str(name) for name in feature_names]
        if len(names) != n_in:
            raise ValueError(f"feature_names has {len(names)} names, the network takes {n_in} features; give one for each.")
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
