"""C files of random models: they say what `predict` says, in integers what their program said; flash is within its bound.

A seed is a fitted table, an estimator, or a network of any layers that reads every kind of column; in float, double, 8 or 16
bits, or in integers alone. `make soak-devices` tries more than 500.
"""

import re
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

import meristem
from c_programs import ARM_GCC, image, needs_compiler, run_c
from exporting import TOLERANCE
from meristem.compact import CompactNetwork
from meristem.compact.inference import Predictor
from meristem.export import AnyOf, OneOf, Values, to_c
from meristem.export.c import recorded
from meristem.export.endings import Ending, ending_of
from meristem.inputs import Inputs, Preprocessor
from meristem.layers.layer import Affine
from meristem.layers.ops.c_integer import IntegerProgram
from meristem.layers.ops.numpy import NUMPY
from meristem.targets import Classes
from random_tables import RandomTable
from soak import FACTOR, many, parts, tell
from test_c import WIDTH, fields, random_network, table_rows
from test_c_devices import NUMBERS, bound
from test_c_integer import scale_of

pytestmark = [needs_compiler, pytest.mark.filterwarnings("ignore")]
ROWS, COLUMNS = 60, 4
QUICK = {"max_epochs": 1, "settle": False, "random_state": 0}
SEARCH = {"cv": 2, "penalties": [1e-4], "l2s": [1e-4], "input_dropouts": [0.0], "depth": 1, "max_width": 4, "refit": "bag"}
WIDE = {"width": 6, "input_dropout": 0.0, "early_stopping": False}
ESTIMATORS: list[tuple[str, str, dict[str, Any]]] = [
    ("TunnelClassifier", "three", WIDE | {"depth": 2}),
    ("TunnelRegressor", "number", WIDE | {"depth": 2, "activation": "silu"}),
    ("BuddingClassifier", "two", WIDE | {"max_leaves": 2, "activation": "tanh"}),
    ("HighwayRegressor", "numbers", WIDE | {"depth": 2, "activation": "gelu"}),
    ("TunnelClassifierCV", "three", SEARCH),
    ("TunnelRegressor", "counts", WIDE | {"depth": 1, "loss": "poisson"}),
    ("TunnelClassifier", "labels", WIDE | {"depth": 2, "activation": "sigmoid"}),
    ("TunnelRegressor", "number", WIDE | {"depth": 2, "loss": "quantile", "quantiles": (0.1, 0.5, 0.9)}),
    ("HighwayClassifier", "two", WIDE | {"depth": 2, "activation": "elu"}),
    ("BuddingRegressor", "number", WIDE | {"max_leaves": 2, "activation": "softplus"}),
    ("TunnelRegressorCV", "number", SEARCH),
]
PARTS = parts(5)


@dataclass(frozen=True, eq=False)
class Model:
    """What a C file is made of, rows as it takes them, and what `predict` says of them: classes by index, or None, and y."""

    network: CompactNetwork
    inputs: Inputs
    ending: Ending
    x: np.ndarray
    returned: np.ndarray | None
    y: np.ndarray


def of_table(rng: np.random.Generator) -> Model | None:
    seed = int(rng.integers(10**6))
    table = RandomTable.draw(seed)
    frame = RandomTable.draw(seed + 10**6, new=table).as_frame(typed=False, target=False)
    task = "number" if isinstance(table.target[0], float) else "class"
    try:
        model = meristem.fit_table(table.as_frame(typed=False), target="y", task=task, **SEARCH, **QUICK)
    except ValueError as error:
        if "no column to learn from" in str(error):  # each is constant, or each of its texts occurs once
            return None
        raise
    estimator, labels = model.estimator, model.predict(frame)
    returned = np.searchsorted(estimator.classes_, labels) if model.task == "class" else None
    y = model.predict_proba(frame) if model.task == "class" else labels.reshape(len(frame), -1)
    return Model(estimator.compact(), model.inputs, ending_of(estimator._targets_), model.codes(frame), returned, y)


