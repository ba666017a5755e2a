"""C files in integers: they compute what their program said they would, to the bit, and stay close to the network in float."""

import re
from functools import partial

import numpy as np
import pytest
import scipy.sparse

from c_programs import needs_compiler, run_c
from exported_estimators import trained
from exporting import KINDS, random_layer
from meristem import TunnelClassifier
from meristem.compact import CompactNetwork
from meristem.export import OneOf, Values, to_c
from meristem.export.c import recorded
from meristem.inputs import Inputs, Preprocessor
from meristem.layers.activation import ACTIVATIONS
from meristem.layers.layer import Affine, Perceptron, Pick
from meristem.layers.ops.c_integer import IntegerProgram
from meristem.layers.ops.c_rounding import rounded_weights
from soak import many
from test_c import fields, random_network, symbols, table_rows

pytestmark = needs_compiler
WIDTH = 5


def simulated(network, x, scaling, bits, *, is_float=True):
    """The program with all rows to calibrate with, and what it says that the C file will say."""
    begin = partial(IntegerProgram, bits, x, len(x), is_float=is_float)
    program, _, form = recorded(network, scaling, x.shape[1], begin)
    form = program.form(form)
    program.outputs(form)
    return program, program.simulated, program.real(form)


def scale_of(text: str, n: int) -> np.ndarray:
    """By what each column is multiplied, as the comment says."""
    factors = np.ones(n)
    for line in text.splitlines():
        if " times " in line and line.startswith(" * x["):
            factors[int(line.split("[")[1].split("]")[0])] = float(line.split(" times ")[1])
    return factors


@pytest.mark.parametrize("seed", range(many(4)))
def test_c_computes_what_the_program_said(seed, tmp_path):
    rng = np.random.default_rng(seed)
    bits, numbers = (8, 16)[seed % 2], ("float", "int")[seed // 2 % 2]
    network = random_network(rng)
    x = rng.normal(size=(200, WIDTH)) * 10.0 ** rng.integers(-2, 3, WIDTH) + 3
    inputs = Inputs(Preprocessor.of(x.astype(np.float32).astype(float)))
    x = inputs.preprocessor.scaling.mean + np.where(rng.random(x.shape) < 0.05, np.nan, x - 3)
    x = x.astype(np.float32).astype(float)
    try:
        source = to_c(tmp_path / "some.c", network, scaling=inputs, bits=bits, numbers=numbers, X=x)
    except ValueError as error:  # 3 ± 0.01 has too few digits in float for 16 bits
        if bits == 8 or 'give numbers="int"' not in str(error):
            raise
        numbers = "int"
        source = to_c(tmp_path / "some.c", network, scaling=inputs, bits=bits, numbers=numbers, X=x)
    order = np.random.default_rng(0).permutation(len(x))  # as the rows are shuffled there
    program, said, _ = simulated(network, x[order], inputs, bits, is_float=numbers == "float")
    as_given = x[order]
    if numbers == "int":
        as_given = np.where(np.isnan(as_given), -(2.0**31), np.rint(as_given * scale_of(source.read_text(), WIDTH)))
    _, y = run_c(source, as_given)
    if numbers == "int":
        assert (y == np.rint(said / program.unit)).all()
    else:
        np.testing.assert_allclose(y, said, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_layer_is_close_in_integers(activation):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, WIDTH))
    scaling = np.zeros(WIDTH), np.ones(WIDTH)
    for kind in sorted(KINDS - {Pick}, key=str):
        layer = random_layer(kind, activation, rng)
        for bits, bound in ((8, 0.06), (16, 0.003)):
            _, rough, exact = simulated(CompactNetwork((layer,)), x, scaling, bits)
            assert np.sqrt(((rough - exact) ** 2).mean()) <= bound * exact.std(), (kind, bits)


def test_neither_dead_units_nor_rare_numbers_cost_the_others_precision():
    """They have a range, or a bias, unlike the others, with which they share the bits of a sum."""
    rng = np.random.default_rng(0)
    x = rng.standard_t(2, (400, WIDTH)).astype(np.float32).astype(float)
    inputs, weight, bias = Inputs(Preprocessor.of(x)), rng.normal(size=(8, WIDTH)).astype(np.float32), np.zeros(8, np.float32)
    for dead in ([], [3], [3, 5]):
        bias[dead], weight[dead[1:]] = -50, 0
        network = CompactNetwork((Perceptron(weight, bias, "relu"), Affine(rng.normal(size=(1, 8)).astype(np.float32), None)))
        _, rough, exact = simulated(network, x, inputs, 8)
        assert np.sqrt(((rough - exact) ** 2).mean()) <= 0.05 * exact.std()


