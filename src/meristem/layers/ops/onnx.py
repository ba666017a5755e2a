"""The operations as nodes of an ONNX graph, operator set 17, in float32. A sample is a row: values are [N, units, …].

    node = graph("Relu", "X")                 another node; the name of its output
    node = graph("Add", node, np.ones(3))     inputs are names or arrays, which become constants

Values are put among others by a product: runtimes pick single columns so slowly that it is cheaper.
"""

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from meristem.layers.activation import ACTIVATIONS
from meristem.layers.ops.operations import InputOps, padding

Input = str | np.ndarray | np.generic


class Graph(InputOps[str]):
    """Nodes and constants, as they come; a value is its name."""

    def __init__(self, onnx: ModuleType):
        self.onnx, self.nodes, self.constants = onnx, list[Any](), list[Any]()
        self.prefix, self.scope = "", ""  # what all names begin with, and what follows it

    def __call__(self, operator: str, *inputs: Input, output: str | None = None, **attributes: Any) -> str:
        """Another node; the name of its output."""
        return self.several(1, operator, *inputs, output=output, **attributes)[0]

    def name(self, operator: str) -> str:
        """Return the name of the next node."""
        return f"{self.prefix}{self.scope}/{len(self.nodes)}_{operator}"

    def several(self, n: int, operator: str, *inputs: Input, output: str | None = None, **attributes: Any) -> list[str]:
        """A node with n outputs."""
        name = self.name(operator)
        names = [
            value if isinstance(value, str) else self._constant(f"{name}.{position}", np.asarray(value))
            for position, value in enumerate(inputs)
        ]
        outputs = [output or f"{name}:{k}" for k in range(n)]
        self.nodes.append(self.onnx.helper.make_node(operator, names, outputs, name=name, **attributes))
        return outputs

    def pick(self, rows: Sequence[int], h: str) -> str:
        return self("Gather", h, np.array(rows), axis=1)

    def affine(self, weight: Any, bias: Any, h: str, *, plus: str | None = None, name: str = "linear") -> str:
        if bias is None:
            return self("Gemm", h, float32(weight), *([] if plus is None else [plus]), transB=1)
        z = self("Gemm", h, float32(weight), float32(bias), transB=1)
        return z if plus is None else self("Add", z, plus)

    def conv(self, weight: Any, bias: Any, h: str, *, name: str = "conv") -> str:
        return self._convolved(weight, bias, h)

    def depthwise(self, weight: Any, bias: Any, h: str, *, name: str = "depthwise") -> str:
        return self._convolved(weight[:, None], bias, h, group=len(weight))

    def _convolved(self, weight: Any, bias: Any, h: str, **options: Any) -> str:
        kernel = list(weight.shape[2:])
        before, behind = zip(*padding(kernel), strict=True)
        biases = [] if bias is None else [float32(bias)]
        return self("Conv", h, float32(weight), *biases, kernel_shape=kernel, pads=[*before, *behind], **options)

    def pool(self, window: Sequence[int], h: str) -> str:
        return self("AveragePool", h, kernel_shape=list(window), strides=list(window))

    def channels_first(self, positions: int, has_channels: bool, h: str) -> str:
        if not has_channels:
            return self("Unsqueeze", h, np.array([1]))
        return self("Transpose", h, perm=[0, 1 + positions, *range(1, 1 + positions)])

    def mean(self, positions: int, h: str) -> str:
        return self("ReduceMean", h, axes=list(range(2, 2 + positions)), keepdims=0)

    def activate(self, activation: str, z: str) -> str:
        return ACTIVATIONS[activation].onnx(self, z)

    def add(self, a: str, b: str) -> str:
        return self("Add", a, b)

    def scale(self, factor: Any, z: str, *, name: str) -> str:
        return self("Mul", z, float32(factor))

    def mix(self, gate: str, new: str, old: str) -> str:
        return self("Add", self("Mul", gate, new), self("Mul", self("Sub", float32(1), gate), old))

    def merge_rows(self, gate: Any, rows: Sequence[int], width: int, new: str, old: str, *, positions: int = 0) -> str:
        gates, behind = np.zeros(width, np.float32), [1] * positions
        gates[list(rows)] = gate
        copied = self("Mul", old, (1 - gates).reshape(-1, *behind))
        if len(rows) == width:
            return self("Add", self("Mul", new, gates.reshape(-1, *behind)), copied)
        placed = np.diag(gates)[list(rows)]  # [rows, width]
        if positions:
            return self("Add", self.conv(placed.T.reshape(width, -1, *behind), None, new), copied)
        return self("Gemm", new, placed, copied)

    def split(self, z: str, sizes: Sequence[int]) -> list[str]:
        return self.several(len(sizes), "Split", z, np.array(sizes), axis=1)

    def concat(self, parts: Sequence[str]) -> str:
        return self("Concat", *parts, axis=1)

    def combine(self, shares: Any, values: Sequence[str], *, name: str) -> str:
        return self("Sum", *(self("Mul", value, share) for share, value in zip(float32(shares), values, strict=True)))

    def one_hot(self, places: np.ndarray, width: int, codes: str) -> str:
        place = self("Gather", np.asarray(places, np.int64), codes)
        return self("Cast", self("Equal", place, np.arange(width)), to=self.onnx.TensorProto.DOUBLE)

    def is_missing(self, x: str) -> str:
        return self("Cast", self._not_finite(x), to=self.onnx.TensorProto.DOUBLE)

    def fill(self, values: np.ndarray, x: str) -> str:
        return self("Where", self._not_finite(x), values, x)

    def standardize(self, mean: np.ndarray, scale: np.ndarray, x: str) -> str:
        # Constants are divided by a power of two, which changes no bit of the result: onnxruntime compares constants with 0 and
        # 1 in single precision, and would leave out the subtraction of a mean of 1e-60.
        unit = np.ldexp(1.0, np.frexp(scale)[1] - 1)
        return self("Div", self("Sub", self("Mul", x, 1 / unit), mean / unit), scale / unit)

    def limit(self, limit: float, z: str) -> str:
        bound = np.float64(limit)
        cut = self("Clip", z, -bound, bound)
        return self("Add", cut, self("Mul", self("Tanh", self("Div", self("Sub", z, cut), bound)), bound))

    def single(self, z: str) -> str:
        return self("Cast", z, to=self.onnx.TensorProto.FLOAT)

    def _not_finite(self, x: str) -> str:
        return self("Or", self("IsNaN", x), self("IsInf", x))

    def _constant(self, name: str, value: np.ndarray) -> str:
        if value.dtype.kind == "U":
            texts = [text.encode() for text in value.tolist()]
            tensor = self.onnx.helper.make_tensor(name, self.onnx.TensorProto.STRING, value.shape, texts)
        else:
            # ascontiguousarray would make a vector of a single number.
            tensor = self.onnx.numpy_helper.from_array(np.asarray(value, order="C"), name)
        self.constants.append(tensor)
        return name


def float32(values: Any) -> np.ndarray:
    return np.asarray(values, np.float32)
