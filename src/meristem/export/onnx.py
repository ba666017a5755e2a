"""A compact network as an ONNX file, for onnxruntime and whatever else reads ONNX; built by hand, node by node.

    input    X              float32 [N, n_in]; N is free
    outputs  Raw            outputs        float32 [N, n_out]
             OneOf          label          [N], of the classes' type        probabilities  float32 [N, classes]
             AnyOf          labels         int64 [N, n_out], 0 or 1         probabilities  float32 [N, n_out]
             Numbers        predictions    float32 [N, n_out], or [N]

All arithmetic is in float32, as in `predict`; probabilities agree to 1e-5, numbers to 1e-5 of their standard deviation or to
a float's last digit, whichever is more. Operator set 17, which every runtime since 2022 has. The same network gives the same
bytes. Only this file imports onnx, and only when it is used.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import singledispatch
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import numpy as np

import meristem
from meristem.compact import CompactNetwork, compact
from meristem.compact.layers import Affine, Cascade, Gated, Highway, Layer, Perceptron, Residual, Tree
from meristem.export.ends import AnyOf, Ending, Numbers, OneOf, Raw, check_ending, sizes, standardization
from meristem.nn import Network
from meristem.files.whole import PATHS, write_whole

OPSET, IR = 17, 8  # they belong together


def to_onnx(
    path: PATHS,
    network: CompactNetwork | Network,
    *,
    scaling: tuple[Any, Any] | None = None,
    ending: Ending = Raw(),
    feature_names: Sequence[str] | None = None,
    metadata: Mapping[str, str] | None = None,
) -> Path:
    """Write a network as an ONNX file in place of `path`; a reader sees the old file or the new one, never a part.

    `scaling` is the mean [n_in] and the scale [n_in] by which X is standardized first. The file's metadata has `versions` and,
    where given, `feature_names`, both as JSON, and all of `metadata`.

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
    scaling: tuple[Any, Any] | None = None,
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
    onnx, small = _onnx(), compact(network)
    n_in, n_out = sizes(small)
    ending = check_ending(ending, n_out)
    properties = _properties(onnx, n_in, feature_names, metadata)
    graph = Graph(onnx)
    h = "X"
    if scaling is not None:
        graph.scope = "standardize"
        mean, rest, scale = standardization(scaling, n_in, np.float32)
        h = graph("Div", graph("Sub", graph("Sub", h, mean), rest), scale)
    for k, layer in enumerate(small.layers):
        graph.scope = f"layer_{k}_{type(layer).__name__}"
        h = apply(layer, graph, h)
    graph.scope = "ending"
    outputs = finish(ending, graph, h, n_out)
    x = onnx.helper.make_tensor_value_info("X", onnx.TensorProto.FLOAT, ["N", n_in])
    model = onnx.helper.make_model(
        onnx.helper.make_graph(graph.nodes, "meristem", [x], outputs, graph.constants),
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR,
        producer_name="meristem",
        producer_version=meristem.__version__,
    )
    onnx.helper.set_model_props(model, properties)
    onnx.checker.check_model(model, full_check=True)
    return model


class Graph:
    """Nodes and constants, as they come; a node's inputs are names or arrays."""

    def __init__(self, onnx: ModuleType):
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.scope = ""  # what names begin with

    def __call__(self, operator: str, *inputs: str | np.ndarray, output: str | None = None, **attributes: Any) -> str:
        """Another node; the name of its output."""
        (name,) = self.several(1, operator, *inputs, output=output, **attributes)
        return name

    def several(
        self, n: int, operator: str, *inputs: str | np.ndarray, output: str | None = None, **attributes: Any
    ) -> list[str]:
        """A node with n outputs."""
        name = f"{self.scope}/{len(self.nodes)}_{operator}"
        names = [
            value if isinstance(value, str) else self._constant(f"{name}.{position}", value)
            for position, value in enumerate(inputs)
        ]
        outputs = [output or f"{name}:{k}" for k in range(n)]
        self.nodes.append(self.onnx.helper.make_node(operator, names, outputs, name=name, **attributes))
        return outputs

    def info(self, name: str, dtype: Any, *shape: int) -> Any:
        """An output of the graph, [N, …]."""
        kind = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(object) if np.dtype(dtype).kind == "U" else np.dtype(dtype))
        return self.onnx.helper.make_tensor_value_info(name, kind, ["N", *shape])

    def _constant(self, name: str, value: np.ndarray) -> str:
        if value.dtype.kind == "U":
            texts = [text.encode() for text in value.tolist()]
            tensor = self.onnx.helper.make_tensor(name, self.onnx.TensorProto.STRING, value.shape, texts)
        else:
            tensor = self.onnx.numpy_helper.from_array(np.ascontiguousarray(value), name)
        self.constants.append(tensor)
        return name


