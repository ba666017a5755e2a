"""The C lines that compute a network's inputs from x, a loop for each run of numbers, of gaps, or of one category's inputs.

number      limited((x − mean) · factor), its fill where it is missing
gap         either of two constants: missing or not
category    either of two constants for each input, by the code of its text; any number but a known code is unseen
image       numbers of each channel at all positions
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from math import prod

import numpy as np

from meristem.inputs.schema import MISSING, UNSEEN
from meristem.layers.ops.c import Column, CProgram, Image, number
from meristem.layers.ops.c_integer import BYTE_STEPS, IntegerProgram

REST = 1e-6  # standard deviations: where rounding the mean to float moves an input by more, the rest of it is subtracted, too


def input_lines(
    program: CProgram, columns: Sequence[Column] | Image, h: str, *, is_double: bool, is_bytes: bool
) -> Iterator[str]:
    """Yield the lines that write these inputs to h, and add their tables to the program; `is_bytes`: x is uint8_t."""
    constants = Integers(program) if isinstance(program, IntegerProgram) else Floats(program, is_double)
    if isinstance(columns, Image):
        yield from _image(constants, columns, h, is_bytes=is_bytes)
        return
    for _, group in groupby(enumerate(columns), key=lambda entry: _kind(entry[1])):
        entries = list(group)
        start, run = entries[0][0], [column for _, column in entries]
        if run[0].codes is not None:
            yield from _category(constants, run, h, start)
        elif run[0].is_gap:
            yield f"for (i = 0; i < {len(run)}; i++)  /* whether a value is missing */"
            zero, unity = constants.two(run)
            yield f"    {_at(h, start)} = is_number({_x(program, run)}) ? {zero} : {unity};"
        else:
            value, fill = constants.numbers(run)
            yield f"for (i = 0; i < {len(run)}; i++) {{"
            yield f"    const REAL v = {_x(program, run)};"
            yield ""
            yield f"    {_at(h, start)} = is_number(v) ? {value} : {fill};"
            yield "}"


def _image(constants: "Floats | Integers", image: Image, h: str, *, is_bytes: bool) -> Iterator[str]:
    n, p = len(image.columns), prod(image.positions)
    x = f"x[k * {n} + i]" if image.is_channels_last else f"x[i * {p} + k]"
    yield f"for (i = 0; i < {n}; i++)"
    if is_bytes and isinstance(constants, Integers):
        step = f" * {n_steps}" if (n_steps := BYTE_STEPS[constants.program.bits]) > 1 else ""
        yield f"    for (k = 0; k < {p}; k++)"
        yield f"        {_at(h, 0, f'i * {p} + k')} = (VALUE)(({x} - 128){step});"
        return
    value, fill = constants.numbers([*image.columns])
    yield f"    for (k = 0; k < {p}; k++) {{"
    yield f"        const REAL v = {x};"
    yield ""
    yield f"        {_at(h, 0, f'i * {p} + k')} = {value if is_bytes else f'is_number(v) ? {value} : {fill}'};"
    yield "    }"


class Floats:
    """The constants of inputs in float or double."""

    def __init__(self, program: CProgram, is_double: bool):
        self.program, self.is_double = program, is_double

    def numbers(self, run: list[Column]) -> tuple[str, str]:
        """Return the expressions of an input for the number v, and of one that is missing."""
        mean, scale = (np.array([getattr(column, name) for column in run]) for name in ("mean", "scale"))
        fill, z = np.array([column.scaled(column.if_missing) for column in run]), "v"
        if mean.any():
            z = f"v - {self._table('MEAN', mean)}"
            rest = mean - mean.astype(np.float64 if self.is_double else np.float32)
            if (np.abs(rest) > REST * scale).any():
                z = f"{z} - {self._table('REST', rest)}"
        if (scale != 1).any():
            z = f"({z}) * {self._table('FACTOR', 1 / scale)}"
        z = f"limited({z}, {number(run[0].limit, is_double=self.is_double)})" if np.isfinite(run[0].limit) else z
        return z, self._table("FILL", fill) if fill.any() else "0"

    def two(self, run: list[Column]) -> tuple[str, str]:
        """Return the expressions of inputs that are 0 or 1."""
        zero, unity = (self._table(name, [column.scaled(k) for column in run]) for k, name in enumerate(("OFF", "ON")))
        return zero, unity

    def two_of(self, column: Column) -> tuple[str, str]:
        zero, unity = (number(column.scaled(k), is_double=self.is_double) for k in (0, 1))
        return zero, unity

    def _table(self, name: str, values: Sequence[float] | np.ndarray) -> str:
        return f"AT({self.program.table(name, values, 'REAL')} + i)"


class Integers:
    """The constants of inputs in integers."""

    def __init__(self, program: IntegerProgram):
        self.program = program

    def numbers(self, run: list[Column]) -> tuple[str, str]:
        scalings = [self.program.scalings[column] for column in run]

        def table(name: str, kind: str, of: str) -> str:
            at = {"REAL": "AT", "VALUE": "VALUE_AT", "SUM": "SUM_AT"}[kind]
            return f"{at}({self.program.table(name, [getattr(scaling, of) for scaling in scalings], kind)} + i)"

        fill = table("FILL", "VALUE", "fill")
        if self.program.is_float:
            return f"rounded((v - {table('MIDDLE', 'REAL', 'middle')}) * {table('FACTOR', 'REAL', 'factor')})", fill
        factor = f"(uint32_t){table('FACTOR', 'SUM', 'factor')}"
        return f"spread(v, {table('LOW', 'SUM', 'low')}, {table('WIDTH', 'SUM', 'width')}, {factor})", fill

    def two(self, run: list[Column]) -> tuple[str, str]:
        return "-MOST", "MOST"

    def two_of(self, column: Column) -> tuple[str, str]:
        return "-MOST", "MOST"


def _kind(column: Column) -> tuple[object, ...]:
    if column.codes is not None:
        return "category", column.place
    return column.is_gap, column.limit


def _category(constants: Floats | Integers, run: list[Column], h: str, start: int) -> Iterator[str]:
    place, n = run[0].place, run[0].n_codes
    alone = [i for i, column in enumerate(run) if column.codes is not None and len(column.codes) == 1 and column.codes[0] >= 0]
    codes = [run[i].codes[0] for i in alone]  # type: ignore[index]
    first = codes[0] if codes else 0
    if alone != list(range(len(alone))) or codes != list(range(first, first + len(codes))):
        alone = []
    yield "{"
    yield f"    const int c = code(x[{place}], {n});"
    yield ""
    if alone:
        zero, unity = constants.two(run[: len(alone)])
        yield f"    for (i = 0; i < {len(alone)}; i++)"
        yield f"        {_at(h, start)} = c == {f'{first} + i' if first else 'i'} ? {unity} : {zero};"
    for i, column in enumerate(run[len(alone) :], start=len(alone)):
        zero, unity = constants.two_of(column)
        yield f"    {_at(h, start + i, '')} = {_is_among(column.codes or ())} ? {unity} : {zero};"
    yield "}"


def _is_among(codes: Sequence[int]) -> str:
    """Return the condition that c is one of these codes.

    >>> _is_among((3, 4, 5, UNSEEN))
    'c == -2 || (c >= 3 && c <= 5)'
    """
    tests, rest = [], sorted(codes)
    while rest:
        n = next((k for k in range(len(rest)) if rest[k] != rest[0] + k), len(rest))
        tests.append(f"c == {rest[0]}" if n == 1 else f"(c >= {rest[0]} && c <= {rest[n - 1]})")
        rest = rest[n:]
    assert min(codes, default=0) >= min(MISSING, UNSEEN)
    return " || ".join(tests) or "0"


def _x(program: CProgram, run: list[Column]) -> str:
    places = [column.place for column in run]
    if places == list(range(places[0], places[0] + len(run))):
        return f"x[{f'{places[0]} + i' if places[0] else 'i'}]"
    return f"x[INDEX_AT({program.table('X', places, 'INDEX')} + i)]"


def _at(h: str, start: int, index: str = "i") -> str:
    """Return the C expression of h[start + i], h being such as `m + 3`."""
    array, _, offset = h.partition(" + ")
    at = start + int(offset or 0)
    return f"{array}[{' + '.join([str(at)] * bool(at or not index) + [index] * bool(index))}]"
