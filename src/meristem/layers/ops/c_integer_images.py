"""The operations in integers on values at positions, such as images; those of c_integer.py for all others.

    Map     Σ weight · source at neighboring positions + bias + factor · another source at the same position, not yet computed
    Value   a source: units, each with a unit and a zero of its own, at positions

Nothing is a matrix here: a kernel beyond the edge reads zeros, so what a map reads must be stored, with 0 among its integers.
A map is computed where it is read: with its activation, the sum of a block and its input among its sums, in place of the input.
Sources' numbers are [rows · positions, units]. Sums are multiplied in 64 bits: of many products few reach their bound, and
a common shift to 16 bits would leave too little of the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from typing import Any

import numpy as np

from meristem.layers.ops.c import Column, Image, Value, flat_sizes
from meristem.layers.ops.c_integer import BYTE_STEPS, SUM_ROOM, WEIGHTS, Factors, Form, IntegerProgram, Source, Sums
from meristem.layers.ops.numpy import NUMPY

AT_ONCE = 256  # rows


@dataclass(frozen=True, eq=False)
class Map:
    source: Value
    weight: np.ndarray  # [units, in, rows, columns]; `is_depthwise`: in is 1, and unit i reads unit i
    bias: np.ndarray  # [units]
    is_depthwise: bool = False
    skip: Value | None = None
    factor: np.ndarray | None = None  # [units], of the skip

    units = property(lambda self: len(self.bias))
    positions = property(lambda self: self.source.positions)

    def times(self, factor: np.ndarray) -> "Map":
        weight, skipped = self.weight * factor[:, None, None, None], None if self.factor is None else factor * self.factor
        return replace(self, weight=weight, bias=factor * self.bias, factor=skipped)

    def sums(self, weight: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return the sums [rows · positions, units] of kernels over values [rows · positions, in]; exact for integers."""
        images = np.moveaxis(values.reshape(-1, *flat_sizes(self.positions), values.shape[1]), -1, 1)
        parts = []
        for first in range(0, len(images), AT_ONCE):
            part = images[first : first + AT_ONCE].astype(np.float64)
            part = NUMPY.depthwise(weight[:, 0], None, part) if self.is_depthwise else NUMPY.conv(weight, None, part)
            parts.append(np.moveaxis(part, 1, -1).reshape(-1, self.units))
        return np.concatenate(parts)

    def of_inputs(self, values: np.ndarray) -> np.ndarray:
        """Return values [in] of the source so that they multiply weights."""
        return values[:, None, None, None] if self.is_depthwise else values[:, None, None]


@dataclass(frozen=True, eq=False)
class MapSums(Sums):
    """Those of a map: what is read beyond the edge [in], and the integer factors [units] of its skip."""

    map: Map
    edge: np.ndarray
    factor: np.ndarray


def is_on_positions(h: Any) -> bool:
    return isinstance(h, Map | Value | Image)