@pytest.mark.parametrize("seed", range(many(6)))
def test_sums_that_nearly_cancel_in_the_rows_do_not_overflow_in_others(seed, tmp_path):
    """Columns that depend on each other, and weights that undo this: results far smaller than what is summed up."""
    rng = np.random.default_rng(seed)
    n, numbers = int(rng.integers(40, 120)), ("float", "int")[seed % 2]
    mixing = rng.normal(size=(2, n))
    weight = rng.normal(size=(6, n))
    weight -= 0.9999 * (weight @ mixing.T) @ np.linalg.inv(mixing @ mixing.T) @ mixing
    first = Perceptron(weight.astype(np.float32), np.zeros(6, np.float32), ["relu", "tanh", "silu"][seed % 3])
    network = CompactNetwork((first, Affine(rng.normal(size=(2, 6)).astype(np.float32), None)))
    x, scaling = rng.normal(size=(200, 2)) @ mixing, (np.zeros(n), np.ones(n))
    for own in (network, CompactNetwork((Affine(first.weight, None),))):
        source = to_c(tmp_path / "cancels.c", own, scaling=scaling, bits=16, numbers=numbers, X=x)
        other = rng.choice([-1.0, 1.0], (50, n)) * np.abs(x).max(0)
        run_c(source, np.rint(other * scale_of(source.read_text(), n)) if numbers == "int" else other)


def test_rows_beyond_the_few_that_set_the_ranges_are_not_cut_off():
    errors = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x, weight = rng.standard_t(4, (1100, WIDTH)), rng.normal(size=(8, WIDTH)).astype(np.float32)
        last = Affine(rng.normal(size=(1, 8)).astype(np.float32), None)
        network = CompactNetwork((Perceptron(weight, np.zeros(8, np.float32), "relu"), last))
        begin = partial(IntegerProgram, 8, x, 100)
        program, _, form = recorded(network, Inputs(Preprocessor.of(x[:100])), WIDTH, begin)
        program.outputs(program.form(form))
        rough, exact = (outputs[100:] for outputs in (program.simulated, program.real(program.form(form))))
        errors.append(np.sqrt(((rough - exact) ** 2).mean()) / exact.std())
    assert np.mean(errors) <= 0.13  # 0.18 with the margin of many rows


def test_a_column_that_float_holds_to_four_digits_is_read_in_eight_bits(tmp_path):
    rng = np.random.default_rng(0)
    x = 1000 + 0.2 * rng.normal(size=(300, WIDTH))
    network = CompactNetwork((Affine(rng.normal(size=(1, WIDTH)).astype(np.float32), None),))
    with pytest.raises(ValueError, match="float cannot hold"):
        to_c(tmp_path / "x.c", network, scaling=Inputs(Preprocessor.of(x)))
    to_c(tmp_path / "x.c", network, scaling=Inputs(Preprocessor.of(x)), bits=8, X=x)
    _, rough, exact = simulated(network, x, Inputs(Preprocessor.of(x)), 8)
    assert np.sqrt(((rough - exact) ** 2).mean()) <= 0.02 * exact.std()
    with pytest.raises(ValueError, match="float cannot hold"):
        to_c(tmp_path / "x.c", network, scaling=Inputs(Preprocessor.of(1e6 + x)), bits=8, X=1e6 + x)


def test_rounded_weights_agree_on_the_rows_better_than_the_nearest():
    rng = np.random.default_rng(0)
    x = np.rint(rng.normal(size=(300, 6)) @ rng.normal(size=(6, 20)) * 20)  # values that are alike
    weight = rng.normal(size=(4, 20)) * 30
    integers, left = rounded_weights(weight, x, 127)
    errors = [x @ (weight - own).T - more for own, more in ((integers, left), (np.rint(weight), 0.0))]
    assert np.abs(integers).max() <= 127 and (np.std(errors[0], axis=0) < 0.5 * np.std(errors[1], axis=0)).all()
    assert np.abs(errors[0].mean(0)).max() < 1e-9


