"""The operations in integers: weights of 8 or 16 bits, symmetric in each row; values of as many bits; sums of 32.

    real = unit · (q − zero)          each number of a source has its own unit and zero, from its range in calibration rows
    q_out = clamp(((acc >> pre) · m + half) >> shift),  acc = b + Σ w q

A source is what is stored: the network's inputs, the activations, the products of gates. Everything else is a linear form of
sources, kept as a matrix: picking, mixing and adding cost nothing, they are multiplied into the weights that read the form; so
are units and zeros. A rectifier is the clamp: its range begins at 0. Another activation is a table with straight lines between
its points. Sums cannot overflow: the unit of a row's weights is as large as that takes. Which way a weight is rounded depends
on the rows (c_rounding.py).

The program computes, besides recording, what the C file will: `integers` of each source in the rows that it is given, equal to
the bit, so that the error is known before anything is compiled.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Self

import numpy as np

from meristem.layers.activation import ACTIVATIONS
from meristem.layers.ops.c import Column, CProgram, Value
from meristem.layers.ops.c_input_scale import InputScale, is_number, values
from meristem.layers.ops.c_rounding import rounded_weights

LARGEST = {8: 127, 16: 16383}  # of a value: of the 16-bit ones the difference of two fits 16 bits, too
WEIGHTS = {8: 127, 16: 32767}
POINTS = {8: 64, 16: 256}  # straight pieces of an activation
FRACTION = 7  # bits of the place within a piece
SUM_ROOM = 0.95 * 2**30  # for weights, and again for a bias
KEPT_BITS, FACTOR_BITS = 16, 14  # of a sum and of its factor, whose product then fits 31
OUTPUT, MOST_OUTPUT = 2**13, 2**15 - 1  # of outputs in integers: the largest in the rows, and of all
MARGIN = {8: 0.05, 16: 0.5}  # of a range, on either side, for rows that are not among those that set it
FEW, WIDEST = 80, 0.5  # such a margin is (FEW / rows)^1.5 where that is more: other rows lie beyond few ones more often
BYTE_STEPS = {8: 1, 16: 64}  # of pixels that are bytes: integers from one to the next, the middle being 0
LEAST_RANGE = 1e-3  # of a layer's widest
FINEST = {8: 2**12, 16: 2**17}  # steps of a sum in the unit of its result, at most
COARSE = 8  # steps of a sum in such a unit, at least


@dataclass(frozen=True, eq=False)
class Form:
    """Σ matrix · source + offset, [units]."""

    terms: Mapping[Value, np.ndarray]  # source → [units, its units]
    offset: np.ndarray  # [units]

    units = property(lambda self: len(self.offset))
    positions = ()

    def times(self, weight: np.ndarray, bias: Any = 0.0) -> "Form":
        return Form({source: weight @ matrix for source, matrix in self.terms.items()}, weight @ self.offset + bias)

    def plus(self, other: "Form") -> "Form":
        terms = dict(self.terms)
        for source, matrix in other.terms.items():
            terms[source] = terms[source] + matrix if source in terms else matrix
        return Form(terms, self.offset + other.offset)


@dataclass(frozen=True, eq=False)
class Source:
    """How a source's integers stand for numbers, and both in the rows."""

    unit: np.ndarray  # [units]
    zero: np.ndarray  # [units], integers
    real: np.ndarray  # [rows, units], of the float network
    integers: np.ndarray  # [rows, units]


