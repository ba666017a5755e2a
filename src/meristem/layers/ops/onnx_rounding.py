"""Matrix products of an ONNX graph in eight bits, as pairs of QuantizeLinear and DequantizeLinear (QDQ).

    h → h · factor → Quantize, Dequantize → Gemm(·, Dequantize(integers), bias)       scale and zero from calibration rows

`RoundingOps` runs a network in NumPy as the graph will, and remembers how each product was rounded; `RoundedGraph` writes the
same products, in the same order. A factor for each unit, where units have unlike ranges, is divided out of the weights. Names
are numbers: in small files they would take as much as the weights do.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Self

import numpy as np

from meristem.layers.ops.c_rounding import rounded_weights
from meristem.layers.ops.numpy import NumpyOps
from meristem.layers.ops.onnx import Graph, float32

MOST, LEVELS = 127, 255
MARGIN = 0.05  # of a range, for rows that did not set it
UNLIKE = 2.0  # ranges, relative to the median one


@dataclass(frozen=True, eq=False)
class Rounded:
    """A product W h + b in eight bits."""

    factor: np.ndarray | None  # [in]
    scale: np.float32
    zero: np.int8
    integers: np.ndarray  # [out, in], int8
    steps: np.ndarray  # [out], float32: what 1 of a row's integers stands for
    bias: np.ndarray  # [out], float32

    @classmethod
    def of(cls, weight: Any, bias: Any, h: np.ndarray) -> Self:
        """Return a product of weights [out, in] in eight bits, given what it reads in calibration rows."""
        weight = np.asarray(weight, np.float64)
        low, high = np.minimum(h.min(0), 0.0), np.maximum(h.max(0), 0.0)
        widths = (1 + MARGIN) * np.maximum(high - low, 1e-3 * max(float((high - low).max(initial=0)), 1e-6))
        is_unlike = widths.max() > UNLIKE * np.median(widths)
        factor = (1 / widths).astype(np.float32) if is_unlike else None
        ends = np.stack([low, high]) * (1 if factor is None else factor)
        width = max((1 + MARGIN) * float(ends.max() - ends.min()), 1e-6)
        scale = np.float32(width / LEVELS)
        zero = np.int8(np.clip(np.rint(-MOST - 1 - ends.min() * (1 + MARGIN / 2) / scale), -MOST - 1, MOST))
        own = cls(factor, scale, zero, np.zeros(0), np.zeros(0), np.zeros(0))
        scaled = weight * scale / (1 if factor is None else factor)  # of integers
        steps = np.abs(scaled).max(1) / MOST
        steps = np.where(steps > 0, steps, 1.0)
        integers, left = rounded_weights(scaled / steps[:, None], own.quantized(h).astype(np.int64), MOST)
        offset = left * steps + (0 if bias is None else np.asarray(bias, np.float64))
        return cls(factor, scale, zero, integers.astype(np.int8), float32(steps / scale), float32(offset))

    def quantized(self, h: np.ndarray) -> np.ndarray:
        scaled = h if self.factor is None else h * self.factor
        return np.clip(np.rint(scaled / self.scale) + self.zero, -MOST - 1, MOST) - self.zero

    def __call__(self, h: np.ndarray) -> np.ndarray:
        weight = self.integers * self.steps[:, None]
        return np.asarray((self.quantized(h) * self.scale).astype(np.float32) @ weight.T + self.bias, np.float32)


class RoundingOps(NumpyOps):
    """The operations in NumPy with products in eight bits; the first `calibrated` rows set their ranges."""

    def __init__(self, calibrated: int):
        self.products, self.calibrated = list[Rounded](), calibrated

    def affine(self, weight: Any, bias: Any, h: np.ndarray, *, plus: Any = None, name: str = "linear") -> np.ndarray:
        self.products.append(Rounded.of(weight, bias, h[: self.calibrated]))
        z = self.products[-1](h)
        return z if plus is None else z + plus


class RoundedGraph(Graph):
    """A graph that takes its products from these, in their order."""

    def __init__(self, onnx: ModuleType, products: Iterator[Rounded]):
        super().__init__(onnx)
        self._products = products

    def name(self, operator: str) -> str:
        return f"{self.prefix}{len(self.nodes)}"

    def affine(self, weight: Any, bias: Any, h: str, *, plus: str | None = None, name: str = "linear") -> str:
        own = next(self._products)
        if own.factor is not None:
            h = self("Mul", h, own.factor)
        h = self("DequantizeLinear", self("QuantizeLinear", h, own.scale, own.zero), own.scale, own.zero)
        z = self("Gemm", h, self("DequantizeLinear", own.integers, own.steps, axis=0), own.bias, transB=1)
        return z if plus is None else self("Add", z, plus)