@pytest.mark.parametrize(("name", "bound"), [("digits", 0.01), ("diabetes", 0.03), ("two-targets", 0.06), ("iris", 0.02)])
def test_an_estimator_in_eight_bits(name, bound, tmp_path):
    estimator, x = trained(name)
    rows = np.asarray(x, float)
    source = estimator.to_c(tmp_path / "small.c", bits=8, X=x)
    returned, y = run_c(source, np.concatenate([rows, np.full((1, x.shape[1]), np.nan), np.full((1, x.shape[1]), 1e30)]))
    if hasattr(estimator, "classes_"):
        assert (estimator.classes_[returned[:-2]] == estimator.predict(x)).mean() >= 1 - bound
        assert "have the class of the network in float" in source.read_text()
    else:
        expected = estimator.predict(x).reshape(len(x), -1)
        assert (np.sqrt(((y[:-2] - expected) ** 2).mean(0)) <= bound * expected.std(0)).all()


def test_sparse_rows_show_the_ranges_of_a_large_table(tmp_path):
    x = scipy.sparse.random(600, 3000, 0.01, "csr", random_state=0)
    x = x + scipy.sparse.csr_matrix((np.arange(600) % 2 * 2.0, (np.arange(600), np.zeros(600, int))), x.shape)
    estimator = TunnelClassifier(width=4, depth=1, max_epochs=20, random_state=0).fit(x, np.arange(600) % 2)
    assert estimator.score(x, np.arange(600) % 2) == 1
    returned, _ = run_c(estimator.to_c(tmp_path / "sparse.c", bits=8, X=x), x[:50].toarray())
    assert (returned == np.arange(50) % 2).all()


@pytest.mark.parametrize("numbers", ["float", "int"])
def test_a_table_in_integers_and_without_floating_point(numbers, tmp_path):
    schema, rng = fields(), np.random.default_rng(0)
    rows = table_rows(rng, 400)
    from meristem.layers.ops.numpy import NUMPY

    features = schema.trace(NUMPY, [rows[:, [k]] for k in range(rows.shape[1])])
    inputs = Inputs(Preprocessor.of(features), schema)
    network = CompactNetwork((Affine(rng.normal(size=(3, inputs.n_inputs)).astype(np.float32), None),))
    options = {"scaling": inputs, "ending": OneOf(["a", "b", "c"]), "bits": 8, "numbers": numbers, "X": rows}
    source = to_c(tmp_path / "table.c", network, **options)
    given = rows
    if numbers == "int":
        given = np.where(np.isnan(rows), -(2.0**31), np.rint(rows * scale_of(source.read_text(), rows.shape[1])))
    returned, _ = run_c(source, given)
    exact = (inputs(features) @ np.asarray(network.layers[0].weight).T).argmax(1)
    assert (returned == exact).mean() > 0.97
    if numbers == "int":
        code = source.read_text().split("*/", 1)[1]
        assert "float" not in code and "double" not in code and "INT32_MIN" in code
        head = source.read_text().split("*/", 1)[0]
        assert "NaN" not in head and "y[2]     the logit of c" in head and "cut off beyond; INT32_MIN missing" in head
    assert set(symbols(source).values()) <= {"T", "t", "r", "R", "N"}


@pytest.mark.parametrize("name", ["two-targets", "counts", "diabetes"])
def test_the_comment_says_how_integers_become_predictions(name, tmp_path):
    estimator, x = trained(name)
    rows = np.asarray(x, np.float32).astype(float)
    source = estimator.to_c(tmp_path / "whole.c", bits=16, numbers="int", X=x)
    text = re.sub(r"\n \*\s+", " ", source.read_text())
    _, y = run_c(source, np.rint(rows * scale_of(source.read_text(), rows.shape[1])))
    pairs = re.findall(r"y(?:\[\d\])? · (\S+) \+ ([^\s,)]+)", text[text.index("the prediction is") :])
    assert len(pairs) == y.shape[1]
    scale, mean = np.array(pairs, float).T
    said, expected = y * scale + mean, estimator.predict(x).reshape(y.shape)
    said = np.exp(said) if name == "counts" else said
    assert (np.sqrt(((said - expected) ** 2).mean(0)) <= 0.005 * expected.std(0)).all()