class ImageIntegerProgram(IntegerProgram):
    """`is_bytes`: x is uint8_t."""

    def __init__(
        self, bits: int, x: np.ndarray, calibrated: int, needed: Any, *, is_float: bool = True, is_bytes: bool = False
    ):
        super().__init__(bits, x, calibrated, needed, is_float=is_float)
        self.is_bytes, self._stored = is_bytes, dict[Map, Value]()

    def form(self, v: Any) -> Form:
        if is_on_positions(v):
            raise ValueError("A network whose outputs are on positions has no C form in integers; leave out bits.")
        return super().form(v)

    def stored(self, h: Any) -> Value:
        """Return the value as a source."""
        if isinstance(h, Map):
            if h not in self._stored:
                self._stored[h] = self.store(h, with_zero=True)
            return self._stored[h]
        if h is self.argument and h is not None:
            h = Image(tuple(map(Column, range(h.units))), h.positions, is_channels_last=False)
        if isinstance(h, Image):
            out = self.read(h, Value(len(h.columns), h.positions))
            if out not in self.sources:
                self._add_pixels(h, out)
            return out
        assert h in self.sources
        value: Value = h
        return value

    def _add_pixels(self, image: Image, out: Value) -> None:
        n, p = len(image.columns), prod(image.positions)
        shape = (p, n) if image.is_channels_last else (n, p)
        images = self.x.reshape(-1, *shape)
        x: np.ndarray = (images if image.is_channels_last else np.moveaxis(images, 1, 2)).reshape(-1, n)
        if not self.is_bytes:
            self._add_inputs(image.columns, out, x)
            return
        mean, scale = (np.array([getattr(column, name) for column in image.columns]) for name in ("mean", "scale"))
        step = BYTE_STEPS[self.bits]
        self.sources[out] = Source(
            1 / (scale * step), (mean - 128) * step, (x - mean) / scale, (x.astype(np.int64) - 128) * step
        )

    def as_map(self, h: Any) -> Map:
        source = None if isinstance(h, Map) else self.stored(h)
        return h if source is None else Map(source, np.ones((source.units, 1, 1, 1)), np.zeros(source.units), is_depthwise=True)

    def real(self, form: Any) -> np.ndarray:
        if not isinstance(form, Map):
            return super().real(form)
        z = form.sums(form.weight, self.sources[form.source].real) + form.bias
        return z if form.skip is None else z + form.factor * self.sources[form.skip].real

    def coarsest(self, form: Any) -> np.ndarray:
        return np.zeros(form.units) if isinstance(form, Map) else super().coarsest(form)

    def least_unit(self, form: Any) -> np.ndarray:
        return np.zeros(form.units) if isinstance(form, Map) else super().least_unit(form)

    def sums(self, form: Any, more: Any = 0.0, unit: Any = None, span: int = 0) -> Sums:
        if not isinstance(form, Map):
            return super().sums(form, more, unit, span)
        source, n = self.sources[form.source], form.units
        edge = np.clip(np.rint(source.zero), -self.most - 1, self.most)
        weight = form.weight * form.of_inputs(source.unit)
        bias = form.bias + more + (weight * form.of_inputs(edge - source.zero)).sum((1, 2, 3))
        skipped, others = np.zeros(n), np.zeros((1, n), np.int64)
        if form.skip is not None:
            skip = self.sources[form.skip]
            skipped, others = form.factor * skip.unit, skip.integers
            bias = bias - skipped * skip.zero
        size, farthest = np.abs(weight), 2 * self.most + 1
        sums = size.sum((1, 2, 3)) * farthest + np.abs(skipped) * (self.most + 1)
        row = np.max([size.max((1, 2, 3)) / WEIGHTS[self.bits], sums / SUM_ROOM, np.abs(bias) / SUM_ROOM], axis=0)
        factors = Factors.wide(np.where(row > 0, row, unit) / unit)
        row = factors.m * unit / 2.0**factors.shift
        integers, biases, factor = (
            np.rint(real / row.reshape(-1, *[1] * (real.ndim - 1))).astype(np.int64) for real in (weight, bias, skipped)
        )
        most = np.abs(integers).sum((1, 2, 3)) * farthest + np.abs(factor) * (self.most + 1) + np.abs(biases)
        assert most.max(initial=0) < 2**31
        total = form.sums(integers, source.integers - edge).astype(np.int64) + biases + factor * others
        return MapSums(form.source, integers, biases, row, total, factors, form, edge.astype(np.int64), factor)

    def dense(self, function: str, sums: Sums, further: str, out: Value) -> Value:
        if not isinstance(sums, MapSums):
            return super().dense(function, sums, further, out)
        assert sums.factors is not None
        form, (rows, columns), (height, width) = sums.map, sums.weight.shape[2:], flat_sizes(out.positions)
        n_in, step = (1, 1) if form.is_depthwise else (form.source.units, 0)
        weights = self.table("W", sums.weight.reshape(out.units, -1), "VALUE", note="the kernels of a unit in each row")
        tables = f"{weights}, {self.table('Z', sums.edge, 'VALUE')}, {self.table('B', sums.bias, 'SUM')}"
        tables += f", {self.table('M', sums.factors.m, 'FACTOR')}, {sums.factors.shift}{further or ', 0, 0'}"
        call = f"{n_in}, {out.units}, {step}, {height}, {width}, {rows}, {columns}, {tables}"
        products = sums.weight.size * prod(out.positions)
        if form.skip is None:
            return self.call("conv", f"{call}, 0, {{0}}, 0, {{y}}", [form.source], out, products=products)
        call, reads = f"{call}, {self.table('F', sums.factor, 'SUM')}, {{0}}, {{1}}, {{y}}", [form.source, form.skip]
        return self.call("conv", call, reads, out, 1, products + out.size)

    def _source(self, out: Value, unit: np.ndarray, zero: np.ndarray, real: np.ndarray, integers: np.ndarray) -> Any:
        form = super()._source(out, unit, zero, real, integers)
        if not out.positions:
            return form
        self.sources[out] = Source(unit, zero, real.astype(np.float32), integers.astype(np.int16))
        return out

    def conv(self, weight: Any, bias: Any, h: Any, *, name: str = "conv") -> Map:
        n_out, n_in, *kernel = weight.shape
        weight = np.asarray(weight, float).reshape(n_out, n_in, *flat_sizes(kernel))
        return Map(self.stored(h), weight, np.zeros(n_out) if bias is None else np.asarray(bias, float))

    def depthwise(self, weight: Any, bias: Any, h: Any, *, name: str = "depthwise") -> Any:
        n, *kernel = weight.shape
        if isinstance(h, Image) and prod(kernel) == 1:
            return super().depthwise(weight, bias, h)
        weight = np.asarray(weight, float).reshape(n, 1, *flat_sizes(kernel))
        return Map(self.stored(h), weight, np.zeros(n) if bias is None else np.asarray(bias, float), is_depthwise=True)

    def activate(self, activation: str, z: Any) -> Any:
        return self.store(self.as_map(z), activation) if is_on_positions(z) else super().activate(activation, z)

    def add(self, a: Any, b: Any) -> Any:
        if not is_on_positions(a):
            return super().add(a, b)
        if isinstance(b, Map) and b.skip is None:
            a, b = b, a
        if not isinstance(a, Map) or a.skip is not None:
            a = self.as_map(self.stored(a))
        return replace(a, skip=self.stored(b), factor=np.ones(a.units))

    def scale(self, factor: Any, z: Any, *, name: str) -> Any:
        return self.as_map(z).times(np.asarray(factor, float)) if is_on_positions(z) else super().scale(factor, z, name=name)

    def combine(self, shares: Any, parts: Sequence[Any], *, name: str) -> Any:
        if not is_on_positions(parts[0]):
            return super().combine(shares, parts, name=name)
        scaled = (self.as_map(part).times(np.full(part.units, float(share))) for share, part in zip(shares, parts, strict=True))
        return reduce(self.add, scaled)

    def merge_rows(self, gate: Any, rows: Sequence[int], width: int, new: Any, old: Any, *, positions: int = 0) -> Any:
        if not positions:
            return super().merge_rows(gate, rows, width, new, old)
        places, share = np.eye(width)[:, list(rows)] * np.asarray(gate, float), np.zeros(width)
        share[list(rows)] = gate
        is_full = len(rows) == width
        weight = (share[:, None] if is_full else places)[..., None, None]
        skip = self.stored(old)
        return Map(self.stored(new), weight, np.zeros(width), is_full, skip, 1 - share)

    def pick(self, rows: Sequence[int], h: Any) -> Any:
        if not is_on_positions(h):
            return super().pick(rows, h)
        source = self.stored(h)
        return Map(source, np.eye(source.units)[list(rows)][..., None, None], np.zeros(len(rows)))

    def pool(self, window: Sequence[int], h: Any) -> Value:
        """The mean of integers has their unit and zero; it is rounded."""
        h = self.stored(h)
        out, source, shift = super().pool(window, h), self.sources[h], self.most + 1

        def means(values: np.ndarray) -> np.ndarray:
            images = np.moveaxis(values.reshape(-1, *h.positions, h.units), -1, 1)
            return np.moveaxis(NUMPY.pool(window, images), 1, -1).reshape(-1, h.units)

        size = prod(window)
        total = np.rint(means(source.integers.astype(np.float64) + shift) * size).astype(np.int64)
        self.sources[out] = Source(source.unit, source.zero, means(source.real), (total + size // 2) // size - shift)
        return out

    def mean(self, positions: int, h: Any) -> Form:
        """The mean over all positions, in a unit that its factor is exact for."""
        h = self.stored(h)
        if len(h.positions) != positions:
            raise ValueError("A mean over some positions has no C form in integers; leave out bits.")
        source, p = self.sources[h], prod(h.positions)
        real, total = (values.reshape(-1, p, h.units).sum(1) for values in (source.real, source.integers.astype(np.int64)))
        real = real / p
        unit, zero = self.grid(*self.range(real))
        factors = Factors.wide(source.unit / p / unit)
        unit = source.unit / p * 2.0**factors.shift / factors.m
        shift = zero - source.unit * source.zero / unit  # of the result, for sums of 0
        biases = np.rint(shift * unit * p / source.unit).astype(np.int64)
        zero = (source.unit * source.zero + biases * source.unit / p) / unit
        tables = f"{self.table('B', biases, 'SUM')}, {self.table('M', factors.m, 'FACTOR')}, {factors.shift}"
        out = self.call("average", f"{h.units}, {p}, {tables}, {{0}}, {{y}}", [h], Value(h.units), 0)
        form: Form = self._source(out, unit, zero, real, factors(total + biases, -self.most, self.most))
        return form