def of_estimator(rng: np.random.Generator) -> Model:
    name, kind, options = ESTIMATORS[rng.integers(len(ESTIMATORS))]
    x = rng.normal(size=(ROWS, COLUMNS)) * 10.0 ** rng.integers(-3, 4, COLUMNS) + rng.choice([0.0, 5.0], COLUMNS)
    if rng.random() < 0.5:
        x[rng.random(x.shape) < 0.2] = np.nan
    x = x.astype(np.float32).astype(float)
    signal = np.nan_to_num((x[:, 0] - np.nanmean(x[:, 0])) / np.nanstd(x[:, 0])) + rng.normal(size=ROWS)
    target = {
        "two": lambda: np.where(signal > 0, "yes", "no"),
        "three": lambda: np.digitize(signal, [-0.5, 0.5]) * 7,
        "labels": lambda: np.stack([signal > 0, signal < -0.5, rng.random(ROWS) < 0.5], 1).astype(int),
        "counts": lambda: rng.poisson(np.exp(signal)).astype(float),
        "number": lambda: 10.0 ** rng.integers(-3, 4) * (signal + rng.choice([0, 10])),
        "numbers": lambda: np.stack([signal, 1e3 * signal + 50], 1),
    }[kind]()
    model = getattr(meristem, name)(**options, **QUICK).fit(x, target)
    labels = model.predict(x)
    returned, y = None, labels.reshape(ROWS, -1)
    if "Classifier" in name:
        returned = labels.sum(1) if kind == "labels" else np.searchsorted(model.classes_, labels)
        y = model.predict_proba(x)
    return Model(model.compact(), model._inputs_, ending_of(model._targets_), x, returned, y)


def of_layers(rng: np.random.Generator) -> Model:
    schema, x = fields(), table_rows(rng, ROWS).astype(np.float32).astype(float)
    features = schema.trace(NUMPY, [x[:, [k]] for k in range(x.shape[1])])
    inputs = Inputs(Preprocessor.of(features), schema)
    network = random_network(rng)
    first = Affine(0.3 * rng.normal(size=(WIDTH, inputs.n_inputs)).astype(np.float32), None)
    network = CompactNetwork((first, *network.layers))
    n_out = len(network.layers[-1].weight)
    outputs = Predictor(network).outputs(inputs(features))
    ending = [
        OneOf(range(max(2, n_out)), float(rng.normal()) if n_out == 1 else 0.0),
        AnyOf(),
        Values(rng.normal(size=n_out), np.exp(rng.normal(size=n_out))),
        Values(rng.normal(size=n_out), np.full(n_out, 0.3), link="log"),
    ][rng.integers(4)]
    return Model(network, inputs, ending, x, *ended(ending, outputs))