# ---- activations


def _silu(graph: Graph, z: str) -> str:
    return graph("Mul", z, graph("Sigmoid", z))


def _gelu(graph: Graph, z: str) -> str:
    """By tanh, as JAX has it by default; ONNX knows no other before operator set 20."""
    cube = graph("Mul", graph("Mul", z, z), z)
    inner = graph("Add", z, graph("Mul", cube, _float(0.044715)))
    share = graph("Add", graph("Tanh", graph("Mul", inner, _float(np.sqrt(2 / np.pi)))), _float(1))
    return graph("Mul", graph("Mul", z, _float(0.5)), share)


SIGMA: dict[str, Callable[[Graph, str], str]] = {
    "relu": lambda graph, z: graph("Relu", z),
    "tanh": lambda graph, z: graph("Tanh", z),
    "sigmoid": lambda graph, z: graph("Sigmoid", z),
    "softplus": lambda graph, z: graph("Softplus", z),
    "gelu": _gelu,
    "silu": _silu,
    "elu": lambda graph, z: graph("Elu", z),
}


# ---- layers: the formulas of compact.layers, a sample per row


@singledispatch
def apply(layer: Layer, graph: Graph, h: str) -> str:
    """One layer, [N, in] → [N, out]."""
    raise ValueError(f"No ONNX form is known of a {type(layer).__name__}; register it with export.onnx.apply.register.")


def _affine(graph: Graph, weight: Any, bias: Any, h: str) -> str:
    return graph("Gemm", h, _float(weight), *([] if bias is None else [_float(bias)]), transB=1)


def _perceptron(graph: Graph, layer: Any, h: str) -> str:
    return SIGMA[layer.activation](graph, _affine(graph, layer.weight, layer.bias, h))


@apply.register
def _(layer: Affine, graph: Graph, h: str) -> str:
    return _affine(graph, layer.weight, layer.bias, h)


@apply.register
def _(layer: Perceptron, graph: Graph, h: str) -> str:
    return _perceptron(graph, layer, h)


@apply.register
def _(layer: Residual, graph: Graph, h: str) -> str:
    return graph("Add", _perceptron(graph, layer, h), h)


@apply.register
def _(layer: Gated, graph: Graph, h: str) -> str:
    """Values are put among the others by a product: runtimes pick single columns so slowly that it is cheaper."""
    rows, (n_open, width) = list(layer.rows), layer.weight.shape
    gate = np.zeros(width, np.float32)
    gate[rows] = layer.gate
    copied = graph("Mul", h, 1 - gate)
    if 2 * n_open < width:
        place = np.zeros((n_open, width), np.float32)
        place[np.arange(n_open), rows] = layer.gate
        return graph("Gemm", _perceptron(graph, layer, h), place, copied)
    weight, bias = np.zeros((width, width), np.float32), np.zeros(width, np.float32)
    weight[rows], bias[rows] = layer.weight, layer.bias
    new = SIGMA[layer.activation](graph, _affine(graph, weight, bias, h))
    return graph("Add", graph("Mul", new, gate), copied)