class IntegerProgram(CProgram):
    """Steps, tables and sources; `x` are rows as the caller gives them, of which the first `calibrated` set the ranges."""

    def __init__(self, bits: int, x: np.ndarray, calibrated: int, needed: Any, *, is_float: bool = True):
        super().__init__(needed)
        self.is_float, self.scalings = is_float, dict[Column, InputScale]()
        self.bits, self.x, self.calibrated, self.most = bits, x, calibrated, LARGEST[bits]
        self.sources = dict[Value, Source]()
        self.simulated = np.zeros(0)  # the outputs in the rows, as the C file computes them

    def form(self, v: Any) -> Form:
        """Return the form itself, or that of inputs, which become a source where they are read first."""
        if isinstance(v, Form):
            return v
        self.requests.append(v)
        columns = v if self.needed is None else self.needed
        out = self.read(columns, Value(len(columns)))
        if out not in self.sources:
            self._add_inputs(columns, out, self.x)
        return Form({out: np.eye(out.units)[[columns.index(column) for column in v]]}, np.zeros(len(v)))

    def _add_inputs(self, columns: Sequence[Column], out: Value, x: np.ndarray) -> None:
        """A number's range is that of the rows x, no further than what is read; of two values, the range is the two."""
        real, integers, ends = [], [], []
        for column in columns:
            z = values(column, x)
            low, high = column.scaled(0), column.scaled(1)
            q = np.where(z == high, self.most, -self.most)
            if is_number(column):
                low, high = np.clip(self.range(z), -2 * column.limit, 2 * column.limit)
                scaling = InputScale.of(column, low, high, x[:, column.place], self.most, self.is_float)
                self.scalings[column] = scaling
                q, (low, high) = scaling(x[:, column.place]), scaling.ends(column)
            real.append(z)
            integers.append(q)
            ends.append((low, high))
        low, high = np.array(ends).T
        unit = (high - low) / (2 * self.most)
        self.sources[out] = Source(unit, -self.most - low / unit, np.stack(real, 1), np.stack(integers, 1))

    def range(self, real: np.ndarray) -> Any:
        """Return the lowest and the highest number that is expected, given those in the rows, or at their positions."""
        expected = real[: self.calibrated * (len(real) // len(self.x))]
        low, high = expected.min(0), expected.max(0)
        share = max(MARGIN[self.bits], min(WIDEST, (FEW / len(expected)) ** 1.5))
        margin = share * (high - low)
        return low - margin, high + margin

    def grid(self, low: np.ndarray, high: np.ndarray, least: Any = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """Return unit and zero, so that low … high are −most … most; a unit is no less than the least."""
        width = np.maximum(high - low, max(1e-6, LEAST_RANGE * float((high - low).max(initial=0))))
        width = np.maximum(width, 2 * self.most * least)
        unit = width / (2 * self.most)
        return unit, -self.most - np.rint(low / unit)

    def coarsest(self, form: Any) -> np.ndarray:
        """Return the least unit of a form [units] that rounded weights do justice to; dead units have no range of their own."""
        steps = [np.abs(matrix * self.sources[v].unit).max(1) / WEIGHTS[self.bits] for v, matrix in form.terms.items()]
        return np.maximum(COARSE * np.max(steps, axis=0), self.least_unit(form))

    def least_unit(self, form: Any) -> np.ndarray:
        """Return the least unit of a form [units] whose sums, of 32 bits, have a factor: of 16 bits it is below a quarter."""
        sizes = [np.abs(matrix * self.sources[v].unit).sum(1) for v, matrix in form.terms.items()]
        return COARSE * np.sum(sizes, axis=0) * self.most / SUM_ROOM

    def real(self, form: Any) -> np.ndarray:
        """Return the form in the rows [rows, units], as the float network has it."""
        return sum((self.sources[v].real @ matrix.T for v, matrix in form.terms.items()), form.offset)

    def sums(self, form: Any, more: Any = 0.0, unit: Any = None, span: int = 0) -> "Sums":
        """Return integer weights of the form plus `more` [units], and, with the `unit` [units] of a result, factors of sums.

        Where a factor is rounded, it is rounded up, and the unit of the row's weights with it: so rounding costs nothing. A
        bias that leaves a result of up to `span` units at its end, whatever the inputs, is cut: all rows share a sum's bits.
        """
        used = [(v, m) for v, m in form.terms.items() if m.any()] or list(form.terms.items())[:1]
        matrix = np.concatenate([m for _, m in used], 1)
        units, zeros = (np.concatenate([getattr(self.sources[v], name) for v, _ in used]) for name in ("unit", "zero"))
        weight, bias = matrix * units, form.offset - matrix @ (units * zeros) + more
        size, room, factors = np.abs(weight), SUM_ROOM / self.most, None
        if unit is not None:
            most = size.sum(1) * self.most + span * unit
            bias = np.clip(bias, -most, most)
        row = np.max([size.max(1) / WEIGHTS[self.bits], size.sum(1) / room, np.abs(bias) / SUM_ROOM], axis=0)
        row = np.where(row > 0, row, 1.0) if unit is None else np.maximum(row, unit / FINEST[self.bits])
        if unit is not None:
            bound = (np.rint(size / row[:, None]).sum(1) * self.most + np.abs(np.rint(bias / row))).max()
            factors = Factors.of(row / unit, int(bound))
            row = factors.m * unit / 2.0 ** (factors.pre + factors.shift)
        rows = np.concatenate([self.sources[v].integers for v, _ in used], 1)
        integers, left = rounded_weights(weight / row[:, None], rows[: self.calibrated], WEIGHTS[self.bits])
        biases = np.rint(bias / row + left).astype(np.int64) + (0 if factors is None else (1 << factors.pre) >> 1)
        assert (np.abs(integers).sum(1) * self.most + np.abs(biases)).max(initial=0) < 2**31
        reads = tuple(v for v, _ in used)
        x = reads[0] if len(reads) == 1 else self._view(reads, Value(sum(v.units for v in reads)))
        return Sums(x, integers, biases, row, rows @ integers.T + biases, factors)

    def dense(self, function: str, sums: "Sums", further: str, out: Value) -> Value:
        """Record a call of a function that sums up, with tables, then what it needs further."""
        tables = f"{self.table('W', sums.weight, 'VALUE')}, {self.table('B', sums.bias, 'SUM')}"
        if sums.factors is not None:
            tables += f", {self.table('M', sums.factors.m, 'FACTOR')}, {sums.factors.pre}, {sums.factors.shift}"
        call = f"{sums.x.units}, {out.units}, {tables}{further}, {{0}}, {{y}}"
        return self.call(function, call, [sums.x], out, products=sums.weight.size)

    def store(self, form: Any, activation: str | None = None, *, with_zero: bool = False) -> Any:
        """Return σ(form), or the form itself, as a source."""
        z, n = self.real(form), form.units
        if activation not in (None, "relu"):
            return self._curve(form, z, str(activation))
        real = np.maximum(z, 0) if activation else z
        low, high = self.range(real)
        if activation or with_zero:
            low, high = (np.zeros(n) if activation else np.minimum(low, 0)), np.maximum(high, 0)
        unit, zero = self.grid(low, high, self.coarsest(form))
        sums = self.sums(form, unit * zero, unit, 2 * self.most)
        out = self.dense("dense", sums, "", Value(n, form.positions))
        return self._source(out, unit, zero, real, sums.requantized(-self.most, self.most))

    def _curve(self, form: Any, z: np.ndarray, activation: str) -> Any:
        function, pieces = ACTIVATIONS[activation].numpy, POINTS[self.bits]
        lowest, highest = self.range(z)
        low, high = float(lowest.min()) - 1e-3, float(highest.max()) + 1e-3
        high = max(high, low + float(self.least_unit(form).max()) * (pieces << FRACTION))
        points = function(np.linspace(low, high, pieces + 1))
        ends = np.array([min(points.min(), 0.0)]), np.array([max(points.max(), 0.0)])
        unit, zero = (np.full(form.units, v[0]) for v in self.grid(*ends))
        curve = np.clip(np.rint(points / unit[0] + zero[0]), -self.most, self.most).astype(np.int64)
        step = (high - low) / (pieces << FRACTION)
        last = (pieces << FRACTION) - 1
        sums = self.sums(form, -low, np.full(form.units, step), last)
        v = sums.requantized(0, last)
        i, rest = v >> FRACTION, v & ((1 << FRACTION) - 1)
        q = curve[i] + (((curve[i + 1] - curve[i]) * rest + (1 << (FRACTION - 1))) >> FRACTION)
        out = self.dense("dense_curve", sums, f", {last}, {self.table('C', curve, 'VALUE')}", Value(form.units, form.positions))
        return self._source(out, unit, zero, function(z.copy()), q)

    def _source(self, out: Value, unit: np.ndarray, zero: np.ndarray, real: np.ndarray, integers: np.ndarray) -> Any:
        self.sources[out] = Source(unit, zero, real, integers)
        return Form({out: np.eye(out.units)}, np.zeros(out.units))

    def pick(self, rows: Sequence[int], h: Any) -> Any:
        if isinstance(h, tuple):
            return super().pick(rows, h)
        return Form({source: matrix[list(rows)] for source, matrix in h.terms.items()}, h.offset[list(rows)])

    def concat(self, parts: Sequence[Any]) -> Any:
        if all(isinstance(part, tuple) for part in parts):
            return super().concat(parts)
        forms, total = [self.form(part) for part in parts], Form({}, np.zeros(0))
        starts = np.cumsum([0, *(form.units for form in forms)])
        total = Form({}, np.zeros(starts[-1]))
        for start, form in zip(starts, forms, strict=False):
            total = total.plus(form.times(np.eye(starts[-1])[:, start : start + form.units]))
        return total

    def affine(self, weight: Any, bias: Any, h: Any, *, plus: Any = None, name: str = "linear") -> Form:
        z = self.form(h).times(np.asarray(weight, float), 0.0 if bias is None else np.asarray(bias, float))
        return z if plus is None else z.plus(self.form(plus))

    def activate(self, activation: str, z: Any) -> Any:
        return self.store(self.form(z), activation)

    def add(self, a: Any, b: Any) -> Form:
        return self.form(a).plus(self.form(b))

    def scale(self, factor: Any, z: Any, *, name: str) -> Form:
        return self.form(z).times(np.diag(np.asarray(factor, float)))

    def mix(self, gate: Any, new: Any, old: Any) -> Form:
        """Old + g (new − old): the product is a source."""
        g, old = self.form(gate), self.form(old)
        d = self.store(self.form(new).plus(old.times(-np.eye(old.units))), with_zero=True)
        if len(g.terms) != 1 or g.offset.any() or not np.array_equal(next(iter(g.terms.values())), np.eye(g.units)):
            g = self.store(g, with_zero=True)
        (gates, differences), n = (next(iter(form.terms)) for form in (g, d)), old.units
        a, b = self.sources[gates], self.sources[differences]
        real = a.real * b.real
        low, high = self.range(real)
        unit, zero = self.grid(np.minimum(low, 0), np.maximum(high, 0))
        bound = 4 * self.most**2
        factors = Factors.of(a.unit * b.unit / unit, 2 * bound)
        unit = a.unit * b.unit * 2.0 ** (factors.pre + factors.shift) / factors.m  # as the factors are, rounded
        zero = np.clip(zero, -bound * unit, bound * unit)
        biases = np.rint(zero * unit / (a.unit * b.unit)).astype(np.int64)
        total = (a.integers - a.zero.astype(np.int64)) * (b.integers - b.zero.astype(np.int64)) + biases
        q = factors(total, -self.most, self.most)
        out, zeros = Value(n), [self.table("Z", source.zero.astype(np.int64), "SHORT") for source in (a, b)]
        tables = f"{zeros[0]}, {zeros[1]}, {self.table('B', biases, 'SUM')}, {self.table('M', factors.m, 'FACTOR')}"
        call = f"{n}, {tables}, {factors.pre}, {factors.shift}, {{0}}, {{1}}, {{y}}"
        self.call("product", call, [gates, differences], out, products=2 * n)
        return old.plus(self._source(out, unit, zero, real, q))

    def merge_rows(self, gate: Any, rows: Sequence[int], width: int, new: Any, old: Any, *, positions: int = 0) -> Form:
        places, share = np.eye(width)[:, list(rows)], np.zeros(width)
        share[list(rows)] = gate
        return self.form(old).times(np.diag(1 - share)).plus(self.form(new).times(places * np.asarray(gate, float)))

    def combine(self, shares: Any, parts: Sequence[Any], *, name: str) -> Form:
        forms = [self.form(part) for part in parts]
        scaled = [form.times(float(share) * np.eye(form.units)) for share, form in zip(shares, forms, strict=True)]
        return reduce(Form.plus, scaled)

    def outputs(self, form: Form) -> Value:
        """Return the value of the last form, as float or as integers of one `unit`."""
        out, n, z = Value(form.units), form.units, self.real(form)
        if self.is_float:
            sums = self.sums(form)
            self.simulated = sums.total * sums.row
            return self.dense("dense_real", sums, f", {self.table('SCALE', sums.row, 'REAL')}", out)
        self.unit = max(float(np.abs(z[: self.calibrated]).max()) / OUTPUT, 1e-6 / OUTPUT, float(self.least_unit(form).max()))
        sums = self.sums(form, 0.0, np.full(n, self.unit), 2 * MOST_OUTPUT)
        self.simulated = sums.requantized(-MOST_OUTPUT, MOST_OUTPUT) * self.unit
        return self.dense("dense_sums", sums, "", out)


@dataclass(frozen=True, eq=False)
class Factors:
    """By which sums are multiplied: ((sum >> pre) · m + half) >> shift."""

    m: np.ndarray
    pre: int
    shift: int

    @classmethod
    def of(cls, factor: np.ndarray, bound: int) -> Self:
        """Return factors that are no less, for sums within the bound."""
        pre = max(0, bound.bit_length() - KEPT_BITS)
        shift = int(np.clip(np.floor(FACTOR_BITS - np.log2(factor.max() * 2.0**pre)), 1, 29))
        return cls(np.clip(np.ceil(factor * 2.0 ** (pre + shift)), 1, 2**FACTOR_BITS).astype(np.int64), pre, shift)

    @classmethod
    def wide(cls, factor: np.ndarray) -> Self:
        """Return factors that are no less, for products of 64 bits; the largest has all its bits."""
        shift = int(np.clip(np.floor(FACTOR_BITS - np.log2(factor.max())), 1, 45))
        return cls(np.clip(np.ceil(factor * 2.0**shift), 1, 2**FACTOR_BITS).astype(np.int64), 0, shift)

    def __call__(self, total: np.ndarray, low: int, high: int) -> np.ndarray:
        return np.clip(((total >> self.pre) * self.m + (1 << (self.shift - 1))) >> self.shift, low, high)


@dataclass(frozen=True, eq=False)
class Sums:
    """What a form is in integers: weights [units, in] and biases, the unit of each row, and the sums in the rows."""

    x: Value
    weight: np.ndarray
    bias: np.ndarray
    row: np.ndarray
    total: np.ndarray
    factors: Factors | None

    def requantized(self, low: int, high: int) -> np.ndarray:
        assert self.factors is not None
        return self.factors(self.total, low, high)
