"""The operations as calls of small C functions, one sample at a time; the text of the functions is in export/c_functions.py.

    Column     an input of the network before it is computed: which x it reads, and how; chosen and scaled as a record alone
    Image      the pixels of an image before they are computed: which x each channel reads, and how
    Value      numbers that a call writes: units × positions of them, one position after the other
    Step       a call: "dense(4, 3, W1, {0}, {y})", {k} being a pointer to the k-th value that it reads, {y} to its result
    View       a value that lies in another one, or is made of several that may lie side by side

What stands before the first layer is fused: all of it is one loop over the columns. Which values share memory is decided later
(export/c_storage.py), so steps only say which of the values that they read they can write over.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from meristem.layers.ops.operations import InputOps, padding

INPUTS = "inputs"  # the step that computes them, in lines of its own (export/c_inputs.py)


@dataclass(frozen=True)
class Column:
    """An input of the network: the number x[place]; or 1 for some codes of a category in x[place], or where it is missing."""

    place: int
    codes: tuple[int, ...] | None = None  # of the category, for which the input is 1; None: a number, or a gap
    n_codes: int = 0  # codes from here on are unseen
    is_gap: bool = False
    fill: float | None = None
    mean: float = 0.0
    scale: float = 1.0
    limit: float = np.inf

    @property
    def if_missing(self) -> float:
        """The number that a missing one is read as."""
        return self.mean if self.fill is None else self.fill

    def scaled(self, value: float) -> float:
        """Return what the network reads where the number is this one."""
        z = (value - self.mean) / self.scale
        cut = min(max(z, -self.limit), self.limit)
        return cut + self.limit * np.tanh((z - cut) / self.limit) if np.isfinite(self.limit) else z


@dataclass(frozen=True)
class Image:
    """Channels at positions: number k of channel i is x[k · channels + i], or x[i · positions + k]; `columns[i]` says how."""

    columns: tuple[Column, ...]
    positions: tuple[int, ...]
    is_channels_last: bool = True


@dataclass(frozen=True, eq=False)
class Value:
    units: int
    positions: tuple[int, ...] = ()

    size = property(lambda self: self.units * prod(self.positions))


@dataclass(frozen=True, eq=False)
class Step:
    call: str
    reads: tuple[Value, ...]
    out: Value
    over: int | None = None  # which of `reads` is overwritten by the result; a copy of it, where it is read later
    products: int = 0
    note: str = ""


@dataclass(frozen=True, eq=False)
class View:
    """`out` is the numbers of `reads` from `start` on; of several, all of theirs, one after the other."""

    reads: tuple[Value, ...]
    out: Value
    start: int = 0


@dataclass(frozen=True, eq=False)
class CTable:
    """Constants in flash, in the type of C that holds them."""

    name: str
    values: np.ndarray
    kind: str
    note: str = ""


Inputs = tuple[Column, ...]
V = Value | Inputs | Image


class CProgram(InputOps[Any]):
    """Steps and tables, as they come; `needed` are the inputs to be computed, those of all `requests` of another run."""

    def __init__(self, needed: Inputs | None = None):
        self.steps, self.tables = list[Step | View](), list[CTable]()
        self.repeated = list[CTable]()  # tables equal to another one, which other numbers might not be
        self.requests, self.needed, self.note = list[Inputs](), needed, ""  # a note on the steps that follow
        self.unit = 1.0  # of the outputs
        self.argument: Value | None = None  # the caller's array, where layers read it as it is
        self.computed = dict[Inputs | Image, Value]()
        self._starts = dict[Value, list[Step | View]]()  # of convolutions without a bias: the steps that compute them

    def table(self, letter: str, values: Any, kind: str = "WEIGHT", note: str = "") -> str:
        """Return the name of a table with these values; of equal ones there is one."""
        new = CTable(f"{letter}{len(self.tables)}", np.asarray(values), kind, note)
        for table in self.tables:
            if table.kind == kind and np.array_equal(table.values, new.values):
                self.repeated.append(new)
                return table.name
        self.tables.append(new)
        return new.name

    def call(
        self, function: str, call: str, reads: Sequence[V], out: Value, over: int | None = None, products: int = 0
    ) -> Value:
        values = tuple(map(self.value, reads))
        self.steps.append(Step(f"{function}({call});", values, out, over, products, self.note))
        return out

    def value(self, v: V) -> Value:
        """Return the value itself, or that of inputs, computed where they are read first."""
        if isinstance(v, Value):
            return v
        if isinstance(v, Image):
            return self.read(v, Value(len(v.columns), v.positions))
        self.requests.append(v)
        columns = v if self.needed is None else self.needed
        out = self.read(columns, Value(len(columns)))
        return out if columns == v else self._pick([columns.index(column) for column in v], out)

    def read(self, inputs: Inputs | Image, out: Value) -> Value:
        """Return the value of these inputs, which are computed once."""
        if inputs not in self.computed:
            self.computed[inputs] = out
            self.steps.append(Step(INPUTS, (), out, note="inputs"))
        return self.computed[inputs]

    def pick(self, rows: Sequence[int], h: V) -> V:
        return tuple(h[row] for row in rows) if isinstance(h, tuple) else self._pick(rows, self.value(h))

    def _pick(self, rows: Sequence[int], h: Value) -> Value:
        p, out = prod(h.positions), Value(len(rows), h.positions)
        if list(rows) == list(range(rows[0], rows[0] + len(rows))):
            return self._view((h,), out, rows[0] * p)
        places = self.table("R", rows, "INDEX")
        return self.call("pick", f"{len(rows)}, {p}, {places}, {{0}}, {{y}}", [h], out)

    def _view(self, reads: tuple[Value, ...], out: Value, start: int = 0) -> Value:
        self.steps.append(View(reads, out, start))
        return out

    def split(self, z: Any, sizes: Sequence[int]) -> list[Any]:
        starts = np.cumsum([0, *sizes])
        return [self.pick(range(starts[k], starts[k] + n), z) for k, n in enumerate(sizes)]

    def concat(self, parts: Sequence[V]) -> V:
        if all(isinstance(part, tuple) for part in parts):
            return tuple(column for part in parts for column in part)  # type: ignore[union-attr]
        values = tuple(map(self.value, parts))
        return self._view(values, Value(sum(value.units for value in values), values[0].positions))

    def affine(self, weight: Any, bias: Any, h: V, *, plus: V | None = None, name: str = "linear") -> Any:
        n_out, n_in = weight.shape
        out, size, products = Value(n_out), f"{n_in}, {n_out}", n_in * n_out
        if plus is None:
            zeros = np.zeros(n_out, np.asarray(weight).dtype)
            rows = self.table("W", np.vstack([zeros if bias is None else bias, np.transpose(weight)]), note="bias first")
            return self.call("dense", f"{size}, {rows}, {{0}}, {{y}}", [h], out, products=products)
        rows = self.table("W", np.transpose(weight), note="no bias")
        z = self.call("add_dense", f"{size}, {rows}, {{0}}, {{y}}", [h, plus], out, 1, products)
        return z if bias is None else self.add(z, self._constant(bias))

    def _constant(self, values: Any) -> Value:
        return self.call("load", f"{len(values)}, 1, {self.table('B', values)}, {{y}}", [], Value(len(values)))

    def conv(self, weight: Any, bias: Any, h: V, *, name: str = "conv") -> Any:
        n_out, n_in, *kernel = weight.shape
        return self._convolved("add_conv", f"{n_in}, {n_out}", kernel, weight, bias, self.value(h))

    def depthwise(self, weight: Any, bias: Any, h: V, *, name: str = "depthwise") -> V:
        n, *kernel = weight.shape
        if isinstance(h, Image) and prod(kernel) == 1 and (weight > 0).all():
            return scaled_image(h, np.ravel(weight), bias)
        return self._convolved("add_depthwise", f"{n}", kernel, weight, bias, self.value(h))

    def _convolved(self, function: str, sizes: str, kernel: Sequence[int], weight: Any, bias: Any, h: Value) -> Value:
        (rows, columns), (height, width) = flat_sizes(kernel), flat_sizes(h.positions)
        n_out, out = len(weight), Value(len(weight), h.positions)
        sizes += f", {height}, {width}, {rows}, {columns}, {rows // 2}, {columns // 2}"
        assert padding(kernel) == [(n // 2, (n - 1) // 2) for n in kernel]
        if bias is None:
            start = self.call("clear", f"{out.size}, {{y}}", [], out)
        else:
            start = self.call("load", f"{n_out}, {prod(h.positions)}, {self.table('B', bias)}, {{y}}", [], out)
        taps = self.table("W", np.reshape(weight, (n_out, -1)), note="the kernels of a unit in each row")
        products = weight.size * prod(h.positions)
        out = self.call(function, f"{sizes}, {taps}, {{0}}, {{y}}", [h, start], Value(n_out, h.positions), 1, products)
        if bias is None:
            self._starts[out] = self.steps[-2:]
        return out

    def pool(self, window: Sequence[int], h: V) -> Value:
        h = self.value(h)
        (rows, columns), (height, width) = flat_sizes(window), flat_sizes(h.positions)
        out = Value(h.units, tuple(n // size for n, size in zip(h.positions, window, strict=True)))
        return self.call("pool", f"{h.units}, {height}, {width}, {rows}, {columns}, {{0}}, {{y}}", [h], out, 0)

    def channels_first(self, positions: int, has_channels: bool, h: V) -> Image:
        if h is not self.argument or self.argument is None:
            raise ValueError("Only the first layer of a network may be one of pixels to have a C form.")
        *shape, channels = h.units, *h.positions, *[1] * (not has_channels)
        return Image(tuple(map(Column, range(channels))), tuple(shape))

    def mean(self, positions: int, h: V) -> Any:
        h = self.value(h)
        n, p = prod(h.positions[: len(h.positions) - positions]) * h.units, prod(h.positions[len(h.positions) - positions :])
        return self.call("average", f"{n}, {p}, {{0}}, {{y}}", [h], Value(h.units, h.positions[: len(h.positions) - positions]))

    def activate(self, activation: str, z: V) -> Any:
        z = self.value(z)
        return self.call(f"each_{activation}", f"{z.size}, {{y}}", [z], Value(z.units, z.positions), 0)

    def add(self, a: V, b: V) -> Any:
        a, b = self.value(a), self.value(b)
        if a in self._starts and self._starts[a] == self.steps[-2:]:  # a sum that may start at b
            (step,) = (step for step in self.steps[-1:] if isinstance(step, Step))
            self.steps[-2:] = [replace(step, reads=(step.reads[0], b), out=(out := Value(a.units, a.positions)))]
            return out
        return self.call("add", f"{a.size}, {{1}}, {{y}}", [a, b], Value(a.units, a.positions), 0)

    def scale(self, factor: Any, z: V, *, name: str) -> Any:
        z = self.value(z)
        sizes = f"{z.units}, {prod(z.positions)}"
        out = Value(z.units, z.positions)
        return self.call("scale", f"{sizes}, {self.table('F', factor)}, {{y}}", [z], out, 0, products=z.size)

    def mix(self, gate: V, new: V, old: V) -> Any:
        new = self.value(new)
        out, products = Value(new.units, new.positions), 2 * new.size
        return self.call("mix", f"{new.size}, {{0}}, {{2}}, {{y}}", [gate, new, old], out, 1, products=products)

    def merge_rows(self, gate: Any, rows: Sequence[int], width: int, new: V, old: V, *, positions: int = 0) -> Any:
        old = self.value(old)
        p, out = prod(old.positions), Value(width, old.positions)
        tables = f"{self.table('R', rows, 'INDEX')}, {self.table('G', gate)}"
        products = 2 * len(rows) * p
        return self.call("merge", f"{len(rows)}, {p}, {tables}, {{0}}, {{y}}", [new, old], out, 1, products=products)

    def combine(self, shares: Any, values: Sequence[V], *, name: str) -> Any:
        first, *others = map(self.value, values)
        total, shares = first, np.asarray(shares, float)
        shape = first.units, first.positions
        if shares[0] != 1:
            call = f"{first.size}, {number(shares[0])}, {{y}}"
            total = self.call("times", call, [first], Value(*shape), 0, products=first.size)
        for share, value in zip(shares[1:], others, strict=True):
            call = f"{first.size}, {number(share)}, {{1}}, {{y}}"
            total = self.call("add_times", call, [total, value], Value(*shape), 0, products=first.size)
        return total

    def one_hot(self, places: Any, width: int, codes: V) -> Inputs:
        ((column,),) = (codes,)  # type: ignore[misc]
        n = len(places) - 2  # the last two places are those of unseen and missing codes
        at = [k if k < n else k - n - 2 for k in range(n + 2)]
        return tuple(
            replace(column, codes=tuple(at[k] for k in range(n + 2) if places[k] == unit), n_codes=n) for unit in range(width)
        )

    def is_missing(self, x: V) -> Inputs:
        return tuple(replace(column, is_gap=True) for column in x)  # type: ignore[union-attr]

    def fill(self, values: Any, x: V) -> Inputs:
        return tuple(replace(column, fill=float(v)) for column, v in zip(x, values, strict=True))  # type: ignore[arg-type]

    def standardize(self, mean: Any, scale: Any, x: V) -> Inputs:
        rows = zip(x, mean, scale, strict=True)  # type: ignore[arg-type]
        return tuple(replace(column, mean=float(m), scale=float(s)) for column, m, s in rows)

    def limit(self, limit: float, z: V) -> Inputs:
        return tuple(replace(column, limit=float(limit)) for column in z)  # type: ignore[union-attr]

    def single(self, z: V) -> V:
        return z


def scaled_image(image: Image, factor: np.ndarray, shift: Any) -> Image:
    """Return factor · image + shift, [channels] each, of pixels as they are; a missing one is read as 0."""
    means = np.zeros(len(factor)) if shift is None else -np.asarray(shift, float) / factor
    rows = zip(image.columns, means.tolist(), (1 / factor).tolist(), strict=True)
    assert all(column.mean == 0 and column.scale == 1 for column in image.columns)
    return replace(image, columns=tuple(replace(column, fill=mean, mean=mean, scale=scale) for column, mean, scale in rows))


def flat_sizes(sizes: Sequence[int]) -> tuple[int, int]:
    """Return sizes in one or two dimensions as rows and columns; ValueError of more."""
    if len(sizes) > 2:
        raise ValueError(f"A network over {len(sizes)} dimensions has no C form; there is one for 1 and 2.")
    rows, columns = [*[1] * (2 - len(sizes)), *sizes]
    return rows, columns


def number(value: Any, *, is_double: bool = False) -> str:
    """Return the shortest constant of C that is this number.

    >>> number(0.1), number(1e-9), number(3), number(1 / 3, is_double=True)
    ('0.1f', '1e-09f', '3.0f', '0.3333333333333333')
    """
    rounded: Any = np.float64(value) if is_double else np.float32(value)
    assert np.isfinite(rounded), "check_export refuses a network whose numbers are not finite"
    is_usual = rounded == 0 or 1e-4 <= abs(rounded) < 1e7
    text = np.format_float_positional(rounded, trim="0") if is_usual else np.format_float_scientific(rounded, trim="-")
    return text if is_double else f"{text}f"
