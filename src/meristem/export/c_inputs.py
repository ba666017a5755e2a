"""The C lines that compute a network's inputs from x, a loop for each run of numbers, of gaps, or of one category's inputs.

    number      limited((x − mean) · factor), its fill where it is missing
    gap         either of two constants: missing or not
    category    either of two constants for each input, by the code of its text; any number but a known code is unseen
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from meristem.inputs.schema import MISSING, UNSEEN
from meristem.layers.ops.c import Column, CProgram, number

REST = 1e-6  # standard deviations: where rounding the mean to float moves an input by more, the rest of it is subtracted, too


def input_lines(program: CProgram, columns: Sequence[Column], h: str, *, is_double: bool) -> Iterator[str]:
    """Yield the lines that write these inputs to h, and add their tables to the program."""
    for _, group in groupby(enumerate(columns), key=lambda entry: _kind(entry[1])):
        start, run = next(group)
        members = [run, *(column for _, column in group)]
        if run.codes is not None:
            yield from _category(program, members, h, start, is_double)
        elif run.is_gap:
            off, on = _constants(program, "OFF", [c.scaled(0) for c in members]), _constants(program, "ON", [c.scaled(1) for c in members])
            yield f"for (i = 0; i < {len(members)}; i++)  /* 1 where a value is missing, scaled */"
            yield f"    {_at(h, start)} = is_number({_x(program, members)}) ? {off} : {on};"
        else:
            yield from _numbers(program, members, h, start, is_double)


def _kind(column: Column) -> tuple[object, ...]:
    if column.codes is not None:
        return "category", column.place
    return column.is_gap, column.limit


def _numbers(program: CProgram, run: list[Column], h: str, start: int, is_double: bool) -> Iterator[str]:
    precision = np.float64 if is_double else np.float32
    mean, scale = (np.array([getattr(column, name) for column in run]) for name in ("mean", "scale"))
    fill, z = np.array([column.scaled(column.fill) for column in run]), "v"
    if mean.any():
        z = f"v - {_constants(program, 'MEAN', mean)}"
        rest = mean - mean.astype(precision)
        if (np.abs(rest) > REST * scale).any():
            z = f"{z} - {_constants(program, 'REST', rest)}"
    if (scale != 1).any():
        z = f"({z}) * {_constants(program, 'FACTOR', 1 / scale)}"
    z = f"limited({z}, {number(run[0].limit, is_double=is_double)})" if np.isfinite(run[0].limit) else z
    yield f"for (i = 0; i < {len(run)}; i++) {{"
    yield f"    const REAL v = {_x(program, run)};"
    yield ""
    yield f"    {_at(h, start)} = is_number(v) ? {z} : {_constants(program, 'FILL', fill) if fill.any() else 0};"
    yield "}"


def _category(program: CProgram, run: list[Column], h: str, start: int, is_double: bool) -> Iterator[str]:
    place, n = run[0].place, run[0].n_codes
    simple = [i for i, c in enumerate(run) if c.codes is not None and len(c.codes) == 1 and c.codes[0] >= 0]
    first = [run[i].codes[0] for i in simple]  # type: ignore[index]
    if simple != list(range(len(simple))) or first != list(range(first[0] if first else 0, (first[0] if first else 0) + len(first))):
        simple = []
    yield "{"
    yield f"    const int c = code(x[{place}], {n});"
    yield ""
    if simple:
        members = [run[i] for i in simple]
        off, on = _constants(program, "OFF", [c.scaled(0) for c in members]), _constants(program, "ON", [c.scaled(1) for c in members])
        yield f"    for (i = 0; i < {len(simple)}; i++)"
        yield f"        {_at(h, start)} = c == {f'{first[0]} + i' if first[0] else 'i'} ? {on} : {off};"
    for i, column in enumerate(run):
        if i in simple:
            continue
        on, off = (number(column.scaled(value), is_double=is_double) for value in (1, 0))
        yield f"    {_at(h, start + i, '')} = {_is_among(column.codes or ())} ? {on} : {off};"
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


def _constants(program: CProgram, name: str, values: Sequence[float] | np.ndarray) -> str:
    return f"AT({program.table(name, values, 'REAL')} + i)"


def _at(h: str, start: int, index: str = "i") -> str:
    """Return the C expression of h[start + i], h being such as `m + 3`."""
    array, _, offset = h.partition(" + ")
    at = start + int(offset or 0)
    return f"{array}[{' + '.join([str(at)] * bool(at or not index) + [index] * bool(index))}]"
