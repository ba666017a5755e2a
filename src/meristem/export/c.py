"""A compact network as C99: a file and a header that need no library, allocate nothing, and keep no state between calls.

    int NAME_predict(const float *x, float *y);

    x        a number for each feature or column: dates are days since 1970-01-01, categories codes; NaN is missing
    y        Raw       the outputs                          returns 0
             OneOf     the probability of each class        returns the index of the class
             AnyOf     the probability of each label        returns how many are above 0.5
             Values    the numbers                          returns 0

NAME is that of the file. Scaling, gaps and thresholds are inside; tables are `const`, and lie in flash on AVR. Labels are those
of `predict`, numbers agree with it to 1e-5 of their scale. A column that float cannot hold precisely is refused by name,
and `numbers="double"` takes it. Of images x holds the pixels as `predict` takes them, row by row, the channels of a pixel side
by side; one that is NaN or infinite is read as the mean of its channel. With `bits` weights and values are integers, and the
error in held-out rows is in the file; with `numbers="int"`, too, x and y are int32_t, and nothing is computed in float. The
same network gives the same bytes.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from meristem.check import cut, many
from meristem.compact import CompactNetwork
from meristem.compact.inference import as_numpy
from meristem.export.c_columns import Columns
from meristem.export.c_file import PIXELS, CFile, COptions, identifier
from meristem.export.c_inputs import input_lines
from meristem.export.c_storage import Storage, placed
from meristem.export.endings import (
    HELD_OUT,
    MOST_ROWS,
    PROMISED,
    SINGLE,
    AnyOf,
    Ending,
    FeatureScaling,
    OneOf,
    Raw,
    Scaling,
    Values,
    check_network,
    ending_of,
    rounding_cost,
)
from meristem.files.atomic_write import PATHS, write_whole
from meristem.inputs import Inputs
from meristem.inputs.preprocessor import LIMIT
from meristem.layers.image_layers import Pixels, raw_pixels
from meristem.layers.ops.c import INPUTS, Column, CProgram, Value, number
from meristem.layers.ops.c_integer import Form, IntegerProgram
from meristem.layers.ops.c_integer_images import ImageIntegerProgram
from meristem.nn import Network

LEAST_ROWS, MOST_PIXELS = 100, 2**19  # of images as many as have so many pixels
RANGE = 36  # of decimal exponents in float
LARGEST_EXPONENT = 80.0  # of a predicted rate, in float
ROUNDING = {None: PROMISED, 8: 2e-3, 16: 2e-5}  # by how much x in float may change an answer: with bits, half a step of values


def to_c(
    path: PATHS,
    network: CompactNetwork | Network,
    *,
    scaling: Scaling | None = None,
    ending: Ending = Raw(),
    feature_names: Sequence[str] | None = None,
    **options: Any,
) -> Path:
    """Write a network as a C file, and a header of the same name beside it.

    `scaling` is the mean [n_in] and the scale [n_in] by which x is standardized first (a missing number is then read as the
    mean), or the Inputs of an estimator or of a table's model. Options:

    numbers       "float", "double", or with bits "int": the type of x and y
    class_names   whether the names of the classes are constants of the file, too
    bits          8 or 16: weights and values are integers of so many bits
    X             with bits: training rows [rows, columns], which show the range of each value
    pixels        of networks on images, "uint8": x holds bytes, read as the numbers that they are; "uint8/255": bytes, of a
                  network that takes numbers from 0 to 1; X holds bytes, too
    budget        bytes of flash, or such as "2 KB": ValueError if the file may take more, linked for a Cortex-M4F with -Os

    >>> import jax, tempfile
    >>> from meristem.nn import Network
    >>> network = Network.create("tunnel", n_in=2, n_out=1, depth=10, key=jax.random.key(0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = to_c(f"{folder}/side.c", network, ending=OneOf(["left", "right"]))
    ...     "int side_predict(const float *x, float *y)" in file.read_text(), file.with_suffix(".h").exists()
    (True, True)
    """
    path = Path(path)
    if path.suffix != ".c":
        raise ValueError(f"path={str(path)!r} must end in .c; the header is written beside it.")
    if not path.stem.isprintable() or set(path.stem) & {'"', "\\"}:
        raise ValueError(f"path={str(path)!r} must have no quote, backslash or line break in its name, for #include.")
    source, header = c_text(
        network, COptions(path.stem, **options), scaling=scaling, ending=ending, feature_names=feature_names
    )
    write_whole(path.with_suffix(".h"), header.encode())
    write_whole(path, source.encode())
    return path


def c_of(estimator: Any, path: PATHS, **options: Any) -> Path:
    """Write a fitted estimator as a C file: x [features] → what `predict` and `predict_proba` return."""
    inputs, ending = estimator._inputs_, ending_of(estimator._targets_)
    return to_c(path, estimator.compact(), scaling=inputs, ending=ending, feature_names=inputs.names, **options)


def c_text(
    network: CompactNetwork | Network,
    options: COptions,
    *,
    scaling: Scaling | None = None,
    ending: Ending = Raw(),
    feature_names: Sequence[str] | None = None,
) -> tuple[str, str]:
    """Return the C file and its header, as text."""
    file, program, memory, body, n_parameters, notes = _recorded_file(network, options, scaling, ending, feature_names)
    return file.text(program, memory, body, n_parameters, notes)


def flash_bound(
    network: CompactNetwork | Network, options: COptions, *, scaling: Scaling | None = None, ending: Ending = Raw()
) -> int:
    """Return the most bytes of flash that the C file takes, linked for a Cortex-M4F with -Os."""
    file, program, _, body, *_ = _recorded_file(network, options, scaling, ending, is_measured=False)
    return file.flash(program, body)[0]


def _recorded_file(
    network: CompactNetwork | Network,
    options: COptions,
    scaling: Scaling | None,
    ending: Ending,
    feature_names: Sequence[str] | None = None,
    *,
    is_measured: bool = True,
) -> tuple[CFile, CProgram, int, list[str], int, list[str]]:
    """Return the file, its program, numbers on the stack, the lines of its function, parameters, and notes.

    `is_measured`: the notes say what integers cost.
    """
    if options.class_names and not isinstance(ending, OneOf):
        raise ValueError("class_names=True is for a classifier; this model has no classes.")
    small, n_in, n_out, ending = check_network(network, ending)
    if isinstance(first := small.layers[0], Pixels) and scaling is None:
        small = raw_pixels(small, PIXELS[options.pixels] if options.pixels else 1.0)
        columns = Columns.of_image(first.input_shape, options.pixels, options.numbers)
    elif options.pixels is not None:
        raise ValueError(f"pixels={options.pixels!r} is for networks on images; leave it out.")
    else:
        columns = Columns.of(scaling, n_in * prod(small.positions), feature_names, options.numbers)
    if options.numbers == "float":
        _check_float(small, scaling, ending, n_out, columns, options.bits)
    x, notes = None, list[str]()
    if options.bits is None:
        program, x, last = recorded(small, scaling, n_in, CProgram)
        last = program.value(last)
    else:
        rows = calibration_rows(options, columns, small.positions)
        program, _, last = in_integers(small, scaling, options, rows)
        notes += [_cost(small, scaling, ending, options, rows)] * is_measured
        notes += _units(program, ending, columns) if options.numbers == "int" else []
        columns = columns.cut_off(program.scalings)
    storage = placed(program.steps, last, x)
    body = list(_lines(program, storage, is_double=options.numbers == "double", is_bytes=options.pixels is not None))
    if (z := str(storage.places[last])) != "y":
        body.append(f"copy({last.size}, {z}, y);")
    body += ending_lines(program, ending, last.size, options)
    file = CFile(identifier(options.name), columns, ending, last.size, options)
    return file, program, storage.size, body, small.n_parameters, notes


def recorded(
    network: CompactNetwork, scaling: Scaling | None, n_in: int, begin: Callable[[Any], Any]
) -> tuple[Any, Value | None, Any]:
    """Return the program of a network, the value that x itself is, where nothing is scaled, and the last value.

    `begin` returns an empty program that computes these inputs; None: those that are asked for.
    """

    def record(needed: Any) -> tuple[Any, Value | None, Any, Any]:
        program: Any = begin(needed)
        x: Any = None
        h: Any = None
        if scaling is None:
            program.argument = x = h = inputs = Value(n_in, tuple(network.positions))
        elif isinstance(scaling, Inputs):
            h = inputs = scaling.trace(program, [(Column(place),) for place in range(len(scaling.column_names))])
        else:
            h = inputs = FeatureScaling.of(scaling, n_in).trace(program, tuple(map(Column, range(n_in))))
        if scaling is None and isinstance(program, IntegerProgram):
            x, h = None, x if network.positions else tuple(map(Column, range(n_in)))
        for k, layer in enumerate(as_numpy(network).layers):
            program.note = f"layer {k + 1}: {type(layer).__name__}"
            h = layer(program, h)
        return program, x, h, inputs

    program, x, last, inputs = record(None)
    if len(set(program.requests)) > 1:  # networks of a bag that read some inputs each: all are computed once
        read = {column for request in program.requests for column in request}
        program, x, last, _ = record(tuple(column for column in inputs if column in read))
    return program, x, last


def calibration_rows(options: COptions, columns: Columns, positions: Sequence[int]) -> np.ndarray:
    """Return the rows that set the ranges of integers [rows, numbers in x], shuffled: those of X, or many of them."""
    rows = np.asarray(options.X)
    if positions:
        rows = rows.reshape(len(rows), -1)
    if rows.ndim != 2 or rows.shape[1] != len(columns.names) or not len(rows):
        raise ValueError(f"X has shape {rows.shape}; it must be rows of {many(len(columns.names), 'column')}, as x has.")
    most = max(LEAST_ROWS, MOST_PIXELS // rows.shape[1]) if positions else MOST_ROWS
    rows = rows[np.random.default_rng(0).permutation(len(rows))[: min(most, MOST_ROWS)]].astype(np.float64)
    if options.pixels is not None and not ((rows >= 0) & (rows <= 255) & (np.mod(rows, 1) == 0)).all():
        raise ValueError(f"X holds numbers that are no bytes, but pixels={options.pixels!r}; leave it out, or scale them.")
    return rows


def in_integers(
    small: CompactNetwork, scaling: Scaling | None, options: COptions, rows: np.ndarray, held_out: int = 0
) -> tuple[IntegerProgram, Form, Value]:
    """Return the program in integers, whose ranges all rows but the last `held_out` set, its last form, and its value."""
    is_float, is_bytes = options.numbers == "float", options.pixels is not None
    begin = partial(ImageIntegerProgram, options.bits or 8, rows, len(rows) - held_out, is_float=is_float, is_bytes=is_bytes)
    program, _, form = recorded(small, scaling, small.layers[0].n_in, begin)
    form = program.form(form)
    return program, form, program.outputs(form)


def _cost(small: CompactNetwork, scaling: Scaling | None, ending: Ending, options: COptions, rows: np.ndarray) -> str:
    """Return what integers cost in a fifth of the rows, in a program whose ranges the others set."""
    held_out = len(rows) // HELD_OUT
    program, form, _ = in_integers(small, scaling, options, rows, held_out)
    return rounding_cost(options.bits or 8, ending, program.real(form), program.simulated, held_out)


def _units(program: IntegerProgram, ending: Ending, columns: Columns) -> list[str]:
    """Return what the integers of x and y stand for."""
    name = "the pixels of channel {}" if columns.summary else "x[{}] is {}"
    factors = [(column.place, 2.0 ** (scaling.fraction or 0)) for column, scaling in program.scalings.items()]
    scalings = [f"{name.format(place, columns.names[place])} times {factor:.17g}" for place, factor in factors]
    return [*scalings, f"y is in units of {program.unit:.8g}{_meaning(ending, program.unit)}"]


def _meaning(ending: Ending, unit: float) -> str:
    match ending:
        case OneOf() | AnyOf():
            return " of a logit"
        case Values():
            form, pairs = "e^({})" if ending.link == "log" else "{}", list(zip(ending.scale, ending.mean, strict=True))
            own = len(set(pairs)) > 1  # not all outputs are scaled alike
            numbers = [f"y{f'[{k}]' * own} · {unit * scale:.8g} + {mean:.8g}" for k, (scale, mean) in enumerate(pairs)]
            return f" of a deviation: the prediction is {', '.join(form.format(text) for text in dict.fromkeys(numbers))}"
    return ""


def _check_float(small: CompactNetwork, scaling: Any, ending: Ending, n_out: int, columns: Columns, bits: int | None) -> None:
    """Raise ValueError, which names the columns, where single precision would change an answer."""
    allowed = ROUNDING[bits] / 2
    if isinstance(ending, Values):
        if ending.link == "log" and (ending.mean + LIMIT * ending.scale).max() > LARGEST_EXPONENT:
            raise ValueError(f"y is up to e^{ending.mean.max():.0f}, which float cannot hold; {_advice(bits)}")
        largest = (np.abs(ending.mean) + LIMIT * np.abs(ending.scale)) / np.abs(ending.scale)
        is_in_range = (
            np.abs(np.log10(np.abs(ending.scale))) < RANGE
        ).all() and largest.max() * ending.scale.max() < 10.0**RANGE
        if ending.link == "identity" and not (is_in_range and SINGLE.eps / 2 * largest.max() <= allowed):
            raise ValueError(f"y varies too little around {ending.mean[0]:g} for float; {_advice(bits)}")
    if scaling is None:
        return
    n_inputs = small.layers[0].n_in
    features = FeatureScaling.of(scaling, n_inputs)
    if (error := features.rounding_error(small, ending, n_out)) <= allowed:
        return
    errors = [features.rounding_error(small, ending, n_out, [place]) for place in range(len(features.mean))]
    worst = [columns.of_feature(int(place)) for place in np.flatnonzero(np.array(errors) >= max(errors) / 10)]
    names = cut(", ".join(map(repr, dict.fromkeys(worst))), 200)
    problem = f"float cannot hold the numbers of {names} precisely; {_advice(bits, error)}"
    raise ValueError(f"{problem} Rounding them may move an answer by {error:.1g}.")


def _advice(bits: int | None, error: float = np.inf) -> str:
    """Return what to do where rounding a column to float may move an answer by so much."""
    others = "" if bits else " (a few KB of flash more)" + " or bits=8" * (error <= ROUNDING[8] / 2)
    return f'give numbers="{"int" if bits else "double"}"{others}, or subtract a constant from the column first.'


def _lines(program: CProgram, storage: Storage, *, is_double: bool, is_bytes: bool) -> Iterator[str]:
    """Yield the lines of the function that compute the last value."""
    note, inputs = "", {value: columns for columns, value in program.computed.items()}
    for step in storage.steps:
        y = str(storage.places[step.out])
        if step.note != note and step.note:
            note = step.note
            yield f"/* {note} */"
        if step.call == INPUTS:
            yield from input_lines(program, inputs[step.out], y, is_double=is_double, is_bytes=is_bytes)
        else:
            yield step.call.format(*(storage.places[value] for value in step.reads), y=y)


def ending_lines(program: CProgram, ending: Ending, n_out: int, options: COptions) -> list[str]:
    """Return the lines that turn the outputs in y into what the caller asked for; of integers they stay as they are."""
    is_double, is_integer = options.numbers == "double", options.numbers == "int"
    each = f"for (i = 0; i < {n_out}; i++)"
    match ending:
        case OneOf() if len(ending.classes) == n_out == 1:
            return ["y[0] = 1;", "return 0;"]
        case OneOf() if len(ending.classes) > n_out and is_integer:
            return [f"k = y[0] > {round(ending.cut / program.unit)};", "y[1] = y[0];", "y[0] = 0;", "return k;"]
        case OneOf() if len(ending.classes) > n_out:
            at = number(ending.cut, is_double=is_double) if ending.cut else "0"
            return [f"k = y[0] > {at};", "y[1] = sigmoid(y[0]);", "y[0] = 1 - y[1];", "return k;"]
        case OneOf():
            return [f"k = largest({n_out}, y);", *[f"softmax({n_out}, y[k], y);"] * (not is_integer), "return k;"]
        case AnyOf():
            sigmoids = ["    y[i] = sigmoid(y[i]);"] * (not is_integer)
            return ["k = 0;", f"{each} {{", "    k += y[i] > 0;", *sigmoids, "}", "return k;"]
        case Values() if not is_integer:
            tables = {"OFFSET": ending.mean / ending.scale, "SCALE": ending.scale}
            offset, scale = (f"AT({program.table(name, values, 'REAL')} + i)" for name, values in tables.items())
            value = f"(y[i] + {offset}) * {scale}"
            return [each, f"    y[i] = {f'exponential({value})' if ending.link == 'log' else value};", "return 0;"]
    return ["return 0;"]