def test_numbers_of_y_that_float_holds_to_four_digits_are_written_in_eight_bits(tmp_path):
    network, x = CompactNetwork((Affine(np.array([[1.0]], np.float32), None),)), np.random.default_rng(0).normal(size=(99, 1))
    ending = Values(np.array([1e6]), np.array([1e3]), is_flat=True)
    with pytest.raises(ValueError, match="y varies too little around 1e\\+06 for float"):
        to_c(tmp_path / "y.c", network, ending=ending)
    _, y = run_c(to_c(tmp_path / "y.c", network, ending=ending, bits=8, X=x), x)
    assert np.sqrt(((y - 1e3 * x - 1e6) ** 2).mean()) <= 0.02 * 1e3


def test_what_float_rounds_away_is_refused_where_eight_bits_would_see_it(tmp_path):
    network, x = CompactNetwork((Affine(np.array([[1.0]], np.float32), None),)), np.random.default_rng(0).normal(size=(200, 1))
    for mean, scale, is_held in ((1.5, 1e-3, True), (1.7e9, 300.0, False)):
        options = {"scaling": Inputs(Preprocessor.of(mean + scale * x)), "X": mean + scale * x}
        with pytest.raises(ValueError, match=r"numbers of 'column 0' precisely; give numbers=\"double\""):
            to_c(tmp_path / "x.c", network, **options | {"X": None})
        if is_held:
            _, y = run_c(to_c(tmp_path / "x.c", network, bits=8, **options), options["X"])
            assert np.quantile(np.abs(y - (x - x.mean()) / x.std()), 0.9) < 0.05
            continue
        with pytest.raises(ValueError, match=r"numbers of 'column 0' precisely; give numbers=\"int\""):
            to_c(tmp_path / "x.c", network, bits=8, **options)


@pytest.mark.parametrize("numbers", ["float", "int"])
@pytest.mark.parametrize("scaled", [True, False])
def test_a_missing_number_of_an_own_network_leaves_the_range_to_the_others(scaled, numbers, tmp_path):
    """A range that reaches from 1.5 ± 0.001 to 0 holds nothing in eight bits."""
    rng, mean, scale = np.random.default_rng(0), 1.5, 1e-3
    x = (mean + scale * rng.normal(size=(300, 2))).astype(np.float32).astype(float)
    factor = np.array([[1.0, -2.0]]) / (1 if scaled else scale)
    network = CompactNetwork((Affine(factor.astype(np.float32), -factor.sum(1).astype(np.float32) * (0 if scaled else mean)),))
    scaling = (np.full(2, mean), np.full(2, scale)) if scaled else None
    source = to_c(tmp_path / "narrow.c", network, scaling=scaling, bits=8, numbers=numbers, X=x)
    given, missing = x, np.nan
    if numbers == "int":
        given, missing = np.rint(x * scale_of(source.read_text(), 2)), -(2.0**31)
    _, y = run_c(source, np.concatenate([given, np.full((1, 2), missing)]))
    unit = float(source.read_text().split("units of ")[1].split()[0]) if numbers == "int" else 1.0
    exact = (x - mean) / scale @ [1.0, -2.0]
    assert np.sqrt((((unit * y[:-1, 0]) - exact) ** 2).mean()) <= 0.02 * exact.std()
    if scaled:
        assert abs(unit * y[-1, 0]) <= 0.05 * exact.std(), "the mean"


def test_what_integers_need_is_asked_for(tmp_path):
    network = CompactNetwork((Affine(np.eye(2, dtype=np.float32), None),))
    for options, message in [
        ({"bits": 8}, "bits=8 needs rows"),
        ({"bits": 7, "X": np.ones((3, 2))}, "bits=7 must be 8, 16 or None"),
        ({"bits": 8, "X": np.ones((3, 3))}, r"X has shape \(3, 3\); it must be rows of 2 columns"),
        ({"numbers": "int"}, "give bits=8 or bits=16"),
        ({"numbers": "double", "bits": 8, "X": np.ones((3, 2))}, 'numbers="double" is for networks in floating point'),
    ]:
        with pytest.raises(ValueError, match=message):
            to_c(tmp_path / "x.c", network, **options)