@apply.register
def _(layer: Cascade, graph: Graph, h: str) -> str:
    n_out = layer.couplings[-1].shape[0]
    own = np.array([*layer.units, n_out])
    first, *others = graph.several(len(own), "Split", _affine(graph, layer.weight, layer.bias, h), own, axis=1)
    active = SIGMA[layer.activation](graph, first)
    for coupling, stage in zip(layer.couplings[:-1], others[:-1], strict=True):
        new = SIGMA[layer.activation](graph, graph("Gemm", active, _float(coupling), stage, transB=1))
        active = graph("Concat", active, new, axis=1)
    return graph("Gemm", active, _float(layer.couplings[-1]), others[-1], transB=1)


@apply.register
def _(layer: Highway, graph: Graph, h: str) -> str:
    gate = graph("Sigmoid", _affine(graph, layer.gate_weight, layer.gate_bias, h))
    new = graph("Mul", gate, _perceptron(graph, layer, h))
    return graph("Add", new, graph("Mul", graph("Sub", _float(1), gate), h))


@apply.register
def _(layer: Tree, graph: Graph, h: str) -> str:
    active: list[str] = []
    for leaf in layer.leaves:
        active.append(SIGMA[layer.activation](graph, _affine(graph, leaf.weight, leaf.bias, h)))
        parts = [graph("Mul", active[k], _float(share)) for k, share in zip(leaf.reads, leaf.shares, strict=True)]
        h = graph("Sum", *parts)
    return h


def _float(values: Any) -> np.ndarray:
    return np.asarray(values, np.float32)


# ---- endings


@singledispatch
def finish(ending: Ending, graph: Graph, z: str, n_out: int) -> list[Any]:
    """The graph's outputs from the network's."""
    raise ValueError(f"ending={ending!r} is not known; give Raw(), OneOf(classes), AnyOf() or Numbers(mean, scale).")


@finish.register
def _(ending: Raw, graph: Graph, z: str, n_out: int) -> list[Any]:
    return [graph.info(graph("Identity", z, output="outputs"), np.float32, n_out)]


@finish.register
def _(ending: OneOf, graph: Graph, z: str, n_out: int) -> list[Any]:
    classes = ending.classes
    if np.can_cast(classes.dtype, np.int64) and classes.dtype != bool:
        classes = classes.astype(np.int64)
    if len(classes) > n_out:  # softmax([0, z]): runtimes know a low sigmoid to few digits only
        z = graph("MatMul", z, _float([[0, 1]]))
    label = graph("Gather", classes, graph("ArgMax", z, axis=1, keepdims=0), output="label")
    probabilities = graph("Softmax", z, axis=1, output="probabilities")
    return [graph.info(label, classes.dtype), graph.info(probabilities, np.float32, len(classes))]


@finish.register
def _(ending: AnyOf, graph: Graph, z: str, n_out: int) -> list[Any]:
    labels = graph("Cast", graph("Greater", z, _float(0)), to=graph.onnx.TensorProto.INT64, output="labels")
    probabilities = graph("Sigmoid", z, output="probabilities")
    return [graph.info(labels, np.int64, n_out), graph.info(probabilities, np.float32, n_out)]


@finish.register
def _(ending: Numbers, graph: Graph, z: str, n_out: int) -> list[Any]:
    if ending.is_flat:
        z = graph("Squeeze", z, np.array([1]))
    y = graph("Add", graph("Mul", z, _number(ending.scale, ending)), _number(ending.mean, ending), output="predictions")
    return [graph.info(y, np.float32, *([] if ending.is_flat else [n_out]))]


def _number(values: np.ndarray, ending: Numbers) -> np.ndarray:
    return _float(values[0] if ending.is_flat else values)


# ---- around the graph


def _properties(
    onnx: ModuleType, n_in: int, feature_names: Sequence[str] | None, metadata: Mapping[str, str] | None
) -> dict[str, str]:
    versions = {name.__name__: name.__version__ for name in (meristem, jax, np, onnx)}
    properties = {"versions": json.dumps(versions)}
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
        raise ImportError("ONNX files need onnx; install it with `pip install 'meristem[onnx]'`.") from None
    return onnx