def ended(ending: Ending, outputs: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
    """Classes by index, or None, and y."""
    if isinstance(ending, OneOf):
        classes = Classes(np.arange(len(ending.classes)), 1 / (1 + np.exp(-ending.cut)))
        return classes.decode(outputs), classes.probabilities(outputs)
    if isinstance(ending, AnyOf):
        return (outputs > 0).sum(1), 1 / (1 + np.exp(-outputs.astype(float)))
    assert isinstance(ending, Values)
    y = outputs * ending.scale + ending.mean
    return None, np.exp(y) if ending.link == "log" else y


def simulated(model: Model, rows: np.ndarray, bits: int, numbers: str) -> tuple[np.ndarray, float]:
    """The outputs that the program in integers says the C file computes in these rows, and their unit."""
    begin = partial(IntegerProgram, bits, rows, len(rows), is_float=numbers == "float")
    program, _, form = recorded(model.network, model.inputs, model.network.layers[0].n_in, begin)
    program.outputs(program.form(form))
    return program.simulated, program.unit


def check(model: Model, numbers: str, bits: int | None, folder: Any) -> str:
    """Compare the C file of a model with what it should say; return the kind of numbers that it has."""
    path, options = folder / "model.c", {"scaling": model.inputs, "ending": model.ending}
    x, y, returned = model.x, model.y, model.returned
    order = np.random.default_rng(0).permutation(len(x))  # as to_c takes them
    if bits:
        x = x[order].astype(np.float32 if numbers == "float" else float).astype(float)
        options |= {"bits": bits, "X": x[np.argsort(order)]}
    try:
        source = to_c(path, model.network, numbers=numbers, **options)
    except ValueError as error:
        other = "int" if bits else "double"
        if f'give numbers="{other}"' not in str(error):
            raise
        return check(model, other, bits, folder)
    if ARM_GCC is not None:
        assert image(source)["flash"] <= bound(source)
    given = x
    if bits:
        outputs, unit = simulated(model, x, bits, numbers)
        returned, y = ended(model.ending, outputs)
        if numbers == "int":
            given = np.where(np.isnan(x), -(2.0**31), np.rint(x * scale_of(source.read_text(), x.shape[1])))
            is_only = isinstance(model.ending, OneOf) and len(model.ending.classes) == 1
            y = np.ones_like(outputs) if is_only else np.rint(outputs / unit)
    odd = given.copy()
    odd[np.random.default_rng(1).random(odd.shape) < 0.3] = -(2.0**31) if numbers == "int" else np.inf
    odd[::7] = 2.0**31 - 1 if numbers == "int" else -1e30  # defined behavior: the sanitizers see nothing
    answers, values = run_c(source, np.concatenate([given, odd]))
    answers, values = answers[: len(x)], values[: len(x)]
    if returned is None:
        size = np.maximum(np.std(y, 0), np.abs(y) / 10 if numbers != "int" else 0.5)
        assert (np.abs(values - y) <= TOLERANCE * np.maximum(size, 1e-30)).all()
        return numbers
    if numbers == "int":
        is_two = isinstance(model.ending, OneOf) and len(model.ending.classes) == 2
        is_sure = np.abs(outputs[:, 0] - model.ending.cut) > unit if is_two else np.ones(len(x), bool)
        assert (answers == returned)[is_sure].all()
        assert (values[:, 1:] == y if is_two else values == y).all()
        return numbers
    assert np.abs(values - y).max() <= TOLERANCE
    assert (answers == returned)[sure(model.ending, y)].all()
    return numbers


def sure(ending: Ending, y: np.ndarray) -> np.ndarray:
    """Rows whose class does not change if probabilities change by as much as is allowed."""
    if isinstance(ending, AnyOf) or y.shape[1] == 1:
        return (np.abs(y - 0.5) > TOLERANCE).all(1)
    if y.shape[1] == 2 and isinstance(ending, OneOf):
        return np.abs(y[:, 1] - 1 / (1 + np.exp(-ending.cut))) > 2 * TOLERANCE
    top = np.sort(y, 1)
    return top[:, -1] - top[:, -2] > 2 * TOLERANCE


@pytest.mark.parametrize("part", PARTS)
def test_c_files_of_random_models(part, tmp_path):
    counts, failures = Counter[str](), []
    seeds = range(many(7, suite=5))[part :: len(PARTS)]
    for seed in seeds:
        rng = np.random.default_rng(seed)
        kind = ["layers", "estimator", "table", "layers", "estimator"][(seed + seed // 5) % 5]
        numbers, bits = NUMBERS[seed % len(NUMBERS)]
        try:
            model = {"layers": of_layers, "estimator": of_estimator, "table": of_table}[kind](rng)
            if model is None:
                counts["nothing to learn from"] += 1
                continue
            taken = check(model, numbers, bits, tmp_path)
            counts[f"{kind}, {taken}{'' if bits is None or taken == 'double' else f' of {bits} bits'}"] += 1
        except Exception as error:
            if FACTOR == 1:
                raise
            failures.append(f"{seed}: {type(error).__name__} {re.sub(chr(10), ' ', str(error))[:300]}")
        tell(
            f"c files {part}",
            models=sum(counts.values()) + len(failures),
            counts=dict(sorted(counts.items())),
            failures=failures,
        )
    assert failures == []
